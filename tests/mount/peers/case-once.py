#!/usr/bin/python3
# slow: four nodes, one after the other
"""Four nodes with peers: the origin sends each byte once and each listing once, whatever order the
nodes read in; a node that dies costs its share again; versions never mix; without peers the origin is
asked, and both are said."""

import errno
import os
import threading
import time

from lib import PRIVATE, contains, content, equal, log_text, run, start, stop, text
from node_data import DATA, PIECE, SIZES, TOTAL, WWW, any_images, in_mount, read_all
from ring import SLICE, Ring, read_until_used, rings_calmly, tool, untroubled
from servers import (MiB, Nginx, check_once, error_of, files_below, place, read_anew, remote, sent, start_at,
                     timed, took, wait_staged, wait_until)

NODES = 4


def mount(ring, i, url, *more):
    return start_at(f"node{i}", url, ",".join([f"cache={PRIVATE}/cache.{i}", ring.options(i), *more]))


def read_together(nodes):
    wrong = []
    readers = [threading.Thread(target=read_all, args=(node, i, wrong)) for i, node in enumerate(nodes)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    equal(wrong, [], "pieces that are wrong")


def check_nodes(origin, ring):
    nodes = [mount(ring, i, f"{origin.url}/", "keep=pin") for i in range(NODES)]
    read_together(nodes)
    from_peers = []
    for node in nodes:
        wait_staged(node, TOTAL)
        from_peers.append(remote(node.at)["peers_bytes"])
        stop(node)
    untroubled(*(log_text(f"log.node{i}") for i in range(NODES)))
    equal([n for n in from_peers if n < TOTAL], [], f"bytes from peers, of {TOTAL}")
    asked = origin.log(data_only=False)
    print(f"the origin sent {sent(asked) / TOTAL:.4f} of the dataset to {NODES} nodes", flush=True)
    check_once(origin.log(), SIZES, f"{NODES} nodes")
    equal(sent(asked) <= 1.02 * TOTAL, True, f"bytes that the origin sent: {sent(asked)}")
    share = sum(st.st_size for i in range(NODES) for _, st in files_below(f"{ring.at(i)}/share"))
    equal(TOTAL <= share <= 1.02 * TOTAL, True, f"bytes of all shares: {share}, of {TOTAL}")
    contains(tool("status", "--folder", ring.at(0)), "127.0.1.4: answers", "share: ")


def check_late(origin, ring):
    """A node that comes later, and reads batches of a plan, costs the origin nothing."""
    origin.forget()
    untroubled(run("stage", "-o", f"cache={PRIVATE}/cache.late,{ring.options(1)}", f"{origin.url}/"))
    equal(origin.log(), [], "requests for data of a node that comes later")
    out = run("info", "-o", f"cache={PRIVATE}/cache.info,{ring.options(2)}", f"{origin.url}/")
    contains(out, "one-data")
    untroubled(out)
    equal(origin.log(), [], "requests for data of info")


def check_dead(origin, ring):
    """A dead node: its share is fetched again, by the others together."""
    shares = [sum(st.st_size for _, st in files_below(f"{ring.at(i)}/share")) for i in range(NODES)]
    ring.kill(3)
    origin.forget()
    nodes = [mount(ring, i, f"{origin.url}/", f"cache={PRIVATE}/cache.dead{i}") for i in range(NODES - 1)]
    read_together(nodes)
    for node in nodes:
        stop(node)
    again = sent(origin.log())
    print(f"a dead node had {shares[3]} bytes, the origin sent {again} again", flush=True)
    if again > shares[3]:
        untroubled(*(log_text(f"log.node{i}") for i in range(NODES - 1)))
    equal(again <= shares[3], True, f"bytes sent again: {again}, expected at most {shares[3]}")
    contains(tool("status", "--folder", ring.at(0), code=2), "127.0.1.4: does not answer")
    ring.start(3)
    equal(tool("status", "--folder", ring.at(0)).count("answers"), NODES, "nodes that answer")


def check_changed(origin, ring):
    """Another version at the origin, of the same size, after some of the old one was read."""
    name = "later/three-data"
    old, new = any_images(5000), any_images(5000)
    place(WWW, name, old)
    daemon = mount(ring, 0, f"{origin.url}/later/", "stage=off")
    at = f"{daemon.at}/three-data/source/three-data"
    equal(read_anew(at, size=PIECE, offset=0), old[:PIECE], "before it changes")
    place(WWW, f"{name}.new", new)
    os.utime(f"{WWW}/{name}.new", (time.time() + 10,) * 2)
    os.rename(f"{WWW}/{name}.new", f"{WWW}/{name}")
    good = stale = 0
    for off in range(0, len(old), PIECE):
        try:
            got = read_anew(at, size=PIECE, offset=off)  # short, if an error follows in the same piece
            want = old[off:off + PIECE]
            differ = next((k for k in range(len(got)) if got[k] != want[k]), None)
            equal((len(got) > 0, differ), (True, None), f"{len(got)} bytes as they were, at {off}")
            good += got == want
            stale += got != want
        except OSError as e:
            equal(e.errno, errno.ESTALE, f"at {off}: {e}")
            stale += 1
    equal(good > 0 and stale > 0, True, f"{good} pieces of the old version, {stale} errors")
    equal(good <= SLICE // PIECE, True, f"{good} pieces of the old version, expected those of one slice")
    contains(log_text("log.node0"), "three-data: has changed: its ETag was ")
    stop(daemon)

    def new_version():
        try:
            out = start_at("new", f"{origin.url}/later/", f"cache={PRIVATE}/cache.new,{ring.options(1)}")
        except AssertionError as e:  # a list of the old version, and a peer that has lost the first bytes of it
            contains(str(e), "three-data: has changed: its ETag was ")
            return False
        same = error_of(read_anew, out.at, "three-data/source/three-data") == 0 and \
            content(out.at, "three-data/source/three-data") == new
        stop(out)
        return same

    wait_until(new_version, "a new mount has the new version, when the list is 10 s old")


def check_front(origin, ring):
    """The front hangs, and is dead: the origin is asked, in time, and it is said."""
    daemon = mount(ring, 2, f"{origin.url}/", "stage=off", f"cache={PRIVATE}/cache.front")
    at = f"{daemon.at}/{in_mount('one-data')}"
    equal(read_anew(at, size=PIECE), DATA["one-data"][:PIECE], "before")
    ring.stall(2)
    for off in (2 * MiB, 3 * MiB):
        begin = time.monotonic()
        equal(read_anew(at, size=PIECE, offset=off), DATA["one-data"][off:off + PIECE], "while the front hangs")
        took(time.monotonic() - begin, "a read while the front hangs", 4)
    contains(log_text("log.node2"), f"peers: {ring.front(2)}: does not answer", "the origin is asked in their place")
    contains(remote(daemon.at)["peers_trouble"], "does not answer")
    contains(text(daemon.at, ".epochfs/metrics"), "epochfs_remote_peers_failing 1\n")
    ring.resume(2)

    read_until_used(daemon, range(4 * MiB, 7 * MiB, 8 << 10), lambda off: equal(
        read_anew(at, size=4096, offset=off), DATA["one-data"][off:off + 4096], "afterwards"))
    contains(log_text("log.node2"), "it answers again")
    for i in range(NODES):
        ring.kill(i)
    begin = time.monotonic()
    equal(read_anew(daemon.at, in_mount("sub/two-data"), size=PIECE, offset=2 * MiB),
          DATA["sub/two-data"][2 * MiB:2 * MiB + PIECE], "with all of the ring dead")
    took(time.monotonic() - begin, "a read with all of the ring dead", 4)
    stop(daemon)
    # A mount also begins without it.
    daemon = start(f"{origin.url}/", f"cache={PRIVATE}/cache.gone,{ring.options(2)}")
    equal(content(daemon.at, in_mount("sub/two-data")) == DATA["sub/two-data"], True, "a mount without its ring")
    contains(log_text(), "the origin is asked in their place")
    stop(daemon)


def check(origin):
    origin.forget()
    with Ring(NODES, origin.url) as ring:
        for part in (check_nodes, check_late, check_dead, check_changed, check_front):
            timed(part, origin, ring)


with Nginx(WWW, limit_rate=4 * MiB) as the_origin:
    rings_calmly(check, the_origin)
