#!/usr/bin/python3
"""A folder of pictures on a web server, and one of this machine with cache=: the same samples and batches as
read in place. epochfs stage brings them, and a mount finds them there with the server gone. Classes whose folder is
empty, or leads out of SOURCE, have their numbers; what cannot be read now is an error of its dataset."""

import json
import os
import shutil

import numpy as np

import files_model as model
from lib import MOUNTPOINT, PRIVATE, content, contains, equal, log_text, mounted, path, run, text
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
        contains(run("stage", "-o", cache, source), "160 files", "complete and correct")
        before = len(server.log())
        with mounted(source, cache):
            equal(check(), want, f"staged, {what}")
            equal(len(server.log()) - before, 0, f"requests for data after epochfs stage, {what}")


# Folders of classes that are empty, and that lead out of SOURCE.
os.makedirs(f"{WWW}/train/c0-empty")
os.makedirs(f"{PRIVATE}/elsewhere")
os.symlink(f"{PRIVATE}/elsewhere", f"{WWW}/train/c1-outside")
CLASSES = ["c0", "c0-empty", "c1", "c1-outside", "c2", "c3"]


def check_classes(classes, what):
    equal(json.loads(text(path("train/dataset.json")))["classes"], classes, f"classes, {what}")
    labels = np.load(path("train/batches/batch=all/npy/000000.label.npy"))
    found = {classes[i]: int(n) for i, n in enumerate(np.bincount(labels)) if n}
    equal(found, {"c0": 30, "c1": 30, "c2": 30, "c3": 30}, what)


with mounted(WWW, log="log.here"):
    check_classes(CLASSES, "here")
    contains(log_text("log.here"), "class c0-empty (label 1) has no picture", "class c1-outside (label 3) has no picture")
os.unlink(f"{WWW}/train/c1-outside")
# What cannot be read now, or by this user, may have samples: without them other bytes would have the same names.
place(WWW, "val/x.jpg", b"x")
for hidden in (".cache", "lost+found"):
    os.makedirs(f"{WWW}/train/{hidden}")
with Nginx(WWW, more="location /train/.cache { return 403; } location /train/lost+found { return 403; }") as server:
    with mounted(server.url):
        check_classes([c for c in CLASSES if c != "c1-outside"], "folders that are never data")
for place_, status in (("/train/c2/", 403), ("/train/c2/", 500), ("/train/c2/0002.jpg", 500), ("/train/c2/0002.jpg", 404)):
    with Nginx(WWW, more=f"location = {place_} {{ return {status}; }}") as server:
        with mounted(server.url, "patience=3", log=f"log.{status}"):
            equal(os.path.exists(path("val/samples/raw/x.jpg")), True, "another dataset")
            if status == 404:
                equal(json.loads(text(path("train/dataset.json")))["samples"], 119, "it is gone, for everybody")
            else:
                contains(text(path("train/ERROR.txt")), "cannot be shown without a file that cannot be read",
                         f"{place_}: expected status 200, got {status}")
shutil.rmtree(f"{WWW}/val")
with Nginx(WWW) as server:
    for turn in range(2):  # the second one uses what the cache folder has
        with mounted(server.url, f"cache={PRIVATE}/cache-empty"):
            check_classes([c for c in CLASSES if c != "c1-outside"], "web")
