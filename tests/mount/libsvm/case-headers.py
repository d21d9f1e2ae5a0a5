#!/usr/bin/python3
# needs: python3-scipy
"""Files of the Extreme Classification Repository: the line of counts before the rows is no row; counts that are not those of the
file; what only looks like such a line."""

import json
import os
import sys

import numpy as np
import scipy.sparse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

HEADER = "is used as the header of a file with"
ROWS = b"446,521 0:0.08 3:0.13\n 2:1\n1 3:1\n"
CASES = {  # data: rows, features, words of info
    "train.txt": (b"3 5000 3993\n" + ROWS, 3, 5000, ("line 1 " + HEADER + " 3 rows and 5000 features, not as a row\n",)),
    "bom.txt": (b"\xef\xbb\xbf# made by hand\r\n\r\n3 5000 3993\r\n" + ROWS, 3, 5000, ("line 3 " + HEADER,)),
    "cut.txt": (b"9 5000 3993\n" + ROWS, 3, 5000, (HEADER + " 9 rows", "The file has others: is it complete?")),
    "wider.txt": (b"3 2 3993\n" + ROWS, 3, 4, (HEADER, "The file has others")),
    "two.txt": (b"3 5000\n" + ROWS, 3, 5000, (HEADER,)),
    "late.txt": (b"3 50 3\n1\n2\n1 3:1\n", 3, 50, (HEADER,)),
    "values.txt": (b"1 2\n3\n4\n", 3, 3, ()),  # rows without values
    "label.txt": (b"3\n1 0:1\n", 2, 1, ()),
}
for name, (data, rows, features, words) in CASES.items():
    write(f"{name}/{name}", data)
    printed = run("info", "--check", os.path.join(SOURCE, name))
    contains(printed, *words)
    equal(HEADER in printed, bool(words), name)
    with mounted(os.path.join(SOURCE, name), f"cache={CACHE}"):
        x = scipy.sparse.load_npz(path(name, "batches/batch=all/npz/000000.npz"))
        equal(x.shape, (rows, features), name)
        about = json.loads(text(path(name, "dataset.json")))
        equal((about["samples"], about["features"]), (rows, features), name)
        if ROWS in data:
            label = np.load(path(name, "batches/batch=all/npz/000000.npz"))["label"]
            assert np.array_equal(label, np.array([[446, 521], [np.nan] * 2, [1, np.nan]], "f4"), equal_nan=True), label
            equal(x.toarray()[:, :4].tolist(), np.array([[.08, 0, 0, .13], [0, 0, 1, 0], [0, 0, 0, 1]], "f4").tolist(), name)

# Parts of all bytes have each row once, and train and test are one dataset of the same width.
write("both/test.txt", b"1 5000 3993\n7 1:1\n")
write("both/train.txt", b"3 5000 3993\n" + ROWS)
with mounted(os.path.join(SOURCE, "both")):
    equal(json.loads(text(path("all/dataset.json")))["features"], 5000, "features of both")
    rows = b"".join(content(path(f"train.txt/batches/batch=all,part={k}of4/svm/000000.svm")) for k in range(4)
                    if os.path.exists(path(f"train.txt/batches/batch=all,part={k}of4/svm/000000.svm")))
    equal(rows, ROWS, "rows of all parts")

# Not the first row, or not only counts: an error with its line
for name, data, place in (("middle.txt", b"1 0:1\n2\n1 2 3\n3 1:1\n", "middle.txt:3:3: expected index:value, as in other rows"),
                          ("many.txt", b"1 2 3 4\n1 0:1\n2 0:1\n", "many.txt:1:3: expected index:value, as in other rows"),
                          ("after.txt", b"3 5000 3\n1 0:1\n1 x:1\n", "after.txt:3:3: expected index:value")):
    write(f"{name}/{name}", data)
    contains(run("info", "--check", os.path.join(SOURCE, name), code=2), place)
write("matrix.txt", b"2 5\n0:1.5 3:2\n1:1 4:1\n")
contains(run("info", os.path.join(SOURCE, "matrix.txt"), code=2),
         "line 1 has the counts of a matrix, and its rows have no labels. Give each row one: sed '1d; s/^/0 /' matrix.txt >train.svm")

# Numbers that float32 does not hold: a note names the first of each kind, also from the kept index
WHOLE = "has whole numbers that float32 rounds. The first is"
for name, files, words in (
        ("labels.txt", {"": b"3\n16777217\n16777219\n"}, ("labels.txt: " + WHOLE + " '16777217', byte 2. The rows in svm/ have all digits",)),
        ("lists.svm", {"": b"1,16777217 3:1\n"}, (WHOLE + " '16777217', byte 2",)),
        ("weights.svm", {"": b"1:16777217 1:.5\n0:3 2:1\n"}, (WHOLE + " '16777217', byte 2",)),
        ("values.svm", {"": b"1 1:0.5\n0 2 : 123456789\n"}, (WHOLE + " '123456789', byte 14",)),
        ("digits.svm", {"": b"1 1:0.12345678901\n"}, ("has numbers of many digits that float32 rounds. The first is '0.12345678901'",)),
        ("far.svm", {"": b"1 1:1e400 2:-1e-50\n"}, ("too large for float32: they are infinite. The first is '1e400', byte 4",
                                                   "too small for float32: they are 0. The first is '-1e-50', byte 12")),
        ("zeros.svm", {"": b"1 1:1.2345678901\n1 1:0." + 49 * b"0" + b"1\n"}, ("many digits that float32 rounds", "too small for float32: they are 0")),
        ("exponents.svm", {"": b"1 1:0.12345678901\n1 1:1.5e-5\n1 1:2e39 2:3e-46\n"}, ("many digits", "The first is '2e39'", "The first is '3e-46'")),
        ("sides.svm", {"": b"1 1:1\n0 2:1\n", ".weight": b"1\n16777217\n", ".base_margin": b"1e400\n2\n"},
         ("sides.svm.weight: " + WHOLE + " '16777217', byte 2\n", "sides.svm.base_margin: has numbers that are too large")),
        ("fields.ffm", {"": b"16777217 16777219:16777221:2\n0 0:3:16777223\n"}, (WHOLE + " '16777217', byte 0",)),
        ("field.ffm", {"": b"1 16777219:16777221:2\n0 0:3:16777223\n"}, (WHOLE + " '16777223'",)),
        ("indexes.svm", {"": b"1 qid:16777217 2:inf 16777217:1 123456789:2.5\n33554432 qid:16777219 3:nan 5:0e-999\n"}, ()),
        ("indexes.ffm", {"": b"1 16777217:16777219:1\n0 0:123456789:1.5\n"}, ()),
        ("bare.txt", {"": b"1 16777217 123456789\n0 3\n"}, ()),
        ("missing.svm", {"": b" 16777217:3\n1 3:0.12345678\n"}, ())):
    for suffix, data in files.items():
        write(f"rounded-{name}/{name}{suffix}", data)
    for _ in range(2):
        printed = run("info", "-o", f"cache={CACHE}", os.path.join(SOURCE, f"rounded-{name}"))
        contains(printed, *words)
        equal(printed.count("note "), len(words), printed)
