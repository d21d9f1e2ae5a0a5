"""The tables of docs/reference/status.md.

    FIELDS["remote.hits"]              [types, when] of a field of status.json
    METRICS["epochfs_datasets"]        (type, labels, when)
    SAME["epochfs_remote_hits_total"]  the field that has the same number
"""

import os
import re

from lib import equal, text

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
WHEN_OF = {"remote": "stage", "push": "always"}
FIELDS, METRICS, SAME = {}, {}, {}


def tables(columns):
    """Rows of the page's tables that have so many columns; the first one is a name."""
    for line in text(ROOT, "docs/reference/status.md").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == columns:
            yield cells[0].strip("`"), *cells[1:]


def new(kind, name, row):
    equal(kind.get(name, row), row, f"{name} stands in one row of docs/reference/status.md")
    kind[name] = row


for name, *cells in tables(5):
    if name.startswith("epochfs_"):
        new(METRICS, name, (cells[0], [word for word in cells[1].split(", ") if word], cells[2]))
    else:
        new(FIELDS, name, (cells[0].split(" or "), cells[2]))
for name, metric, _ in tables(3):
    group = name.split(".")[0]
    if group not in WHEN_OF:
        continue
    new(FIELDS, name, (["integer"], WHEN_OF[group]))
    full = metric.strip("`")
    metric = full.split("{")[0]
    if metric:
        new(METRICS, metric, ("counter" if metric.endswith("_total") else "gauge", re.findall(r'(\w+)="', full), WHEN_OF[group]))
        if metric == full:
            SAME[metric] = name
equal(len(FIELDS) > 100 and len(METRICS) > 60, True, f"{len(FIELDS)} fields and {len(METRICS)} metrics")
SAME |= {name: field for name in METRICS for field in [re.sub("^epochfs_|_total$", "", name)] if FIELDS.get(field, [0])[0] == ["integer"]}
