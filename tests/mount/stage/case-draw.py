#!/usr/bin/python3
"""Plans that draw, and plans of a list, over a remote: an epoch fetches each block of its samples once, however often the
samples come; the forecast of `epochfs plan` says how many bytes that is."""

import json
import os

import numpy as np

import order_reference
from lib import PRIVATE, equal, idx_bytes, mounted, path, run
from servers import Nginx, place, remote, sent, sha256sums, wait_until

ref = order_reference.load()
BLOCK, N, SIDE = 4 << 10, 800, 50
rng = np.random.default_rng(71)
IMAGES = rng.integers(0, 256, (N, SIDE, SIDE), dtype=np.uint8)
DATA = idx_bytes(IMAGES)
HEAD = 16
WWW = f"{PRIVATE}/www"
place(WWW, "data", DATA)
sha256sums(WWW)
CACHES = iter(range(100))
some = [int(i) for i in rng.integers(100, 500, 120)]
with open(f"{PRIVATE}/some", "w", encoding="ascii") as f:
    f.writelines(f"#{i}\n" for i in some)
LISTS = {"some": some}


def fresh(*options):
    return ",".join([f"cache={PRIVATE}/cache.{next(CACHES)}", "block=4K", f"list=some={PRIVATE}/some", *options])


def read_epoch(plan, epoch):
    """Read it batch by batch, and compare; returns its samples."""
    folder = path("data/batches", plan, f"epoch={epoch}", "npy")
    seen = []
    for i in range(ref.batch_count(N, plan, lists=LISTS)):
        samples = ref.batch_samples(N, plan, epoch, i, lists=LISTS)
        got = np.load(f"{folder}/{i:06d}.image.npy")
        equal(np.array_equal(got, IMAGES[samples]), True, f"{plan}: batch {i} of epoch {epoch}")
        seen += samples
    return seen


def blocks_of(samples):
    found = set()
    for s in samples:
        begin = HEAD + s * SIDE * SIDE
        found.update(range(begin // BLOCK, (begin + SIDE * SIDE - 1) // BLOCK + 1))
    return found


def bytes_of(blocks):
    return sum(min(BLOCK, len(DATA) - b * BLOCK) for b in blocks)


def check_demand(server, plan, epochs):
    """Only what is read is fetched: the blocks of the samples, and those that mounting has looked at."""
    options = fresh("stage=off", "ahead=0")
    forecast = json.loads(run("plan", "--json", "-o", f"{options},plan={plan.replace(',', '+')}", f"{server.url}/"))
    wanted = forecast["plans"][0]["epoch_block_bytes"]
    options = fresh("stage=off", "ahead=0")
    with mounted(f"{server.url}/", options):
        os.stat(path("data/batches", plan))
        server.forget()
        before, seen, touched = remote()["distinct_bytes"], [], set()
        for epoch in epochs:
            shown = read_epoch(plan, epoch)
            seen += shown
            if epoch == epochs[0]:
                first = bytes_of(blocks_of(shown))
        touched = blocks_of(seen)
        fetched = sent(server.log())
        equal(fetched, remote()["distinct_bytes"] - before, f"{plan}: nothing twice")
        equal(bytes_of(touched) - before <= fetched <= bytes_of(touched), True,
              f"{plan}: {fetched} bytes fetched, blocks of the samples have {bytes_of(touched)}, of which mounting read {before}")
    equal(abs(wanted - first) < 0.1 * first, True, f"{plan}: forecast {wanted} bytes, an epoch has {first}")


def check_staged(server, plan, *options):
    """The background stages all of it in the plan's order; nothing comes twice, whatever is dropped meanwhile."""
    server.forget()
    with mounted(f"{server.url}/", fresh(f"plan={plan.replace(',', '+')}", *options)):
        read_epoch(plan, 0)
        wait_until(lambda: remote()["distinct_bytes"] >= len(DATA) or "keep=once" in options, "all is staged")
        # With keep=once the background may still go on.
        wait_until(lambda: (found := remote())["demand_bytes"] + found["background_bytes"] == found["distinct_bytes"]
                   == sent(server.log()), f"{plan} {options}: bytes that were fetched and sent, distinct bytes")


with Nginx(WWW) as nginx:
    check_demand(nginx, "batch=20,seed=7,draw=200:uniform", [0])
    check_demand(nginx, "batch=50,seed=7,draw=150:uniform", [0, 1])
    check_demand(nginx, "batch=64,seed=7,draw=2400:uniform,limit=640", [3])
    check_demand(nginx, "batch=16,only=some,seed=3", [2])
    for words in ([], ["keep=once"], ["keep=plan"]):
        check_staged(nginx, "batch=64,seed=7,draw=2400:uniform", *words)
