#!/usr/bin/python3
"""Shards on a web server: read as on a disk, each byte fetched once. Finding the samples of a shard of
large members takes its headers, not the shard; what a plan needs is fetched and nothing else."""

import errno
import gzip
import io
import os
import re
import shutil
import tarfile

import numpy as np

from lib import (CACHE, PRIVATE, SOURCE, content, equal, expect_error, mounted, path, run, start,
                 stop, write)
from servers import Nginx, check_counters, check_once, sent, wait_staged
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
        numbers = wait_staged(daemon)
        check_counters(server.log(), "shards", numbers)
        check_once(server.log(), sizes, "shards")
        stop(daemon)
        before = len(server.log())
        with mounted(f"{server.url}/", f"cache={CACHE}"):  # the indexes are also kept
            ds.check_plan("batch=32,seed=4", 1)
        equal(len(server.log()), before, "requests after a remount")
        run("stage", "--check", "-o", f"cache={CACHE}", f"{server.url}/")


def check_headers():
    """The index of 12 samples of 3 MB takes some blocks of each, and reading one its blocks. What is
    between the headers of smaller members takes less time to come than to be asked for."""
    data = {"large": shard(entries(0, 12, 4_000_000)), "small": shard(entries(0, 200, 40_000))}
    ds, seen, many = {}, {}, {}
    for name, bytes_ in data.items():
        folder = f"{PRIVATE}/{name}"
        os.mkdir(folder)
        with open(f"{folder}/a.tar", "wb") as f:
            f.write(bytes_)
        with Nginx(folder) as server:
            with mounted(f"{server.url}/a.tar", f"cache={CACHE}.{name},stage=off,block=4K"):
                ds = Shards(path("a.tar"), bytes_)
                ds.check_listing()
                seen[name], many[name] = sent(server.log()), len(server.log())
                np.load(f"{ds.folder}/batches/batch=all/npy/000000.cls.npy")
                equal(sent(server.log()), seen[name], "bytes for the labels, which the index has")
                ds.check_sample(7)
                equal(sent(server.log()) - seen[name] <= len(ds.samples[7][1]["jpg"]) + 4 * BLOCK, True,
                      f"{sent(server.log()) - seen[name]} bytes for a sample")
    equal(seen["large"] < len(data["large"]) / 20, True, f"{seen} bytes for the index")
    equal(many["large"] <= 3 * 12 + 8, True, f"{many} requests for 24 headers")
    equal(many["small"] <= 40, True, f"{many} requests for 400 headers")


def dali_index(bytes_, version):
    """As wds2idx writes it."""
    lines, before = [], None
    with tarfile.open(fileobj=io.BytesIO(bytes_)) as tar:
        for m in tar:
            key, _, ext = m.name.partition(".")
            if key != before:
                lines.append([])
            before = key
            lines[-1].append(f"{ext} {m.offset_data} {m.size}" + (f" {m.name}" if version == "v1.2" else ""))
    return (f"{version} {len(lines)}\n" + "".join(" ".join(line) + "\n" for line in lines)).encode()


def check_hints():
    """With DALI's index headers of members of 100 KB are asked for many at once, and what is between them is
    left where it is; an index that lies does no harm."""
    data = shard(entries(0, 120, 200_000))
    good = dali_index(data, "v1.1")
    numbers = re.sub(rb"(?<=[a-z] )(\d+) (\d+)",
                     lambda m: b"%d %d" % (int(m[1]) // 1024 * 512 + 512, int(m[2]) // 3), good)
    indexes = {"none": None, "v1.1": good, "v1.2": dali_index(data, "v1.2"), "cut": good[:-40], "numbers": numbers,
               "words": b"v1.1 7\n" + b"jpg 99999999999999999999999 512 cls -1 512 1024\n" * 9,
               "large": b"v1.2 1\n" + b"".join(b"jpg %d 1 a b\n" % (512 * i) for i in range(40000))}
    seen = {}
    for name, index in indexes.items():
        folder = f"{PRIVATE}/hints-{name}"
        os.mkdir(folder)
        for file, body in (("a.tar", data), ("a.idx", index)):
            if body is not None:
                with open(f"{folder}/{file}", "wb") as f:
                    f.write(body)
        with Nginx(folder) as server:
            with mounted(f"{server.url}/", f"cache={CACHE}.hints-{name},stage=off,block=4K"):
                ds = Shards(path("a.tar"), data)
                ds.check_listing()
                seen[name] = sent(server.log())
                for i in (0, 77, 119):
                    ds.check_sample(i)
    print(f"bytes for the index of {len(data)}: {seen}")
    for name in ("v1.1", "v1.2"):
        equal(seen[name] < seen["none"] / 3, True, f"{seen} bytes for the index")


def check_changed():
    """A shard that is replaced on the server: fetched bytes are kept, the rest is ESTALE."""
    folder = f"{PRIVATE}/changed"
    os.mkdir(folder)
    made = entries(0, 6, 4_000_000)
    with open(f"{folder}/a.tar", "wb") as f:
        f.write(shard(made))
    with Nginx(folder) as server:
        with mounted(f"{server.url}/a.tar", f"cache={CACHE}.changed,stage=off,block=4K"):
            ds = Shards(path("a.tar"), shard(made))
            ds.check_sample(1)
            with open(f"{folder}/new", "wb") as f:
                f.write(shard([(name, body[::-1]) for name, body in made]))
            os.utime(f"{folder}/new", (1, 1))
            os.rename(f"{folder}/new", f"{folder}/a.tar")
            expect_error(errno.ESTALE, content, ds.folder, "samples/raw/00005.jpg")
            ds.check_sample(1)


check_once_all()
check_headers()
check_hints()
check_changed()
