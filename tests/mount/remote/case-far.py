#!/usr/bin/python3
# needs: openssl
# slow: measures round trips by the clock
"""A distant remote: the first batch of scattered samples costs a few round trips, not one for every
eight samples. With HTTP/2 it uses one connection; a server that accepts only a few connections gets
no more, and no read fails because of that."""

import itertools
import json
import os
import subprocess
import sys
import time

from lib import PRIVATE, content, equal, mounted, path
from servers import PATIENT, Late, Nginx, calmly, coverage, make_ca, make_certificate, place, remote, wait_until

PROXY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bench/limit_proxy.py")
DELAY = 0.15  # in each direction: much more than a busy machine takes
TRIP = 2 * DELAY
SIDE, COUNT, BATCH = 28, 40000, 128
WWW = f"{PRIVATE}/www"
CACHES = itertools.count()
IMAGES = os.urandom(SIDE * SIDE * COUNT)
HEAD = bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (COUNT, SIDE, SIDE))
place(WWW, "images", HEAD + IMAGES)
GOOD = make_certificate(make_ca(f"{PRIVATE}/ca")[:-len("/ca.pem")], "good", "IP:127.0.0.1")
# The first samples of the plan, found with the source here.
with mounted(f"{WWW}/images"):
    WHERE = f"images/batches/batch={BATCH},seed=7/epoch=0/npy/000000.image.npy"
    FIRST = content(path(WHERE))


class Far:
    """The server at that distance."""

    def __init__(self, server):
        self.process = subprocess.Popen([sys.executable, PROXY, str(server.port), "0", "1",
                                         str(DELAY)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        port = int(self.process.stdout.readline())
        self.url = server.url.replace(str(server.port), str(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def connections(self):
        self.process.stdin.write(b"?\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["connections"]


def first_batch(what, server, *options):
    """The number of connections, of round trips and of requests that were refused."""
    server.forget()
    with Far(server) as far, \
            mounted(f"{far.url}/images", ",".join([f"cache={PRIVATE}/cache.{next(CACHES)}", "stage=off",
                                                   f"ca={PRIVATE}/ca/ca.pem", "patience=60",
                                                   *options])):
        begun = time.monotonic()
        equal(content(path(WHERE)) == FIRST, True, f"{what}: the first batch")
        trips = (time.monotonic() - begun) / TRIP
        got = remote()
        equal(got["errors"], 0, f"{what}: errors")
        # The read ends when its bytes have come; the error of one that was refused goes when a transfer has ended.
        wait_until(lambda: remote()["last_error"] == "", f"{what}: no error any more")
        found, whole = coverage(server.log())["/images"]
        equal(found, whole, f"{what}: bytes that came, and different ones")
        print(f"{what}: {far.connections()} connections, {trips:.1f} round trips, "
              f"{got['retries']} retries")
        return far.connections(), trips, got["retries"]


def check(what, server, least, most, trips_most, *options):
    connections, trips, retries = first_batch(what, server, *options)
    equal(least <= connections <= most, True, f"{what}: connections: {connections}")
    if trips > trips_most * PATIENT:
        raise Late(f"{what}: round trips: {trips}")
    return retries


with Nginx(WWW) as server:
    calmly(check, "plain", server, 100, 128, 13)
    calmly(check, "jobs=4", server, 4, 4, 60, "jobs=4")
with Nginx(WWW, certificate=GOOD) as server:
    calmly(check, "TLS", server, 100, 128, 15)
with Nginx(WWW, certificate=GOOD, http2=True) as server:
    calmly(check, "HTTP/2", server, 1, 4, 13)
# It breaks what is more than some 30.
with Nginx(WWW, connections=32) as server:
    equal(calmly(check, "few", server, 30, 150, 60) > 0, True, "few: some were refused")
