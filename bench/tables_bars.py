#!/usr/bin/python3
"""The bars of tables (bench/groups/tables.sh): tables_bars.py BAR

Prints the rows of the table as cache_bars.py does.
"""

import os
import subprocess
import sys
import time

import numpy as np

from bars import ROUNDS, empty, mb_per_s, mount, ratio, row, seconds
from lib import EPOCHFS, PRIVATE, equal

ROWS, COLUMNS = 1_900_000, 29  # 400 MB
CACHE = f"{PRIVATE}/cache"
XGBOOST = "import sys, time, xgboost; t = time.monotonic(); d = xgboost.DMatrix(sys.argv[1] + '?format=csv'); " \
          "print(d.num_row(), time.monotonic() - t)"


def make(path):
    rng = np.random.default_rng(1)
    with open(path, "w", encoding="ascii") as f:
        for _ in range(ROWS // 10000):
            f.writelines(",".join(f"{v:.5g}" for v in line) + "\n" for line in rng.normal(0, 100, (10000, COLUMNS)).tolist())


def index_seconds(path):
    empty(CACHE)
    os.mkdir(CACHE, 0o700)
    begin = time.monotonic()
    subprocess.run([EPOCHFS, "info", path], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "EPOCHFS_CACHE": CACHE})
    return time.monotonic() - begin


def bar_csv():
    path = f"{PRIVATE}/table.csv"
    make(path)
    lines, index, theirs, stored, shuffled = [], [], [], [], []
    os.environ["EPOCHFS_CACHE"] = CACHE
    for i in range(min(ROUNDS, 5)):
        lines.append(seconds("wc", "-l", path))
        index.append(index_seconds(path))
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", XGBOOST, path], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        rows, took = done.stdout.split()
        equal(int(rows), ROWS, "rows of XGBoost")
        theirs.append(float(took))
        with mount(path) as daemon:
            for times, plan in ((stored, "batch=1024"), (shuffled, f"batch=1024,seed=7/epoch={i}")):
                folder = f"{daemon.at}/table.csv/batches/{plan}/npz"
                begin, size = time.monotonic(), 0
                for name in sorted(os.listdir(folder)):
                    with open(f"{folder}/{name}", "rb") as f:
                        size += len(f.read())
                times.append(time.monotonic() - begin)
                equal(size > ROWS * COLUMNS * 4, True, "bytes of an epoch")
    size = os.path.getsize(path)
    row("index of CSV, 400 MB", mb_per_s(size, index), f"wc -l {mb_per_s(size, lines)}", ratio(lines, index), ">=", 0.25)
    row("first epoch, batch=1024 npz", mb_per_s(size, stored), f"xgboost.DMatrix {mb_per_s(size, theirs)}",
        ratio(theirs, stored), ">=", 1.0)
    row("shuffled epoch", mb_per_s(size, shuffled), f"stored order {mb_per_s(size, stored)}", ratio(stored, shuffled), ">=", 0.3)


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
