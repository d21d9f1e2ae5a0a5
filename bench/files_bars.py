#!/usr/bin/python3
"""The bars of folders of files (bench/groups/files.sh): files_bars.py BAR

Batches that are in the page cache before they are read, against reading the files one by one; what a
million names cost."""

import os
import statistics
import subprocess
import sys
import time

from bars import ROUNDS, mount, row, say
from lib import EPOCHFS, PRIVATE, equal

TRAIN = os.environ["TRAIN"]
FILES, BATCH, FIRST, LAST = 60000, 64, 10, 400
PACE = 8000  # us: slower than the push


def train(folder, pattern, count, *options):
    """Read files as a training job does: seconds in reads, bytes."""
    done = subprocess.run([TRAIN, "files", *(str(o) for o in options), folder, pattern, str(count)],
                          stdout=subprocess.PIPE, check=True, text=True)
    _, waited, size, _, _ = done.stdout.split()
    return float(waited) / 1e6, int(size)


def bar_pushed():
    folders = os.environ["FOLDERS"]
    files = (f"{folders}/links", "######.jpg", (LAST - FIRST) * BATCH)
    train(*files)
    for form in ("tar", "npz"):
        ratios = []
        for _ in range(min(ROUNDS, 3)):
            with mount(f"{folders}/classes", f"plan=batch={BATCH}+seed=7") as daemon:
                where = f"{daemon.at}/train/batches/batch={BATCH},seed=7/epoch=0/{form}"
                with os.scandir(where) as entries:
                    for e in entries:
                        e.stat(follow_symlinks=False)
                train(where, f"######.{form}", FIRST, "-g", PACE)
                took, size = train(where, f"######.{form}", LAST, "-f", FIRST, "-g", PACE)
            alone, size_alone = train(*files)
            ratios.append(((size / took) / (size_alone / alone), size / took, size_alone / alone))
        say(form, "  ".join(f"{r[0]:.2f}" for r in ratios))
        ratio, ours, theirs = (statistics.median(r[i] for r in ratios) for i in range(3))
        row(f"first read of shuffled {form} batches of {BATCH} pictures, pushed", f"{ours / 1e6:.0f} MB/s",
            f"files one by one {theirs / 1e6:.0f} MB/s", ratio, ">=", 2)


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
