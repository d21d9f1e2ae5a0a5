#!/usr/bin/python3
# slow: 100,000 files
# plain: memory that grows with names
"""(F-24) 10^4 and 10^5 files: memory grows by the packed table and the index, and by nothing else; the list of files is
kept for the next mount; a file that was changed in place since then is right after one mount more."""

import errno
import os
import random

import numpy as np

from lib import (CACHE, MOUNTPOINT, PRIVATE, content, equal, expect_error, mounted, path, start, stop)
from servers import wait_until

BYTES_MOST = 160  # of memory a file: 32 and its name in the table; its key in the index, twice while that is read


def make(root, n):
    """n files in 100 class folders; their content is their number."""
    for c in range(100):
        folder = f"{root}/set/class{c:02d}"
        os.makedirs(folder)
        for i in range(c, n, 100):
            fd = os.open(f"{folder}/class{c:02d}_{i}.jpg", os.O_CREAT | os.O_WRONLY, 0o644)
            os.write(fd, b"%d" % i)
            os.close(fd)
    return root


def kept():
    folder = os.path.join(CACHE, "listing")
    return os.listdir(folder) if os.path.isdir(folder) else []


def memory(daemon):
    with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def file_of(i):
    return f"set/samples/raw/class{i % 100:02d}_{i}.jpg"


def look(n):
    for i in random.Random(n).sample(range(n), 300):
        equal(content(path(file_of(i))), b"%d" % i, f"file {i}")
    batch = np.load(path("set/batches/batch=64,seed=1/epoch=0/npz/000003.npz"))
    for k in range(64):
        data = batch["jpg"][batch["jpg_offsets"][k]:batch["jpg_offsets"][k + 1]].tobytes()
        equal(int(data) % 100, int(batch["label"][k]), "label")


def mount_and_look(root, n):
    daemon = start(root)
    look(n)
    used = memory(daemon)
    stop(daemon)
    return used


def wait_kept(root):
    """Its folders must be old enough that a change would be seen."""
    def is_kept():
        with mounted(root):
            pass
        return len(kept()) == 1

    for name in kept():
        os.unlink(os.path.join(CACHE, "listing", name))
    wait_until(is_kept, "the list of files is kept")


small, large = make(f"{PRIVATE}/small", 10**4), make(f"{PRIVATE}/large", 10**5)
before = mount_and_look(small, 10**4)
grown = mount_and_look(large, 10**5) - before
equal(grown < 90000 * BYTES_MOST, True, f"grows by {grown} bytes for 90,000 files more")

wait_kept(large)
with mounted(large):
    look(10**5)
wait_kept(small)
with open(f"{small}/set/class07/class07_7.jpg", "wb") as f:
    f.write(b"in place")  # which the folder does not show
with mounted(small):
    expect_error((errno.ESTALE, errno.EIO), content, path(file_of(7)))
    equal(content(path(file_of(8))), b"8", "another file")
equal(kept(), [], "the list is dropped")
with mounted(small):
    equal(content(path(file_of(7))), b"in place", "the next mount")
os.unlink(f"{small}/set/class07/class07_7.jpg")
with mounted(small):
    equal(os.path.exists(path(file_of(7))), False, "a file that is gone")
    equal(len(os.listdir(path("set/samples/raw"))), 10**4 - 1, "samples")
