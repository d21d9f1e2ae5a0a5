#!/usr/bin/python3
"""The bars of the Hub's formats (bench/groups/hub.sh): hub_bars.py BAR

Prints the rows of the table as cache_bars.py does. Both sides read files of the page cache, in turn.
"""

import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import time
import zipfile

import numpy as np

import parquet_model as parquet
from bars import FAST, ROUNDS, Far, dataset, empty, mb_per_s, mount, ratio, row, seconds
from first_bars import program, read_files, touch
from lib import EPOCHFS, PRIVATE, equal
from parquet_model import BYTES, FLOAT, INT32, INT64, NONE, binary, listed, number, thrift
from servers import Nginx, remote

SOURCE, CACHE = f"{PRIVATE}/hub", f"{PRIVATE}/cache"
ZSTD, UTF8 = 6, 0
PICTURE, PICTURES, GROUP, PAGE_ROWS, BATCH = 100_000, 6_000, 100, 10, 64
ROWS, COLUMNS = 10_000_000, 20


def zstd(data):
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    out = ctypes.create_string_buffer(library.ZSTD_compressBound(len(data)))
    size = library.ZSTD_compress(out, len(out), data, len(data), 1)
    return out.raw[:size]


# ---- Parquet, required columns, made fast ----

def page(values, n, codec):
    """A data page of n values that are encoded plainly, and its place in the file: header, body."""
    body = zstd(values) if codec == ZSTD else values
    header = thrift((1, 5, number(0)), (2, 5, number(len(values))), (3, 5, number(len(body))),
                    (5, 12, thrift(*[(i + 1, 5, number(v)) for i, v in enumerate((n, 0, 3, 3))])))
    return header, body


def write_parquet(path, schema, groups, codec):
    """groups: for each row group, for each column, a list of (rows, values encoded plainly) of its pages. schema: (name,
    type, converted type or None). Returns (rows, offset, length) of the bodies of each column's pages."""
    places, row_groups, total = [[] for _ in schema], [], 0
    with open(path, "wb") as f:
        f.write(b"PAR1")
        for group in groups:
            chunks = []
            for c, ((name, kind, _), pages) in enumerate(zip(schema, group)):
                begin, unpacked = f.tell(), 0
                for n, values in pages:
                    header, body = page(values, n, codec)
                    places[c].append((n, f.tell() + len(header), len(body)))
                    f.write(header + body)
                    unpacked += len(header) + len(values)
                rows = sum(n for n, _ in pages)
                chunks.append(thrift((3, 12, thrift(
                    (1, 5, number(kind)), (2, 9, listed(5, [])), (3, 9, listed(8, [binary(name)])), (4, 5, number(codec)),
                    (5, 6, number(rows)), (6, 6, number(unpacked)), (7, 6, number(f.tell() - begin)), (9, 6, number(begin))))))
            row_groups.append(thrift((1, 9, listed(12, chunks)), (2, 6, number(0)), (3, 6, number(rows))))
            total += rows
        elements = [thrift((4, 8, binary("schema")), (5, 5, number(len(schema))))]
        elements += [thrift((1, 5, number(kind)), (3, 5, number(0)), (4, 8, binary(name)),
                            *([] if converted is None else [(6, 5, number(converted))])) for name, kind, converted in schema]
        footer = thrift((1, 5, number(2)), (2, 9, listed(12, elements)), (3, 6, number(total)), (4, 9, listed(12, row_groups)))
        f.write(footer + struct.pack("<I", len(footer)) + b"PAR1")
    return places


def write_pictures(path):
    def groups():
        for first in range(0, PICTURES, GROUP):
            pages = []
            for at in range(first, first + GROUP, PAGE_ROWS):
                values = [b"\xff\xd8\xff\xe0" + os.urandom(PICTURE - 4) for _ in range(PAGE_ROWS)]
                pages.append((PAGE_ROWS, parquet.plain(BYTES, values)))
            yield pages, [(GROUP, np.arange(first, first + GROUP).astype("<i8").tobytes())]
    return write_parquet(path, [("image", BYTES, None), ("label", INT64, None)], groups(), ZSTD)


def write_numbers(path, rows, columns, group, page_rows):
    schema = [(f"c{c:02d}", (INT32, FLOAT)[c % 2], None) for c in range(columns)]
    rng = np.random.default_rng(1)

    def groups():
        for first in range(0, rows, group):
            values = [rng.integers(0, 1 << 30, min(group, rows - first), dtype=np.int32) if c % 2 == 0 else
                      rng.random(min(group, rows - first), dtype=np.float32) for c in range(columns)]
            yield [[(len(part), part.tobytes()) for part in np.split(v, range(page_rows, len(v), page_rows))] for v in values]
    return write_parquet(path, schema, groups(), NONE)


def read_epoch(plan):
    """Seconds and bytes of an epoch through a new mount."""
    with mount(SOURCE) as daemon:
        return read_files(f"{dataset(daemon.at)}/batches/{plan}/npz")


def bar_parquet_pictures():
    os.makedirs(SOURCE)
    path = f"{SOURCE}/train.parquet"
    pages = write_pictures(path)[0]
    touch()
    ours, theirs = [], []
    for i in range(ROUNDS):
        rows = random.Random(i).sample(range(PICTURES), PICTURES)
        used = dict.fromkeys(r // PAGE_ROWS for r in rows)  # in the order of their first row
        ranges = "".join(f"{pages[p][1]} {pages[p][2]}\n" for p in used)
        theirs.append(program("frames", path, input=ranges)[0] / 1e6)
        took, size = read_epoch(f"batch={BATCH},seed={i}/epoch=0")
        equal(size > PICTURES * PICTURE, True, "bytes of the epoch")
        ours.append(took)
    size = PICTURES * PICTURE
    row(f"Parquet, shuffled JPEG rows, batches of {BATCH}", mb_per_s(size, ours), f"pages, once each {mb_per_s(size, theirs)}",
        ratio(theirs, ours), ">=", 0.5)


def bar_parquet_numbers():
    os.makedirs(SOURCE)
    write_numbers(f"{SOURCE}/table.parquet", ROWS, COLUMNS, 1_000_000, 50_000)
    touch()
    ours = []
    for _ in range(ROUNDS):
        took, size = read_epoch("batch=16384")
        equal(size > ROWS * COLUMNS * 4, True, "bytes of the epoch")
        ours.append(took)
    size = ROWS * COLUMNS * 4
    row(f"Parquet, {COLUMNS} columns, stored order", mb_per_s(size, ours), "300 MB/s",
        size / 1e6 / sorted(ours)[len(ours) // 2] / 300, ">=", 1)


def first_batch(url):
    """Seconds from the start of a mount to its first batch."""
    empty(CACHE)
    begin = time.monotonic()
    with mount(url, f"cache_dir={CACHE}") as daemon:
        read_files(f"{dataset(daemon.at)}/batches/batch=64,seed=7/epoch=0/npz", 1)
        return time.monotonic() - begin


def bar_parquet_far():
    os.makedirs(SOURCE)
    for i in range(100):
        write_numbers(f"{SOURCE}/train-{i:05d}-of-00100.parquet", 2000, 4, 1000, 1000)
    found = {}
    with Nginx(SOURCE, more=FAST) as server, Far(server, 0, delay=0.01) as far:
        found["footers"] = [first_batch(f"{far.urls[0]}/") for _ in range(ROUNDS)]
        subprocess.run([EPOCHFS, "index", SOURCE, "--output", f"{SOURCE}/.epochfs"], check=True, stdout=subprocess.DEVNULL)
        found[".epochfs"] = [first_batch(f"{far.urls[0]}/") for _ in range(ROUNDS)]
    for what, limit in (("footers", 1.5), (".epochfs", 0.3)):
        took = sorted(found[what])[ROUNDS // 2]
        row(f"first batch of 100 shards, 20 ms away, {what}", f"{took:.2f} s", f"{limit} s", took / limit, "<=", 1)


def bar_zip():
    os.makedirs(SOURCE)
    with zipfile.ZipFile(f"{SOURCE}/a.zip", "w") as z:
        for i in range(1_000_000):
            z.writestr(zipfile.ZipInfo(f"{'ab'[i % 2]}/{i:07d}.txt"), b"x")
    first, second = [], []
    for _ in range(ROUNDS):
        empty(CACHE)
        os.makedirs(CACHE, 0o700)
        os.environ["EPOCHFS_CACHE"] = CACHE
        for times in (first, second):
            begin = time.monotonic()
            with mount(SOURCE) as daemon:
                dataset(daemon.at)
                times.append(time.monotonic() - begin)
    del os.environ["EPOCHFS_CACHE"]
    for what, times, limit in (("first", first, 2), ("second", second, 0.1)):
        took = sorted(times)[ROUNDS // 2]
        row(f"zip of a million members, {what} mount", f"{took:.2f} s", f"{limit} s", took / limit, "<=", 1)


def bar_packed():
    os.makedirs(SOURCE)
    rng = random.Random(1)
    words = [f"{rng.getrandbits(48):x}" for _ in range(50_000)]
    block = b"".join(json.dumps({"text": " ".join(rng.choices(words, k=60)), "n": i}).encode() + b"\n" for i in range(25_000))
    with open(f"{SOURCE}/train.jsonl.zst", "wb") as out:
        with subprocess.Popen(["zstd", "-1", "-q"], stdin=subprocess.PIPE, stdout=out) as packer:
            for _ in range(2_000_000_000 // len(block)):
                packer.stdin.write(block)
            packer.stdin.close()
    first, ours, theirs = [], [], []
    for _ in range(min(ROUNDS, 3)):
        theirs.append(seconds("zstd", "-dc", f"{SOURCE}/train.jsonl.zst"))
        empty(CACHE)
        begin = time.monotonic()
        with mount(SOURCE, f"cache_dir={CACHE}") as daemon:
            folder = f"{dataset(daemon.at)}/batches/batch=1024/npz"
            read_files(folder, 1)
            first.append(time.monotonic() - begin)
            read_files(folder)
            ours.append(time.monotonic() - begin)
    row(".jsonl.zst of 2 GB, epoch with its index", f"{sorted(ours)[len(ours) // 2]:.1f} s",
        f"zstd -dc {sorted(theirs)[len(theirs) // 2]:.1f} s", ratio(theirs, ours), ">=", 0.8)
    row("  until the first batch", f"{sorted(first)[len(first) // 2]:.1f} s", "zstd -dc of all", ratio(first, theirs), "-", 0)


def write_mds(n, size, each):
    """n shards of `each` samples."""
    os.makedirs(SOURCE)
    shards = []
    for i in range(n):
        at, head = 4 + 4 * (each + 1) + 2, b"{}"
        name = f"shard.{i:05d}.mds"
        with open(f"{SOURCE}/{name}", "wb") as f:
            f.write(struct.pack(f"<{each + 2}I", each, *range(at, at + (size + 4) * each + 1, size + 4)) + head)
            for _ in range(each):
                f.write(struct.pack("<I", size) + b"\xff\xd8\xff\xe0" + os.urandom(size - 4))
            bytes_of = f.tell()
        shards.append({"column_names": ["x"], "column_encodings": ["jpeg"], "column_sizes": [None], "format": "mds", "version": 2,
                       "samples": each, "compression": None, "zip_data": None,
                       "raw_data": {"basename": name, "bytes": bytes_of, "hashes": {}}})
    with open(f"{SOURCE}/index.json", "w", encoding="ascii") as f:
        json.dump({"shards": shards, "version": 2}, f)
    return [f"{SOURCE}/{s['raw_data']['basename']}" for s in shards]


def bar_mds():
    paths = write_mds(8, PICTURE, 600)
    touch()
    ours, theirs, each = [], [], os.path.getsize(paths[0])
    size = each * len(paths)
    parts = "".join(f"{at} {min(1 << 20, each - at)}\n" for at in range(0, each, 1 << 20))
    for i in range(ROUNDS):
        theirs.append(sum(program("ranges", path, input=parts)[0] for path in paths) / 1e6)
        ours.append(read_epoch(f"batch={BATCH},seed={i}/epoch=0")[0])
    row("MDS, shuffled", mb_per_s(size, ours), f"shards in order {mb_per_s(size, theirs)}", ratio(theirs, ours), ">=", 0.7)


def bar_transferred():
    """The distinct bytes that an epoch takes are those of a copy of the source, but heads and footers that no sample needs."""
    for what, make in (("Parquet", lambda: (os.makedirs(SOURCE), write_pictures(f"{SOURCE}/train.parquet"))),
                       ("MDS", lambda: write_mds(4, PICTURE, 600))):
        empty(SOURCE)
        make()
        size = sum(os.path.getsize(f"{SOURCE}/{name}") for name in os.listdir(SOURCE))
        empty(CACHE)
        with Nginx(SOURCE, more=FAST) as server, mount(f"{server.url}/", f"cache_dir={CACHE}") as daemon:
            read_files(f"{dataset(daemon.at)}/batches/batch={BATCH},seed=7/epoch=0/npz")
            r = remote(daemon.at)
            got = r["demand_bytes"] + r["background_bytes"]
        row(f"bytes transferred of a shuffled epoch, {what}", f"{got / 1e6:.1f} MB", f"source {size / 1e6:.1f} MB", got / size, "<=", 1.001)


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
