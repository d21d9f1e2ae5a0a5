#!/usr/bin/python3
"""Matrices of 2 and of 3 columns in one archive: a batch of both does not fit into one array. The
listing omits such files, so cp -r and rsync copy everything listed; opening one still reports
why, and status names it."""

import errno
import os
import shutil
import subprocess

import numpy as np

import kaldi_dirs as kd
from lib import (MOUNTPOINT, PRIVATE, contains, equal, expect_error, mounted, path, run, status,
                 write)

rng = np.random.default_rng(15)
# Batches of 4: 2 columns, both, 3 columns, and one of matrices without rows, which go with any.
COLUMNS = [2] * 4 + [2, 2, 3, 2] + [3] * 4 + [3, 0, 0, 3]
MATRICES = [rng.normal(size=(1 + i % 3 if c else 0, c)).astype(np.float32)
            for i, c in enumerate(COLUMNS)]
LEFT = (0, 2, 3)  # batches that can be arrays
WHY = "mixed.ark: row 7: expected 2 columns, as others of the batch have, got 3; they cannot be one array"


def names(encoding):
    return sorted(os.listdir(path("mixed.ark/batches/batch=4", encoding)))


def check_listing():
    equal(status()["last_refused_name"], "", "nothing was asked for")
    kinds = [".data.npy", ".data_len.npy"]
    found = [n for n in names("npy") if n[6:] in kinds]
    equal(found, [f"{b:06}{k}" for b in LEFT for k in kinds], "arrays in the listing")
    equal(status()["last_refused_name"],
          f"mixed.ark/batches/batch=4/npy/000001.data_len.npy: {WHY}", "what status names")
    for kind in ".index.npy", ".key.txt":
        equal([n for n in names("npy") if n.endswith(kind)], [f"{b:06}{kind}" for b in range(4)],
              "what needs no array")
    equal(names("npz"), [f"{b:06}.npz" for b in LEFT], "npz in the listing")
    equal(status()["last_refused_name"], f"mixed.ark/batches/batch=4/npz/000001.npz: {WHY}",
          "the latest")
    contains(run("status", MOUNTPOINT), "npz/000001.npz: mixed.ark: row 7")
    for encoding in "ark", "tar":
        equal({n[:6] for n in names(encoding)}, {f"{b:06}" for b in range(4)}, encoding)


def check_lookup():
    """A left-out file fails with its reason, and all three files of the batch agree."""
    for name in "npy/000001.data.npy", "npz/000001.npz", "npy/000001.data_len.npy":
        before = status()["read_errors"]
        expect_error(errno.EIO, os.stat, path("mixed.ark/batches/batch=4", name))
        equal(status()["last_read_error"], WHY, name)
        equal(status()["read_errors"], before + 1, "failed looks")
        equal(status()["last_refused_name"], f"mixed.ark/batches/batch=4/{name}: {WHY}", name)


def check_copies():
    """The copy has all files that can exist, with the right bytes."""
    folder = path("mixed.ark/batches/batch=4")
    copies = [["cp", "-r", folder, f"{PRIVATE}/copy"]]
    if shutil.which("rsync"):
        copies.append(["rsync", "-a", f"{folder}/", f"{PRIVATE}/copy"])
    for command in copies:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        equal((done.returncode, done.stdout), (0, b""), command[0])
        for b in LEFT:
            parts = MATRICES[4 * b:4 * b + 4]
            npz = np.load(f"{PRIVATE}/copy/npz/{b:06}.npz")
            equal(npz["data"].tobytes(), b"".join(m.tobytes() for m in parts), f"batch {b}")
            equal(list(np.diff(npz["data_offsets"])), [len(m) for m in parts], "offsets")
            equal(list(np.load(f"{PRIVATE}/copy/npy/{b:06}.data_len.npy")),
                  [len(m) for m in parts], "lengths")
        subprocess.run(["chmod", "-R", "u+w", f"{PRIVATE}/copy"], check=True)
        shutil.rmtree(f"{PRIVATE}/copy")


def check_shuffled():
    """A listing of many batches, by a reader with a small buffer: each name once, in order."""
    folder = path("many.ark/batches/batch=2,seed=3/epoch=0/npz")
    listed = os.listdir(folder)
    equal(listed, sorted(set(listed)), "the names")
    for name in (f"{b:06}.npz" for b in range(0, 3000, 97)):
        expected = name in set(listed)
        equal(os.path.exists(os.path.join(folder, name)) if expected else
              not can_stat(os.path.join(folder, name)), True, name)
    equal(1000 < len(listed) < 2000, True, f"half of 3000 batches: {len(listed)}")


def can_stat(where):
    try:
        os.stat(where)
        return True
    except OSError:
        return False


write("mixed.ark", kd.archive([(f"u{i:02}", kd.fm(m)) for i, m in enumerate(MATRICES)])[0])
write("many.ark", kd.archive([(f"u{i:04}", kd.fm(np.zeros((1, 2 + i % 2), np.float32)))
                              for i in range(6000)])[0])
with mounted():
    check_listing()
    check_lookup()
    check_copies()
    check_shuffled()
