#!/usr/bin/python3
"""The bars of reading by plan (bench/groups/plan.sh): plan_bars.py BAR

The benefits of the plan: the first batch of a cold cache, batches that are in the page cache before
they are read, a cache that keeps what is needed next, epochs of any length. Prints rows as
cache_bars.py does. Omits options that this epochfs does not know, and says so.
"""

import collections
import heapq
import os
import re
import statistics
import subprocess
import sys
import time

import bars
import lib
import orders
from bars import (FAST, IMAGE, ROUNDS, WWW, Far, all_staged, block_of, calm, dataset, empty,
                  make_images, mount, row, say, train, warm)
from lib import EPOCHFS, PRIVATE, equal
from servers import MiB, Nginx, remote, sent
import numpy as np

SEED = 7
CACHE = f"{PRIVATE}/cache"
SPARE = 64 * MiB  # of cache/stage/overflow.h


def knows(option):
    """Does `epochfs mount` accept the option? Exit code 1 is a usage error, 2 a missing source."""
    done = subprocess.run([EPOCHFS, "mount", "-o", option, f"{PRIVATE}/none", f"{PRIVATE}/none"],
                          stderr=subprocess.DEVNULL, check=False)
    if done.returncode == 1:
        say(f"this epochfs does not know {option}")
    return done.returncode != 1


def blocks_of(samples, size, head, block):
    """The blocks that the samples touch, in the order of their first need."""
    found = {}
    for sample in samples:
        begin = head + int(sample) * size
        found.update(dict.fromkeys(range(begin // block, (begin + size - 1) // block + 1)))
    return list(found)


# ---- the first batch ----

def bar_first_batch():
    """The remote is 50 ms away and delivers 100 MB/s: how long until 128 shuffled samples are
    read? Three round trips, and the transfer of 128 KiB for each sample."""
    name, delay, rate, samples = "big-images", 0.05, 100_000_000, 128
    trip = 2 * delay
    n = make_images(name, 200)
    block = block_of(n * IMAGE)
    need = len(blocks_of(orders.full(SEED, 0, n)[:samples], IMAGE, 16, block))
    allowed, transfer = samples * (128 << 10) / rate, need * block / rate
    at = f"{PRIVATE}/mount"
    os.mkdir(at)
    results = collections.defaultdict(list)
    cases = {"first batch, cold, 100 ms away": "",
             "the same, plan= given": ",plan=batch=128+seed=7",
             "the same, transfers=64": ",plan=batch=128+seed=7,transfers=64"}
    with Nginx(WWW, more=FAST) as server:
        def measure(options):
            empty(CACHE)
            calm()
            warm(name)
            with Far(server, rate, 1, delay) as far:
                begin = time.monotonic()
                subprocess.run([EPOCHFS, "mount", "-o", f"cache_dir={CACHE}{options}",
                                f"{far.urls[0]}/{name}", at], check=True)
                mounted, seen = time.monotonic(), far.seen()
                path = f"{at}/{name}/batches/batch=128,seed=7/epoch=0/npy/000000.image.npy"
                with open(path, "rb", buffering=0) as f:
                    equal(len(f.read(MiB)), 128 + samples * IMAGE, "bytes of the first batch")
                end, now = time.monotonic(), far.seen()
                say(f"{mounted - begin:.3f} s for the mount, {end - mounted:.3f} s for the batch, "
                    f"in it {now['requests'] - seen['requests']} requests, "
                    f"{(now['bytes'] - seen['bytes']) / MiB:.1f} MiB; in all {now}")
                lib.run("umount", at)
            return end - mounted, end - begin, now["bytes"], now["requests"]

        for _ in range(min(ROUNDS, 3)):
            for what, options in cases.items():
                results[what].append(measure(options))
    for what, found in results.items():
        took, whole, size, asked = (statistics.median(r[i] for r in found) for i in range(4))
        row(what, f"{took:.3f} s after the mount", f"3 trips + {allowed:.3f} s",
            (took - allowed) / trip, "<=" if "jobs" not in what else "-", 3)
        row("  less the transfer of its blocks alone", f"{took:.3f} s", f"trips + {transfer:.3f} s",
            (took - transfer) / trip, "-", 0)
        row("  from the start of mount, round trips", f"{whole:.3f} s", f"trip {trip:.3f} s",
            (whole - transfer) / trip, "-", 0)
        row("  came meanwhile, with the background", f"{size / MiB:.1f} MiB, {asked:.0f} requests",
            f"needed {need * block / MiB:.1f} MiB", size / (need * block), "-", 0)


# ---- the push ----

# The measured batches; those before them let the push get ahead. They are larger than the
# processor's caches, which would otherwise serve the second reads.
FIRST, LAST_SMALL, LAST_LARGE = 10, 700, 90


def list_folder(folder):
    """As ls -l does."""
    with os.scandir(folder) as entries:
        for e in entries:
            e.stat(follow_symlinks=False)


def asked(at):
    """The requests that have reached the daemon, without those of reading this number."""
    first = sum(lib.requests(at).values())
    second = sum(lib.requests(at).values())
    return second, second - first


def pushed(source, where, pattern, first, last, pace, listed, options=()):
    """First reads against second reads at the same pace: the ratio of their speeds, MB/s of both,
    requests per file."""
    with mount(source, "plan=batch=128+seed=7,plan=batch=32+seed=7") as daemon:
        folder = f"{dataset(daemon.at)}/{where}"
        if listed:
            list_folder(folder)
        train(folder, pattern, first, "-g", pace, *options)
        before, looking = asked(daemon.at)
        one = train(folder, pattern, last, "-f", first, "-g", pace, *options)
        requests = max(0, asked(daemon.at)[0] - before - 2 * looking)
        two = train(folder, pattern, last, "-f", first, "-g", pace, *options)
        equal(one.sum, two.sum, "first and second read")
    return two.waited / one.waited, one.bytes / one.waited, two.bytes / two.waited, \
        requests / (last - first)


def push_rows(what, bound, most, *arguments, **more):
    found = [pushed(*arguments, **more) for _ in range(min(ROUNDS, 3))]
    say(what, "  ".join(f"{r[0]:.2f} {r[3]:.2f}" for r in found))
    ratio, one, two, requests = (statistics.median(r[i] for r in found) for i in range(4))
    row(f"first read, {what}", f"{one / 1e6:.0f} MB/s", f"second {two / 1e6:.0f} MB/s", ratio,
        ">=" if bound else "-", bound or 0)
    row(f"  requests, {what}", f"{requests:.2f} a file", f"{most} a file", requests, "<=", most)


def sources():
    """Small pictures and large ones, local, in the page cache."""
    for name, batch, batches, shape in (("small", 128, LAST_SMALL, (28, 28)),
                                        ("large", 32, LAST_LARGE, (224, 224, 3))):
        os.makedirs(f"{PRIVATE}/{name}")
        size = int(np.prod(shape))
        with open(f"{PRIVATE}/{name}/pixels", "wb") as f:
            f.write(bytes([0, 0, 8, 1 + len(shape)]))
            f.write(b"".join(v.to_bytes(4, "big") for v in (batch * batches, *shape)))
            for _ in range(batches):
                f.write(os.urandom(size * batch))
        with open(f"{PRIVATE}/{name}/pixels", "rb") as f:
            while f.read(MiB):
                pass


def kind(folder):
    """"image" or "data": the name of the field."""
    return "image" if any(".image." in name for name in os.listdir(folder)) else "data"


def bar_pushed():
    """A batch every 5 or 20 ms, which is slower than the push. A reader that has not listed the
    folder looks up each name: one request per batch, which no push can save."""
    sources()
    with mount(f"{PRIVATE}/small") as daemon:
        field = kind(f"{dataset(daemon.at)}/batches/batch=128,seed=7/epoch=0/npy")
    folder, pattern = "batches/batch={},seed=7/epoch=0/npy", f"######.{field}.npy"
    small = f"{PRIVATE}/small", folder.format(128), pattern, FIRST, LAST_SMALL, 5000
    large = f"{PRIVATE}/large", folder.format(32), "######.data.npy", FIRST, LAST_LARGE, 20000
    for what, where in ("128 x 784 B", small), ("32 x 150 KB", large):
        push_rows(what, 0.85, 0.2, *where, True)
        push_rows(f"{what}, mmap", 0.85, 0.2, *where, True, options=["-m"])
        push_rows(f"{what}, not listed", None, 1.2, *where, False)
    push_rows("samples in order", 0.85, 0.2, f"{PRIVATE}/small", "samples/npy", pattern, 200, 20200,
              300, True)


# ---- retention ----

def belady(accesses, capacity, bypass):
    """Misses of each epoch under the rule that drops what is needed last. accesses: a list of
    blocks for each epoch; bypass: a block may stay out of the cache."""
    flat = [block for epoch in accesses for block in epoch]
    following, seen = [0] * len(flat), {}
    for i in range(len(flat) - 1, -1, -1):
        following[i] = seen.get(flat[i], len(flat) + flat[i])
        seen[flat[i]] = i
    here, heap, misses, i = {}, [], [], 0
    for epoch in accesses:
        missed = 0
        for block in epoch:
            new = block not in here
            missed += new
            if new and len(here) == capacity:
                while here.get(heap[0][1]) != -heap[0][0]:
                    heapq.heappop(heap)
                if bypass and following[i] >= -heap[0][0]:
                    i += 1
                    continue
                del here[heapq.heappop(heap)[1]]
            here[block] = following[i]
            heapq.heappush(heap, (-following[i], block))
            i += 1
        misses.append(missed)
    return misses


def keep_epochs(server, name, keep, block, batch, accesses):
    """Read epochs with a cache of half the size. Returns for each epoch the share of needed blocks
    that were not fetched, by the server's log; and the number of blocks that the cache holds."""
    size = os.stat(f"{WWW}/{name}").st_size
    empty(CACHE)
    calm()
    warm(name)
    server.forget()
    hits, most = [], 0
    with mount(f"{server.url}/{name}", f"cache_dir={CACHE},cache_size={size // 2},evict={keep},"
               f"block_size={block},readahead=8M,plan=batch={batch}+seed={SEED}") as daemon:
        for e, needed in enumerate(accesses):
            train(f"{dataset(daemon.at)}/batches/batch={batch},seed={SEED}/epoch={e}/npy",
                  "######.image.npy", len(needed), "-g", "2000")
            fetched = sent(server.log())
            server.forget()
            hits.append(1 - fetched / block / sum(len(b) for b in needed))
            most = max(most, remote(daemon.at)["staged_bytes"] // block)
    say(f"evict={keep}: hits {' '.join(f'{h:.3f}' for h in hits)}, {most} blocks")
    return hits, most


def bar_keep():
    """Data of twice the cache, shuffled; each batch needs a block once if it has bytes of it. The
    epochs after the first count: each fetches ahead for the next as much as was fetched ahead for
    it. With every keep= overflow blocks have SPARE bytes of memory, so the simulation has both; its
    result with the cache alone is shown too."""
    for what, side, mb, batch, block, epochs in (("64 KiB", 256, 197, 16, 65536, 6),
                                                 ("784 B", 28, 200, 128, 4096, 3)):
        name = f"images-{side}"
        n = make_images(name, mb, side)
        orders_of = [orders.full(SEED, e, n) for e in range(epochs + 1)]
        accesses = [[blocks_of(order[i:i + batch], side * side, 16, block)
                     for i in range(0, n, batch)] for order in orders_of]
        keeps = {}
        with Nginx(WWW, more=FAST + " keepalive_requests 1000000;") as server:
            for keep in "pin", "plan":
                if knows(f"evict={keep}"):
                    keeps[keep] = keep_epochs(server, name, keep, block, batch, accesses[:epochs])
        capacity = keeps.get("plan", keeps["pin"])[1]

        def simulated(capacity, bypass, accesses=accesses):
            flat = [[block for needed in epoch for block in needed] for epoch in accesses]
            misses = belady(flat, capacity, bypass)
            return statistics.mean(1 - m / len(f) for m, f in list(zip(misses, flat))[1:-1])

        def later(keep, keeps=keeps):
            return statistics.mean(keeps[keep][0][1:]) if keep in keeps else 0

        best = simulated(capacity + SPARE // block, True)
        text = f"{later('plan'):.3f} hits" if "plan" in keeps else "no evict=plan"
        row(f"evict=plan - pin, half cached, {what}", text, f"evict=never {later('pin'):.3f}",
            later("plan") - later("pin"), ">=", 0)
        row(f"evict=plan, cache and memory, {what}", text, f"Belady {best:.3f}",
            later("plan") / best, ">=", 0.95)
        best = simulated(capacity, True)
        row("  with the cache alone", text, f"Belady {best:.3f}", later("plan") / best, "-", 0)


# ---- very many samples ----

def memory(pid):
    """Bytes of the process in memory: all, and all but mapped files."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        found = dict(re.findall(r"^(VmRSS|RssFile):\s+(\d+) kB$", f.read(), re.M))
    whole = int(found["VmRSS"]) * 1024
    return whole, whole - int(found["RssFile"]) * 1024


def daemon_pid(daemon):
    return lib.status(daemon.at)["pid"]


def many(what, source, options, per_run, bar):
    with mount(source, *options) as daemon:
        pid, batches = daemon_pid(daemon), -(-10**8 // 1024)
        folder = f"{dataset(daemon.at)}/batches/batch=1024,seed={SEED}/epoch=0/npy"
        before = memory(pid)
        first = train(folder, "######.label.npy", 1)
        if "remote" in lib.status(daemon.at) and bar:
            all_staged(daemon)
        near = train(folder, "######.label.npy", per_run, "-f", 1, "-g", 1000)
        far = train(folder, "######.label.npy", batches, "-f", 5000, "-t",
                    (batches - 5000) // per_run, "-g", 1000)
        whole, grown = (now - then for now, then in zip(memory(pid), before))
        say(f"{what}: first {first.waited:.3f} s, grown by {grown / MiB:.1f} MiB, VmRSS by "
            f"{whole / MiB:.1f}")
    row(f"10^8 samples, {what}: grows by", f"{grown / MiB:.1f} MiB",
        f"{2 * per_run} batches, 64 MB", grown / 64e6, "<=" if bar else "-", 1)
    row("  a batch of 1024, spread, in order", f"{far.waited / per_run * 1e3:.2f} ms",
        f"{near.waited / (per_run - 1) * 1e3:.2f} ms", far.waited / near.waited, "-", 0)


def bar_many():
    """An epoch of 10^8 samples takes no memory per sample."""
    os.makedirs(WWW)
    with open(f"{WWW}/labels", "wb") as f:
        f.write(bytes([0, 0, 8, 1]) + (10**8).to_bytes(4, "big"))
        f.write(np.random.default_rng(1).integers(0, 10, 10**8, dtype=np.uint8).tobytes())
    many("local", f"{WWW}/labels", [f"plan=batch=1024+seed={SEED}"], 300, True)
    with Nginx(WWW, more=FAST) as server:
        options = f"cache_dir={CACHE},plan=batch=1024+seed={SEED}"
        many("http", f"{server.url}/labels", [options], 300, True)
        empty(CACHE)
        if knows("evict=plan"):
            many("evict=plan, half", f"{server.url}/labels", [f"{options},evict=plan,cache_size=50M"],
                 20, False)


def bar_balanced():
    """The first batch of a balanced draw from 10^6 to 10^8 samples: once the index of classes is kept, and when it has
    to be made; that of a split from it. Against 2 s, and against ten times fewer samples."""
    os.makedirs(WWW)
    plan, of_split = (f"batches/batch=1024,{words}seed={SEED},draw=100000:balanced/epoch=0/npz/000000.npz"
                      for words in ("", "split=0@80:20,"))
    made, split, first = {}, {}, {}
    for n in (10**6, 10**7, 10**8):
        file = f"{WWW}/labels-{n}"
        with open(file, "wb") as f:
            f.write(bytes([0, 0, 8, 1]) + n.to_bytes(4, "big"))
            f.write(np.random.default_rng(1).integers(0, 10, n, dtype=np.uint8).tobytes())
        times = []
        for i in range(1 + min(ROUNDS, 3)):  # the first one makes the index
            with mount(file, f"cache_dir={CACHE}", "readahead=0") as daemon:
                begin = time.monotonic()
                with np.load(os.path.join(daemon.at, os.path.basename(file), plan)) as batch:
                    equal(len(batch["index"]), 1024, "samples of the batch")
                times.append(time.monotonic() - begin)
                if not i:
                    begin = time.monotonic()
                    os.stat(os.path.join(daemon.at, os.path.basename(file), of_split))
                    split[n] = time.monotonic() - begin
                say(f"10^{len(str(n)) - 1} labels: first batch after {times[-1]:.3f} s, "
                    f"{memory(daemon_pid(daemon))[1] / MiB:.1f} MiB without mapped files")
        made[n], first[n] = times[0], statistics.median(times[1:])
        os.remove(file)
    for n in (10**7, 10**8):
        row(f"making the index of classes, {n} labels", f"{made[n]:.2f} s", f"a tenth: {made[n // 10]:.2f} s",
            made[n] / made[n // 10], "<=", 15)
        row(f"  that of a split with 80 % of {n} labels", f"{split[n]:.2f} s", f"a tenth: {split[n // 10]:.2f} s",
            split[n] / split[n // 10], "<=", 15)
    row("first batch of a balanced draw, 10^8 labels, index kept", f"{first[10**8]:.2f} s", "2 s", first[10**8] / 2, "<=", 1)


SELECTIONS = ("split=0@80:20,seed=7", "take=10%:90%,seed=7", "seed=7,limit=500", "split=0@80:20,rank=3of8,seed=7")


# As epochfs-bench-orders prints them. The program asks in batches, both ways.
WAYS = "in batches", "one by one", "back, many at once", "back, one by one"

# With replacement, by class, and of a list: {n} is the number of samples. Classes and weights are
# arithmetic here, and the list has at most 2^24 entries: see bench/orders_data.h.
DRAWS = ("draw={n}:uniform,seed=7", "draw={n}:balanced,seed=7", "draw={n}:weight,seed=7", "only=list,seed=7",
         "batch=64,classes=16x4,seed=7")


def bar_orders():
    """Each order against that of shuffle=full, and against itself with a million times the samples."""
    program = os.path.join(os.path.dirname(lib.EPOCHFS), "epochfs-bench-orders")
    took = {}
    for _ in range(bars.ROUNDS):
        for plan in ("seed=7", *SELECTIONS, *DRAWS):
            for n in (10 ** 3, 10 ** 9):
                whole = plan if plan.startswith("batch=") else f"batch=all,{plan}"
                found = subprocess.run([program, whole.format(n=n), str(n)], check=True, stdout=subprocess.PIPE).stdout
                took.setdefault((plan, n), []).append([float(ns) for ns in found.split()])
    for plan in (*SELECTIONS, *DRAWS):
        for k, what in enumerate(WAYS):
            of = {n: [t[k] for t in took[plan, n]] for n in (10 ** 3, 10 ** 9)}
            full = [t[k] for t in took["seed=7", 10 ** 9]]
            bars.row(f"a position of {plan}, {what}, N=10^9", f"{statistics.median(of[10 ** 9]):.0f} ns",
                     f"seed=7 {statistics.median(full):.0f} ns", statistics.median(of[10 ** 9]) / statistics.median(full), "<=", 3)
            bars.row("  the same against N=10^3", f"{statistics.median(of[10 ** 9]):.0f} ns",
                     f"N=10^3 {statistics.median(of[10 ** 3]):.0f} ns",
                     statistics.median(of[10 ** 9]) / statistics.median(of[10 ** 3]), "<=", 1.5)


MIX = "m=a*7+b*3+c*2+d*1"


def bar_mix_orders():
    """The order of a mix of four sources, as bar_orders() has the others, with both kinds of shuffles."""
    program = os.path.join(os.path.dirname(lib.EPOCHFS), "epochfs-bench-orders")
    cases = {"seed=7": (), "a mix": (MIX,), "a mix with window:64": (MIX,)}
    took = collections.defaultdict(list)
    for _ in range(bars.ROUNDS):
        for what, mix in cases.items():
            for n in (10 ** 3, 10 ** 9):
                plan = "batch=all,seed=7" + (",shuffle=window:64" if "window" in what else "")
                found = subprocess.run([program, plan, str(n), *mix], check=True, stdout=subprocess.PIPE).stdout
                took[what, n].append([float(ns) for ns in found.split()])
    for what in list(cases)[1:]:
        for k, way in enumerate(WAYS):
            few, many_, full = (statistics.median(t[k] for t in took[of])
                                for of in ((what, 10 ** 3), (what, 10 ** 9), ("seed=7", 10 ** 9)))
            bars.row(f"a position of {what}, {way}, N=10^9", f"{many_:.0f} ns", f"seed=7 {full:.0f} ns", many_ / full, "<=", 3)
            bars.row("  the same against N=10^3", f"{many_:.0f} ns", f"N=10^3 {few:.0f} ns", many_ / few, "<=", 1.5)


orders.check()
globals()[f"bar_{sys.argv[1]}"]()
