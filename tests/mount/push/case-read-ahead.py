#!/usr/bin/python3
"""A local source that is not in the page cache: the disk is asked for what comes next, many ranges at
once. One that is in it costs no request. A source that is cut meanwhile ends reads, and not the daemon."""

import errno
import os

import numpy as np

from lib import SOURCE, equal, expect_error, idx_bytes, mounted, skip, status, write
from push import resident, whole
from servers import wait_until

N, BATCH, PICTURE = 40000, 500, 28 * 28
NAME = "train-data"
FILE = os.path.join(SOURCE, NAME)
SIZE = 16 + N * PICTURE
PLAN = f"{NAME}/batches/batch={BATCH},seed=3/epoch=0/raw"


def forget():
    """Drop the source from the page cache."""
    with open(FILE, "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if resident(FILE) > SIZE // 2:
        skip("this filesystem keeps its files in memory")


def asked(at):
    push = status(at)["push"]
    return push["asked_bytes"] + push["sequence_bytes"]


def batch(at, i):
    return whole(f"{at}/{PLAN}/{i:06d}.image.raw")


def check_all(at, data):
    """An epoch has every picture once."""
    got = b"".join(batch(at, i) for i in range(N // BATCH))
    rows = np.frombuffer(got, "u1").reshape(N, PICTURE)
    equal(np.array_equal(np.sort(rows.view(f"V{PICTURE}").ravel()), np.sort(data.reshape(N, PICTURE).view(f"V{PICTURE}").ravel())),
          True, "the pictures of an epoch")


def asked_in_memory(data):
    """Bytes that are asked for of a source in memory. The kernel may drop some pages meanwhile, but not each time."""
    whole(FILE)
    with mounted(SOURCE) as at:
        check_all(at, data)
        return asked(at)


def main():
    data = np.random.default_rng(8).integers(0, 256, (N, 28, 28), dtype=np.uint8)
    write(NAME, idx_bytes(data))
    forget()
    with mounted(SOURCE) as at:
        batch(at, 0)
        # The file fits the memory, so all of it comes, before any other batch is read.
        wait_until(lambda: resident(FILE) >= SIZE, "the source is in memory")
        equal(asked(at) > SIZE // 2, True, "bytes that were asked for")
        check_all(at, data)
    wait_until(lambda: asked_in_memory(data) == 0, "no byte is asked for of a source in memory")
    forget()
    with mounted(SOURCE, "readahead=0") as at:
        check_all(at, data)
        equal(asked(at), 0, "bytes asked for without readahead")
    forget()
    with mounted(SOURCE) as at:  # the end comes while it asks
        batch(at, 0)
    with mounted(SOURCE) as below, mounted(f"{below}/{NAME}/source", at=path_beside("above")) as at:
        check_all(at, data)
        equal(asked(at), 0, "bytes asked of a filesystem that cannot say what is in memory")
    forget()
    with mounted(SOURCE) as at:
        batch(at, 0)
        os.truncate(FILE, SIZE // 2)
        expect_error((errno.ESTALE, errno.EIO), lambda: [batch(at, i) for i in range(N // BATCH)])
        status(at)


def path_beside(name):
    folder = os.path.join(os.environ["PRIVATE"], name)
    os.makedirs(folder)
    return folder


main()
