#!/usr/bin/python3
# slow: reads whole epochs
"""The next files are ready in the page cache: reads seldom reach the daemon, all bytes equal those
of a mount without push, no more is ahead than allowed, and the mount ends cleanly."""

import errno
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np

from lib import (DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, difference, equal,
                 idx_bytes, log_text, mount_type, mounted, path, requests, run, small, start, status,
                 stop, write)
from push import by_pages, compute, resident, whole
from servers import kill_mount, took, wait_until

PLAIN = f"{PRIVATE}/plain"  # the same without push
N = 16000  # samples of 1600 bytes


# ---- readers ----

def check(got, below):
    if got != whole(f"{PLAIN}/{below}"):
        raise AssertionError(f"{below}: other bytes than without push")


def names(folder, suffix):
    """The names of the epoch, as in ls; taken from the mount without push."""
    return sorted(n for n in os.listdir(f"{PLAIN}/{folder}") if n.endswith(suffix))


def reader(way, folder, suffix, seed):
    """A process that reads a folder of the mount; exit code 0: all bytes are right."""
    rng = random.Random(seed)
    files = names(folder, suffix)
    if way == "jumps":
        at, order = 0, []
        while len(order) < 1000:
            run_of = rng.randrange(1, 30)
            order += files[at:at + run_of]
            at = rng.randrange(len(files))
        files = order
    elif "worker" in way:
        files = files[int(way[-1])::4]
    for i, name in enumerate(files):
        below = f"{folder}/{name}"
        check(by_pages(path(below), rng) if way == "mmap" else whole(path(below)), below)
        if i % (1 if way.startswith("slow") else 50) == 0:
            compute(0.002)


def start_reader(way, folder, suffix=".image.raw", seed=0):
    return subprocess.Popen([sys.executable, __file__, way, folder, suffix, str(seed)])


def read_all(*readers):
    started = [start_reader(*r) for r in readers]
    equal([r.wait(DEADLINE * 2) for r in started], [0] * len(started), f"{readers}")


# ---- the page cache ----

def read_until_ahead(folder, files, ahead, check_file):
    """Read the files until the one that many places ahead has been pushed. Returns how many were
    read. There is nothing to wait for: the kernel may drop what was pushed, and the push goes on
    from where it sees the reader next."""
    for i, name in enumerate(files[:len(files) - ahead]):
        check_file(whole(path(folder, name)), name)
        if resident(path(folder, files[i + ahead])):
            return i + 1
        compute()
    raise AssertionError(f"{folder}: nothing was pushed {ahead} files ahead")


# ---- right bytes, few requests ----

def count_requests(what, folder, listed, suffix):
    """A reader that computes between two batches. Returns requests per batch."""
    files = names(folder, suffix)
    equal(len(files) >= 400, True, "enough batches")
    if listed:
        equal(len(os.listdir(path(folder))) >= len(files), True, "ls")
    before = requests()
    for name in files:
        got = whole(path(folder, name))
        compute()
        check(got, f"{folder}/{name}")
    asked = difference(before, requests())
    print(f"{what}: {asked} for {len(files)} batches", flush=True)
    equal(asked["read"] >= len(files) / 64 - 2, True, f"{what}: marks are read: {asked}")
    return sum(asked.values()) / len(files)


def check_requests(what, listed):
    """Another process may drop the kernel's caches meanwhile: one success in three is enough."""
    most = 1 if SLOW else 0.2
    found = []
    while len(found) < 3 and (not found or found[-1] > most):
        seed = 2 * len(found) + listed
        found.append(count_requests(what, f"train-data/batches/batch=32,seed={seed}/epoch=0/raw",
                                    listed, ".image.raw"))
    equal(found[-1] <= most, True, f"{what}: requests per batch: {found}")


def check_bytes():
    check_requests("not listed", False)
    check_requests("listed", True)
    for way in ("sequence", "slow", "mmap", "jumps"):
        read_all((way, f"train-data/batches/batch=32,seed=3{len(way)}/epoch=5/raw"))
    read_all(*((f"slow-worker{i}", "train-data/batches/batch=16,seed=4/epoch=0/raw")
               for i in range(4)))
    read_all(("slow", "train-data/batches/batch=16,rank=0of2,seed=5/epoch=0/raw"),
             ("mmap", "train-data/batches/batch=16,rank=1of2,seed=5/epoch=0/raw"))
    read_all(("slow", "train-data/batches/batch=1500,seed=6/epoch=0/raw"),
             ("mmap", "train-data/batches/batch=1500,seed=7/epoch=0/raw"))
    read_all(("slow", "train-data/batches/batch=all,seed=6/epoch=0/raw"),
             ("mmap", "train-data/batches/batch=all/raw"))
    read_all(("slow", "pair-train/batches/batch=4,seed=8/epoch=0/npy", ".npy"))
    read_all(("slow", "pair-train/batches/batch=4,seed=9/epoch=0/npz", ".npz"),
             ("sequence", "pair-train/samples/npy", ".image.npy"),
             ("slow", "pair-train/samples/raw", ".image.raw"))


def check_killed_readers():
    rng = random.Random(3)
    for i in range(6):
        folder = f"train-data/batches/batch=16,seed={100 + i % 2}/epoch={i // 2}/raw"
        started = [start_reader(way, folder) for way in ("slow", "mmap", "sequence")]
        wait_until(lambda f=folder: resident(path(f, "000040.image.raw")) or
                   any(plan["pushed_batches"] > 40 for plan in status()["plans"]), "it is under way")
        compute(rng.random() / 20)
        for r in started:
            r.kill()
        for r in started:
            r.wait(DEADLINE)
    read_all(("sequence", "train-data/batches/batch=16,seed=100/epoch=0/raw"))


# ---- how much is ahead ----

def most_ahead(epoch, ahead):
    """Read an epoch slowly. Returns how many bytes were in the page cache before the reader, at
    most."""
    folder = f"train-data/batches/batch=32,seed=11/epoch={epoch}/raw"
    files, most = names(folder, ".image.raw"), 0
    for i, name in enumerate(files):
        check(whole(path(folder, name)), f"{folder}/{name}")
        compute(0.002)
        if i % 20 == 19:
            pushed = sum(resident(path(folder, n)) for n in files[i + 1:])
            most = max(most, pushed)
            equal(pushed <= ahead, True, f"batch {i}: {pushed} bytes ahead, expected {ahead} at most")
    return most


def check_ahead(ahead):
    """A slow reader: no more than ahead bytes are in the page cache before it. A busy machine may
    push little in one epoch."""
    most = 0
    for epoch in range(10):
        most = max(most, most_ahead(epoch, ahead))
        if most > ahead / 4:
            return
    equal(most > ahead / 4, True, f"{most} bytes ahead at most of {ahead}")


def check_nothing():
    """ahead=0; and live texts are never pushed."""
    folder = "train-data/batches/batch=32,seed=12/epoch=0/raw"
    files = names(folder, ".image.raw")
    before = requests(PLAIN)["read"]
    for name in files:
        whole(f"{PLAIN}/{folder}/{name}")
    # One for each file, and one for the text itself.
    equal(requests(PLAIN)["read"] - before >= len(files), True, "reads without push")
    first, second = (status()["requests"]["read"] for _ in range(2))
    equal(second > first, True, "each look at the status is a read")


# ---- the source changes ----

def check_changed():
    """The source changes during the push: files not read yet fail as without push; nothing new
    enters the page cache."""
    source = write("change-data", np.random.default_rng(5).bytes(0) + idx_bytes(DATA))
    with mounted(SOURCE, "ahead=4M", at=MOUNTPOINT):
        folder = "change-data/batches/batch=32/raw"
        files = sorted(os.listdir(path(folder)))
        done = read_until_ahead(folder, files[:300], 20, lambda got, name: equal(
            got, DATA[int(name[:6]) * 32:][:32].tobytes(), name))
        with open(source, "r+b") as f:
            f.write(idx_bytes(255 - DATA))
        st = os.stat(source)
        os.utime(source, ns=(st.st_atime_ns, st.st_mtime_ns + 1_000_000))
        failed = 0
        for name in files[done:] + files[done:]:
            try:
                got = whole(path(folder, name))
            except OSError as e:
                equal(e.errno in (errno.ESTALE, errno.EIO), True, f"{name}: {e}")
                failed += 1
                continue
            equal(got == DATA[int(name[:6]) * 32:][:32].tobytes(), True, f"{name}: the old bytes")
        equal(failed > len(files) - done, True, f"{failed} reads failed")  # 4 MiB were ahead
    contains(log_text(), "change")
    os.unlink(source)
    os.truncate(f"{PRIVATE}/log", 0)


# ---- the end ----

def ends(rounds):
    """End in every way, while the mount pushes and is read at full speed."""
    def umount(daemon):
        for r in readers:
            r.kill()
            r.wait()
        run("umount", daemon.at)  # a listing by the push is no concern of the user

    def lazy(daemon):
        run_command("umount", "-l", daemon.at)
        for r in readers:
            r.kill()

    ways = {"SIGTERM": lambda d: d.terminate(), "SIGINT": lambda d: d.send_signal(signal.SIGINT),
            "SIGHUP": lambda d: d.send_signal(signal.SIGHUP), "umount": umount,
            "SIGKILL": kill_mount}
    if os.geteuid() == 0:
        ways["umount -l"] = lazy
    rng = random.Random(7)
    for i in range(rounds * len(ways)):
        way = list(ways)[i % len(ways)]
        daemon = start(SOURCE, "ahead=16M")
        readers = [start_reader("sequence", f"train-data/batches/batch=8,seed={i}/epoch=0/raw"),
                   start_reader("mmap", f"train-data/batches/batch=16,seed={i}/epoch=0/raw"),
                   start_reader("slow", f"train-data/batches/batch=1500,seed={i}/epoch=0/raw")]
        wait_until(lambda: requests()["read"] >= 30, "it is read")
        compute(rng.random() / 10)
        begin = time.monotonic()
        ways[way](daemon)
        code = daemon.wait(DEADLINE)
        took(time.monotonic() - begin, f"the end by {way}", 10)
        equal(code, -signal.SIGKILL if way == "SIGKILL" else 0, f"{way}: exit code {log_text()}")
        equal(mount_type(MOUNTPOINT), None, f"{way}: mounted")
        for r in readers:
            r.kill()
            r.wait(DEADLINE)


def check_busy_for_a_moment():
    """For example because the push lists a folder: umount need not tell the user."""
    daemon = start(SOURCE)
    lister = subprocess.Popen(
        [sys.executable, "-c", "import os, select, sys; os.open(sys.argv[1], os.O_RDONLY); "
         "print(flush=True); select.select([], [], [], 0.15)", path("train-data")],
        stdout=subprocess.PIPE)
    lister.stdout.readline()
    run("umount", MOUNTPOINT)
    equal(daemon.wait(DEADLINE), 0, "exit code")
    lister.communicate(timeout=DEADLINE)


def run_command(*words):
    subprocess.run(words, check=True)


def main():
    assert EPOCHFS
    os.mkdir(PLAIN)
    write("train-data", idx_bytes(DATA))
    small(1600, "pair-", side=30)
    plain = start(SOURCE, "ahead=0", at=PLAIN, log="log.plain")
    small_ahead, large_ahead = (lambda: check_ahead(1 << 20)), (lambda: check_ahead(8 << 20))
    for step, options in ((check_bytes, "ahead=64M"), (check_killed_readers, "ahead=16M"),
                          (large_ahead, "ahead=8M"),
                          (small_ahead, "ahead=1M"), (check_nothing, "ahead=8M")):
        begin = time.monotonic()
        with mounted(SOURCE, options):
            step()
            equal(status()["read_errors"], 0, "read_errors")
        print(f"{step.__name__} {options}: {time.monotonic() - begin:.1f} s", flush=True)
    check_changed()
    check_busy_for_a_moment()
    ends(1 if SLOW else 3)
    stop(plain)


if len(sys.argv) > 1:
    try:
        reader(*sys.argv[1:4], int(sys.argv[4]))
    except OSError as error:
        sys.exit(f"{error}")  # the mount ended during the read
else:
    DATA = np.random.default_rng(4).integers(0, 256, (N, 40, 40), dtype=np.uint8)
    main()
