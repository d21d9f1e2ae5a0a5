#!/usr/bin/python3
"""The bars of collections on a remote (bench/groups/collections.sh): collection_bars.py BAR

Prints the rows of the table as cache_bars.py does.
"""

import concurrent.futures
import contextlib
import http.client
import os
import random
import statistics
import subprocess
import sys
import threading
import time

import lib
from bars import FAST, WWW, Far, all_staged, calm, empty, mount, ratio, row, say
from lib import PRIVATE, equal
from servers import Nginx, wait_until

ROUNDS = int(os.environ.get("EPOCHFS_BENCH_ROUNDS", "3"))
FILES, CLASSES = 10000, 100
RATE, DELAY = 100e6, 0.01  # bytes per second; seconds in each direction
CONNECTIONS = 8
SHARE = 20  # rclone reads this part of the files: all of them take minutes


def make_folder():
    """Files of 10 to 20 KB in class folders; returns their paths and their bytes in all."""
    rng, names, size = random.Random(1), [], 0
    for i in range(FILES):
        folder = f"class{i % CLASSES:03d}"
        os.makedirs(f"{WWW}/{folder}", exist_ok=True)
        data = rng.randbytes(rng.randrange(10000, 20000))
        with open(f"{WWW}/{folder}/{i:06d}.jpg", "wb") as f:
            f.write(data)
        names.append(f"{folder}/{i:06d}.jpg")
        size += len(data)
    return names, size


def fetch_all(url, names):
    """A loader with CONNECTIONS connections, which knows the names. Returns its seconds."""
    host = url.removeprefix("http://")
    left, lock = iter(names), threading.Lock()

    def work():
        connection, got = http.client.HTTPConnection(host), 0
        while True:
            with lock:
                name = next(left, None)
            if name is None:
                return got
            connection.request("GET", f"/{name}")
            got += len(connection.getresponse().read())

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        got = sum(f.result() for f in [pool.submit(work) for _ in range(CONNECTIONS)])
    return time.monotonic() - begin, got


@contextlib.contextmanager
def rclone(url):
    at, cache = f"{PRIVATE}/rclone", f"{PRIVATE}/rclone-cache"
    empty(cache)
    os.makedirs(at, exist_ok=True)
    process = subprocess.Popen(
        ["rclone", "mount", ":http:", at, "--http-url", url, "--vfs-cache-mode", "full",
         "--cache-dir", cache, "--config", f"{PRIVATE}/no-rclone.conf", "--read-only"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: lib.mount_type(at), "rclone has mounted", process)
        yield at
    finally:
        subprocess.run(["umount", at], check=False)
        process.wait(60)
        empty(cache)


def read(path):
    with open(path, "rb") as f:
        return len(f.read())


def read_epoch(at):
    """All batches of a shuffled epoch, one after another. Returns their bytes."""
    folder = f"{at}/all/batches/batch=64,seed=7/epoch=0/tar"
    return sum(read(f"{folder}/{name}") for name in sorted(os.listdir(folder)))


def bar_far_folder():
    names, size = make_folder()
    cache = f"{PRIVATE}/cache"
    mounted, firsts = [], []
    with Nginx(WWW, more=FAST) as server:
        def ours():
            empty(cache)
            calm(False)
            with Far(server, RATE, delay=DELAY) as far:
                begin = time.monotonic()
                with mount(f"{far.urls[0]}/", f"cache_dir={cache}", "plan=batch=64+seed=7") as daemon:
                    mounted.append(time.monotonic() - begin)
                    read(f"{daemon.at}/all/batches/batch=64,seed=7/epoch=0/tar/000000.tar")
                    firsts.append(time.monotonic() - begin - mounted[-1])
                    got = read_epoch(daemon.at)
                    took = time.monotonic() - begin
                    found = all_staged(daemon)
                equal(got > size, True, "bytes of the epoch")
                fetched = found["demand_bytes"] + found["background_bytes"]
                equal(fetched, found["distinct_bytes"], "bytes, each fetched once")
                say(f"requests: {far.seen()['requests']}")
            return took

        def loader():
            with Far(server, RATE, delay=DELAY) as far:
                took, got = fetch_all(far.urls[0], names)
            equal(got, size, "bytes of the loader")
            return took

        def theirs(readers):
            with Far(server, RATE, delay=DELAY) as far, rclone(far.urls[0]) as at:
                begin = time.monotonic()
                with concurrent.futures.ThreadPoolExecutor(readers) as pool:
                    sum(pool.map(lambda name: read(f"{at}/{name}"), names[::SHARE]))
                return (time.monotonic() - begin) * SHARE

        a, b, c, d = [], [], [], []
        for _ in range(ROUNDS):
            a.append(ours())
            b.append(loader())
            c.append(theirs(1))
            d.append(theirs(CONNECTIONS))
            say(f"{a[-1]:.1f} {b[-1]:.1f} {c[-1]:.1f} {d[-1]:.1f}, mounted after {mounted[-1]:.1f}, "
                f"first batch after {firsts[-1]:.2f} s more")
    what = "10,000 files over HTTP, first epoch"
    own = f"{statistics.median(a):.1f} s"
    row(what, own, f"8 connections {statistics.median(b):.1f} s", ratio(a, b), "<=", 0.7)
    row(what, own, f"rclone, one reader {statistics.median(c):.0f} s", ratio(a, c), "<=", 0.3)
    row(what, own, f"rclone, 8 readers {statistics.median(d):.0f} s", ratio(a, d), "<=", 0.3)


globals()[f"bar_{sys.argv[1]}"]()
