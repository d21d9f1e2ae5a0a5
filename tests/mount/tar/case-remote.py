#!/usr/bin/python3
"""Shards on a web server: read as on a disk, each byte fetched once. Finding the samples of a shard of
large members takes its headers, not the shard; what a plan needs is fetched and nothing else."""

import errno
import gzip
import os
import shutil

import numpy as np

from lib import (CACHE, PRIVATE, SOURCE, content, equal, expect_error, mounted, path, run, start,
                 stop, write)
from servers import (Nginx, check_counters, check_once, remote, sent, wait_until)
from tar_model import Shards, shard

rng = np.random.default_rng(43)
BLOCK = 4096


def entries(start, n, size):
    return [(f"{i:05d}.{ext}", body) for i in range(start, start + n)
            for ext, body in (("jpg", rng.bytes(int(rng.integers(size // 2, size)))),
                              ("cls", b"%d" % (i % 10)))]


def check_once_all():
    """Two shards and a packed one, staged in the background while they are read."""
    data = [shard(entries(0, 150, 9000)), shard(entries(150, 60, 9000)), shard(entries(210, 40, 500))]
    write("a.tar", data[0])
    write("b.tar", data[1])
    write("c.tgz", gzip.compress(data[2], mtime=0))
    sizes = {f"/{name}": os.path.getsize(f"{SOURCE}/{name}") for name in ("a.tar", "b.tar", "c.tgz")}
    with Nginx(SOURCE) as server:
        daemon = start(f"{server.url}/", f"cache={CACHE}")
        ds = Shards(path("all"), *data)
        ds.check_listing()
        for i in (0, 149, 150, 249):
            ds.check_sample(i)
        ds.check_plan("batch=32,seed=4", 1)
        numbers = wait_until(lambda: (r := remote())["staged_bytes"] == r["total_bytes"] and r,
                             "all is staged", daemon)
        check_counters(server.log(), "shards", numbers)
        check_once(server.log(), sizes, "shards")
        stop(daemon)
        before = len(server.log())
        with mounted(f"{server.url}/", f"cache={CACHE}"):  # the indexes are kept, too
            ds.check_plan("batch=32,seed=4", 1)
        equal(len(server.log()), before, "requests after a remount")
        run("stage", "--check", "-o", f"cache={CACHE}", f"{server.url}/")


def check_headers():
    """The index of 60 samples of 150 KB takes a block or two for each, and reading one its blocks."""
    folder = f"{PRIVATE}/large"
    os.mkdir(folder)
    data = shard(entries(0, 60, 300_000))
    with open(f"{folder}/large.tar", "wb") as f:
        f.write(data)
    with Nginx(folder) as server:
        with mounted(f"{server.url}/large.tar", f"cache={CACHE}.large,stage=off,block=4K"):
            ds = Shards(path("large.tar"), data)
            ds.check_listing()
            requests = server.log()
            equal(sent(requests) < len(data) / 20, True,
                  f"{sent(requests)} of {len(data)} bytes for the index, {len(requests)} requests")
            # The header of each picture, and that of its label; two blocks where they are apart.
            equal(len(requests) <= 3 * 60 + 8, True, f"{len(requests)} requests for 120 headers")
            before = sent(requests)
            np.load(f"{ds.folder}/batches/batch=all/npy/000000.cls.npy")
            equal(sent(server.log()), before, "bytes for the labels, which the index has")
            ds.check_sample(17)
            equal(sent(server.log()) - before <= len(ds.samples[17][1]["jpg"]) + 3 * BLOCK, True,
                  f"{sent(server.log()) - before} bytes for a sample")


def check_changed():
    """A shard that is replaced on the server: what was fetched stays, the rest is ESTALE."""
    folder = f"{PRIVATE}/changed"
    os.mkdir(folder)
    made = entries(0, 30, 100_000)
    with open(f"{folder}/a.tar", "wb") as f:
        f.write(shard(made))
    with Nginx(folder) as server:
        with mounted(f"{server.url}/a.tar", f"cache={CACHE}.changed,stage=off,block=4K"):
            ds = Shards(path("a.tar"), shard(made))
            ds.check_sample(3)
            with open(f"{folder}/new", "wb") as f:
                f.write(shard([(name, body[::-1]) for name, body in made]))
            os.utime(f"{folder}/new", (1, 1))
            os.rename(f"{folder}/new", f"{folder}/a.tar")
            expect_error(errno.ESTALE, content, ds.folder, "samples/raw/00020.jpg")
            ds.check_sample(3)


check_once_all()
check_headers()
check_changed()
