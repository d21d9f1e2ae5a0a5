#!/usr/bin/python3
"""epochfs plan --nodes: what it predicts of nodes that are one cache, for a SOURCE and for a size; with ranks and
without; messages. The arithmetic has its unit test; bench/run nodes compares it with nodes."""

import json

import numpy as np

from lib import PRIVATE, contains, equal, idx_bytes, run
from page_blocks import take
from servers import MiB, Nginx, place

N, SIDE = 4000, 64
WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(3)
DATA = idx_bytes(rng.integers(0, 256, (N, SIDE, SIDE), dtype=np.uint8))
place(WWW, "images-data", DATA)
LINKS = ("--nodes=4", "--node-rate=80M", "--origin-rate=20M")


def near(found, want, share, what):
    equal(abs(found - want) <= share * want, True, f"{what}: {found}, expected {want}, +- {share:.0%}")


def of_source(server, plan, *more):
    (x,) = json.loads(run("plan", "--json", "-o", f"cache={PRIVATE}/cache,plan={plan}", "--compute=0.01", *LINKS, *more,
                          f"{server.url}/"))["plans"]
    return x["nodes"]


def check_source(server):
    shared = of_source(server, "batch=32+rank=1of4+seed=7")
    each = of_source(server, "batch=32+seed=7")
    for found in shared, each:
        near(found["first_epoch_origin_bytes"], len(DATA), 0.01, "the origin sends all once")
        near(found["node_disk_bytes"], len(DATA) / 4, 0.01, "a node's share")
        near(found["staging_seconds"], len(DATA) / (0.95 * 20 * MiB), 0.01, "by the origin's link")
        equal((found["nodes"], found["dead"], found["staging_limit"]), (4, 0, "origin"), "as given")
        near(found["later_epoch"]["disk_share"], 0.25, 0.001, "from its own disk")
        near(found["later_epoch"]["peers_share"], 0.75, 0.001, "from peers")
        equal(found["later_epoch"]["origin_share"], 0, "from the origin")
        equal(found["first_epoch_seconds"] >= found["staging_seconds"], True, "the first epoch")
    near(each["node_epoch_bytes"], len(DATA), 0.01, "each reads all")
    near(each["own_caches_origin_bytes"], 4 * len(DATA), 0.01, "each fetches all")
    near(each["later_epoch_seconds"], 1.25, 0.01, "compute")
    equal(len(DATA) / 4 <= shared["node_epoch_bytes"] <= len(DATA), True, f"a rank reads blocks: {shared}")
    dead = of_source(server, "batch=32+seed=7", "--dead=1")
    near(dead["origin_bytes"], 1.25 * len(DATA), 0.01, "the share of the dead node again")
    near(dead["node_disk_bytes_after_deaths"], len(DATA) / 3, 0.01, "a larger share")
    # The origin's rate is that of the remote, if it is not given.
    (x,) = json.loads(run("plan", "--json", "-o", f"cache={PRIVATE}/cache", "--rate=10M", "--nodes=2", "--node-rate=1Gbit",
                          f"{server.url}/"))["plans"]
    equal((x["nodes"]["origin_bytes_per_second"], x["nodes"]["node_bytes_per_second"]), (10 * MiB, 125000000), "rates")
    equal(x["nodes"]["later_epoch_seconds"], None, "without --compute")
    contains(run("plan", "-o", f"cache={PRIVATE}/cache", "--compute=1", *LINKS, f"{server.url}/"), "4, as peers",
             "none of them dies", "epochs   the first ", "later ones: 25.00 % from its own disk")


def check_size():
    size = ("--bytes=100T", "--nodes=1000", "--node-rate=10Gbit", "--origin-rate=20Gbit", "--dead=10")
    found = json.loads(run("plan", "--json", *size))
    equal((found["source"], found["dataset_bytes"]), (None, 100 << 40), "as given")
    near(found["nodes"]["origin_bytes"], 1.01 * (100 << 40), 0.001, "from the origin")
    near(found["nodes"]["staging_seconds"], (100 << 40) / (0.95 * 2.5e9), 0.001, "staging")
    contains(run("plan", *size), "100 TiB of data; the nodes share each epoch", "1000, as peers; a link of 1.2 GB/s each",
             "10 of them die after the first epoch", "12 h 51 min, by the origin's link", "102 GiB of a node for its share",
             "later ones: 0.10 % from its own disk, 99.90 % from peers, 0.00 % from the origin")
    contains(run("plan", *size, "--each"), "each node reads all", "by the links of the nodes")


def check_page():
    """docs/bench/nodes.md shows what the command prints."""
    command, *shown = take("docs/bench/nodes.md", "plan --nodes=1000").splitlines()
    equal(run(*command.removeprefix("$ epochfs ").split()).splitlines(), shown, command)


def check_errors(server):
    for arguments, piece in (((WWW, "--nodes=4"), "--node-rate"), ((WWW, "--dead=1"), "--dead: requires --nodes="),
                             ((WWW, "--bytes=1G", *LINKS), "it takes none"), (LINKS, "expected SOURCE, or --bytes="),
                             (("--bytes=1G", "--nodes=4", "--node-rate=1G"), "--origin-rate="),
                             ((WWW, "--each", *LINKS), "--each"), (("--bytes=1G", *LINKS, "--dead=4"), "from 0 to 3"),
                             (("--bytes=1G", "--node-rate=1G", "--origin-rate=1G", "--nodes=1"), "from 2 to"),
                             (("--bytes=0", *LINKS), "bytes=0"),
                             ((WWW, "--nodes=4", "--node-rate=10Gbits"), "node-rate=10Gbits: expected bytes per second"),
                             ((WWW, "--nodes=4", "--node-rate=Gbit"), "node-rate=Gbit"),
                             ((WWW, "--nodes=4", "--node-rate=0Gbit"), "node-rate=0Gbit"),
                             ((WWW, "--nodes=4", "--node-rate=99999999999999999999Gbit"), "node-rate=9999")):
        said = run("plan", *arguments, code=1)
        contains(said, piece)
        equal(said.count("\n"), 1, f"lines of {said!r}")
    contains(run("plan", "-o", f"cache={PRIVATE}/cache,plan=batch=32+rank=0of2", *LINKS, f"{server.url}/", code=2),
             "expected a rank for each of 4 nodes, got rank=KofN of 2")


with Nginx(WWW) as the_server:
    check_source(the_server)
    check_size()
    check_page()
    check_errors(the_server)
