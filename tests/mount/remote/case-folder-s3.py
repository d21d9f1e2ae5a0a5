#!/usr/bin/python3
# needs: ceph root
"""A folder of files in a bucket of Ceph's S3 gateway: it equals the same folder on a disk; no object is
asked for its size, each byte is fetched once; objects that are replaced or removed are errors, and
the others go on."""

import errno
import os
import random

from lib import PRIVATE, content, equal, expect_error, start, stop
from servers import Ceph, check_counters, check_once, place, start_at, wait_staged, wait_until

UP = f"{PRIVATE}/up"
N, CLASSES = 1200, 7  # more than one page of a listing has
GONE = (errno.ESTALE, errno.EIO)


def name(i):
    return f"c{i % CLASSES}/{i:05d} é.jpg"


def data(i):
    return random.Random(i).randbytes(100 + i * 37 % 4000)


def sample(at, i):
    return content(at, f"all/samples/raw/{i:05d} é.jpg")


for i in range(N):
    place(f"{UP}/train", name(i), data(i))
local = start_at("local", f"{UP}/train", "cache=off")
with Ceph() as s3:
    os.environ.update(s3.environment, HOME=PRIVATE, AWS_ENDPOINT_URL=s3.endpoint)
    s3.send("PUT", "/data")
    s3.put(f"{UP}/train", "data/train")

    one = start("s3://data/train/", f"cache={PRIVATE}/cache")
    for i in range(0, N, 7):
        equal(sample(one.at, i) == data(i), True, f"sample {i}")
    for k in range(0, N // 50, 2):
        batch = f"all/batches/batch=50,seed=3/epoch=0/tar/{k:06d}.tar"
        equal(content(one.at, batch) == content(local.at, batch), True, batch)
    found = wait_staged(one)
    requests = wait_until(lambda: len(log := s3.log()) >= found["requests"] and log, "the gateway has logged all")
    check_once(requests, {f"/data/train/{name(i)}": len(data(i)) for i in range(N)}, "one mount")
    check_counters(requests, "one mount", found)
    equal(found["requests"], len(requests), "requests")
    stop(one)

    two = start("s3://data/train/", f"cache={PRIVATE}/other,stage=off")
    s3.send("PUT", f"/data/train/{name(100)}", b"x" * len(data(100)))
    s3.send("DELETE", f"/data/train/{name(700)}")
    for i in (100, 700):
        expect_error(GONE, sample, two.at, i)
    for i in range(N):
        if i not in (100, 700):
            equal(sample(two.at, i) == data(i), True, f"sample {i}")
    stop(two)
    three = start("s3://data/train/", f"cache={PRIVATE}/other,stage=off")
    equal(sample(three.at, 100), b"x" * len(data(100)), "replaced, in a new mount")
    expect_error(errno.ENOENT, sample, three.at, 700)
    stop(three)
stop(local)
