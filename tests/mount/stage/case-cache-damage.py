#!/usr/bin/python3
"""A cache folder that is damaged at random while mounts use it: staged files, unpacked files,
indexes, the marker and `room` are truncated, extended, truncated and extended again, overwritten,
swapped, removed, or replaced by a folder, a link, a pipe. Every read is right, or an error; the
daemons live on; and the next mount of the rest gives right bytes, an error, or says why it cannot
start.

The exception of docs/cache.md ("What is checked, and when") is not tested: content of a staged
file, overwritten in place after a mount has compared it. All else of staged files is overwritten.

    DAMAGE_SEED=7 DAMAGE_ROUNDS=500    another seed, or a longer run

Names in the folder differ from run to run, so a seed does not repeat a run to the letter; a failure
lists what was done.
"""

import contextlib
import os
import random
import re
import shutil
import subprocess

import numpy as np

from lib import (CACHE, EPOCHFS, MOUNTPOINT, PRIVATE, SLOW, SOURCE, equal, idx_bytes, mount_type,
                 mounted, path, start, stop, write)
from page_blocks import take
from servers import files_below, place, read_anew

SEED = int(os.environ.get("DAMAGE_SEED", "15"))
ROUNDS = int(os.environ.get("DAMAGE_ROUNDS", "8" if SLOW else "30"))
KEPT = f"{PRIVATE}/kept"
SECOND = f"{PRIVATE}/second"
HEADER = 1536  # docs/spec/cache-format.md: a staged file
rng = random.Random(SEED)
print(f"seed {SEED}, {ROUNDS} rounds", flush=True)


# ---- reads ----

def make_source():
    numbers = np.random.default_rng(SEED)
    write("big-images-idx3-ubyte", idx_bytes(numbers.integers(0, 256, (300, 40, 60), np.uint8)))
    write("big-labels-idx1-ubyte", idx_bytes(numbers.integers(0, 10, 300, np.uint8)))
    packed = subprocess.run(["gzip", "-c"], check=True, capture_output=True, input=idx_bytes(
        numbers.integers(0, 256, (200, 30, 30), np.uint8))).stdout
    place(SOURCE, "packed-idx3-ubyte.gz", packed)
    rows = [f"{i % 7} " + " ".join(f"{k}:{numbers.integers(1, 99)}" for k in range(1, 2 + i % 9))
            for i in range(3000)]
    place(SOURCE, "rows.svm", "\n".join(rows).encode() + b"\n")
    table = [f"utterance-{i:05d} [ {i} {i * 2} {i * 3} ]" for i in range(2000)]
    place(SOURCE, "table.ark", "\n".join(table).encode() + b"\n")


def what_is_there():
    """Files of an undamaged mount, by path, and their content."""
    found = {}
    for folder, folders, names in os.walk(MOUNTPOINT):
        folders[:] = [name for name in folders if name != ".epochfs"]
        relative = os.path.relpath(folder, MOUNTPOINT)
        names = sorted(name for name in names if name != "dataset.json")  # has notes
        for name in rng.sample(names, min(len(names), 12)):
            file = os.path.join(folder, name)
            if not os.path.islink(file) and os.stat(file).st_size < 2_000_000:
                found[os.path.join(relative, name)] = read_anew(file)
    # A script names the mount; there is a second one.
    return {name: data for name, data in found.items() if MOUNTPOINT.encode() not in data}


class Reader:
    def __init__(self, want):
        self.want = want
        self.names = sorted(want)
        self.right = self.failed = 0

    def read(self, at, times):
        for _ in range(times):
            name = rng.choice(self.names)
            want = self.want[name]
            begin = rng.randrange(len(want) + 1)
            size = rng.choice((1, 100, 5000, len(want)))
            try:
                got = read_anew(at, name, size=size, offset=begin)
            except OSError:
                self.failed += 1
                continue
            equal(got == want[begin:begin + size], True, f"{name} at {begin}, {size} bytes")
            self.right += 1


# ---- damage ----

def size_of(file):
    return os.lstat(file).st_size


def cut(file):
    os.truncate(file, rng.choice((0, HEADER, rng.randrange(size_of(file) + 1))))


def grow(file):
    os.truncate(file, size_of(file) + rng.choice((1, 8, 64, 100_000)))


def cut_and_grow(file):
    size = size_of(file)
    os.truncate(file, rng.randrange(size + 1))
    os.truncate(file, size)


def places(file):
    """The places to overwrite under a mount: all but the blocks of a staged file. In its content
    that leaves the count of drops, after them."""
    size = size_of(file)
    if not file.endswith(".content"):
        return [(0, size)]
    return [(size - 8, size)] if size >= 8 else []


def overwrite(file, make):
    every = places(file)
    if every:
        begin, end = rng.choice(every)
        at = rng.randrange(begin, end) if begin < end else begin
        n = min(rng.choice((1, 8, 100, 5000)), end - at)
        with open(file, "r+b") as f:
            f.seek(at)
            f.write(make(n))


def replaced(make):
    def damage(file):
        os.unlink(file)
        make(file)
    return damage


def swap(file):
    others = [f for f, _ in files_below(os.path.dirname(file)) if f != file]
    if others:
        other = rng.choice(others)
        os.rename(file, file + ".x")
        os.rename(other, file)
        os.rename(file + ".x", other)


def copy_back(file):
    """Replace it by a copy of its first state: another file under the name."""
    old = os.path.join(KEPT, os.path.relpath(file, CACHE))
    if os.path.isfile(old):
        shutil.copy2(old, file + ".x")
        os.rename(file + ".x", file)


DAMAGES = {
    "cut": cut,
    "grow": grow,
    "cut and grow": cut_and_grow,
    "zeros": lambda file: overwrite(file, bytes),
    "random bytes": lambda file: overwrite(file, rng.randbytes),
    "swap": swap,
    "copy back": copy_back,
    "unlink": os.unlink,
    "empty": replaced(lambda file: open(file, "xb").close()),
    "folder": replaced(os.mkdir),
    "folder with a file": replaced(lambda file: place(file, "x", b"x")),
    "link to nothing": replaced(lambda file: os.symlink("nothing", file)),
    "link to zeros": replaced(lambda file: os.symlink("/dev/zero", file)),
    "pipe": replaced(os.mkfifo),
    "chmod": lambda file: os.chmod(file, rng.choice((0, 0o400, 0o777))),
    "hard link": lambda file: os.link(file, file + ".link"),
}


def damage_one():
    files = sorted(file for file, st in files_below(CACHE) if os.path.isfile(file))
    folders = {}
    for file in files:
        folders.setdefault(os.path.dirname(file), []).append(file)
    if not folders:
        return "nothing is left"
    file = rng.choice(folders[rng.choice(sorted(folders))])
    what = rng.choice(sorted(DAMAGES))
    with contextlib.suppress(OSError):  # it is gone meanwhile, or was replaced before
        DAMAGES[what](file)
    return f"{os.path.relpath(file, CACHE)}: {what}"


# ---- all of it ----

def check_names():
    """Each file of the folder has one of the names that docs/spec/cache-format.md lists."""
    names = [line.split()[0] for line in take("docs/spec/cache-format.md", "DIR/EPOCHFS ").splitlines()]
    known = {name: re.compile(re.escape(name).replace("<id>", "[0-9a-f]{64}").replace(r"\*", "[^/]*")) for name in names}
    found = set()
    for file, _ in files_below(KEPT):
        name = f"DIR/{os.path.relpath(file, KEPT)}"
        having = [form for form, pattern in known.items() if pattern.fullmatch(name)]
        equal(len(having) if os.path.isfile(file) else 1, 1, f"forms of {name}")
        found.update(having)
    equal(found >= {"DIR/EPOCHFS", "DIR/room", "DIR/staged/<id>", "DIR/staged/<id>.content", "DIR/unpacked/<id>"}, True, f"{found}")
    print("names of", *sorted(found))


def restore():
    shutil.rmtree(CACHE, ignore_errors=True)
    shutil.copytree(KEPT, CACHE)


def options():
    return ",".join([f"cache={CACHE}", f"keep={rng.choice(('pin', 'once', 'plan'))}",
                     f"stage={rng.choice(('auto', 'off'))}", "block=4K", "patience=5"])


def one_round(reader):
    done = []
    restore()
    daemons = [start(SOURCE, options())]
    if rng.randrange(2):
        daemons.append(start(SOURCE, options(), at=SECOND, log="log.second"))
    try:
        reader.read(MOUNTPOINT, 40)
        for _ in range(rng.randrange(2, 12)):
            done.append(damage_one())
            for daemon in daemons:
                reader.read(daemon.at, rng.randrange(25))
                equal(daemon.poll(), None, "the daemon")
        for daemon in daemons:
            stop(daemon)
        next_mount(reader)
    except (AssertionError, OSError) as e:
        raise AssertionError(f"seed {SEED}, after {done}: {e}") from e


def next_mount(reader):
    """The next mount starts, or says why not (exit code 4: the cache folder)."""
    log = f"{PRIVATE}/log.next"
    with open(log, "wb") as f:
        daemon = subprocess.Popen([EPOCHFS, "mount", "-f", "-o", options(), SOURCE, MOUNTPOINT],
                                  stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    daemon.at = MOUNTPOINT
    while daemon.poll() is None and mount_type(MOUNTPOINT) != "fuse.epochfs":
        os.sched_yield()
    if daemon.poll() is not None:
        said = open(log, "rb").read()
        equal((daemon.returncode, CACHE.encode() in said), (4, True), f"the next mount: {said}")
        return
    reader.read(MOUNTPOINT, 30)
    stop(daemon)


make_source()
os.makedirs(SECOND, exist_ok=True)
with mounted(SOURCE, f"cache={PRIVATE}/whole"):
    reader = Reader(what_is_there())
print(f"{len(reader.names)} files", flush=True)
with mounted(SOURCE, f"cache={KEPT},block=4K"):
    for name in reader.names:
        equal(read_anew(path(name)) == reader.want[name], True, name)
check_names()
restore()
os.replace(f"{CACHE}/EPOCHFS", f"{CACHE}/room")
os.link(f"{CACHE}/room", f"{CACHE}/EPOCHFS")  # the marker is good until `room` is written
next_mount(reader)
for _ in range(ROUNDS):
    one_round(reader)
print(f"{reader.right} reads were right, {reader.failed} failed")
equal(reader.right > 3 * reader.failed, True, f"most reads are right: {reader.failed} failed")
