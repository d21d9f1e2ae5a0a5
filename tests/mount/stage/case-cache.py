#!/usr/bin/python3
"""The cache folder: written once, shared, damaged, full, not writable."""

import contextlib
import fcntl
import gzip
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import numpy as np

from lib import (CACHE, DEADLINE, EPOCHFS, LOG, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal,
                 idx_bytes, mounted, path, run, small, start, stop, text, wait_mounted, write)
from servers import took, wait_until

rng = np.random.default_rng(6)
BIG = idx_bytes(rng.integers(0, 256, (3000, 40, 40), dtype=np.uint8))  # 4.8 MB
LITTLE = idx_bytes(np.arange(100, dtype=np.uint8))
UNPACKED = f"{CACHE}/unpacked"


def snapshot(folder=UNPACKED):
    return {f.name: (f.stat().st_ino, f.stat().st_mtime_ns, f.stat().st_size)
            for f in os.scandir(folder)}


def check_content(*folder):
    equal(content(path(*folder, "big/source/big")) == BIG, True, "content of big")
    equal(content(path(*folder, "little/source/little")) == LITTLE, True, "content of little")


def fresh_cache():
    shutil.rmtree(CACHE)
    os.mkdir(CACHE, 0o700)


@contextlib.contextmanager
def environment(**values):
    old = {name: os.environ.pop(name, None) for name in values}
    os.environ.update({name: v for name, v in values.items() if v is not None})
    try:
        yield
    finally:
        for name, value in old.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def check_reuse():
    with mounted():
        check_content()
    first = snapshot()
    equal(len(first), 2, f"unpacked files: {first}")
    with mounted():
        check_content()
        equal(snapshot(), first, "a second mount writes nothing")
    run("info", SOURCE)
    equal(snapshot(), first, "info writes nothing")
    with open(f"{SOURCE}/little.gz", "wb") as f:  # a new version is another file
        f.write(gzip.compress(LITTLE[:-1] + b"\xee", mtime=1))
    with mounted():
        equal(content(path("little/source/little")), LITTLE[:-1] + b"\xee", "the new version")
        equal(content(path("big/source/big")) == BIG, True, "big")
    after = snapshot()
    equal(len(after), 3, "the new version has a file of its own")
    equal({n: after[n] for n in first}, first, "the old ones are as they were")
    write("little.gz", gzip.compress(LITTLE))


def check_damage():
    """A damaged file is unpacked again; the unfinished file of a dead process is taken over."""
    fresh_cache()
    with mounted():
        pass
    for name, damage in (("cut", lambda f: os.truncate(f, 1000)),
                         ("emptied", lambda f: os.truncate(f, 0)),
                         ("longer", lambda f: open(f, "ab").write(b"x")),
                         ("trailer", lambda f: flip(f, -40)),
                         ("content", lambda f: flip(f, -70)),
                         ("half-written", lambda f: os.rename(f, f + ".part")),
                         ("removed", os.unlink)):
        for entry in list(os.scandir(UNPACKED)):
            os.chmod(entry.path, 0o600)
            damage(entry.path)
        with mounted():
            check_content()
        left = os.listdir(UNPACKED)
        equal(len([n for n in left if n.endswith(".part")]), 0, f"{name}: {left}")
        equal(len(left), 2, f"{name}: {left}")
    for entry in list(os.scandir(UNPACKED)):
        flip(entry.path, -70)
    contains(run("cache", "verify", CACHE, code=4), "unpacked/")
    equal(os.listdir(UNPACKED), [], "what cache verify has left")


def flip(file, at):
    with open(file, "r+b") as f:
        f.seek(at, os.SEEK_END)
        byte = f.read(1)
        f.seek(at, os.SEEK_END)
        f.write(bytes([byte[0] ^ 1]))


def check_two_at_once():
    """Two mounts of the same source that start together: one of them unpacks."""
    fresh_cache()
    places = []
    with open(LOG, "ab") as log:
        for i in range(4):
            at = f"{PRIVATE}/together{i}"
            os.mkdir(at)
            places.append((at, subprocess.Popen([EPOCHFS, "mount", "-f", SOURCE, at],
                                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)))
    written = 0
    for at, daemon in places:
        wait_mounted(daemon.pid, at)
        with open(f"/proc/{daemon.pid}/io", encoding="ascii") as f:
            written += int(dict(line.split(": ") for line in f)["wchar"])
        equal(content(at, "big/source/big") == BIG, True, at)
    equal(written < 1.5 * len(BIG), True, f"{written} bytes written for {len(BIG)} unpacked")
    equal(len(os.listdir(UNPACKED)), 2, "one file each")
    for at, daemon in places:
        daemon.at = at
        stop(daemon)


@contextlib.contextmanager
def slow_maker(part, over):
    """Holds the lock of a file that is being made, and lets it grow by a byte again and again."""
    def grow(f):
        while not over.wait(0.3):
            f.write(b"x")
            f.flush()
    with open(part, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        thread = threading.Thread(target=grow, args=(held,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def has_part_open(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            if os.readlink(f"/proc/{pid}/fd/{fd}").endswith(".part"):
                return True
    return False


def check_slow_maker():
    """A process that makes a file, but hardly gets on, is not waited for longer than 5 s. Ctrl-C ends the wait."""
    fresh_cache()
    run("info", SOURCE)
    [big] = [name for name in snapshot() if os.stat(f"{UNPACKED}/{name}").st_size > len(BIG)]
    os.unlink(f"{UNPACKED}/{big}")
    with slow_maker(f"{UNPACKED}/{big}.part", threading.Event()):
        with subprocess.Popen([EPOCHFS, "info", SOURCE], stdout=subprocess.DEVNULL) as waits:
            wait_until(lambda: has_part_open(waits.pid), "info waits", waits)
            begin = time.monotonic()
            waits.send_signal(signal.SIGINT)
            equal(waits.wait(DEADLINE), -signal.SIGINT, "info ends")
        took(time.monotonic() - begin, "Ctrl-C", 4)
        begin = time.monotonic()
        run("info", SOURCE)
        took(time.monotonic() - begin, "info", 30)
    equal(sorted(os.path.splitext(name)[1] for name in snapshot()), ["", ""], "what is kept")
    with mounted():
        check_content()


def check_where():
    """cache=, $EPOCHFS_CACHE, $TMPDIR, $HOME, in that order; folders of our own are 0700."""
    for variables, options, want in (
            ({}, ("cache=" + f"{PRIVATE}/a/b",), "a/b/unpacked"),
            ({"EPOCHFS_CACHE": f"{PRIVATE}/c"}, (), "c/unpacked"),
            ({"EPOCHFS_CACHE": None, "SLURM_TMPDIR": f"{PRIVATE}/d", "TMPDIR": "/nowhere"}, (),
             f"d/epochfs-{os.geteuid()}/unpacked"),
            ({"EPOCHFS_CACHE": None, "TMPDIR": f"{PRIVATE}/e"}, (),
             f"e/epochfs-{os.geteuid()}/unpacked"),
            ({"EPOCHFS_CACHE": None, "TMPDIR": None, "XDG_CACHE_HOME": f"{PRIVATE}/f"}, (),
             "f/epochfs/unpacked"),
            ({"EPOCHFS_CACHE": None, "TMPDIR": None, "HOME": f"{PRIVATE}/g"}, (),
             "g/.cache/epochfs/unpacked")):
        if want[0] in "deg":  # $TMPDIR and $HOME count if they exist
            os.mkdir(f"{PRIVATE}/{want[0]}")
        with environment(**variables), mounted(SOURCE, *options):
            equal(len(os.listdir(f"{PRIVATE}/{want}")), 2, want)
            equal(os.stat(f"{PRIVATE}/{want}").st_mode & 0o777, 0o700, f"mode of {want}")


def check_unwritable():
    """An unusable cache that the user named is exit code 4; a default one is reported in ERROR.txt
    of the files that need it, and plain files work."""
    message = run("mount", "-o", "cache=/dev/null/x", SOURCE, MOUNTPOINT, code=4)
    contains(message, "cache folder /dev/null/x", "cache_dir=")
    equal(message.count("\n"), 1, message)
    run("info", "-o", "cache=/dev/null/x", SOURCE, code=4)
    with environment(EPOCHFS_CACHE="/dev/null/x"), mounted():
        contains(text(path("big.gz/ERROR.txt")), "big.gz", "cache folder /dev/null/x")
        equal(len(os.listdir(path("train/samples/npz"))), 20, "plain files work")
    if os.geteuid() == 0:
        default = f"{PRIVATE}/h/epochfs-0"
        os.makedirs(default)
        os.chown(default, 65534, 65534)
        with environment(EPOCHFS_CACHE=None, TMPDIR=f"{PRIVATE}/h"), mounted():
            contains(text(path("big.gz/ERROR.txt")), "expected a folder of user 0", "65534")


def check_not_ours():
    """A folder with other things in it, or of another version, is refused and left as it is."""
    foreign = f"{PRIVATE}/foreign"
    os.mkdir(foreign, 0o755)
    for name, content_of, words in (
            ("thesis.tex", "x", "got thesis.tex in it"),
            ("EPOCHFS", "epochfs cache folder, version 9\n", "expected version 2, got version 9")):
        with open(f"{foreign}/{name}", "w", encoding="ascii") as f:
            f.write(content_of)
        for command in (("mount", "-o", f"cache={foreign}", SOURCE, MOUNTPOINT),
                        ("info", "-o", f"cache={foreign}", SOURCE)):
            message = run(*command, code=4)
            contains(message, f"cache folder {foreign}", words, f"{foreign}/epochfs with -o cache_dir=")
        equal(os.listdir(foreign), [name], "what is in the folder")
        equal(os.stat(foreign).st_mode & 0o777, 0o755, "its mode")
        with environment(EPOCHFS_CACHE=foreign), mounted():
            contains(text(path("big.gz/ERROR.txt")), words)
            equal(len(os.listdir(path("train/samples/npz"))), 20, "plain files work")
        os.unlink(f"{foreign}/{name}")
    with mounted(SOURCE, f"cache={foreign}"):
        check_content()
    equal(sorted(os.listdir(foreign)), ["EPOCHFS", "room", "staged", "unpacked"],
          "an empty folder is taken")


def check_full():
    if os.geteuid() != 0:
        print("without the part that needs root: a full cache folder")
        return
    full = f"{PRIVATE}/full"
    os.mkdir(full)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", full], check=True)
    with environment(EPOCHFS_CACHE=full), mounted(SOURCE):
        contains(text(path("big.gz/ERROR.txt")), "big.gz", "unpacking gzip", "No space left")
        found = re.search(r"expected at least (\d+) bytes, got (\d+) free",
                          text(path("big.gz/ERROR.txt")))
        equal(bool(found) and 700_000 < int(found[2]) < int(found[1]) <= len(BIG) + 64, True,
              f"numbers: {text(path('big.gz/ERROR.txt'))}")
        equal(content(path("little/source/little")), LITTLE, "what fits is there")
        equal(len(os.listdir(path("train/samples/npz"))), 20, "plain files work")
        left = os.listdir(f"{full}/unpacked")
        equal(len(left), 1, f"nothing half-done is left: {left}")
        equal(os.statvfs(full).f_bfree * 4096 > 900_000, True, "the space was given back")
    filler = os.open(f"{full}/filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(filler, bytes(4096))
    os.close(filler)
    with environment(EPOCHFS_CACHE=full), mounted(SOURCE):
        equal(content(path("little/source/little")), LITTLE, "what is in stays in")
    subprocess.run(["mount", "-o", "remount,ro", full], check=True)
    with environment(EPOCHFS_CACHE=full), mounted(SOURCE):
        equal(content(path("little/source/little")), LITTLE, "a read-only cache is used")
        contains(text(path("big.gz/ERROR.txt")), "big.gz")
    subprocess.run(["umount", full], check=True)


write("big.gz", gzip.compress(BIG, 1))
write("little.gz", gzip.compress(LITTLE))
small()
check_reuse()
check_damage()
check_two_at_once()
check_slow_maker()
check_where()
check_unwritable()
check_not_ours()
check_full()
daemon = start()  # the cache goes away under the mount: open files can still be read
check_content()
stop(daemon)
