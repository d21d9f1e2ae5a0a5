#!/usr/bin/python3
# needs: python3-scipy
"""LibFM text, against a parser of three lines and XGBoost's own; columns (csc) of LibFM and libsvm against scipy; each
check names its row of the table of cases."""

import errno
import json
import os
import random
import sys

import numpy as np
import scipy.sparse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from servers import *  # noqa: E402

REAL = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "libfm")


def rows_of(data, base=0, libsvm=False):
    """(label, weight, [(field, index, value)]) of each row."""
    rows = []
    for line in data.decode("utf-8-sig").replace("\r", "\n").split("\n"):
        words = line.split("#")[0].split()
        if words:
            label, _, weight = words[0].partition(":")
            triples = [[base, *word.split(":")] if libsvm else word.split(":") for word in words[1:]]
            rows.append((np.float32(label), np.float32(weight or 1),
                         [(int(t[0]) - base, int(t[1]) - base, np.float32(t[2] if len(t) > 2 else 1)) for t in triples]))
    return rows


def check_batch(batch, rows, columns, csc):
    """One npz: its entries by rows or columns, each with its field."""
    index = batch["index"].tolist()
    equal(batch["shape"].tolist(), [len(index), columns], "shape")
    equal(batch["format"].item(), b"csc" if csc else b"csr", "format")
    want = [(r, i, f, v) for r, k in enumerate(index) for f, i, v in rows[k][2]]
    want.sort(key=(lambda e: (e[1], e[0])) if csc else (lambda e: (e[0], e[1])))
    minor = [e[0] if csc else e[1] for e in want]
    major = [e[1] if csc else e[0] for e in want]
    equal(batch["indices"].tolist(), minor, "indices")
    equal(batch["indptr"].tolist(), np.searchsorted(major, np.arange((columns if csc else len(index)) + 1)).tolist(), "indptr")
    assert np.array_equal(batch["data"], np.array([e[3] for e in want], "f4")), "data"
    if "field" in batch.files:
        equal((batch["field"].dtype, batch["field"].tolist()), (np.dtype("u4"), [e[2] for e in want]), "field")
    assert np.array_equal(batch["label"], np.array([rows[k][0] for k in index], "f4"), equal_nan=True), "label"
    if "weight" in batch.files:
        assert np.array_equal(batch["weight"], np.array([rows[k][1] for k in index], "f4")), "weight"
    return index


def check(dataset, data, base=0, batch=7, form="libfm"):
    rows = rows_of(data, base, form == "libsvm")
    about = json.loads(text(path(dataset, "dataset.json")))
    columns = 1 + max((i for row in rows for _, i, _ in row[2]), default=-1)
    equal([about[n] for n in ("format", "samples", "num_row", "num_col", "num_nonzero")],
          [form, len(rows), len(rows), columns, sum(len(row[2]) for row in rows)], dataset)
    for plan in ("", ",seed=3/epoch=1"):
        for way in ("npz", "csc"):
            seen = []
            for b in range(-(-len(rows) // batch)):
                name = path(dataset, f"batches/batch={batch}{plan}/{way}/{b:06d}.npz")
                with np.load(name) as found:
                    seen += check_batch(found, rows, columns, way == "csc")
                    equal("field" in found.files, form == "libfm", "field")
                scipy.sparse.load_npz(name).check_format()
            equal(sorted(seen), list(range(len(rows))), f"{dataset} {plan} {way}")
    lines = [line for line in data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n") if line.split("#")[0].strip()]
    equal(content(path(dataset, "batches/batch=all/svm/000000.svm")).decode(), "".join(line + "\n" for line in lines), "text")


chance = random.Random(5)
many = "".join(f"{chance.choice('01')} " + " ".join(f"{f}:{chance.randrange(300)}:{chance.random():.4f}" for f in range(
    chance.randrange(9))) + "\n" for _ in range(900)).encode()
GOOD = {
    "FM-5": b"# a comment 1:2:3\n1 0:1:2 # 3:4:5\n0 1:1:1\n",
    "FM-6 weights": b"1:0.5 0:1:2\n0:2 1:3:4\n",
    "FM-13": b"\xef\xbb\xbf1 0:1:2\t1 : 3 :4\r\n\r\n0 2:2:2".replace(b"\t1 : 3 :4", b"\t1:3:4"),
    "FM-15": b"1 0:1:2\n0\n1 3:2:1\n",
    "FM-16": b"1 2:5:1 0:1:2 3:5:4\n0 1:1:1\n",
    "numbers": b"-1.5e0 4294967295:70000:1e-3 0:0:nan\n".replace(b" 0:0:nan", b" 0:0:.5"),
    "many": many,
    "broken": b"1 0:1:2\n1 0:1:x\n0 2:1:1\n",
}
BAD = {  # FM-...: the second row, and what is said of it
    "FM-2": (b"1 0:1:2 1:3", "expected a colon and a value"),
    "FM-3": (b"1 7 0:1:2", "expected field:index:value with a field from 0 to 4294967295, got '7'"),
    "FM-4": (b"1 0:1:2:3", "expected white space after the value, got ':3'"),
    "FM-6": (b"1:2 0:1:2", "a label without a weight as in the first row"),
    "FM-7": (b"1 qid:3 0:1:2", "expected field:index:value with a field from 0 to 4294967295, got 'qid:3'"),
    "FM-11": (b"1 0:4294967296:1", "4294967295"),
    "FM-11 field": (b"1 4294967296:0:1", "expected field:index:value with a field from 0 to 4294967295"),
    "FM-12": (b"1 0.5:1.5:2", "expected field:index:value"),
    "FM-12 index": (b"1 0:1.5:2", "got '.5:2'"),
    "FM-14": (b"a 0:1:2", "expected a number as label"),
    "negative": (b"1 -1:2:3", "expected field:index:value"),
    "no index": (b"1 3: ", "expected an index from 0 to 4294967295, got the end of the line"),
    "two labels": (b"1,2 0:1:2", "expected white space after the label"),
}
for name, data in GOOD.items():
    write(f"good/{name}.ffm", data)
for name, (line, _) in BAD.items():
    write(f"bad/{name}.ffm", b"1 0:1:2\n" + line + b"\n0 1:1:1\n")
for i in range(3):
    write(f"parts/p{i}.txt", many[:many.index(b"\n", 3000 * i + 1234) + 1])
write("one/x.ffm", b"1 1:1:2 2:3:4\n0 1:2:1\n")
write("FM-9/x.ffm", b"1 1:1:2\n0 0:2:1\n1 1:0:3\n")
write("FM-8/x.txt", b"1 3:0.5 4:1\n0 1:2 3:4\n")
write("FM-1/x.txt", b"1 0:1 1:3\n0 2:4 1:1\n")

with mounted(os.path.join(SOURCE, "good")):
    for name, data in GOOD.items():
        if name != "broken":
            check(f"{name}.ffm", data)
with mounted(os.path.join(SOURCE, "good/broken.ffm"), "bad_rows=skip"):
    check("broken.ffm", b"1 0:1:2\n0 2:1:1\n")
with mounted(os.path.join(SOURCE, "bad")):
    for name in BAD:
        equal(content(path(f"{name}.ffm/samples/svm/000000.svm")), b"1 0:1:2\n", name)
for name, (_, says) in BAD.items():
    contains(run("info", "--check", os.path.join(SOURCE, f"bad/{name}.ffm"), code=2), f"{name}.ffm:2:", says)
for base, source in ((0, "asis"), (1, "1"), (1, "auto")):  # FM-10
    with mounted(os.path.join(SOURCE, "one/x.ffm"), f"index_base={source}"):
        check("x.ffm", b"1 1:1:2 2:3:4\n0 1:2:1\n", base)
with mounted(os.path.join(SOURCE, "FM-9/x.ffm"), "index_base=auto"):
    check("x.ffm", b"1 1:1:2\n0 0:2:1\n1 1:0:3\n")
contains(run("info", "--check", os.path.join(SOURCE, "FM-9/x.ffm"), "-o", "index_base=1", code=2), "x.ffm:2:", "x.ffm:3:",
         "expected a field and an index from 1 as index_base=1 says")
for name in ("FM-8", "FM-1"):  # libsvm text by the rule of two colons
    with mounted(os.path.join(SOURCE, name)):
        check("x.txt", content(SOURCE, f"{name}/x.txt"), form="libsvm")

with mounted(os.path.join(SOURCE, "FM-1"), "format=libfm"):
    check("x.txt", content(SOURCE, "FM-1/x.txt"))

# part=KofN: dmlc's rule of bytes, over all files
with mounted(os.path.join(SOURCE, "parts")):
    parts = [np.load(path("all/batches", f"batch=all,part={k}of5/npz/000000.npz"))["index"].tolist() for k in range(5)]
    equal(sum(parts, []), list(range(json.loads(text(path("all/dataset.json")))["samples"])), "parts")

# Side files belong to the file that they are named after, of either format
write("sides/a.ffm", GOOD["FM-15"])
write("sides/a.ffm.weight", b"0.5\n1\n2\n")
write("sides/b.svm", b"1 0:1\n0 1:2\n")
write("sides/b.svm.weight", b"3\n4\n")
with mounted(os.path.join(SOURCE, "sides")):
    equal(np.load(path("a.ffm/batches/batch=3/npz/000000.npz"))["weight"].tolist(), [0.5, 1, 2], "weights of LibFM")
    equal(np.load(path("b.svm/batches/batch=2/csc/000000.npz"))["weight"].tolist(), [3, 4], "weights of libsvm")

with Nginx(SOURCE) as server, mounted(f"{server.url}/good/many.ffm", f"cache={CACHE}"):
    check("many.ffm", many, batch=300)

# A matrix too large for memory is refused; npz has it
write("wide/x.ffm", b"1 0:4294967294:1\n")
with mounted(os.path.join(SOURCE, "wide")):
    equal(error_of(content, path("x.ffm/batches/batch=1/csc/000000.npz")), errno.EFBIG, "a wide matrix")
    equal(np.load(path("x.ffm/batches/batch=1/npz/000000.npz"))["indices"].tolist(), [4294967294], "npz of it")

if os.path.isdir(REAL):
    import xgboost

    name = f"{REAL}/criteo_small_train.ffm"
    theirs = xgboost.DMatrix(f"{name}?format=libfm")
    with mounted(REAL):
        check("criteo_small_train.ffm", content(name), batch=64)
        about = json.loads(text(path("criteo_small_train.ffm/dataset.json")))
        equal([about["num_row"], about["num_col"], about["num_nonzero"]],
              [theirs.num_row(), theirs.num_col(), theirs.num_nonmissing()], "XGBoost's counts")
