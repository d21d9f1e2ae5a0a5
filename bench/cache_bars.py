#!/usr/bin/python3
"""The bars of remote sources (bench/groups/cache.sh): cache_bars.py BAR

Prints a line for each row of the table, separated by tabs: what, measured, compared with, ratio,
operator and bound. The servers and mounts come from tests/mount; $PRIVATE is an empty folder on the
measured disk. Both sides of a ratio are measured in turns, ours first in every other round, after a
sync and with an empty page cache; the ratio is the median over the rounds.
"""

import contextlib
import glob
import multiprocessing
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time

import lib
import servers
from bars import (FAST, IMAGE, ROUNDS, WWW, all_staged, block_of, calm, dataset, dd, empty, limited,
                  make_images, mb_per_s, mount, ratio, row, say, seconds, warm)
from lib import PRIVATE, equal
from servers import MiB, Nginx, remote, sent, start_at, wait_until


def alternate(*sides):
    """Measure each side ROUNDS times, in turns that begin with another side each; returns the times
    of each."""
    times = [[] for _ in sides]
    for i in range(ROUNDS):
        for k in range(len(sides)):
            k = (k + i) % len(sides)
            times[k].append(sides[k]())
        say("  ".join(f"{t[-1]:.3f}" for t in times))
    return times


@contextlib.contextmanager
def rclone(url):
    """rclone mount of a server, with an empty cache on our disk."""
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


# ---- the passes ----

def bar_first_pass():
    name = "big-images"
    make_images(name, 400)
    size = os.stat(f"{WWW}/{name}").st_size
    cache = f"{PRIVATE}/cache"
    with Nginx(WWW, more=FAST) as server:
        def prepare():
            empty(cache)
            empty(f"{PRIVATE}/copy")
            calm()
            warm(name)

        def ours():
            prepare()
            with mount(f"{server.url}/", f"cache_dir={cache}") as daemon:
                return dd(f"{dataset(daemon.at)}/source/{name}")

        def curl():
            prepare()
            return seconds("curl", "-s", "-o", f"{PRIVATE}/copy", f"{server.url}/{name}")

        def theirs():
            prepare()
            with rclone(server.url) as at:
                return dd(f"{at}/{name}")

        a, b, c = alternate(ours, curl, theirs)
        prepare()
        with mount(f"{server.url}/", f"cache_dir={cache}") as daemon:
            subprocess.run(["cmp", f"{dataset(daemon.at)}/source/{name}", f"{WWW}/{name}"],
                           check=True)
    what = "first pass over 400 MB, HTTP"
    row(what, mb_per_s(size, a), f"curl to disk {mb_per_s(size, b)}", ratio(b, a), ">=", 0.6)
    row(what, mb_per_s(size, a), f"rclone {mb_per_s(size, c)}", ratio(c, a), ">=", 5)


def bar_second_pass():
    name = "big-images"
    make_images(name, 400)
    size = os.stat(f"{WWW}/{name}").st_size
    copy = f"{PRIVATE}/copy"
    subprocess.run(["cp", f"{WWW}/{name}", copy], check=True)
    with Nginx(WWW, more=FAST) as server:
        options = f"cache_dir={PRIVATE}/cache"

        def local():
            calm()
            return dd(copy)

        with mount(f"{server.url}/", options) as daemon:
            path = f"{dataset(daemon.at)}/source/{name}"
            dd(path)
            all_staged(daemon)

            def ours():
                calm()
                return dd(path)

            a, b = alternate(ours, local)
        row("second pass, page cache dropped", mb_per_s(size, a), f"dd, file {mb_per_s(size, b)}",
            ratio(b, a), ">=", 0.7)
        server.forget()

        def next_job():
            calm()
            with mount(f"{server.url}/", options) as daemon:
                return dd(f"{dataset(daemon.at)}/source/{name}")

        a, b = alternate(next_job, local)
        equal(sent(server.log()), 0, "bytes that the next mount fetched")
    row("the same in the next mount", mb_per_s(size, a), f"dd, file {mb_per_s(size, b)}",
        ratio(b, a), ">=", 0.7)


def bar_random():
    name, reads = "big-images", 200
    n = make_images(name, 400)
    cache = f"{PRIVATE}/cache"
    fetched = []
    with Nginx(WWW, more=FAST) as server:
        def chosen():
            return random.Random(len(fetched)).sample(range(n), reads)

        def ours():
            empty(cache)
            with mount(f"{server.url}/", f"cache_dir={cache},prefetch=off") as daemon:
                server.forget()
                where = f"{dataset(daemon.at)}/samples/raw"
                paths = [f"{where}/{i:06d}.image.raw" for i in chosen()]
                begin = time.monotonic()
                for path in paths:
                    fd = os.open(path, os.O_RDONLY)
                    equal(len(os.read(fd, 4096)), IMAGE, path)
                    os.close(fd)
                took = time.monotonic() - begin
            fetched.append(sent(server.log()))
            return took / reads

        def theirs():
            places = chosen()
            with rclone(server.url) as at:
                fd = os.open(f"{at}/{name}", os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
                begin = time.monotonic()
                for i in places:
                    equal(len(os.pread(fd, IMAGE, 16 + IMAGE * i)), IMAGE, "rclone")
                took = time.monotonic() - begin
                os.close(fd)
            return took / reads

        a, b = alternate(ours, theirs)
    most = max(fetched)
    row("200 random samples, cold: fetched", f"{most / 1024:.0f} KiB", f"{reads} x 128 KiB", most / (128 << 10) / reads,
        "<=", 1)
    row("time per random sample, cold", f"{1e3 * statistics.median(a):.2f} ms",
        f"rclone {1e3 * statistics.median(b):.2f} ms", ratio(b, a), ">=", 3)


# ---- epochs ----

def read_files(folder, names):
    """Read whole files. Returns how many until one could not be read."""
    buffer = memoryview(bytearray(MiB))
    for done, name in enumerate(names):
        try:
            fd = os.open(f"{folder}/{name}", os.O_RDONLY)
        except OSError as e:
            say(f"{folder}/{name}: {e}")
            return done
        try:
            while os.readv(fd, (buffer,)):
                pass
        except OSError as e:
            say(f"{folder}/{name}: {e}")
            return done
        finally:
            with contextlib.suppress(OSError):  # of a dead mount
                os.close(fd)
    return len(names)


def batches_in(folder):
    """The pictures as stored; their floats are in the same folder."""
    return sorted(glob.glob("*.image.npy", root_dir=folder))


def read_epoch(at, plan, epoch=None):
    folder = f"{dataset(at)}/batches/{plan}" + (f"/epoch={epoch}" if epoch is not None else "")
    folder += "/npy"
    names = batches_in(folder)
    equal(read_files(folder, names), len(names), "batches that were read")


def bar_once():
    """3 epochs, 4 readers, 2 mounts of one cache folder; one mount is killed and started again."""
    name, epochs = "big-images", 3
    make_images(name, 300)
    size = os.stat(f"{WWW}/{name}").st_size
    cache = f"{PRIVATE}/cache"
    results = []
    with Nginx(WWW, more=FAST, limit_rate=20_000_000) as server:
        for i in range(ROUNDS):
            empty(cache)
            server.forget()
            results.append(kill_in_the_middle(server, cache, size, epochs))
            say("fetched, in flight at the kill: ", results[-1])
    fetched, in_flight = max(results, key=lambda r: r[0] - r[1])
    row("remote / distinct bytes, 3 epochs, kill -9", f"{fetched / 1e6:.2f} MB",
        f"{size / 1e6:.2f} MB, {in_flight / 1e6:.2f} in flight", fetched / size, "<=",
        1 + in_flight / size)


def threads_are(daemon, state):
    states = set()
    for path in glob.glob(f"/proc/{daemon.pid}/task/*/stat"):
        with open(path, encoding="ascii") as f:
            states.add(f.read().rpartition(")")[2].split()[0])
    return states == {state}


def claimed(cache):
    """The blocks that processes are fetching: their write locks on staged files."""
    inodes = {st.st_ino for _, st in servers.files_below(f"{cache}/staged")}
    with open("/proc/locks", encoding="ascii") as f:
        found = re.findall(r"OFDLCK +ADVISORY +WRITE .*:(\d+) (\d+) (\d+)\n", f.read())
    return sum(int(last) + 1 - int(first) for inode, first, last in found if int(inode) in inodes)


def kill_in_the_middle(server, cache, size, epochs):
    url, options = f"{server.url}/", f"cache_dir={cache}"
    mounts = [start_at(f"mount{i}", url, options) for i in range(2)]
    back = multiprocessing.Event()
    # Not threads: one that waits for a stopped mount could block the others.
    processes = [multiprocessing.Process(target=lambda rank: sys.exit(reader(rank)), args=(rank,))
                 for rank in range(4)]

    def reader(rank):
        at = mounts[rank % 2].at
        for epoch in range(epochs):
            where = f"batches/batch=128,rank={rank}of4,seed=7/epoch={epoch}/npy"
            folder = f"{dataset(at)}/{where}"
            names = batches_in(folder)
            while names:
                names = names[read_files(folder, names):]
                if names and (rank % 2 == 0 or not back.wait(60)):
                    return f"{folder}/{names[0]} could not be read"
        return 0

    for p in processes:
        p.start()
    wait_until(lambda: servers.disk_usage(f"{cache}/staged") > size // 2, "half of it is here")
    for m in mounts:
        m.send_signal(signal.SIGSTOP)
        wait_until(lambda m=m: threads_are(m, "T"), "it has stopped", m)
    in_flight = claimed(cache)
    servers.kill_mount(mounts[1])
    in_flight -= claimed(cache)
    mounts[0].send_signal(signal.SIGCONT)
    mounts[1] = start_at("mount1", url, options)
    back.set()
    for p in processes:
        p.join()
    equal([p.exitcode for p in processes], [0] * 4, f"readers; {lib.log_text('log.mount0')[-500:]}")
    for m in mounts:
        all_staged(m)
        lib.stop(m)
    log = server.log()
    equal({path: got for path, (_, got) in servers.coverage(log).items()}, {"/big-images": size},
          "distinct bytes")
    return sent(log), in_flight * block_of(size)


def bar_limited():
    """The first epoch while the remote has 50 MB/s for all connections. Shuffled samples of 784 B
    are a special case: almost no batch can be read before almost all blocks have arrived."""
    rate, cache = 50_000_000, f"{PRIVATE}/cache"
    make_images("small-images", 200)
    make_images("large-images", 200, 256)
    with Nginx(WWW, more=FAST) as server, limited(server, rate) as url:
        def epoch(name, plan, number):
            def read():
                empty(cache)
                calm()
                warm(name)
                begin = time.monotonic()
                daemon = start_at("mount", f"{url}/{name}", f"cache_dir={cache}")
                read_epoch(daemon.at, plan, number)
                took = time.monotonic() - begin
                lib.stop(daemon)
                return took
            return read

        def direct():
            calm()
            warm("small-images")
            return seconds("curl", "-s", "-o", "/dev/null", f"{url}/small-images")

        *ours, curl = alternate(epoch("small-images", "batch=128", None),
                                epoch("large-images", "batch=16,seed=7", 0),
                                epoch("small-images", "batch=128,seed=7", 0), direct)
    for what, times in zip(("stored order", "shuffled 64 KB", "shuffled 784 B"), ours):
        row(f"first epoch, 50 MB/s, {what}", f"{statistics.median(times):.3f} s",
            f"curl {statistics.median(curl):.3f} s", ratio(times, curl), "<=", 1.05)


def bar_half():
    """A dataset twice the size of the cache. A miss costs whole blocks, so samples are 64 KB; the
    server's log gives the share of the samples' blocks that was not fetched."""
    name, side = "big-images", 256
    n = make_images(name, 400, side)
    size = os.stat(f"{WWW}/{name}").st_size
    block = block_of(size)
    touched = sum(((17 + (i + 1) * side * side - 2) // block - (16 + i * side * side) // block + 1)
                  * block for i in range(n))
    shares = []
    with Nginx(WWW, more=FAST) as server, \
            mount(f"{server.url}/", f"cache_dir={PRIVATE}/cache,cache_size={size // 2}") as daemon:
        wait_until(lambda: remote(daemon.at)["staged_bytes"] > 0.47 * size, "the cache is full",
                   daemon)
        for epoch in range(5):
            server.forget()
            before = remote(daemon.at)["staged_bytes"]
            read_epoch(daemon.at, "batch=16,seed=7", epoch)
            cached = (before + remote(daemon.at)["staged_bytes"]) / 2 / size
            shares.append((1 - sent(server.log()) / touched, cached))
            say("hits {:.3f}, cached {:.3f}".format(*shares[-1]))
    hit, cached = min(shares, key=lambda s: s[0] - s[1])
    row("5 epochs, cache of half: hits - cached", f"{hit:.3f} (worst epoch)",
        f"{cached:.3f} cached", hit - cached, ">=", -0.02)


def bar_hang():
    """Reads of staged bytes, in a mount with a remote that hangs while other readers wait for
    missing bytes."""
    name, reads, rounds = "big-images", 2000, 4 * ROUNDS
    n = make_images(name, 200)
    with Nginx(WWW, more=FAST) as server, \
            mount(f"{server.url}/", f"cache_dir={PRIVATE}/cache,prefetch=off,timeout=600,retry_timeout=600") \
            as daemon:
        where = f"{dataset(daemon.at)}/samples/raw"
        half = n // 2
        with open(f"{dataset(daemon.at)}/source/{name}", "rb", buffering=0) as f:
            left = half * IMAGE
            while left > 0:
                left -= len(f.read(MiB))
        places = random.Random(3).sample(range(half - 2000), 2 * rounds * reads)

        def path(i):
            return f"{where}/{i:06d}.image.raw"

        def latency():
            times = []
            for i in (places.pop() for _ in range(reads)):
                begin = time.monotonic()
                fd = os.open(path(i), os.O_RDONLY)
                equal(len(os.read(fd, 4096)), IMAGE, "bytes of a sample")
                os.close(fd)
                times.append(time.monotonic() - begin)
            return statistics.median(times)

        latency()
        waiting = [n - 1 - 700 * k for k in range(4 * rounds)]  # of granules each

        def healthy():
            return latency()

        def hanging():
            server.stall()
            before = remote(daemon.at)["requests"]
            threads = [threading.Thread(target=read_files, args=(where, [os.path.basename(path(
                waiting.pop()))])) for _ in range(4)]
            for t in threads:
                t.start()
            wait_until(lambda: remote(daemon.at)["requests"] > before, "readers wait", daemon)
            try:
                return latency()
            finally:
                server.resume()
                for t in threads:
                    t.join()

        places += random.Random(4).sample(range(half - 2000), reads)
        a, b = [], []
        for i in range(rounds):
            for times, side in ((a, hanging), (b, healthy))[::1 if i % 2 else -1]:
                times.append(side())
        say(" ".join(f"{x / y:.2f}" for x, y in zip(a, b)))
    row("read of staged samples, the remote hangs", f"{1e6 * statistics.median(a):.1f} µs",
        f"healthy {1e6 * statistics.median(b):.1f} µs", abs(ratio(a, b) - 1), "<=", 0.2)


globals()[f"bar_{sys.argv[1]}"]()
