#!/usr/bin/python3
"""An archive of a batch with objects that cannot be read: its size is known; any reader can read
everything before the first of them, and then gets an error, never an end; the scp file leads to
every other object, and to an error for those."""

import errno
import mmap
import os
import subprocess

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, BAD_PAGE, Dataset, Item
from lib import content, equal, expect_error, mounted, path, text

rng = np.random.default_rng(15)
FRAMES = (3, 900, 40, 1500, 7, 7, 300, 1700, 1, 12)  # of 40 columns: up to 272 KB


def make(name, bad):
    """A table of which some objects are not there."""
    arrays = [rng.normal(size=(n, 40)).astype(np.float32) for n in FRAMES]
    objects = [kd.fm(x) for x in arrays]
    keys = [f"utt{i:02d}" for i in range(len(objects))]
    lines = kd.table(name, list(zip(keys, objects)))
    for i in bad:
        lines[i] = f"{keys[i]} none.ark:7"
    kd.script(f"{name}.scp", lines)
    items = [BAD if i in bad else Item("matrix", *both) for i, both in
             enumerate(zip(arrays, objects))]
    return keys, items


def first_bad(file, keys):
    return next(at for key, _, at in kd.script_lines(file.replace(".ark", ".scp")) if key in keys)


def forget(file):
    fd = os.open(file, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def by_mmap(file, n):
    with open(file, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        return m[:n]


def by_program(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    equal((done.returncode != 0, b"Input/output error" in done.stderr), (True, True),
          f"{command}: {done.stderr}")
    return done.stdout


def check_readers(file, keys):
    n = first_bad(file, keys)
    want = kd.read_until_error(file, 4096)
    equal(len(want), n, f"{file}: what can be read before the error")
    # A page of any system is either of good bytes or of none.
    equal(n % BAD_PAGE, 0, f"{file}: where the error begins")
    readers = {"cat": lambda: by_program("cat", file),
               "dd": lambda: by_program("dd", f"if={file}", "bs=300k", "status=none"),
               "mmap": lambda: by_mmap(file, n)}
    for step in (1000, 65536, 1 << 20, 1 << 24):
        readers[f"steps of {step}"] = lambda step=step: kd.read_until_error(file, step)
    for name, reader in readers.items():
        for cold in (True, False):
            if cold:
                forget(file)
            equal(reader() == want, True, f"{file}: {name}, {'cold' if cold else 'warm'}")
    forget(file)
    expect_error(errno.EIO, content, file)


TABLES = {"one": [5], "two": [4, 5], "last": [9], "behind-long": [8], "some": [2, 3, 7]}
made = {name: make(name, bad) for name, bad in TABLES.items()}
with mounted():
    for name, (keys, items) in made.items():
        ds = Dataset(path(f"{name}.scp"), keys, {"data": items})
        bad = {keys[i] for i in TABLES[name]}
        every = list(range(len(keys)))
        kd.check_batch(ds, f"{ds.folder}/batches/batch=all", 0, every, ["ark"])
        check_readers(f"{ds.folder}/batches/batch=all/ark/000000.ark", bad)
        for i in every:
            kd.check_batch(ds, f"{ds.folder}/batches/batch=1", i, [i], ["ark"])
            kd.check_sample(ds, i, ["ark"])
        for b in range(3):
            index = every[4 * b:4 * b + 4]
            kd.check_batch(ds, f"{ds.folder}/batches/batch=4", b, index, ["ark"])
        folder = f"{ds.folder}/batches/batch=all,seed=3/epoch=0"
        order = [keys.index(key) for key, _, _ in kd.script_lines(f"{folder}/ark/000000.scp")]
        kd.check_batch(ds, folder, 0, order, ["ark"])
        check_readers(f"{folder}/ark/000000.ark", bad)
    equal("none.ark" in text(path("one.scp/dataset.json")), True, "the reason, in dataset.json")
