#!/usr/bin/python3
# slow: waits for members that are stopped
"""A member of the group that shares a cache folder is stopped, or hostile, at a moment at which his process holds a
lock: those that processes hold for a moment, and that of a file that is being unpacked. Others go on: they read right
bytes, which are then not staged, or are told who is in the way; no mount waits for ever."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

import bad_server as bad
import users
from bad_server import BadServer
from lib import DEADLINE, PRIVATE, contains, equal, idx_bytes, mount_type
from servers import files_below, place, took, wait_until, within
from users import GROUP, User

users.may_mount(__file__)
WWW, SHARED = f"{PRIVATE}/www", f"{PRIVATE}/shared"
LIMIT = 9  # seconds: 5 for one wait, and what the machine takes
PIECE = 64 << 10
rng = np.random.default_rng(4)
DATA = idx_bytes(rng.integers(0, 256, (1500, 64, 64), dtype=np.uint8))
PACKED = idx_bytes(rng.integers(0, 256, (3000, 32, 32), dtype=np.uint8))
place(WWW, "big-data", DATA)
place(WWW, "packed-data.gz", gzip.compress(PACKED, 1))
os.mkdir(SHARED)
os.chown(SHARED, 0, GROUP)
os.chmod(SHARED, 0o2770)
ann, bob = User("ann", [GROUP], "077"), User("bob", [GROUP])
OPTIONS = f"cache={SHARED},block=16K,stage=off"

# Locks bytes of a file, as a process of epochfs does, until its input ends.
HOLDER = """
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, int(sys.argv[2]), 1, 0))  # F_OFD_SETLK
print("held", flush=True)
sys.stdin.read()
"""
ROOM, USE, HEADER, DROP = 1 << 62, 1 << 62, (1 << 62) + 1, (1 << 62) + 2


@contextlib.contextmanager
def held(path, start):
    with subprocess.Popen([*bob.prefix, sys.executable, "-c", HOLDER, path, str(start)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        equal(process.stdout.readline(), "held\n", "the lock")
        yield
        process.stdin.close()


def content():
    [found] = [path for path, _ in files_below(f"{SHARED}/staged") if path.endswith(".content")]
    return found


def read(at, limit):
    """Returns the seconds of the read alone, without those in which its process starts."""
    with ann.python("import sys, os, time; f = os.open(sys.argv[1], os.O_RDONLY); begin = time.monotonic(); "
                    "data = os.pread(f, int(sys.argv[3]), int(sys.argv[2])); print(time.monotonic() - begin, data.hex())",
                    f"{ann.mountpoint}/big-data/source/big-data", str(at), str(PIECE)) as process:
        said = process.communicate(timeout=2 * DEADLINE)[0]
    seconds, _, data = said.strip().partition(" ")
    equal(data == DATA[at:at + PIECE].hex(), True, f"bytes from {at}: {said[:300]}")
    took(float(seconds), f"a read at {at}", limit)
    return float(seconds)


def check_while_mounted(server):
    """The lock of the room, and those that are taken when a file is opened."""
    ann.mount(f"{server.url}/big-data", OPTIONS)
    read(0, 4)
    for path, start in ((f"{SHARED}/room", ROOM), (content(), HEADER), (content(), DROP)):
        with held(path, start):
            seconds = sum(read(at, LIMIT) for at in range(PIECE, 5 * PIECE, PIECE))  # not each of them waits
            with within(4, "the status"):
                at = json.loads(ann.read(".epochfs/status.json"))["remote"]
            equal(at["cache_used_bytes"] > 0, True, "the room that is used")
            took(seconds, "four reads", LIMIT)
        read(6 * PIECE, 4)
        ann.umount()
        bob.run("cache", "prune", "--all", SHARED)
        ann.mount(f"{server.url}/big-data", OPTIONS)
        read(0, 4)
    ann.umount()


def check_before(server):
    """The same locks, when ann mounts. Programs start slowly on a busy machine: a mount without them tells how slowly."""
    begin = time.monotonic()
    ann.mount(f"{server.url}/big-data", OPTIONS)
    limit = LIMIT + min(2 * (time.monotonic() - begin), 2 * LIMIT)
    ann.umount()
    for start in (HEADER, DROP):
        with held(content(), start):
            begin = time.monotonic()
            ann.mount(f"{server.url}/big-data", OPTIONS)
            took(time.monotonic() - begin, "a mount", limit)
            for at in range(0, 4 * PIECE, PIECE):
                read(at, 4)
            ann.umount()
    with held(f"{SHARED}/room", ROOM):
        begin = time.monotonic()
        said = ann.run("mount", "-o", OPTIONS, f"{server.url}/big-data", ann.mountpoint, code=4)
        contains(said, f"{SHARED}: file room: another process, perhaps a stopped one, keeps it locked")
        took(time.monotonic() - begin, "a mount that fails", limit)


# Keeps leases on files, as a file server may that never gives them up.
LEASER = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
kept = [os.open(path, os.O_RDWR) for path in sys.argv[1:]]
for fd in kept:
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
sys.stdin.read()
"""


def check_many():
    """Locks over all staged files: one wait for all, and a sentence that names a lock."""
    for i in range(12):
        place(f"{PRIVATE}/many", f"{'abcdefghijkl'[i]}-data", DATA[:16] + bytes([i]) + DATA[17:])
    options = f"cache={SHARED},block=16K"
    ann.run("stage", "-o", options, f"{PRIVATE}/many")
    with contextlib.ExitStack() as stack:
        for path, _ in files_below(f"{SHARED}/staged"):
            if path.endswith(".content"):
                stack.enter_context(held(path, USE))
        for command, code in ((["stage"], 4), (["stage", "--check"], 4), (["info"], 0)):
            begin = time.monotonic()
            said = ann.run(*command, "-o", options, f"{PRIVATE}/many", code=code)
            took(time.monotonic() - begin, f"{command} with many locks", 2 * LIMIT)
            equal("full" in said or "damaged" in said, False, said)
            if code:
                contains(said, f"{SHARED}/staged/", "another process, perhaps a stopped one, keeps it locked")
    ann.run("stage", "--check", "-o", options, f"{PRIVATE}/many")
    with subprocess.Popen([sys.executable, "-c", LEASER, f"{SHARED}/EPOCHFS"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        equal(process.stdout.readline(), "held\n", "the lease")
        contains(ann.run("stage", "-o", options, f"{PRIVATE}/many", code=4),
                 f"{SHARED}: another process keeps its file EPOCHFS locked")
        process.stdin.close()


def check_unpacking(server):
    """ann is stopped while she unpacks. bob unpacks himself; she also ends well, and what one of them made is kept."""
    server.script("/packed-data.gz", bad.stall(after=100000), first=2)
    unpacking = ann.start(ann.binary, "mount", "-f", "-o", OPTIONS, f"{server.url}/packed-data.gz", ann.mountpoint)
    server.wait_stalled()
    os.kill(unpacking.pid, signal.SIGSTOP)
    try:
        server.healthy()
        begin = time.monotonic()
        bob.mount(f"{server.url}/packed-data.gz", OPTIONS)
        took(time.monotonic() - begin, "a mount while another process unpacks, and is stopped", 2 * LIMIT)
    finally:
        os.kill(unpacking.pid, signal.SIGCONT)
    name = "packed-data/source/packed-data"
    wait_until(lambda: mount_type(ann.mountpoint), "ann's mount", unpacking)
    for user in (ann, bob):
        with user.start("cmp", f"{user.mountpoint}/{name}", f"{PRIVATE}/packed") as process:
            equal((process.communicate()[0], process.returncode), ("", 0), f"bytes of {user.name}")
        user.umount()
    unpacking.communicate(timeout=DEADLINE)
    kept = [path for path, _ in files_below(f"{SHARED}/unpacked")]
    equal((len(kept), [path for path in kept if path.endswith(".part")]), (1, []), "what is kept")
    contains(bob.run("cache", "verify", SHARED), "no damage")


with open(f"{PRIVATE}/packed", "wb") as the_file:
    the_file.write(PACKED)
with BadServer(WWW) as origin:
    check_while_mounted(origin)
    check_before(origin)
    check_unpacking(origin)
check_many()
