#!/usr/bin/python3
# slow: archives cut at every byte
"""Rows K-1 to K-10 of the table of Kaldi's edge cases, archives truncated at every byte, objects
that no Kaldi table holds, and false headers: an error with its place, never a crash, a wrong byte
or a large allocation. And valid objects of several GB."""

import errno
import json
import os
import re
import shutil
import struct

import numpy as np

import kaldi_model
from kaldi_model import (Table, check_archive, check_error_page, int32, letters,
                         random_compressed, read_ark, real, write, write_ark)
from lib import (MOUNTPOINT, SOURCE, contains, content, equal, expect_error, log_text, mounted,
                 path, run, start, stop, text, write as write_file)
from model import npy_bytes

rng = np.random.default_rng(77)
B = b"\0B"
FM = lambda rows, columns, data=b"": B + b"FM " + int32(rows, columns) + data
FV = lambda n, data=b"": B + b"FV " + int32(n) + data
CM = lambda kind, rows, columns, data=b"": \
    B + kind + struct.pack("<ffii", 0, 1, rows, columns) + data
MAX = 2 ** 31 - 1
MIN = -2 ** 31


def numbers(*shape):
    return rng.normal(size=shape).astype(np.float32)


GOOD = {  # two small objects of each type
    "matrix": [write("matrix", numbers(2, 3), "FM"), write("matrix", numbers(1, 3), "DM")],
    "vector": [write("vector", numbers(3), "FV"), write("vector", numbers(2), "DV")],
    "packed": [write("packed", numbers(6), "FP"), write("packed", numbers(1), "DP")],
    "int": [write("int", 5), write("int", -7)],
    "float": [write("float", 1.5), write("float", -0.1, "binary8")],
    "double": [write("double", np.pi), write("double", 0.5, "binary4")],
    "bool": [write("bool", True), write("bool", False)],
    "int-vector": [write("int-vector", [1, 2, -3]), write("int-vector", [])],
    "int-vectors": [write("int-vectors", [[1, 2], [], [3]]), write("int-vectors", [[]])],
    "int-pairs": [write("int-pairs", [[1, 2], [3, -4]]), write("int-pairs", [[5, 6]])],
    "float-pairs": [write("float-pairs", numbers(2, 2)), write("float-pairs", numbers(1, 2),
                                                               "binary8")],
    "posterior": [write("posterior", [([1, 2], [.5, .5]), ([], [])]),
                  write("posterior", [([7], [1.])], "binary8")],
    "gauss-posterior": [write("gauss-posterior", [[(3, numbers(2))], []]),
                        write("gauss-posterior", [[(4, numbers(1))]], "binary8")],
    "token": [b"spk\n", b"x\n"],
    "tokens": [b"a b \n", b"\n"],
    "wave": [write("wave", (8000, np.arange(4))),
             write("wave", (8000, np.arange(6).reshape(3, 2)))],
}

# (row, type that it is read as, object)
BAD = [
    ("K-3", "matrix", write("vector", numbers(3), "FV")),
    ("K-3", "vector", write("matrix", numbers(2, 3), "FM")),
    ("K-3", "vector", write("matrix", random_compressed("CM", 2, 3, rng))),
    ("K-3", "packed", write("vector", numbers(3), "FV")),
    ("K-3", "vector", write("packed", numbers(3), "FP")),
    ("K-3", "int-vector", write("matrix", numbers(2, 3), "FM")),
    ("K-3", "matrix", write("int-vector", [1, 2])),
    ("K-4", "matrix", FM(0, 5)), ("K-4", "matrix", FM(5, 0)), ("K-4", "matrix", FM(-1, 5)),
    ("K-4", "matrix", FM(5, -1)), ("K-4", "matrix", FM(-1, -1, bytes(4))), ("K-4", "matrix",
                                                                         FM(MIN, MIN)),
    ("K-4", "matrix", CM(b"CM ", 0, 5, bytes(40))),
    ("K-4", "matrix", CM(b"CM2 ", -1, 5, bytes(40))),
    ("K-4", "matrix", CM(b"CM3 ", 5, -1, bytes(40))), ("K-4", "vector", FV(-1)),
    ("K-4", "packed", B + b"FP " + int32(-1)), ("K-4", "int-vector", B + int32(-1)),
    ("K-4", "int-vectors", B + int32(-1)), ("K-4", "int-vectors", B + int32(1, -1)),
    ("K-4", "int-pairs", B + int32(-1)), ("K-4", "posterior", B + int32(-1)),
    ("K-4", "posterior", B + int32(1, -1)), ("K-4", "gauss-posterior", B + int32(-1)),
    ("K-4", "gauss-posterior", B + int32(1, -1)),
    ("K-6", "matrix", B + b"FM \x08" + struct.pack("<q", 1) + int32(1) + bytes(4)),
    ("K-6", "matrix", B + b"FM \xfc" + struct.pack("<I", 1) + int32(1) + bytes(4)),
    ("K-6", "matrix", B + b"FM " + int32(1) + b"\xfc" + struct.pack("<I", 1) + bytes(4)),
    ("K-6", "vector", B + b"FV \x08" + struct.pack("<q", 1) + bytes(4)),
    ("K-6", "vector", B + b"FV \xfc" + struct.pack("<I", 1) + bytes(4)),
    ("K-6", "int", B + b"\x08" + struct.pack("<q", 1)), ("K-6", "int", B + b"\xfc\1\0\0\0"),
    ("K-6", "int", B + b"\2\1\0"), ("K-6", "int-vector", B + b"\x08" + struct.pack("<q", 0)),
    ("K-6", "int-vector", B + int32(1) + b"\xfc\1\0\0\0"),
    ("K-6", "int-vector", B + int32(2, 1) + b"\x08" + struct.pack("<q", 1)),
    ("K-6", "int-pairs", B + int32(1, 1) + b"\xfc\1\0\0\0"),
    ("K-6", "float", B + b"\2\0\0"), ("K-6", "float", B + b"\x10" + bytes(16)),
    ("K-6", "double", B + b"\xf8" + bytes(8)), ("K-6", "bool", B + b"X"),
    ("K-6", "bool", B + b"\1"),
    ("K-6", "posterior", B + int32(1, 1, 5) + b"\2\0\0"),
    ("3.2", "int-vector", B + b"\4" + struct.pack("<4i", 3, 1, 2, 3)),  # WriteIntegerVector
    ("3.2", "matrix", B + b"CM4 " + bytes(16)), ("3.2", "matrix", B + b"QM " + int32(1, 1)),
    ("3.2", "matrix", B + b"FM\0" + int32(1, 1) + bytes(4)), ("3.2", "matrix", B + b"FMM " +
                                                           int32(1, 1) + bytes(4)),
    ("3.2", "matrix", B), ("3.2", "matrix", b"\0"),
    ("3.2", "matrix", b"\0C" + b"FM " + int32(0, 0)),
    ("K-10", "matrix", FM(MAX, MAX, bytes(100))), ("K-10", "matrix", FM(MAX, 1, bytes(100))),
    ("K-10", "matrix", FM(65536, 65536, bytes(100))), ("K-10", "matrix", FM(2 ** 30, 4, bytes(99))),
    ("K-10", "matrix", B + b"DM " + int32(2 ** 29, 4) + bytes(99)),
    ("K-10", "matrix", CM(b"CM ", MAX, MAX, bytes(99))), ("K-10", "matrix", CM(b"CM ", 1, MAX)),
    ("K-10", "matrix", CM(b"CM2 ", MAX, MAX, bytes(99))),
    ("K-10", "matrix", CM(b"CM2 ", 65536, 32768, bytes(99))),
    ("K-10", "matrix", CM(b"CM3 ", 65536, 65536, bytes(99))),
    ("K-10", "vector", FV(MAX, bytes(99))),
    ("K-10", "vector", FV(2 ** 30, bytes(99))),
    ("K-10", "packed", B + b"FP " + int32(65536) + bytes(99)),
    ("K-10", "packed", B + b"DP " + int32(MAX) + bytes(99)),
    ("K-10", "int-vector", B + int32(MAX, 1, 2)), ("K-10", "int-vectors", B + int32(MAX)),
    ("K-10", "int-vectors", B + int32(1, MAX, 1)), ("K-10", "int-pairs", B + int32(MAX, 1, 2)),
    ("K-10", "int-pairs", B + int32(2 ** 30, 1, 2)), ("K-10", "float-pairs", B + int32(MAX)),
    ("K-10", "posterior", B + int32(10000001) + int32(0) * 50), ("K-10", "posterior", B +
                                                              int32(MAX)),
    ("K-10", "posterior", B + int32(1, MAX, 1) + real(1, "<f4")),
    ("K-10", "gauss-posterior", B + int32(MAX)), ("K-10", "gauss-posterior", B + int32(1, MAX, 1)),
    ("K-10", "gauss-posterior", B + int32(1, 1, 1) + b"FV " + int32(MAX) + bytes(9)),
    ("K-10", "gauss-posterior", B + int32(1, 1, 1) + b"FV " + int32(-1)),
    ("K-10", "gauss-posterior", B + int32(1, 1, 1) + b"FM " + int32(1, 1) + bytes(4)),
    ("SM", "matrix", B + b"SM " + int32(-1)), ("SM", "matrix", B + b"SM " + int32(10000000)),
    ("SM", "matrix", B + b"SM " + int32(MAX)), ("SM", "matrix", B + b"SM " + int32(2) + b"SV " +
                                                int32(3, 0)),
    ("SM", "matrix", B + b"SM " + int32(1) + b"SV " + int32(-1, 0)),
    ("SM", "matrix", B + b"SM " + int32(1) + b"SV " + int32(3, -1)),
    ("SM", "matrix", B + b"SM " + int32(1) + b"SV " + int32(3, 4)),
    ("SM", "matrix", B + b"SM " + int32(1) + b"SV " + int32(MAX, MAX)),
    ("SM", "matrix", B + b"SM " + int32(1) + b"FV " + int32(3, 0)),
    ("SM", "matrix", B + b"SM " + int32(2) + b"SV " + int32(3, 0) + b"SV " + int32(4, 0)),
    ("SM", "matrix", B + b"SM " + int32(1) + b"SV " + int32(3, 1, 0) + b"\2\0\0"),
    ("SM", "matrix", B + b"SM " + int32(1) + b"SV " + int32(0, 0)),
    ("SV", "vector", B + b"SV " + int32(-1, 0)), ("SV", "vector", B + b"SV " + int32(3, 4)),
    ("SV", "vector", B + b"SV " + int32(3, -1)), ("SV", "vector", B + b"SV " + int32(MAX, MAX)),
    ("SV", "matrix", B + b"SV " + int32(3, 0)),
    # What is no object of a table.
    ("egs", "matrix", B + b"<Nnet3Eg> <NumIo> " + int32(2) + b"<NnetIo> input " + bytes(99)),
    ("lattice", "matrix", B + b"\xd6\xfd\xb2\x7e\6\0\0\0vector" + bytes(60)),
    ("kaldiio", "matrix", b"NPY\x01\x80" + npy_bytes(numbers(2, 2))),
    ("kaldiio", "matrix", b"AUDIO\x04" + struct.pack("<I", 9) + b"fLaC\0\0\0\x22\x10"),
    ("kaldiio", "matrix", b"PKL\x80\x04\x95" + bytes(20)),
    ("kaldiio", "matrix", b"fLaC\0\0\0\x22\x10\0"), ("kaldiio", "wave", b"fLaC\0\0\0\x22\x10\0"),
    ("kaldiio", "wave", b"NIST_1A\n   1024\n"), ("htk", "matrix", b"\0\0\0\x78\0\1\x86\xa0\0\x40"),
]
# Objects that state no type: by their content alone these make no dataset.
OPAQUE = [obj for row, type, obj in BAD if row in ("egs", "lattice", "kaldiio", "htk")
          and type == "matrix"]
# An index that no row has: the rest is all right, so it may show when it is read only.
SPARSE_INDEX = [B + b"SM " + int32(1) + b"SV " + int32(3, 1, i) + real(1, "<f4")
                for i in (3, -1, MAX, MIN)]


def fresh(files):
    shutil.rmtree(SOURCE)
    for name, data in files.items():
        write_file(name, data)


# ---- in order ----

def check_in_order():
    """K-1, K-2, K-5, K-8, K-9."""
    a = numbers(3, 4)
    after = write("matrix", numbers(2, 4), "FM")
    short = B + b"CM " + bytes(16)
    files = {"k-1.ark": write_ark([(b"f", write("matrix", a, "FM")),
                                   (b"d", write("matrix", a.astype(np.float64) / 3, "DM"))]),
             "k-2.ark": write_ark([(k.encode(), write("matrix", random_compressed(k, 6, 4, rng)))
                                   for k in ("CM", "CM2", "CM3")] +
                                  [(b"SM", write("matrix", a, "SM"))]),
             "k-5.ark": write_ark([(b"a", FM(0, 0)), (b"b", after), (b"c", FM(0, 0)),
                                   (b"d", B + b"DM " + int32(0, 0))]),
             "k-5-only.ark": write_ark([(b"a", FM(0, 0)), (b"b", FM(0, 0))]),
             "k-5-vector.ark": write_ark([(b"a", FV(0)), (b"b", FV(0))]),
             "k-8.ark": write_ark([(b"a", after), (b"b", short + bytes(4)), (b"c", after),
                                   (b"d", short + bytes(4)), (b"e", short + bytes(4))]),
             "k-8-first.ark": write_ark([(b"a", short + bytes(4)), (b"b", after)]),
             "k-8-short.ark": write_ark([(b"a", after), (b"b", short), (b"c", after),
                                         (b"d", short)]),
             "k-8-zeros.ark": write_ark([(b"a", short + bytes(4)), (b"\0\0b", after)]),
             "k-9.ark": write_ark([(b"a", after), (b"b", CM(b"CM ", 5, 0)), (b"c", after),
                                   (b"d", CM(b"CM2 ", 5, 0)), (b"e", CM(b"CM3 ", 1, 0))])}
    fresh(files)
    with mounted():
        for name, data in files.items():
            table = check_archive(name, data, "vector" if "vector" in name else "matrix")
            equal((table.broken, len(table) > 1), (None, True), f"{name}: the model")
    equal([o.key for o in read_ark(files["k-8-zeros.ark"], "matrix")[0]], [b"a", b"\0\0b"], "k-8")


# ---- errors ----

SAY_THEIR_TYPE = ("matrix", "vector", "packed", "wave")


def says_type(obj):
    """Is it a good object that states its type?"""
    return obj[:1] in (b"\0", b"R") and any(
        read_ark(write_ark([(b"x", obj)]), type)[1] is None for type in SAY_THEIR_TYPE)


def check_asked():
    """kaldi_type= is for objects that do not state their type."""
    files = {type: write_ark([(b"a", GOOD[type][0]), (b"b", GOOD[type][1])])
             for type in ("matrix", "vector", "float", "wave") if type in GOOD}
    fresh({f"{type}.ark": data for type, data in files.items()})
    with mounted(SOURCE, "kaldi_type=float"):
        for type, data in files.items():
            check_archive(f"{type}.ark", data, type)
    contains(run("info", "-o", "kaldi_type=matrix.ark:matrix;vectors.ark:vector", SOURCE, code=2),
             "vectors.ark:vector: no file in SOURCE has that name")


def check_errors():
    by_type = {}
    for i, (row, type, obj) in enumerate(BAD):
        good = GOOD[type][0]
        files = by_type.setdefault(type, {})
        for name, entries in (("bad", [(b"first", good), (b"bad", obj), (b"last", good)]),
                              ("first-bad", [(b"bad", obj), (b"last", good)]),
                              ("last-bad", [(b"first", good), (b"bad", obj)])):
            if name == "first-bad" and type not in SAY_THEIR_TYPE and says_type(obj):
                continue  # then it is a table of that, see check_asked()
            data = files[f"{row}-{name}-{letters(i)}.ark"] = write_ark(entries)
            objects, broken = read_ark(data, type)
            equal(([o.key for o in objects], broken and broken.key),
                  ([b"first"] if name != "first-bad" else [], b"bad"),
                  f"the model reads {obj[:60]!r} as {type}")
    for type, files in by_type.items():
        check_type(type, files)


def check_type(type, files, encodings=None):
    """Files read as this type: their good objects, and the places of the bad ones. All in one
    mount. An empty file among them is none of them, and its page says so."""
    fresh(files)
    log = f"log.{type}"
    daemon = start(SOURCE, f"kaldi_type={type}", log=log)
    try:
        equal(sorted(os.listdir(MOUNTPOINT)), sorted([*files, "README.txt", ".epochfs"]),
              f"{type}: the top of the mount")
        for name in [name for name, data in files.items() if not data]:
            check_error_page(name, "is empty")
            del files[name]
        tables = {name: check_archive(name, data, type, encodings=encodings)
                  for name, data in files.items()}
        check_memory(daemon.pid)
    finally:
        stop(daemon)
    messages = log_text(log)
    broken = [name for name, table in tables.items() if table.broken]
    contains(messages, *[name for name in broken if tables[name].objects])
    with mounted(SOURCE, f"kaldi_type={type}", "kaldi=p", log=f"{log}.p"):
        for name in broken:
            check_archive(name, files[name], type, permissive=True, encodings=["raw", "ark"])
    if broken:
        contains(run("info", "--check", "-o", f"kaldi_type={type}", SOURCE, code=2), *broken)


def check_frames():
    """More frames than Kaldi takes, though they exist; vectors that end with the file."""
    good = GOOD["posterior"][0]
    empty = [[(3, numbers(0)), (4, numbers(0))], []]
    for type, data, n in (
            ("posterior", write_ark([(b"a", good), (b"b", B + int32(10000001) +
                                                    int32(0) * 10000001)]), 1),
            ("gauss-posterior", write_ark([(b"a", write("gauss-posterior", empty)),
                                           (b"b", write("gauss-posterior", empty[:1]))]), 2)):
        fresh({"frames.ark": data})
        with mounted(SOURCE, f"kaldi_type={type}"):
            table = check_archive("frames.ark", data, type, encodings=["raw", "npz"])
            equal(len(table.objects), n, f"{type}: objects of the model")


def check_memory(pid):
    """The sizes in a header cause no allocation."""
    with open(f"/proc/{pid}/status") as f:
        most = int(re.search(r"VmHWM:\s+(\d+) kB", f.read())[1])
    equal(most < 1 << 20, True, f"memory of the daemon: {most} kB")


def check_opaque():
    """Without a type: a file of its own, next to a good one."""
    files = {f"opaque-{i}.ark": write_ark([(b"a", obj), (b"b", obj)])
             for i, obj in enumerate(OPAQUE)}
    good = write_ark([(b"a", GOOD["matrix"][0]), (b"b", GOOD["matrix"][1])])
    fresh({**files, "good.ark": good})
    with mounted():
        for name in files:
            check_error_page(name, "byte")
        check_archive("good.ark", good, "matrix")
    for name in files:
        contains(run("mount", f"{SOURCE}/{name}", MOUNTPOINT, code=2), name)


def check_sparse_index():
    fresh({f"{i}.ark": write_ark([(b"a", GOOD["matrix"][0]), (b"b", obj)])
           for i, obj in enumerate(SPARSE_INDEX)})
    with mounted():
        for i in range(len(SPARSE_INDEX)):
            folder = path(f"{i}.ark")
            equal(np.load(f"{folder}/samples/npy/a.data.npy").shape, (2, 3), folder)
            expect_error(errno.EIO, content, folder, "samples/npy/b.data.npy")
            expect_error(errno.EIO, content, folder, "batches/batch=all/npy/000000.data.npy")
    contains(log_text(), "0.ark", "byte")


def check_numpy_object():
    """matrix/numpy-array.cc: its array, or an error that names it."""
    array = numbers(3, 4)
    data = write_ark([(b"a", B + npy_bytes(array)), (b"b", B + npy_bytes(array + 1))])
    fresh({"numpy.ark": data, "good.ark": write_ark([(b"a", GOOD["matrix"][0])])})
    with mounted():
        if os.path.exists(path("numpy.ark/ERROR.txt")):
            check_error_page("numpy.ark", "byte")
            return
        kaldi_model.same_array(np.load(path("numpy.ark/samples/npy/b.data.npy")), array + 1, "b")
        kaldi_model.same_array(np.load(path("numpy.ark/samples/npy/a.data.npy")), array, "a")


# ---- cut at every byte ----

def check_truncated():
    for type, objects in GOOD.items():
        data = write_ark([(b"first", objects[0]), (b"second", objects[1])])
        equal(read_ark(data, type)[1], None, f"the model reads {type}")
        check_type(type, {f"cut-{letters(n)}.ark": data[:n] for n in range(len(data))},
                   ["raw", "txt", "npy", "npz"])


def check_truncated_mixed():
    """As found by its content; compressed ones; text behind binary."""
    entries = [(b"fm", GOOD["matrix"][0])] + \
        [(kind.encode(), write("matrix", random_compressed(kind, 2, 3, rng)))
         for kind in ("CM", "CM2", "CM3")] + \
        [(b"sm", write("matrix", [[0, 1, 0], [2, 0, 0]], "SM")),
         (b"empty", B + b"CM " + bytes(20)), (b"text", b" [\n  1 2 3 \n  4 5 6 ]\n")]
    data = write_ark(entries)
    files = {f"cut-{letters(n)}.ark": data[:n] for n in range(40, len(data) + 1, 3)}
    fresh(files)
    with mounted():
        for name, cut in files.items():
            check_archive(name, cut, "matrix", encodings=["raw", "npy"])
    check_flipped(data)


def check_flipped(data):
    """Any byte changed: the mount answers, and the samples before that byte are unchanged."""
    offsets = []
    table = Table(data, "matrix")
    files = {}
    for n in range(0, len(data), 2):
        bad = bytearray(data)
        bad[n] ^= rng.integers(1, 256)
        files[f"flip-{letters(n)}.ark"] = bytes(bad)
        offsets.append(n)
    fresh({**files, "good.ark": data})
    daemon = start(SOURCE, "kaldi_type=matrix", log="log.flipped")
    try:
        for n, name in zip(offsets, files):
            for i, o in enumerate(table.objects):
                if o.end + 1 > n:
                    break
                file = f"{path(name)}/samples/npy/{o.key.decode()}.data.npy"
                kaldi_model.check_npy(content(file), table.array(i, "data").astype(
                    np.load(file).dtype), file)
        for name in files:
            for folder in ("samples/npy", "batches/batch=all/npy"):
                try_all(path(name, folder))
        check_memory(daemon.pid)
        check_archive("good.ark", data, "matrix", encodings=["npy"])
    finally:
        stop(daemon)


def try_all(folder):
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            if os.stat(f"{folder}/{name}").st_size < 1 << 20:
                content(folder, name)
        except OSError as e:
            equal(e.errno in (errno.EIO, errno.EFBIG), True, f"{folder}/{name}: {e}")


# ---- several GB ----

def check_huge():
    """Dimensions with a product above 2^31, in sparse files. The objects after them are found, and
    the ends of the large ones can be read."""
    shutil.rmtree(SOURCE)
    name = write_file("huge.ark", b"")
    rows, columns = 33000, 33000
    after = write("matrix", numbers(2, 3), "FM")
    places = []
    with open(name, "r+b") as f:
        for key, head, size in ((b"fm", FM(rows, columns), 4 * rows * columns),
                                (b"cm2", CM(b"CM2 ", rows, columns), 2 * rows * columns),
                                (b"cm3", CM(b"CM3 ", 70000, rows), 70000 * rows)):
            f.write(key + b" ")
            begin = f.tell()
            f.write(head)
            start_of_data = f.tell()
            f.seek(size - 4, os.SEEK_CUR)
            f.write(struct.pack("<f", 2.5))
            places.append((key.decode(), begin, start_of_data, f.tell()))
        f.write(b"last " + after)
    daemon = start(SOURCE)
    try:
        folder = path("huge.ark")
        page = json.loads(text(folder, "dataset.json"))
        equal(page["samples"], 4, "samples of huge.ark")
        got = np.load(f"{folder}/samples/npy/last.data.npy")
        want = np.frombuffer(after[-24:], "<f4").reshape(2, 3)
        kaldi_model.same_array(got, want, "the object behind the large ones")
        for key, begin, _, end in places:
            raw = f"{folder}/samples/raw/{key}.data.raw"
            equal(os.stat(raw).st_size, end - begin, f"{raw}: size")
            with open(raw, "rb") as f:
                f.seek(-4, os.SEEK_END)
                equal(f.read(), struct.pack("<f", 2.5), f"{raw}: its end")
        file = f"{folder}/samples/npy/fm.data.npy"
        array = np.load(file, mmap_mode="r")
        equal((array.shape, array.dtype), ((rows, columns), np.float32), file)
        equal((float(array[0, 0]), float(array[-1, -1])), (0.0, 2.5), f"{file}: corners")
        check_memory(daemon.pid)
        del array
    finally:
        stop(daemon)


check_in_order()
check_errors()
check_asked()
check_frames()
check_opaque()
check_sparse_index()
check_numpy_object()
check_truncated()
check_truncated_mixed()
check_huge()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
