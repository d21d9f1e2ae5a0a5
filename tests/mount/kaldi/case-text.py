#!/usr/bin/python3
# slow: archives of text, in each form
"""Rows K-20 to K-39 of the table of Kaldi's edge cases: text objects of each type, their values,
their errors, and what an error leaves of the archive. The table also holds the tests' own model of
the format."""

import json
import os
import shutil

import numpy as np

from kaldi_model import check_archive, letters, read_ark, same_value
from lib import MOUNTPOINT, SOURCE, contains, equal, log_text, mounted, path, run, text, write

NAN, INF = float("nan"), float("inf")
f4 = lambda *v: np.array(v, np.float32)
i4 = lambda *v: np.array(v, np.int32)
rows = lambda *r: np.array(r, np.float32)
NOTHING = np.zeros((0, 0), np.float32)

# type: (row of the table, text behind "key ", its value)
GOOD = {
    "matrix": [
        ("K-20", b" [ ]\n", NOTHING), ("K-20", b"[]\n", NOTHING), ("K-20", b"[\n]\n", NOTHING),
        ("K-22", b"[ 1 2]\n", rows([1, 2])), ("K-23", b"[ 1 2 ]\n", rows([1, 2])),
        ("K-23", b"[ 1e5 2E-3 ]\n", rows([1e5, 2e-3])),
        ("K-23", b" [\n  1 2 \n  3 4 ]\n", rows([1, 2], [3, 4])),
        ("K-23", b"[ 1 2 ; 3 4 ]\n", rows([1, 2], [3, 4])),
        ("K-25", b"[\n\n1\n\n \n2\n\n]\n", rows([1], [2])),
        ("K-25", b"[ ;; 1 ;; 2 ; ]\n", rows([1], [2])),
        ("K-26", b"[ -.5 2. 00012 ]\n", rows([-.5, 2, 12])),
        ("K-27", b"[ nan NaN inf Infinity INFINITY ]\n", rows([NAN, NAN, INF, INF, INF])),
        ("K-29", b"[ 1e-46 -1e-46 1e-40 3.4028235e38 ]\n", rows([0, -0.0, 1e-40, 3.4028235e38])),
        ("K-31", b"[ 1-2 ]\n", rows([1, -2])), ("K-31", b"[ 1.5-2e1-3 ]\n", rows([1.5, -20, -3])),
        ("K-32", b" [\r\n  1 2 \r\n  3 4 ]\r\n", rows([1, 2], [3, 4])),
        ("K-32", b"[\t1\v2\f3 ]\n", rows([1, 2, 3])),
        ("K-33", b"[ 1 ]", rows([1])),
        ("sparse", b"rows=3 dim=4 [ 1 2.5 3 -1 ] dim=4 [ ] dim=4 [ 0 .5 ] \n",
         rows([0, 2.5, 0, -1], [0] * 4, [.5, 0, 0, 0])),
        ("sparse", b"rows=0 \n", NOTHING),
        ("digits", b"[ 1.00000005960464477539062500000000000001 16777217.0 "
         b"0.1000000000000000000000000000001 ]\n", rows([1.00000011920929, 16777216, .1])),
        ("digits", b"[ 0." + b"0" * 3000 + b"1e3001 1" + b"0" * 3000 + b"e-3001\n" +
         b" " * 70000 + b"\n3.5 " + b"0" * 9000 + b"7 ]\n", rows([1, .1], [3.5, 7]))],
    "vector": [
        ("K-20", b" [ ]\n", f4()), ("K-20", b"[]\n", f4()), ("K-22", b"[ 1 2]\n", f4(1, 2)),
        ("K-23", b"[ 1e5 2E-3 ]\n", f4(1e5, 2e-3)), ("K-26", b"[ -.5 2. ]\n", f4(-.5, 2)),
        ("K-27", b"[ nan NaN inf Infinity ]\n", f4(NAN, NAN, INF, INF)),
        ("K-29", b"[ 1e-46 1e-40 ]\n", f4(0, 1e-40)), ("K-32", b"[ 1 2 ]\r\n", f4(1, 2)),
        ("K-32", b"[\t1\t2 ]\n", f4(1, 2)), ("K-33", b"[ 1 ]", f4(1)),
        ("sparse", b"dim=4 [ 1 2.5 3 -1 ] \n", f4(0, 2.5, 0, -1)),
        ("sparse", b" dim=2 [ ] \n", f4(0, 0))],
    "packed": [
        ("packed", b" [\n1 \n2 3 ]\n", f4(1, 2, 3)), ("packed", b"[ 1 2 3 ]\n", f4(1, 2, 3)),
        ("packed", b"[ ]\n", f4()), ("packed", b"[ -.5 ]\r\n", f4(-.5))],
    "int": [
        ("int", b"5 \n", 5), ("int", b" \t-7\n", -7), ("int", b"+5\n", 5), ("int", b"007\n", 7),
        ("int", b"2147483647\n", 2 ** 31 - 1), ("int", b"-2147483648 \n", -2 ** 31),
        ("K-32", b"5\r\n", 5)],
    "float": [
        ("K-26", b"+.5\n", .5), ("K-26", b".5 \n", .5), ("float", b"-0 \n", -0.0),
        ("float", b"16777217\n", 16777216), ("K-29", b"1e-46\n", 0), ("K-32", b"1.5\r\n", 1.5)],
    "double": [
        ("K-26", b"+.5\n", .5), ("double", b"3.1415926535897931 \n", 3.1415926535897931),
        ("K-29", b"1e40\n", 1e40), ("K-29", b"5e-324\n", 5e-324), ("K-29", b"1e-999\n", 0)],
    "bool": [("bool", b"T \n", True), ("bool", b"F\n", False), ("bool", b" T\r\n", True)],
    "int-vector": [
        ("K-36", b"1 2 3 2000000000 -5 \n", i4(1, 2, 3, 2000000000, -5)), ("empty", b"\n", i4()),
        ("empty", b"  \t\n", i4()), ("K-31", b"1-2+3\n", i4(1, -2, 3)),
        ("K-32", b"1 2\r\n", i4(1, 2)), ("blanks", b"1\t2\v3\f4\n", i4(1, 2, 3, 4))],
    "int-vectors": [
        ("lists", b"1 2 ; 3 ; ; \n", [i4(1, 2), i4(3), i4()]), ("lists", b"\n", []),
        ("lists", b";\n", [i4()]), ("lists", b"1;-2;\r\n", [i4(1), i4(-2)])],
    "int-pairs": [
        ("pairs", b"1 2 ; 3 4 \n", i4(1, 2, 3, 4).reshape(2, 2)),
        ("pairs", b"\n", i4().reshape(0, 2)), ("pairs", b"1 -2\n", i4(1, -2).reshape(1, 2)),
        ("pairs", b"1 2;3 4\r\n", i4(1, 2, 3, 4).reshape(2, 2))],
    "float-pairs": [
        ("pairs", b"1.5 2 ; 3.25 -4 \n", f4(1.5, 2, 3.25, -4).reshape(2, 2)),
        ("pairs", b" \n", f4().reshape(0, 2)), ("K-26", b"+.5 .5\n", f4(.5, .5).reshape(1, 2))],
    "posterior": [
        ("posterior", b"[ 1 0.5 2 0.5 ] [ ] [ 7 1 ] \n",
         [(i4(1, 2), f4(.5, .5)), (i4(), f4()), (i4(7), f4(1))]), ("posterior", b"\n", []),
        ("posterior", b"[ 1 0.5][ 2 +.5 ]\n", [(i4(1), f4(.5)), (i4(2), f4(.5))]),
        ("K-32", b"[ -1 1e-46 ]\r\n", [(i4(-1), f4(0))])],
    "gauss-posterior": [
        ("gauss", b"2 1 3  [ 0.25 0.75 ]\n0 \n", [[(3, f4(.25, .75))], []]),
        ("gauss", b"0 \n", []), ("gauss", b"1 2 3 [ 1 ] 4 [ ]\n\n", [[(3, f4(1)), (4, f4())]])],
    "token": [
        ("token", b"tok\n", b"tok"), ("token", b" \ttok \n", b"tok"), ("K-32", b"tok\r\n", b"tok"),
        ("token", b"[\n", b"["), ("token", b"\xc3\xa4\xff\n", b"\xc3\xa4\xff")],
    "tokens": [
        ("tokens", b"a b \n", b"a b"), ("tokens", b"\n", b""), ("tokens", b" a  b\t\n", b"a  b"),
        ("K-32", b"a b\r\n", b"a b"), ("tokens", b" \xff[ 1 ;\n", b"\xff[ 1 ;")],
}

# type: (row, text of an object that is an error). What follows it is " last" and a good object.
NUMBERS = [("K-26", b"+1"), ("K-26", b".5"), ("K-27", b"infx"), ("K-27", b"na"), ("K-28", b"-inf"),
           ("K-28", b"-nan"), ("K-29", b"1e40"), ("K-29", b"-1e40"), ("K-30", b"0x10"),
           ("K-30", b"1,2"), ("K-30", b"1x"), ("K-30", b"1e"), ("K-30", b"1e+"), ("K-30", b"1.2.3"),
           ("K-30", b"1e5.5"), ("K-30", b"-"), ("K-30", b"--1"), ("K-30", b"1\0"),
           ("K-30", b"\xd9\xa1"), ("K-30", b"1_0"), ("K-30", b"["), ("K-30", b"1[")]
BAD = {
    "matrix": [(k, b"[ 2 " + n + b" 3 ]\n") for k, n in NUMBERS] + [
        ("K-21", b"[1 2 ]\n"), ("K-24", b"[ 1 2\n3 ]\n"), ("K-24", b"[ 1 2 ; 3 4 5 ]\n"),
        ("K-27", b"[ inf]\n"), ("K-34", b"[ 1 2\n"), ("K-34", b"1 2 ]\n"), ("K-34", b"]\n"),
        ("K-21", b"[[ 1 ]\n"),
        ("sparse", b"rows=2 dim=3 [ 2 1 1 1 ] dim=3 [ ] \n"),
        ("sparse", b"rows=2 dim=3 [ 0 1 3 1 ] dim=3 [ ] \n"),
        ("sparse", b"rows=2 dim=3 [ -1 1 ] dim=3 [ ] \n"), ("sparse", b"rows=-1 \n"),
        ("sparse", b"rows=2 dim=3 [ 0 1 ] \n"), ("sparse", b"rows=x \n"), ("sparse", b"rows= \n"),
        ("sparse", b"rows=1 dim=3 [ 0 1\n"), ("sparse", b"rows=1 dim=3 [ 0 inf ] \n"),
        ("sparse", b"rows=2 dim=3 [ 0 1 ] dim=4 [ 3 1 ] \n"), ("sparse", b"rows=1 dim=-3 [ ] \n"),
        ("sparse", b"rows=99999999999 dim=3 [ ] \n"), ("sparse", b"rows=2 dim=0 [ ] dim=0 [ ] \n")],
    "vector": [(k, b"[ 2 " + n + b" 3 ]\n") for k, n in NUMBERS] + [
        ("K-21", b"[1 2 ]\n"), ("newline", b"[ 1\n2 ]\n"), ("newline", b"[\n1 2 ]\n"),
        ("newline", b"[ 1 2\r\n ]\n"), ("K-31", b"[ 1-2 ]\n"), ("K-27", b"[ inf]\n"),
        ("K-24", b"[ 1 ; 2 ]\n"), ("K-34", b"[ 1 2\n"), ("K-34", b"1 2 ]\n"),
        ("K-32", b"[ 1\v2 ]\n"),
        ("K-23", b"5\n"), ("sparse", b"dim=2 [ 1 1 0 1 ] \n"), ("sparse", b"dim=2 [ 2 1 ] \n"),
        ("sparse", b"dim=-1 [ ] \n"), ("sparse", b"dim=2 [ 1 ] \n"), ("sparse", b"dim= [ ] \n")],
    "packed": [(k, b"[ 2 " + n + b" 3 ]\n") for k, n in NUMBERS] + [
        ("packed", b"[ 1 2 ]\n"), ("packed", b"[]\n"), ("packed", b"[ 1 ; 2 3 ]\n"),
        ("packed", b"[ 1 2 3\n")],
    "int": [("K-37", b"5 6\n"), ("K-36", b"5.0\n"), ("K-36", b"2147483648\n"),
            ("K-36", b"-2147483649\n"), ("K-36", b"0x2\n"), ("int", b"\n"), ("int", b"x\n"),
            ("int", b"1e3\n"), ("int", b"[ 1 ]\n"), ("int", b"- 1\n"), ("int", b"T\n"),
            ("int", b"99999999999999999999\n")],
    "float": [("K-27", b"nan\n"), ("K-27", b"inf\n"), ("K-28", b"-inf\n"), ("K-29", b"1e40\n"),
              ("K-30", b"0x1\n"), ("K-37", b"1 2\n"), ("K-30", b"1x\n"), ("K-30", b"1e\n"),
              ("float", b" \n"), ("float", b"x\n")],
    "double": [("K-27", b"nan\n"), ("K-29", b"1e400\n"), ("K-37", b"1 2\n"), ("double", b"\n")],
    "bool": [("K-38", b"1\n"), ("K-38", b"true\n"), ("K-38", b"True\n"), ("K-38", b"t\n"),
             ("K-38", b"TF\n"), ("K-37", b"T F\n"), ("K-38", b"\n"), ("K-38", b"x\n")],
    "int-vector": [("K-36", b"1 2.5\n"), ("K-36", b"1 2147483648\n"), ("K-36", b"[ 1 2 ]\n"),
                   ("K-36", b"0x2\n"), ("K-30", b"1,2\n"), ("K-30", b"1 a\n"), ("K-30", b"1 - 2\n"),
                   ("K-30", b"1 2 ;\n"), ("K-30", b"1\0 2\n")],
    "int-vectors": [("lists", b"1 2\n"), ("lists", b"1 ; 2\n"), ("lists", b"1 , 2 ;\n"),
                    ("lists", b"1 2.5 ;\n"), ("lists", b"x ;\n"), ("K-36", b"2147483648 ;\n")],
    "int-pairs": [("pairs", b"1 2 ;\n"), ("pairs", b"1\n"), ("pairs", b"1 2 3\n"),
                  ("pairs", b";\n"), ("pairs", b"1 2 ; 3\n"), ("pairs", b"1 2 ; 3 4 5 ; 6 7\n"),
                  ("pairs", b"1 x\n"),
                  ("pairs", b"1 2.5\n")],
    "float-pairs": [("pairs", b"1.5 2 ;\n"), ("pairs", b"1.5\n"), ("pairs", b"1 nan\n"),
                    ("pairs", b"1 2 3\n"), ("pairs", b"1 1e40\n")],
    "posterior": [("posterior", b"1 2\n"), ("posterior", b"[ 1 ]\n"), ("posterior", b"[ 1 0.5\n"),
                  ("posterior", b"[]\n"), ("posterior", b"[1 0.5 ]\n"),
                  ("posterior", b"[ 1.5 2 ]\n"), ("posterior", b"[ 1 nan ]\n"),
                  ("posterior", b"[ 1 2 ] ]\n"), ("posterior", b"[ 1 2 ] x\n"),
                  ("posterior", b"[ 1 1e40 ]\n"), ("posterior", b"[ 1 0.5\n 2 0.5 ]\n")],
    "gauss-posterior": [("gauss", b"1 1 3 [ 1\n ]\n"), ("gauss", b"-1\n"), ("gauss", b"x\n"),
                        ("gauss", b"1 1 3 x\n"), ("gauss", b"1 -1\n"), ("gauss", b"1.5\n"),
                        ("gauss", b"1 1 3 [1 ]\n")],
    "token": [("K-37", b"s x\n"), ("K-37", b"s\tx \n"), ("token", b" \n")],
}
# Good to the end of the file without its last line's end, and those that are not (K-39).
OPEN_END = ["matrix", "vector", "packed", "int-vector", "posterior", "tokens"]
CLOSED_END = ["int", "float", "double", "bool", "token", "int-vectors", "int-pairs", "float-pairs"]

# Whole archives: (row, type, bytes, keys of the good objects, does it break?)
ARCHIVES = [
    ("K-33", "matrix", b"a [ 1 ]b [ 2 ]", ["a", "b"], False),
    ("K-33", "vector", b"a [ 1 ]b [ 2 ]\n", ["a", "b"], False),
    ("K-32", "matrix", b"a [ 1 ]\r\nb [ 2 ]\r\n", ["a", "b"], False),
    ("K-34", "matrix", b"a [ 1 ]\nb [ 2\n", ["a"], True),
    ("K-34", "vector", b"a [ 1 ]\nb [ 2", ["a"], True),
    ("K-34", "matrix", b"a [ 1 ]\nb [", ["a"], True),
    ("K-34", "matrix", b"a [ 1 ]\nb ", ["a"], True),
    ("K-34", "matrix", b"a [ 1 ]\nlonelykey", ["a"], False),
    ("K-34", "int-vector", b"a 1\nb ", ["a"], True),
    ("K-34", "tokens", b"a 1\nb ", ["a"], True),
    ("K-35", "matrix", b"a\n [ 1 ]\nb\n[\n2 ]\n", ["a", "b"], False),
    ("K-35", "vector", b"a\n [ 1 ]\nb [ 2 ]\n", ["a", "b"], False),
    ("K-35", "int-vector", b"a\n1 2 3\nb 4\n", ["a", "1", "b"], False),
    ("K-35", "token", b"z t\na\n [ 1 ]\n", ["z"], True),
    ("K-35", "int", b"z 1\na\n5\n", ["z"], True),
    ("K-35", "tokens", b"a\nb c\nd\n", ["a", "b", "d"], False),
    ("3.1", "matrix", b" \t\r\n\v\fa\t[ 1 ]\n\n\n \r\n b [ 2 ]\n \n", ["a", "b"], False),
    ("3.1", "matrix", b"a [ 1 ]\nb\r[ 2 ]\n", ["a"], True),
    ("3.1", "matrix", b"a [ 1 ]\nb\v[ 2 ]\n", ["a"], True),
    ("3.1", "matrix", b"a [ 1 ]\nb\f[ 2 ]\n", ["a"], True),
    ("3.1", "matrix", b"a [ 1 ]\nb \0X[ 2 ]\n", ["a"], True),
    ("3.1", "vector", b"\xef\xbb\xbfa [ 1 ]\n\xc3\xa4\0 [ 2 ]\n",
     ["a", "\xc3\xa4\0"], False),
    ("K-39", "matrix", b"a [\n1 2 ]\nb [\n3 4 ]", ["a", "b"], False),
]


def sources():
    """type -> {name of the file: bytes}. Checks the tables against the model."""
    found = {type: {} for type in GOOD}
    for type, cases in GOOD.items():
        for i, (row, obj, want) in enumerate(cases):
            data = b"first " + obj + b"middle " + obj + b"last " + obj
            found[type][f"{row}-good-{letters(i)}.ark"] = data
            objects, broken = read_ark(data, type)
            what = f"the model reads {obj!r} as {type}"
            equal((broken and broken.args, [o.key for o in objects]),
                  (None, [b"first", b"middle", b"last"]), what)
            for o in objects:
                check_value(o.value, want, what)
        good = cases[0][1]
        for i, (row, obj) in enumerate(BAD.get(type, [])):
            data = b"first " + good + b"bad " + obj + b"last " + good
            found[type][f"{row}-bad-{letters(i)}.ark"] = data
            found[type][f"{row}-first-bad-{letters(i)}.ark"] = b"bad " + obj + b"last " + good
            objects, broken = read_ark(data, type)
            equal(([o.key for o in objects], broken and broken.key), ([b"first"], b"bad"),
                  f"the model reads {obj!r} as {type}")
        if type in OPEN_END + CLOSED_END:
            data = b"first " + good + b"last " + good.rstrip(b" \n")
            found[type]["K-39-open.ark"] = data
            equal(read_ark(data, type)[1] is None, type in OPEN_END,
                  f"the model reads {type} without a last line's end")
    for i, (row, type, data, keys, breaks) in enumerate(ARCHIVES):
        found[type][f"{row}-archive-{letters(i)}.ark"] = data
        objects, broken = read_ark(data, type)
        equal(([o.key.decode("latin-1") for o in objects], bool(broken)), (keys, breaks),
              f"the model reads {data!r} as {type}")
    return found


def check_value(got, want, what):
    if isinstance(want, (list, tuple, np.ndarray, bytes)):
        same_value(got, want, what)
    else:
        equal((got.item(), np.signbit(got)), (got.dtype.type(want).item(), np.signbit(want)), what)


def fresh(files):
    shutil.rmtree(SOURCE)
    for name, data in files.items():
        write(name, data)


def check_type(type, files):
    fresh(files)
    log = f"log.{type}"
    with mounted(SOURCE, f"kaldi_type={type}", log=log):
        equal(sorted(os.listdir(MOUNTPOINT)), sorted([*files, "README.txt", ".epochfs"]),
              f"{type}: the top of the mount")
        tables = {name: check_archive(name, data, type) for name, data in files.items()}
    messages = log_text(log)
    for name, table in tables.items():
        if table.broken and table.objects:
            contains(messages, name)
    if any(table.broken for table in tables.values()):
        messages = run("info", "--check", "-o", f"kaldi_type={type}", SOURCE, code=2)
        contains(messages, *[name for name, table in tables.items() if table.broken])
    with mounted(SOURCE, f"kaldi_type={type}", "kaldi=p", log=f"{log}.p"):
        for name, data in files.items():
            if tables[name].broken:
                check_archive(name, data, type, permissive=True, encodings=["ark", "raw"])


def check_return_alone():
    """K-32: a CR without LF after ] consumes one more byte, which the next key then lacks."""
    data = b"a [ 1 ]\rbbb [ 2 ]\n"
    fresh({"cr.ark": data})
    equal([o.key for o in read_ark(data, "matrix")[0]], [b"a", b"bb"], "the model")
    with mounted(SOURCE, "kaldi_type=matrix"):
        check_archive("cr.ark", data, "matrix", encodings=["npy", "npz", "tar"])


# Text of unstated type.
FOUND = [
    ("matrix", b"a [\n 1 2 ]\nb [ ]\n"), ("matrix", b"a [ ]\nb [ 1 ]\nc [ 1\n2 ]\n"),
    ("matrix", b"a rows=1 dim=2 [ 0 1 ] \n"), ("vector", b"a [ 1 2 ]\nb [ ]\n"),
    ("vector", b"a [ 1.5 1 ]\nb [ 2 3 4 ]\n"), ("vector", b"a [ 1e5 2E-3 ]\n"),
    ("posterior", b"a [ 1 0.5 2 0.5 ] [ ]\nb [ 3 1 ]\n"),
    ("int-vectors", b"a 1 2 ; 3 ;\nb \n"), ("int-pairs", b"a 1 2 ; 3 4\nb \n"),
    ("float-pairs", b"a 1.5 2 ; 3 4\nb \n"), ("gauss-posterior", b"a 1 1 3 [ 0.5 ]\n\n"),
    ("bool", b"a T \nb F\n"), ("int", b"a 5 \nb -7\n"), ("double", b"a 5\nb 1.5\n"),
    ("int-vector", b"a 1 2 3\nb \nc 4\n"), ("token", b"a 1\nb x\n"), ("token", b"a spk1\nb spk2\n"),
    ("tokens", b"a x y\nb z\n"), ("tokens", b"a 1 2\nb 1.5 x\n"),
    ("tokens", "a ein Wort\nb noch größer\n".encode()),
]


def check_found():
    files = {f"{i:02d}-{type}.ark": data for i, (type, data) in enumerate(FOUND)}
    fresh(files)
    with mounted():
        for (name, data), (type, _) in zip(files.items(), FOUND):
            equal(read_ark(data, type)[1], None, f"the model: {name}")
            check_archive(name, data, type)
    # A file that breaks off later: the type found at its beginning holds.
    data = b"a [\n 1 2 ]\nb [\n 3 4 ]\nc [\n 5 x ]\nd [\n 6 7 ]\n"
    fresh({"breaks.ark": data, "good.ark": data[:22]})
    with mounted():
        check_archive("breaks.ark", data, "matrix")
        check_archive("good.ark", data[:22], "matrix")
        page = json.loads(text(path("breaks.ark/dataset.json")))
        contains("\n".join(page["notes"]), "breaks.ark", "byte", "expected", "got")
        equal(json.loads(text(path("good.ark/dataset.json")))["notes"], [], "notes of good.ark")


for type, files in sources().items():
    check_type(type, files)
check_return_alone()
check_found()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
