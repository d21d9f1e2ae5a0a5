#!/usr/bin/python3
# slow: twelve processes that share a cache
"""One cache folder for all: 8 processes that read, 3 mounts and `epochfs stage` at once fetch each
byte once. A process that hangs or is killed while it fetches does not block the others."""

import random
import signal
import subprocess
import sys

import numpy as np

from lib import DEADLINE, EPOCHFS, PRIVATE, SLOW, equal, idx_bytes, log_text, run, stop
from servers import (MiB, Nginx, check_counters, check_once, error_of, locks_in, place, read_anew,
                     remote, start_at, wait_until, within)

WWW = f"{PRIVATE}/www"
N, SIDE = 1500, 80
BYTES = SIDE * SIDE


def data():
    return idx_bytes(np.random.default_rng(21).integers(0, 256, (N, SIDE, SIDE), dtype=np.uint8))


def reader(at, seed):
    """Read samples in its own order, then everything."""
    rng, want = random.Random(seed), data()
    for i in rng.sample(range(N), N // (10 if SLOW else 2)):
        got = read_anew(at, f"big-data/samples/raw/{i:06d}.image.raw")
        equal(got == want[16 + BYTES * i:16 + BYTES * (i + 1)], True, f"reader {seed}: sample {i}")
    equal(read_anew(at, "big-data/source/big-data") == want, True, f"reader {seed}: all of it")


def readers(mounts, n):
    return [subprocess.Popen([sys.executable, __file__, mounts[i % len(mounts)].at, str(i)])
            for i in range(n)]


def all_fine(processes, what):
    equal([p.wait(DEADLINE) for p in processes], [0] * len(processes), what)


def check_together(server, options):
    """All at once, from an empty folder on. `stage` reports to no status, the log has its bytes."""
    cache = f"{PRIVATE}/together{len(options)}"
    full = f"cache={cache},{options}"
    server.forget()
    with open(f"{PRIVATE}/log.stage", "ab") as log:
        stage = subprocess.Popen([EPOCHFS, "stage", "-o", full, f"{server.url}/"],
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    mounts = [start_at(f"m{i}", f"{server.url}/", full) for i in range(3)]
    all_fine(readers(mounts, 8), "readers")
    equal(stage.wait(DEADLINE), 0, f"epochfs stage: {log_text('log.stage')}")
    check_once(server.log(), {"/big-data": len(data())}, f"8 readers, 3 mounts, a stage; {options}")
    for m in mounts:
        r = remote(m.at)
        equal((r["errors"], r["bad_blocks"], r["staged_bytes"]), (0, 0, len(data())), m.at)
        stop(m)
    equal(locks_in(cache), [], "locks that are left")


def check_counted(server):
    """Without a stage: the mounts' counters have all bytes of the log."""
    cache = f"{PRIVATE}/counted"
    server.forget()
    mounts = [start_at(f"m{i}", f"{server.url}/", f"cache={cache}") for i in range(3)]
    all_fine(readers(mounts, 3), "readers")
    check_once(server.log(), {"/big-data": len(data())}, "3 mounts")
    numbers = [remote(m.at) for m in mounts]
    check_counters(server.log(), "3 mounts", *numbers)
    equal(sum(r["distinct_bytes"] for r in numbers), len(data()), "distinct bytes")
    for m in mounts:
        stop(m)


def check_holder(server, what, hurt):
    """A mount is stopped or killed while it fetches and holds claims; the other gets all bytes."""
    cache = f"{PRIVATE}/cache.{what}"
    options = f"cache={cache},patience=10,timeout=2,jobs=4"
    holder = start_at(f"holder-{what}", f"{server.url}/", options)
    wait_until(lambda: remote(holder.at)["background_bytes"] > 200_000, "it fetches", holder)
    equal(remote(holder.at)["staged_bytes"] < len(data()), True, "it is still fetching")
    hurt(holder)
    other = start_at(f"other-{what}", f"{server.url}/", options)
    with within(25, f"a holder that is {what}"):
        e = error_of(read_anew, other.at, "big-data/source/big-data")
    if what == "killed":
        equal(e, 0, "a read while the holder is dead; errno")
        run("umount", holder.at)
    else:  # it may come back: an error, or the bytes, but no endless wait
        holder.send_signal(signal.SIGCONT)
    equal(read_anew(other.at, "big-data/source/big-data") == data(), True, f"{what}: the bytes")
    if what != "killed":
        equal(read_anew(holder.at, "big-data/source/big-data") == data(), True, "the holder's bytes")
        stop(holder)
    stop(other)


def main():
    place(WWW, "big-data", data())
    with Nginx(WWW) as server:
        check_together(server, "jobs=4")
        check_together(server, "block=16K,stage=off")
        check_counted(server)
    with Nginx(WWW, limit_rate=MiB // 4) as server:
        check_holder(server, "killed", lambda d: (d.kill(), d.wait()))
        check_holder(server, "stopped", lambda d: d.send_signal(signal.SIGSTOP))


if len(sys.argv) > 1:
    reader(sys.argv[1], int(sys.argv[2]))
else:
    main()
