#!/usr/bin/python3
# slow: fifty rounds, one after the other
"""Fifty rounds of reading through four peers, in each of which one of them, chosen at random, is killed,
hangs, becomes slow, or comes back empty while it is needed; also the reader's own node. Every byte is
compared, and no read takes longer than its limit."""

import os
import random
import shutil
import statistics
import threading
import time

import numpy as np

from lib import PRIVATE, SLOW, equal, idx_bytes, stop
from ring import Ring
from servers import MiB, PATIENT, Nginx, place, read_anew, sent, start_at, timed

WWW = f"{PRIVATE}/www"
NODES = 4
ROUNDS = 12 if SLOW else 50
READERS = 3
PIECE = 64 << 10
KINDS = "killed", "hung", "slow", "returned"
LIMIT = 2  # seconds after which reads go on; a busy machine may exceed that in some rounds of a kind:
LIMIT_MOST = 8
SEED = random.SystemRandom().randrange(1 << 32)
choose = random.Random(SEED)
rng = np.random.default_rng(SEED)
DATA = {f"{name}-data": idx_bytes(rng.integers(0, 256, (3000, 32, 32), dtype=np.uint8)) for name in "abc"}
for file, data in DATA.items():
    place(WWW, file, data)
PIECES = [(name, at) for name, data in DATA.items() for at in range(0, len(data), PIECE)]


class Faults:
    """What happens to a node, and how it is put right."""

    def __init__(self, ring):
        self.ring = ring

    def killed(self, i):
        self.ring.kill(i)
        return lambda: self.ring.start(i)

    def hung(self, i):
        self.ring.stall(i)
        return lambda: self.ring.resume(i)

    def slow(self, i):
        self.ring.limit(i, MiB)
        return lambda: self.ring.limit(i, 0)

    def returned(self, i):
        """It is away for a moment, and has lost its share."""
        self.ring.kill(i)
        self.ring.start(i)
        return lambda: None


class Reading:
    """Threads that read all pieces in an order of their own, and compare."""

    def __init__(self, daemon, after):
        self.daemon, self.lock, self.done = daemon, threading.Lock(), 0
        self.wrong, self.longest = [], 0
        self.after, self.reached = after, threading.Event()
        order = list(PIECES)
        choose.shuffle(order)
        self.threads = [threading.Thread(target=self.read, args=(order[k::READERS],)) for k in range(READERS)]
        for thread in self.threads:
            thread.start()

    def read(self, order):
        for name, at in order:
            begin = time.monotonic()
            try:
                good = read_anew(self.daemon.at, f"{name}/source/{name}", size=PIECE, offset=at) == \
                    DATA[name][at:at + PIECE]
            except OSError as e:
                good = e
            with self.lock:
                self.longest = max(self.longest, time.monotonic() - begin)
                self.done += 1
                if good is not True:
                    self.wrong.append((name, at, good))
                if self.done >= self.after:
                    self.reached.set()

    def finish(self):
        for thread in self.threads:
            thread.join()


def one_round(n, url, ring, faults):
    kind, node, reader = KINDS[n % len(KINDS)], choose.randrange(NODES), \
        choose.randrange(NODES)
    cache = f"{PRIVATE}/cache.{n}"
    daemon = start_at("mnt", url, f"cache={cache},stage=off,{ring.options(reader)}")
    reading = Reading(daemon, choose.randrange(len(PIECES) * 2 // 3))
    reading.reached.wait()
    put_right = getattr(faults, kind)(node)
    reading.finish()
    put_right()
    stop(daemon)
    shutil.rmtree(cache)
    print(f"round {n}: node {node} {kind}, read on node {reader}: {len(reading.wrong)} wrong, longest read "
          f"{reading.longest:.2f} s", flush=True)
    equal(reading.wrong, [], f"pieces that are wrong, seed {SEED}")
    equal(reading.longest < LIMIT_MOST * PATIENT, True, f"{reading.longest:.2f} s for a read, seed {SEED}")
    return reading.longest


def all_rounds(origin, ring):
    faults = Faults(ring)
    longest = [one_round(n, f"{origin.url}/", ring, faults) for n in range(ROUNDS)]
    for k, kind in enumerate(KINDS):
        usual = statistics.median(longest[k::len(KINDS)])
        equal(usual < LIMIT * PATIENT, True, f"{kind}: a median of {usual:.2f} s for the longest read: {longest}, seed {SEED}")
    late = sum(seconds > LIMIT * PATIENT for seconds in longest)
    equal(late <= ROUNDS // 5, True, f"{late} rounds with reads of more than {LIMIT} s: {longest}, seed {SEED}")
    total = sum(len(data) for data in DATA.values())
    print(f"{ROUNDS} rounds: 0 wrong bytes, longest read {max(longest):.2f} s; the origin sent "
          f"{sent(origin.log()) / total:.1f} times the dataset, read {ROUNDS} times", flush=True)


with Nginx(WWW) as the_origin, Ring(NODES, the_origin.url) as the_ring:
    timed(all_rounds, the_origin, the_ring)
