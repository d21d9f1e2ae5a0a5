#!/usr/bin/python3
"""epochfs stage: progress, resumable after Ctrl-C and kill, --check, honest exit codes; and epochfs
cache list, verify and prune."""

import os
import re
import shutil
import signal
import subprocess
import time

import numpy as np

import bad_server as bad
from bad_server import BadServer
from lib import (DEADLINE, EPOCHFS, PRIVATE, contains, content, equal, idx_bytes, mounted, path,
                 run, start, stop)
from servers import (MiB, check_once, disk_usage, files_below, locks_in, place, sent, sha256sums,
                     timed, took, wait_until)

WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(41)
DATA = {"one-data": idx_bytes(rng.integers(0, 256, (500, 80, 80), dtype=np.uint8)),
        "sub/two-data": idx_bytes(rng.integers(0, 256, (200, 50, 50), dtype=np.uint8))}
for name, data in DATA.items():
    place(WWW, name, data)
sha256sums(WWW)
SIZES = {f"/{name}": len(data) for name, data in DATA.items()}
TOTAL = sum(SIZES.values())
BLOCK = 16 << 10
CACHES = iter(range(100))


def fresh(*options):
    return ",".join([f"cache={PRIVATE}/cache.{next(CACHES)}", "block=16K", *options])


def folder_of(options):
    return options.partition(",")[0].partition("=")[2]


def background(*arguments):
    return subprocess.Popen([EPOCHFS, *arguments], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check_whole(server):
    """Stage everything, then mount with the server gone."""
    options = fresh()
    quiet = run("stage", "-o", options, f"{server.url}/")
    equal("\r" in quiet, False, f"no progress where there is no terminal: {quiet!r}")
    check_once(server.data(), SIZES, "stage")
    server.forget()
    run("stage", "-o", options, f"{server.url}/")
    equal(server.data(), [], "a second stage fetches nothing")
    run("stage", "--check", "-o", options, f"{server.url}/")
    equal(server.data(), [], "a check fetches nothing")
    with mounted(f"{server.url}/", options):
        server.gone()
        for name, data in DATA.items():
            base = os.path.basename(name)
            equal(content(path(name, "source", base)) == data, True, f"{name}, the server is gone")
    server.up()
    # The size of one file; of a path.
    options = fresh()
    run("stage", "-o", options, f"{server.url}/one-data")
    equal({r.path for r in server.data()}, {"/one-data"}, "stage of one file")
    run("stage", "-o", fresh(), WWW)


def check_progress(server):
    """--progress: bytes, rate, time left; it grows, and ends with all."""
    server.rate = 4 * MiB
    options = fresh()
    said = run("stage", "--progress", "-o", options, f"{server.url}/")
    server.rate = 0
    shown = [line for line in re.split("[\r\n]", said) if line.strip()]
    equal(len(shown) >= 2, True, f"progress is shown: {said!r}")
    percents = [int(m) for line in shown for m in re.findall(r"(\d+) ?% *staged", line)]
    equal(percents == sorted(percents) and percents[-1:] == [100], True, f"percents: {percents}")
    contains(said, "/s")


def check_resume(server):
    """Ctrl-C, SIGTERM and kill -9: the next stage goes on from there."""
    options = fresh("jobs=2")
    server.forget()
    server.rate, server.sendbuf = 2 * MiB, BLOCK
    sizes = []
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        some = disk_usage(folder_of(options)) + (256 << 10)
        stage = background("stage", "-o", options, f"{server.url}/")
        wait_until(lambda want=some: disk_usage(folder_of(options)) >= want, "it stages", stage)
        begin = time.monotonic()
        stage.send_signal(sig)
        said = stage.communicate(timeout=DEADLINE)[0]
        took(time.monotonic() - begin, f"the end by {sig.name}", 10)
        equal(stage.returncode != 0, True, f"{sig.name}: exit code; {said}")
        equal(locks_in(folder_of(options)), [], f"{sig.name}: locks that are left")
        sizes.append(disk_usage(folder_of(options)))
    equal(sizes == sorted(sizes), True, f"what is there grows: {sizes}")
    server.rate = 0
    run("stage", "-o", options, f"{server.url}/")
    # A busy machine lets more bytes be under way. Fetching all cached bytes again would be 256 KiB each time.
    check_once(server.data(), SIZES, "stage, three times interrupted", spare=3 * (192 << 10))
    server.sendbuf = None


def check_codes(server):
    """Exit codes and messages of failures."""
    options = fresh("patience=1", "timeout=1")
    server.script("/sub/two-data", bad.status(404))
    contains(run("stage", "-o", options, f"{server.url}/", code=2), "two-data")
    server.healthy()
    run("stage", "-o", options, f"{server.url}/")
    options = fresh("patience=1", "timeout=1")
    server.script("/one-data", bad.status(503), first=2)
    contains(run("stage", "-o", options, f"{server.url}/", code=2), "one-data", "503")
    server.healthy()
    server.gone()
    contains(run("stage", "-o", options, f"{server.url}/", code=2), "127.0.0.1")
    server.up()
    contains(run("stage", "-o", f"{fresh()},cache_size=1M", f"{server.url}/", code=4), "cache_size")
    place(PRIVATE, "file", b"")
    run("stage", "-o", f"cache={PRIVATE}/file", f"{server.url}/", code=4)
    for wrong in (["stage"], ["stage", "a", "b"], ["stage", "--nothing", "a"], ["cache"],
                  ["cache", "other"], ["cache", "list", "a", "b"]):
        run(*wrong, code=1)
    for command in ("stage", "cache"):
        contains(run(command, "--help"), command)


def flip(folder):
    """A bit in the middle of the largest file."""
    file, st = max(files_below(folder), key=lambda found: found[1].st_size)
    with open(file, "r+b") as f:
        f.seek(st.st_size - len(DATA["one-data"]) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 4]))


def check_checks(server):
    """--check and cache verify find a flipped byte; it is fetched again."""
    options = fresh()
    folder = folder_of(options)
    run("stage", "-o", options, f"{server.url}/")
    run("cache", "verify", folder)
    server.forget()
    flip(folder)
    said = run("stage", "--check", "-o", options, f"{server.url}/", code=4)
    contains(said, "one-data")
    equal(server.data(), [], "a check fetches nothing")
    run("stage", "-o", options, f"{server.url}/")
    equal((len(server.data()), sent(server.data())), (1, BLOCK), "one block is fetched again")
    run("stage", "--check", "-o", options, f"{server.url}/")
    flip(folder)
    contains(run("cache", "verify", folder, code=4), "1")
    run("cache", "verify", folder)  # it is dropped
    run("stage", "-o", options, f"{server.url}/")
    with mounted(f"{server.url}/", options):
        equal(content(path("one-data/source/one-data")) == DATA["one-data"], True, "mended")
    # Something is missing, or everything.
    options = fresh()
    run("stage", "-o", options, f"{server.url}/one-data")
    server.forget()
    for _ in range(2):
        run("stage", "--check", "-o", options, f"{server.url}/", code=4)
        shutil.rmtree(folder_of(options))
    equal(server.data(), [], "a check fetches nothing")


def check_cache_commands(server):
    """list names the files; prune removes only unused ones."""
    options = fresh()
    folder = folder_of(options)
    run("stage", "-o", options, f"{server.url}/")
    said = run("cache", "list", folder)
    contains(said, "one-data", "two-data", server.url)
    place(folder, "not-ours", b"mine")
    place(folder, "staged/not-ours", b"mine")
    daemon = start(f"{server.url}/one-data", options)
    before = disk_usage(folder)
    run("cache", "prune", folder)  # all of it is good, and is left
    equal(disk_usage(folder), before, "bytes after prune")
    run("cache", "prune", "--all", folder)
    equal(content(folder, "not-ours") + content(folder, "staged/not-ours"), b"minemine",
          "what is not ours")
    listed = run("cache", "list", folder)
    contains(listed, "one-data")
    equal("two-data" in listed, False, f"pruned: {listed}")
    equal(disk_usage(folder) < before, True, "prune makes room")
    server.gone()
    equal(content(path("one-data/source/one-data")) == DATA["one-data"], True,
          "what is in use was left")
    server.up()
    stop(daemon)
    run("cache", "prune", "--all", folder)
    equal("one-data" in run("cache", "list", folder), False, "pruned")
    equal(disk_usage(folder) < 100_000, True, f"{disk_usage(folder)} bytes after prune")
    # The default folder; one that is not there; one that is not ours.
    env = dict(os.environ, EPOCHFS_CACHE=folder)
    run("cache", "list", env=env)
    place(PRIVATE, "foreign/file", b"x")
    for command in ("list", "verify", "prune"):
        equal(subprocess.run([EPOCHFS, "cache", command, f"{PRIVATE}/foreign"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, check=False).returncode in (0, 4), True,
              f"cache {command} of a folder of others")
        run("cache", command, f"{PRIVATE}/none-such", code=4)
    equal(content(PRIVATE, "foreign/file"), b"x", "a file of others")
    equal(os.path.exists(f"{PRIVATE}/none-such"), False, "a folder that was not there")


with BadServer(WWW) as the_server:
    timed(check_whole, the_server)
    timed(check_progress, the_server)
    timed(check_resume, the_server)
    timed(check_codes, the_server)
    timed(check_checks, the_server)
    timed(check_cache_commands, the_server)
