#!/usr/bin/python3
"""Which files are tables, and what their first line is: by name and by content, with tabs and blanks, names that are numbers,
columns that number the rows; tables that are no parts of one; numbers that are rounded."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

NAN = float("nan")


def info(name, *options, code=0):
    return run("info", os.path.join(SOURCE, name), *(word for o in options for word in ("-o", o)), code=code)


def put(cases, *options):
    """Files of a folder each, so that none joins another: {name: (text, x or None, words of notes)}."""
    for name, (data, want, words) in cases.items():
        write(f"{name}/{name}", data)
        printed = info(name, *options)
        contains(printed, "format   " + ("csv" if want is not None else "libsvm"), *words)
        if not words:
            equal("note " in printed, False, f"{name}: {printed}")
        if want is None:
            continue
        with mounted(os.path.join(SOURCE, name), *options):
            x = np.load(path(name, "batches/batch=all/npz/000000.npz"))["x"]
            assert np.array_equal(x, np.array(want, "f4"), equal_nan=True), f"{name}: {x}"


# Tables and libsvm text
put({
    "digits.tsv": (b"7\t0\t255\n1\t3\t4\n", [[7, 0, 255], [1, 3, 4]], ()),
    "tabs.csv": (b"7\t0\t255\n1\t3\t4\n", [[7, 0, 255], [1, 3, 4]], ()),
    "blanks.csv": (b"7 0 255\n1 3 4\n", [[7, 0, 255], [1, 3, 4]], ()),
    "u.data": (b"196\t242\t3\t881250949\n186\t302\t3\t891717742\n", [[196, 242, 3, 881250949], [186, 302, 3, 891717742]],
               ("1 column has whole numbers that float32 rounds. The first is '881250949', line 1, column 3. -o csv_dtype=float64",)),
    "X_train.txt": (b"  2.8e-001 -2.0e-002  -1.3e-1 \n  2.7e-001\t-1.6e-002   -1.2e-1\n", [[.28, -.02, -.13], [.27, -.016, -.12]], ()),
    "names.txt": (b"a b\n1 2\n", [[1, 2]], ()),
    "column.csv": (b"my name\n1\n2\n", [[1], [2]], ()),
    "one.tsv": (b"1\n2\n", [[1], [2]], ()),
    "same.txt": (b"1 0 3\n0 2 4\n", [[1, 0, 3], [0, 2, 4]], ()),
    "same.svm": (b"1 0 3\n0 2 4\n", None, ()),
    "ragged.txt": (b"1 0 3 5\n0 2 4\n", None, ()),
    "labels.txt": (b"1\n-1\n", None, ()),
    "weights.txt": (b"1:2\n0:1\n", None, ()),
    "qid.txt": (b"1 qid:1 2:1\n0 qid:1\n", None, ()),
    "empty.txt": (b"1\n0 1:1\n2\n", None, ()),
})
put({"force.txt": (b"1 0 3\n0 2 4\n", None, ())}, "format=libsvm")
for name, data, says in (
        ("ratings.dat", b"1::1193::5::978300760\n1::661::3::978302109\n", "sed 's/::/,/g' FILE >FILE.csv"),
        ("iris.data", b"5.1,3.5,Iris-setosa\n4.9,3.0,Iris-setosa\n4.7,3.2,Iris-setosa\n", "CSV that is not of numbers")):
    write(f"refused/{name}", data)
    contains(info(f"refused/{name}", code=2), says)

# What the first line is
names = "is used as names of columns"
index = "is omitted from x: it numbers the rows"
put({
    "range.csv": (b"0,1,2\n1.5,2,3\n", [[1.5, 2, 3]], (names, "'0', '1', '2'", "-o csv_header=no")),
    "range2.csv": (b"0,1\n0.5,2\n", [[.5, 2]], (names,)),
    "pairs.csv": (b"0,1\n0,2\n", [[0, 1], [0, 2]], ()),
    "pandas.csv": (b",0,1,2\n0,1.5,2,3\n1,2.5,3,4\n", [[1.5, 2, 3], [2.5, 3, 4]], (names, index)),
    "shuffled.csv": (b",a,b\n7,1.5,2\n3,2.5,3\n", [[1.5, 2], [2.5, 3]], ("column 0 (without a name) " + index,)),
    "twice.csv": (b"Unnamed: 0.1,Unnamed: 0,a\n0,0,5\n1,1,6\n", [[5], [6]], ("column 0 (Unnamed: 0.1)", "column 1 (Unnamed: 0)")),
    "label.csv": (b",a\n1,0.5\n1,0.25\n0,0.5\n", [[1, .5], [1, .25], [0, .5]], ("column 0 (without a name) is a part of x: its numbers repeat",)),
    "time.csv": (b",a\n0.1,5\n0.2,6\n", [[.1, 5], [.2, 6]], ()),
    "years.csv": (b"2019,2020\n1.5,2.5\n", [[1.5, 2.5]], (names,)),
    "dates.csv": (b"2019,2020\n2020,2021\n", [[2019, 2020], [2020, 2021]], ()),
    "quoted.csv": (b'"10","20"\n3,4\n', [[3, 4]], (names,)),
    "allquoted.csv": (b'"10","20"\n"3","4"\n', [[10, 20], [3, 4]], ()),
    "r.csv": (b'"","V1","V2"\n"1",0.5,2\n"2",1.5,3\n', [[.5, 2], [1.5, 3]], (index,)),
    "mnist.csv": (b"label,0,1,2\n7,1,2,3\n", [[1, 2, 3]], (names,)),
    "lacking.csv": (b",5.1,3.5\n4.9,3.0,1.4\n", [[NAN, 5.1, 3.5], [4.9, 3, 1.4]], ()),
    "missing.csv": (b",1,2\n,3,4\n", [[NAN, 1, 2], [NAN, 3, 4]], ()),
    "count.csv": (b"1,2,3,4\n1.5,2,3,4\n", [[1, 2, 3, 4], [1.5, 2, 3, 4]], ("is used as a row", "-o csv_header=yes")),
    "both.csv": (b"Label,a,label\n1,2,0\n3,4,5\n", [[1, 2], [3, 4]], ("columns 0 and 2 are named label: the label is column 2",)),
    "same.csv": (b"y,y,a\n1,2,0\n", [[2, 0]], ("columns 0 and 1 are named y: the label is column 0",)),
    "lone.csv": (b"0,1,2\n", [[0, 1, 2]], ()),
})
put({"range.csv": (b"0,1,2\n1.5,2,3\n", [[0, 1, 2], [1.5, 2, 3]], ()),
     "pandas.csv": (b",0,1\n0,1.5,2\n", [[NAN, 0, 1], [0, 1.5, 2]], ())}, "header=no")
put({"mixed.csv": (b"a,2,b\n1,2,3\n", [[1, 2, 3]], ()), "two.csv": (b"1,2\n3,4\n", [[3, 4]], ())}, "header=yes")
put({"pandas.csv": (b",a,b\n0,1,2\n1,2,3\n", [[1, 2], [2, 3]], ())}, "label_column=0")  # a label is no number of a row
contains(run("info", os.path.join(SOURCE, "two.csv"), "-o", "header=maybe", code=1), "header=maybe")
with mounted(os.path.join(SOURCE, "pandas.csv"), "label_column=a"):
    about = json.loads(text(path("pandas.csv/dataset.json")))
    equal((about["columns"], about["num_col"]), (["b"], 1), "columns without label and number of the row")
    batch = np.load(path("pandas.csv/batches/batch=all/npz/000000.npz"))
    equal((batch["x"].tolist(), batch["label"].tolist()), ([[2], [3]], [1, 2]), "label behind a number of a row")
    equal(np.load(path("pandas.csv/samples/npy/000001.label.npy")).tolist(), 2, "alone")

# One table, or not
apart = "The files of this folder are not one table"
for name, other, words in (
        ("order", b"income,age,label\n1,2,0\n", ("expected age,income,label, got income,age,label", apart)),
        ("case", b"Age,income,label\n1,2,0\n", ("got Age,income,label", apart)),
        ("set", b"age,wage,label\n1,2,0\n", ("got age,wage,label", apart)),
        ("quotes", b'\xef\xbb\xbf"age", income ,"label"\r\n1,2,0\r\n', ()),
        ("numbered", b",income,label\n0,2,0\n", ("expected age,income,label, got ,income,label", apart)),
        ("headerless", b"1,2,0\n", ("has its label or weight in another column", "-o label_column="))):
    write(f"join-{name}/a.csv", b"age,income,label\n5,6,1\n")
    write(f"join-{name}/b.csv", other)
    printed = info(f"join-{name}")
    contains(printed, *words)
    equal("\nall\n" in "\n" + printed, not words, f"{name}: {printed}")
write("split/a.csv", b"a,b\n5,6\n")
write("split/b.csv", b"7,8\n")
contains(info("split"), "all\n", "b.csv: has no names of columns: they are used in the order of a.csv")
write("later/a.csv", b"5,6\n")
write("later/b.csv", b"a,b\n7,8\n")
contains(info("later"), "b.csv: its columns are not those of a.csv in the same order: expected no names, got a,b")

# Whether line 1 has names is decided for all parts of a set
for name, parts, want, words in (
        ("same", ("0,1\n0.5,1.5\n", "0,1\n5,3\n", "0,1\n"), [[.5, 1.5], [5, 3]], ("part-1.csv: line 1 is used as names", "part-2.csv: line 1")),
        ("quoted", ('"1","2"\n5,6\n', '"1","2"\n"5","6"\n'), [[5, 6], [5, 6]], ("part-1.csv: line 1 is used as names",)),
        ("mixed", ('"a","1"\n5,6\n', '"a","1"\n"7","8"\n'), [[5, 6], [7, 8]], ()),
        ("rows", ("5,6,7\n8,9,9\n", "0,1,2\n3,4,5\n", "5,6,7\n"), [[5, 6, 7], [8, 9, 9], [0, 1, 2], [3, 4, 5], [5, 6, 7]],
         ("part-1.csv: line 1 is used as a row, as in other parts of the set",)),
        ("first", ("0,1,2\n3,4,5\n", "5,6,7\n8,9,9\n"), [[0, 1, 2], [3, 4, 5], [5, 6, 7], [8, 9, 9]],
         ("part-0.csv: line 1 is used as a row, as in other parts of the set",)),
        ("years", ("1999,2005\n2001,1990\n", "2019,2020\n3,4\n"), [[1999, 2005], [2001, 1990], [2019, 2020], [3, 4]],
         ("part-1.csv: line 1 is used as a row",)),
        ("cut", ("0,1,2\n.5,4,5\n", "5,6,7.5\n"), [[.5, 4, 5], [5, 6, 7.5]], ("part-0.csv: line 1 is used as names", "part-1.csv: has no names"))):
    for i, data in enumerate(parts):
        write(f"parts-{name}/part-{i}.csv", data.encode())
    contains(info(f"parts-{name}"), *words)
    with mounted(os.path.join(SOURCE, f"parts-{name}")):
        equal(np.load(path("all/batches/batch=all/npz/000000.npz"))["x"].tolist(), want, name)
write("pair/train.csv", b"0,1\n0.5,1.5\n")
write("pair/test.csv", b"0,1\n5,3\n")
contains(info("pair"), "test.csv: line 1 is used as names")

# numpy.savetxt(header=) writes "# " before names
put({"savetxt.csv": (b"# label,a,b\n1.0,2.0,3.0\n", [[2, 3]], ("label",)),
     "close.csv": (b"#a,label\n1.0,2.0\n", [[1]], ("label",)),
     "blanks.txt": (b"# label a b\n1.0 2.0 3.0\n0.0 2.5 3.0\n", [[2, 3], [2.5, 3]], ("label",)),
     "count.csv": (b"# 0,1,2\n1.5,2.0,3.0\n", [[1.5, 2, 3]], (names, "'0', '1', '2'"))})
put({"comment.csv": (b"# made by\n# hand\n1,2\n", [[1, 2]], ())}, "comment=#")
for name, data, says in (("rows", b"# 5,6\n1,2\n", "after '#', got"), ("words", b"# made by hand\n1,2\n", "after '#', got"),
                         ("title", b"# a title\n# label,a\n1,2\n", "lines that begin with # are comments")):
    write(f"marked-{name}/a.csv", data)
    contains(info(f"marked-{name}", code=2), says, "-o csv_comment='#'")

# Numbers that are rounded
large = b"id,time,v\n16777216,1700000000,0.5\n16777217,1700000001.25,0.5488135039273248\n9007199254740993,1,123456789.5\n"
write("large/large.csv", large)
for _ in range(2):  # the second time from the kept index
    with mounted(os.path.join(SOURCE, "large"), f"cache={CACHE}"):
        content(path("large.csv/dataset.json"))
        contains(log_text(), "large.csv: 1 column has whole numbers that float32 rounds. The first is '16777217', line 3, column 0. "
                             "-o csv_dtype=float64 shows float64",
                 "large.csv: 2 columns have numbers of many digits that float32 rounds. The first is '1700000001.25', line 3, column 1.")
printed = info("large", "dtype=f8")
contains(printed, "large.csv: 1 column has whole numbers that float64 rounds. The first is '9007199254740993', line 4, column 0. "
                  "The lines in csv/ have all digits")
equal(printed.count("note"), 1, printed)
with mounted(os.path.join(SOURCE, "large"), "dtype=f8"):
    x = np.load(path("large.csv/batches/batch=all/npz/000000.npz"))["x"]
    equal(x[:, :2].tolist(), [[16777216, 1700000000], [16777217, 1700000001.25], [9007199254740992, 1]], "float64")
exact = b"a,b\n33554432,0.869293212890625000\n-16777218,1e10\n20000000.000,0.1234567\n00000000012,3.4e38\n"
write("exact/exact.csv", exact)
equal("note" in info("exact"), False, "numbers that float32 holds, or that have few digits")
