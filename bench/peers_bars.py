#!/usr/bin/python3
"""Peers (mount-scripts/peers): what the origin sends to 4 and 8 cold nodes at once, against the dataset; and
how fast a node reads what other nodes keep, against its link. All nodes are addresses of loopback in a network
namespace of its own; what backs send to another node's front is limited to the link (tc, htb). Needs root.
"""

import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/mount/peers"))

from bars import FAST, ROUNDS, WWW, empty, make_images, row, say, seconds, warm
from lib import EPOCHFS, PRIVATE, equal, stop
from ring import Ring, address
from servers import Nginx, coverage, sent, start_at

LINK = 125_000_000  # bytes per second: 1 Gbit/s
MB = 100
NAME, DATASET = "one-data", "one-data"

if not os.environ.get("EPOCHFS_INSIDE"):
    os.environ["EPOCHFS_INSIDE"] = "yes"
    os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])


def call(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def limit_link(ring, reader):
    """What other nodes' backs send to the reader's front: one link. Its own back is on the same machine."""
    tc = ["tc", "filter", "add", "dev", "lo", "parent", "1:", "protocol", "ip", "prio"]
    call("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb")
    call("tc", "class", "add", "dev", "lo", "parent", "1:", "classid", "1:1", "htb", "rate", "100gbit")
    call("tc", "class", "add", "dev", "lo", "parent", "1:", "classid", "1:2", "htb", "rate", f"{LINK * 8}bit",
         "burst", "256k", "cburst", "256k")
    port = ["match", "ip", "sport", str(ring.port + 1), "0xffff"]
    to = ["match", "ip", "dst", f"{address(reader)}/32"]
    call(*tc, "1", "u32", *port, *to, "match", "ip", "src", f"{address(reader)}/32", "flowid", "1:1")
    call(*tc, "2", "u32", *port, *to, "flowid", "1:2")


def stage_all(ring, url):
    """All nodes at once, with empty caches; returns the seconds of the slowest."""
    begin = time.monotonic()
    processes = [subprocess.Popen([EPOCHFS, "stage", "-o", f"cache_dir={PRIVATE}/cache.{i},{ring.options(i)}", url],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for i in range(ring.n)]
    equal([p.wait() for p in processes], [0] * ring.n, "exit codes of epochfs stage")
    return time.monotonic() - begin


def cold(origin, nodes):
    ratios, took = [], []
    for turn in range(ROUNDS):
        say(f"{nodes} nodes, turn {turn + 1} of {ROUNDS}")
        origin.forget()
        with Ring(nodes, origin.url, folder=f"{PRIVATE}/ring") as ring:
            took.append(stage_all(ring, f"{origin.url}/"))
        total = os.path.getsize(f"{WWW}/{NAME}")
        equal(coverage(origin.log())[f"/{NAME}"][1], total, "different bytes that the origin sent")
        ratios.append(sent(origin.log(data_only=False)) / total)
        for i in range(nodes):
            empty(f"{PRIVATE}/cache.{i}")
        empty(f"{PRIVATE}/ring")
    row(f"origin bytes, {nodes} nodes, cold, all at once", f"{statistics.median(ratios) * MB:.1f} MB, "
        f"{statistics.median(took):.1f} s", f"the dataset, {MB} MB", max(ratios), "<=", 1.02)


def read_once(ring, url, size):
    """One node reads a file of which the others keep their shares. Returns bytes over its link, and seconds."""
    before = sum(a.sent for i in range(1, ring.n) for a in ring.log(i))
    daemon = start_at("mnt", url, f"cache_dir={PRIVATE}/cache.reader,{ring.options(0)},evict=never")
    took = seconds("dd", f"if={daemon.at}/{DATASET}/source/{NAME}", "of=/dev/null", "bs=1M", "status=none")
    stop(daemon)
    empty(f"{PRIVATE}/cache.reader")
    return sum(a.sent for i in range(1, ring.n) for a in ring.log(i)) - before, took


def warm_read(origin):
    rates = []
    size = os.path.getsize(f"{WWW}/{NAME}")
    with Ring(8, origin.url, folder=f"{PRIVATE}/ring") as ring:
        limit_link(ring, 0)
        call(EPOCHFS, "stage", "-o", f"cache_dir={PRIVATE}/cache.0,{ring.options(1)}", f"{origin.url}/")
        for turn in range(ROUNDS):
            say(f"warm read, turn {turn + 1} of {ROUNDS}")
            over_link, took = read_once(ring, f"{origin.url}/", size)
            rates.append(over_link / took)
    row("warm read through peers, link of 1 Gbit/s", f"{statistics.median(rates) / 1e6:.0f} MB/s",
        f"the link, {LINK / 1e6:.0f} MB/s", statistics.median(rates) / LINK, ">=", 0.8)


call("ip", "link", "set", "lo", "up")
make_images(NAME, MB)
warm(NAME)
with Nginx(WWW, more=FAST, connections=1024) as the_origin:
    cold(the_origin, 4)
    cold(the_origin, 8)
    warm_read(the_origin)
