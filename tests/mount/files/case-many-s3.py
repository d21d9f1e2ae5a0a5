#!/usr/bin/python3
# slow: many files in a bucket
"""A bucket of many pictures: the first mount lists ranges of keys side by side, the second one asks for each
page once and reads those that have changed; both show what a listing page after page shows.

MANY=1300000 prints how long a million files take, also from the list next to the data, and the memory of the daemon in
a shuffled epoch."""

import os
import re
import time

from lib import PRIVATE, content, equal, expect_error, run, stop
from fake_s3 import PAGE, FakeS3
from servers import start_at

MANY = int(os.environ.get("MANY", 0))
N, CLASSES = MANY or 12000, 1000 if MANY else 40
OPTIONS = ("anonymous", f"cache={PRIVATE}/cache")


def key(i):
    return f"set/train/n{i % CLASSES:04d}/n{i % CLASSES:04d}_{i}.jpg"


def name(i):
    return os.path.basename(key(i))


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return {line.split(":")[0]: int(line.split()[1]) // 1024 for line in f if line.startswith(("VmRSS", "VmHWM"))}


def classes(at):
    return len(set(re.findall(rb'"n[0-9]{4}"', content(at, "train/dataset.json"))))


def mount(s3, what):
    """A mount, and the requests for pages of the listing that it took."""
    before, begin = s3.lists, time.monotonic()
    daemon = start_at("mount", "s3://data/set/", *OPTIONS)
    took = time.monotonic() - begin
    if MANY:
        print(f"{what}: {took:.2f} s, {s3.lists - before} requests, {resident(daemon.pid)} MiB", flush=True)
    return daemon, s3.lists - before


def check(daemon, some):
    for i, data in some.items():
        equal(content(daemon.at, "train/samples/raw", name(i)), data, name(i))


with FakeS3([key(i) for i in range(N)]) as s3:
    os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
    pages = -(-N // PAGE)
    some = {i: key(i).encode() for i in range(0, N, N // 7)}

    daemon, requests = mount(s3, "first mount")
    equal(pages < requests <= pages + 64 + 8, True, f"{requests} requests for {pages} pages")
    check(daemon, some)
    equal(classes(daemon.at), CLASSES, "classes")
    stop(daemon)

    daemon, requests = mount(s3, "second mount")
    equal(pages <= requests <= pages + 64, True, f"{requests} requests for {pages} pages, kept")
    second = requests
    before = s3.objects
    check(daemon, some)
    if MANY:
        for k in range(0, N // 64, N // 64 // 50):
            content(daemon.at, f"train/batches/batch=64,seed=3/epoch=0/tar/{k:06d}.tar")
        print(f"in a shuffled epoch: {resident(daemon.pid)} MiB", flush=True)
    stop(daemon)

    if MANY:  # the list next to the data, for nodes that were never here
        run("index", "s3://data/set/", "-o", f"{PRIVATE}/out", "-o", "anonymous")
        for file in os.listdir(f"{PRIVATE}/out"):
            s3.put(f"set/.epochfs/{file}", content(PRIVATE, "out", file))
        first, OPTIONS = OPTIONS, ("anonymous", f"cache={PRIVATE}/new")
        for what in ("first mount with .epochfs/", "second mount with .epochfs/"):
            stop(mount(s3, what)[0])
        OPTIONS = first
        for file in os.listdir(f"{PRIVATE}/out"):
            s3.remove(f"set/.epochfs/{file}")

    s3.put(key(3), b"another picture")
    s3.put(f"set/train/n{CLASSES:04d}/new.jpg", b"in a new class")
    s3.remove(key(5))
    daemon, requests = mount(s3, "third mount, with changes")
    equal(requests <= second + 2, True, f"{requests} requests, {second} before the changes")
    check(daemon, {**some, 3: b"another picture"})
    equal(content(daemon.at, "train/samples/raw/new.jpg"), b"in a new class")
    expect_error(2, content, daemon.at, "train/samples/raw", name(5))
    equal(classes(daemon.at), CLASSES + 1, "classes")
    stop(daemon)
