#!/usr/bin/python3
# slow: 10,000 files on a server
"""A folder of 10,000 files on a web server: it equals the same folder on a disk; each byte is fetched
once, and hardly more requests are made than there are files. A file that is replaced, cut, grown or
removed gives ESTALE for its sample; all others go on, also in the next mount, which shares the
cache. The same for a path with cache=."""

import errno
import os
import random

from lib import PRIVATE, SLOW, content, equal, expect_error, log_text, start, status, stop
from servers import Nginx, check_counters, check_once, kill_mount, place, remote, start_at, wait_staged, wait_until

WWW = f"{PRIVATE}/www"
N, CLASSES = 2000 if SLOW else 10000, 40
GONE = (errno.ESTALE, errno.EIO)
SIZES = {}
rng = random.Random(11)


def name(i):
    return f"c{i % CLASSES:02d}/{i:05d}.jpg"


def data(i):
    return random.Random(i).randbytes(200 + i * 37 % 4000)


def make(folder, n):
    for i in range(n):
        place(folder, name(i), data(i))


def sample(at, i):
    return content(at, f"all/samples/raw/{i:05d}.jpg")


def check_same(at, local):
    """A shuffled epoch, some samples, and the names."""
    for folder in ("", "all", "all/samples/raw"):
        # No picture can be decoded, which is known once the dataset is ready: until then there is a preview.
        equal(*(sorted(set(os.listdir(f"{top}/{folder}")) - {"preview.png"}) for top in (at, local)), folder)
    for i in range(0, N, 31):
        equal(sample(at, i) == data(i), True, f"sample {i}")
    for k in range(0, (N + 99) // 100, 3):
        batch = f"all/batches/batch=100,seed=7/epoch=1/tar/{k:06d}.tar"
        equal(content(at, batch) == content(local, batch), True, batch)


def change(folder):
    """Change some files in each way; returns their numbers. nginx knows a file by its size and by
    the second of its last change."""
    os.utime(place(folder, "new", b"x" * len(data(40))), (1, 1))
    os.rename(f"{folder}/new", f"{folder}/{name(40)}")
    os.truncate(f"{folder}/{name(2 * 123)}", 7)
    os.unlink(f"{folder}/{name(77)}")
    place(folder, name(555), data(555) + b"more")
    return {40, 246, 77, 555}


def check_changed(daemon, folder, n):
    """What is not staged by then fails if it has changed, and nothing else does."""
    bad = change(folder)
    for i in sorted(bad):
        expect_error(GONE, sample, daemon.at, i)
    for i in range(n):
        if i not in bad:
            equal(sample(daemon.at, i) == data(i), True, f"sample {i} beside those that have changed")
    for i in sorted(bad):
        expect_error(GONE, sample, daemon.at, i)
    equal("00040.jpg" in log_text(), True, "the log names a file that has changed")


make(WWW, N)
SIZES.update({f"/{name(i)}": len(data(i)) for i in range(N)})
local = start_at("local", WWW, "cache=off")

# ---- the same bytes, each fetched once ----
with Nginx(WWW) as server:
    one = start(f"{server.url}/")
    check_same(one.at, local.at)
    found = wait_staged(one)
    requests = server.log()
    check_once(requests, SIZES, "one mount")
    check_counters(requests, "one mount", found)
    equal(found["requests"], len(requests), "requests by the counter, and by the server's log")
    equal(len(requests) < 3 * N, True, f"{len(requests)} requests for {N} files")
    equal(found["distinct_bytes"], sum(SIZES.values()), "distinct bytes")
    heads = [r for r in server.log(data_only=False) if r.method == "HEAD"]
    equal(len(heads) <= N + 5, True, f"{len(heads)} HEAD requests for {N} files")
    stop(one)
    server.forget()
    two = start(f"{server.url}/")
    check_same(two.at, local.at)
    equal(server.log(), [], "requests of the next mount")
    stop(two)

# ---- killed while it stages: what came is not fetched again ----
with Nginx(WWW) as server:
    options = f"cache={PRIVATE}/killed"
    one = start(f"{server.url}/", options)
    wait_until(lambda: remote()["staged_bytes"] > 1 << 20, "1 MiB is staged", one)
    kill_mount(one)
    two = start(f"{server.url}/", options)
    check_same(two.at, local.at)
    wait_staged(two)
    check_once(server.log(), SIZES, "after kill -9", spare=16 << 20)
    stop(two)
stop(local)

# ---- files that change ----
FEW = 600
for where, block in (("http", "4K"), ("http", "64K"), ("path", "16K")):
    folder = f"{PRIVATE}/changing-{where}-{block}"
    make(folder, FEW)
    with Nginx(folder) as server:
        source = f"{server.url}/" if where == "http" else folder
        options = f"cache={PRIVATE}/cache-{where}-{block},block={block},stage=off"
        one = start(source, options)
        check_changed(one, folder, FEW)
        two = start_at("two", source, options)  # the listing as it is now: another staged file
        equal(sample(two.at, 40), b"x" * len(data(40)), "replaced, in a new mount")
        equal(sample(two.at, 555), data(555) + b"more", "grown, in a new mount")
        equal(sample(two.at, 246), data(246)[:7], "cut, in a new mount")
        expect_error(errno.ENOENT, sample, two.at, 77)
        stop(two)
        stop(one)
