#!/usr/bin/python3
# needs: strace
# plain: a program in Python reads by the library
"""The power fails while a cache folder is written. What was written is recorded, and mounted again as a disk may have it. First the
disk has all changes before the cut: each beginning of what was recorded is mounted. Then of the writes, truncations and renames
before the cut that nothing has synced any may be lost, and of a write any part. Every read is right.

    POWER_SEED=7 POWER_STATES=2000     other states, or more of them
"""

import gzip
import os
import random
import re
import shutil
import subprocess
import sys

import numpy as np

from lib import DEADLINE, EPOCHFS, PRIVATE, content as content_of, equal, idx_bytes, skip
from page_blocks import ROOT
from servers import Nginx, files_below, place

SEED, STATES = int(os.environ.get("POWER_SEED", "1")), int(os.environ.get("POWER_STATES", "40"))
LIBRARY = f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"
if not os.path.exists(LIBRARY):
    skip("the library is not built")
os.environ["EPOCHFS_LIBRARY"] = LIBRARY
sys.path.insert(0, f"{ROOT}/python")
import epochfs  # noqa: E402

WWW, CACHE, TRACE, STATE = f"{PRIVATE}/www", f"{PRIVATE}/recorded", f"{PRIVATE}/trace", f"{PRIVATE}/memory/state"
CALLS = "openat,mkdir,pwrite64,write,ftruncate,fallocate,rename,renameat,link,unlink,fsync,fdatasync"
numbers = np.random.default_rng(SEED)
IMAGES = numbers.integers(0, 256, (64, 30, 30), np.uint8)
PACKED = numbers.integers(0, 256, (50, 20, 20), np.uint8)
ROWS = [(i % 7, i, numbers.integers(1, 99)) for i in range(1500)]
WORK = f"""
import sys
sys.path.insert(0, {ROOT + '/python'!r})
import epochfs
for options in (dict(evict="after_use"), {{}}):
    with epochfs.load(sys.argv[1], cache_dir=sys.argv[2], block_size="4K", **options) as data:
        for name in data:
            for batch in data[name].batches("batch=32,seed=1"):
                pass
"""


# ---- what was done ----

def lines():
    """The calls, in the order in which they ended."""
    begun = {}
    with open(TRACE, encoding="ascii") as f:
        for line in f:
            pid, _, call = line.strip().partition(" ")
            call = call.strip()
            if call.endswith("<unfinished ...>"):
                begun[pid] = call[:-len("<unfinished ...>")]
                continue
            resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", call)
            yield begun.pop(pid) + resumed[1] if resumed else call


def plain(text):
    return bytes.fromhex(text.replace("\\x", "")).decode()


def recorded():
    """Each change of the folder: (what, the file or the folder, ...). A file is the number of its creation."""
    names, content_ends, made, changes = {}, {}, 0, []

    def below(path):
        return path[len(CACHE) + 1:] if path.startswith(CACHE + "/") else None

    for call in lines():
        m = re.match(r'(\w+)\((.*)\)\s+= (-?\d+)', call)
        if not m or int(m[3]) < 0:
            continue
        what, arguments, result = m[1], m[2], int(m[3])
        paths = [] if "write" in what else [below(plain(p)) for p in re.findall(r'"((?:\\x..)*)"', arguments)]
        opened = re.match(r"\d+<((?:\\x..)+)>", arguments)
        name = below(plain(opened[1])) if opened else None
        rest = arguments[opened.end() + 2:] if opened else ""
        if what in ("openat", "mkdir") and paths[0] is not None:
            if what == "mkdir":
                changes.append(("folder", paths[0]))
            elif "O_CREAT" in arguments and paths[0] not in names:
                names[paths[0]], made = made, made + 1
                changes.append(("names", {paths[0]: names[paths[0]]}))
        elif what in ("rename", "renameat", "link") and paths[1] is not None:
            change = {paths[1]: names[paths[0]]}
            names.update(change)
            if what != "link":
                del names[paths[0]]
                change[paths[0]] = None
            changes.append(("names", change))
        elif what == "unlink" and paths[0] in names:
            del names[paths[0]]
            changes.append(("names", {paths[0]: None}))
        elif name in names:
            file = names[name]
            if what in ("pwrite64", "write"):
                text, _, numbers_after = rest[1:].partition('"')
                data = bytes.fromhex(text.replace("\\x", ""))
                equal(len(data), result, "bytes of a write that were recorded")
                at = int(numbers_after.split(", ")[2]) if what == "pwrite64" else content_ends.get(file, 0)
                content_ends[file] = max(content_ends.get(file, 0), at + result)
                changes.append(("write", file, at, data))
            elif what == "ftruncate":
                changes.append(("cut", file, int(rest)))
            elif what == "fallocate" and "PUNCH_HOLE" in rest:
                changes.append(("hole", file, *map(int, rest.split(", ")[1:])))
            elif what in ("fsync", "fdatasync"):
                changes.append(("sync", file))
        elif what == "fsync" and opened and (plain(opened[1]) + "/").startswith(CACHE):
            changes.append(("sync names", below(plain(opened[1]) + "/").rstrip("/")))
    return changes


# ---- what a disk may have of it ----

def write_state(changes, folder, lost=0, rng=None):
    """The folder after these changes and a power failure; what is not synced is lost with that chance, or kept without rng."""
    synced = {}  # files and folders, and the last sync of each
    for i, (what, *rest) in enumerate(changes):
        if what in ("sync", "sync names"):
            synced[rest[0]] = i
    names, content = {}, {}
    os.makedirs(folder, 0o700)
    for i, (what, *rest) in enumerate(changes):
        if what == "folder":
            os.makedirs(f"{folder}/{rest[0]}", 0o700, exist_ok=True)
        elif what == "names":
            is_kept = not rng or rng.random() >= lost
            names.update((name, file) for name, file in rest[0].items()
                         if is_kept or i < synced.get(os.path.dirname(name), 0))
        elif what in ("write", "cut", "hole"):
            is_whole = not rng or i < synced.get(rest[0], 0)
            if is_whole or rng.random() >= lost:
                change(content.setdefault(rest[0], bytearray()), what, rest[1:], None if is_whole else rng)
    for name, file in names.items():
        if file is not None:
            os.makedirs(os.path.dirname(f"{folder}/{name}"), 0o700, exist_ok=True)
            with open(f"{folder}/{name}", "wb") as f:
                f.write(content.get(file, b""))
            os.chmod(f.name, 0o600)


def change(content, what, rest, rng):
    """rng: a write of several sectors may have only its first ones."""
    if what == "cut":
        del content[rest[0]:]
        content.extend(bytes(rest[0] - len(content)))
        return
    at, data = rest if what == "write" else (rest[0], bytes(max(0, min(rest[1], len(content) - rest[0]))))
    if rng and len(data) > 512 and rng.random() < 0.2:
        data = data[:rng.randrange(1, len(data) // 512 + 1) * 512]
    content.extend(bytes(max(0, at + len(data) - len(content))) if data else b"")
    content[at:at + len(data)] = data


def files_of(folder):
    return {os.path.relpath(file, folder): content_of(file) for file, _ in files_below(folder)}


# ---- reads ----

def check(url, cache):
    """All that a load of the folder gives is right."""
    with epochfs.load(url, cache_dir=cache, block_size="4K") as data:
        equal(list(data), ["images", "packed", "rows.svm"], "datasets")
        for name, stored in (("images", IMAGES), ("packed", PACKED)):
            for batch in data[name].batches("batch=32,seed=1"):
                equal(np.array_equal(batch["image"], stored[batch["index"]]), True, f"bytes of {name}")
        for batch in data["rows.svm"].batches("batch=500,seed=1"):
            rows = [ROWS[i] for i in batch["index"]]
            equal(batch["label"].tolist(), [label for label, *_ in rows], "labels")
            equal(batch["data"].tolist(), [v for _, *values in rows for v in values], "values of rows")


def check_state(what, url, changes, *losses):
    try:
        write_state(changes, STATE, *losses)
        check(url, STATE)
    except BaseException:
        print(what, flush=True)
        raise
    shutil.rmtree(STATE)


os.mkdir(os.path.dirname(STATE))
if os.geteuid() == 0:  # removing files of a disk takes longer than to mount them
    subprocess.run(["mount", "-t", "tmpfs", "states", os.path.dirname(STATE)], check=True)
place(WWW, "images", idx_bytes(IMAGES))
place(WWW, "packed.gz", gzip.compress(idx_bytes(PACKED)))
place(WWW, "rows.svm", "".join(f"{label} 1:{a} 3:{b}\n" for label, a, b in ROWS).encode())
with Nginx(WWW) as server:
    where = f"{server.url}/"
    subprocess.run(["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}", "-o", TRACE, sys.executable, "-c", WORK, where, CACHE],
                   check=True, timeout=DEADLINE)
    everything = recorded()
    kinds = {what for what, *_ in everything}
    equal({"write", "names", "cut", "sync", "folder"} <= kinds, True, f"kinds of changes: {kinds}")
    write_state(everything, STATE)
    equal(files_of(STATE) == files_of(CACHE), True, "the last state is the recorded folder")
    shutil.rmtree(STATE)
    print(f"{len(everything)} changes, {STATES} states, seed {SEED}")
    for end in range(1, len(everything) + 1):
        check_state(f"the cut after change {end}: {everything[end - 1][:3]}", where, everything[:end])
    for state in range(STATES):
        rng = random.Random(f"{SEED} {state}")
        end, lost = rng.randrange(1, len(everything) + 1), rng.choice([0, 0.1, 0.5, 0.9])
        check_state(f"state {state}", where, everything[:end], lost, rng)
