#!/usr/bin/python3
"""MindRecord over HTTP: rows are those of the files, no .db is requested, each byte comes at most once,
and of files with large pages only what the pages use."""

import io
import os

import numpy as np

import lib
from lib import CACHE, PRIVATE, contains, equal, mounted, path, run
from mindrecord_model import make, read
from servers import Nginx

SCHEMA = {"image": {"type": "bytes"}, "ids": {"type": "int64", "shape": [-1]}, "label": {"type": "int32"},
          "name": {"type": "string"}}
ROWS = [{"image": b"\xff\xd8\xff" + bytes([i]) * 3000, "ids": np.arange(i % 7) * 10 ** (i % 12), "label": i,
         "name": f"row {i}"} for i in range(40)]
NAMES = ["s.mindrecord0", "s.mindrecord1"]
http = os.path.join(PRIVATE, "http")
os.makedirs(http)
for i, name in enumerate(NAMES):
    with open(os.path.join(http, name), "wb") as f:
        f.write(make(SCHEMA, ROWS[20 * i:20 * i + 20], shard=i, addresses=NAMES, rows_of_page=9))
    with open(os.path.join(http, f"{name}.db"), "wb") as f:
        f.write(b"SQLite format 3\0" + os.urandom(5000))
rows = [row for name in NAMES for row in read(lib.content(http, name))[1]]


def array(*parts):
    return np.load(io.BytesIO(lib.content(path(*parts))))


def check_batches(ds):
    seen = []
    for b in range(5):
        npz = array(ds, f"batches/batch=8,seed=3/epoch=0/npz/{b:06}.npz")
        at, ids = npz["image_offsets"], npz["ids_offsets"]
        for k, i in enumerate(npz["index"].tolist()):
            want = rows[i]
            equal(npz["image"][at[k]:at[k + 1]].tobytes(), want["image"], f"image {i}")
            equal(npz["ids"][ids[k]:ids[k + 1]].tolist(), want["ids"].tolist(), f"ids {i}")
            equal((int(npz["label"][k]), npz["name"][k]), (int(want["label"]), want["name"]), f"row {i}")
            seen.append(i)
    equal(sorted(seen), list(range(40)), "an epoch")


with Nginx(http) as nginx:
    with mounted(nginx.url, f"cache={CACHE}", "block=4096"):
        check_batches("all")
        equal([n for n in os.listdir(path()) if n.endswith(".db")], [])
    log = nginx.log()
    contains(" ".join(r.path for r in log), NAMES[0], NAMES[1])
    equal([r.path for r in log if r.path.endswith(".db") and r.sent], [], "requests for .db")
    equal(sum(r.sent for r in log if "mindrecord" in r.path) <= sum(os.path.getsize(os.path.join(http, n)) for n in NAMES),
          True, "each byte once")

# Pages of 32 MiB behind a header of 16 MiB: of 48 MiB that are mostly holes a little is fetched.
holes = os.path.join(PRIVATE, "holes")
os.makedirs(holes)
with open(os.path.join(holes, "x.mindrecord"), "wb") as f:
    f.write(make(SCHEMA, ROWS[:10], header_size=16 << 20, page_size=32 << 20, addresses=["x.mindrecord"]))
with Nginx(holes) as nginx:
    contains(run("info", "-o", f"cache={CACHE}.holes", "-o", "block=4096", nginx.url), "samples  10")
    got = sum(r.sent for r in nginx.log())
    equal(got < 2_000_000, True, f"{got} bytes of a file of 48 MiB")
