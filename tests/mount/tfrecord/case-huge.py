#!/usr/bin/python3
# slow: reads 2 GiB
"""A record that is larger than a message can be, in a sparse file: its bytes are served, and so are
the records next to it."""

import errno
import os
import struct

import numpy as np

import tfrecord_model as tf
from lib import CACHE, SLOW, SOURCE, contains, content, equal, expect_error, mounted, path, run, skip, write

if SLOW:
    skip("2 GiB take long here")
HUGE = 1 << 31
OF_ZEROS = 0x49258FD2  # masked CRC-32C of so many zeros
GOOD = [tf.example(i=tf.integers(k)) for k in (5, 6)]

length = struct.pack("<Q", HUGE)
file = write("huge.tfrecord", tf.frame(GOOD[0]) + length + struct.pack("<I", tf.masked(length)))
with open(file, "r+b") as f:
    f.seek(HUGE, os.SEEK_END)
    f.write(struct.pack("<I", OF_ZEROS) + tf.frame(GOOD[1]))
with mounted(SOURCE, f"cache={CACHE}"):
    samples = path("huge.tfrecord/samples")
    equal(sorted(os.listdir(f"{samples}/raw")), [f"{i:06}.record" for i in range(3)], "records")
    for i, k in ((0, 0), (2, 1)):
        equal(content(samples, f"raw/{i:06}.record"), GOOD[k], f"record {i}")
        equal(np.load(f"{samples}/npy/{i:06}.i.npy").item(), 5 + k, f"record {i}")
    equal(os.stat(f"{samples}/raw/000001.record").st_size, HUGE, "bytes of the huge one")
    with open(f"{samples}/raw/000001.record", "rb") as f:
        f.seek(HUGE - 5)
        equal(f.read(), bytes(5), "its end")
    expect_error(errno.EIO, content, f"{samples}/npy/000001.i.npy")
contains(run("info", "-o", f"cache={CACHE}", SOURCE), "no tf.train.Example: 1")
