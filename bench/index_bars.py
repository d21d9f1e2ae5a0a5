#!/usr/bin/python3
"""What `.epochfs/` next to the data spares (bench/groups/collections.sh): index_bars.py BAR

Prints the rows of the table as cache_bars.py does: seconds from `epochfs mount` to the first batch of a shuffled
epoch, of far data, with and without `.epochfs/`.
"""

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time
import types

from bars import FAST, Far, calm, dd, empty, mb_per_s, mount, ratio, row, say
from fake_s3 import FakeS3
from lib import EPOCHFS, PRIVATE
from servers import Nginx, files_below
from tar_make import make as make_tar
from tfrecord_model import example, frame, integers, strings

ROUNDS = int(os.environ.get("EPOCHFS_BENCH_ROUNDS", "3"))
RATE, DELAY = 100e6, 0.01  # bytes per second; seconds in each direction
SHARDS, SHARD = 16, 16e6
FILES, CLASSES = 99000, 100  # and 100 folders: a mount reads 100,000 entries of index pages
BATCH = "all/batches/batch=64,seed=7/epoch=0/tar/000000.tar"
DATA = f"{PRIVATE}/beside"


def make_shards(folder):
    for i in range(SHARDS):
        make_tar(f"{folder}/{i:02d}.tar", SHARD, 15000)


def make_tfrecords(folder):
    picture = os.urandom(20000)
    for i in range(SHARDS):
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{i:02d}.tfrecord", "wb") as f:
            for k in range(int(SHARD) // 20000):
                f.write(frame(example(image=strings(picture), label=integers(k % 10))))


def make_files(folder):
    for i in range(FILES):
        at = f"{folder}/class{i % CLASSES:03d}"
        if i < CLASSES:
            os.makedirs(at)
        with open(f"{at}/{i:06d}.jpg", "wb") as f:
            f.write(b"picture %d" % i * 20)


def index(source, out, *options):
    empty(out)
    subprocess.run([EPOCHFS, "index", source, "-o", out, "-o", ",".join((f"cache_dir={PRIVATE}/index-cache", *options))],
                   check=True, stdout=subprocess.DEVNULL)
    empty(f"{PRIVATE}/index-cache")


def first_batch(server, source_of, *options):
    """Seconds to the first batch, and the requests for it."""
    cache = f"{PRIVATE}/cache"
    empty(cache)
    calm(False)
    with Far(server, RATE, delay=DELAY) as far:
        begin = time.monotonic()
        with mount(source_of(far.urls[0]), f"cache_dir={cache}", "plan=batch=64+seed=7", *options) as daemon:
            with open(f"{daemon.at}/{BATCH}", "rb") as f:
                f.read()
            took = time.monotonic() - begin
            return took, far.seen()["requests"]


def measure(what, turn, server, source_of, *options, limit):
    """turn(True) puts .epochfs/ next to the data, turn(False) takes it away."""
    seconds, asked = {True: [], False: []}, {}
    for _ in range(ROUNDS):
        for has in (False, True):
            turn(has)
            took, asked[has] = first_batch(server, source_of, *options)
            seconds[has].append(took)
    say(f"{what}: {asked[True]} requests with .epochfs/, {asked[False]} without")
    row(f"{what}: first batch", f"{statistics.median(seconds[True]):.2f} s, {asked[True]} requests",
        f"without .epochfs/ {statistics.median(seconds[False]):.2f} s, {asked[False]}",
        ratio(seconds[True], seconds[False]), "<=", limit)


def over_http(what, limit):
    with Nginx(DATA, more=FAST) as server:
        index(f"{server.url}/", f"{PRIVATE}/out")

        def turn(has):
            empty(f"{DATA}/.epochfs")
            if has:
                shutil.copytree(f"{PRIVATE}/out", f"{DATA}/.epochfs")

        measure(f"{what}, HTTP", turn, server, lambda url: f"{url}/", limit=limit)
        turn(False)


class Object(bytes):
    """Its ETag is made once."""

    def __init__(self, data):
        self.tag = hashlib.md5(data).hexdigest()


def over_s3(what, limit):
    objects = {}
    for path, _ in files_below(DATA):
        with open(path, "rb") as f:
            objects[f"set/{os.path.relpath(path, DATA)}"] = Object(f.read())
    with FakeS3(objects) as s3:
        os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
        index("s3://data/set", f"{PRIVATE}/out", "anonymous")

        def source_of(url):
            os.environ["AWS_ENDPOINT_URL"] = url
            return "s3://data/set"

        def turn(has):
            for name in os.listdir(f"{PRIVATE}/out"):
                key = f"set/.epochfs/{name}"
                if has:
                    with open(f"{PRIVATE}/out/{name}", "rb") as f:
                        s3.put(key, f.read())
                elif s3.data(key) is not None:
                    s3.remove(key)

        server = types.SimpleNamespace(port=s3.server.server_address[1])
        measure(f"{what}, S3", turn, server, source_of, "anonymous", limit=limit)


def beside(what, make, limit):
    empty(DATA)
    make(DATA)
    over_http(what, limit)
    over_s3(what, 1)
    empty(DATA)


def bar_beside_tar():
    beside("16 tar shards of 16 MB", make_shards, 1)


def bar_beside_tfrecord():
    beside("16 TFRecord of 16 MB", make_tfrecords, 1)


def bar_beside_files():
    beside("99,000 files", make_files, 0.5)


def make_records(path, size, each):
    """A file of RecordIO; returns how many records."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    body = os.urandom(each)
    part = (0xced7230a).to_bytes(4, "little") + each.to_bytes(4, "little") + body + bytes(-each % 4)
    n = int(size) // len(part) // 1000 * 1000
    with open(path, "wb") as f:
        for _ in range(n // 1000):
            f.write(part * 1000)
    return n


def index_seconds(folder):
    """`epochfs info`, which makes the index."""
    cache = f"{PRIVATE}/cache"
    empty(cache)
    os.mkdir(cache, 0o700)
    begin = time.monotonic()
    subprocess.run([EPOCHFS, "info", folder], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "EPOCHFS_CACHE": cache})
    return time.monotonic() - begin


def bar_recordio():
    for each, what in ((300, "records of 300 B"), (100000, "records of 100 kB")):
        path = f"{PRIVATE}/records/a.rec"
        n, ours, plain = make_records(path, 2e9, each), [], []
        size = os.path.getsize(path)
        for _ in range(ROUNDS):
            plain.append(dd(path))
            ours.append(index_seconds(f"{PRIVATE}/records"))
        rate = n / statistics.median(ours)
        if each < 1000:
            row(f"index of 2 GB of RecordIO, {what}", f"{rate:.0f} headers/s", "1000000 headers/s", rate / 1e6, ">=", 1)
        else:
            row(f"index of 2 GB of RecordIO, {what}", mb_per_s(size, ours), f"dd {mb_per_s(size, plain)}",
                ratio(plain, ours), ">=", 0.5)
        empty(f"{PRIVATE}/records")


globals()[f"bar_{sys.argv[1]}"]()
