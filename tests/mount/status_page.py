"""The tables of docs/reference/status.md and docs/spec/status.md.

    FIELDS["remote.hits"]              [types, when] of a field of status.json
    METRICS["epochfs_datasets"]        (type, labels, when)
    SAME["epochfs_remote_hits_total"]  the field that has the same number
"""

import os
import re

from lib import equal, text

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
WHEN = {"every mount": "always", "plans": "plan", "staging": "stage"}
OF_PLANS = ["dataset", "plan", "epoch", "encoding"]
FIELDS, METRICS, SAME = {}, {}, {}


def rows():
    """(when, cells) of the rows of tables below headings such as "Fields of plans"; the first cell is a name."""
    when = None
    for line in (text(ROOT, "docs/reference/status.md") + text(ROOT, "docs/spec/status.md")).splitlines():
        if line.startswith("#"):
            when = WHEN.get(re.sub("^### (Fields|Metrics) of ", "", line))
        elif when and line.startswith("| `"):
            yield when, [cell.strip().strip("`") for cell in line.strip("|").split("|")]


def new(kind, name, row):
    equal(kind.get(name, row), row, f"{name} stands in one row of the pages of status")
    kind[name] = row


def add_metric(full, when, meaning=""):
    name, *labels = re.findall(r"[a-z]\w*", re.sub(r'"\w*"', "", full))
    kind = "histogram" if name == "epochfs_remote_wait_seconds" else "counter" if name.endswith("_total") else "gauge"
    if meaning.endswith("Only after the first read."):
        when = "read"
    new(METRICS, name, (kind, OF_PLANS if when in ("plan", "read") else labels, when))
    return name, labels


for when, cells in rows():
    if len(cells) == 2:
        add_metric(cells[0], when, cells[1])
        continue
    name, second, _ = cells
    if second and not second.startswith("epochfs_"):
        new(FIELDS, name, (re.sub(r" \(.*", "", second).split(" or "), when))
        continue
    new(FIELDS, name, (["integer"], when))
    if second:
        metric, labels = add_metric(second, when)
        if not labels:
            SAME[metric] = name
equal(len(FIELDS) > 100 and len(METRICS) > 60, True, f"{len(FIELDS)} fields and {len(METRICS)} metrics")
SAME |= {name: field for name in METRICS for field in [re.sub("^epochfs_|_total$", "", name)] if FIELDS.get(field, [0])[0] == ["integer"]}
