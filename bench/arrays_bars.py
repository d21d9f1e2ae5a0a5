#!/usr/bin/python3
"""The bar of arrays (bench/groups/arrays.sh): arrays_bars.py BAR

Prints the rows of the table as cache_bars.py does.
"""

import os
import sys
import time

import numpy as np

from bars import ROUNDS, mb_per_s, mount, ratio, row
from lib import PRIVATE, equal, idx_bytes

SAMPLES, BATCH = 60_000, 128


def make():
    """The pictures of MNIST's size with their labels: one npz, and two IDX files."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (SAMPLES, 28, 28), "u1"), rng.integers(0, 10, SAMPLES).astype("u1")
    os.mkdir(f"{PRIVATE}/idx")
    os.mkdir(f"{PRIVATE}/npz")
    np.savez(f"{PRIVATE}/npz/mnist.npz", x_train=x, y_train=y)
    for name, array in (("train-images-idx3-ubyte", x), ("train-labels-idx1-ubyte", y)):
        with open(f"{PRIVATE}/idx/{name}", "wb") as f:
            f.write(idx_bytes(array))


def read_epoch(at, epoch):
    """Seconds, and bytes, of all npz batches of an epoch of the data set train."""
    folder, buffer, size = f"{at}/train/batches/batch={BATCH},seed=7/epoch={epoch}/npz", bytearray(1 << 20), 0
    names = sorted(os.listdir(folder))
    equal(len(names), -(-SAMPLES // BATCH), "batches")
    begin = time.monotonic()
    for name in names:
        with open(f"{folder}/{name}", "rb", buffering=0) as f:
            while n := f.readinto(buffer):
                size += n
    return time.monotonic() - begin, size


def bar_npz():
    make()
    first, again, sizes = {"npz": [], "idx": []}, {"npz": [], "idx": []}, {}
    for i in range(ROUNDS):
        for kind in ("npz", "idx") if i % 2 else ("idx", "npz"):
            with mount(f"{PRIVATE}/{kind}") as daemon:
                seconds, sizes[kind] = read_epoch(daemon.at, i)
                first[kind].append(seconds)
                again[kind].append(read_epoch(daemon.at, i)[0])
    assert abs(sizes["npz"] / sizes["idx"] - 1) < 0.02, f"the same bytes: {sizes}"
    for what, times in (("first read", first), ("warm", again)):
        row(f"npz of 60,000 x 28 x 28: shuffled batches, {what}", mb_per_s(sizes["npz"], times["npz"]),
            f"IDX {mb_per_s(sizes['idx'], times['idx'])}", ratio(times["idx"], times["npz"]), ">=", 0.95)


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
