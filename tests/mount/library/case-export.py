#!/usr/bin/python3
"""epochfs cat and epochfs export: the bytes of a mount, without one; an export goes on where it stopped."""

import os
import subprocess

import numpy as np

from lib import EPOCHFS, PRIVATE, SOURCE, contains, content, equal, idx_bytes, mounted, path, run, write

rng = np.random.default_rng(2)
for name in ("train", "t10k"):
    write(f"{name}-images-idx3-ubyte", idx_bytes(rng.integers(0, 256, (50, 4, 4), np.uint8)))
    write(f"{name}-labels-idx1-ubyte", idx_bytes(rng.integers(0, 10, 50, np.uint8)))
OUT = f"{PRIVATE}/out"


def cat(name, *options):
    return subprocess.run([EPOCHFS, "cat", *options, SOURCE, name], stdout=subprocess.PIPE, check=True).stdout


def names(folder):
    return sorted(name for name in os.listdir(folder) if name != ".epochfs-export")


with mounted(SOURCE, "one_hot=12"):
    for name in ("train/dataset.json", "train/batches/batch=16,seed=7/epoch=2/npz/000003.npz", "t10k/samples/npy/000004.image.npy",
                 "train/samples/npy/000004.label1h.npy"):
        equal(cat(name, "-o", "one_hot=12"), content(path(name)), name)
    for encoding, plan, flags, folder in (("npz", "batch=16,seed=7", [], "epoch=0/"), ("npy", "batch=16,seed=7", ["--epoch=2"], "epoch=2/"),
                                          ("tar", "batch=20", [], "")):
        done = run("export", f"--encoding={encoding}", "--dataset=train", *flags, "-o", "one_hot=12", SOURCE, plan, f"{OUT}-{encoding}")
        there = path(f"train/batches/{plan}/{folder}{encoding}")
        equal(names(f"{OUT}-{encoding}"), names(there), "names")
        for name in names(there):
            equal(content(f"{OUT}-{encoding}/{name}"), content(f"{there}/{name}"), name)
        contains(done, f"{len(names(there))} files, 0 of them existed")

# What is missing, or cut short, is written; the rest is not touched.
before = {name: os.stat(f"{OUT}-npz/{name}").st_mtime_ns for name in names(f"{OUT}-npz")}
whole = content(f"{OUT}-npz/000001.npz")
os.truncate(f"{OUT}-npz/000001.npz", 100)
os.unlink(f"{OUT}-npz/000002.npz")
SAME = ("export", "-o", "one_hot=12", "--dataset=train", SOURCE, "batch=16,seed=7")
contains(run(*SAME, f"{OUT}-npz"), "4 files, 2 of them existed")
equal(content(f"{OUT}-npz/000001.npz"), whole)
equal([name for name in before if os.stat(f"{OUT}-npz/{name}").st_mtime_ns == before[name]], ["000000.npz", "000003.npz"])

# Another export has files of the same names and sizes.
for other in (("--epoch=1", *SAME[1:]), (*SAME[1:-1], "batch=16,seed=8"), SAME[3:], ("-o", "one_hot=12", "--dataset=t10k", *SAME[4:])):
    contains(run("export", *other, f"{OUT}-npz", code=1), "out-npz: has files of another export: expected the source")
equal(content(f"{OUT}-npz/000001.npz"), whole)
os.unlink(f"{OUT}-npz/.epochfs-export")
contains(run(*SAME, f"{OUT}-npz", code=1), "has files of another export")

contains(run("cat", SOURCE, "train/nothing", code=2), "epochfs: train/nothing: No such file or directory\n")
contains(run("cat", SOURCE, "train", code=2), "epochfs: train: Is a directory\n")
contains(run("cat", "-o", "allow_other", SOURCE, "README.txt", code=1), "option allow_other: means nothing without a mount")
contains(run("cat", "/no/such", "x", code=2), "/no/such")
contains(run("cat", SOURCE, code=1), "expected SOURCE PATH, got 1 argument")
contains(run("export", SOURCE, "batch=16", OUT, code=1), "expected --dataset=NAME, one of t10k, train\n")
contains(run("export", "--dataset=train", SOURCE, "batch=0", OUT, code=1), "expected a number of samples from 1 to 2^48")
contains(run("export", "--dataset=train", "--encoding=zip", SOURCE, "batch=16", OUT, code=2), "zip")
contains(run("export", "--dataset=train", SOURCE, "batch=16", "/proc/no", code=6), "/proc/no")
