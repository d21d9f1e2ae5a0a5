#!/usr/bin/python3
"""mount-scripts/grafana/epochfs.json: panels that lie next to one another, and queries whose metrics and labels are
those of docs/reference/status.md; no query of a counter without its growth. The alerts of docs/cluster.md also have such metrics."""

import json
import os
import re

from lib import equal, text
from page_blocks import take
from status_page import METRICS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../../..")
DASHBOARD = json.loads(text(ROOT, "mount-scripts/grafana/epochfs.json"))
SHARED = {"mountpoint", "le", "instance"}  # that prometheus-textfile adds, that histograms have, that Prometheus adds for each node
FUNCTIONS = {"rate", "increase", "sum", "without", "histogram_quantile", "label_values"}  # `by` would drop what Prometheus adds
LEAST = 3  # minutes that a growth is taken over: prometheus-textfile runs once a minute

queries = [(panel["title"], target["expr"], target["legendFormat"])
           for panel in DASHBOARD["panels"] for target in panel["targets"]]
used = set()
for title, query, legend in queries:
    plain = re.sub(r'"[^"]*"', '""', query)
    for open_, close in ("()", "[]", "{}"):
        equal(plain.count(open_), plain.count(close), f"{title}: brackets of {query}")
    known = []
    for match in re.finditer(r"\bepochfs_\w+", plain):
        name = re.sub(r"_(bucket|sum|count)$", "", match[0])
        equal(name in METRICS, True, f"{title}: docs/reference/status.md has {name}")
        kind, labels, _ = METRICS[name]
        grows = re.search(r"\b(rate|increase)\($", plain[:match.start()]) is not None
        whole = title == "Received / distinct"  # both since the start of the mount
        equal(grows, kind != "gauge" and not whole, f"{title}: growth of the {kind} {name}")
        equal(plain[match.end():].startswith('{mountpoint=~""}'), True, f"{title}: only the mounts that are chosen")
        known.append(set(labels))
        used.add(name)
    equal(bool(known), True, f"{title}: a metric")
    for label in re.findall(r"\{\{(\w+)\}\}", legend):
        equal(label in SHARED or all(label in labels for labels in known), True, f"{title}: label {label}")
    equal(legend.startswith("{{instance}} {{mountpoint}}"), True, f"{title}: which mount of which node: {legend}")
    for number, unit in re.findall(r"\[(\d+)(\w)\]", query):
        equal(int(number) * {"m": 1, "h": 60}[unit] >= LEAST, True, f"{title}: {number}{unit} for a growth")
    # Both sides of a quotient must have the same labels, or nothing is shown.
    sides = [labels ^ set(re.findall(r"without \((\w+)\)", side)) for labels, side in zip(known, plain.split(" / "))]
    equal(all(side == sides[0] for side in sides), True, f"{title}: labels of both sides of {query}")
    words = set(re.findall(r"\b([a-z_]+) ?\(", plain))
    equal(words <= FUNCTIONS, True, f"{title}: functions {words}")
equal(len(used) > 15, True, f"{len(used)} metrics are shown")

variables = {v["name"] for v in DASHBOARD["templating"]["list"]}
equal(set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"]))) <= variables, True, "variables are defined")
ids = [panel["id"] for panel in DASHBOARD["panels"]]
equal(len(set(ids)), len(ids), "an id for each panel")
taken = set()
for panel in DASHBOARD["panels"]:
    at = panel["gridPos"]
    cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
    equal(at["x"] + at["w"] <= 24 and not cells & taken, True, f"the place of {panel['title']}")
    taken |= cells

alerts = re.findall(r"^      - alert: (\w+)\n        expr: (.*)$", take("docs/cluster.md", "EpochfsJobWaits"), re.M)
equal(len(alerts), 5, "alerts of docs/cluster.md")
for title, query in alerts:
    names = re.findall(r"\bepochfs_\w+", query)
    equal([name for name in names if name not in METRICS and name != "epochfs_up"], [], f"{title}: metrics unknown to docs/reference/status.md")
    for name in names:
        grows = f"increase({name}[" in query
        equal(grows, METRICS.get(name, ("gauge",))[0] != "gauge", f"{title}: growth of {name}")
