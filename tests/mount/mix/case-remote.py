#!/usr/bin/python3
"""A mix of datasets on a web server: its files are those of the same mix on a disk, each byte is fetched once, in the
order of need; also with a cache too small for all; and sources that must be indexed first."""

import os

import numpy as np

from lib import CACHE, SOURCE, content, equal, idx_bytes, status, stop, write
from servers import Nginx, check_once, sent, start_at, wait_staged, wait_until

SIDE = 200
COUNTS = {"a": 120, "b": 40, "c": 9}  # 40 KB per sample
TEXT = "a*3+b*2+c*1+a*1/150"
PLAN = "batch=10,seed=5"
MIX = f"mix=m={TEXT},plan={PLAN.replace(',', '+')}"
rng = np.random.default_rng(4)
for name, count in COUNTS.items():
    write(name, idx_bytes(rng.integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8)))
for name in ("rows", "more"):
    write(f"text/{name}.svm", b"".join(b"%d 1:%d\n" % (i % 2, i) for i in range(3000)))
SIZES = {f"/{name}": os.stat(f"{SOURCE}/{name}").st_size for name in COUNTS}
TOTAL = sum(SIZES.values())
local = start_at("local", SOURCE, MIX)


def batches(at, epoch):
    return f"{at}/m/batches/{PLAN}/epoch={epoch}/npz"


def check_epochs(at, *epochs):
    for epoch in epochs:
        equal(os.listdir(batches(at, epoch)), os.listdir(batches(local.at, epoch)), f"epoch {epoch}")
        for name in os.listdir(batches(at, epoch)):
            equal(content(batches(at, epoch), name) == content(batches(local.at, epoch), name), True, f"{epoch}: {name}")


def of_mix(server):
    """Requests for files of the mix; there are other files."""
    return [r for r in server.log() if r.path in SIZES]


# The batches behind the one that was read are ready in the page cache.
os.listdir(batches(local.at, 0))
content(batches(local.at, 0), "000000.npz")
wait_until(lambda: status(local.at)["push"]["files"] > 0, "batches are pushed", local)

with Nginx(SOURCE) as server:
    # Each byte once, by a reader that is ahead of the background and by one behind it.
    one = start_at("one", f"{server.url}/", f"{MIX},cache={CACHE}")
    check_epochs(one.at, 0, 1)
    wait_staged(one)
    check_epochs(one.at, 2)
    check_once(of_mix(server), SIZES, "two epochs, and one more")
    plans = {p["dataset"]: p for p in status(one.at)["plans"]}
    equal(plans["m"]["plan"], PLAN, "the plan in status.json")
    equal("a" in plans, False, "plans of sources are not announced")
    stop(one)

    # The order of need: with one transfer at a time, the first bytes are those of the first samples.
    server.forget()
    two = start_at("two", f"{server.url}/", f"{MIX},cache={CACHE}2,jobs=2,stage=off")
    first = dict(np.load(f"{batches(two.at, 0)}/000000.npz"))
    asked = {r.path for r in of_mix(server)}
    want = {"/" + "abca"[source] for source in first["source"].tolist()}
    equal(want <= asked, True, f"files of the first batch: {want}, {asked}")
    equal(sent(of_mix(server)) < TOTAL, True, "only what is read")
    stop(two)

    # A cache of half the size, keep=plan and keep=once: the same bytes.
    for keep in ("plan", "once"):
        three = start_at(f"keep-{keep}", f"{server.url}/",
                         f"{MIX},cache={CACHE}-{keep},cache_size={TOTAL // 2},keep={keep},block=16K,epochs=3")
        check_epochs(three.at, 0, 1, 2)
        stop(three)

    # Sources of text that must be indexed: the mix waits for them.
    four = start_at("four", f"{server.url}/text/", f"mix=t=rows.svm*1+more.svm*1,cache={CACHE}4")
    batch = dict(np.load(f"{four.at}/t/batches/batch=100,seed=1/epoch=0/npz/000000.npz"))
    equal(sorted(set(batch["source"].tolist())), [0, 1], "sources")
    equal((batch["label"] == batch["index"] % 2).all(), True, "labels")
    stop(four)
stop(local)
