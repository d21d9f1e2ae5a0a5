#!/usr/bin/python3
"""A folder of pictures on a web server, and one of this machine with cache=: the same samples and batches as
read in place. epochfs stage brings them, and a mount finds them there with the server gone."""

import os

import numpy as np

import files_model as model
from lib import MOUNTPOINT, PRIVATE, content, contains, equal, mounted, path, run
from servers import Nginx, place

WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(3)
for i in range(120):
    place(WWW, f"train/c{i % 4}/{i:04d}.jpg", rng.integers(0, 256, int(rng.integers(1, 20000)), dtype=np.uint8).tobytes())
    if i % 3 == 0:
        place(WWW, f"train/c{i % 4}/{i:04d}.json", b'{"i": %d}' % i)
classes, samples = model.class_folders(f"{WWW}/train")
PLAN = "train/batches/batch=16,seed=5/epoch=2"


def check():
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "README.txt", "train"], "top")
    model.check_samples(path("train"), samples)
    return {f"{enc}/{name}": content(path(PLAN, enc, name)) for enc in ("tar", "npz", "npy")
            for name in sorted(os.listdir(path(PLAN, enc)))}


with mounted(WWW):
    want = check()
for what, source, options in (("path", WWW, ""), ("http", None, "")):
    with Nginx(WWW) as server:
        source = source or server.url
        with mounted(source, f"cache={PRIVATE}/cache-{what}"):
            equal(check(), want, f"batches, {what}")
        cache = f"cache={PRIVATE}/staged-{what}"
        contains(run("stage", "-o", cache, source), "160 files", "all here and right")
        before = len(server.log())
        with mounted(source, cache):
            equal(check(), want, f"staged, {what}")
            equal(len(server.log()) - before, 0, f"requests for data after epochfs stage, {what}")
