#!/usr/bin/python3
# slow: twelve members, with nothing else running
"""A ring of twelve members: the origin sends each byte once to nodes that stage at the same time, each member
keeps a share, and no reader misses one that dies. `epochfs index` and `epochfs plan` go through the ring, and
say what they say without peers."""

import filecmp
import json
import os
import subprocess

import numpy as np

from lib import EPOCHFS, PRIVATE, contains, equal, idx_bytes, run
from ring import Ring, rings_calmly, tool, untroubled
from servers import Nginx, check_once, files_below, place, sent
from tar_model import shard

WWW = f"{PRIVATE}/www"
NODES, STAGING = 12, 4
rng = np.random.default_rng(12)
DATA = {"one-data": idx_bytes(rng.integers(0, 256, (45000, 32, 32), dtype=np.uint8)),
        "shards.tar": shard([(f"{i:06d}.bin", rng.bytes(3000)) for i in range(2000)])}
SIZES = {f"/{name}": len(data) for name, data in DATA.items()}
TOTAL = sum(SIZES.values())
for file, data in DATA.items():
    place(WWW, file, data)


def check_together(origin, ring):
    staging = [subprocess.Popen([EPOCHFS, "stage", "-o", f"cache={PRIVATE}/cache.{i},{ring.options(i * 3)}",
                                 f"{origin.url}/"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for i in range(STAGING)]
    said = [process.communicate()[0].decode() for process in staging]
    for one in said:
        contains(one, "complete and correct")
    untroubled(*said)
    check_once(origin.log(), SIZES, f"{STAGING} of {NODES} nodes")
    print(f"the origin sent {sent(origin.log()) / TOTAL:.4f} of the dataset", flush=True)
    shares = [sum(st.st_size for _, st in files_below(f"{ring.at(i)}/share")) for i in range(NODES)]
    equal(TOTAL <= sum(shares) <= 1.02 * TOTAL, True, f"bytes of all shares: {shares}, of {TOTAL}")
    equal(sum(share > 0 for share in shares) >= NODES - 2, True, f"members that keep something: {shares}")
    equal(tool("status", "--folder", ring.at(0)).count("answers"), NODES, "members that answer")


def check_index(origin, ring):
    """The same index with peers as without; the ring has the bytes already."""
    origin.forget()
    untroubled(run("index", f"{origin.url}/", "-o", f"{PRIVATE}/cache.index.peers", "-o", f"cache={PRIVATE}/cache.i,{ring.options(1)}"))
    equal(origin.log(), [], "requests for data of index")
    run("index", f"{origin.url}/", "-o", f"{PRIVATE}/cache.index.alone", "-o", f"cache={PRIVATE}/cache.j")
    names = sorted(os.listdir(f"{PRIVATE}/cache.index.alone"))
    equal(sorted(os.listdir(f"{PRIVATE}/cache.index.peers")), names, "files of the index")
    equal(len(names) >= 2, True, f"files of the index: {names}")
    for name in names:
        equal(filecmp.cmp(f"{PRIVATE}/cache.index.peers/{name}", f"{PRIVATE}/cache.index.alone/{name}", shallow=False), True, name)


def check_plan(origin, ring):
    """What it measures is the ring; what it predicts of the data is the same."""
    origin.forget()
    words = ["-o", "plan=batch=100+seed=7"]
    with_peers = json.loads(run("plan", "--json", *words, "-o", f"cache={PRIVATE}/cache.p,{ring.options(2)}",
                                f"{origin.url}/one-data"))
    equal(origin.log(), [], "requests for data of plan")
    equal(with_peers["rate"]["from"], "measured", "where the rate comes from")
    equal(with_peers["rate"]["measured_bytes"] > 0, True, "bytes of the measurement")
    alone = json.loads(run("plan", "--json", *words, "-o", f"cache={PRIVATE}/cache.q", f"{origin.url}/one-data"))
    for key in ("dataset", "samples", "epoch_samples", "batches", "dataset_bytes", "epoch_bytes", "epoch_block_bytes"):
        equal(with_peers["plans"][0][key], alone["plans"][0][key], key)


def check_dead(origin, ring):
    """Two members die: their shares are fetched again, at most."""
    shares = [sum(st.st_size for _, st in files_below(f"{ring.at(i)}/share")) for i in range(NODES)]
    for i in (4, 10):
        ring.kill(i)
    origin.forget()
    said = run("stage", "-o", f"cache={PRIVATE}/cache.dead,{ring.options(0)}", f"{origin.url}/")
    contains(said, "complete and correct")
    again = sent(origin.log())
    if again > shares[4] + shares[10]:
        untroubled(said)
    equal(0 < again <= shares[4] + shares[10], True, f"bytes sent again: {again}, of {shares[4]} and {shares[10]}")
    contains(tool("status", "--folder", ring.at(0), code=2), "127.0.1.5: does not answer",
             "127.0.1.11: does not answer")


def check(origin):
    origin.forget()
    with Ring(NODES, origin.url) as ring:
        check_together(origin, ring)
        check_index(origin, ring)
        check_plan(origin, ring)
        check_dead(origin, ring)


with Nginx(WWW) as the_origin:
    rings_calmly(check, the_origin)
