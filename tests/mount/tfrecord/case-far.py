#!/usr/bin/python3
"""TFRecord shards on a web server: indexed and read as on a disk, each byte fetched once, none after
a remount; and no byte twice where the cache holds a part of them only."""

import gzip
import io
import os

import numpy as np

import lib
import tfrecord_model as tf
from lib import PRIVATE, SOURCE, equal, mounted, path, start, stop, write
from servers import Nginx, check_counters, check_once, files_below, remote, sha256sums, wait_staged

rng = np.random.default_rng(5)
N = 600
LABELS = rng.integers(-99, 99, N).tolist()
PICTURES = [rng.bytes(int(rng.integers(100, 3000))) for _ in range(N)]
MESSAGES = [tf.example(label=tf.integers(v), image=tf.strings(p)) for v, p in zip(LABELS, PICTURES)]


def shard(first, end):
    return b"".join(map(tf.frame, MESSAGES[first:end]))


for i in range(3):
    write(f"s-{i:05}-of-00003", shard(200 * i, 200 * i + 200))
write("packed/p.tfrecord.gz", gzip.compress(shard(0, 50)))
sha256sums(SOURCE)
SIZES = {f"/{os.path.relpath(file, SOURCE)}": st.st_size for file, st in files_below(SOURCE)
         if not file.endswith("SHA256SUMS")}


def load(*parts):
    return np.load(io.BytesIO(lib.content(path(*parts))))


def check():
    seen = []
    for batch in range(10):
        npz = load(f"all/batches/batch=64,seed=3/epoch=1/npz/{batch:06}.npz")
        rows, at = npz["index"].tolist(), npz["image_offsets"]
        equal(npz["label"].tolist(), [LABELS[i] for i in rows], f"labels of batch {batch}")
        equal([npz["image"][at[k]:at[k + 1]].tobytes() for k in range(len(rows))],
              [PICTURES[i] for i in rows], f"pictures of batch {batch}")
        seen += rows
    equal(sorted(seen), list(range(N)), "an epoch")
    for i in (0, 199, 200, 599):
        equal(lib.content(path(f"all/samples/raw/{i:06}.image.bin")), PICTURES[i], "a sample")
    equal(load("packed/p.tfrecord/batches/batch=all/npy/000000.label.npy").tolist(), LABELS[:50], "packed")


with Nginx(SOURCE) as server:
    daemon = start(f"{server.url}/")
    check()
    numbers = wait_staged(daemon)
    requests = server.log()
    check_counters(requests, "TFRecord", numbers)
    check_once(requests, SIZES, "TFRecord")
    stop(daemon)
    before = len(server.log())
    with mounted(f"{server.url}/"):
        check()
    equal(len(server.log()), before, "requests after a remount")

    # To index takes each byte once, whatever the cache can hold. Blocks are whole.
    before = len(server.log())
    with mounted(f"{server.url}/", f"cache={PRIVATE}/small,cache_size=300K,block=4K,stage=off"):
        lib.text(path("all/dataset.json"))
        numbers = remote()
    equal(numbers["demand_bytes"] + numbers["background_bytes"] - numbers["distinct_bytes"] <= 16384, True,
          f"bytes fetched twice: {numbers}")
