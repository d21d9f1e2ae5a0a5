#!/usr/bin/python3
"""A format of records (tests/support/record_format.c) that brings nothing but where its records
are: everything else comes from the core. Its numbers, arrays of one size and of many, bytes and
text are read with numpy in each encoding, as samples and as batches of each kind of plan, from a
folder and over HTTP. What a plan needs is fetched before it is read, and nothing else if the cache
is small: the core knows the extents of each record."""

import errno
import io
import os
import shutil
import struct
import sys
import tarfile

if not os.environ.get("EPOCHFS_RECORDS"):
    sys.exit(77)
os.environ["EPOCHFS"] = os.environ["EPOCHFS_RECORDS"]

import numpy as np

from lib import (CACHE, MOUNTPOINT, SOURCE, contains, content, equal, mounted, path, run, text,
                 write)
from servers import Nginx, check_once, sent, wait_until

rng = np.random.default_rng(17)


class Record:
    def __init__(self, key, image=0):
        rows = int(rng.integers(0, 9))
        self.key = key
        self.label = np.array(rng.integers(-9, 9), np.int32)
        self.box = rng.normal(size=(2, 3)).astype(np.float32)
        self.points = rng.integers(-99, 99, (rows, 2)).astype(np.int16)
        self.image = rng.bytes(image + int(rng.integers(0, 3000)))
        self.words = b"w" * int(rng.integers(1, 40))

    def data(self):
        return struct.pack("<HIII", len(self.key), len(self.points), len(self.image),
                           len(self.words)) + self.key + self.label.tobytes() + \
            self.box.tobytes() + self.points.tobytes() + self.image + self.words


def file_of(records):
    return b"TESTREC1" + b"".join(r.data() for r in records)


def array(*parts):
    return np.load(io.BytesIO(content(*parts)))


def same(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), f"{what}: form")
    equal(got.tolist(), want.tolist(), what)


def check_tar(data, records, what):
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            found[member.name] = tar.extractfile(member).read()
    for r in records:
        key = r.key.decode()
        for field in ("label", "box", "points"):
            same(np.load(io.BytesIO(found.pop(f"{key}.{field}.npy"))), getattr(r, field), what)
        equal(found.pop(f"{key}.image.jpg"), r.image, what)
        equal(found.pop(f"{key}.words.txt"), r.words + b"\n", what)
    equal(found, {}, f"{what}: members")


def check_sample(ds, r):
    key = r.key.decode()
    for field in ("label", "box", "points"):
        same(array(ds, "samples/npy", f"{key}.{field}.npy"), getattr(r, field), f"{key} {field}")
    equal(content(ds, "samples/raw", f"{key}.image.jpg"), r.image, key)
    equal(content(ds, "samples/txt", f"{key}.words.txt"), r.words + b"\n", key)
    npz = np.load(io.BytesIO(content(ds, "samples/npz", f"{key}.npz")))
    same(npz["points"], r.points, key)
    equal(npz["image"].tobytes(), r.image, key)
    equal(npz["words"].item(), r.words, key)
    check_tar(content(ds, "samples/tar", f"{key}.tar"), [r], key)


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def check_batch(folder, batch, numbers, records):
    rs, what = [records[n] for n in numbers], f"{folder}/{batch}"
    lengths = np.array([len(r.points) for r in rs], np.int64)
    padded = np.zeros((len(rs), max(lengths, default=0), 2), np.int16)
    for i, r in enumerate(rs):
        padded[i, :len(r.points)] = r.points
    npy = lambda field: array(folder, "npy", f"{batch}.{field}.npy")
    same(npy("label"), np.array([r.label for r in rs], np.int32), what)
    same(npy("box"), np.array([r.box for r in rs], np.float32), what)
    same(npy("points"), padded, what)
    same(npy("points_len"), lengths, what)
    same(npy("index"), np.array(numbers, np.int64), what)
    equal(content(folder, "npy", f"{batch}.key.txt"), b"".join(r.key + b"\n" for r in rs), what)
    npz = np.load(io.BytesIO(content(folder, "npz", f"{batch}.npz")))
    same(npz["points"], np.concatenate([r.points for r in rs]), what)
    same(npz["points_offsets"], offsets(lengths), what)
    equal(npz["image"].tobytes(), b"".join(r.image for r in rs), what)
    same(npz["image_offsets"], offsets([len(r.image) for r in rs]), what)
    equal(npz["words"].tolist(), [r.words for r in rs], what)
    equal(npz["key"].tolist(), [r.key for r in rs], what)
    same(npz["box"], np.array([r.box for r in rs], np.float32), what)
    equal(content(folder, "txt", f"{batch}.words.txt"), b"".join(r.words + b"\n" for r in rs), what)
    check_tar(content(folder, "tar", f"{batch}.tar"), rs, what)


def check_plan(ds, plan, order, batch, records):
    for i in range(0, len(order), batch):
        check_batch(f"{ds}/batches/{plan}", f"{i // batch:06}", order[i:i + batch], records)


def check_all(ds, records):
    for r in records[::7]:
        check_sample(ds, r)
    check_plan(ds, "batch=8", list(range(len(records))), 8, records)
    half = (len(records) + 1) // 2
    check_plan(ds, "batch=16,part=1of2", list(range(half, len(records))), 16, records)
    seeded = "batch=16,seed=3/epoch=1"
    order = [int(n) for b in sorted(os.listdir(f"{ds}/batches/{seeded}/npy"))
             if b.endswith(".index.npy") for n in array(ds, "batches", seeded, "npy", b)]
    equal(sorted(order), list(range(len(records))), "the shuffled order")
    check_plan(ds, seeded, order, 16, records)


BLOCK, HEAD = 4096, 16384  # HEAD: what is read of each file to recognise it


def blocks(start, end):
    return set(range(start // BLOCK, (end - 1) // BLOCK + 1))


def fetched(nginx):
    return set().union(*(blocks(r.range[0], r.range[0] + r.sent) for r in nginx.log() if r.sent))


def check_extents():
    """A rank's plan needs every fourth record, and the cache holds little more: these are fetched, none
    of the others, and the rank then waits for nothing."""
    records = [Record(b"c%03d" % i, 20_000) for i in range(161)]
    write("large/large.rec", file_of(records))
    place, need = 8, set()
    for i, r in enumerate(records):
        end = place + len(r.data())
        if i % 4 == 3:
            need |= blocks(place + 14 + len(r.key), end)
        place = end
    options = f"cache={CACHE}.large,block=4K"
    with Nginx(f"{SOURCE}/large") as nginx:
        with mounted(f"{nginx.url}/large.rec", options):  # keeps the index, which needs each record
            check_sample(path("large.rec"), records[-1])
        shutil.rmtree(f"{CACHE}.large/staged")
        nginx.forget()
        with mounted(f"{nginx.url}/large.rec", options, "plan=batch=4+rank=3of4",
                     f"cache_size={len(need) * BLOCK + 4 * HEAD}"):
            wait_until(lambda: need <= fetched(nginx), "what the plan needs is here")
            check_plan(path("large.rec"), "batch=4,rank=3of4", range(3, len(records), 4), 4, records)
            equal(sorted(fetched(nginx) - need - blocks(0, HEAD)), [], "blocks that the plan does not need")
            equal(sent(nginx.log()), len(need | blocks(0, HEAD)) * BLOCK, "bytes fetched")


def kept():
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(CACHE)
                  for name in names if name != "EPOCHFS" and not name.endswith(".part"))


a = [Record(b"a%03d" % i) for i in range(40)]
b = [Record(b"b%03d" % i) for i in range(23)]
write("one.rec", file_of(a))
write("two.rec", file_of(b))

with mounted():
    check_all(path("all"), a + b)
    check_all(path("two.rec"), b)
    try:
        os.stat(path("all/samples/npz/b023.npz"))
        raise AssertionError("a key that no record has")
    except OSError as e:
        equal(e.errno, errno.ENOENT)
    contains(text(path("all/dataset.json")), '"records"', '"samples": 63', '"points"', '[null, 2]')
    contains(os.getxattr(path("all/samples/npy/b000.label.npy"), "user.epochfs.source").decode(),
             "two.rec:")
contains(run("info", SOURCE), "format   records", "samples  63", "points   int16, varies x 2")
# The bytes of the pictures are no pictures, which is all that is wrong.
found = [line for line in run("info", "--check", SOURCE, code=2).split("\n") if ": record " in line]
equal(len(found), 63, "records that are reported")
equal([line for line in found if "expected a JPEG, PNG or WebP picture, got bytes" not in line], [], "other reports")

# The index is kept: a later mount takes it, and one that is damaged is made again.
files = kept()
equal(len(files), 2, f"kept indexes: {files}")
before = [os.stat(f).st_ino for f in files]
with mounted():
    check_sample(path("all"), b[-1])
equal([os.stat(f).st_ino for f in files], before, "kept indexes, used again")
with open(files[0], "r+b") as f:
    f.seek(-9, os.SEEK_END)
    f.write(b"damaged")
with mounted():
    check_all(path("all"), a + b)

# Over HTTP, through the stage: each byte once.
with Nginx(SOURCE) as nginx:
    with mounted(nginx.url, f"cache={CACHE}", "plan=batch=16+seed=3", "block=65536"):
        check_all(path("all"), a + b)
    check_once(nginx.log(), {"/one.rec": len(file_of(a)), "/two.rec": len(file_of(b))}, "records")
    contains(run("stage", "-o", f"cache={CACHE}", nginx.url), "2 files", "complete and correct")

check_extents()

# What cannot be read: a file is ERROR.txt, and so is what it would be part of.
write("two.rec", file_of(b)[:-5])
write("three.rec", b"TESTREC9")
with mounted():
    contains(text(path("three.rec/ERROR.txt")), "three.rec: byte 0: expected TESTREC1, got 'TESTREC9'")
    check_all(path("one.rec"), a)
    contains(text(path("two.rec/dataset.json")), "expected a record, got")
