#!/usr/bin/python3
# slow: waits for servers that die
"""A server dies at a random moment, while its files are listed, opened, indexed, unpacked or read:
each command, and each read in a mount, ends within two retry limits, with the reason.

DEATHS: how many (default: one of each command)."""

import contextlib
import errno
import gzip
import io
import itertools
import os
import random
import re
import subprocess
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bad_server import BadServer
from lib import (DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, contains, content, equal, log_text,
                 mounted, status)
from servers import PATIENT, error_of, place, sha256sums, wait_until, within

DEATHS = int(os.environ.get("DEATHS", 0))
PATIENCE = 5  # a server of Python on a busy machine may send nothing for 2 s
LIMIT = 18  # seconds: two retry limits, and what a busy machine takes
rng = np.random.default_rng(5)


def rows(n):
    return b"".join(b"%d %d:1 %d:%d\n" % (k % 3, k % 97, 100 + k % 89, k) for k in range(n))


def shard(n):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(n):
            for ext, data in (("bin", rng.bytes(300)), ("cls", b"%d" % (i % 10))):
                info = tarfile.TarInfo(f"{i:05d}.{ext}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def lines(n):
    return b"".join(b'{"a": %d, "text": "%s"}\n' % (k, b"x" * (k % 60)) for k in range(n))


def npy(n):
    out = io.BytesIO()
    np.save(out, rng.integers(0, 256, (n, 20, 20), dtype=np.uint8))
    return out.getvalue()


# What the folders have, and a path in a mount of each that takes bytes of the remote.
SOURCES = {
    "svm": ({"a.svm": rows(60_000), "b.svm": rows(50_000)}, "a.svm"),
    "packed": ({"a.svm.gz": gzip.compress(rows(60_000), 1)}, "a.svm"),
    "tar": ({f"x-{i:06d}.tar": shard(200) for i in range(5)}, "x"),
    "jsonl": ({"a.jsonl": lines(40_000)}, "a.jsonl"),
    "csv": ({"a.csv": b"a,b\n" + b"".join(b"%d,%d.5\n" % (k, k) for k in range(100_000))}, "a.csv"),
    "npy": ({"a.npy": npy(5000), "b.npy": npy(5000)}, "a"),
    "pictures": ({f"{c}/{i}.jpg": b"\xff\xd8\xff\xe0" + rng.bytes(9000)
                  for c in "abc" for i in range(60)}, "all"),
}
for source, (files, _) in SOURCES.items():
    for file, data in files.items():
        place(f"{PRIVATE}/{source}", file, data)
    sha256sums(f"{PRIVATE}/{source}", *files)


def command(words, seconds):
    """Exit code, stderr, and whether it ended by itself."""
    with subprocess.Popen([EPOCHFS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        try:
            _, said = process.communicate(timeout=seconds)
            return process.returncode, said.decode(), True
        except subprocess.TimeoutExpired:
            process.kill()
            return -1, process.communicate()[1].decode(), False


def read_all(at, seconds):
    """Read all of a mount as programs do: names, sizes, bytes. The first error, or 0."""
    script = ("import os, sys\n"
              "def fail(e): raise e\n"
              "try:\n"
              "    for folder, _, files in os.walk(sys.argv[1], onerror=fail):\n"
              "        if '/batches/' in folder or '/samples/' in folder and '/raw' not in folder: continue\n"
              "        for file in sorted(files)[::1 + len(files) // 20]:\n"
              "            open(folder + '/' + file, 'rb').read()\n"
              "except OSError as e:\n"
              "    print(e, file=sys.stderr)\n"
              "    sys.exit(e.errno)\n")
    with subprocess.Popen(["python3", "-c", script, at], stdin=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        try:
            said = process.communicate(timeout=seconds)[1]
            return process.returncode, said.decode(), True
        except subprocess.TimeoutExpired:
            process.kill()
            return -1, process.communicate()[1].decode(), False


def die(number, what, source, life, death):
    """One round. Returns what is wrong, or ""."""
    name = f"{number}-{what}-{source}-{life}-{death}"
    options = f"cache={PRIVATE}/cache.{name},patience={PATIENCE}"
    at, reason = None, ""
    with BadServer(f"{PRIVATE}/{source}") as server:
        server.dies(life, death)
        began = time.monotonic()
        url = f"{server.url}/"
        if what == "mount":
            at = f"{PRIVATE}/m.{name}"
            os.mkdir(at)
            log = open(f"{PRIVATE}/log.{name}", "w", encoding="utf-8")
            daemon = subprocess.Popen([EPOCHFS, "mount", "-f", "-o", options, url, at],
                                      stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            with contextlib.suppress(AssertionError):
                wait_until(lambda: os.path.ismount(at), "mounted", daemon, 4 * LIMIT)
            if daemon.poll() is None:
                code, said, ended = read_all(at, 4 * LIMIT)
                reason = log_text(f"log.{name}") + said if code else ""
                if code == errno.EIO:
                    code = 2
            else:
                code, ended, reason = daemon.returncode, True, log_text(f"log.{name}")
        else:
            words = ["-o", options, url]
            if what == "index":
                words = ["-o", f"{PRIVATE}/index.{name}", *words]
            code, reason, ended = command([what, *words], 4 * LIMIT)
        took = time.monotonic() - (server.died or began)
        died = server.died
        if at and daemon.poll() is None:
            daemon.terminate()
            daemon.wait(DEADLINE)
    if not died:
        return "" if (code == 0 and ended) or "nothing to index" in reason else \
            f"{name}: alive, but {code}: {reason}"
    if not ended:
        return f"{name}: killed after {took:.1f} s: {reason}"
    if code and took > LIMIT * PATIENT:  # with 0 it has all read, and needed nothing more
        return f"{name}: {took:.1f} s, {code}: {reason}"
    if code not in (0, 2):
        return f"{name}: exit code {code}: {reason}"
    print(f"{name}: {code}, {took:.1f} s: {reason.strip()[-300:]}", flush=True)
    return "" if code == 0 or "127.0.0.1" in reason or "server" in reason or "remote" in reason \
        else f"{name}: no reason: {reason}"


def check_indexing():
    """The server falls silent while text is indexed: reads in the mount get EIO and the reason after
    patience, again when they are tried again, and the bytes when it is back."""
    place(f"{PRIVATE}/large", "a.svm", rows(900_000))
    with BadServer(f"{PRIVATE}/large", rate=4_000_000) as server:
        server.dies(9_500_000, "silent")
        code, reason, ended = command(["info", "-o", f"cache={PRIVATE}/cache.l,patience={PATIENCE}",
                                       f"{server.url}/a.svm"], 4 * LIMIT)
        equal((code, ended, "the remote sends nothing" in reason), (2, True, True), reason)
    with BadServer(f"{PRIVATE}/large", rate=4_000_000) as server:
        server.dies(9_500_000, "silent")
        with mounted(f"{server.url}/a.svm", f"cache={PRIVATE}/cache.m,patience={PATIENCE}"):
            wait_until(lambda: server.died, "the server is silent")
            for _ in range(2):
                with within(2 * PATIENCE + 15, "a read while it is indexed"):
                    equal(error_of(content, MOUNTPOINT, "a.svm/dataset.json"), errno.EIO, "read")
                said = status()["last_read_error"]
                equal(bool(re.search("a.svm: .*(sends|sent) nothing.*; waited", said)), True, said)
            server.dies(1 << 40, "silent")
            server.healthy()
            wait_until(lambda: error_of(content, MOUNTPOINT, "a.svm/dataset.json") == 0,
                       "it is indexed")


COMMANDS = ["info", "index", "stage", "mount", "plan", "mount"]
random.seed(int(os.environ.get("SEED", 1)))
todo = []
for k, what in zip(range(DEATHS or len(COMMANDS)), itertools.cycle(COMMANDS)):
    source = random.choice(list(SOURCES))
    size = sum(len(d) for d in SOURCES[source][0].values()) + 500 * len(SOURCES[source][0])
    todo.append((k, what, source, random.randrange(1, size), random.choice(["gone", "silent"])))
with ThreadPoolExecutor(4) as threads:
    wrong = [w for w in threads.map(lambda t: die(*t), todo) if w]
equal(wrong, [], "rounds that went wrong")
check_indexing()
