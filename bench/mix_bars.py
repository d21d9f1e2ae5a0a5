#!/usr/bin/python3
"""The bars of mixes and draws that a job reads while they are staged (bench/groups/plan.sh): mix_bars.py mix|draw

The remote is far, and the job computes as long as the transfer takes. Prints rows as cache_bars.py does.
"""

import os
import statistics
import subprocess
import sys
import time

import bars
import orders
from bars import FAST, ROUNDS, WWW, Far, all_staged, calm, empty, make_images, mount, row, say, train, warm
from lib import PRIVATE
from servers import Nginx, sent

SEED = 7
CACHE = f"{PRIVATE}/cache"
SIDE, RATE, BATCH = 387, 80_000_000, 32  # 150 KB per sample


def least(order, pace, transfer):
    """The seconds that any program takes that transfers the samples of an epoch once: without a pause, in the order in which
    they are needed, and a batch computes once the last of its samples has come. transfer: seconds of all of them."""
    come, here, done = 0, set(), 0
    each = transfer / len(set(order))
    for first in range(0, len(order), BATCH):
        new = set(order[first:first + BATCH]) - here
        here |= new
        come += len(new) * each
        done = max(done, come) + pace
    return done


def epoch_of(source, options, where, alone):
    """Read an epoch from a mount that begins with it, with as much compute as transfer; then wait until all files are staged.
    Returns seconds of the epoch, those that a batch computes, and the counters of the remote."""
    begin = time.monotonic()
    with mount(source, options) as daemon:
        folder = f"{daemon.at}/{where}"
        count = sum(name.endswith(".image.npy") for name in os.listdir(folder))
        pace = int(alone / count * 1e6)
        train(folder, "######.image.npy", count, "-g", pace)
        took = time.monotonic() - begin
        return took, pace / 1e6, all_staged(daemon)


def overlap_rows(what, results):
    """results: of each round, seconds, the larger of transfer and compute, and the least of any program."""
    took, larger, floor = (statistics.median(r[i] for r in results) for i in range(3))
    row(f"{what}, transfer = compute", f"{took:.2f} s", f"max(T, C) {larger:.2f} s", took / larger, "<=", 1.10)
    row("  against the least of any program", f"{took:.2f} s", f"{floor:.2f} s, {floor / larger:.2f} x max(T, C)",
        took / floor, "<=", 1.05)


# Bytes of the sources of a mix in MB, and their weights: in proportion to their samples; and nearly alike, so that some
# samples come twice, and the first batches have more than their share of the transfer.
MIXED = {"a": 400, "b": 300, "c": 200, "d": 100}
MIXES = {"a mix of 4 files": (4, 3, 2, 1), "a mix of 4 files, some samples twice": (7, 6, 4, 3)}


def bar_mix():
    """Mixes of four files of a far server that a job reads while they are staged; and what was fetched against the files."""
    samples = [make_images(name, mb, SIDE) for name, mb in MIXED.items()]
    with open(f"{WWW}/SHA256SUMS", "wb") as f:
        f.write(subprocess.run(["sha256sum", *MIXED], cwd=WWW, check=True, stdout=subprocess.PIPE).stdout)
    size = sum(os.stat(f"{WWW}/{name}").st_size for name in MIXED)
    curl = ["curl", "-s", *(word for name in MIXED for word in ("-o", "/dev/null", name))]
    plan, results = f"batch={BATCH},seed={SEED}", {what: [] for what in MIXES}
    mixes = {what: "+".join(f"{name}*{w}" for name, w in zip(MIXED, weights)) + "/all" for what, weights in MIXES.items()}
    with Nginx(WWW, more=FAST) as server, Far(server, RATE, 1) as far:
        for what, text in [*mixes.items()] * min(ROUNDS, 3):
            empty(CACHE)
            calm()
            for name in MIXED:
                warm(name)
            alone = bars.seconds(*(f"{far.urls[0]}/{word}" if word in MIXED else word for word in curl))
            server.forget()
            took, pace, _ = epoch_of(f"{far.urls[0]}/", f"cache_dir={CACHE},mix=m={text},plan={plan.replace(',', '+')}",
                                     f"m/batches/{plan}/epoch=0/npy", alone)
            fetched = sent([r for r in server.log() if r.path.lstrip("/") in MIXED])
            mix = orders.MIX_REFERENCE.Mix(text, samples)
            order = [mix.at(SEED, 0, i) for i in range(mix.length)]
            results[what].append((took, max(alone, pace * -(-len(order) // BATCH)), least(order, pace, alone), fetched))
            say(f"{what}: {len(order)} of {len(set(order))} samples, {took:.2f} s, transfer {alone:.2f} s, "
                f"fetched {fetched / 1e6:.1f} MB")
    for what, found in results.items():
        overlap_rows(what, found)
        fetched = max(r[3] for r in found)
        row("  bytes fetched, against those of the files", f"{fetched / 1e6:.1f} MB", f"{size / 1e6:.1f} MB", fetched / size,
            "<=", 1.0)


def bar_draw():
    """A balanced draw from a far server that a job reads while it is staged; transfer is that of the samples that it draws.
    What was fetched, against the different bytes of it. Classes are 1 to 4 parts."""
    images, labels = "drawn-images-idx3-ubyte", "drawn-labels-idx1-ubyte"
    n = make_images(images, 600, SIDE)
    label = [i * 7919 % 10 // 4 + i % 2 for i in range(n)]
    with open(f"{WWW}/{labels}", "wb") as f:
        f.write(bytes([0, 0, 8, 1]) + n.to_bytes(4, "big") + bytes(label))
    with open(f"{WWW}/SHA256SUMS", "wb") as f:
        f.write(subprocess.run(["sha256sum", images, labels], cwd=WWW, check=True, stdout=subprocess.PIPE).stdout)
    size = sum(os.stat(f"{WWW}/{name}").st_size for name in (images, labels))
    plan = f"batch={BATCH},seed={SEED},draw={n}:balanced"
    whole = orders.REFERENCE.Plan(n, plan.replace(f"batch={BATCH}", "batch=all"), fields={"label": label})
    order = [whole.sample(0, j) for j in range(n)]
    drawn, results = len(set(order)), []
    with Nginx(WWW, more=FAST) as server, Far(server, RATE, 1) as far:
        for _ in range(min(ROUNDS, 3)):
            empty(CACHE)
            calm()
            warm(images)
            alone = bars.seconds("curl", "-s", "-o", "/dev/null", f"{far.urls[0]}/{images}") * drawn / n
            server.forget()
            took, pace, counters = epoch_of(f"{far.urls[0]}/", f"cache_dir={CACHE},plan={plan.replace(',', '+')}",
                                            f"drawn/batches/{plan}/epoch=0/npy", alone)
            fetched = sent([r for r in server.log() if r.path.lstrip("/") in (images, labels)])
            results.append((took, max(alone, pace * -(-n // BATCH)), least(order, pace, alone), fetched,
                            counters["distinct_bytes"]))
            say(f"a balanced draw: {drawn} of {n} samples, {took:.2f} s, transfer {alone:.2f} s, fetched {fetched / 1e6:.1f} MB")
    overlap_rows("a balanced draw", results)
    fetched, different = (statistics.median(r[i] for r in results) for i in (3, 4))
    row("  bytes fetched, against different ones", f"{fetched / 1e6:.1f} MB", f"{different / 1e6:.1f} of {size / 1e6:.1f} MB",
        fetched / different, "<=", 1.001)


globals()[f"bar_{sys.argv[1]}"]()
