#!/usr/bin/python3
"""Parquet that a writer by hand makes: numbers, text, bytes, lists and groups with and without nulls, in v1 and v2
pages, packed and not, in one file and in shards; what the Hub adds; pages that cannot be read."""

import base64
import errno
import io
import json
import os

import numpy as np

import lib
from lib import CACHE, PRIVATE, SOURCE, contains, equal, expect_error, mounted, path, run, text, write
from parquet_model import BOOLEAN, BYTES, DOUBLE, FIXED, FLOAT, GZIP, INT32, INT64, INT96, SNAPPY, make, thrift
from servers import Nginx

UTF8, LIST, MAP, DATE, INT8, DECIMAL, MILLIS, MICROS = 0, 3, 1, 6, 15, 5, 9, 10
FLOAT16, NOTHING, VARIANT = (thrift((member, 12, thrift())) for member in (15, 11, 16))
N = 23
JPEG = b"\xff\xd8\xff\xe0" + b"picture"
WAV = b"RIFF\0\0\0\0WAVEfmt "

NODES = [
    ("i", "required", INT64), ("ni", "optional", INT32), ("f", "optional", FLOAT), ("full", "optional", INT32),
    ("b", "required", BOOLEAN), ("i1", "required", INT32, {"converted": INT8}), ("day", "required", INT32, {"converted": DATE}),
    ("fix", "required", FIXED, {"length": 3}), ("old", "required", INT96),
    ("dec", "required", INT64, {"converted": DECIMAL, "scale": 2, "precision": 9}),
    ("big", "required", FIXED, {"converted": DECIMAL, "scale": 3, "precision": 30, "length": 13}),
    ("t", "optional", BYTES, {"converted": UTF8}),
    ("image", "optional", [("bytes", "optional", BYTES), ("path", "optional", BYTES, {"converted": UTF8})]),
    ("label", "optional", INT64),
    ("ids", "optional", [("list", "repeated", [("element", "required", INT64)])], {"converted": LIST}),
    ("words", "optional", [("list", "repeated", [("element", "optional", BYTES, {"converted": UTF8})])], {"converted": LIST}),
    ("grid", "required", [("list", "repeated", [("element", "required", [("list", "repeated", [("element", "required", FLOAT)])],
                                                 {"converted": LIST})])], {"converted": LIST}),
    ("turns", "optional", [("list", "repeated", [("element", "required", [
        ("role", "required", BYTES, {"converted": UTF8}), ("n", "optional", DOUBLE)])])], {"converted": LIST}),
    ("map", "optional", [("key_value", "repeated", [("key", "required", BYTES, {"converted": UTF8}),
                                                     ("value", "optional", INT32)])], {"converted": MAP}),
    ("s", "optional", [("x", "required", INT32), ("y", "optional", DOUBLE)]),
    ("clips", "optional", [("list", "repeated", [("element", "required", BYTES)])], {"converted": LIST}),
    ("half", "required", [("list", "repeated", [("element", "optional", FIXED, {"length": 2, "logical": FLOAT16})])], {"converted": LIST}),
    ("one", "required", FIXED, {"length": 1}),
    ("ones", "required", [("list", "repeated", [("element", "optional", FIXED, {"length": 1})])], {"converted": LIST}),
    ("when", "required", [("list", "repeated", [("element", "required", INT64, {"converted": MILLIS})])], {"converted": LIST}),
    ("none", "required", [("list", "repeated", [("element", "optional", INT32, {"logical": NOTHING})])], {"converted": LIST}),
    ("odd", "required", INT64, {"converted": UTF8}),
    ("variants", "required", [("list", "repeated", [("element", "required", [
        ("metadata", "required", BYTES), ("value", "required", BYTES)], {"logical": VARIANT})])], {"converted": LIST}),
]
FEATURES = {"gone": {"_type": "Value"}, "i1": {"_type": "ClassLabel", "names": ["no"]}, "label": {"_type": "ClassLabel", "names": ["cat", "dog"]}, "image": {"_type": "Image"},
            "grid": {"_type": "Array2D", "shape": [2, 3], "dtype": "float32"}, "when": {"_type": "Array2D", "shape": [1, 2]}}
METADATA = {"huggingface": json.dumps({"info": {"features": FEATURES}})}


def wrap(values):
    return None if values is None else {"list": [{"element": v} for v in values]}


def row(i):
    """(what the writer gets, what is shown; a field that is not in it is a hole)"""
    ids = None if i % 7 == 3 else list(range(i, i + i % 4))
    words = None if i % 5 == 2 else [None if k == 1 else f"wört{k}" for k in range(i % 4)]
    grid = [[i, 0.5, -1.0], [2.0, 3.0, float(i)]]
    turns = None if i == 4 else [("user" if k % 2 == 0 else "bot", None if k == 2 else k / 3) for k in range(i % 4)]
    table = None if i == 5 else {f"k{k}": None if k == 1 else k for k in range(i % 3)}
    clips = None if i == 6 else [WAV[:k] for k in range(i % 3)]
    s = None if i == 8 else {"x": i, "y": None if i % 2 else i / 4}
    stored = {
        "i": i * 10 ** 15, "ni": None if i % 3 == 1 else -i, "f": None if i == 2 else i / 8, "full": i, "b": i % 2 == 1,
        "i1": i - 9, "day": 20000 + i, "fix": bytes([i, 2, 3]), "dec": -125 * i,
        "old": (i * 1000).to_bytes(8, "little") + (2440588 + i).to_bytes(4, "little"),
        "big": (-123456789012345678 * i).to_bytes(13, "big", signed=True),
        "t": None if i == 1 else (f"text {i} ü" if i else "").encode(),
        "image": None if i == 3 else {"bytes": JPEG * i if i != 7 else None, "path": f"{i}.jpg".encode() if i != 9 else None},
        "label": None if i == 6 else i % 2, "ids": wrap(ids),
        "words": wrap(None if words is None else [w and w.encode() for w in words]),
        "grid": wrap([wrap(r) for r in grid]),
        "turns": wrap(turns and [{"role": r.encode(), "n": n} for r, n in turns] if turns is not None else None),
        "map": None if table is None else {"key_value": [{"key": k.encode(), "value": v} for k, v in table.items()]},
        "s": s, "clips": wrap(clips), "half": wrap([np.float16(i / 4).tobytes(), None]), "one": bytes([i]), "ones": wrap([bytes([i]), None]),
        "when": wrap([i] * (i % 3)), "none": wrap([None] * (i % 3)), "odd": i,
        "variants": wrap([{"metadata": b"\1\0\0", "value": b"\0"}])}
    want = {
        "i": np.int64(i * 10 ** 15), "ni": np.int32(-i), "f": np.float32(np.nan if i == 2 else i / 8), "full": np.int32(i),
        "b": np.bool_(i % 2), "i1": np.int8(i - 9), "day": np.int32(20000 + i), "fix": np.array([i, 2, 3], np.uint8),
        "old": np.int64(i * 86_400_000_000 + i), "dec": np.float64(-125 * i / 100), "big": big(-123456789012345678 * i),
        "t": f"text {i} ü" if i else "", "image": JPEG * i, "image.path": f"{i}.jpg", "label": np.int64(-1 if i == 6 else i % 2),
        "ids": np.array(ids or [], np.int64), "words": words, "grid": np.array(grid, np.float32),
        "turns": turns and [{"role": r, "n": n} for r, n in turns] if turns is not None else None,
        "map": table, "s.x": np.int32(i), "s.y": np.float64(np.nan if s is None or s["y"] is None else s["y"]),
        "clips": np.frombuffer(b"".join(clips or []), np.uint8), "clips_sizes": np.array([len(c) for c in clips or []], np.int64),
        "half": np.array([i / 4, np.nan], np.float16), "one": np.array([i], np.uint8), "ones": [base64.b64encode(bytes([i])).decode(), None],
        "when": np.array([i] * (i % 3), np.int64), "none": [None] * (i % 3), "odd": np.int64(i)}
    holes = {"ni": i % 3 == 1, "t": i == 1, "image": i in (3, 7), "image.path": i in (3, 9), "ids": ids is None, "words": words is None,
             "turns": turns is None, "map": table is None, "s.x": s is None, "clips": clips is None, "clips_sizes": clips is None}
    return stored, {k: v for k, v in want.items() if not holes.get(k)}


def big(v):
    sign, digits = "-" if v < 0 else "", str(abs(v)).zfill(4)
    return f"{sign}{digits[:-3]}.{digits[-3:]}"


ROWS = [row(i) for i in range(N)]
STORED = [stored for stored, _ in ROWS]


def same(got, want, what):
    if isinstance(want, (str, list, dict)):
        got = got.item().decode()
        equal(got if isinstance(want, str) else json.loads(got), want, what)
    elif isinstance(want, bytes):
        equal(got.tobytes(), want, what)
    else:
        equal((got.dtype, got.shape, got.tobytes()), (want.dtype, want.shape, want.tobytes()), what)


def check_samples(name, rows, first=0):
    """Each sample's npz has what the row has; raw has pictures as they are."""
    for i, (_, want) in enumerate(rows):
        with np.load(io.BytesIO(lib.content(path(name, f"samples/npz/{first + i:06d}.npz")))) as found:
            equal(sorted(found.files), sorted(want), f"{name} {i}")
            for field, value in want.items():
                same(found[field], value, f"{name} {i} {field}")
        raw = path(name, f"samples/raw/{first + i:06d}.jpg")
        if "image" in want:
            equal(lib.content(raw), want["image"], raw)
        else:
            expect_error(errno.ENOENT, open, raw)


def check_batch(name):
    """Numbers of a shuffled batch."""
    batch = np.load(io.BytesIO(lib.content(path(name, "batches/batch=23,seed=3/epoch=0/npz/000000.npz"))))
    for field in ("i", "f", "full", "b", "i1", "day", "old", "dec", "label", "fix", "grid", "one"):
        want = np.stack([ROWS[k][1][field] for k in batch["index"]])
        equal((batch[field].dtype, batch[field].tobytes()), (want.dtype, want.tobytes()), field)
    lengths = np.diff(batch["ni_offsets"])
    equal(lengths.tolist(), [int("ni" in ROWS[k][1]) for k in batch["index"]], "holes")


WAYS = {
    "plain": {}, "v2": {"v2": True, "codec": SNAPPY, "backwards": True}, "dictionary": {"dictionary": True, "codec": GZIP, "crc": True},
    "unknown-nulls": {"nulls": False, "v2": True}, "pages": {"page_rows": 1, "codec": SNAPPY, "groups": [9, 0, 14]}}
for way, options in WAYS.items():
    write(f"{SOURCE}/{way}/x.parquet", make(NODES, STORED, metadata=METADATA, **options))

# Shards that are one dataset, one that is not like them, and what is no Parquet.
for k, part in enumerate((STORED[:10], STORED[10:11], STORED[11:])):
    write(f"{SOURCE}/shards/train-{k:05d}-of-00003.parquet", make(NODES, part, metadata=METADATA))
write(f"{SOURCE}/shards/test-00000-of-00001.parquet", make(NODES[:2], STORED[:3]))
write(f"{SOURCE}/shards/_metadata", make(NODES, []))
for k, unit in enumerate((MILLIS, MICROS)):  # of a list, of which a shard has another unit
    write(f"{SOURCE}/units/x-{k}.parquet", make(
        [("t", "required", [("list", "repeated", [("element", "required", INT64, {"converted": unit})])], {"converted": LIST})],
        [{"t": wrap([1])}]))
    logical = thrift((8, 12, thrift((1, 1 + k, b""), (2, 12, thrift((2, 12, thrift())))))) # of which one is UTC
    write(f"{SOURCE}/zones/x-{k}.parquet", make([("t", "required", INT64, {"logical": logical})], [{"t": 1}]))

# Pictures without paths, and a shard that has one.
for k, paths in enumerate(([None, None], [None, b"p"])):
    write(f"{SOURCE}/paths/x-{k}.parquet", make(NODES[12:13], [{"image": {"bytes": JPEG, "path": p}} for p in paths]))

# More columns of bytes than there are slots for places.
write(f"{SOURCE}/wide/x.parquet", make([(f"c{i}", "optional", BYTES) for i in range(700)], [{f"c{i}": b"%d" % i for i in range(700)}]))

# Faults: a file each, and what its ERROR.txt says, or which samples fail.
good = make([("a", "required", INT32), ("t", "required", BYTES, {"converted": UTF8})],
            [{"a": i, "t": b"%d" % i} for i in range(8)], crc=True)
broken = {
    "cut": (good[:-9], "cut off, or still being written"),
    "encrypted": (good[:-4] + b"PARE", "it is encrypted"),
    "length": (good[:-8] + b"\xff\xff\xff\x7fPAR1", "the length of a footer inside the file"),
    "zero": (good[:-8] + b"\0\0\0\0PAR1", "the length of a footer inside the file"),
    "garbage": (good[:-40] + b"\xff" * 32 + good[-8:], ""),
    "none": (make([], []), "no columns"),
    "short": (b"PAR1PAR1", "at least 12 bytes")}
for name, (data, _) in broken.items():
    write(f"{SOURCE}/bad/{name}.parquet", data)
at = good.index(bytes([4, 0, 0, 0, 5, 0, 0, 0])) # values 4, 5 of the second page of a
write(f"{SOURCE}/flip/x.parquet", good[:at] + b"\x05" + good[at + 1:])
write(f"{SOURCE}/card/README.md", b"---\nconfigs:\n- config_name: a\n  data_files: x-*\n---\n")
write(f"{SOURCE}/card/x-0.parquet", good)
write(f"{SOURCE}/card/x-1.parquet", good[:at] + b"\x05" + good[at + 1:])
write(f"{SOURCE}/range/x.parquet", make([("i1", "required", INT32, {"converted": INT8})], [{"i1": v} for v in (1, 300, -1)]))

with mounted():
    for way in WAYS:
        check_samples(f"{way}/x.parquet", ROWS)
    check_batch("plain/x.parquet")
    check_batch("pages/x.parquet")
    about = json.loads(text(path("plain/x.parquet/dataset.json")))
    equal(about["classes"], ["cat", "dog"], "classes")
    equal(about["times"], {"day": {"unit": "day", "utc": False}, "old": {"unit": "us", "utc": False},
                           "when": {"unit": "ms", "utc": True}}, "times")
    contains(str(about["notes"]), "'i1': its names of classes are ignored", "'huggingface' that are missing: 1",
             "'odd' has a logical type that is not read", "'variants' is ignored: VARIANT", "'when': its shape is ignored",
             "'image': values without bytes, whose paths are never opened: 1")
    equal(about["written_by"], "by hand", "writer")
    equal([f["shape"] for f in about["fields"] if f["name"] == "grid"], [[2, 3]], "grid")

    with np.load(io.BytesIO(lib.content(path("wide/x.parquet/samples/npz/000000.npz")))) as found:
        equal({k: v.tobytes() for k, v in found.items() if k[0] == "c"}, {f"c{i}": b"%d" % i for i in range(700)}, "wide")

    for name, fields in {"x-0.parquet": ["image"], "all": ["image", "image.path"]}.items():
        about = json.loads(text(path(f"paths/{name}/dataset.json")))
        equal([f["name"] for f in about["fields"][:-2]], fields, f"fields of {name}")
    found = [np.load(io.BytesIO(lib.content(path(f"paths/all/samples/npz/{i:06d}.npz")))) for i in range(4)]
    equal([z["image.path"].item() if "image.path" in z else None for z in found], [None, None, None, b"p"], "paths")

    # Bytes that lie in the file as they are come from there.
    source = os.getxattr(path("plain/x.parquet/samples/raw/000005.jpg"), "user.epochfs.source").decode()
    name, place = source.rsplit(":", 1)
    start, size = map(int, place.split("+"))
    equal(open(f"{SOURCE}/{name}", "rb").read()[start:start + size], JPEG * 5, "place")

    check_samples("shards/train.parquet", ROWS)
    contains(str(os.listdir(path("shards"))), "train-00001-of-00003.parquet")
    contains(run("info", f"{SOURCE}/zones"), "expected times in the unit and the zone")
    for name in "shards/all", "units/all", "zones/all":
        equal(os.path.exists(path(name)), False, "files that differ are not joined")
    equal(os.path.exists(path("shards/_metadata")), False, "metadata of a folder")

    for name, (_, message) in broken.items():
        contains(text(path(f"bad/{name}.parquet/ERROR.txt")), f"{name}.parquet: ", message)
    for i in range(8):
        sample = path(f"flip/x.parquet/samples/npz/{i:06d}.npz")
        if 4 <= i:
            expect_error(errno.EIO, lib.content, sample)
        else:
            equal(int(np.load(io.BytesIO(lib.content(sample)))["a"]), i, sample)
    expect_error(errno.EIO, lib.content, path("range/x.parquet/samples/npz/000001.npz"))
    equal(int(np.load(io.BytesIO(lib.content(path("range/x.parquet/samples/npz/000002.npz"))))["i1"]), -1, "neighbour")
    for name in "flip", "card":
        contains(run("info", "--check", f"{SOURCE}/{name}", code=2), "page at byte", "expected the CRC of the header")

# More pages than are remembered: a shuffled batch has a row of each.
LARGE = [bytes([i]) * (1 << 20) + b"%d" % i for i in range(40)]
write(f"{SOURCE}/large/x.parquet", make([("b", "required", BYTES)], [{"b": b} for b in LARGE], codec=GZIP, page_rows=1))
with mounted(f"{SOURCE}/large"):
    batch = np.load(io.BytesIO(lib.content(path("x.parquet/batches/batch=40,seed=3/epoch=0/npz/000000.npz"))))
    ends = batch["b_offsets"]
    for i, k in enumerate(batch["index"]):
        equal(batch["b"][ends[i]:ends[i + 1]].tobytes() == LARGE[k], True, f"row {k} of a large batch")

# Few large rows of pages, which are unpacked without the others of their pages.
LARGE = [None if i % 9 == 5 else np.random.default_rng(i).bytes(60_000 + 1000 * i) for i in range(40)]
for way, options in {"v1": {}, "v2": {"v2": True}}.items():
    write(f"{SOURCE}/rows/{way}.parquet",
          make([("b", "optional", BYTES)], [{"b": b} for b in LARGE], codec=SNAPPY, page_rows=12, **options))
with mounted(f"{SOURCE}/rows"):
    for name, k in ((f"{way}.parquet", k) for way in ("v1", "v2") for k in range(10)):
        batch = np.load(io.BytesIO(lib.content(path(name, f"batches/batch=4,seed=3/epoch=0/npz/{k:06d}.npz"))))
        ends = batch["b_offsets"]
        for i, at in enumerate(batch["index"]):
            equal(batch["b"][ends[i]:ends[i + 1]].tobytes() == (LARGE[at] or b""), True, f"{name}: row {at}")

# A kept index is used again, and all is as before.
with mounted():
    check_samples("unknown-nulls/x.parquet", ROWS[:3])

# The same from a server, in blocks; of each file at most its bytes and the ends of blocks are sent.
far = os.path.join(PRIVATE, "http")
for way in ("plain", "pages", "dictionary"):
    write(f"{far}/{way}.parquet", lib.content(f"{SOURCE}/{way}/x.parquet"))
with Nginx(far) as nginx:
    with mounted(nginx.url, f"cache={CACHE}", "block=4096"):
        for way in ("plain", "pages", "dictionary"):
            check_batch(f"{way}.parquet")
        check_samples("plain.parquet", ROWS)
        check_samples("pages.parquet", ROWS[:9])
    sent = sum(r.sent for r in nginx.log() if r.path.endswith(".parquet"))
    equal(sent <= sum(os.path.getsize(f"{far}/{name}") for name in os.listdir(far)), True, f"each byte once: {sent}")
