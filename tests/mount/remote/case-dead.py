#!/usr/bin/python3
# slow: waits for servers that are gone
"""The server is gone, or silent: staged files are read, listed and looked up at once; reads of
missing bytes fail in time; Ctrl-C releases readers; and even then the mount ends at once."""

import collections
import errno
import os
import signal
import subprocess
import time

import numpy as np

from lib import (DEADLINE, MOUNTPOINT, PRIVATE, content, equal, idx_bytes, log_text,
                 mount_type, run, stop)
from servers import (Nginx, error_of, locks_in, place, read_anew, remote, start_at, timed,
                     took, wait_until, within)

WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(12)
HERE = rng.integers(0, 256, (500, 50, 50), dtype=np.uint8)  # all of it is staged
THERE = rng.integers(0, 256, (4000, 50, 50), dtype=np.uint8)  # only its beginning is
place(WWW, "here-data", idx_bytes(HERE))
place(WWW, "there-data", idx_bytes(THERE))
OPTIONS = "block=16K,stage=off,timeout=1"
READERS = 16  # more than the daemon has threads
OFFSETS = collections.defaultdict(lambda: iter(range(3_000_000, 10_000_000, 150_000)))


def wants(offset, n=4096):
    """The bytes of there-data."""
    return idx_bytes(THERE)[offset:offset + n]


def everything_here(at=MOUNTPOINT):
    """Everything that needs no remote must answer at once."""
    def quick(what, function, *arguments, **kwargs):
        with within(5, what):
            return function(*arguments, **kwargs)
    quick("batches", os.listdir, f"{at}/there-data/batches")
    for folder in ("", "here-data", "here-data/samples/raw", "there-data/samples/npz",
                   "there-data/batches/batch=7,seed=5/epoch=9/npy"):
        equal(len(quick(folder, os.listdir, f"{at}/{folder}")) > 0, True, folder)
    for file in ("there-data/samples/npz/003333.npz", "there-data/source/there-data",
                 "there-data/batches/batch=64,seed=99/epoch=3/raw/000007.image.raw",
                 "there-data/samples/tar/000011.tar"):
        equal(quick(file, os.stat, f"{at}/{file}").st_size > 0, True, file)
    for i in rng.integers(0, 500, 20):
        got = quick("a sample", read_anew, at, f"here-data/samples/raw/{i:06d}.image.raw")
        equal(got, HERE[i].tobytes(), f"sample {i}")
    got = quick("a batch", read_anew, at, "here-data/batches/batch=all/raw/000000.image.raw")
    equal(got == HERE.tobytes(), True, "all samples")
    quick("a new plan", content, at,
          f"here-data/batches/batch=50,seed={rng.integers(1 << 30)}/epoch=1/npz/000003.npz")
    quick("dataset.json", content, at, "there-data/dataset.json")
    quick("status", content, at, ".epochfs/status.json")
    quick("metrics", content, at, ".epochfs/metrics")
    quick("epochfs status", run, "status", at)


def stuck_readers(at, n=READERS):
    """Processes that read missing bytes, each at a new place, because the kernel itself makes
    readers of one page wait. Returns once they all wait. Their exit code is 1 with the bytes, 2
    without."""
    before = remote(at)["misses"]
    found = [subprocess.Popen(["cmp", "-n", "4096", "-i", f"{next(OFFSETS[at])}:0",
                               f"{at}/there-data/source/there-data", "/dev/zero"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
             for _ in range(n)]
    wait_until(lambda: remote(at)["misses"] >= before + n, "all readers wait")
    return found


def check_dead(server, kind):
    """The server is silent (kind "stalled"), or unreachable ("gone")."""
    at = start_at(kind, f"{server.url}/", f"{OPTIONS},patience=8,cache={PRIVATE}/cache.{kind}")
    equal(read_anew(at.at, "here-data/source/here-data") == idx_bytes(HERE), True, "staged")
    read_anew(at.at, "there-data/source/there-data", size=4096)
    patient = start_at(f"{kind}-patient", f"{server.url}/",
                       f"{OPTIONS},patience=600,cache={PRIVATE}/cache.{kind}")
    if kind == "stalled":
        server.stall()
    else:
        server.stop()
    everything_here(at.at)

    # Reads of missing bytes fail in time, and do not delay reads of staged ones.
    errors = remote(at.at)["errors"]
    begin = time.monotonic()
    waiting = stuck_readers(at.at)
    everything_here(at.at)
    equal([r.wait(DEADLINE) for r in waiting], [2] * READERS, "reads of what is not here")
    took(time.monotonic() - begin, "patience=8", 8 + 1 + 15)
    equal(error_of(read_anew, at.at, "there-data/source/there-data", size=4096, offset=5_000_000),
          errno.EIO, "a read of what is not here")
    equal(remote(at.at)["errors"] > errors, True, "errors are counted")
    equal(remote(at.at)["last_error"] != "", True, "the error is told")

    # Ctrl-C, and kill.
    for sig in (signal.SIGINT, signal.SIGKILL):
        waiting = stuck_readers(patient.at, 4)
        with within(10, f"released by {sig.name}"):
            for r in waiting:
                r.send_signal(sig)
            for r in waiting:
                equal(r.wait(DEADLINE), -sig, "the reader ended by the signal")
    everything_here(patient.at)

    # The server comes back: readers that have waited get the bytes.
    waiting = stuck_readers(patient.at, 4)
    if kind == "stalled":
        server.resume()
    else:
        server.start()
    for r in waiting:
        equal(r.wait(DEADLINE), 1, "a reader that waited until the server was back")
    for mount in (at, patient):
        equal(read_anew(mount.at, "there-data/source/there-data", size=4096, offset=7_000_000) ==
              wants(7_000_000), True, "when it is back")
        stop(mount)
    equal(locks_in(f"{PRIVATE}/cache.{kind}"), [], "locks that are left")


def check_end(server, kind, end, *options):
    """The mount ends at once, with waiting readers and a silent server. end: how."""
    cache = f"{PRIVATE}/end.{kind}"
    daemon = start_at(f"end-{kind}", f"{server.url}/", ",".join(
        [f"cache={cache}", "patience=600,timeout=600,block=16K", *options]))
    server.stall()
    waiting = stuck_readers(daemon.at, 8) if "stage=off" in options else []
    with within(10, f"{kind}: the end"):
        end(daemon)
        code = daemon.wait(DEADLINE)
    equal(code, 0, f"{kind}: exit code of the daemon: {log_text(f'log.end-{kind}')}")
    equal(mount_type(daemon.at), None, f"{kind}: mounted")
    for r in waiting:
        equal(r.wait(DEADLINE), 2, f"{kind}: a reader")
    equal(locks_in(cache), [], f"{kind}: locks that are left")
    server.resume()
    with_it = start_at(f"after-{kind}", f"{server.url}/", f"cache={cache}")
    equal(read_anew(with_it.at, "there-data/source/there-data", size=4096, offset=9_000_000) ==
          wants(9_000_000), True, f"{kind}: the next mount")
    stop(with_it)


def end_by_umount(daemon):
    run("umount", daemon.at)


def end_by_force(daemon):
    subprocess.run(["umount", "-f", "-l", daemon.at], check=True)


with Nginx(WWW) as nginx:
    timed(check_dead, nginx, "stalled")
    timed(check_dead, nginx, "gone")
with Nginx(WWW, limit_rate=200_000) as nginx:
    timed(check_end, nginx, "sigterm", lambda d: d.terminate(), "stage=off")
    timed(check_end, nginx, "sigterm-background", lambda d: d.terminate())
    timed(check_end, nginx, "sigint", lambda d: d.send_signal(signal.SIGINT), "stage=off")
    timed(check_end, nginx, "umount-background", end_by_umount)
    if os.geteuid() == 0:
        timed(check_end, nginx, "umount-force", end_by_force, "stage=off")
