#!/usr/bin/python3
"""An index next to the data that was forged, with checksums that fit: it is ignored, and the
mount makes its own."""

import hashlib
import struct
import zlib

import numpy as np

import tfrecord_model as tf
from lib import CACHE, SOURCE, content, equal, mounted, path, run, write

DIR = f"{SOURCE}/.epochfs"


def forge(change):
    """Change the one index in DIR; all sizes and checksums fit then."""
    with open(f"{DIR}/index.txt", encoding="utf-8") as f:
        lines = f.read().split("\n")
    joined = next(line for line in lines if line.startswith("joined ")).split(" ")[3]
    data = bytearray(change(content(DIR, joined)))
    data[12:16] = struct.pack("<I", zlib.crc32(data[16:]))
    with open(f"{DIR}/{joined}", "wb") as f:
        f.write(data)
    for i, line in enumerate(lines):
        if line.startswith(("index ", "joined ")):
            kind, *_, name = line.split(" ")
            lines[i] = f"{kind} {len(data)} {hashlib.sha256(data).hexdigest()} {name}"
    with open(f"{DIR}/index.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(lines))


def leave_out(data):
    """Features were omitted, and the first of them has no name: not even its kind."""
    one = struct.pack("<4Q", 1, 0, 0, 2)
    equal(data.count(one), 1, "places where the features begin")
    return data.replace(one, struct.pack("<4Q", 1, 7, 0, 2))


write("x.tfrecord", b"".join(tf.frame(tf.example(x=tf.integers(i))) for i in range(20)))
run("index", SOURCE, "-o", DIR, "-o", f"cache={CACHE}.1")
forge(leave_out)
equal("ignored" in run("info", "-o", f"cache={CACHE}.2", SOURCE), False, "a note of the forged index")
with mounted(SOURCE, f"cache={CACHE}.3,stage=off"):
    got = np.load(path("x.tfrecord/batches/batch=20/npy/000000.x.npy"))
    equal(got.tolist(), list(range(20)), "the values")
