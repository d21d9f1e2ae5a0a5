#!/usr/bin/python3
"""Shards of MosaicML Streaming, of this machine and over HTTP: values in place, packed shards, merged indexes, samples that are
damaged and indexes that lie. With SHARED_DATA, also shards that the library wrote, against what it reads."""

import bz2
import decimal
import errno
import hashlib
import io
import json
import os
import re
import shutil
import struct
import tarfile

import numpy as np

import mds_model
from lib import CACHE, SOURCE, contains, content, equal, mounted, path, run, text, write
from mds_model import array, index
from servers import Nginx

SHARED = os.environ.get("SHARED_DATA", "/nowhere")
NAMES, CODES, SIZES = ["a", "f", "s"], ["ndarray:int16", "jpeg", "float32"], [None, None, 4]


def sample(i):
    return mds_model.sample(SIZES, [array(np.arange(i % 3, dtype="i2")), b"\xff\xd8\xff" + bytes([i]) * i, struct.pack("<f", i / 2)])


def wide(i):  # two axes, of which the second differs
    return mds_model.sample([None], [array(np.arange(2 * (i % 3 + 1), dtype="i2").reshape(2, -1))])


def shard(numbers, change=None, of=sample):
    return mds_model.shard([of(i) for i in numbers], change)


def entry(*arguments, **more):
    return mds_model.entry((NAMES, CODES, SIZES), *arguments, **more)


one, two = shard(range(5)), shard(range(5, 12))
falling = shard(range(5), lambda at: [at[0], at[2], at[1], *at[3:]])
write("two/index.json", index(entry("shard.00000.mds", one, 5), entry("shard.00001.mds", two, 7, bz2.compress(two))))
write("two/shard.00000.mds", one)
write("two/shard.00001.mds.bz2", bz2.compress(two))
write("merged/index.json", index(entry("1/shard.00000.mds", two, 7), entry("0/shard.00000.mds", one, 5)))
write("below/index.json", index(entry("1/shard.00000.mds", two, 7, bz2.compress(two)), entry("0/shard.00000.mds", one, 5)))
for name, data, n in (("0", one, 5), ("1", two, 7)):
    write(f"merged/{name}/index.json", index(entry("shard.00000.mds", data, n)))
    write(f"merged/{name}/shard.00000.mds", data)
    write(f"below/{name}/shard.00000.mds" + ".bz2" * int(name), bz2.compress(data) if name == "1" else data)
write("falling/index.json", index(entry("shard.00000.mds", falling, 5)))
write("falling/shard.00000.mds", falling)
write("lines/index.json", b'{"shards": [{"raw_meta": {"basename": "shard.00000.json.meta"}}], "version": 2}')
write("lines/shard.00000.json", b'{"a": 1}\n')
write("lines/shard.00000.meta.jsonl", b'{"a": 1}\n')  # rows, whatever its name
write("lines/shard.00000.json.meta.zstd", bz2.compress(b"\1\0\0\0"))
axes = shard(range(5), of=wide)
write("axes/index.json", index(entry("shard.00000.mds", axes, 5, column_names=["a"], column_encodings=CODES[:1], column_sizes=[None])))
write("axes/shard.00000.mds", axes)
refused = {
    "alone/shard.00000.mds": (None, ["expected index.json in its folder"]),
    "count": (index(entry("shard.00000.mds", one, 6)), ["expected 6 samples of index.json, got 5"]),
    "short": (index(entry("shard.00000.mds", one + b"x", 5)), [f"expected {len(one) + 1} bytes"]),
    "outside": (index(entry("../two/shard.00000.mds", one, 5)), ["expected shards below its folder"]),
    "gone": (index(entry("shard.00007.mds", one, 5)), ["gone/shard.00007.mds"]),
    "differ": (index(entry("shard.00000.mds", one, 5), entry("shard.00000.mds", one, 5, column_sizes=[None, 4, 4])), ["the same columns"]),
    "version": (index(entry("shard.00000.mds", one, 5), version=1), ["got version 1"]),
    "sizes": (index(entry("shard.00000.mds", one, 5, column_sizes=[None, None, 8])), ["expected 4 bytes, which float32 has, got 8"]),
    "packing": (index(dict(entry("shard.00001.mds", one, 5), compression="snappy")), ["got snappy"]),
}
for name, (data, _) in refused.items():
    write(name if data is None else f"{name}/shard.00000.mds", one)
    if data is not None:
        write(f"{name}/index.json", data)

write("hash/shard.00000.mds", one)
write("hash/index.json", index(dict(entry("shard.00000.mds", one, 5), zip_data={"basename": "shard.00000.mds"}, raw_data={
    "basename": "shard.00000.mds", "bytes": len(one), "hashes": {"sha256": "0" * 64}})))

# What --check finds in the second of two shards.
checked = {
    "offsets": (falling, {}, "sample 1: expected its offsets to rise"), "longer": (one + b"x", {}, f"expected {len(one)} bytes"),
    "sums": (one, {"sha1": "0" * 40, "xxh64": "0" * 16}, "expected sha1 " + "0" * 40)}
# Nothing is wrong with these sums, or they are ignored.
fine = {"capitals": {"sha256": hashlib.sha256(one).hexdigest().upper()}, "others": {"shake128": "0" * 32, "sha3-256": "0" * 64}}
for name, (data, hashes, _) in [*checked.items(), *((name, (one, hashes, "")) for name, hashes in fine.items())]:
    write(f"checked-{name}/0.mds", one)
    write(f"checked-{name}/1.mds", data)
    write(f"checked-{name}/index.json", index(entry("0.mds", one, 5), dict(entry("1.mds", one, 5), raw_data={
        "basename": "1.mds", "bytes": len(one), "hashes": hashes})))

EIO = {"bad/jpeg_array_count": {0, 1}, "bad/ndarray_shape_differs": {0}, "bad/ndarray_type_unknown": {1}, "bad/offset_beyond": {2, 3},
       "bad/offset_in_header": {0}, "bad/size_beyond_sample": {2}}
ERRORS = {"bad/column_size_lies", "bad/count_2g", "bad/count_larger", "bad/index_not_json", "bad/index_samples_differ",
          "bad/packed_brotli_named", "bad/path_outside", "bad/shard_missing", "bad/shard_version_3",
          "bad/truncated", "bad/version_1"}
shared = []
if os.path.isdir(f"{SHARED}/mds"):
    with open(f"{SHARED}/hub-expected/mds.json", encoding="utf-8") as f:
        shared = json.load(f)
    shutil.copytree(f"{SHARED}/mds", f"{SOURCE}/mds", copy_function=shutil.copyfile)


def members(ds, i):
    """Members of a sample: name without its number -> bytes; None: it cannot be read."""
    try:
        data = content(path(ds, f"samples/tar/{i:06}.tar"))
    except OSError as e:
        equal(e.errno, errno.EIO, f"{ds}: sample {i}")
        return None
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        return {m.name.split(".", 1)[1]: t.extractfile(m).read() for m in t}


def find(got, name, want, what):
    """The value of a column in a tar, as bytes or an array."""
    found = [(k, v) for k, v in got.items() if re.fullmatch(re.escape(name) + r"(_bin|_u?(int|float)\d+(_\dd)?)?\.\w+", k)]
    equal(len(found), 1, f"{what} {name} among {list(got)}")
    ext, data = found[0][0].rsplit(".", 1)[-1], found[0][1]
    return np.load(io.BytesIO(data)) if ext == "npy" else data


def check_value(got, name, want, what):
    value = find(got, name, want, what)
    stored = want.get("stored") if isinstance(want, dict) else None
    if stored is not None:
        return  # pixels and lists: below
    if isinstance(want, dict) and "hex" in want:
        equal(value.hex(), want["hex"], f"{what} {name}")
    elif isinstance(want, dict) and "shape" in want:
        size = int(np.prod(want["shape"])) * np.dtype(want["dtype"]).itemsize
        if not isinstance(value, bytes):
            equal((list(value.shape), value.dtype.name), (want["shape"], want["dtype"]), f"{what} {name}")
            value = value.tobytes()
        equal(hashlib.sha256(value[len(value) - size:]).hexdigest(), want["sha256"], f"{what} {name}")  # perhaps as it is stored
    elif isinstance(want, dict) and "sha256" in want:
        equal(hashlib.sha256(value).hexdigest(), want["sha256"], f"{what} {name}")
    elif isinstance(want, dict) and "decimal" in want:
        equal(decimal.Decimal(value.decode().strip()), decimal.Decimal(want["decimal"]), f"{what} {name}")
    elif isinstance(value, bytes) and isinstance(want, str) and f"{name}.json" not in got:
        equal(value.decode().removesuffix("\n"), want, f"{what} {name}")
    elif isinstance(value, bytes):
        equal(json.loads(value), want, f"{what} {name}")
    else:
        equal(value.item(), want, f"{what} {name}")


def check_shared(row):
    ds = row["folder"]
    name = ds[4:]
    if name.startswith("merged/"):
        equal(os.path.exists(path(ds, "samples")), False, f"{ds}: no dataset of its own")
        return
    if name in ERRORS:
        text(path(ds, "ERROR.txt"))
        return
    if name == "bad/packed_hash_wrong":  # compared when it was unpacked
        return
    if name in ("csv_shards", "json_shards"):
        shard_name = os.listdir(path(ds))[0]
        equal(json.loads(text(path(ds, shard_name, "dataset.json")))["samples"], row["samples"], ds)
        return
    n = row.get("samples", 6)
    equal(json.loads(text(path(ds, "dataset.json")))["samples"], n, ds)
    values = row.get("values") or row.get("first", []) + [{}] * (n - len(row.get("first", [])) - 1) + row.get("last", [])
    for i in range(n):
        got = members(ds, i)
        equal(got is None, i in EIO.get(name, ()), f"{ds}: sample {i} cannot be read")
        for column, want in (values[i] if got and i < len(values) else {}).items():
            if not (isinstance(want, dict) and "ERROR" in want):
                check_value(got, column, want, f"{ds} {i}")


def check():
    for ds, order in (("two", range(12)), ("merged", [*range(5, 12), *range(5)]), ("below", [*range(5, 12), *range(5)])):
        npz = np.load(path(ds, "batches/batch=all/npz/000000.npz"))
        equal(npz["s"].tolist(), [i / 2 for i in order], ds)
        at, ends = npz["a_offsets"], npz["f_offsets"]
        for k, i in enumerate(order):
            equal(npz["a"][at[k]:at[k + 1]].tolist(), list(range(i % 3)), f"{ds} {i}")
            equal(npz["f"][ends[k]:ends[k + 1]].tobytes(), b"\xff\xd8\xff" + bytes([i]) * i, f"{ds} {i}")
    equal([os.path.exists(path("merged", n)) for n in "01"], [False, False], "children of a merged index")
    equal(sorted(os.listdir(path("lines"))), ["shard.00000.json", "shard.00000.meta.jsonl"], "rows of text and no .meta")
    equal([members("falling", i) is None for i in range(5)], [True, True, True, False, False], "offsets that fall")
    npz = np.load(path("axes", "batches/batch=all/npz/000000.npz"))
    equal(npz["a_shape"].tolist(), [[2, i % 3 + 1] for i in range(5)], "axes of arrays")
    equal(npz["a"].tolist(), [k for i in range(5) for k in range(2 * (i % 3 + 1))], "arrays of several axes")
    for name, (_, words) in refused.items():
        contains(text(path(name, "ERROR.txt")), *words)
    for row in shared:
        check_shared(row)


with mounted():
    check()
contains(run("info", f"{SOURCE}/hash", code=2), "not usable", "expected sha256 0000")
for name, (_, _, words) in checked.items():
    contains(run("info", "--check", f"{SOURCE}/checked-{name}", code=2), f"1.mds: {words}")
for name in fine:
    equal("of index.json" in run("info", "--check", f"{SOURCE}/checked-{name}", code=2), False, f"{name}: a sum that is wrong")
if shared:
    contains(run("info", f"{SOURCE}/mds/bad/packed_hash_wrong", code=2), "not usable", "shard.00000.mds.zstd: expected sha1 0000")
with Nginx(SOURCE) as nginx:
    with mounted(nginx.url, f"cache={CACHE}/far"):
        check()
    fetched = sum(r.sent for r in nginx.log() if r.path == "/two/shard.00000.mds")
    equal(fetched, len(one), "each byte comes once")
