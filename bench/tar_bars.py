#!/usr/bin/python3
"""The bars of tar shards (bench/groups/collections.sh): tar_bars.py BAR

Prints the rows of the table as cache_bars.py does.
"""

import os
import statistics
import subprocess
import sys
import tarfile
import time

from bars import FAST, ROUNDS, WWW, Far, empty, mb_per_s, mount, ratio, row, seconds
from lib import EPOCHFS, PRIVATE, equal
from servers import Nginx
from tar_make import make

RATE, DELAY = 100e6, 0.01  # bytes per second; seconds in each direction
CACHE = f"{PRIVATE}/cache"


def index_seconds(folder):
    """`epochfs info`, which makes the index."""
    empty(CACHE)
    os.mkdir(CACHE, 0o700)
    begin = time.monotonic()
    subprocess.run([EPOCHFS, "info", folder], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "EPOCHFS_CACHE": CACHE})
    return time.monotonic() - begin


def bar_index():
    for each, what in ((300, "small members"), (100000, "pictures of 100 kB")):
        path = f"{PRIVATE}/shards/a.tar"
        n = make(path, 2e9, each)
        size, ours, dd = os.path.getsize(path), [], []
        for _ in range(ROUNDS):
            dd.append(seconds("dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none"))
            ours.append(index_seconds(f"{PRIVATE}/shards"))
        rate = n / statistics.median(ours)
        if each < 1000:
            row(f"index of 2 GB of tar, {what}", f"{rate:.0f} headers/s", "1000000 headers/s", rate / 1e6, ">=", 1)
        else:
            row(f"index of 2 GB of tar, {what}", mb_per_s(size, ours), f"dd {mb_per_s(size, dd)}",
                ratio(dd, ours), ">=", 0.5)
        empty(f"{PRIVATE}/shards")


def bar_far():
    """Until the samples of a far shard can be listed, against a transfer of all of it."""
    n = make(f"{WWW}/a.tar", 50e6, 20000)
    ours, theirs = [], []
    with Nginx(WWW, more=FAST) as server:
        for _ in range(ROUNDS):
            empty(CACHE)
            with Far(server, RATE, delay=DELAY) as far:
                begin = time.monotonic()
                with mount(f"{far.urls[0]}/a.tar", f"cache_dir={CACHE}") as daemon:
                    equal(len(os.listdir(f"{daemon.at}/a.tar/samples/raw")), n, "members")
                    ours.append(time.monotonic() - begin)
            with Far(server, RATE, delay=DELAY) as far:
                theirs.append(seconds("curl", "-sS", "-o", "/dev/null", f"{far.urls[0]}/a.tar"))
    size = os.path.getsize(f"{WWW}/a.tar")
    row("index of a far shard, members of 20 kB", mb_per_s(size, ours), f"curl {mb_per_s(size, theirs)}",
        ratio(theirs, ours), ">=", 0.3)


def write_hints(path):
    """DALI's index of the shard, as wds2idx writes it."""
    lines = []
    with tarfile.open(path) as tar:
        for m in tar:
            key, _, ext = m.name.partition(".")
            if ext == "jpg":
                lines.append("")
            lines[-1] += f" {ext} {m.offset_data} {m.size}"
    with open(path[:-4] + ".idx", "w", encoding="ascii") as f:
        f.write(f"v1.1 {len(lines)}\n" + "".join(line[1:] + "\n" for line in lines))


def bar_hints():
    """Until the samples of a far shard of larger members can be listed: with DALI's index next to it,
    against without."""
    took = {"without": [], "with": []}
    n = make(f"{WWW}/without/a.tar", 200e6, 150000)
    os.mkdir(f"{WWW}/with")
    os.link(f"{WWW}/without/a.tar", f"{WWW}/with/a.tar")
    write_hints(f"{WWW}/with/a.tar")
    with Nginx(WWW, more=FAST) as server:
        for _ in range(ROUNDS):
            for kind, all_of in took.items():
                empty(CACHE)
                with Far(server, RATE, delay=DELAY) as far:
                    begin = time.monotonic()
                    with mount(f"{far.urls[0]}/{kind}/", f"cache_dir={CACHE},prefetch=off") as daemon:
                        equal(len(os.listdir(f"{daemon.at}/a.tar/samples/raw")), n, "members")
                        all_of.append(time.monotonic() - begin)
    row("index of a far shard, members of 150 kB, with DALI's index", f"{statistics.median(took['with']):.2f} s",
        f"{statistics.median(took['without']):.2f} s without", ratio(took["with"], took["without"]), "<=", 0.5)


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
