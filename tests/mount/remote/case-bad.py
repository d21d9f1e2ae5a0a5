#!/usr/bin/python3
# slow: waits for a server that fails
"""A server with passing failures: 5xx, 429, resets, short bodies, wrong parts, stalls, no ranges,
no sizes. Readers wait a little, every byte is right, and no reader gets an error."""

import errno
import os

import bad_server as bad
from bad_mount import BLOCK, DATA, FILE, WWW, Try, mounts_or_says
from bad_server import BadServer
from lib import content, equal, path
from servers import Late, calmly, coverage, error_of, remote, sent, timed, wait_until


# Failures that libcurl handles itself, and replies that are no failures.
UNCOUNTED = ("closed without an answer", "a body that is too long")


def passing(server):
    """Failures that pass: the reader only waits a little."""
    for what, action, times in (
            ("503", bad.status(503), 3), ("500", bad.status(500), 2), ("502", bad.status(502), 1),
            ("504 with a delay", bad.status(504), 1), ("408", bad.status(408), 1),
            ("reset in mid-body", bad.reset(5000), 4), ("reset at once", bad.reset(0), 2),
            ("short body", bad.cut(7000), 4), ("no body", bad.cut(0), 2),
            ("closed without an answer", bad.hang_up(), 3), ("garbage", bad.garbage(), 2),
            ("another start in Content-Range", bad.content_range(shift=BLOCK), 2),
            ("the part before", bad.content_range(shift=-7, size_too=True), 2),
            ("no Content-Range", bad.no_content_range(), 2),
            ("a body that is too long", bad.longer(100), 2),
            ("chunked", bad.chunked(), None),
            ("a stall before the answer", bad.stall(), 1),
            ("a stall in mid-body", bad.stall(3000), 1),
            ("latency", bad.delay(0.05), None)):
        with Try(server, what, {"patience": 20}) as t:
            content(path("file-one/dataset.json"))
            server.script(FILE, action, times=times)
            t.check(anew=False)
            r = remote()
            equal((r["errors"], r["bad_blocks"]), (0, 0), f"{what}: errors, bad blocks")
            if times and what not in UNCOUNTED:
                equal(r["retries"] > 0, True, f"{what}: retries are counted: {r}")
            equal(r["staged_bytes"], len(DATA), f"{what}: staged")


def check_whole(server):
    """No ranges: the file is fetched once, as a whole."""
    with Try(server, "no ranges", before=[("*", bad.whole(), {"method": None})]) as t:
        t.check()
        r = remote()
        equal(coverage(server.data())[FILE][1], len(DATA), "no ranges: the whole of it")
        equal(len(server.data()) <= 3, True, f"no ranges: {server.data()}")
        equal(r["demand_bytes"] + r["background_bytes"] < 1.1 * len(DATA), True,
              f"no ranges: the whole of it, once: {r}")
        n = len(server.data())
        t.check(" again")
        equal(len(server.data()), n, "no ranges: nothing is fetched twice")
    with Try(server, "ranges at first, then none") as t:
        server.script("*", bad.whole(), method=None)
        t.check()
    with Try(server, "the whole of it once") as t:
        server.script(FILE, bad.whole(), times=1)
        t.check()


def check_retry_after(server):
    with Try(server, "429", {"patience": 20}) as t:
        server.script(FILE, bad.status(429, retry_after=1), times=1)
        server.forget()
        t.check()
        codes = [r.status for r in server.log]
        equal(codes.count(429), 1, f"429: {codes}")
        came = server.times[codes.index(429)]
        later = [at for at, r in zip(server.times, server.log) if at > came and
                 r.range == server.log[codes.index(429)].range]
        equal(later and min(later) - came >= 0.95, True, "Retry-After: 1 is kept: "
              f"{[round(at - came, 2) for at in later]}")
    with Try(server, "429 for an hour") as t:
        server.script(FILE, bad.status(429, retry_after=3600))
        t.fails(errno.EIO, off=3_500_000)
        server.healthy()
        wait_until(lambda: error_of(t.check) == 0, "429 for an hour: works again", t.daemon, 60)


def check_no_size(server):
    """A server that does not give the file's size, or nothing about the file at all."""
    for what, action in (("chunked, of HEAD, too", bad.chunked()),
                         ("HEAD is not allowed", None), ("neither ETag nor time",
                                                         bad.without("ETag", "Last-Modified"))):
        before = [("*", action, {"method": None})] if action else \
            [("*", bad.status(405), {"method": "HEAD"})]
        t = Try(server, what, before=before)
        if mounts_or_says(t):
            if os.path.isdir(path("file-one")) and "ERROR.txt" not in os.listdir(path("file-one")):
                t.check()
            t.__exit__(None)


def check_bandwidth(server):
    """Slow, but not dead: a connection that delivers little is not a stalled one."""
    server.rate = 2_000_000
    with Try(server, "slow", {"jobs": 2}) as t:
        t.check(anew=False)
        r = remote()
        equal(r["errors"], 0, "slow: errors")
        if r["retries"]:  # a thread of the server may have had no processor for timeout=
            raise Late(f"slow: {r['retries']} retries: {r['last_error']}")
        equal(r["demand_bytes"] + r["background_bytes"], sent(server.data()), "slow: bytes fetched")
    server.rate = 0


with BadServer(WWW) as the_server:
    for check in (passing, check_whole, check_retry_after, check_no_size):
        timed(check, the_server)
    timed(calmly, check_bandwidth, the_server)
