#!/usr/bin/python3
"""The bars of the library (bench/groups/library.sh): library_bars.py BAR

500,000 samples of 784 bytes in a local IDX file, in memory, in batches of 1024; both sides in turn, with memory touched
before. Prints the rows of the table as cache_bars.py does.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np

from bars import ROUNDS, ratio, row
from lib import EPOCHFS, FASHION, PRIVATE, equal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f"{ROOT}/python")
import epochfs

N, BATCH = 500_000, 1024
FILE, NAME = f"{PRIVATE}/data/images", "images"
OPEN = f"""
import sys, time
sys.path.insert(0, {ROOT + '/python'!r})
import numpy, epochfs, epochfs._library
epochfs._library._functions()
begin = time.monotonic()
data = epochfs.load({FASHION!r})
batch = data['train'].batches('batch=128,seed=7').read(0)
print(time.monotonic() - begin)
"""


def make():
    os.makedirs(os.path.dirname(FILE))
    rng = np.random.default_rng(1)
    with open(FILE, "wb") as f:
        f.write(bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (N, 28, 28)))
        for _ in range(10):
            f.write(rng.integers(0, 256, N // 10 * 784, np.uint8).tobytes())


def by_library(data, epoch, fields, encoding="npz"):
    seen, begin = 0, time.monotonic()
    for batch in data[NAME].batches(f"batch={BATCH},seed=7", epoch=epoch, fields=fields, encoding=encoding):
        seen += len(batch["index"])
    equal(seen, N, "samples of an epoch")
    return time.monotonic() - begin


def by_numpy(images, order, memory, floats=None):
    begin = time.monotonic()
    for at in range(0, N, BATCH):
        chosen = order[at:at + BATCH]
        batch = np.take(images, chosen, axis=0, out=memory[:len(chosen)])
        if floats is not None:
            np.divide(batch, np.float32(255), out=floats[:len(chosen)], dtype=np.float32)
    return time.monotonic() - begin


def compare(name, fields, encoding, floats, bound):
    make()
    images = np.memmap(FILE, np.uint8, "r", 16, (N, 28, 28))
    order = np.random.default_rng(2).permutation(N)
    memory = np.ones((BATCH, 28, 28), np.uint8)
    out = np.ones((BATCH, 28, 28), np.float32) if floats else None
    size = N * 784 * (4 if floats else 1)
    ours, theirs = [], []
    with epochfs.load(os.path.dirname(FILE)) as data:
        by_numpy(images, order, memory, out)
        by_library(data, 0, fields, encoding)
        for epoch in range(ROUNDS):
            ours.append(by_library(data, epoch + 1, fields, encoding))
            theirs.append(by_numpy(images, order, memory, out))
    speed = [f"{size / 1e6 / statistics.median(times):.0f} MB/s" for times in (ours, theirs)]
    row(f"library: {name}, shuffled, 784 B, of numpy", *speed, ratio(theirs, ours), ">=", bound)


def bar_gather():
    compare("gather", ["image", "index"], "npz", False, 0.6)


def bar_image01():
    compare("gather to float32", ["image01", "index"], "npy", True, 1.0)


def bar_open():
    times = [float(subprocess.run([sys.executable, "-c", OPEN], check=True, stdout=subprocess.PIPE).stdout)
             for _ in range(ROUNDS + 1)][1:]
    median = statistics.median(times) * 1e3
    row("library: open to the first batch, index kept", f"{median:.1f} ms", "30 ms", median / 30, "<=", 1.0)


os.environ["EPOCHFS_LIBRARY"] = f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"
{"gather": bar_gather, "image01": bar_image01, "open": bar_open}[sys.argv[1]]()
