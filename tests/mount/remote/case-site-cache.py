#!/usr/bin/python3
"""Four nodes behind the site cache of mount-scripts/site-cache: the origin sends each byte once, in
whatever order they read; a file that changes is an error and never a mixture; a site cache that is
down is an error in time, and one that comes back is used."""

import errno
import os
import threading
import time
import urllib.error
import urllib.request

from lib import DEADLINE, PRIVATE, contains, content, equal, log_text, start, stop
from node_data import DATA, PIECE, SIZES, TOTAL, WWW, any_images, in_mount, read_all
from servers import (MiB, Nginx, check_once, error_of, place, read_anew, remote, sent, start_at, timed, took,
                     wait_staged, wait_until)
from site_cache import make_conf, site_cache

NODES = 4


def check_nodes(origin, site):
    """All nodes at once; then a fifth, when the origin sends only listings and versions."""
    nodes = [start_at(f"node{i}", f"{site.at}/", f"cache={PRIVATE}/cache.{i}")
             for i in range(NODES)]
    wrong = []
    readers = [threading.Thread(target=read_all, args=(node, i, wrong))
               for i, node in enumerate(nodes)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    equal(wrong, [], "pieces that are wrong")
    for node in nodes:
        wait_staged(node, TOTAL)
        stop(node)
    asked = origin.log(data_only=False)
    print(f"the origin sent {sent(asked) / TOTAL:.4f} of the dataset, {NODES} nodes got "
          f"{sent(site.log()) / TOTAL:.4f}", flush=True)
    check_once(origin.log(), SIZES, f"{NODES} nodes")
    equal(sent(asked) <= 1.01 * TOTAL, True, f"bytes that the origin sent: {sent(asked)}, expected at "
          f"most 1.01 of {TOTAL}")
    equal(sent(site.log()) >= NODES * TOTAL, True, "bytes that the nodes got")
    origin.forget()
    node = start(f"{site.at}/", f"cache={PRIVATE}/cache.late")
    read_all(node, NODES, wrong)
    equal(wrong, [], "pieces that are wrong")
    stop(node)
    equal(origin.log(), [], "requests for data of a node that comes later")


def old_pieces(file, old):
    """(pieces that are as in old, pieces that are ESTALE); any other is wrong."""
    good = stale = 0
    for at in range(0, len(old), PIECE):
        try:
            equal(read_anew(file, size=PIECE, offset=at) == old[at:at + PIECE], True,
                  f"{file} at {at}: as it was")
            good += 1
        except OSError as e:
            equal(e.errno, errno.ESTALE, f"{file} at {at}: {e}")
            stale += 1
    return good, stale


def check_changed(site):
    """Another version at the origin, of the same size, after some of the old one was read."""
    name = "later/three-data"
    old, new = any_images(5000), any_images(5000)
    place(WWW, name, old)
    daemon = start_at("changed", f"{site.at}/later/", f"cache={PRIVATE}/cache.changed,stage=off")
    at = f"{daemon.at}/three-data/source/three-data"
    equal(read_anew(at, size=PIECE, offset=0), old[:PIECE], "before it changes")
    place(WWW, f"{name}.new", new)
    os.utime(f"{WWW}/{name}.new", (time.time() + 10,) * 2)
    os.rename(f"{WWW}/{name}.new", f"{WWW}/{name}")
    good, stale = old_pieces(at, old)
    equal(good > 0 and stale > 0, True, f"{good} pieces of the old version, {stale} errors")
    contains(log_text("log.changed"), "three-data: has changed: its ETag was ")
    # A new mount has the new version, through the same cache.
    other = start(f"{site.at}/later/", f"cache={PRIVATE}/cache.new")
    equal(content(other.at, "three-data/source/three-data") == new, True, "the new version")
    stop(other)
    equal(error_of(read_anew, at, size=PIECE, offset=len(old) - PIECE), errno.ESTALE,
          "the old mount, afterwards")
    stop(daemon)


def check_down(site):
    """The site cache is killed while it is needed, and started again."""
    daemon = start(f"{site.at}/", f"cache={PRIVATE}/cache.down,stage=off,patience=2,timeout=2")
    at = f"{daemon.at}/{in_mount('one-data')}"
    equal(read_anew(at, size=PIECE, offset=0), DATA["one-data"][:PIECE], "before")
    site.stop()
    begin = time.monotonic()
    equal(error_of(read_anew, at, size=PIECE, offset=5 * MiB), errno.EIO, "while it is down")
    took(time.monotonic() - begin, "the error", 20)
    equal(remote(daemon.at)["last_error"] != "", True, "status says that the remote fails")
    site.start()
    wait_until(lambda: error_of(read_anew, at, size=PIECE, offset=5 * MiB) == 0, "it is back",
               daemon)
    equal(read_anew(at, size=PIECE, offset=5 * MiB), DATA["one-data"][5 * MiB:5 * MiB + PIECE],
          "afterwards")
    # The read ends when its bytes have come; the error goes when their transfer has ended.
    wait_until(lambda: remote(daemon.at)["last_error"] == "", "status says that it works", daemon)
    stop(daemon)


def ask(site, name, **headers):
    """(status, X-Cache-Status) of a request for the first bytes of a file."""
    request = urllib.request.Request(f"{site.at}/{name}", headers={
        "Range": "bytes=0-9", **{k.replace("_", "-"): v for k, v in headers.items()}})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE) as reply:
            equal(reply.read(), DATA[name][:10], f"the bytes of {name}")
            return reply.status, reply.headers["X-Cache-Status"]
    except urllib.error.HTTPError as e:
        return e.code, e.headers["X-Cache-Status"]


def check_kept(origin, site):
    """The cache keeps only named versions, and only bytes that everybody may read."""
    with urllib.request.urlopen(urllib.request.Request(f"{origin.url}/one-data", method="HEAD"),
                                timeout=DEADLINE) as reply:
        tag = reply.headers["ETag"]
    equal(ask(site, "one-data", If_Match=tag), (206, "HIT"), "a version")
    equal(ask(site, "one-data"), (206, None), "no version")
    equal(ask(site, "one-data", If_Match=tag, Authorization="Basic eDp5"), (206, None), "a user")
    equal(ask(site, "one-data", If_Match='"other"')[0], 412, "another version")
    equal(ask(site, "none", If_Match=tag)[0], 404, "a file that is not there")


def check_secrets(origin, site):
    """The query of a URL is in no file, whether the origin answers or not; what it protects is not kept."""
    with urllib.request.urlopen(urllib.request.Request(f"{origin.url}/one-data", method="HEAD"),
                                timeout=DEADLINE) as reply:
        tag = reply.headers["ETag"]
    DATA["one-data?X-Amz-Signature=5ECRET"] = DATA["one-data"]
    for _ in range(2):
        equal(ask(site, "one-data?X-Amz-Signature=5ECRET", If_Match=tag), (206, None), "a query")
    with site_cache("http://127.0.0.1:1", f"{PRIVATE}/dead") as dead:
        equal(ask(dead, "one-data?X-Amz-Signature=5ECRET", If_Match=tag)[0], 502, "no origin")
        log = wait_until(lambda: content(PRIVATE, "dead/requests.log").decode(), "the request is logged")
        contains(log, " /one-data ", " 502 ", "origin:502")
    n = 0
    for top in (site.dir, dead.dir, f"{PRIVATE}/site", f"{PRIVATE}/dead"):
        for folder, _, files in os.walk(top):
            for name in files:
                equal(b"5ECRET" in content(folder, name), False, f"a secret in {folder}/{name}")
                n += 1
    equal(n > 10, True, f"files that were read: {n}")


def check_words():
    """make-conf refuses invalid values."""
    good = "https://data.example.org"
    contains(make_conf(good), "server data.example.org:443;", "listen 8080;", "max_size=100g")
    contains(make_conf("http://h:81/"), "server h:81;", "proxy_set_header Host h:81;")
    equal("@" in make_conf(good).replace("@origin", ""), False, "all is filled in")
    contains(make_conf("-a", "off", good), "access_log off;")
    for wrong in (["ftp://x"], ["https://x/path"], ["https://x;"], [], [good, good],
                  ["-l", "x y", good], ["-l", "1;", good], ["-n", "all;", good], ["-s", "5", good],
                  ["-s", "0g", good], ["-a", "log", good], ["-a", "/a b", good], ["-d", "relative", good], ["-d", "/a;b", good], ["-x", good]):
        contains(make_conf(*wrong, code=1), "make-conf")


check_words()
with Nginx(WWW, limit_rate=2 * MiB) as the_origin, site_cache(the_origin.url) as the_site:
    timed(check_nodes, the_origin, the_site)
    timed(check_kept, the_origin, the_site)
    timed(check_secrets, the_origin, the_site)
    timed(check_changed, the_site)
    timed(check_down, the_site)
