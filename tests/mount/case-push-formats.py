#!/usr/bin/python3
"""What is pushed into the page cache of rows of text and of Kaldi tables has the bytes that reads
would have given: every encoding, shuffled in windows, in parts, by ranks."""

import hashlib
import os

import numpy as np

import kaldi_dirs as kd
from lib import MOUNTPOINT, SOURCE, equal, mounted, write
from push import resident
from servers import wait_until

rng = np.random.default_rng(56)
PLANS = ("batch=16,seed=3,shuffle=window:32", "batch=16,part=1of3", "batch=8,rank=1of2,seed=5,tail=wrap")


def row():
    index = np.sort(rng.choice(5000, int(rng.integers(5, 40)), replace=False))
    return f"{rng.integers(0, 2)} " + " ".join(f"{i}:{rng.random():.4g}" for i in index)


write("svm/a.svm", "".join(row() + "\n" for _ in range(600)).encode())
kd.Folder(rng, "kaldi", 200, 3).write()


def wait_pushed(folder, names):
    """Until one of these files, none of which was read, stands in the page cache."""
    wait_until(lambda: any(resident(f"{folder}/{n}") for n in names), f"{folder}: pushed files")


def read(file):
    fd = os.open(file, os.O_RDONLY)
    try:
        return os.read(fd, 1 << 26)
    finally:
        os.close(fd)


def folders(dataset):
    for plan in PLANS:
        top = f"{MOUNTPOINT}/{dataset}/batches/{plan}" + ("/epoch=2" if "seed" in plan else "")
        for enc in sorted(os.listdir(top)):
            yield f"{top}/{enc}"
    for enc in sorted(os.listdir(f"{MOUNTPOINT}/{dataset}/samples")):
        yield f"{MOUNTPOINT}/{dataset}/samples/{enc}"


def sums(pushes):
    """The checksum of each folder's files, read in order."""
    found = {}
    for dataset in ("svm/a.svm", "kaldi/all"):
        for folder in folders(dataset):
            names, whole = os.listdir(folder), hashlib.sha256()
            kinds = sum(n.split(".")[0] == names[0].split(".")[0] for n in names)
            # Samples count as a sequence from the third on.
            there = 5 * kinds if pushes and len(names) > 9 * kinds else None
            for i, n in enumerate(names):
                whole.update(read(f"{folder}/{n}"))
                if i == there:
                    wait_pushed(folder, names[i + 1:])
            found[folder] = whole.hexdigest()
    return found


with mounted():
    pushed = sums(True)
with mounted(SOURCE, "ahead=0"):
    plain = sums(False)
equal(len(plain) > 20, True, f"folders: {len(plain)}")
for folder, want in plain.items():
    equal(pushed[folder], want, folder)
