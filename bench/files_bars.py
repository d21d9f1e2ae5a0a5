#!/usr/bin/python3
"""The bars of folders of files (bench/groups/files.sh): files_bars.py BAR

Batches that are in the page cache before they are read, against reading the files one by one; what a
million names cost."""

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from bars import ROUNDS, mount, row, say
from lib import EPOCHFS, PRIVATE, equal

TRAIN = os.environ["TRAIN"]
FILES, BATCH, FIRST, LAST, SLICE = 60000, 64, 10, 400, 39
PACE = 8000  # us: slower than the push


def train(folder, pattern, count, *options):
    """Read files as a training job does: seconds in reads, bytes."""
    done = subprocess.run([TRAIN, "files", *(str(o) for o in options), folder, pattern, str(count)],
                          stdout=subprocess.PIPE, check=True, text=True)
    _, waited, size, _, _ = done.stdout.split()
    return float(waited) / 1e6, int(size)


@contextlib.contextmanager
def fresh_files(sizes, first, form):
    """A folder of new files of these sizes on a tmpfs, written by this program: pages of 4 KiB, as those of a mount."""
    folder, data = tempfile.mkdtemp(prefix="epochfs-bench.", dir="/dev/shm"), os.urandom(max(sizes))
    try:
        for i, size in enumerate(sizes, first):
            with open(f"{folder}/{i:06d}.{form}", "wb", buffering=0) as f:
                equal(f.write(data[:size]), size)
        yield folder
    finally:
        shutil.rmtree(folder)


def pushed_round(folders, form):
    """The sides take turns, SLICE batches each. Bytes per second of each side."""
    found = {side: [0.0, 0] for side in ("pushed", "again", "fresh", "files", "paced")}

    def add(side, taken):
        found[side] = [total + one for total, one in zip(found[side], taken)]

    with mount(f"{folders}/classes", f"plan=batch={BATCH}+seed=7") as daemon:
        where = f"{daemon.at}/train/batches/batch={BATCH},seed=7/epoch=0/{form}"
        with os.scandir(where) as entries:
            sizes = [e.stat(follow_symlinks=False).st_size for e in sorted(entries, key=lambda e: e.name)]
        train(where, f"######.{form}", FIRST, "-g", PACE)
        for first in range(FIRST, LAST, SLICE):
            last, links = first + SLICE, f"{folders}/links"
            files = ("######.jpg", last * BATCH, "-f", first * BATCH)
            add("pushed", train(where, f"######.{form}", last, "-f", first, "-g", PACE))
            add("files", train(links, *files))
            with fresh_files(sizes[first:last], first, form) as fresh:
                add("fresh", train(fresh, f"######.{form}", last, "-f", first, "-g", PACE))
            add("paced", train(links, *files, "-n", BATCH, "-g", PACE))
            add("again", train(where, f"######.{form}", last, "-f", first, "-g", PACE))
    return {side: size / took for side, (took, size) in found.items()}


def bar_pushed():
    """Batches are at most as much faster than their files as a page cache of 4 KiB pages is: rows without a bar say
    how much that is."""
    folders = os.environ["FOLDERS"]
    train(f"{folders}/links", "######.jpg", LAST * BATCH)
    for form in ("tar", "npz"):
        rounds = [pushed_round(folders, form) for _ in range(min(ROUNDS, 3))]
        say(form, "  ".join(f"{r['pushed'] / r['files']:.2f}" for r in rounds))

        def figure(what, side, other, note, bound=None):
            rate = {k: f"{statistics.median(r[k] for r in rounds) / 1e6:.0f} MB/s" for k in rounds[0]}
            row(what, rate[side], f"{note} {rate[other]}", statistics.median(r[side] / r[other] for r in rounds),
                "-" if bound is None else ">=", bound or 0)

        figure(f"first read of shuffled {form} batches of {BATCH} pictures, pushed", "pushed", "files", "files one by one", 2)
        figure("  and the files with the same pauses", "pushed", "paced", "files")
        figure("  second read of the batches", "again", "files", "files one by one")
        figure("  files of these sizes, just written to tmpfs", "fresh", "files", "files one by one")
        figure("  first read against those", "pushed", "fresh", "tmpfs", 0.7)


def memory(at):
    """MiB resident of the daemon of a mount."""
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if os.fsencode(at) not in f.read().split(b"\0"):
                        continue
                with open(f"/proc/{pid}/status", encoding="ascii") as f:
                    return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))
            except OSError:
                continue
    raise AssertionError(f"no daemon for {at}")


def bar_million():
    """1.3 million names in 1,000 class folders; the files are holes. The second mount, and memory in
    a shuffled epoch."""
    n, source, at, cache = 1300000, f"{PRIVATE}/million", f"{PRIVATE}/mount", f"{PRIVATE}/cache"
    say(f"making {n} files")
    for c in range(1000):
        folder = f"{source}/train/n{c:08d}"
        os.makedirs(folder)
        for i in range(c, n, 1000):
            fd = os.open(f"{folder}/n{c:08d}_{i}.JPEG", os.O_CREAT | os.O_WRONLY, 0o644)
            os.ftruncate(fd, 8000 + i % 8000)
            os.close(fd)
    os.makedirs(at, exist_ok=True)
    env, took = dict(os.environ, EPOCHFS_CACHE=cache), []
    time.sleep(2.5)  # a folder that has just changed is not kept
    for turn in range(3):
        begin = time.monotonic()
        subprocess.run([EPOCHFS, "mount", source, at], check=True, env=env)
        with open(f"{at}/train/dataset.json", "rb") as f:
            f.read()
        took.append(time.monotonic() - begin)
        if turn == 2:
            epoch = f"{at}/train/batches/batch=64,seed=3/epoch=0/npz"
            for k in range(0, n // 64, 16):
                with open(f"{epoch}/{k:06d}.npz", "rb", buffering=0) as f:
                    while f.read(1 << 20):
                        pass
            rss = memory(at)
        subprocess.run(["umount", at], check=True)
    equal(len(took), 3)
    row("mount of 1.3 million files, second and later", f"{min(took[1:]):.2f} s", f"first {took[0]:.2f} s",
        min(took[1:]), "<=", 2)
    row("daemon in a shuffled epoch over them", f"{rss:.0f} MiB RSS", "150 MiB", rss, "<=", 150)


globals()[f"bar_{sys.argv[1]}"]()
