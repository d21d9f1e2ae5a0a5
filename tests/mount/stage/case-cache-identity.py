#!/usr/bin/python3
"""Staged files of two sources whose sizes and ETags are the same, and whose files are put in each
other's place: each mount has the bytes of its own source, whichever was first, and after a kill. A
file that a mount uses is not begun again for another source. Files of earlier versions are removed."""

import os
import shutil
import signal

import numpy as np
from lib import CACHE, PRIVATE, contains, content, equal, mounted, path, start, stop
from servers import Nginx, read_anew, remote

WWW = os.path.join(PRIVATE, "www")
SECOND = os.path.join(PRIVATE, "second")
OPTIONS = f"cache={CACHE},stage=off,block=4K"
ROWS = 200


def make(folder, value):
    """A file of one size; nginx makes its ETag of size and time, which are those of the other."""
    os.makedirs(f"{WWW}/{folder}")
    file = f"{WWW}/{folder}/x.npy"
    np.save(file, np.full((ROWS, 256), value, np.uint8))
    os.utime(file, (10**9, 10**9))


def check(at, value):
    x = np.frombuffer(read_anew(f"{at}/x/source/x.npy")[-ROWS * 256:], np.uint8)
    equal((len(x), set(x)), (ROWS * 256, {value}), f"bytes at {at}")


def staged():
    """The staged files: id -> first bytes of the content."""
    folder = f"{CACHE}/staged"
    return {name: content(f"{folder}/{name}.content") for name in os.listdir(folder) if "." not in name}


def overwrite(to, source):
    """In place, as one who keeps to no protocol: the file stays open in the mounts that use it."""
    for suffix in ("", ".content"):
        with open(f"{to}{suffix}", "r+b") as out, open(f"{source}{suffix}", "rb") as from_:
            shutil.copyfileobj(from_, out)


for name, number in (("good", 1), ("evil", 2)):
    make(name, number)
os.makedirs(SECOND)
with Nginx(WWW) as server:
    good, evil = f"{server.url}/good/x.npy", f"{server.url}/evil/x.npy"
    with mounted(evil, OPTIONS):
        check(path(), 2)
    of_evil, = staged()
    with mounted(good, OPTIONS):
        check(path(), 1)
    of_good, = set(staged()) - {of_evil}
    kept = f"{PRIVATE}/kept"
    shutil.copytree(f"{CACHE}/staged", kept)

    # While a mount has its file open, that of the other source is put there.
    first = start(good, OPTIONS)
    check(first.at, 1)
    overwrite(f"{CACHE}/staged/{of_good}", f"{kept}/{of_evil}")
    planted = content(f"{CACHE}/staged/{of_good}")[:1520]
    second = start(good, OPTIONS, at=SECOND, log="log.second")
    check(second.at, 1)
    equal(content(f"{CACHE}/staged/{of_good}")[:1520] == planted, True, "the file in use is as it was")
    check(first.at, 1)
    contains(content(f"{PRIVATE}/log.second").decode(), "another process uses it for another source")
    second.send_signal(signal.SIGKILL)
    second.wait()
    stop(first)

    # No mount uses it any more: the next one begins it again.
    with mounted(good, OPTIONS):
        check(path(), 1)
        check(path(), 1)
    with mounted(evil, OPTIONS):
        check(path(), 2)

    # The other order: it is there before the mount.
    for suffix in ("", ".content"):
        shutil.copy(f"{kept}/{of_good}{suffix}", f"{CACHE}/staged/{of_evil}{suffix}")
    with mounted(evil, OPTIONS):
        check(path(), 2)
        equal(remote()["bad_blocks"], 0, "bad blocks")

    # What earlier versions left.
    old = f"{CACHE}/staged/{'0123456789abcdef' * 2}"
    for suffix in ("", ".content"):
        shutil.copy(f"{kept}/{of_good}{suffix}", f"{old}{suffix}")
    daemon = start(good, OPTIONS, log="log.third")
    check(daemon.at, 1)
    stop(daemon)
    contains(content(f"{PRIVATE}/log.third").decode(), f"cache folder {CACHE}: removed 1 files")
    equal(os.path.exists(old), False, "the old file")
