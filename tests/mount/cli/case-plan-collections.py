#!/usr/bin/python3
"""epochfs plan of folders of files, shards and records: its bytes are those that a job fetches, also where the
parts of a dataset have samples of very different sizes; what several datasets share is fetched once."""

import json
import os
import shutil
import sys

import numpy as np

import tfrecord_model as tf
from lib import PRIVATE, content, equal, mounted, path, run
from servers import Nginx, place, remote
from tar_model import shard

sys.path.append(os.path.join(os.environ["CASES"], "recordio"))
from recordio_model import picture, record  # noqa: E402

BLOCK = 16 << 10
N = 96
JPEG = b"\xff\xd8\xff\xe0"
rng = np.random.default_rng(18)
# The first half of each dataset is large, the second small.
PICTURES = [JPEG + rng.bytes(40000 if i < N // 2 else 400) for i in range(N)]
WWW = f"{PRIVATE}/www"


def members(first, end):
    return [(f"{i:06}.{ext}", data) for i in range(first, end) for ext, data in (("jpg", PICTURES[i]), ("cls", b"%d" % (i % 5)))]


for i, data in enumerate(PICTURES):
    place(WWW, f"files/set/{'ab'[i >= N // 2]}/{i:03}.jpg", data)
for s in range(2):
    half = range(s * N // 2, (s + 1) * N // 2)
    place(WWW, f"tar/s-{s}.tar", shard(members(half.start, half.stop)))
    place(WWW, f"tfrecord/t-0000{s}-of-00002",
          b"".join(tf.frame(tf.example(image=tf.strings(PICTURES[i]), label=tf.integers(i % 5))) for i in half))
    place(WWW, f"recordio/r-{s}.rec", b"".join(record(picture(float(i % 5), i, PICTURES[i])) for i in half))
KINDS = {"files": "set", "tar": "all", "tfrecord": "all", "recordio": "all"}


def plan(source, *arguments):
    found = json.loads(run("plan", "--json", *arguments, source))
    equal(found["not_planned"], [], f"not planned of {source}")
    return {(x["dataset"], x["plan"]): x for x in found["plans"]}


def near(found, want, spare, what):
    equal(abs(found - want) <= spare, True, f"{what}: {found}, expected {want}, +- {spare}")


def check_in_place():
    """A dataset's samples, and its bytes; a share of it has its own bytes."""
    for kind, name in KINDS.items():
        x = plan(f"{WWW}/{kind}")[name, "batch=128"]
        equal((x["samples"], x["epoch_samples"], x["batches"]), (N, N, 1), kind)
        total = sum(map(len, PICTURES))
        near(x["dataset_bytes"], total, 2600 * N, f"{kind}: bytes")
        equal(x["epoch_bytes"], x["dataset_bytes"], f"{kind}: bytes of an epoch of all")


def check_remote(server, kind, name, share):
    """The forecast of an epoch, then the epoch."""
    url = f"{server.url}/{kind}/"
    spec = f"batch=16,part={share}of2,seed=5"
    options = f"cache={PRIVATE}/cache,block=16K,plan={spec.replace(',', '+')}"
    x = plan(url, "-o", options, "--rate=8M", "--epochs=1")[name, spec]
    equal((x["epoch_samples"], x["batches"]), (N // 2, N // 32), f"{kind} {share}")
    shutil.rmtree(f"{PRIVATE}/cache")
    with mounted(url, f"cache={PRIVATE}/cache,block=16K,stage=off"):
        path(name)
        for batch in range(N // 32):
            content(path(f"{name}/batches/{spec}/epoch=0/npz", f"{batch:06}.npz"))
        fetched = remote()["demand_bytes"] + remote()["background_bytes"]
    shutil.rmtree(f"{PRIVATE}/cache")
    half = slice(N // 2) if share == 0 else slice(N // 2, N)
    want = sum(map(len, PICTURES[half]))
    near(x["epoch_bytes"], want, 2 if kind == "files" else 200_000, f"{kind} {share}: bytes of an epoch")
    equal(x["staged_bytes"] + x["missing_bytes"], x["epoch_block_bytes"], f"{kind} {share}: here and missing")
    if kind == "files":  # no index: what is fetched is what the plan reads, in whole blocks
        near(fetched, x["epoch_block_bytes"], 2 * BLOCK, f"{kind} {share}: fetched")


check_in_place()
with Nginx(WWW) as http:
    for dataset in KINDS.items():
        for half in range(2):
            check_remote(http, *dataset, half)
