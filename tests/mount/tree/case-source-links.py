#!/usr/bin/python3
"""Links of SOURCE: those that stay in it are followed; those that leave it are refused by mounts,
info and stage, with the option that allows them: `-o allow_outside`. The cache of a model hub is an
example."""

import os
import time

from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, log_text, mounted, path, run,
                 small)
from servers import took

small()
OUT = f"{PRIVATE}/out"
os.makedirs(f"{OUT}/many")
os.symlink(f"{SOURCE}/train-images-idx3-ubyte", f"{SOURCE}/absolute-data")
os.mkdir(f"{SOURCE}/sub")
os.symlink("../train-labels-idx1-ubyte", f"{SOURCE}/sub/relative-data")
LEAVE = {"etc": "/etc", "up": "..", "passwd": "/etc/passwd", "sub/far-data": f"{OUT}/far"}
with open(f"{SOURCE}/train-labels-idx1-ubyte", "rb") as f:
    LABELS = f.read()
with open(f"{OUT}/far", "wb") as f:
    f.write(LABELS)
for name, target in LEAVE.items():
    os.symlink(target, f"{SOURCE}/{name}")


def names(folder):
    return sorted(os.listdir(path(folder)))


def check_mount(*options, at):
    with mounted(at, *options, log="log.mount"):
        for name in LEAVE:
            contains(content(path(name, "ERROR.txt")).decode(), os.path.basename(name),
                     "lies outside of SOURCE", "-o allow_outside")
        equal(names("etc"), ["ERROR.txt"], "nothing of /etc")
        equal(names("up"), ["ERROR.txt"], "nothing of the folder above")
        got = [content(folder, file) for folder, _, files in os.walk(path("sub")) for file in files
               if folder.endswith("/source")]
        equal(got, [LABELS], "a link that stays")
        got = [file for folder, _, files in os.walk(MOUNTPOINT) for file in files
               if folder.endswith("/source")]
        equal("absolute-data" in got, True, f"an absolute one that stays: {got}")


begin = time.monotonic()
check_mount(at=SOURCE)
os.symlink(SOURCE, f"{PRIVATE}/spelled")
check_mount(at=f"{PRIVATE}/spelled")
check_mount(f"cache={PRIVATE}/cache", at=SOURCE)
said = run("info", SOURCE)
for name in LEAVE:
    contains(said, f"{name}: a link to ", "-o allow_outside")
contains(run("stage", "-o", f"cache={PRIVATE}/cache", SOURCE, code=2), "-o allow_outside")
took(time.monotonic() - begin, "what does not follow links", 60)

# ---- a store of contents ----
HUB = f"{PRIVATE}/hub/datasets--x"
os.makedirs(f"{HUB}/blobs")
os.makedirs(f"{HUB}/snapshots/abc")
os.rename(f"{OUT}/far", f"{HUB}/blobs/0123")
os.symlink("../../blobs/0123", f"{HUB}/snapshots/abc/labels-idx1-ubyte")
contains(run("info", f"{HUB}/snapshots/abc", code=2), "-o allow_outside")
# Files of a snapshot count as inside, but not what a link in the place of their folder leads to.
FALSE = f"{PRIVATE}/false/datasets--x"
os.makedirs(f"{FALSE}/snapshots/{'a' * 40}")
os.symlink(f"{HUB}/blobs", f"{FALSE}/blobs")
os.symlink(f"{HUB}/blobs/0123", f"{FALSE}/snapshots/{'a' * 40}/labels-idx1-ubyte")
contains(run("info", f"{FALSE}/snapshots/{'a' * 40}", code=2), "-o allow_outside")
run("info", HUB)
for options in ([], [f"cache={PRIVATE}/cache"]):
    with mounted(f"{HUB}/snapshots/abc", "allow_outside", *options, log="log.hub"):
        found = [f for folder, _, files in os.walk(MOUNTPOINT) for f in files
                 if os.path.basename(folder) == "source"]
        equal(len(found), 1, f"one file: {found}")
        equal(log_text("log.hub"), "", "the log")

# ---- files of a list: the user has named them ----
os.symlink(f"{HUB}/blobs/0123", f"{PRIVATE}/named-data")
run("info", f"{PRIVATE}/named-data;{SOURCE}/train-labels-idx1-ubyte")
