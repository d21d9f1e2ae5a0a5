#!/usr/bin/python3
# slow: three epochs of each byte
"""A dataset on a web server equals the one on a disk, and each byte of it is fetched once: over
three epochs, by two mounts, after a remount, and (except transfers under way) after kill -9. The
server's log proves it, and the counters agree with the log."""

import os

from lib import (CACHE, FASHION, PRIVATE, SLOW, SOURCE, content, equal, load_gz, need_fashion,
                 start, status, stop)
from servers import (MiB, Nginx, check_counters, check_once, coverage, kill_mount, place, remote, sha256sums,
                     start_at, wait_staged)

need_fashion()
WWW = f"{PRIVATE}/www"
SIZES = {}
for packed in sorted(os.listdir(FASHION)):
    if packed.endswith(".gz"):
        data = load_gz(f"{FASHION}/{packed}")
        place(SOURCE, packed[:-3], data)
        os.makedirs(f"{WWW}/mnist", exist_ok=True)
        os.link(f"{SOURCE}/{packed[:-3]}", f"{WWW}/mnist/{packed[:-3]}")
        SIZES[f"/mnist/{packed[:-3]}"] = len(data)
sha256sums(f"{WWW}/mnist")
TOTAL = sum(SIZES.values())
JOBS = 8
local = start_at("local", SOURCE)


def same(at, *names):
    for name in names:
        equal(content(at, name) == content(local.at, name), True, f"{name}: as the local mount's")


def check_tree(at):
    """Names, sizes and times."""
    for folder in ("", "train", "train/samples", "train/samples/raw", "t10k/samples/npz",
                   "t10k/source", "train/batches"):
        equal(sorted(os.listdir(f"{at}/{folder}")), sorted(os.listdir(f"{local.at}/{folder}")),
              folder)
    for name in ("train/samples/raw/000000.image.raw", "t10k/samples/png/009999.image.png",
                 "train/source/train-images-idx3-ubyte", "t10k/source/t10k-labels-idx1-ubyte",
                 "train/batches/batch=all/npz/000000.npz"):
        here, there = os.stat(f"{at}/{name}"), os.stat(f"{local.at}/{name}")
        equal((here.st_size, int(here.st_mtime), oct(here.st_mode), here.st_ino),
              (there.st_size, int(there.st_mtime), oct(there.st_mode), there.st_ino), name)


def check_samples(at, dataset, step):
    names = sorted(os.listdir(f"{local.at}/{dataset}/samples/raw"))
    same(at, *(f"{dataset}/samples/raw/{name}" for name in names[::step]))


def check_epoch(at, epoch, share=(0, 1)):
    """Each batch of an epoch, or every share[1]-th of them."""
    for dataset, n in (("t10k", 10), ("train", 60)):
        same(at, *(f"{dataset}/batches/batch=1000,seed=7/epoch={epoch}/{enc}/{i:06d}{rest}"
                   for i in range(share[0], n, share[1])
                   for enc, rest in (("raw", ".image.raw"), ("npz", ".npz"))))


def check_all(at):
    """All bytes, in every quick encoding."""
    same(at, *(f"{name}/source/{file}" for name in ("t10k", "train")
               for file in os.listdir(f"{local.at}/{name}/source")))
    same(at, *(f"t10k/batches/batch=all/{file}" for file in (
        "npy/000000.image01.npy", "npy/000000.label1h.npy", "npz/000000.npz", "tar/000000.tar",
        "idx/000000.image.idx", "raw/000000.image.raw", "raw/000000.label.raw")))
    same(at, "train/preview.png", "t10k/preview.png")


# ---- three epochs, two mounts, a remount ----
with Nginx(WWW) as server:
    one = start(f"{server.url}/mnist/")
    check_tree(one.at)
    two = start_at("two", f"{server.url}/mnist")
    for epoch in range(3):
        check_epoch(one.at, epoch, (0, 2))
        check_epoch(two.at, epoch, (1, 2))
    check_all(two.at)
    check_samples(one.at, "t10k", 20 if SLOW else 1)
    check_samples(one.at, "train", 200 if SLOW else 7)
    numbers = [wait_staged(d) for d in (one, two)]
    for r in numbers:
        equal((r["total_bytes"], r["errors"], r["bad_blocks"], r["bad_files"], r["refused_inserts"],
               r["evictions"], r["last_error"]), (TOTAL, 0, 0, 0, 0, 0, ""), "a healthy remote")
        equal(r["served_bytes"] > 0 and r["hits"] + r["misses"] > 0, True, f"counted: {r}")
        counts = [c["count"] for c in r["wait_histogram"]]
        equal((counts, counts[-1]), (sorted(counts), r["waits"]), "the histogram has all waits")
    check_once(server.log(), SIZES, "3 epochs, 2 mounts")
    check_counters(server.log(), "3 epochs, 2 mounts", *numbers)
    equal(sum(r["distinct_bytes"] for r in numbers), TOTAL, "distinct bytes")
    stop(one)
    stop(two)
    before = len(server.log())
    again = start(f"{server.url}/mnist/")
    check_all(again.at)
    check_epoch(again.at, 3)
    equal(len(server.log()), before, "requests for data after a remount")
    equal(status(again.at)["remote"]["staged_bytes"], TOTAL, "staged bytes after a remount")
    stop(again)
    check_once(server.log(), SIZES, "and a remount")
    equal(oct(os.stat(CACHE).st_mode & 0o777), "0o700", "mode of the cache folder")

# ---- only the requested bytes ----
with Nginx(WWW) as server:
    one = start(f"{server.url}/mnist/", f"cache={PRIVATE}/lone,stage=off,block=16K")
    same(one.at, "train/samples/raw/031234.image.raw")
    got = coverage(server.log())["/mnist/train-images-idx3-ubyte"]
    equal(got[0] == got[1] <= 4 * (16 << 10), True, f"bytes fetched for one sample: {got}")
    equal(sorted(r.path for r in server.log() if r.path.endswith("labels-idx1-ubyte")),
          ["/mnist/t10k-labels-idx1-ubyte", "/mnist/train-labels-idx1-ubyte"],
          "small files come with one request")
    r = remote(one.at)
    equal(r["background_bytes"], 0, "stage=off")
    check_counters(server.log(), "one sample", r)
    stop(one)

# ---- kill -9 in the first epoch ----
with Nginx(WWW, limit_rate=MiB // 4) as server:
    options = f"cache={PRIVATE}/killed,jobs={JOBS}"
    one = start(f"{server.url}/mnist/", options)
    same(one.at, *(f"train/samples/raw/{i:06d}.image.raw" for i in range(0, 60000, 20000)))
    kill_mount(one)
    fetched = sum(total for total, _ in coverage(server.log()).values())
    equal(0 < fetched < TOTAL, True, f"killed in the first epoch: {fetched} of {TOTAL}")
    server.stop()
    server.settings["limit_rate"] = 0
    server.start()
    one = start(f"{server.url}/mnist/", options)
    check_all(one.at)
    wait_staged(one)
    stop(one)
    # In flight, or on its way to the disk.
    check_once(server.log(), SIZES, "after kill -9", spare=2 * JOBS * MiB)
stop(local)
