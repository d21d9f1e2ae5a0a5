#!/usr/bin/python3
# slow: waits for members that fail
"""What can be wrong with a ring: each has its message and exit code, and the mount works without peers, or
with those that are left."""

import os
import shutil
import socket
import subprocess
import time

import numpy as np

from fake_s3 import FakeS3
from lib import PRIVATE, contains, equal, idx_bytes, run, stop
from ring import Ring, address, free_pair, make_secret, tool
from servers import Nginx, place, read_anew, remote, start_at, timed, took

WWW = f"{PRIVATE}/www"
PIECE = 64 << 10
rng = np.random.default_rng(3)
DATA = idx_bytes(rng.integers(0, 256, (12000, 32, 32), dtype=np.uint8))
place(WWW, "one-data", DATA)
FILE = "one-data/source/one-data"


def up(secret, *more, code, nodes="127.0.1.1,127.0.1.2", folder=f"{PRIVATE}/bad", port=None, **kwargs):
    return tool("up", "--nodes", nodes, "--self", "127.0.1.1", "--folder", folder, "--size", "1g", "--secret", secret,
                "--wait", "0", "--port", str(port or free_pair(2)), *more, code=code, **kwargs)


def check_words(secret):
    """Exit code 1: what was typed."""
    for more, word in ((["--size", "5"], "--size: expected a number with k, m or g"), (["--size", "0g"], "--size"),
                       (["--nodes", "a;b"], "--nodes"), (["--origin", "ftp://x"], "--origin"),
                       (["--origin", "http://x/path"], "--origin"), (["--origin", "http://x;"], "--origin"),
                       (["--folder", "relative"], "--folder"), (["--folder", "/a b"], "--folder"),
                       (["--port", "80"], "--port"), (["--port", "65535"], "--port"), (["--job", "x"], "--job"),
                       (["--wait", "-1"], "--wait"), (["--what"], "unknown option '--what'"),
                       (["--self"], "expected a value"), (["--secret", "/no/such/file"], "cannot be read"),
                       (["--ca", "/no/such/file"], "--ca")):
        contains(up(secret, *more, code=1), "peers: ", word)
    short = f"{PRIVATE}/short"
    with open(short, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write("secret")
    contains(up(short, code=1), "expected 16 to 256 letters and digits")
    os.chmod(short, 0o640)
    contains(up(short, code=1), "only its owner can read")
    contains(tool("--help"), "peers up --nodes LIST", "Exit codes")
    contains(tool(code=1), "peers up --nodes LIST")
    equal(os.path.exists(f"{PRIVATE}/bad"), False, "a folder of what was not done")


def check_not_up(secret):
    """Exit code 3: this node cannot be in the ring."""
    contains(up(secret, nodes="127.0.1.1,no-such-node.invalid", code=3), "node 'no-such-node.invalid': expected a name")
    contains(up(secret, nodes="127.0.1.1", code=3), "a ring of one node", "mount without it")
    contains(up(secret, nodes="127.0.1.2,127.0.1.3", code=3), "'127.0.1.1', is not in the list of nodes")
    contains(up(secret, nodes="127.0.1.1,127.0.1.1", code=3), "have the same address")
    for name in ("1.2.3", "999.1.1.1", "127.0.01.2", "0.0.0.0", "224.0.0.1", "...", "2130706433", "-x", "::", "FF02::1"):
        contains(up(secret, nodes=f"127.0.1.1,{name}", code=3), f"node '{name}': expected a name that this node knows")
    # A node whose /etc/hosts gives its own name an address of loopback.
    contains(up(secret, nodes="127.0.1.1,10.1.2.3", code=3), "node '127.0.1.1' has the address 127.0.1.1 here",
             "name the nodes by their addresses")
    for which in (0, 1):
        port = free_pair(2)
        with socket.create_server((address(0), port + which)):
            contains(up(secret, port=port, code=3), f"port {port + which} of 127.0.1.1 is used by another program")
    contains(tool("status", "--folder", f"{PRIVATE}/bad", code=3), "no ring is up here")
    tool("down", "--folder", f"{PRIVATE}/bad")
    if os.geteuid() == 0:  # in a mount namespace of our own
        nginx = os.path.realpath(shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"))
        subprocess.run(["mount", "--bind", "/dev/null", nginx], check=True)
        contains(up(secret, code=3), "nginx is missing")
        subprocess.run(["umount", nginx], check=True)


def check_resolver(secret):
    """Name servers that nginx cannot take, as an address with a zone, are omitted; so is a list of none."""
    if os.geteuid() != 0:
        return
    for servers in ("nameserver fe80::1%eth0\nnameserver ::1\n", "nameserver fe80::1%eth0\n", "nameserver #none\n", ""):
        with open(f"{PRIVATE}/resolv.conf", "w", encoding="ascii") as f:
            f.write(servers)
        subprocess.run(["mount", "--bind", f"{PRIVATE}/resolv.conf", os.path.realpath("/etc/resolv.conf")], check=True)
        contains(up(secret, code=2), "peers=http://127.0.1.1:")
        subprocess.run(["umount", os.path.realpath("/etc/resolv.conf")], check=True)
        tool("down", "--folder", f"{PRIVATE}/bad")


def read_all(daemon):
    for off in range(0, len(DATA), PIECE):
        equal(read_anew(daemon.at, FILE, size=PIECE, offset=off) == DATA[off:off + PIECE], True, f"at {off}")


def check_disagree(origin, ring):
    """Node 2 has a list without node 1: the others ignore it, and it ignores them."""
    tool("down", "--folder", ring.at(2))
    arguments = ring.arguments(2, 0)
    arguments[arguments.index("--nodes") + 1] = f"{address(0)},{address(2)}"
    contains(tool(*arguments[1:], code=2), f"node '{address(0)}' has another list of nodes; it is left out")
    contains(tool("status", "--folder", ring.at(0), code=2), f"{address(2)}: has another list of nodes")
    for i in (0, 2):
        daemon = start_at(f"list{i}", f"{origin.url}/", f"cache={PRIVATE}/cache.list{i},{ring.options(i)}")
        read_all(daemon)
        equal(remote(daemon.at)["peers_trouble"], "", "trouble with peers")
        stop(daemon)
    tool("down", "--folder", ring.at(2))
    ring.start(2)


def check_full(origin):
    """One member's disk is full: it keeps nothing, and every read is right and in time."""
    if os.geteuid() != 0:
        return
    folder = f"{PRIVATE}/full"
    os.makedirs(f"{folder}/1")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", f"{folder}/1"], check=True)
    ring = Ring(2, origin.url, folder=f"{PRIVATE}/ring.full")
    os.makedirs(ring.at(1))
    subprocess.run(["mount", "--move", f"{folder}/1", ring.at(1)], check=True)
    with ring:
        with open(f"{ring.at(1)}/filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass
        daemon = start_at("full", f"{origin.url}/", f"cache={PRIVATE}/cache.full,stage=off,{ring.options(0)}")
        longest = 0
        for off in range(0, len(DATA), PIECE):
            begin = time.monotonic()
            equal(read_anew(daemon.at, FILE, size=PIECE, offset=off) == DATA[off:off + PIECE], True, f"at {off}")
            longest = max(longest, time.monotonic() - begin)
        print(f"a full disk: longest read {longest:.2f} s, trouble: {remote(daemon.at)['peers_trouble']!r}, "
              f"{remote(daemon.at)['peers_bytes']} of {len(DATA)} bytes from peers", flush=True)
        took(longest, "a read with a full disk", 10)
        stop(daemon)
        os.unlink(f"{ring.at(1)}/filler")
    subprocess.run(["umount", ring.at(1)], check=True)


def check_clocks():
    """The origin refuses this node's signatures, because its clock is wrong: the message says so."""
    data = {"a-data": idx_bytes(rng.integers(0, 256, (400, 8, 8), dtype=np.uint8))}
    with FakeS3(data) as s3, Ring(2, s3.endpoint, folder=f"{PRIVATE}/ring.clocks") as ring:
        environment = dict(os.environ, AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="secret")
        for skewed, code in ((False, 0), (True, 2)):
            s3.skewed = skewed
            out = run("stage", "-o", f"cache={PRIVATE}/cache.skewed{skewed},endpoint={s3.endpoint},patience=3,"
                      f"{ring.options(0)}", f"s3://data/{'nothing/' if skewed else ''}", code=code, env=environment)
        contains(out, "the clock of this machine is wrong", "RequestTimeTooSkewed")


def check_options():
    for value in ("http://data.example.org:80", "https://127.0.0.1:1", "http://127.0.0.1", "127.0.0.1:80",
                  "http://127.0.0.1:80/path", "http://127.0.0.1.evil.org:80", "http://u@127.0.0.1:80", ""):
        contains(run("info", "-o", f"via={value}", "/", code=1), "option via: expected http://127.0.0.1:PORT")
    for value in ("http://127.0.0.1:1", "http://localhost:1/", "http://[::1]:1"):
        out = run("info", "-o", f"via={value},via_secret=/no/such/file", "http://127.0.0.1:1/", code=2)
        contains(out, "peers_secret=/no/such/file: No such file or directory")


the_secret = make_secret(f"{PRIVATE}/secret")
timed(check_words, the_secret)
timed(check_not_up, the_secret)
timed(check_resolver, the_secret)
timed(check_options)
with Nginx(WWW) as the_origin:
    with Ring(3, the_origin.url) as the_ring:
        timed(check_disagree, the_origin, the_ring)
    timed(check_full, the_origin)
timed(check_clocks)
