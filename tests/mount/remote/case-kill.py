#!/usr/bin/python3
# slow: kills at many moments
"""kill -9 of the daemon at random moments under load, many times: each next mount has the right
bytes, and the server sends no block again that a mount has put into the cache folder."""

import os
import random
import struct
import threading
import time

import numpy as np

from bad_server import BadServer
from lib import DEADLINE, PRIVATE, SLOW, content, equal, idx_bytes, run, start, stop
from servers import coverage, ended, files_below, locks_in, pidfd, place, read_anew, wait_staged

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


def staged():
    """The numbers of the blocks in the cache folder, by their records (docs/spec/cache-format.md)."""
    found = set()
    for file, _ in files_below(f"{CACHE}/staged"):
        if not file.endswith(".content"):
            records = content(file)[1536:]
            found |= {i for i, (record,) in enumerate(struct.iter_unpack("<Q", records[:len(records) // 8 * 8])) if record}
    return found


def blocks_of(request):
    start = request.range[0] if request.range else 0
    return set(range(start // BLOCK, -(-(start + request.sent) // BLOCK)))


def check_fetched(requests, known, kept, what):
    """They are of different blocks, none of which was known, and only those under way were not kept. What is in the buffer of a
    request that is stopped may be sent again. Returns the different bytes."""
    total, different = coverage(requests).get("/big-data", (0, 0))
    equal(different <= total <= different + JOBS * BUFFER, True, f"{total} bytes of {different} different ones were sent {what}")
    equal([r for r in requests if blocks_of(r) & known], [], f"requests for blocks of the cache folder {what}")
    lost = [r for r in requests if blocks_of(r) - kept]
    equal(len(lost) <= JOBS, True, f"requests whose blocks are lost {what}: {lost}")
    return different


def main():
    rng = random.Random(os.environ.get("SEED", "5"))
    data = idx_bytes(np.random.default_rng(5).integers(0, 256, (N, 60, 60), dtype=np.uint8))
    place(WWW, "big-data", data)
    # So slow that there is something to fetch until the last kill.
    per_kill = 0.12 * (5 if SLOW else 1)
    with BadServer(WWW, rate=int(0.6 * len(data) / KILLS / per_kill), sendbuf=BUFFER) as server:
        options = f"cache={CACHE},block={BLOCK},jobs={JOBS}"
        source = f"{server.url}/big-data"
        begin, wrong, fetched, blocks = time.monotonic(), [], 0, set()
        for i in range(KILLS):
            server.dies(len(data) * 9 // 10 // KILLS, "silent")  # so that something is left, however long a round takes
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
            kept = staged()
            server.healthy()  # what waits for the end of its silence is logged
            equal(blocks - kept, set(), f"blocks that kill {i} has removed")
            fetched += check_fetched(server.data(), blocks, kept, f"before kill {i}")
            server.forget()
            blocks = kept
        left = len(data) - sum(min(BLOCK, len(data) - b * BLOCK) for b in blocks)
        print(f"{KILLS} kills in {time.monotonic() - begin:.1f} s, {fetched} of {len(data)} bytes fetched, {left} are left")
        equal(left < len(data) - len(data) // 20, True, "there was something to keep between the kills")
        equal(left > 0, True, "there was something to fetch until the last kill")
        server.rate = 0
        server.dies(None, None)
        daemon = start(source, options)
        equal(read_anew(daemon.at, "big-data/source/big-data") == data, True, "all of it")
        r = wait_staged(daemon)
        equal(r["bad_blocks"], 0, "blocks that a kill has damaged")
        stop(daemon)
        equal(check_fetched(server.data(), blocks, staged(), "after the last kill"), left, "bytes that were sent after the last kill")
        equal([file for file, _ in files_below(CACHE) if file.endswith((".part", ".tmp"))], [], "files that no mount needs")
        server.forget()
        daemon = start(source, options)
        equal(read_anew(daemon.at, "big-data/source/big-data") == data, True, "and once more")
        stop(daemon)
        equal(server.data(), [], "requests for data when all is here")


main()
