#!/usr/bin/python3
"""MindRecord that is not as it should be: files that say what is wrong, rows and fields that fail alone,
shards that are absent or renamed, files of SQLite that are absent, stale or hostile and never opened."""

import errno
import hashlib
import io
import os
import shutil
import struct
import subprocess

import numpy as np

import lib
from lib import EPOCHFS, PRIVATE, SOURCE, contains, equal, expect_error, mounted, path, run, text, write
from mindrecord_model import Raw, length, make, pack_ints, pack_map, read

SCHEMA = {"data": {"type": "bytes"}, "n": {"type": "int32"}, "t": {"type": "string"}}
ROWS = [{"data": b"row %d" % i * (i + 1), "n": i, "t": f"text {i}"} for i in range(6)]
EIO = errno.EIO


def content(*parts):
    return lib.content(path(*parts))


def array(*parts):
    return np.load(io.BytesIO(content(*parts)))


def made(change=None, rows=ROWS, schema=SCHEMA, **kwargs):
    kwargs.setdefault("rows_of_page", 3)
    return make(schema, rows, change=change, **kwargs)


def setting(**values):
    return lambda header: header | values


def page(number, **values):
    """Change an entry of the list of pages: 0 and 2 have blobs, 1 is raw."""
    def change(header):
        header["page"][number] |= values
    return change


def typed(**spec):
    def change(header):
        header["schema"][0]["schema"] = {"data": {"type": "bytes"}, "n": {"type": "int32"}, "t": spec}
    return change


def raw(i, values):
    """The raw row of row i is another."""
    return {**ROWS[i], "raw": values if isinstance(values, bytes) else pack_map(values)}


# ---- files that cannot be used: (the file, what its ERROR.txt says) ----

group = [{"id": 0, "offset": 0}]
errors = {
    "M-5": (made(typed(type="array", items={"type": "number"})), "pre-release MindRecord schema type 'array'"),
    "M-6": (made(setting(version="4.0")), "expected version 2.0 or 3.0, got 4.0"),
    "M-9a": (struct.pack("<Q", (1 << 27) + 1) + made()[8:], "expected the length of a header in the file"),
    "M-9b": (made(setting(header_size=16384, desc="x" * 16384), header_size=1 << 17), "expected a header of 16384 bytes"),
    "M-9c": (made(lambda h: b'{"header_size": 16384, broken'), "no JSON at line 1"),
    "M-9d": (made(lambda h: b'{"header_size": 16384, "\xff": 1}'), "no JSON at line 1"),
    "M-10a": (made(setting(header_size=0)), "expected header_size from 16384 to 134217728"),
    "M-10b": (made(setting(page_size=2 ** 29)), "expected page_size from 32768 to 268435456"),
    "M-10c": (made(page(0, page_id=2 ** 62)), "a page_id of its own"),
    "M-10d": (made(setting(header_size=-1)), "expected header_size"),
    "M-12": (made(page(1, row_group_ids=[{"id": 0, "offset": 30000}, {"id": 1, "offset": 0}])), "an offset in the page"),
    "M-13a": (made(page(1, row_group_ids=group + [{"id": 7, "offset": 9}])), "row groups that blob pages have"),
    "M-13b": (made(page(2, page_type_id=0)), "row group 0 has two blob pages"),
    "M-13c": (made(page(2, page_id=0)), "a page_id of its own"),
    "M-13d": (made(page(1, row_group_ids=group + group)), "row groups that no other raw page has"),
    "M-14a": (made(page(2, start_row_id=2)), "expected row 3 in the next blob page, got row 2"),
    "M-14b": (made(page(2, start_row_id=4)), "expected row 3 in the next blob page, got row 4"),
    "M-14c": (made(page(0, start_row_id=1)), "expected row 0 in the next blob page, got row 1"),
    "M-14d": (made(page(0, end_row_id=-1)), "start_row_id up to end_row_id"),
    "M-15": (made(page(2, end_row_id=2 ** 60)), "no more rows than its bytes can have"),
    "M-15b": (made(lambda h: h | {"page": [{"page_id": i, "page_type": "BLOB_DATA", "page_type_id": i,
                                            "start_row_id": i * 4096, "end_row_id": (i + 1) * 4096,
                                            "page_size": 32768, "row_group_ids": []} for i in range(300)]},
                   header_size=1 << 17), "expected 1228800 rows, got"),
    "M-26": (os.urandom(5000) + b"ENCRYPT", "encrypted MindRecord"),
    "M-26b": (made() + b"ENCRYPT", "encrypted MindRecord"),
    "M-28": (made(setting(shard_addresses=["a"] * 65537), header_size=1 << 20), "expected from 1 to 65536 shard_addresses, got 65537"),
    "shard": (made(setting(shard_id=1)), "expected shard_id from 0 to 0"),
    "type": (made(typed(type="complex")), "field 't': expected type bytes"),
    "blobs": (made(typed(type="bytes")), "field 't': expected blob_fields to have it"),
    "axes": (made(typed(type="int32", shape=[-1, -1])), "field 't': expected axes"),
    "axis": (made(typed(type="int32", shape=[1] * 9)), "field 't': expected a shape of 1 to 8 axes"),
    "used": (made(page(0, page_size=32769)), "used bytes, at most page_size"),
    "kind": (made(page(0, page_type="OTHER")), "page_type RAW_DATA or BLOB_DATA"),
    "many": (made(lambda h: h["schema"][0]["schema"].update({f"f{i}": {"type": "int32"} for i in range(99)})),
             "got 1 with 102"),
    "short": (b"\x80\0\0", "expected the length of a header, got 3 bytes"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", ""),
}

# ---- rows and fields that cannot be read: (the file, {row: fields that are lost}, what the note says) ----

BOTH, ALL = ("n", "t"), ("data", "n", "t")


def lie(at, value):
    """The length of one row is another."""
    return lambda i, data: struct.pack("<Q", value) + data[8:] if i == at else data


good = made()
packed = {"a": {"type": "int32", "shape": [-1]}}
shaped = {"a": {"type": "int64", "shape": [-1, 3]}}


def ints(*values, schema=packed, version="3.0"):
    rows = [{"a": v if isinstance(v, bytes) else np.array(v)} for v in values]
    return made(rows=rows, schema=schema, version=version)


ok = np.arange(4)
faults = {
    "M-11": (good[:16384 + 2 * 32768 + 20], {i: ("data",) for i in (3, 4, 5)}, "row 3: field 'data' cannot be read, nor can 2 other rows"),
    "M-12a": (made(blob_of=lie(1, 2 ** 63)), {1: ("data",), 2: ("data",)}, "row 1: field 'data' cannot be read, nor can 1 other"),
    "M-12b": (made(raw_of=lie(4, 10 ** 6)), {4: BOTH, 5: BOTH}, "row 4: field 'n' cannot be read, nor can 1 other"),
    "M-13e": (made(page(1, row_group_ids=group)), {i: BOTH for i in (3, 4, 5)}, "row 3: field 'n' cannot be read"),
    "M-19": (made(rows=[raw(0, {"t": "a"}), raw(1, {"n": 1, "t": "text 1", "other": 2.5, "none": None}), *ROWS[2:]]),
             {0: ("n",)}, "row 0: field 'n' cannot be read"),
    "M-20": (made(rows=[raw(0, {"n": "-12", "t": ""}), raw(1, {"n": 1.0, "t": ""}), raw(2, {"n": "1x", "t": ""}),
                        raw(3, {"n": "", "t": 5}), *ROWS[4:]]), {1: ("n",), 2: ("n",), 3: BOTH}, "row 1"),
    "M-21": (made(rows=[raw(0, {"n": 2 ** 31, "t": ""}), raw(1, {"n": -2 ** 31, "t": ""}),
                        raw(2, {"n": -2 ** 31 - 1, "t": ""}), raw(3, {"n": "9" * 30, "t": ""}),
                        raw(4, {"n": 2 ** 64 - 1, "t": ""}), ROWS[5]]),
             {0: ("n",), 2: ("n",), 3: ("n",), 4: ("n",)}, "row 0"),
    "M-22": (made(rows=[raw(0, {"n": 0, "t": "", "x": Raw(b"\xc4\x01a")}), raw(1, {"n": 0, "t": "", "x": Raw(b"\x91\x01")}),
                        raw(2, {"n": 0, "t": "", "x": Raw(b"\x81\xa1a\x01")}), raw(3, {"n": 0, "t": "", "x": Raw(b"\xd4\0\0")}),
                        raw(4, b"\x91" * 400), raw(5, b"")]), {i: BOTH for i in range(6)}, "row 0: field 'n'"),
    "map": (made(rows=[raw(0, b"\x82\xa1n\x01"), raw(1, pack_map({"n": 1, "t": ""}) + b"x"), raw(2, b"\x81\x01\x01"),
                       raw(3, b"\x82\xa1n\x01\xa1t\xbf"), *ROWS[4:]]), {i: BOTH for i in range(4)}, "row 0"),
}
arrays = {
    "M-16a": (ints(ok, struct.pack(">I", 1000) + b"\0" * 20, ok), {1}),
    "M-16b": (ints(ok, pack_ints(ok) + b"x", ok), {1}),
    "M-16c": (ints(ok, [], pack_ints([1000, 2, 3])[:-1], b"abc"), {2, 3}),
    "M-17": (ints(ok, pack_ints([2 ** 31]), pack_ints([-2 ** 31 - 1]), [-2 ** 31, 2 ** 31 - 1]), {1, 2}),
    "M-18a": (ints([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6], schema=shaped), {1}),
    "M-18b": (ints([1, 2, 3], [1, 2, 3, 4], schema={"a": {"type": "int64", "shape": [3]}}, version="2.0"), {1}),
    "M-18c": (ints(ok, b"1234567", version="2.0"), {1}),
}


def show(ds, i, field):
    key = f"{i:06}"
    if field == "data":
        return content(ds, f"samples/raw/{key}.bin")
    if field == "t":
        return content(ds, f"samples/txt/{key}.t.txt")
    return array(ds, f"samples/npy/{key}.{field}.npy")


def check_faults():
    for name, (data, lost, note) in faults.items():
        ds = f"{name}/x.mindrecord"
        equal(len(os.listdir(path(ds, "samples/npy"))), 6, f"{name}: each row stays")
        for i in range(6):
            for field in ALL:
                if field in lost.get(i, ()):
                    expect_error(EIO, show, ds, i, field)
                    expect_error(EIO, content, ds, f"samples/npz/{i:06}.npz")
                    continue
                got = show(ds, i, field)
                if field == "data":
                    equal(got, ROWS[i]["data"], f"{name}: row {i}")
        check = run("info", "--check", os.path.join(SOURCE, name), code=2)
        contains(check, note, *(f"row {i} at byte" for i in lost))
    equal(show("M-20/x.mindrecord", 0, "n"), -12)
    equal(show("M-21/x.mindrecord", 1, "n"), -2 ** 31)
    equal(show("M-19/x.mindrecord", 1, "n"), 1)
    for name, (_, lost) in arrays.items():
        ds = f"{name}/x.mindrecord"
        rows = len(os.listdir(path(ds, "samples/npy")))
        for i in range(rows):
            if i in lost:
                expect_error(EIO, show, ds, i, "a")
        contains(run("info", "--check", os.path.join(SOURCE, name), code=2), *(f"row {i} at byte" for i in lost))
        equal(show(ds, 0, "a").ravel()[0], {"M-18a": 1, "M-18b": 1}.get(name, 0), name)
    equal(show("M-16c/x.mindrecord", 1, "a").shape, (0,), "n = 0")
    equal(show("M-17/x.mindrecord", 3, "a").tolist(), [-2 ** 31, 2 ** 31 - 1])
    equal(show("M-18a/x.mindrecord", 2, "a").tolist(), [[1, 2, 3], [4, 5, 6]])


# ---- what is good although it looks strange ----

def check_strange():
    ds = "M-7/all"  # a shard without rows
    equal(len(os.listdir(path(ds, "samples/raw"))), 6)
    equal(array("M-21f/x.mindrecord/batches/batch=3/npy/000000.f.npy").tolist(), [np.inf, -np.inf, 1.5])
    want = [b'a"b\'c', b"nul\0inside", b"\xff\xfe", "é".encode()]
    for i, one in enumerate(want):
        equal(content(f"M-23/x.mindrecord/samples/txt/{i:06}.s.txt"), one + b"\n")
    equal(sorted(np.load(io.BytesIO(content("M-24/blob.mindrecord/batches/batch=2/npz/000000.npz"))).files),
          ["data", "data_offsets", "index", "key"])
    equal(sorted(np.load(io.BytesIO(content("M-24/raw.mindrecord/batches/batch=2/npz/000000.npz"))).files),
          ["index", "key", "n"])
    equal([int(i) for i in array("M-30/x.mindrecord/batches/batch=all/npy/000000.n.npy")], list(range(6)))
    contains(run("info", os.path.join(SOURCE, "left")), "expected the end of a page after its last row, got 5 bytes")
    equal(show("left/x.mindrecord", 5, "n"), 5)
    equal(show("sizes/x.mindrecord", 1, "n"), 1, "pages in another order than rows")


def check_hash():
    for name in ("sha224", "sha256", "sha384", "sha512", "sha3_224", "sha3_256", "sha3_384", "sha3_512"):
        equal(show(f"M-25/{name}.mindrecord", 5, "n"), 5)
        run("info", "--check", os.path.join(SOURCE, f"M-25/{name}.mindrecord"))
    for name in ("wrong", "length", "beyond"):
        equal(show(f"M-25bad/{name}.mindrecord", 5, "n"), 5)
        contains(run("info", "--check", os.path.join(SOURCE, f"M-25bad/{name}.mindrecord"), code=2),
                 "expected the hash of the bytes before it, got",
                 "another" if name == "wrong" else "a length that no known hash has")


# ---- shards ----

NAMES = [f"s.mindrecord{i}" for i in range(3)]


def shard(i, **kwargs):
    return made(rows=ROWS[2 * i:2 * i + 2], shard=i, addresses=NAMES, **kwargs)


def check_shards():
    def numbers(ds):
        return array(ds, "batches/batch=all/npy/000000.n.npy").tolist()

    equal(numbers("M-2/all"), list(range(6)), "in the order of shard_id")
    contains(run("info", os.path.join(SOURCE, "M-2")), "c.rec was written as 's.mindrecord0'")
    contains(text(path("M-8a/all/ERROR.txt")), "expected 3 shards, got none that is shard 1, 's.mindrecord1'")
    equal(numbers("M-8a/s.mindrecord2"), [4, 5])
    equal(numbers("M-8one/s.mindrecord1"), [2, 3], "alone")
    equal(os.path.exists(path("M-8one/all")), False)
    contains(text(path("M-8twice/all/ERROR.txt")), "expected each shard once, got shard 1")
    for name in ("a.mindrecord", "b.mindrecord"):
        equal(len(numbers(f"M-8b/{name}")), 6, "two datasets in a folder")
    equal(os.path.exists(path("M-8b/all")), False)
    equal(numbers("M-8c/s.mindrecord"), list(range(6)))
    contains(text(path("M-8last/all/ERROR.txt")), "none that is shard 2")


# ---- the files next to it ----

def check_beside():
    """No file of SQLite is opened, whatever it is; and each is omitted."""
    for name in beside:
        equal(sorted(os.listdir(path(name))), ["x.mindrecord"], name)
        for i in range(6):
            equal(show(f"{name}/x.mindrecord", i, "n"), i, name)
    trace = os.path.join(PRIVATE, "trace")
    strace = shutil.which("strace")
    if not strace or lib.SLOW:
        return
    done = subprocess.run([strace, "-f", "-qq", "-o", trace, "-e", "trace=open,openat,openat2", EPOCHFS, "info", "--check",
                           os.path.join(SOURCE, "M-27")], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode and b"ptrace" in done.stderr:
        return
    equal(done.returncode, 0, done.stderr)
    opened = lib.text(trace)
    contains(opened, 'x.mindrecord"')
    equal(".db" in opened, False, "a .db was opened")


beside = {
    "M-1": {},
    "M-3": {"x.mindrecord.db": b"SQLite format 3\0" + b'"10000"' * 1000},
    "M-4": {"x.mindrecord.db": b"SQLite format 3\0"},
    "M-27": {"x.mindrecord.db": b"SQLite format 3\0" + os.urandom(9000), "x.mindrecord.db-shm": b"x"},
    "M-29": {"x.mindrecord.db": b"", "x.mindrecord.db-wal": b"\x37\x7f\x06\x82" + os.urandom(500),
             "x.mindrecord.db-journal": b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + os.urandom(500)},
    "hostile": {"x.mindrecord.db": good},  # a dataset, if anyone asked it
}


def write_all():
    for name, (data, _) in errors.items():
        write(f"errors/{name}.mindrecord", data)
    for table in (faults, arrays):
        for name, (data, *_) in table.items():
            write(f"{name}/x.mindrecord", data)
    for name, files in beside.items():
        write(f"{name}/x.mindrecord", good)
        for file, data in files.items():
            write(f"{name}/{file}", data)
    two = ["s.mindrecord0", "s.mindrecord1"]
    write("M-7/s.mindrecord0", made(addresses=two))
    write("M-7/s.mindrecord1", made(rows=[], shard=1, addresses=two))
    write("M-21f/x.mindrecord", made(schema={"f": {"type": "float32"}},
                                     rows=[{"f": 1e300}, {"f": -1e300}, {"f": Raw(b"\xca" + struct.pack(">f", 1.5))}]))
    write("M-23/x.mindrecord", made(schema={"s": {"type": "string"}},
                                    rows=[{"s": v} for v in (b'a"b\'c', b"nul\0inside", b"\xff\xfe", "é".encode())]))
    write("M-24/blob.mindrecord", made(schema={"data": {"type": "bytes"}}, rows=ROWS))
    write("M-24/raw.mindrecord", made(schema={"n": {"type": "int32"}}, rows=ROWS))
    write("M-30/x.mindrecord", good)
    write("left/x.mindrecord", made(page(2, page_size=read(good)[0]["page"][2]["page_size"] + 5)) + b"\0" * 5)
    write("sizes/x.mindrecord", made(lambda h: h["page"].reverse()))
    for name in ("sha224", "sha256", "sha384", "sha512", "sha3_224", "sha3_256", "sha3_384", "sha3_512"):
        digest = hashlib.new(name, good).digest()
        write(f"M-25/{name}.mindrecord", good + digest + struct.pack(">I", len(digest)) + b"HASH")
    write("M-25bad/wrong.mindrecord", good + b"x" * 32 + struct.pack(">I", 32) + b"HASH")
    write("M-25bad/length.mindrecord", good + b"x" * 20 + struct.pack(">I", 20) + b"HASH")
    write("M-25bad/beyond.mindrecord", good + struct.pack(">I", 2 ** 32 - 1) + b"HASH")
    for i, name in enumerate(("c.rec", "a.rec", "b.rec")):
        write(f"M-2/{name}", shard(i))
    for i in (0, 2):
        write(f"M-8a/{NAMES[i]}", shard(i))
    for i in (0, 1):
        write(f"M-8last/{NAMES[i]}", shard(i))
    write(f"M-8one/{NAMES[1]}", shard(1))
    for i in range(3):
        write(f"M-8twice/{NAMES[i]}", shard(i))
        write(f"M-8c/{NAMES[i]}", shard(i))
    write("M-8twice/copy", shard(1))
    write("M-8c/other.mindrecord", made(addresses=["other.mindrecord"]))
    write("M-8b/a.mindrecord", made(addresses=["a.mindrecord"]))
    write("M-8b/b.mindrecord", made(addresses=["b.mindrecord"], version="2.0"))


write_all()
with mounted():
    for name, (_, reason) in errors.items():
        contains(text(path("errors", f"{name}.mindrecord", "ERROR.txt")), f"{name}.mindrecord",
                 "git-lfs" if name == "lfs" else reason)
    check_faults()
    check_strange()
    check_hash()
    check_shards()
    check_beside()
