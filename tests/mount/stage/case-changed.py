#!/usr/bin/python3
"""Source files that change while they are mounted: an error and a log line, never a wrong byte,
and the other datasets go on."""

import errno
import os
import shutil

import numpy as np

from lib import (PRIVATE, SOURCE, contains, content, equal, expect_error, idx_bytes, log_text,
                 mounted, path, small, status, write)

GONE = (errno.ESTALE, errno.EIO)
N = 4000
rng = np.random.default_rng(1)
OLD = rng.integers(0, 128, (N, 20, 20), dtype=np.uint8)
NEW = rng.integers(128, 256, (N, 20, 20), dtype=np.uint8)


def touch_later(file):
    """Give the file's new content another time than before, even on coarse clocks."""
    st = os.stat(file)
    os.utime(file, ns=(st.st_atime_ns, st.st_mtime_ns + 1_000_000))


def truncated(file):
    os.truncate(file, 1000)


def emptied(file):
    os.truncate(file, 0)


def longer(file):
    with open(file, "ab") as f:
        f.write(b"more")


def rewritten(file):
    with open(file, "r+b") as f:
        f.write(idx_bytes(NEW))
    touch_later(file)


def one_byte(file):
    with open(file, "r+b") as f:
        f.seek(16 + 400 * 3000)
        f.write(b"\xff")
    touch_later(file)


def replaced(file):
    with open(file + ".new", "wb") as f:
        f.write(idx_bytes(NEW))
    os.rename(file + ".new", file)


def removed(file):
    os.unlink(file)


def touched(file):
    touch_later(file)


CHANGES = [truncated, emptied, longer, rewritten, one_byte, replaced, removed, touched]


def check_pieces(file, size):
    """Read it piece by piece: each is old or an error, and there is an error."""
    old = OLD.tobytes()
    fd = os.open(file, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    errors = 0
    for off in range(0, size, 4096):
        try:
            got = os.pread(fd, 4096, off)
            equal(got == old[off:off + 4096], True, f"{file}: bytes at {off} are not the old ones")
        except OSError as e:
            equal(e.errno in GONE, True, f"{file}: {e}")
            errors += 1
    os.close(fd)
    equal(errors > 0, True, f"{file}: no read failed")


for change in CHANGES:
    name = change.__name__
    write(f"{name}-data", idx_bytes(OLD))
images, labels = small(10, "stays-")


def check_change(change):
    name = change.__name__
    at = path(f"{name}-data")
    kept = {f"{at}/samples/raw/000007.image.raw": OLD[7].tobytes(),
            f"{at}/batches/batch=10/raw/000003.image.raw": OLD[30:40].tobytes()}
    for file, want in kept.items():
        equal(content(file), want, file)
    every = f"{at}/batches/batch=all/raw/000000.image.raw"
    with open(every, "rb", buffering=0) as f:
        equal(f.read(4096), OLD.tobytes()[:4096], every)
    errors = status()["read_errors"]
    change(f"{SOURCE}/{name}-data")
    for file in ("samples/raw/000008.image.raw", "samples/npy/000007.image.npy",
                 "samples/npz/000001.npz", "samples/png/000001.image.png",
                 "batches/batch=10/npy/000004.image01.npy", "samples/tar/000007.tar",
                 "batches/batch=10,seed=3/epoch=1/npz/000000.npz", "preview.png",
                 f"source/{name}-data"):
        expect_error(GONE, content, f"{at}/{file}")
        os.stat(f"{at}/{file}")
    check_pieces(every, OLD.size)
    equal(status()["read_errors"] > errors, True, "read_errors")
    for file, want in kept.items():  # the kernel's pages are still right
        try:
            equal(content(file), want, file)
        except OSError as e:
            equal(e.errno in GONE, True, file)
    equal(len(os.listdir(f"{at}/samples/raw")), N, "listings answer")
    for i in range(10):
        equal(content(path(f"stays-train/samples/raw/{i:06d}.image.raw")), images[i].tobytes(),
              "another dataset")
    got = np.load(path("stays-train/batches/batch=all,seed=1/epoch=0/npz/000000.npz"))
    equal(np.array_equal(got["image"], images[got["index"]]), True, "another dataset, anew")


for change in CHANGES:  # a mount for each: a log holds 20 lines per second
    with mounted(log=f"log.{change.__name__}"):
        check_change(change)
    contains(log_text(f"log.{change.__name__}"), f"{change.__name__}-data: ",
             "changed, replaced or removed while mounted")

# With a label file gone, its images are not shown with labels of another time.
shutil.rmtree(SOURCE)
os.mkdir(SOURCE)
images, labels = small(50)
with mounted():
    content(path("train/samples/npz/000000.npz"))
    os.unlink(f"{SOURCE}/train-labels-idx1-ubyte")
    expect_error(GONE, content, path("train/samples/npz/000001.npz"))
    expect_error(GONE, content, path("train/samples/raw/000001.label.raw"))
    equal(status()["datasets"], 1, "status answers")

# A new mount sees the present files; a hard link elsewhere does no harm.
images, labels = small(50, seed=2)
os.link(f"{SOURCE}/train-images-idx3-ubyte", f"{PRIVATE}/linked")
with mounted():
    equal(content(path("train/samples/raw/000001.image.raw")), images[1].tobytes(), "new content")
