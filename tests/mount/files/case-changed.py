#!/usr/bin/python3
# slow: many changes of files
"""(F-25) A file that is replaced, cut, grown or removed under a reader: ESTALE for its sample and for batches
with it; all others go on. The kept list of files is dropped then."""

import errno
import io
import os

import numpy as np

import files_model as model
from lib import (CACHE, SOURCE, content, equal, expect_error, mounted, path, write)

N = 5000  # more than LISTING_KEPT in cache/source/listing.h
rng = np.random.default_rng(8)


def name(i):
    return f"train/c{i % 7}/{i:05d}.jpg"


def data(i):
    return b"%05d" % i * (i % 50 + 1)


def where(i):
    return path("train/samples/raw", f"{i:05d}.jpg")


def kept():
    folder = os.path.join(CACHE, "listing")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def check_rest(bad):
    for i in range(0, N, 97):
        if i not in bad:
            equal(content(where(i)), data(i), f"sample {i}")


def replaced(i):
    write(name(i) + ".new", b"x" * len(data(i)))
    os.rename(f"{SOURCE}/{name(i)}.new", f"{SOURCE}/{name(i)}")


CHANGES = {
    0: replaced,
    97: lambda i: os.truncate(f"{SOURCE}/{name(i)}", 2),
    194: lambda i: os.unlink(f"{SOURCE}/{name(i)}"),
    291: lambda i: write(name(i), data(i) + b"more"),
    388: lambda i: (os.unlink(f"{SOURCE}/{name(i)}"), os.symlink("/etc/passwd", f"{SOURCE}/{name(i)}")),
    485: lambda i: (os.unlink(f"{SOURCE}/{name(i)}"), os.mkdir(f"{SOURCE}/{name(i)}")),
    582: lambda i: (os.unlink(f"{SOURCE}/{name(i)}"), os.mkfifo(f"{SOURCE}/{name(i)}")),
}

for i in range(N):
    write(name(i), data(i))
with mounted():
    check_rest(())
    # What a sample is made of: the file, not the blob that joins all of them.
    equal(os.getxattr(where(50), "user.epochfs.source").decode(), f"{name(50)}:0+{len(data(50))}", "source")
    number = {int(i): k for k, i in enumerate(
        content(path("train/batches/batch=all/npy/000000.key.txt")).split())}
with mounted():
    for i, change in CHANGES.items():
        change(i)
    for i in CHANGES:
        expect_error(errno.ESTALE, content, where(i))
    check_rest(CHANGES)
    # A batch fails if a bad sample is in it, and only then.
    folder = path("train/batches/batch=50/npz")
    bad = {number[i] // 50 for i in CHANGES}
    for k in range(N // 50):
        if k in bad:
            expect_error(errno.ESTALE, content, folder, f"{k:06d}.npz")
        else:
            np.load(io.BytesIO(content(folder, f"{k:06d}.npz")))["jpg"]
    np.testing.assert_array_equal(np.load(path("train/batches/batch=50/npy/000000.label.npy")), [0] * 50)
with mounted():  # as it is now
    equal(content(where(0)), b"x" * len(data(0)), "replaced")
    equal(content(where(97)), data(97)[:2], "cut")
    expect_error(errno.ENOENT, content, where(194))
    equal(content(where(291)), data(291) + b"more", "grown")
    check_rest(CHANGES)
