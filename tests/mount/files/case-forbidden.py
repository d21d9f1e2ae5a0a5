#!/usr/bin/python3
"""A folder in a bucket whose server refuses one object (403) that it lists: reads of that sample fail with EACCES
or EIO, and all others, in the same blocks and batches of others, are right."""

import errno
import os

from fake_s3 import FakeS3
from lib import PRIVATE, content, equal, expect_error, stop
from servers import start_at

N, BAD = 300, (40, 171)


def name(i):
    return f"{i:04d}.jpg"


objects = {f"set/train/c{i % 3}/{name(i)}": b"picture %d " % i * (10 + i) for i in range(N)}
keys = {os.path.basename(key): key for key in objects}

with FakeS3(objects) as s3:
    os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
    s3.forbidden = {keys[name(i)] for i in BAD}
    daemon = start_at("mount", "s3://data/set/", "anonymous", f"cache={PRIVATE}/cache,stage=off")
    for turn in range(2):
        for i in range(N):
            if i in BAD:
                expect_error((errno.EACCES,), content, daemon.at, "train/samples/raw", name(i))
            else:
                equal(content(daemon.at, "train/samples/raw", name(i)), objects[keys[name(i)]], name(i))
    equal(s3.objects < 2 * N, True, f"{s3.objects} requests")
    stop(daemon)

    s3.forbidden = set()
    daemon = start_at("mount", "s3://data/set/", "anonymous", f"cache={PRIVATE}/cache,stage=off")
    for i in BAD:
        equal(content(daemon.at, "train/samples/raw", name(i)), objects[keys[name(i)]], "allowed, in a new mount")
    stop(daemon)
