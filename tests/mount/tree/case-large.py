#!/usr/bin/python3
"""Rows I-9 and I-10: sparse files far beyond 2^31, up to 10^9 samples; the daemon keeps nothing per
file."""

import os
import random
import time

import numpy as np

import order_reference
from lib import (SLOW, SOURCE, content, equal, idx_header, mounted, path, skip, status, write)

ref = order_reference.load()
rng = random.Random(9)


def sparse(name, dims, marks, code=8):
    """An IDX file of zeros except marks: byte offset in the payload -> bytes."""
    file = write(name, idx_header(code, dims))
    head = 4 + 4 * len(dims)
    size = {8: 1, 13: 4}[code]
    for d in dims:
        size *= d
    try:
        with open(file, "r+b") as f:
            for off, data in marks.items():
                f.seek(head + off)
                f.write(data)
            f.truncate(head + size)
    except OSError as e:
        skip(f"no file of {size} bytes on {SOURCE}: {e}")
    return size


N = 10 ** 9
IMAGE = bytes(rng.randrange(256) for _ in range(784))
sparse("billion", [N, 28, 28], {(N - 1) * 784: IMAGE, 3 * 784: IMAGE, 2 ** 31 // 784 * 784: IMAGE})
sparse("wide", [3, 2 ** 31 + 5], {2 ** 31 + 5 + 2 ** 31: b"mark!"})
sparse("most", [2 ** 32 - 1], {2 ** 32 - 2: b"\7", 2 ** 31: b"\5"})


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


begin = time.monotonic()
with mounted():
    took = time.monotonic() - begin
    equal(took < 30, True, f"mounting took {took:.2f} s")
    equal(content(path("billion/samples/raw/999999999.image.raw")), IMAGE, "the last sample")
    equal(content(path("billion/samples/raw/000000003.image.raw")), IMAGE, "the fourth")
    equal(content(path(f"billion/samples/raw/{2 ** 31 // 784:09d}.image.raw")), IMAGE, "at 2^31")
    equal(content(path("billion/samples/raw/500000000.image.raw")), bytes(784), "in the middle")
    plan = "batch=6,rank=31of64,seed=7,tail=drop"
    for epoch, batch in ((3, 10 ** 6), (2 ** 64 - 1, 2604165)):
        want = ref.batch_samples(N, plan, epoch, batch)
        digits = len(str(ref.batch_count(N, plan) - 1))
        got = np.load(path(f"billion/batches/{plan}/epoch={epoch}/npy/{batch:0{digits}d}.index.npy"))
        equal(got.tolist(), want, plan)
    place = ref.order_inverse(5, 0, N, N - 1)
    got = np.load(path(f"billion/batches/batch=1,seed=5/epoch=0/npy/{place:09d}.image.npy"))
    equal(got.tobytes(), IMAGE, "the batch that has the last sample")
    every = path("billion/batches/batch=all/npy/000000.image.npy")
    equal(os.stat(every).st_size, 128 + N * 784, "batch=all: size")
    equal(np.load(every, mmap_mode="r")[-1].tobytes(), IMAGE, "batch=all, mapped: the last sample")
    equal(len(os.getxattr(path("billion/samples/raw/999999999.image.raw"),
                          "user.epochfs.source")) > 0, True, "attribute")
    with open(path("wide/samples/raw/000001.data.raw"), "rb") as f:
        f.seek(2 ** 31)
        equal(f.read(), b"mark!", "behind 2^31 of one sample")
    equal(content(path("most/samples/raw/4294967294.label.raw")), b"\7", "sample 2^32-2")
    equal(int(np.load(path("most/samples/npy/2147483648.label.npy"))), 5, "sample 2^31")
    numbers = set()
    pid = status()["pid"]
    before = rss_kib(pid)
    count = 2000 if SLOW else 20000
    for i in range(count):
        sample = rng.randrange(N)
        numbers.add(os.stat(path(f"billion/samples/raw/{sample:09d}.image.raw")).st_ino)
        if i % 4 == 0:
            epoch = rng.randrange(3)
            numbers.add(os.stat(path(f"billion/batches/batch=6,seed=7/epoch={epoch}/npz/"
                                     f"{sample // 6:09d}.npz")).st_ino)
    equal(len(numbers) >= count * 1.24, True, f"inode numbers: {len(numbers)} different ones")
    grown = rss_kib(pid) - before
    equal(SLOW or grown < 4096, True, f"the daemon grew by {grown} KiB in {count} opens")
    equal(SLOW or rss_kib(pid) < 32 * 1024, True, f"RSS: {rss_kib(pid)} KiB")
    listing = os.scandir(path("billion/samples/raw"))
    equal([next(listing).name for _ in range(3)],
          ["000000000.image.raw", "000000001.image.raw", "000000002.image.raw"], "a listing begins")
    listing.close()
