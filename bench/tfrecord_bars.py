#!/usr/bin/python3
"""The bars of TFRecord (bench/groups/collections.sh): tfrecord_bars.py BAR

Prints the rows of the table as cache_bars.py does.
"""

import os
import statistics
import subprocess
import sys
import time

from bars import FAST, ROUNDS, WWW, Far, calm, empty, mb_per_s, mount, ratio, row, say, seconds
from lib import EPOCHFS, PRIVATE, content, equal
from servers import Nginx, remote

PROGRAM = os.path.join(os.path.dirname(EPOCHFS), "epochfs-bench-tfrecord")
RATE, DELAY = 100e6, 0.01  # bytes per second; seconds in each direction
CACHE = f"{PRIVATE}/cache"
PLAN = "batch=64,seed=7/epoch=0/tar"


def make(folder, *numbers):
    """Shards; returns their paths and bytes."""
    os.makedirs(folder)
    subprocess.run([PROGRAM, "make", folder, *map(str, numbers)], check=True)
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return files, sum(map(os.path.getsize, files))


def framing(*arguments):
    """A sequential reader. Returns its seconds and records."""
    out = subprocess.run([PROGRAM, "read", *arguments], check=True, stdout=subprocess.PIPE).stdout.split()
    return int(out[0]) / 1e6, int(out[1])


def index_seconds(folder):
    """`epochfs info`, which makes the index of each file."""
    empty(CACHE)
    os.mkdir(CACHE, 0o700)
    begin = time.monotonic()
    subprocess.run([EPOCHFS, "info", folder], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "EPOCHFS_CACHE": CACHE})
    return time.monotonic() - begin


def bar_index():
    files, size = make(f"{PRIVATE}/large", 16, 1250, 90000, 110000)
    ours, dd, checked = [], [], []
    for _ in range(ROUNDS):
        dd.append(sum(seconds("dd", f"if={f}", "of=/dev/null", "bs=1M", "status=none") for f in files))
        ours.append(index_seconds(f"{PRIVATE}/large"))
        checked.append(framing("-c", *files)[0])
    row("index of 2 GB TFRecord, records of 100 kB", mb_per_s(size, ours), f"dd {mb_per_s(size, dd)}",
        ratio(dd, ours), ">=", 0.5)
    row("index of 2 GB TFRecord", mb_per_s(size, ours), f"framing and CRC {mb_per_s(size, checked)}",
        ratio(checked, ours), "-", 0)
    empty(f"{PRIVATE}/large")
    n = 2000000
    make(f"{PRIVATE}/small", 1, n, 16, 64)
    ours = [index_seconds(f"{PRIVATE}/small") for _ in range(ROUNDS)]
    rate = n / statistics.median(ours)
    row("index of small records", f"{rate:.0f} records/s", "1000000 records/s", rate / 1e6, ">=", 1)


def bar_warm():
    """A shuffled epoch of shards in the page cache, first read, by one reader that does nothing else."""
    folder = f"{PRIVATE}/warm"
    files, size = make(folder, 16, 320, 90000, 110000)
    theirs = []
    for form in ("tar", "npz"):
        ours = []
        for _ in range(ROUNDS):
            theirs.append(framing(*files)[0])
            with mount(folder, f"cache_dir={CACHE}", "plan=batch=64+seed=7") as daemon:
                at = f"{daemon.at}/all/batches/batch=64,seed=7/epoch=0/{form}"
                begin = time.monotonic()
                got = sum(len(content(at, name)) for name in sorted(os.listdir(at)))
                ours.append(time.monotonic() - begin)
            equal(got > size * 0.99, True, "bytes of the epoch")
        row(f"first shuffled epoch as {form}, 16 warm shards of TFRecord", mb_per_s(size, ours),
            f"framing in order {mb_per_s(size, theirs)}", ratio(theirs[-ROUNDS:], ours), ">=", 0.7)


def bar_epoch():
    """From a mount of a far server to the end of a shuffled epoch, indexing included."""
    files, size = make(WWW, 16, 160, 90000, 110000)
    ours, theirs = [], []
    with Nginx(WWW, more=FAST) as server:
        for _ in range(ROUNDS):
            calm(False)
            empty(CACHE)
            with Far(server, RATE, delay=DELAY) as far:
                begin = time.monotonic()
                with mount(f"{far.urls[0]}/", f"cache_dir={CACHE}", "plan=batch=64+seed=7") as daemon:
                    folder = f"{daemon.at}/all/batches/{PLAN}"
                    got = sum(len(content(folder, name)) for name in sorted(os.listdir(folder)))
                    ours.append(time.monotonic() - begin)
                    equal(got > size, True, "bytes of the epoch")
                    found = remote(daemon.at)
                    equal(found["demand_bytes"] + found["background_bytes"], size, "bytes fetched once")
            with Far(server, RATE, delay=DELAY) as far:
                begin = time.monotonic()
                urls = [f"{far.urls[0]}/{os.path.basename(f)}" for f in files]
                with subprocess.Popen(["curl", "-sS", *urls], stdout=subprocess.PIPE) as curl:
                    out = subprocess.run([PROGRAM, "read", "/dev/stdin"], stdin=curl.stdout, check=True,
                                         stdout=subprocess.PIPE).stdout.split()
                theirs.append(time.monotonic() - begin)
                equal(int(out[1]), 16 * 160, "records of the reader")
            say(f"epoch {ours[-1]:.2f} s, sequential {theirs[-1]:.2f} s")
    row("first shuffled epoch, 16 far shards of TFRecord", mb_per_s(size, ours),
        f"framing in order {mb_per_s(size, theirs)}", ratio(theirs, ours), ">=", 0.7)


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
