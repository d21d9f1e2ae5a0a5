#!/usr/bin/python3
# needs: root
"""The front has ended, and another user takes its port: he gets no request, and so neither the job's secret nor a
password; reads go to the origin. When the front is back, it is used again."""

import subprocess
import sys

import numpy as np

import users
from lib import DEADLINE, PRIVATE, contains, equal, idx_bytes, log_text, stop
from ring import Ring, address, read_until_used
from servers import MiB, Nginx, place, read_anew, remote, start_at, wait_until
from users import as_user

WWW = f"{PRIVATE}/www"
PIECE = 64 << 10
DATA = idx_bytes(np.random.default_rng(9).integers(0, 256, (12000, 32, 32), dtype=np.uint8))
place(WWW, "one-data", DATA)

# Takes a port, and prints what comes until its input ends.
THIEF = """
import os, select, socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("there", flush=True)
while True:
    ready = select.select([s, 0], [], [])[0]
    if 0 in ready:
        break
    c = s.accept()[0]
    c.settimeout(5)
    print(c.recv(65536), flush=True)
    c.sendall(b"HTTP/1.1 204 No Content\\r\\nContent-Length: 0\\r\\n\\r\\n")
    c.close()
"""


def read(daemon, at):
    equal(read_anew(daemon.at, "one-data/source/one-data", size=PIECE, offset=at) == DATA[at:at + PIECE], True, f"at {at}")


with Nginx(WWW) as the_origin, Ring(2, the_origin.url) as the_ring:
    for name, begins in (("later", False), ("first", True)):
        if not begins:
            the_daemon = start_at(name, f"{the_origin.url}/", f"cache={PRIVATE}/cache.{name},stage=off,{the_ring.options(0)}")
            read(the_daemon, 0)
            equal(remote(the_daemon.at)["peers_trouble"], "", "trouble before")
        the_ring.kill(0)
        with subprocess.Popen([*as_user(users.NAMES["eve"]), sys.executable, "-c", THIEF, address(0), str(the_ring.port)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") as thief:
            equal(thief.stdout.readline(), "there\n", "eve has the port")
            if begins:
                the_daemon = start_at(name, f"{the_origin.url}/",
                                      f"cache={PRIVATE}/cache.{name},stage=off,{the_ring.options(0)}")
            for offset in range(MiB, 8 * MiB, MiB):
                read(the_daemon, offset)
            wait_until(lambda: remote(the_daemon.at)["peers_trouble"], "trouble is said", the_daemon)
            contains(remote(the_daemon.at)["peers_trouble"], "its port is another user's")
            contains(log_text(f"log.{name}"), "its port is another user's; the origin is asked in their place")
            equal(thief.communicate("", timeout=DEADLINE)[0], "", "what eve has got")
        the_ring.start(0)
        read_until_used(the_daemon, range(8 * MiB, len(DATA) - PIECE, PIECE), lambda at: read(the_daemon, at))
        stop(the_daemon)
