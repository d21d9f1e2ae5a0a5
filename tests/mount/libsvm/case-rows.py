#!/usr/bin/python3
# needs: python3-scipy
"""Rows L-1 to L-46 of the table of libsvm's edge cases: each as text and as arrays, and the
reported place of bad rows. The table also checks the tests' own model of libsvm text."""

import gzip
import json
import os
import re
import subprocess

import numpy as np

import svm_model
from lib import (DEADLINE, EPOCHFS, MOUNTPOINT, SLOW, SOURCE, contains, equal, log_text, mounted,
                 path, text, write)

NAN, INF = float("nan"), float("inf")
BOM = b"\xef\xbb\xbf"


def r(label, features="", weight=None, qid=None):
    """A good row; label: a number, several, or NAN for none; features: "index:value ..."."""
    return label, [tuple(map(float, f.split(":"))) for f in features.split()], weight, qid


BAD = "bad"

# (number, name, content, its rows)
TABLE = [
    ("L-1", "plain", b"1 0:1.5 3:2\n0 1:1\n", [r(1, "0:1.5 3:2"), r(0, "1:1")]),
    ("L-1", "leading-zeros", b"01 007:01.50\n0 0:1\n", [r(1, "7:1.5"), r(0, "0:1")]),
    ("L-1", "from-1", b"1 1:1 2:2\n0 3:1\n", [r(1, "1:1 2:2"), r(0, "3:1")]),
    ("L-2", "no-final-newline", b"1 0:1.5\n0 1:1", [r(1, "0:1.5"), r(0, "1:1")]),
    ("L-2", "one-row", b"1 0:1.5", [r(1, "0:1.5")]),
    ("L-3", "crlf", b"1 0:1\r\n0 1:1\r\n", [r(1, "0:1"), r(0, "1:1")]),
    ("L-3", "crlf-bad", b"1 0:1\r\n\r\n0 1:x\r\n0 1:1", [r(1, "0:1"), BAD, r(0, "1:1")]),
    ("L-4", "cr", b"1 0:1\r0 1:1\r", [r(1, "0:1"), r(0, "1:1")]),
    ("L-4", "cr-bad", b"1 0:1\r\r\r0 1:x\r0 1:1\r", [r(1, "0:1"), BAD, r(0, "1:1")]),
    ("L-4", "mixed-ends", b"1 0:1\r\r\n0 1:1\n\r1 2:2\r\n0\n\n", [r(1, "0:1"), r(0, "1:1"),
                                                              r(1, "2:2"), r(0)]),
    ("L-5", "blank-lines", b"\n \n1 0:1\n\t \t\n\n0 1:1\n  \n", [r(1, "0:1"), r(0, "1:1")]),
    ("L-6", "bom", BOM + b"1 0:1\n0 1:1\n", [r(1, "0:1"), r(0, "1:1")]),
    ("L-6", "bom-comment", BOM + b"# 9:9\n0 1:1\n", [r(0, "1:1")]),
    ("L-6", "bom-later", b"1 0:1\n" + BOM + b"0 1:1\n1 2:1\n", [r(1, "0:1"), BAD, r(1, "2:1")]),
    ("L-7", "comment-first", b"# comment 9:9\n1 0:1\n", [r(1, "0:1")]),
    ("L-8", "comment-later", b"1 0:1\n# comment 9:9\n# foo 3\n#foo bar\n \t# 5 6:7\n#\n0 1:1\n",
     [r(1, "0:1"), r(0, "1:1")]),
    ("L-9", "comment-inline", b"1 0:1 # note 5:6\n1#c\n0 # only\n2 1:1#c\n3 1:1 #\n",
     [r(1, "0:1"), r(1), r(0), r(2, "1:1"), r(3, "1:1")]),
    ("L-9", "comment-at-label", b"1 0:1\n1#c 9:9\n2# 9:9 8:8\n0#c,1 9:9\n",
     [r(1, "0:1"), r(1), r(2), r(0)]),
    ("L-9", "comment-at-qid", b"1:2 qid:3 0:1\n1:2 qid:3#c 9:9\n1:2#c qid:4 9:9\n1:2 qid:3# 9:9\n",
     [r(1, "0:1", 2, 3), r(1, "", 2, 3), BAD, r(1, "", 2, 3)]),
    ("L-9", "comment-at-weight", b"1:2 0:1\n1:2#c 9:9\n3:4#,5 9:9\n",
     [r(1, "0:1", 2), r(1, "", 2), r(3, "", 4)]),
    ("L-10", "weight", b"1:0.5 0:1\n0:2 1:1\n-1:-1e1\n", [r(1, "0:1", .5), r(0, "1:1", 2),
                                                       r(-1, "", -10)]),
    ("L-11", "weight-missing", b"1:0.5 0:1\n1 0:2\n0:3 1:1\n", [r(1, "0:1", .5), BAD,
                                                            r(0, "1:1", 3)]),
    ("L-11", "weight-extra", b"1 0:1\n1:0.5 0:2\n0 1:1\n", [r(1, "0:1"), BAD, r(0, "1:1")]),
    ("L-11", "first-row-bad", b"1:0.5 1:x\n1 1:2\n0:3 2:1\n2 2:1\n",
     [BAD, r(1, "1:2"), BAD, r(2, "2:1")]),
    ("L-12", "blanks", b"1 : 0.5 0 : 1\n0 :2 1: 1\n1:\t3\v3\f:\t-4 \n",
     [r(1, "0:1", .5), r(0, "1:1", 2), r(1, "3:-4", 3)]),
    ("L-13", "no-values", b"1 0 3 5\n0 1\n", [r(1, "0:1 3:1 5:1"), r(0, "1:1")]),
    ("L-13", "some-rows-no-values", b"1 0 3 5 # c:d\n0 1:2\n1 0\n0\n",
     [BAD, r(0, "1:2"), BAD, r(0)]),
    ("L-13", "rows-without-values-later", b"1 0:1\n2\n1 2 3\n3 1:1\n", [r(1, "0:1"), r(2), BAD, r(3, "1:1")]),
    ("L-15", "label-only", b"1 0:1\n1\n0 \n", [r(1, "0:1"), r(1), r(0)]),
    ("L-15", "all-empty", b"1\n0\n2\n", [r(1), r(0), r(2)]),
    ("L-16", "qid", b"1 qid:7 0:1\n0\tqid:8\t1:1\n0  qid:8\n",
     [r(1, "0:1", None, 7), r(0, "1:1", None, 8), r(0, "", None, 8)]),
    ("L-16", "qid-blank", b"1 qid: 7 0:1\n0 qid:\t8\n", [r(1, "0:1", None, 7), r(0, "", None, 8)]),
    ("L-16", "weight-and-qid", b"1:2 qid:7 0:1\n0:3 qid:8 1:1\n",
     [r(1, "0:1", 2, 7), r(0, "1:1", 3, 8)]),
    ("L-17", "qid-missing", b"1 qid:7 0:1\n0 1:1\n0 qid:8 1:1\n",
     [r(1, "0:1", None, 7), BAD, r(0, "1:1", None, 8)]),
    ("L-17", "qid-extra", b"1 0:1\n0 qid:8 1:1\n0 1:1\n", [r(1, "0:1"), BAD, r(0, "1:1")]),
    ("L-18", "qid-anyhow", b"1 qid:7 0:1\n0 qid:3 1:1\n0 qid:7 1:1\n",
     [r(1, "0:1", None, 7), r(0, "1:1", None, 3), r(0, "1:1", None, 7)]),
    ("L-19", "qid-signed", b"1 qid:-3 0:1\n0 qid:9223372036854775807 1:1\n"
     b"0 qid:-9223372036854775808 1:1\n0 qid:0 1:1\n",
     [r(1, "0:1", None, -3), r(0, "1:1", None, 2 ** 63 - 1), r(0, "1:1", None, -2 ** 63),
      r(0, "1:1", None, 0)]),
    ("L-19", "qid-bad", b"1 qid:1 0:1\n" * 8 + b"0 qid:1.5 1:1\n0 qid:99999999999999999999 1:1\n"
     b"0 qid: 1:1\n0 qid:9223372036854775808 1:1\n0 qid:-9223372036854775809 1:1\n0 qid:x 1:1\n"
     b"0 qid:-- 1:1\n0 qid:2 1:1\n", [r(1, "0:1", None, 1)] * 8 + [BAD] * 7 +
     [r(0, "1:1", None, 2)]),
    ("L-20", "qid-twice", b"1 qid:1 0:1\n0 qid:1 qid:2 1:1\n0 qid:2 1:1\n",
     [r(1, "0:1", None, 1), BAD, r(0, "1:1", None, 2)]),
    ("L-21", "labels", b"1,2 0:1\n3 1:1\n 2:3.5\n4,5\n",
     [r((1, 2), "0:1"), r((3, NAN), "1:1"), r((NAN, NAN), "2:3.5"), r((4, 5))]),
    ("L-21", "labels-weight", b"1,-2.5,nan:0.5 0:1\n3:1 1:1\n",
     [r((1, -2.5, NAN), "0:1", .5), r((3, NAN, NAN), "1:1", 1)]),
    ("L-21", "no-label", b" 2:3.5\n1 0:1\n\t1:0.5 0:1\n 0:1\n  2 1:1\n",
     [r(NAN, "2:3.5"), r(1, "0:1"), r(NAN, "0:1 1:0.5"), r(NAN, "0:1"), r(2, "1:1")]),
    ("L-21", "blank-weight", b"1:0.5 0:1\n 2:3 1:1\n", [r(1, "0:1", .5), r(2, "1:1", 3)]),
    ("L-22", "nan-inf", b"1 0:nan 1:2 2:inf\n0 1:NaN 2:Infinity 3:INF\n",
     [r(1, "0:nan 1:2 2:inf"), r(0, "1:nan 2:inf 3:inf")]),
    ("L-23", "nan-inf-signed", b"1 0:-inf 1:+nan\n0 1:+Inf 2:-INFINITY 3:-nan\n",
     [r(1, "0:-inf 1:nan"), r(0, "1:inf 2:-inf 3:-nan")]),
    ("L-24", "label-nan-inf", b"nan 0:1\ninf 0:1\n-Infinity\n1 1:1\n",
     [r(NAN, "0:1"), r(INF, "0:1"), r(-INF), r(1, "1:1")]),
    ("L-24", "weight-nan-inf", b"1:nan 0:1\n0:-inf 0:1\n",
     [r(1, "0:1", NAN), r(0, "0:1", -INF)]),
    ("L-26", "forms", b"1e0 0:1e-3 1:1E+2 2:-.5 3:5. 4:+7\n-0 0:-0 1:.0e5 2:00.10\n",
     [r(1, "0:1e-3 1:100 2:-.5 3:5 4:7"), r(-0.0, "0:-0 1:0 2:.1")]),
    ("L-29", "range", b"1 0:1e40 1:1e-46 2:1e-40 3:3.5e38 4:1e38 5:-1e40 6:-1e-46\n1e40 0:1\n",
     [(1, [(0, INF), (1, 0.0), (2, 1e-40), (3, INF), (4, 1e38), (5, -INF), (6, -0.0)], None, None),
      r(INF, "0:1")]),
    ("L-29", "exponents", b"1 0:1e99999999999999999999 1:1e-99999999999999999999 "
     b"2:0e99999999999999999999 3:0.0000000001e10 4:10000000000e-10\n",
     [(1, [(0, INF), (1, 0.0), (2, 0.0), (3, 1.0), (4, 1.0)], None, None)]),
    ("L-29", "long-exponents", b"1 0:0." + b"0" * 200000 + b"1e150000 1:0." + b"0" * 150000 +
     b"1e100001 2:0." + b"0" * 150000 + b"1e150001 3:1" + b"0" * 150000 + b"e-150010\n",
     [r(1, "0:0 1:0 2:1 3:1e-10")]),
    ("L-30", "rounding", b"0.123456 0:0.123457 1:1.234567e-5\n3.141593 0:2.718282\n",
     [r(.123456, "0:.123457 1:1.234567e-5"), r(3.141593, "0:2.718282")]),
    ("L-31", "2-24", b"16777217 0:16777217.5\n16777219 0:16777216.9999999999\n",
     [r(16777216, "0:16777218"), r(16777220, "0:16777216")]),
    ("L-32", "digits", b"123456789012345678901234567890 0:0.1000000000000000000000000000001\n"
     b"1 0:1.00000005960464477539062500000000000001 1:1.000000059604644775390625\n",
     [r(123456789012345678901234567890., "0:.1"), r(1, "0:1.00000011920929 1:1")]),
    ("L-33", "unsorted", b"1 5:1 2:2\n0 9:9 0:8 4:7 3:6\n",
     [r(1, "2:2 5:1"), r(0, "0:8 3:6 4:7 9:9")]),
    ("L-34", "double", b"1 2:1 2:5\n0 3:1 2:16777216 3:2 2:1 2:-16777216\n",
     [r(1, "2:1 2:5"), r(0, "2:16777216 2:1 2:-16777216 3:1 3:2")]),
    ("L-35", "index-0", b"1 0:1\n0 0:2\n", [r(1, "0:1"), r(0, "0:2")]),
    ("L-37", "large-index", b"1 4294967295:7 0:1\n0 3:2\n1 4294967296:1\n1 18446744073709551617:1\n"
     b"1 99999999999999999999999:1\n0 4294967294:2\n",
     [r(1, "0:1 4294967295:7"), r(0, "3:2"), BAD, BAD, BAD, r(0, "4294967294:2")]),
    ("L-37", "2-31", b"1 2147483647:7 1:1\n0 3:2\n", [r(1, "1:1 2147483647:7"), r(0, "3:2")]),
    ("L-40", "colon-weight", b"1:2 1:1\n1 :5 1:2\n", [r(1, "1:1", 2), r(1, "1:2", 5)]),
    ("L-41", "vt-ff", b"1\v0:1\f3:2\n\f\v\n0 \v 1:1\v\f\n", [r(1, "0:1 3:2"), r(0, "1:1")]),
    ("L-43", "long", b"1 " + b" ".join(b"%d:%d.%0800d5" % (i, i, i) for i in range(13600)) +
     b"\n0\n", [r(1, " ".join(f"{i}:{i}" for i in range(13600))), r(0)]),
    ("L-44", "gzip.gz", gzip.compress(b"1 0:1.5\n0 1:x\n0 1:1\n"),
     [r(1, "0:1.5"), BAD, r(0, "1:1")]),
    ("L-46", "plus", b"+1 0:+1.5\n-1 1:1\n", [r(1, "0:1.5"), r(-1, "1:1")]),
]

# (number, a row that cannot be read); each is between good ones.
BAD_ROWS = [
    ("L-9", b"1 0:#5"), ("L-14", b"1 0 3:2"), ("L-14", b"1 0:2 3"),
    ("L-14", b"1 0 1 3:2 1"), ("L-20", b"1 0:1 qid:7"), ("L-20", b"1 sid:3 0:1"),
    ("L-20", b"1 cost:0.5 0:1"), ("L-20", b"qid:7 0:1"), ("L-21", b"1,,2 0:1"), ("L-21", b"1, 0:1"),
    ("L-21", b",1 0:1"), ("L-21", b"1,a 0:1"), ("L-22", b"1 0:na 1:2"), ("L-22", b"1 0:infin"),
    ("L-22", b"1 0:nan(1)"), ("L-22", b"1 nan:1"), ("L-24", b"abc 0:1"), ("L-24", b"nanx 0:1"),
    ("L-24", b"n 0:1"), ("L-25", b"e 0:1"), ("L-25", b"e"), ("L-26", b"1 0:."), ("L-26", b"1 0:-"),
    ("L-26", b"1 0:1e"), ("L-26", b"1 0:1e+"), ("L-26", b"1 0:--1"), ("L-26", b"1 0:1.2.3"),
    ("L-26", b"1 0:1e5.5"), ("L-26", b". 0:1"), ("L-26", b"1 0:+-1"), ("L-26", b"1 0:.e1"),
    ("L-27", b"0x10 0:1"), ("L-27", b"1 0:0x10"), ("L-27", b"1 0x1:1"), ("L-27", b"1 0:0x1p3"),
    ("L-28", b"1.5f 0:1"), ("L-28", b"1 0:1.5f"), ("L-28", b"1 0:1.5L 1:1"), ("L-36", b"1 -1:2"),
    ("L-36", b"1 0:1 -0:2"), ("L-38", b"1 1.5:2"), ("L-38", b"1 1e0:2"), ("L-38", b"1 1.:2"),
    ("L-39", b"1 0:"), ("L-39", b"1 0: 1:2"), ("L-39", b"1 0:1 1:"), ("L-39", b"1: 0:1"),
    ("L-39", b"1:"), ("L-40", b":5 1:2"), ("L-40", b"1 0:1 :5"), ("L-40", b"1 0:1:2"),
    ("L-40", b"1 0::1"), ("L-40", b"1 :"), ("L-41", b"1 0:1,2:3"), ("L-41", b"1 0:1;2:3"),
    ("L-41", b"1 0:1\xc2\xa02:3"), ("L-41", b"1 0:1\xa02:3"), ("L-41", b"1 0:1, 2:3"),
    ("L-42", b"1 0:1\x002:3"), ("L-42", b"1 0:1 \x00"), ("L-42", b"\x00"), ("L-42", b"1\x00 0:1"),
    ("L-42", b"1 0:\x001"), ("L-41", b"1 0:1 x 2:3"), ("L-41", b"1 0:1 \xd9\xa1:1"),
    ("L-41", b"1 \"0\":1"), ("L-19", b"1 qid 0:1"),
]
# These do not make a dataset at all.
EMPTY = {"l-45-newlines": b"\n\n\n", "l-45-crlf": b"\r\n\r\n",
         "l-45-comments": b"# 1 0:1\n\n  # 2\n", "l-45-blanks": b" \t\n", "l-45-nothing": b"",
         "l-45-bom": BOM}
LISTED = {"a.txt": b"1 1:1\n0 2:2", "b.txt": b"", "c.txt": BOM + b"1 0:1 4:5\r\n# c\r\n0 7:7\r",
          "d.txt": b"\n1 3\n"}


def name_of(number, name):
    return f"rows/l-{int(number[2:]):02d}-{name}"


def same_values(got, want):
    """Equal as float32, nan being nan."""
    got, want = np.array(got, np.float32), np.array(want, np.float32)
    return got.shape == want.shape and np.array_equal(got, want, equal_nan=True) and \
        (np.signbit(got) == np.signbit(want)).all()


def check_model(number, name, data, rows):
    """The table against the model: a difference shows before anything is mounted."""
    ds = svm_model.Dataset([(name, data)])
    equal(len(ds.rows), len(rows), f"{name}: rows of the model")
    for row, want in zip(ds.rows, rows):
        what = f"{name}:{row.line}"
        equal(bool(row.error), want == BAD, what)
        if want != BAD:
            labels = want[0] if isinstance(want[0], tuple) else (want[0],)
            have = row.labels + [NAN] * (ds.width - len(row.labels))
            equal(same_values(have, labels), True, f"{what}: {have}")
            equal(row.index, [i for i, _ in want[1]], what)
            equal(same_values(row.value, [v for _, v in want[1]]), True, f"{what}: {row.value}")
            for have, value in ((row.weight, want[2]), (row.qid, want[3])):
                equal(have is None, value is None, what)
                equal(value is None or same_values(have, value), True, f"{what}: {have}")
            equal(row.qid, want[3], what)


def sources():
    """name -> files of the dataset, written below the source, with the model's rows."""
    found = {}
    for number, name, data, rows in TABLE:
        name = name_of(number, name)
        write(name, data)
        data = gzip.decompress(data) if name.endswith(".gz") else data
        check_model(number, name, data, rows)
        found[name.removesuffix(".gz")] = [(os.path.basename(name), data)]
    for i, (number, row) in enumerate(BAD_ROWS):
        data = b"1 0:1.5 3:2\n# 7\n" + row + b"\n0 1:1\n"
        check_model(number, repr(row), data, [r(1, "0:1.5 3:2"), BAD, r(0, "1:1")])
        name = name_of(number, f"bad-{i:02d}")
        write(name, data)
        found[name] = [(os.path.basename(name), data)]
    for name, data in LISTED.items():
        write(f"listed/{name}", data)
        if data:
            found[f"listed/{name}"] = [(name, data)]
    found["listed/all"] = list(LISTED.items())
    for name, data in EMPTY.items():
        write(f"empty/{name}", data)
    return found


def check_dataset(name, ds):
    folder = path(name)
    page = json.loads(text(folder, "dataset.json"))
    equal(page.get("samples"), len(ds.rows), f"{name}: samples")
    names = {f["name"] for f in page["fields"]}
    equal(names & {"weight", "qid"}, set(ds.fields) - {"label"}, f"{name}: fields")
    for sample in range(len(ds.rows)):
        svm_model.check_sample(ds, folder, sample)
    svm_model.check_batch(ds, f"{folder}/batches/batch=all", 0, list(range(len(ds.rows))))
    if len(ds.rows) > 2:
        svm_model.check_batch(ds, f"{folder}/batches/batch=2", 1,
                              list(range(len(ds.rows)))[2:4])


def told(messages, row):
    """The columns that messages name for the row."""
    return {int(c) for c in re.findall(rf"{re.escape(row.file)}:{row.line}:(\d+)\b", messages)}


def check_told(messages, ds, what):
    for row in ds.rows:
        if row.error:
            columns = told(messages, row)
            equal(len(columns), 1, f"{what}: {row.file}:{row.line}: columns in the messages")
            equal(row.error[0] <= min(columns) <= row.error[1], True,
                  f"{what}: {row.file}:{row.line}: {row.text[:80]!r}: column {columns}")


def check_info(found):
    """info --check lists every row that is bad."""
    done = subprocess.run([EPOCHFS, "info", "--check", SOURCE], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
    messages = done.stdout.decode(errors="surrogateescape")
    for name, files in found.items():
        if name != "listed/all":
            check_told(messages, svm_model.Dataset(files), "info --check")


def check_mount(found, options, log, index_base="asis", skip=False):
    with mounted(SOURCE, *options, log=log):
        for name, files in found.items():
            check_dataset(name, svm_model.Dataset(files, index_base, skip))
        contains(text(path("rows/all/ERROR.txt")), "weight")
        for name in EMPTY:
            equal(os.path.exists(path("empty", name, "samples")), False, name)
        equal(os.path.exists(path("empty/all/samples")), False, "empty/all")
    messages = log_text(log)
    silent = []
    for name, files in found.items():
        ds = svm_model.Dataset(files, index_base, skip)
        if "log=debug" in options:
            check_told(messages, ds, name)
        elif any(row.error for row in ds.rows):
            if not any(told(messages, row) for row in ds.rows if row.error):
                silent.append(name)
    # The log has the first errors, except those beyond its rate limit.
    equal(not silent or re.search(r"\d+ messages omitted", messages) is not None, True,
          f"errors that are not in the log: {silent}")


def check_limit():
    """A row of 256 MiB is read, a longer one is not."""
    limit = 256 << 20
    rows = [b"1 0:1", b"2 0:2" + b" " * (limit - 20), b"3 0:3" + b" " * (limit + 20), b"4 0:4"]
    write("limit/long", b"\n".join(rows))
    del rows[1:3]
    with mounted(f"{SOURCE}/limit", log="log.limit"):
        labels = [np.load(path(f"long/samples/npy/{i:06d}.label.npy")) for i in (0, 1, 3)]
        equal([float(v) for v in labels], [1, 2, 4], "rows around the limit")
        try:
            np.load(path("long/samples/npy/000002.label.npy"))
        except OSError:
            contains(log_text("log.limit"), "long:3:")
        else:
            raise AssertionError("a row of more than 256 MiB was read")
        with open(path("long/samples/svm/000002.svm"), "rb") as f:
            equal(f.read(7), b"3 0:3  ", "the text of a row that is too long")
            equal(os.fstat(f.fileno()).st_size - (limit + 25) in (0, 1), True, "its size")


found = sources()
check_mount(found, ["log=debug"], "log")
check_mount(found, ["bad_rows=skip"], "log.skip", skip=True)
equal([line for line in log_text("log.skip").splitlines() if "read failed" in line], [], "skip")
few = re.compile("listed|plain|from-1|zero|bad|empty|large")
few = {name: files for name, files in found.items() if few.search(name)}
check_mount(few, ["index_base=1"], "log.1", index_base="1")
check_mount(few, ["index_base=auto"], "log.auto", index_base="auto")
check_mount(few, ["index_base=1", "bad_rows=skip"], "log.1.skip", index_base="1", skip=True)
check_info(found)
if not SLOW:
    check_limit()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
