#!/usr/bin/python3
"""A damaged cache folder: flipped bits, truncations, foreign files, another version. Every byte of
a mount is right, bad blocks are fetched again and counted, and foreign files stay as they are."""

import os
import random
import shutil

import numpy as np

from lib import PRIVATE, SLOW, contains, content, equal, idx_bytes, path, run, start, stop
from servers import Nginx, files_below, place, read_anew, remote, timed, wait_staged

WWW = f"{PRIVATE}/www"
KEPT = f"{PRIVATE}/kept"  # a cache folder with everything in it, to copy
CACHE = f"{PRIVATE}/damaged"
rng = random.Random(8)
numbers = np.random.default_rng(8)
DATA = {name: idx_bytes(numbers.integers(0, 256, shape, dtype=np.uint8)) for name, shape in (
    ("one-data", (100, 60, 50)), ("two-data", (37, 100)), ("three-data", (10, 200, 100)))}
for name, data in DATA.items():
    place(WWW, name, data)
OPTIONS = "block=16K,jobs=2,patience=10"
MARKER = "EPOCHFS"  # the file that marks a cache folder, with its version


def mount(url, folder=CACHE, *options, **kwargs):
    return start(f"{url}/", ",".join([f"cache={folder}", OPTIONS, *options]), **kwargs)


def check_all():
    for name, data in DATA.items():
        equal(read_anew(path(name, "source", name)) == data, True, f"bytes of {name}")


def flipped(file, at):
    with open(file, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        if byte:
            f.seek(at)
            f.write(bytes([byte[0] ^ (1 << rng.randrange(8))]))


def damages(size):
    """The damages of a file: a name, and a function of its path."""
    for at in sorted({0, 1, 8, 12, 20, 40, 63, size - 1, *(rng.randrange(size) for _ in range(6))}):
        yield f"bit flip at {at}", lambda file, at=at: flipped(file, at)
    for at in (0, 1, 50, 4096, size // 2, max(size - 1, 0)):
        yield f"truncated to {at}", lambda file, at=at: os.truncate(file, at)
    yield "longer", lambda file: os.truncate(file, size + 100_000)
    yield "zeros", lambda file: (os.truncate(file, 0), os.truncate(file, size))
    yield "removed", os.unlink


def ours(folder):
    return sorted(os.path.relpath(file, folder) for file, _ in files_below(folder))


def restore(to=CACHE):
    shutil.rmtree(to, ignore_errors=True)
    os.makedirs(to, 0o700)
    for folder, _, names in os.walk(KEPT):
        there = os.path.join(to, os.path.relpath(folder, KEPT))
        os.makedirs(there, exist_ok=True)
        for name in names:
            shutil.copy2(os.path.join(folder, name), there)


def check_cold(server):
    """For each file and each damage a mount."""
    every = [(name, what, do) for name in ours(KEPT) if name != MARKER
             for what, do in damages(os.path.getsize(f"{KEPT}/{name}"))]
    equal(len(ours(KEPT)) >= len(DATA), True, f"files of the cache folder: {ours(KEPT)}")
    rng.shuffle(every)
    for name, what, do in every[:12 if SLOW else 45]:
        restore()
        do(f"{CACHE}/{name}")
        daemon = mount(server.url)
        try:
            check_all()
            wait_staged(daemon)
        except (AssertionError, OSError) as e:
            raise AssertionError(f"{name}, {what}: {e}") from e
        stop(daemon)
    # All blocks of a file: each damage is noticed and counted, and the block is right afterwards.
    restore()
    big = max(ours(CACHE), key=lambda n: os.path.getsize(f"{CACHE}/{n}"))
    size = os.path.getsize(f"{CACHE}/{big}")
    for at in range(size - 5, max(size - len(DATA["one-data"]), 20_000), -16384):
        flipped(f"{CACHE}/{big}", at)
    server.forget()
    daemon = mount(server.url)
    check_all()
    r = wait_staged(daemon)
    equal(r["bad_blocks"] > 5, True, f"bad blocks are counted: {r['bad_blocks']}")
    equal(r["errors"], 0, "nobody was told")
    stop(daemon)
    daemon = mount(server.url)
    check_all()
    equal(remote()["bad_blocks"], 0, "they were mended")
    stop(daemon)


def check_warm(server):
    """While it is mounted: the mount notices a shorter or missing file at any time."""
    for when in ("before", "after"):
        for what in ("truncated", "emptied", "removed", "folder removed"):
            restore()
            daemon = mount(server.url, CACHE, "patience=5")
            if when == "after":
                check_all()
            for file, st in list(files_below(CACHE)):
                if what == "truncated":
                    os.truncate(file, st.st_size // 3)
                elif what == "emptied":
                    os.truncate(file, 0)
                elif what == "removed":
                    os.unlink(file)
            if what == "folder removed":
                shutil.rmtree(CACHE)
            for name, data in DATA.items():
                try:
                    got = read_anew(path(name, "source", name))
                    equal(got == data, True, f"{what} {when} use: bytes of {name}")
                except OSError as e:
                    equal(what == "folder removed", True, f"{what} {when} use: {name}: {e}")
            stop(daemon)


def check_cut(server):
    """A file is truncated under two mounts that know all of it to be good, then a fetch of the last
    block makes it long again (docs/spec/cache-format.md: the drops are at the end of the file): never a
    wrong byte."""
    name, second = "one-data", f"{PRIVATE}/second"
    size = len(DATA[name])
    os.makedirs(second, exist_ok=True)
    for cut in (0, 1536, 5000, 10**5, size):
        restore()
        daemons = [mount(server.url, CACHE, "stage=off"),
                   mount(server.url, CACHE, "stage=off", at=second)]
        places = [f"{daemon.at}/{name}/source/{name}" for daemon in daemons]
        for place_ in places:
            equal(read_anew(place_) == DATA[name], True, "before the cut")
        for file, st in files_below(f"{CACHE}/staged"):
            if st.st_size > cut:
                os.truncate(file, cut)
        for at in (size - 1, *(rng.randrange(size) for _ in range(60))):
            equal(read_anew(places[at % 2], size=100, offset=at) == DATA[name][at:at + 100], True,
                  f"cut to {cut}: bytes at {at}")
        for place_ in places:
            equal(read_anew(place_) == DATA[name], True, f"cut to {cut}: {place_}")
        for daemon in daemons:
            stop(daemon)


def later_version(file):
    """docs/spec/cache-format.md: a magic of 8 bytes, then the version."""
    with open(file, "r+b") as f:
        head = f.read(12)
        if head[:4] == b"epoc":
            f.seek(8)
            f.write((int.from_bytes(head[8:12], "little") + 7).to_bytes(4, "little"))


def refused(server, before, *words):
    """Exit code 4, and nothing has changed."""
    said = run("mount", "-o", f"cache={CACHE},{OPTIONS}", f"{server.url}/", path(), code=4)
    contains(said, CACHE, *words)
    equal({n: content(CACHE, n) for n in ours(CACHE)} == before, True, "the folder is untouched")


def check_foreign(server):
    """Foreign files are kept; a folder of another version, or of another user, is refused."""
    restore()
    others = {"notes.txt": b"mine", "staged/notes": b"mine, too", "staged/0123.part": b"and this",
              "staged/" + "0" * 31: b"a name that is nearly one of ours", "sub/folder/file": b"x",
              "unpacked/paper.pdf": b"y", "staged/sub/" + "a" * 32: b"z"}
    for name, data in others.items():
        place(CACHE, name, data)
    daemon = mount(server.url, CACHE, "cache_size=100K")
    check_all()
    stop(daemon)
    run("cache", "verify", CACHE)
    run("cache", "prune", CACHE)
    for name, data in others.items():
        equal(content(CACHE, name), data, f"{name}, which is not ours")

    restore()
    shutil.rmtree(f"{CACHE}/staged")
    place(CACHE, "staged", b"a file in place of a folder")
    refused(server, {n: content(CACHE, n) for n in ours(CACHE)})
    # Each cache file has its version, here a later one. The marker has that of the folder.
    restore()
    for name in ours(CACHE):
        later_version(f"{CACHE}/{name}")
    refused(server, {n: content(CACHE, n) for n in ours(CACHE)})
    for marker in (b"epochfs cache folder, version 1\n", b"epochfs cache folder, version 99\n",
                   b"", b"somebody else's\n", None):
        restore()
        os.unlink(f"{CACHE}/{MARKER}")
        if marker is not None:
            place(CACHE, MARKER, marker)
        refused(server, {n: content(CACHE, n) for n in ours(CACHE)})
    restore()
    with open(f"{CACHE}/{MARKER}", "ab") as f:
        f.write(b"more\n")
    refused(server, {n: content(CACHE, n) for n in ours(CACHE)}, "got more")
    for make in (os.mkdir, os.mkfifo, lambda file: os.symlink("nothing", file)):
        restore()
        os.unlink(f"{CACHE}/room")
        make(f"{CACHE}/room")
        said = run("mount", "-o", f"cache={CACHE},{OPTIONS}", f"{server.url}/", path(), code=4)
        contains(said, f"{CACHE}: file room: ", "got something else")
    place(PRIVATE, "a-file", b"x")
    run("mount", "-o", f"cache={PRIVATE}/a-file", f"{server.url}/", path(), code=4)
    equal(content(PRIVATE, "a-file"), b"x", "a file in place of the folder")
    daemon = mount(server.url, f"{PRIVATE}/new/below")
    equal(oct(os.stat(f"{PRIVATE}/new/below").st_mode & 0o777), "0o700", "mode of a new folder")
    stop(daemon)


with Nginx(WWW) as nginx:
    first = mount(nginx.url, KEPT)
    check_all()
    wait_staged(first)
    stop(first)
    equal(oct(os.stat(KEPT).st_mode & 0o777), "0o700", "mode of the cache folder")
    timed(check_cold, nginx)
    timed(check_warm, nginx)
    timed(check_cut, nginx)
    timed(check_foreign, nginx)
