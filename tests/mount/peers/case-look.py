#!/usr/bin/python3
# slow: a thousand nodes
"""The first look of a thousand nodes is one: listings and HEAD are asked of the origin once per 10 s
of the clock, however many ask through the ring at once."""

import concurrent.futures
import hashlib
import http.client
import subprocess
import threading
import time

from lib import DEADLINE, EPOCHFS, PRIVATE, SLOW, equal, idx_bytes, text
from ring import Ring, address
from servers import Nginx, place, timed

import numpy as np

WWW = f"{PRIVATE}/www"
NODES = 4
LOOKS = 1000
COMMANDS = 12 if SLOW else 48
rng = np.random.default_rng(9)
for k in range(3):
    place(WWW, f"sub/{k}-data", idx_bytes(rng.integers(0, 256, (50, 8, 8), dtype=np.uint8)))


def key(origin, path, query=""):
    """What the ring calls it, as docs/cluster.md says."""
    return hashlib.sha256("\n".join([f"http://{origin}", path, *query.split("&")] if query else
                                    [f"http://{origin}", path]).encode()).hexdigest()


def look(ring, origin, i, method, path, start):
    """One node's look, as epochfs sends it. Returns the status and the body's length."""
    host = origin.url[len("http://"):]
    connection = http.client.HTTPConnection(address(i % NODES), ring.port, timeout=DEADLINE)
    start.wait()
    connection.request(method, f"http://{host}{path}", headers={
        "Host": host, "X-Epochfs-Secret": text(ring.secret).strip(), "X-Epochfs-Origin": f"http://{host}",
        "X-Epochfs-Key": key(host, path)})
    reply = connection.getresponse()
    found = reply.status, len(reply.read()), reply.headers["ETag"]
    connection.close()
    return found


def at_most(begin):
    """How often the origin may be asked for one thing since then."""
    return int(time.time() / 10) - int(begin / 10) + 1


def check_thousand(origin, ring):
    for method, path in (("GET", "/sub/"), ("HEAD", "/sub/0-data"), ("GET", "/SHA256SUMS")):
        origin.forget()
        start, begin = threading.Event(), time.time()
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            asked = [pool.submit(look, ring, origin, i, method, path, start) for i in range(LOOKS)]
            start.set()
            found = {f.result() for f in asked}
        equal(len(found), 1, f"{method} {path}: all have the same answer: {found}")
        n = len([r for r in origin.log(data_only=False) if (r.method, r.path) == (method, path)])
        print(f"{LOOKS} times {method} {path}: {found}, the origin was asked {n} times", flush=True)
        equal(1 <= n <= at_most(begin), True, f"requests at the origin: {n}")


def check_commands(origin, ring):
    """The same with epochfs itself: many nodes that mount at once, each with its own cache."""
    origin.forget()
    begin = time.time()
    processes = [subprocess.Popen([EPOCHFS, "info", "-o", f"cache={PRIVATE}/c{i},{ring.options(i % NODES)}",
                                   f"{origin.url}/"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                 for i in range(COMMANDS)]
    for process in processes:
        out = process.communicate(timeout=DEADLINE)[0].decode()
        equal((process.returncode, "in their place" in out), (0, False), f"epochfs info: {out}")
    counts = {}
    for r in origin.log(data_only=False):
        counts[r.method, r.path] = counts.get((r.method, r.path), 0) + 1
    print(f"{COMMANDS} times epochfs info: {counts}", flush=True)
    equal(max(counts.values()) <= at_most(begin), True, f"requests at the origin: {counts}")


with Nginx(WWW) as the_origin, Ring(NODES, the_origin.url) as the_ring:
    timed(check_thousand, the_origin, the_ring)
    timed(check_commands, the_origin, the_ring)
