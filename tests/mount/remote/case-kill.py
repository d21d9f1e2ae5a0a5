#!/usr/bin/python3
# slow: kills at many moments
"""kill -9 of the daemon at random moments under load, many times: each next mount has the right
bytes, and in the end the server has sent the dataset once, apart from transfers under way."""

import os
import random
import threading
import time

import numpy as np

from bad_server import BadServer
from lib import DEADLINE, PRIVATE, SLOW, equal, idx_bytes, run, start, stop
from servers import (check_once, coverage, ended, files_below, locks_in, pidfd, place, read_anew,
                     remote, sent, wait_until)

KILLS = 15 if SLOW else 100
READERS = 2
BLOCK, JOBS, BUFFER = 8 << 10, 2, 8 << 10
WWW = f"{PRIVATE}/www"
CACHE = f"{PRIVATE}/killed"
SAMPLE = 60 * 60
N = 1200 if SLOW else 4000


def reader(at, data, seed, wrong):
    """Reads samples at random until the mount is dead."""
    rng = random.Random(seed)
    while True:
        i = rng.randrange(N)
        try:
            got = read_anew(at, f"big-data/samples/raw/{i:06d}.image.raw")
        except OSError:
            return
        if got != data[16 + SAMPLE * i:16 + SAMPLE * (i + 1)]:
            wrong.append(f"mount {seed}: sample {i}")


def main():
    rng = random.Random(os.environ.get("SEED", "5"))
    data = idx_bytes(np.random.default_rng(5).integers(0, 256, (N, 60, 60), dtype=np.uint8))
    place(WWW, "big-data", data)
    # So slow that there is something to fetch until the last kill.
    per_kill = 0.12 * (5 if SLOW else 1)
    with BadServer(WWW, rate=int(0.6 * len(data) / KILLS / per_kill), sendbuf=BUFFER) as server:
        options = f"cache={CACHE},block={BLOCK},jobs={JOBS}"
        source = f"{server.url}/big-data"
        begin, wrong = time.monotonic(), []
        for i in range(KILLS):
            daemon = start(source, options)
            readers = [threading.Thread(target=reader, args=(daemon.at, data, i, wrong))
                       for _ in range(READERS)]
            for r in readers:
                r.start()
            with pidfd(daemon.pid) as fd:
                equal(ended(fd, rng.uniform(0, 1.5 * per_kill)), False, "the daemon ended itself")
            daemon.kill()
            daemon.wait(DEADLINE)
            for r in readers:
                r.join(DEADLINE)
            equal((wrong, [r.is_alive() for r in readers]), ([], [False] * READERS),
                  f"wrong bytes, readers that hang after kill {i}")
            run("umount", daemon.at)
            equal(locks_in(CACHE), [], "locks that are left")
        fetched = sent(server.data())
        print(f"{KILLS} kills in {time.monotonic() - begin:.1f} s, {fetched} of {len(data)} bytes "
              f"fetched, {coverage(server.data())} ")
        equal(fetched > len(data) // 20, True, "there was something to fetch between the kills")
        server.rate = 0
        daemon = start(source, options)
        equal(read_anew(daemon.at, "big-data/source/big-data") == data, True, "all of it")
        r = wait_until(lambda: (r := remote())["staged_bytes"] == r["total_bytes"] and r,
                       "all is staged", daemon)
        equal(r["bad_blocks"], 0, "blocks that a kill has damaged")
        stop(daemon)
        # Per kill: an incomplete block, and the bytes in flight, which are more on a busy machine.
        spare = 2 * KILLS * JOBS * BLOCK
        check_once(server.data(), {"/big-data": len(data)}, f"{KILLS} kills", spare=spare)
        left = [file for file, _ in files_below(CACHE) if file.endswith((".part", ".tmp"))]
        equal(left, [], "files that nobody needs")
        server.forget()
        daemon = start(source, options)
        equal(read_anew(daemon.at, "big-data/source/big-data") == data, True, "and once more")
        stop(daemon)
        equal(server.data(), [], "requests for data when all is here")


main()
