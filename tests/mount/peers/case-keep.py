#!/usr/bin/python3
# slow: four nodes, with nothing else running
"""What a node's disk holds with peers, for each keep=, counted: D bytes of data, N nodes. Its share of about
D/N, and with keep=pin all of D, otherwise what the plan needs next: no more than cache_size=. The origin sends
each byte once in two epochs whatever is kept."""

import os
import threading

import numpy as np

from lib import PRIVATE, equal, idx_bytes, log_text, run, stop
from ring import Ring, rings_calmly, untroubled
from servers import MiB, Nginx, disk_usage, place, sent, start_at, timed

WWW = f"{PRIVATE}/www"
NODES = 4
ROOM = 4 * MiB
rng = np.random.default_rng(11)
IMAGES = rng.integers(0, 256, (24000, 32, 32), dtype=np.uint8)
DATA = idx_bytes(IMAGES)
place(WWW, "one-data", DATA)
TOTAL = len(DATA)


def two_epochs(daemon, rank, wrong):
    """Read this rank's batches of two epochs, and compare the bytes with those of their samples."""
    plan = f"batch=64,rank={rank}of{NODES},seed=3,shuffle=window:2048"
    wrong.append("not all was read")
    for epoch in range(2):
        folder = f"{daemon.at}/one-data/batches/{plan}/epoch={epoch}/npy"
        names = sorted(n for n in os.listdir(folder) if n.split(".")[1] in ("data", "image"))
        equal(len(names), len(IMAGES) // NODES // 64 + 1, f"batches in {os.listdir(folder)}")
        for name in names:
            index = np.load(f"{folder}/{name.split('.')[0]}.index.npy")
            if not np.array_equal(np.load(f"{folder}/{name}"), IMAGES[index]):
                wrong.append((rank, epoch, name))
    wrong.remove("not all was read")


def check(origin, what, options, least, most):
    """least, most: bytes of staged blocks on a node's disk at the end."""
    origin.forget()
    with Ring(NODES, origin.url, folder=f"{PRIVATE}/ring.{what}") as ring:
        nodes = [start_at(f"{what}{i}", f"{origin.url}/", f"cache={PRIVATE}/cache.{what}.{i},{ring.options(i)}" + options +
                          f",plan=batch=64+rank={i}of{NODES}+seed=3+shuffle=window:2048") for i in range(NODES)]
        wrong = []
        readers = [threading.Thread(target=two_epochs, args=(node, i, wrong)) for i, node in enumerate(nodes)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        equal(wrong, [], f"{what}: batches that are wrong")
        said = [run("stage", "-o", f"cache={PRIVATE}/cache.{what}.{i},{ring.options(i)}", f"{origin.url}/")
                for i in range(NODES) if least >= TOTAL]
        for node in nodes:
            stop(node)
        untroubled(*said, *(log_text(f"log.{what}{i}") for i in range(NODES)))
        shares = [disk_usage(f"{ring.at(i)}/share") for i in range(NODES)]
        staged = [disk_usage(f"{PRIVATE}/cache.{what}.{i}/staged") for i in range(NODES)]
        print(f"{what}: share {min(shares) / TOTAL:.2f} to {max(shares) / TOTAL:.2f} of D (1/N is {1 / NODES:.2f}), "
              f"staged {min(staged) / TOTAL:.2f} to {max(staged) / TOTAL:.2f} of D; the origin sent "
              f"{sent(origin.log()) / TOTAL:.3f} of D", flush=True)
        equal(TOTAL <= sum(shares) <= 1.05 * TOTAL, True, f"{what}: bytes of all shares {shares}")
        equal(all(least <= n <= most for n in staged), True, f"{what}: staged {staged}, expected {least} to {most}")
        equal(sent(origin.log()) <= 1.02 * TOTAL, True, f"{what}: the origin sent {sent(origin.log())}")


with Nginx(WWW) as the_origin:
    timed(rings_calmly, check, the_origin, "pin", ",keep=pin", TOTAL, 1.05 * TOTAL)
    timed(rings_calmly, check, the_origin, "default", f",cache_size={ROOM}", 1, ROOM)
    timed(rings_calmly, check, the_origin, "once", f",keep=once,cache_size={ROOM}", 0, ROOM)
