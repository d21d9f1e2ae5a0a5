#!/usr/bin/python3
"""CSV of numbers, against Python's csv and numpy: every cell of every row; and what is refused, with its place."""

import csv
import io
import json
import math
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

REAL = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "csv")


def number(cell, dtype):
    cell = cell.strip()
    with np.errstate(over="ignore"):
        return dtype(cell) if cell else dtype("nan")


def table(data, delimiter=",", dtype=np.float32):
    """The rows of the text as numbers, without a header, and the lines."""
    text_of = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    tabs = text_of.lstrip("\n").split("\n")[0].count("\t")
    lines = [line for line in text_of.split("\n") if line.strip() or (line and delimiter == "\t" and line.count("\t") == tabs)]
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter, skipinitialspace=True))
    names = None
    if all(not c.strip().lstrip("+-").replace(".", "", 1)[:1].isdigit() and c.strip().lower() not in ("nan", "inf", "-inf")
           for c in rows[0] if c.strip()):
        names, rows, lines = [c.strip() for c in rows[0]], rows[1:], lines[1:]
    return np.array([[number(c, dtype) for c in row] for row in rows], dtype), names, lines


def same(found, want, what):
    equal((found.dtype, found.shape), (want.dtype, want.shape), what)
    assert np.array_equal(found, want, equal_nan=True), f"{what}: {found} {want}"


def compare(dataset, data, delimiter=",", label=None, weight=None, dtype=np.float32):
    cells, names, lines = table(data, delimiter, dtype)
    about = json.loads(text(path(dataset, "dataset.json")))
    equal(about["samples"], len(cells), f"rows of {dataset}")
    keep = [i for i in range(cells.shape[1]) if i not in (label, weight)]
    if names:
        equal(about["columns"], [names[i] for i in keep], "names of columns")
    want = {"x": np.ascontiguousarray(cells[:, keep])}
    equal([about[n] for n in ("num_row", "num_col", "num_nonzero")],
          [len(cells), len(keep), int(np.count_nonzero(~np.isnan(want["x"])))], f"counts of {dataset}")
    for name, column in (("label", label), ("weight", weight)):
        if column is not None:
            want[name] = np.ascontiguousarray(cells[:, column])
    epoch, seen = path(dataset, "batches/batch=16,seed=5/epoch=0"), []
    for b in range(-(-len(cells) // 16)):
        batch = np.load(f"{epoch}/npz/{b:06d}.npz")
        index = batch["index"].tolist()
        seen += index
        equal(sorted(batch.files), sorted([*want, "index", "key"]), "members")
        for name, array in want.items():
            same(batch[name], array[index], f"{dataset}: {name} of batch {b}")
            same(np.load(f"{epoch}/npy/{b:06d}.{name}.npy"), array[index], f"{dataset}: npy of {name}")
        equal(content(f"{epoch}/csv/{b:06d}.csv").decode().split("\n")[:-1], [lines[k] for k in index], "the lines")
    equal(sorted(seen), list(range(len(cells))), f"each row of {dataset} once")
    equal(content(path(dataset, "samples/raw/000000.csv")).decode(), lines[0], "raw")


rng = np.random.default_rng(3)
wide = "\n".join(",".join(f"{v:.{d}f}" for v, d in zip(rng.normal(0, 1000, 40), rng.integers(0, 9, 40)))
                 for _ in range(300)) + "\n"
mixed = "\n".join(",".join(rng.choice(["1", "-2.5", "3e4", "", " 7 ", "+0.25", "nan", "-inf", "1E-7", "16777217", ".5", "5."], 6))
                  for _ in range(400)) + "\n"
holes = "\n".join(",".join(rng.choice(["", "1", "22", "333"], 41)) for _ in range(400)) + "\n"
good = {
    "holes": (("1" + ",1" * 40 + "\n" + holes).encode(), ","),
    "plain": (b"1,2\n\n\n3,4", ","),  # S-1
    "crlf": (b"\r\n1,2\r\n3,4\r\n", ","),
    "cr": (b"1,2\r3,4\r", ","),  # S-2
    "blank": (b"1,2\n \n3,4\n", ","),  # S-3
    "lastblank": (b"1, \n2,3\n", ","),  # S-4
    "missing": (b"1,,3\n4,5,\n,,\n", ","),  # S-5, S-6
    "header": (b"a,b,c\n1,2,3\n4,5,6\n", ","),  # S-8
    "words": (b"nan,inf,-Infinity\n1,2,3\n", ","),  # S-9
    "quotes": (b'"1","2"\n3,"4"\n', ","),  # S-10
    "quotednames": (b'"a, b",c\n1,2\n', ","),
    "large": (b"1e400,1e-46,16777217\n1,2,3\n", ","),  # S-13
    "semicolon": (b"1;2\n3;4\n", ";"),  # S-15
    "tabs": (b"1\t2\t3\n \n\t\n\t\t\n3\t4\t5\n", "\t"),  # the last line of tabs is a row, as ",," is
    "bom": (b"\xef\xbb\xbf1,2\n3,4\n", ","),  # S-18
    "longrow": (b"a,b\n1," + b" " * 20000 + b"2\n3,4\n", ","),
    "wide": (wide.encode(), ","),
    "mixed": (b"1,2,3,4,5,6\n" + mixed.encode(), ","),
}
for name, (data, _) in good.items():
    write(f"good/{name}.csv", data)
write("good/other.txt", good["wide"][0])  # by its content
write("label/named.csv", b"a,Label,weight,b\n1,0,0.5,2\n3,1,1.5,4\n")
write("label/numbers.csv", b"5,1,2\n6,3,4\n7,5,6\n")

with mounted(os.path.join(SOURCE, "good")):
    for name, (data, delimiter) in good.items():
        compare(f"{name}.csv", data, delimiter)
    compare("other.txt", good["wide"][0])
with mounted(os.path.join(SOURCE, "good"), "dtype=f8"):  # S-13
    for name, (data, delimiter) in good.items():
        compare(f"{name}.csv", data, delimiter, dtype=np.float64)
        same(np.load(path(f"{name}.csv/samples/npy/000000.x.npy")), table(data, delimiter, np.float64)[0][0], name)
with mounted(os.path.join(SOURCE, "label/named.csv"), "dtype=f8"):
    compare("named.csv", content(SOURCE, "label/named.csv"), label=1, weight=2, dtype=np.float64)
printed = run("info", "--check", os.path.join(SOURCE, "good/large.csv"), code=2)
contains(printed, "large.csv: line 1, column 0: expected a number that float32 holds, or csv_dtype=float64, got '1e400', which is "
                  "read as infinite, as are 0 more")
write("large/lines.csv", b"a,b\r\n1,2\r\n\r\n-1e39,inf\r\n3,1e40\r\n")
contains(run("info", "--check", os.path.join(SOURCE, "large"), code=2), "line 4, column 0: expected a number that float32 holds")
run("info", "--check", os.path.join(SOURCE, "large"), "-o", "dtype=f8")
run("info", "--check", os.path.join(SOURCE, "good/words.csv"))
# The only dataset has a fault after what is looked into first.
late = os.path.join(PRIVATE, "late-fault")
os.mkdir(late)
with open(f"{late}/x.csv", "w", encoding="ascii") as f:
    f.write("x,y,label\n" + "0.5,1.5,1\n" * 100000 + "1,2\n")
contains(run("info", late, code=2), "line 100002: expected 3 columns")
contains(run("mount", os.path.join(SOURCE, "large"), MOUNTPOINT, "-o", "dtype=f16", code=1), "dtype=f16: expected float32 or float64")
with mounted(os.path.join(SOURCE, "label/named.csv")):
    compare("named.csv", content(SOURCE, "label/named.csv"), label=1, weight=2)
with mounted(os.path.join(SOURCE, "label/numbers.csv"), "label_column=0"):
    compare("numbers.csv", content(SOURCE, "label/numbers.csv"), label=0)
with mounted(os.path.join(SOURCE, "label/numbers.csv"), "label_column=2", "weight_column=0"):
    compare("numbers.csv", content(SOURCE, "label/numbers.csv"), label=2, weight=0)
with mounted(os.path.join(SOURCE, "label/named.csv"), "label_column=b"):
    compare("named.csv", content(SOURCE, "label/named.csv"), label=3, weight=2)
write("tab.tsv", b"1\t2\n3\t\n")
with mounted(os.path.join(SOURCE, "tab.tsv"), "delimiter=tab"):
    compare("tab.tsv", b"1\t2\n3\t\n", "\t")
write("hash.csv", b"# made by hand\n1|2\n# more\n3|4\n")  # S-11
with mounted(os.path.join(SOURCE, "hash.csv"), "comment=#", "delimiter=|"):
    compare("hash.csv", b"1|2\n3|4\n", "|")

write("one/column.csv", b"5\n7\n\n-1.5\n")  # S-14
with mounted(os.path.join(SOURCE, "one")):
    compare("column.csv", b"5\n7\n-1.5\n")
write("labels/y.txt", b"5\n7\n\n-1.5\n")
with mounted(os.path.join(SOURCE, "labels")):
    equal(json.loads(text(path("y.txt/dataset.json")))["format"], "libsvm", "labels alone")
with mounted(os.path.join(SOURCE, "labels"), "format=csv"):
    compare("y.txt", b"5\n7\n-1.5\n")
contains(run("mount", os.path.join(SOURCE, "one"), MOUNTPOINT, "-o", "format=cvs", code=2), "option format=cvs: expected idx, npy, npz,")
for name in ("files", "CSV"):  # one reads no single files
    contains(run("mount", os.path.join(SOURCE, "one"), MOUNTPOINT, "-o", f"format={name}", code=2), "format=")
for folder in ("a", "b"):  # a folder of pictures, which no file alone is
    write(f"pictures/{folder}/1.jpg", b"\xff\xd8\xff\xe0")
for option in ("format=csv", "csv_header=yes", "csv_comment=#", "csv_delimiter=;", "csv_dtype=float64", "label_column=0"):
    contains(run("info", os.path.join(SOURCE, "pictures"), "-o", option, code=2),
             f"option {option.split('=')[0]}=: expected a source of CSV of numbers")
rows = b"".join(b"%d,%d\n" % (i, i % 7) for i in range(1000))
write("count/rows.csv", rows + b"1000,1")  # S-21
with mounted(os.path.join(SOURCE, "count")):
    equal(json.loads(text(path("rows.csv/dataset.json")))["samples"], 1001, "rows, the last without an end")

if os.path.isdir(REAL):
    with mounted(REAL):
        for name, delimiter in (("higgs-test-head500.csv", ","), ("rank.train.csv", ","), ("titanic_train.tsv", "\t"),
                                ("veterans_lung_cancer.csv", ","), ("mindspore/1.csv", ",")):
            compare(name, content(REAL, name), delimiter)

# ---- what is refused ----

bad = {
    "ragged": (b"1,2,3\n4,5\n6,7,8\n", "line 2: expected 3 columns, as in the first line, got 2"),  # S-7
    "firstmixed": (b"a,2,b\n1,2,3\n", "line 1: expected numbers, or names and no numbers, got 1 numbers and 2 names"),  # S-8
    "infancy": (b"1,2\ninfancy,1\n", "line 2, column 0: expected a number, got 'infancy'"),  # S-9
    "quoteinside": (b'1,2\n3,4"5\n', "line 2, column 1: expected a number, got '4\"5'"),  # S-10
    "quoteopen": (b'1,2\n"3,4\n', "line 2, column 0: expected a number"),
    "tail": (b"1,2\n1abc,2\n", "line 2, column 0: expected a number, got '1abc'"),  # S-12
    "two": (b"1,2\n\n2 3,4\n", "line 3, column 0: expected a number, got '2 3'"),
    "hex": (b"1,2\n0x10,4\n", "got '0x10'"),
    "under": (b"1,2\n1_0,4\n", "got '1_0'"),
    "decimalcomma": (b"1,2;3,4\n1,5;2\n", "expected"),
    "nul": (b"1,2\n3,\x004\n", "line 2, column 1: expected a number, got byte 00"),  # S-19
    "utf8": (b"1,2\n3,\xe4\n", "line 2, column 1: expected a number, got byte e4"),
    "minus": (b"1,2\n-,4\n", "line 2, column 0: expected a number, got '-'. Leave missing numbers empty; write text"),
    "dots": (b"1,2\n1.2.3,4\n", "got '1.2.3'"),
    "point": (b"1,2\n.,4\n", "got '.'"),
    "signs": (b"1,2\n1-2,4\n", "got '1-2'"),
    "emptylabel": (b"label,b\n1,2\n,4\n", "line 3, column 0: expected a number as the label, got ''"),  # S-17
    "emptyweight": (b"weight,b\n1,2\n,4\n", "expected a number as the weight, got ''"),
    "crlf": (b"a,b\r\n" + b"1,2\r\n" * 300000 + b"3,x\r\n", "line 300002, column 1: expected a number, got 'x'"),
    "cr": (b"a,b\r" + b"1,22\r" * 300000 + b"3,x\r", "line 300002, column 1: expected a number, got 'x'"),
    "crcrlf": (b"a,b\r\r\n1,2\r\n\r\n3,x\r\n", "line 5, column 1: expected a number, got 'x'"),
    "headerlater": (b"\n\r\n\na,b\n1,2\n3,x\n", "line 6, column 1: expected a number, got 'x'"),
    "firstlater": (b"\n\na,2,b\n1,2,3\n", "line 3: expected numbers, or names and no numbers, got 1 numbers"),
    "longline": (b"1,2\n" + b" " * (16 << 20) + b" 3,4\n5,6\n", "line 2: expected at most 16777216 bytes"),  # S-20
    "longrow": (b"a,b\n1," + b" " * (16 << 20) + b"2\n", "line 2: expected at most 16777216 bytes"),
}
for name, (data, _) in bad.items():
    write(f"bad/{name}.csv", data)
write("bad/good.csv", b"1,2\n3,4\n")
with mounted(os.path.join(SOURCE, "bad")):
    compare("good.csv", b"1,2\n3,4\n")
for name, (_, says) in bad.items():
    printed = subprocess.run([EPOCHFS, "info", os.path.join(SOURCE, "bad", f"{name}.csv")], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT).stdout.decode(errors="replace")
    contains(printed, says, f"{name}.csv")
for option, says in (("label_column=3", "expected a column from 0 to 2"),  # S-16
                     ("label_column=who", "expected a column from 0 to 2"), ("delimiter=1", "expected a character"),
                     ("comment=-", "expected a character")):
    printed = subprocess.run([EPOCHFS, "info", os.path.join(SOURCE, "label/numbers.csv"), "-o", option], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT).stdout.decode(errors="replace")
    contains(printed, says)

# part=KofN: dmlc's rule (S-22)
lines = [f"{i},{i * i}" for i in range(300)]
data = ("\n".join(lines) + "\n").encode()
write("parts/x.csv", data)
begins = np.cumsum([0, *[len(line) + 1 for line in lines]])[:-1]
with mounted(os.path.join(SOURCE, "parts")):
    for parts in (2, 3, 11):
        step, found = -(-len(data) // parts), []
        for k in range(parts):
            low, high = min(k * step, len(data)), min((k + 1) * step, len(data))
            want = [i for i in range(300) if (begins[i] > low or k == 0) and begins[i] <= high]
            got = np.load(path("x.csv/batches", f"batch=all,part={k}of{parts}", "npz/000000.npz"))
            equal(got["index"].tolist(), want, f"part {k} of {parts}")
            found += want
        equal(found, list(range(300)), "all parts")
