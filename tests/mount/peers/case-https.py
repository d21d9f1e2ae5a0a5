#!/usr/bin/python3
"""An HTTPS origin through peers: the front is asked by http on loopback, the backs check the origin's
certificate. Where that fails the origin is asked, which also checks it."""

import os

from lib import PRIVATE, SOURCE, contains, content, equal, log_text, run, small, start, stop
from ring import Ring, rings_calmly, untroubled
from servers import Nginx, check_once, make_ca, make_certificate, remote, timed, wait_staged

images, labels = small(400, side=60)
SIZES = {f"/{n}": os.path.getsize(f"{SOURCE}/{n}") for n in os.listdir(SOURCE)}
CA = make_ca(f"{PRIVATE}/ca")
GOOD = make_certificate(f"{PRIVATE}/ca", "good", "DNS:localhost")


def check_good(origin, url):
    origin.forget()
    with Ring(3, url[:-1], more=["--ca", CA]) as ring:
        read_all(url, ring)
    untroubled(log_text())
    check_once(origin.log(), SIZES, f"{ring.n} nodes")


def read_all(url, ring):
    for i in range(ring.n):
        node = start(url, f"ca={CA},cache={PRIVATE}/cache.{i},{ring.options(i)}")
        equal(content(node.at, "train/batches/batch=all/raw/000000.image.raw") == images.tobytes(), True, "all images")
        wait_staged(node, sum(SIZES.values()))
        stop(node)


def check_untrusted(origin, url, ring):
    """The backs do not know the CA: epochfs does, and asks the origin itself."""
    origin.forget()
    node = start(url, f"ca={CA},cache={PRIVATE}/cache.own,{ring.options(0)}", log="log.own")
    equal(content(node.at, "train/batches/batch=all/raw/000000.image.raw") == images.tobytes(), True, "all images")
    contains(log_text("log.own"), "a peer cannot reach the origin; the origin is asked in their place")
    wait_staged(node, sum(SIZES.values()))
    equal(remote(node.at)["peers_bytes"], 0, "bytes from peers")
    stop(node)
    check_once(origin.log(), SIZES, "without peers")
    contains(run("info", "-o", f"cache={PRIVATE}/cache.none,{ring.options(0)},patience=2", url, code=2), "certificate")


with Nginx(SOURCE, certificate=GOOD) as the_origin:
    the_url = f"https://localhost:{the_origin.port}"
    timed(rings_calmly, check_good, the_origin, f"{the_url}/")
    with Ring(2, the_url, folder=f"{PRIVATE}/ring2") as the_ring:
        timed(check_untrusted, the_origin, f"{the_url}/", the_ring)
