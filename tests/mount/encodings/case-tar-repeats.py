#!/usr/bin/python3
"""tail=wrap repeats samples if a share has fewer than a batch. In a tar a sample that follows
itself has a different key. So readers that take neighbours with one key for one sample, as
WebDataset does, see as many samples as the batch has; all other bytes are unchanged."""

import io
import os
import tarfile

import numpy as np

import kaldi_model
from lib import MOUNTPOINT, SOURCE, content, equal, idx_bytes, mounted, path, write

rng = np.random.default_rng(15)


def groups(data):
    """As WebDataset reads: the key is the name up to its first dot, neighbours of one key are a
    sample, and an extension that it has twice is an error."""
    out = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            key, _, ext = member.name.partition(".")
            if not out or out[-1][0] != key:
                out.append((key, {}))
            if ext in out[-1][1]:
                raise AssertionError(f"{member.name}: {ext} is there already")
            out[-1][1][ext] = tar.extractfile(member).read()
    return out


def check_tar(folder, plan, numbers, names):
    """The tar of a batch has these samples; numbers: of the samples, names: all keys."""
    data = content(folder, "batches", plan, "tar/000000.tar")
    found = groups(data)
    want = [names[n] + (f"~{i}" if i and numbers[i - 1] == n else "")
            for i, n in enumerate(numbers)]
    equal([key for key, _ in found], want, f"{plan}: keys")
    for (_, members), n in zip(found, numbers):
        alone = groups(content(folder, "samples/tar", f"{names[n]}.tar"))
        equal(members, alone[0][1], f"{plan}: sample {n}")
    equal(os.stat(f"{folder}/batches/{plan}/tar/000000.tar").st_size, len(data), f"{plan}: size")
    with open(f"{folder}/batches/{plan}/tar/000000.tar", "rb") as f:
        for at in rng.integers(0, len(data), 30):
            equal(os.pread(f.fileno(), 700, at), data[at:at + 700], f"{plan}: bytes at {at}")


PLANS = {"batch=5,tail=wrap": [0, 1, 2, 0, 1],
         "batch=4,part=2of3,tail=wrap": [2, 2, 2, 2],
         "batch=4,rank=1of3,tail=wrap": [1, 1, 1, 1],
         "batch=40,rank=1of6,tail=wrap": [1] * 40,
         "batch=2,rank=0of2,tail=wrap": [0, 2]}

write("x-images-idx3-ubyte", idx_bytes(rng.integers(0, 256, (3, 4, 5), np.uint8)))
write("x-labels-idx1-ubyte", idx_bytes(np.array([7, 200, 3], np.uint8)))
# A name of 100 bytes at most is in its header, a longer one takes two blocks more.
keys = [b"a", b"k" * 87, b"b" * 100]
write("t.ark", kaldi_model.write_ark(
    [(key, kaldi_model.write("matrix", rng.normal(size=(n + 1, 3)).astype(np.float32), "FM"))
     for n, key in enumerate(keys)]))
with mounted():
    for plan, numbers in PLANS.items():
        check_tar(path("x"), plan, numbers, ["000000", "000001", "000002"])
        check_tar(path("t.ark"), plan, numbers, [key.decode() for key in keys])
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
