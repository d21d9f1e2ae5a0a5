#!/usr/bin/python3
"""Pushed files of libsvm rows and Kaldi tables have the bytes that reads would give: every
encoding, shuffled in windows, in parts, by ranks; rows that cannot be read still fail."""

import errno
import hashlib
import os
import time

import numpy as np

import kaldi_dirs as kd
from lib import MOUNTPOINT, SOURCE, equal, mounted, write
from push import compute, resident

rng = np.random.default_rng(56)
PLANS = ("batch=16,seed=3,shuffle=window:32", "batch=16,part=1of3", "batch=8,rank=1of2,seed=5,tail=wrap")


def row():
    index = np.sort(rng.choice(5000, int(rng.integers(5, 40)), replace=False))
    return f"{rng.integers(0, 2)} " + " ".join(f"{i}:{rng.random():.4g}" for i in index)


write("svm/a.svm", "".join(row() + "\n" for _ in range(600)).encode())
kd.Folder(rng, "kaldi", 200, 3).write()


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


def soon_resident(files, seconds):
    """Is any part of them in the page cache within that many seconds?"""
    until = time.monotonic() + seconds
    while not any(resident(file) for file in files):
        if time.monotonic() > until:
            return False
        compute(0.01)
    return True


def sums(pushes):
    """The checksum of each folder's files, read in order."""
    found = {}
    for dataset in ("svm/a.svm", "kaldi/all"):
        for folder in folders(dataset):
            names, whole = os.listdir(folder), hashlib.sha256()
            kinds = sum(n.split(".")[0] == names[0].split(".")[0] for n in names)
            there = not pushes or len(names) < 12 * kinds
            for i, n in enumerate(names):
                whole.update(read(f"{folder}/{n}"))
                # Samples count as a sequence from the third on; each window lacks some files.
                if not there and i % kinds == 0:
                    there = soon_resident([f"{folder}/{m}" for m in names[i + 1:i + 1 + 4 * kinds]],
                                          60 if i == 3 * kinds else 0.02)
            equal(there, True, f"{folder}: something was pushed")
            found[folder] = whole.hexdigest()
    return found


def check_bad_rows():
    """Bad rows fail, though the files around them were pushed."""
    folder = f"{MOUNTPOINT}/svm/bad.svm/samples/npz"
    for i, n in enumerate(os.listdir(folder)):
        try:
            read(f"{folder}/{n}")
        except OSError as error:
            equal((error.errno, i % 3), (errno.EIO, 2), n)
        else:
            equal(i % 3 == 2, False, f"{n} is bad and was read")


write("svm/bad.svm", "".join(("1 1:x\n" if i % 3 == 2 else row() + "\n") for i in range(6000)).encode())
with mounted():
    check_bad_rows()
    pushed = sums(True)
with mounted(SOURCE, "ahead=0"):
    plain = sums(False)
equal(len(plain) > 20, True, f"folders: {len(plain)}")
for folder, want in plain.items():
    equal(pushed[folder], want, folder)
