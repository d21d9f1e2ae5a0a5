#!/usr/bin/python3
# slow: drops and removes files again and again
"""open=pass and staged files: the kernel reads the content of a file that is whole and compared, and
no other. Drops and removal while it is open; damage; a changed source; users that do not end; file systems
that lie on others; PASS_KILLS=300 daemons that are killed, with every byte compared."""

import os
import random
import subprocess
import threading

import numpy as np

from lib import (CACHE, MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, content, difference, equal, idx_bytes,
                 log_text, mounted, path, requests, run, skip, start, status, stop, write)
from servers import Nginx, kill_mount, place, read_anew, remote, wait_staged, wait_until

KILLS = int(os.environ.get("PASS_KILLS", "4" if SLOW else "12"))
WWW = f"{PRIVATE}/www"
NAME = "big-data"
N, SAMPLE = 3000, 60 * 60
SECOND = f"{PRIVATE}/second"
rng = random.Random(int(os.environ.get("SEED", "3")))


def make(seed, n=N):
    return idx_bytes(np.random.default_rng(seed).integers(0, 256, (n, 60, 60), dtype=np.uint8))


def where(at=MOUNTPOINT):
    return f"{at}/{NAME}/source/{NAME}"


def passed(at=MOUNTPOINT):
    return status(at)["open"]["passed"]


def of_content():
    found = [f for f in os.listdir(f"{CACHE}/staged") if f.endswith(".content")]
    equal(len(found), 1, "contents")
    return f"{CACHE}/staged/{found[0]}"


def check_whole(url, data):
    """Nothing of it, a part of it, all of it: only then the kernel reads it. Each byte is right."""
    with mounted(url, f"cache={CACHE}", "open=pass", "stage=off"):
        if status()["open"]["mode"] != "pass":
            skip(status()["open"]["reason"])
        with open(where(), "rb") as f:
            equal(f.read(100_000), data[:100_000], "the start")
            equal(passed(), 0, "files of which a part is here")
        equal(read_anew(where()) == data, True, "through the daemon")
        equal(passed(), 0, "opens of a file that was not whole")
        wait_staged(total=len(data))
        before = requests()
        equal(content(where()) == data, True, "read by the kernel")
        reads = difference(before, requests()).get("read", 0)
        if not passed():
            skip("the file system of the tests cannot have backing files")
        equal(reads <= 2, True, f"{reads} READs, besides those of status.json")
        with open(of_content(), "rb") as f:
            equal(f.read() == data, True, "the content in the cache folder")
        # Samples come from the same staged file, through the daemon, as before.
        equal(content(path(NAME, "samples/raw/000007.image.raw")), data[16 + 7 * SAMPLE:16 + 8 * SAMPLE])
    with mounted(url, f"cache={CACHE}", "open=pass", "stage=off"):
        equal(content(where()) == data, True, "in a new mount, which compares it first")
        equal(passed(), 1)
        equal(remote()["demand_bytes"], 0, "nothing is fetched again")


def check_held(url, data):
    """What is open is not dropped, pruned or removed, and its daemon may die."""
    daemon = start(url, f"cache={CACHE},open=pass,stage=off")
    f = open(where(), "rb")
    equal(f.read(1000), data[:1000])
    equal(passed(), 1)
    os.makedirs(SECOND, exist_ok=True)
    contains(run("cache", "prune", "--all", CACHE), "0 files removed", "1 file in use")
    contains(run("cache", "list", CACHE), "in use")
    kill_mount(daemon)
    contains(run("cache", "prune", "--all", CACHE), "0 files removed", "1 file in use")
    with mounted(url, f"cache={CACHE}", "open=pass", "stage=off", at=SECOND):
        equal(read_anew(where(SECOND)) == data, True, "beside a dead daemon")
        equal(f.read() == data[1000:], True, "after the daemon was killed")
        f.close()
    contains(run("cache", "prune", "--all", CACHE), "1 file removed")
    equal(os.listdir(f"{CACHE}/staged"), [], "both files are gone")

    daemon = start(url, f"cache={CACHE},open=pass")
    wait_staged(total=len(data))
    f = open(where(), "rb")
    equal(f.read(1000), data[:1000])
    equal(passed(), 1)
    subprocess.run(["umount", "-l", MOUNTPOINT], check=True)
    equal(f.read() == data[1000:], True, "after umount -l")
    f.close()
    equal(daemon.wait(), 0)


def check_full(server, data, other):
    """The cache folder is full of a file that is open: another one is read all the same, and the first
    leaves when it is closed."""
    place(WWW, "more-data", other)
    with mounted(f"{server.url}/", f"cache={CACHE}", "open=pass", "stage=off", "keep=plan", "cache_size=14M"):
        equal(read_anew(where()) == data, True, "fills most of the folder")
        wait_until(lambda: remote()["staged_bytes"] >= len(data), "all of it is staged")
        with open(where(), "rb") as f:
            equal(f.read(1000), data[:1000])
            equal(passed(), 1)
            equal(read_anew(where().replace(NAME, "more-data")) == other, True, "the other one")
            equal(f.read() == data[1000:], True, "what was held")
            held = remote()["held_drops"]
        equal(held > 0, True, "drops were refused")
        equal(read_anew(where().replace(NAME, "more-data")) == other, True, "the other one, again")
        print(f"{held} drops refused")
    os.unlink(f"{WWW}/more-data")
    run("cache", "prune", "--all", CACHE)


def check_damage(url, data):
    """A sealed content that is damaged: compared before the kernel reads it."""
    for what in ("byte", "cut", "cut and long", "longer", "records"):
        file = of_content()
        with open(file, "r+b") as f:
            if what == "byte":
                f.seek(rng.randrange(len(data)))
                f.write(b"\0\1\2\3\4\5\6\7")
        if what in ("cut", "cut and long"):
            os.truncate(file, rng.randrange(len(data)))
        if what in ("cut and long", "longer"):
            os.truncate(file, len(data) + (what == "longer"))
        if what == "records":
            os.truncate(file.removesuffix(".content"), 2000)
        with mounted(url, f"cache={CACHE}", "open=pass", "stage=off"):
            equal(read_anew(where()) == data, True, f"{what}: first read")
            wait_staged(total=len(data))
            equal(content(where()) == data, True, f"{what}: second read")
            wait_until(lambda: content(where()) == data and passed() > 0, f"{what}: the kernel reads it")


def check_changed(url, data, newer):
    """A reader that has the old version open keeps it; the next mount has the new one."""
    with mounted(url, f"cache={CACHE}", "open=pass"):
        wait_staged(total=len(data))
        with open(where(), "rb") as f:
            place(WWW, NAME, newer)
            equal(f.read() == data, True, "the version that was opened")
            equal(passed(), 1)
    with mounted(url, f"cache={CACHE}", "open=pass"):
        wait_staged(total=len(newer))
        equal(content(where()) == newer, True, "the new version")


def reader(at, data, wrong):
    """Opens and reads until the daemon is dead, each time another way."""
    r = random.Random(len(wrong))
    while True:
        try:
            with open(where(at), "rb") as f:
                begin = r.randrange(len(data))
                for off, n in ((0, len(data)), (begin, r.randrange(1 << 20))):
                    got = os.pread(f.fileno(), n, off)  # short if the daemon dies meanwhile
                    if got != data[off:off + len(got)]:
                        wrong.append((off, n))
        except OSError:
            return


def check_kills(url, data):
    """Each daemon shares the folder with one that drops what it can."""
    wrong, opens = [], 0
    for i in range(KILLS):
        daemon = start(url, f"cache={CACHE},open=pass,patience=5")
        readers = [threading.Thread(target=reader, args=(daemon.at, data, wrong)) for _ in range(2)]
        for r in readers:
            r.start()
        until = rng.randrange(1, 6)
        wait_until(lambda: passed() >= until, "opens by the kernel")
        if i % 3 == 0:
            run("cache", "verify", CACHE)
        opens += passed()
        kill_mount(daemon)
        for r in readers:
            r.join()
        equal(wrong, [], f"kill {i}")
        if i % 3 == 1:
            with open(of_content(), "r+b") as f:
                f.seek(rng.randrange(len(data)))
                f.write(b"damage")
        if i % 4 == 3:
            contains(run("cache", "prune", "--all", CACHE), "1 file removed")
    print(f"{KILLS} kills, {opens} opens by the kernel")


def check_layers(data):
    """File systems that lie on others: the kernel refuses them, which is said once."""
    lower = f"{PRIVATE}/overlay"
    for name in ("low", "up", "work", "at"):
        os.makedirs(f"{lower}/{name}", exist_ok=True)
    place(f"{lower}/low", NAME, data)
    options = f"lowerdir={lower}/low,upperdir={lower}/up,workdir={lower}/work"
    if subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", f"{lower}/at"], check=False).returncode:
        print("without overlay: it cannot be mounted")
        return
    try:
        with mounted(f"{lower}/at", "open=pass", log="log-overlay"):
            for _ in range(3):
                equal(content(where()) == data, True, "on an overlay")
            equal(passed(), 0)
        equal(log_text("log-overlay").count("lies on another one"), 1, "said once")
    finally:
        subprocess.run(["umount", f"{lower}/at"], check=True)
    # epochfs on epochfs. The lower one, with passthrough, lies on a file system itself.
    write(NAME, data)
    os.makedirs(SECOND, exist_ok=True)
    for below, want in (("pass", 0), ("cached", 1)):
        with mounted(SOURCE, f"open={below}", at=SECOND), \
                mounted(f"{SECOND}/{NAME}/source", "open=pass", log=f"log-{below}"):
            equal(content(where()) == data, True, f"on epochfs with open={below}")
            equal(passed() > 0, bool(want), f"passed on open={below}")


os.makedirs(WWW, exist_ok=True)
old, new = make(1), make(2)
os.utime(place(WWW, NAME, old), (10**9, 10**9))  # nginx' ETag has seconds
with Nginx(WWW) as server:
    source = f"{server.url}/{NAME}"
    check_whole(source, old)
    check_held(source, old)
    check_damage(source, old)
    check_changed(source, old, new)
    run("cache", "prune", "--all", CACHE)
    check_kills(source, new)
    run("cache", "prune", "--all", CACHE)
    check_full(server, new, make(3, 8 * N))  # more than memory holds in place of the folder
check_layers(old)
