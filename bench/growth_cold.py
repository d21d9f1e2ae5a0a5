#!/usr/bin/python3
"""Cold reads cost in proportion to their number: growth_cold.py BAR [NUMBER...] prints rows as
bench/run does.

The functions measure one point each, for a table of growth or by hand:

    cold_batch(n, enc)       seconds of one batch of n scattered samples, nothing staged
    cold_jobs(jobs)          seconds until that many jobs, each with its own seed, have read
    cold_readers(readers)    the same for ranks of one plan, which together always read the same
    pass_of(batch, seed)     transfer = compute: seconds of both, the first batch, the epoch
"""

import contextlib
import glob
import os
import subprocess
import sys
import time

import lib
import numpy as np
import orders
from bars import FAST, IMAGE, WWW, calm, dataset, empty, make_images, mount, row, say, warm
from lib import PRIVATE
from servers import Nginx, remote

BIG = ("big-images", 392)
EPOCH = ("epoch-images", 157)
READ = """
import sys, time
first, *paths = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for path in paths:
    with open(path, "rb") as f:
        while f.read(1 << 20):
            pass
"""


@contextlib.contextmanager
def cold(data, *options, more=FAST, **settings):
    """A mount of a file over HTTP, with nothing staged."""
    name, mb = data
    if not os.path.exists(f"{WWW}/{name}"):
        make_images(name, mb)
    for other in os.listdir(WWW):  # one dataset at a time
        os.rename(f"{WWW}/{other}", f"{PRIVATE}/{other}" if other != name else f"{WWW}/{name}")
    cache = f"{PRIVATE}/cache"
    empty(cache)
    calm(drop=False)
    warm(name)
    with Nginx(WWW, more=more, connections=1024, **settings) as server:
        with mount(f"{server.url}/", f"cache_dir={cache}", *options) as daemon:
            yield daemon
    empty(cache)


def paths_of(daemon, plan, enc, n=None, epoch=0):
    """The files of an epoch in order, without a listing: their numbers give the names."""
    folder = f"{dataset(daemon.at)}/batches/{plan}/epoch={epoch}/{enc}"
    names = sorted(os.listdir(folder))
    names = [name for name in names if enc != "npy" or name.endswith(".image.npy")]
    return [f"{folder}/{name}" for name in (names if n is None else names[:n])]


def cpu(daemon):
    with open(f"/proc/{daemon.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_all(lists):
    """A process for each list of files; returns the seconds until the last one is done."""
    readers = [subprocess.Popen([sys.executable, "-c", READ, "-", *paths], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE) for paths in lists]
    for reader in readers:
        reader.stdout.readline()
    begin = time.monotonic()
    for reader in readers:
        reader.stdin.write(b"\n")
        reader.stdin.flush()
    codes = [reader.wait() for reader in readers]
    took = time.monotonic() - begin
    lib.equal(codes, [0] * len(codes), "exit codes of the readers")
    return took


def cold_batch(n, enc="npy", *options):
    """Seconds of the first batch of n samples, in the order of a shuffle over all."""
    with cold(BIG, "prefetch=off", "readahead=0", *options) as daemon:
        paths = paths_of(daemon, f"batch={n},seed=7", enc, 1)
        took = read_all([paths])
        counted = remote(daemon.at)
        say(f"batch of {n} ({enc}): {took:.3f} s, {took / n * 1e6:.0f} µs each, "
            f"{counted['requests']} requests, {cpu(daemon):.2f} s of CPU")
    return took


def cold_jobs(jobs, batches=100, batch=500):
    """Seconds until every job has read that many batches, each in its own order."""
    with cold(BIG, "prefetch=off") as daemon:
        lists = [paths_of(daemon, f"batch={batch},seed={seed + 1}", "npy", batches)
                 for seed in range(jobs)]
        took = read_all(lists)
        say(f"{jobs} jobs: {took:.2f} s, {cpu(daemon):.2f} s of CPU")
    return took


def cold_readers(readers, batches=400, batch=125):
    """The same samples, read by that many ranks of one plan."""
    with cold(BIG, "prefetch=off") as daemon:
        lists = [paths_of(daemon, f"batch={batch},rank={k}of{readers},seed=1" if readers > 1
                          else f"batch={batch},seed=1", "npy", batches // readers)
                 for k in range(readers)]
        took = read_all(lists)
        say(f"{readers} readers: {took:.2f} s, {cpu(daemon):.2f} s of CPU")
    return took


def pass_of(batch=1000, seed=3, rate=2450000, jobs=8):
    """An epoch with compute as long as its transfer: (epoch, first batch, transfer)."""
    with cold(EPOCH, limit_rate=rate) as daemon:
        size = os.stat(f"{WWW}/{EPOCH[0]}").st_size
        transfer = size / (rate * jobs)
        n = (size - 16) // IMAGE
        folder = f"{dataset(daemon.at)}/batches/batch={batch},seed={seed}/epoch=0/npy"
        count = -(-n // batch)
        width = max(6, len(str(count - 1)))
        pause, first = transfer / count, None
        begin = time.monotonic()
        for k in range(count):
            with open(f"{folder}/{k:0{width}}.image.npy", "rb") as f:
                while f.read(1 << 20):
                    pass
            if first is None:
                first, counted = time.monotonic() - begin, remote(daemon.at)
            end = time.monotonic() + pause  # the compute of this batch
            while (left := end - time.monotonic()) > 0:
                time.sleep(left)
        took = time.monotonic() - begin
        say(f"epoch: {took:.2f} s, transfer {transfer:.2f} s ({took / transfer:.3f}), "
            f"{remote(daemon.at)['requests']} requests, {cpu(daemon):.2f} s of CPU; "
            f"first batch {first:.3f} s, {counted['requests']} requests, "
            f"{(counted['demand_bytes'] + counted['background_bytes']) / 1e6:.1f} MB "
            f"({counted['demand_bytes'] / 1e6:.1f} for it)")
    return took, first, transfer


def floor_of(batch=1000, seed=3, rate=2450000, jobs=8, mb=EPOCH[1]):
    """The least seconds that this takes, (epoch, first batch), if only blocks are transferred,
    without a pause and in the order of need. A pass may be faster: nginx limits each connection,
    and small transfers have more than `jobs`."""
    n = mb * 1000000 // IMAGE
    size = 16 + n * IMAGE
    block = next(b for b in (4096 << k for k in range(6)) if -(-size // b) <= 32768)
    order = orders.full(seed, 0, n).astype(np.int64)
    here = np.zeros(-(-size // block), bool)
    pause, done, firsts = size / (rate * jobs) / -(-n // batch), 0, []
    for begin in range(0, n, batch):
        off = 16 + order[begin:begin + batch] * IMAGE
        here[off // block] = here[(off + IMAGE - 1) // block] = True
        come = min(np.count_nonzero(here) * block, size) / (rate * jobs)
        firsts.append(come)
        done = max(done, come) + pause
    return done, firsts[0]


# ---- bars ----

def bar_batch(*numbers):
    numbers = [int(n) for n in numbers] or [100, 1000, 5000, 20000]
    for enc in ("npy", "npz"):
        each = [cold_batch(n, enc) / n * 1e6 for n in numbers]
        for n, us in zip(numbers, each):
            row(f"cold batch of {n}, {enc}", f"{us:.0f} µs a sample", "", us, "<=", 300)
        row(f"the same, {numbers[-1]} against {numbers[0]}", "", "", each[-1] / each[0], "<=", 2)


def bar_jobs(*numbers):
    numbers = [int(n) for n in numbers] or [1, 2, 4, 8]
    times = [cold_jobs(n) for n in numbers]
    row(f"cold, {numbers[-1]} jobs", f"{times[-1]:.1f} s", f"{numbers[0]}: {times[0]:.1f} s",
        times[-1] / times[0], "<=", 4)


def bar_readers(*numbers):
    numbers = [int(n) for n in numbers] or [1, 8]
    times = [cold_readers(n) for n in numbers]
    row(f"cold, {numbers[-1]} ranks", f"{times[-1]:.1f} s", f"{numbers[0]}: {times[0]:.1f} s",
        times[-1] / times[0], "<=", 1.2)


def bar_epoch():
    took, first, transfer = pass_of()
    floor, first_floor = floor_of()
    row("epoch, transfer = compute", f"{took:.2f} s, {took / transfer:.2f} x the larger",
        f"floor of blocks {floor:.2f} s", took / floor, "<=", 1.08)
    row("its first batch", f"{first:.2f} s", f"floor of blocks {first_floor:.2f} s", first, "<=",
        0.3)


if __name__ == "__main__":
    globals()["bar_" + sys.argv[1]](*sys.argv[2:])
