#!/usr/bin/python3
"""Indexes of other tools next to files on a web server: DALI's .idx of tar shards, MXNet's .idx of RecordIO. A stale
one, one that is cut short, one of another file, one that is none: samples are right, and few bytes more are read
than without any. MindRecord's .db is never asked for (mindrecord/case-far.py)."""

import os
import sys

import numpy as np

from lib import CACHE, PRIVATE, content, equal, stop
from servers import Nginx, sent, start_at
from tar_model import shard

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "recordio"))
from recordio_model import read, record  # noqa: E402

rng = np.random.default_rng(9)
N = 60


def dali(data):
    """As wds2idx writes it: a line for each sample."""
    lines = [f"bin {at} {size}" for _, at, size in places_of(data)]
    return (f"v1.1 {len(lines)}\n" + "\n".join(lines) + "\n").encode()


def places_of(data):
    import io
    import tarfile
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(m.name, m.offset_data, m.size) for m in tar]


def mxnet(data):
    return "".join(f"{i}\t{at}\n" for i, (at, _) in enumerate(read(data))).encode()


def payloads(size):
    return [rng.bytes(size + 512 * (i % 5)) for i in range(N)]


def check(name, suffix, ext, make, index):
    """make: records -> the file; index: the file -> its index."""
    now, before, other = (make(payloads(size)) for size in (60_000, 58_000, 30_000))
    good = index(now)
    indexes = {"none": None, "right": good, "stale": index(before), "foreign": index(other), "cut": good[:len(good) // 2],
               "cut-in-a-line": good[:-3], "empty": b"", "zeros": bytes(len(good)), "binary": rng.bytes(3000)}
    seen = {}
    for what, text in indexes.items():
        folder = f"{PRIVATE}/www-{name}-{what}"
        os.mkdir(folder)
        for file, body in ((f"a.{suffix}", now), ("a.idx", text)):
            if body is not None:
                with open(f"{folder}/{file}", "wb") as f:
                    f.write(body)
        with Nginx(folder) as server:
            daemon = start_at(f"{name}-{what}", f"{server.url}/", f"cache={CACHE}.{name}-{what},stage=off,block=4K")
            names = sorted(os.listdir(f"{daemon.at}/a.{suffix}/samples/raw"))
            equal(len(names), N, f"{name}, {what}: samples")
            seen[what] = sent(server.log())
            for i in (0, 1, 17, N - 1):
                equal(content(daemon.at, f"a.{suffix}/samples/raw", names[i]), RECORDS[now][i], f"{name}, {what}: {i}")
            stop(daemon)
    print(f"{name}: bytes until it is ready, of {len(now)}: {seen}")
    for what, text in indexes.items():
        most = seen["none"] + len(text or b"") + 4096 * 2 * N  # headers where none are
        equal(seen[what] <= most, True, f"{name}, {what}: {seen[what]} bytes")


RECORDS = {}


def make_tar(records):
    data = shard([(f"{i:06d}.bin", body) for i, body in enumerate(records)])
    RECORDS[data] = records
    return data


def make_rec(records):
    data = b"".join(map(record, records))
    RECORDS[data] = records
    return data


check("dali", "tar", "bin", make_tar, dali)
check("mxnet", "rec", "record", make_rec, mxnet)
