#!/usr/bin/python3
"""Tables of many rows: batches larger than what is read at once, of files in sequence, wide rows, in any piece of a file, and
from a web server; files that are not one table."""

import errno
import os
import random
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from servers import *  # noqa: E402

WWW = os.path.join(PRIVATE, "www")
LABEL, WEIGHT = 4, 1
rng = np.random.default_rng(8)


def put(name, cells):
    os.makedirs(os.path.dirname(f"{WWW}/{name}"), exist_ok=True)
    with open(f"{WWW}/{name}", "w", encoding="ascii") as f:
        f.writelines(",".join(map(repr, row)) + "\n" for row in cells.tolist())


def numbers(rows, columns):
    return rng.normal(0, 100, (rows, columns)).astype("f4").round(3).astype("f8")


def fields(cells):
    cells = cells.astype("<f4")
    return {"x": np.delete(cells, (WEIGHT, LABEL), axis=1), "label": cells[:, LABEL], "weight": cells[:, WEIGHT]}


def compare(dataset, cells, batch, *plans):
    want = fields(cells)
    for plan in plans:
        folder, seen = path(dataset, f"batches/batch={batch}{plan}"), []
        for b in range(-(-len(cells) // batch)):
            found = np.load(f"{folder}/npz/{b:06d}.npz")
            index = found["index"]
            seen += index.tolist()
            for name, values in want.items():
                assert np.array_equal(found[name], values[index]), f"{dataset} {plan} {b} {name}"
        equal(sorted(seen), list(range(len(cells))), f"rows of {dataset} {plan}")


def compare_pieces(dataset, cells):
    """Any piece of a file is that piece of the whole."""
    name = path(dataset, "batches/batch=1500,seed=2/epoch=0/npy/000000.x.npy")
    index = np.load(path(dataset, "batches/batch=1500,seed=2/epoch=0/npy/000000.index.npy"))
    whole = np.ascontiguousarray(fields(cells)["x"][index]).tobytes()
    chance = random.Random(4)
    with open(name, "rb", buffering=0) as f:
        size = os.fstat(f.fileno()).st_size
        for _ in range(200):
            at, n = chance.randrange(size), chance.randrange(1, 5000)
            found = os.pread(f.fileno(), n, at)
            skip = max(0, size - len(whole) - at)
            begin = at + skip - (size - len(whole))
            equal(found[skip:], whole[begin:begin + len(found) - skip], f"{n} bytes at {at}")


parts = [numbers(n, 7) for n in (900, 1, 2200)]
for i, cells in enumerate(parts):
    put(f"parts/t{i}.csv", cells)
wide = numbers(300, 3000)
put("wide.csv", wide)
options = (f"label_column={LABEL}", f"weight_column={WEIGHT}")
plans = ("", ",seed=3/epoch=1")
table = np.concatenate(parts)
with mounted(f"{WWW}/parts", *options):
    compare("all", table, 700, *plans)
    about = json.loads(text(path("all/dataset.json")))
    equal([about[n] for n in ("num_row", "num_col", "num_nonzero")],
          [len(table), 5, int(np.count_nonzero(~np.isnan(np.delete(table, (LABEL, WEIGHT), 1))))], "counts of all files")
    compare("t2.csv", parts[2], 2200, *plans)
    compare_pieces("all", table)
with open(f"{WWW}/wide.csv") as rows, open(f"{WWW}/named.csv", "w") as named:
    named.write(",".join(f"column{i}" for i in range(3000)) + "\n" + rows.read())
for name in ("wide.csv", "named.csv"):
    with mounted(f"{WWW}/{name}", *options):
        compare(name, wide, 128, *plans)

with Nginx(WWW) as server:
    with mounted(f"{server.url}/parts/", *options, f"cache={CACHE}"):
        compare("all", table, 700, *plans)
        state = remote()
        size = sum(os.path.getsize(f"{WWW}/parts/t{i}.csv") for i in range(3))
        assert state["demand_bytes"] + state["background_bytes"] <= size, state

# A row that is another one now: the file is stale
with mounted(f"{WWW}/parts/t0.csv", *options):
    compare("t0.csv", parts[0], 700, "")
    with open(f"{WWW}/parts/t0.csv", "r+b") as f:
        f.write(b"x")
    equal(error_of(content, path("t0.csv/batches/batch=300,seed=1/epoch=0/npz/000000.npz")), errno.ESTALE, "a changed file")

# Not one table
put("apart/a.csv", numbers(5, 3))
put("apart/b.csv", numbers(5, 3))
put("apart/c.csv", numbers(5, 4))
with mounted(f"{WWW}/apart"):
    equal(sorted(n for n in os.listdir(MOUNTPOINT) if n.endswith(".csv") or n == "all"), ["a.csv", "b.csv", "c.csv"], "datasets")
    contains(log_text(), "c.csv: has 4 columns, a.csv has 3: the files of this folder are not one table")
with mounted(f"{WWW}/parts", "label_column=0"):
    equal(os.path.isdir(path("all")), True, "one table again")
