#!/usr/bin/python3
# needs: python3-pil
"""Arrays of .npy files, against numpy: types, orders, versions of the header, pairs by names and lengths,
and files that are refused. Each check names its row of the table of cases."""

import errno
import gzip
import json
import os
import subprocess

import numpy as np

from array_model import check, described, error, header, npy, raw_header
from lib import (SOURCE, contains, content, equal, expect_error, idx_parse, mounted, path, run, skip, text,
                 write)

RNG = np.random.default_rng(5)
SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "arrays/npy")


def numbers(dtype, *shape):
    return RNG.integers(0, 100, shape).astype(dtype)


F4 = numbers("<f4", 10, 3)
GOOD = {}   # folder -> its one array, in the field data
BAD = {}    # folder -> (bytes, words of the message)


def good(folder, array, data=None):
    GOOD[folder] = array
    write(f"{folder}/a.npy", npy(array) if data is None else data)


def bad(folder, data, *words):
    BAD[folder] = words
    write(f"{folder}/a.npy", data)


def make():
    for version in (1, 0), (2, 0), (3, 0):
        good(f"A-1 version {version[0]}", F4, header("'<f4'", "False", "(10, 3)", F4.tobytes(), version))
    bad("A-1 4.0", header("'<f4'", "False", "(10, 3)", F4.tobytes(), (4, 0)), "version at byte 6", "got 4.0")
    bad("A-1 1.1", header("'<f4'", "False", "(10, 3)", F4.tobytes(), (1, 1)), "got 1.1")
    for i, words in enumerate(("{'descr':'<f4','fortran_order':False,'shape':(10,3)}",
                               '{"shape": (10L, 3L), "fortran_order": False, "descr": "<f4",}\n',
                               " {'fortran_order': False , 'shape': ( 10 , 3 , ) , 'descr' : '<f4'}   \n")):
        good(f"A-2 {i}", F4, raw_header(words, F4.tobytes()))
    data = F4.tobytes()
    for i, words in enumerate(("{'descr': '<f4', 'fortran_order': False, 'shape': (10, 3), 'x': 1}",
                               "{'descr': '<f4', 'shape': (10, 3)}",
                               "{'descr': '<f4', 'fortran_order': 0, 'shape': (10, 3)}",
                               "{'descr': '<f4', 'fortran_order': False, 'shape': [10, 3]}",
                               "{'descr': '<f4', 'fortran_order': False, 'shape': 30}",
                               "{'descr': '<f4', 'fortran_order': False, 'shape': (10.0, 3)}")):
        bad(f"A-3 {i}", raw_header(words, data), "header of .npy")
    bad("A-4", npy(np.float32(3.5)), "a scalar, which has no rows")
    good("A-5", np.zeros((0, 7), "<f4"))
    bad("A-6 negative", header("'<f4'", "False", "(-10, 3)", data), "'shape': a tuple of numbers")
    bad("A-6 overflow", header("'<f4'", "False", "(4611686018427387904, 8)", data), "got a larger one")
    bad("A-6 large", header("'<f4'", "False", "(1000000000000, 3)", data), "expected 12000000000000 bytes, got 120")
    bad("A-6 rows of nothing", header("'<f4'", "False", "(1000000000000, 0)", data), "rows without bytes")
    good("A-7", F4, npy(F4) + b"more" * 5)
    bad("A-8", npy(F4)[:-1], "expected 120 bytes, got 119 (cut short)")
    bad("A-8 in the header", npy(F4)[:40], "header at byte 0: expected 128 bytes, got 40")
    bad("A-8 in the start", npy(F4)[:9], "header of .npy")
    good("A-9 matrix", np.asfortranarray(numbers("<i2", 40, 6)))
    good("A-9 cube", np.asfortranarray(numbers("<f8", 11, 3, 5)))
    good("A-9 big", np.asfortranarray(numbers(">i4", 13, 2, 3, 2)))
    good("A-9 line", numbers("<i2", 9), header("'<i2'", "True", "(9,)", (line := numbers("<i2", 9)).tobytes()))
    GOOD["A-9 line"] = line
    good("A-9 column", line.reshape(9, 1), header("'<i2'", "True", "(9, 1)", line.tobytes()))
    with open(write("A-9 huge/a.npy", header("'<f4'", "True", "(5000, 5000)")), "r+b") as f:
        f.truncate(os.path.getsize(f.name) + 4 * 5000 * 5000)
    BAD["A-9 huge"] = ("fortran_order", "convert with numpy.ascontiguousarray")
    for kind in ">i2", ">u4", ">f4", ">f8", ">i8", ">f2", ">c8", ">c16":
        good(f"A-10 {kind[1:]}", numbers(kind, 12, 2))
    for kind in "=i4", "|i4", "i4", "int32":
        array = numbers("<i4", 6, 2)
        good(f"A-11 {kind}", array, header(repr(kind), "False", "(6, 2)", array.tobytes()))
    array = numbers("<f4", 6)
    good("A-11 float32", array, header("'float32'", "False", "(6,)", array.tobytes()))
    for kind in "?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16":
        good(f"A-12 {np.dtype(kind).name}", numbers(kind, 9, 2))
    for name, array in (("long double", np.zeros(3, "g")), ("dates", np.zeros(3, "M8[s]")),
                        ("strings", np.array(["a", "bc"])), ("bytes", np.array([b"a", b"bc"]))):
        bad(f"A-12 {name}", npy(array), "expected numbers or bool in .npy")
    bad("A-13 records", npy(np.zeros(2, [("a", "<i4"), ("b", "<f8")])), "got a list: records")
    bad("A-13 bfloat16", header("'<V2'", "False", "(4,)", bytes(8)), "bfloat16", "astype('float32')")
    bad("A-14", npy(np.array([{}, 1], object)), "a pickle, which is never read")
    bad("A-15", b"\x93NUMPY\2\0" + b"\xff\xff\xff\xff" + bytes(100), "expected at most 65524 bytes, got 4294967295")
    for i, code in enumerate(("__import__('os').system('touch /tmp/x')", "{'descr': print('x')}",
                              "{'descr': '<f4', 'fortran_order': False, 'shape': (1+9, 3)}",
                              "{'descr': '<f4', 'fortran_order': not 1, 'shape': (10, 3)}")):
        bad(f"A-16 {i}", raw_header(code, data), "header of .npy")
    array = numbers("<f8", 5, 3)
    good("A-17", array, raw_header("{'descr': '<f8', 'fortran_order': False, 'shape': (5, 3)}", array.tobytes()))


def check_pairs():
    x, y = numbers("u1", 30, 12, 9), numbers("i8", 30)
    test = numbers("u1", 8, 12, 9), numbers("i8", 8)
    sources = {"x_train": x, "y_train": y, "x_test": test[0], "y_test": test[1]}
    for name, array in sources.items():
        write(f"pairs/{name}.npy", npy(array))
    for name, array in {"train_images": x, "train_labels": y.reshape(30, 1), "other": test[1], "more": test[0],
                        "alone": numbers("f4", 5)}.items():
        write(f"medmnist/{name}.npy", npy(array))
        sources[f"medmnist {name}"] = array
    write("differ/x_val.npy", npy(x))
    write("differ/y_val.npy", npy(test[1]))
    write("named/index.npy", npy(y))
    write("named/key.npy", npy(y + 1))
    write("twice/x.npy", npy(x))
    write("twice/x.npy.gz", gzip.compress(npy(y)))
    return x, y, test, sources


def check_shown(x, y, test, sources):
    check("pairs/train", {"x": x, "y": y})
    check("pairs/test", {"x": test[0], "y": test[1]})
    equal(described("pairs/train")["paired"], "their names say train", "why")
    equal(described("pairs/train")["arrays"], [{"field": "x", "array": "x_train"}, {"field": "y", "array": "y_train"}],
          "what is paired")
    # a column is an array of one number, a label of integers is also text
    check("medmnist/train", {"images": x, "labels": y.reshape(30, 1)})
    check("medmnist/all", {"other": test[1], "more": test[0]})
    check("medmnist/alone", {"data": sources["medmnist alone"]})
    contains(error("differ/val"), "got 30 in x_val and 8 in y_val", "pair=off")
    check("named/all", {"index~2": y, "key~2": y + 1})
    check("twice/x", {"data": x})
    contains(described("twice/x")["notes"][0], "x.npy.gz is ignored: x.npy has the same name, unpacked")
    # pictures: bytes with two axes of 8 or more
    equal(content(path("pairs/train/samples/pgm/000003.x.pgm")), b"P5\n9 12\n255\n" + x[3].tobytes(), "pgm")
    equal(int(text(path("pairs/train/samples/png/000003.y.cls"))), y[3], "cls")
    os.stat(path("pairs/train/preview.png"))
    expect_error(errno.ENOENT, os.stat, path("A-9 matrix/a/samples/png"))
    # tar: integers as text
    names = subprocess.run(["tar", "tf", path("pairs/test/batches/batch=all/tar/000000.tar")], check=True,
                           capture_output=True, text=True).stdout.split()
    equal(names[:2], ["000000.x.npy", "000000.y.cls"], "members of tar")
    # idx: only types of IDX, in its order of bytes
    equal(idx_parse(content(path("A-10 i2/a/batches/batch=all/idx/000000.data.idx"))).tolist(),
          GOOD["A-10 i2"].tolist(), "idx")
    expect_error(errno.ENOENT, os.stat, path("A-12 int16/a/samples/idx"))


def check_colours():
    """A picture with an axis of colours is one in colours."""
    from PIL import Image
    rgb = numbers("u1", 5, 10, 8, 3)
    grey = numbers("u1", 5, 10, 8, 1)
    write("rgb/a.npy", npy(rgb))
    write("grey/a.npy", npy(grey))
    with mounted():
        with Image.open(path("rgb/a/samples/png/000002.data.png")) as picture:
            equal(np.asarray(picture).tobytes(), rgb[2].tobytes(), "png in colours")
        with Image.open(path("grey/a/samples/png/000002.data.png")) as picture:
            equal((picture.mode, np.asarray(picture).tobytes()), ("L", grey[2].tobytes()), "grey png")
        expect_error(errno.ENOENT, os.stat, path("rgb/a/samples/pgm"))
        equal(content(path("grey/a/samples/pgm/000002.data.pgm"))[12:], grey[2].tobytes(), "pgm")


def check_off(sources):
    with mounted(SOURCE, "pair=off"):
        for name in "x_train", "y_train", "x_test", "y_test":
            check(f"pairs/{name}", {"data": sources[name]})
        equal(described("pairs/x_train").get("paired"), None, "paired")
    contains(run("info", "-o", "pair=off", f"{SOURCE}/pairs"), "y_test\n", "int64, scalar")
    contains(run("info", f"{SOURCE}/pairs"), "paired   x_train, y_train: their names say train")
    contains(run("info", "-o", "pair=of", SOURCE, code=1), "option pair=of: expected auto or off")


def check_shared():
    """Files of the wild, and their arrays as numpy reads them."""
    if not os.path.isdir(SHARED):
        skip(f"{SHARED} is missing")
    with mounted(SHARED, "pair=off"):
        for name in sorted(os.listdir(SHARED)):
            stem = name[:-4]
            try:
                array = np.load(f"{SHARED}/{name}") if name.endswith(".npy") else None
            except ValueError:
                array = None
            if array is None or not array.ndim or array.dtype.kind not in "buifc":
                os.stat(path(name, "ERROR.txt"))
            else:
                check(stem, {"data": array}, batch=97)


make()
pairs = check_pairs()
with mounted():
    for at, want in GOOD.items():
        check(f"{at}/a", {"data": want})
    for at, words in BAD.items():
        contains(error(f"{at}/a.npy"), "a.npy: ", *words)
    check_shown(*pairs)
    equal(json.loads(text(path("A-7/a/dataset.json")))["notes"], ["A-7/a.npy: 20 bytes follow the array, and are not read"],
          "notes of dataset.json")
    found = json.loads(run("info", "--json", f"{SOURCE}/A-7"))["datasets"][0]
    equal((found["notes"], found["missing"]), (["a.npy: 20 bytes follow the array, and are not read"], []), "info --json")
    contains(run("info", f"{SOURCE}/A-7"), "note     a.npy: 20 bytes follow the array")
check_off(pairs[3])
check_colours()
contains(run("info", "--check", f"{SOURCE}/pairs"), "samples  30")
check_shared()
