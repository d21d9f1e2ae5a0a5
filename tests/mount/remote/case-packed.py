#!/usr/bin/python3
# slow: many processes at once
"""Packed files of a server, staged by many processes at once: each byte is fetched once, whichever
process unpacks them first and drops the packed bytes; even if that process is killed."""

import gzip
import subprocess

import numpy as np

from lib import DEADLINE, EPOCHFS, PRIVATE, equal, idx_bytes, log_text, run, stop
from servers import (MiB, Nginx, check_once, disk_usage, end_process, files_below, locks_in, place,
                     read_anew, remote, sent, start_at, wait_until)

WWW = f"{PRIVATE}/www"
FILES = 3


def data(seed):
    return idx_bytes(np.random.default_rng(seed).integers(0, 256, (400 + 300 * seed, 50, 50),
                                                          dtype=np.uint8))


def packed():
    """path -> bytes on the server."""
    sizes = {}
    for i in range(FILES):
        there = gzip.compress(data(i), 1)
        place(WWW, f"part{i}.gz", there)
        sizes[f"/part{i}.gz"] = len(there)
    return sizes


def stage_at(server, cache, options=""):
    with open(f"{PRIVATE}/log.stage", "ab") as log:
        return subprocess.Popen([EPOCHFS, "stage", "-o", f"cache={cache},{options}",
                                 f"{server.url}/"], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=log)


def check_unpacked(server, cache, what):
    """The unpacked files exist, and nothing of the packed ones."""
    equal(locks_in(cache), [], f"{what}: locks that are left")
    equal(sorted(st.st_size for _, st in files_below(f"{cache}/unpacked")),
          sorted(len(data(i)) + len(f"{server.url}/part{i}.gz") + 64 for i in range(FILES)),
          f"{what}: sizes of what is unpacked")
    equal(disk_usage(f"{cache}/staged") < MiB // 4, True, f"{what}: what was packed is dropped")


def check_stages(server, sizes, number, options):
    """Three processes at once; small blocks, so that much could be done twice."""
    cache = f"{PRIVATE}/stages{number}"
    what = f"3 stages, round {number}, {options}"
    server.forget()
    stages = [stage_at(server, cache, options) for _ in range(3)]
    equal([s.wait(DEADLINE) for s in stages], [0] * 3, f"{what}: {log_text('log.stage')}")
    check_once(server.log(), sizes, what)
    check_unpacked(server, cache, what)


def check_with_mounts(server, sizes):
    """Two mounts and a stage at once."""
    cache = f"{PRIVATE}/mounts"
    server.forget()
    stage = stage_at(server, cache)
    mounts = [start_at(f"m{i}", f"{server.url}/", f"cache={cache}") for i in range(2)]
    equal(stage.wait(DEADLINE), 0, log_text("log.stage"))
    for m in mounts:
        for i in range(FILES):
            equal(read_anew(m.at, f"part{i}/source/part{i}") == data(i), True, f"part{i}")
        # Another process may have unpacked and dropped them.
        wait_until(lambda at=m.at: remote(at)["staged_bytes"] == 0, "a mount says that nothing is staged", m)
    check_once(server.log(), sizes, "2 mounts and a stage")
    for m in mounts:
        stop(m)
    check_unpacked(server, cache, "2 mounts and a stage")


def check_killed(server, sizes, least):
    """One of three is killed after that many bytes: only bytes that it had requested and not
    published come again."""
    cache = f"{PRIVATE}/killed{least}"
    what = f"one of three killed at {least}"
    server.forget()
    stages = [stage_at(server, cache, "jobs=2") for _ in range(3)]
    wait_until(lambda: disk_usage(cache) > least, "it fetches")
    stages[0].kill()
    equal([s.wait(DEADLINE) for s in stages[1:]], [0] * 2, f"{what}: {log_text('log.stage')}")
    end_process(stages[0])
    log = server.log()
    check_once(log, sizes, what, spare=2 * MiB)
    equal(sent(log) >= sum(sizes.values()), True, what)
    check_unpacked(server, cache, what)


def main():
    sizes = packed()
    with Nginx(WWW) as server:
        for number in range(8):
            check_stages(server, sizes, number, ("block=4K", "jobs=4", "block=16K,jobs=2")[number % 3])
        check_with_mounts(server, sizes)
    with Nginx(WWW, limit_rate=MiB) as server:
        check_killed(server, sizes, MiB // 2)
        check_killed(server, sizes, 2 * MiB)


main()
