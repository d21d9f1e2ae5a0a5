#!/usr/bin/python3
# slow: waits for servers that hardly send
"""A server that sends a byte now and then, of a head, an index page, a listing or a file, does not
block info, a mount, or a reader. They do wait for a server that is less slow."""

import errno
import time

import bad_server as bad
from bad_mount import DATA, FILE, PATIENCE, TIMEOUT, WWW, Try
from bad_server import BadServer
from lib import contains, equal, path, run
from servers import place, read_anew, remote, timed, took, wait_until

LIMIT = 60  # seconds, for what would take hours
QUICK = ["-o", f"timeout={TIMEOUT},patience={PATIENCE}"]
place(WWW, "sums/SHA256SUMS", b"0" * 64 + b"  file-one\n")


def info(server, url, what):
    begin = time.monotonic()
    said = run("info", *QUICK, server.url + url, code=2)
    took(time.monotonic() - begin, f"info: {what}", LIMIT)
    contains(said, "the server sent ")
    return said


def check_info(server):
    for what, url, script in (
            ("SHA256SUMS", "/sums/", ("/sums/SHA256SUMS", bad.drip(0.1))),
            ("the head of it", "/sums/", ("/sums/SHA256SUMS", bad.drip(0.1, head=True))),
            ("heads of an index page", "/nothing/", ("/nothing/", bad.drip(0.1, head=True))),
            ("an index page", "/nothing/", ("/nothing/", page)),
            ("the head of the file", FILE, (FILE, bad.drip(0.1, head=True)))):
        server.healthy()
        server.script(*script, method=None)
        info(server, url, what)


def page(reply):
    reply.status, reply.headers = 200, {"Content-Type": "text/html"}
    reply.body = b"<html><title>Index of /nothing/</title>" + b"<a href=x>x</a>" * 1000
    bad.drip(0.1)(reply)


def check_mount(server):
    server.healthy()
    server.script(FILE, bad.drip(0.1))
    begin = time.monotonic()
    t = Try(server, "a mount of what drips", before=[(FILE, bad.drip(0.1))])
    try:
        t.__enter__()
    except AssertionError:
        pass  # it has said why
    else:
        t.__exit__(None)
    took(time.monotonic() - begin, "a mount", LIMIT)


def check_reader(server):
    for what, script in (("a body", bad.drip(0.05)), ("a head", bad.drip(0.05, head=True)),
                         ("chunks", lambda reply: (bad.chunked()(reply), bad.drip(0.05)(reply)))):
        with Try(server, f"{what} that drips", {"patience": 4 * TIMEOUT}) as t:  # the transfer fails long before
            equal(read_anew(path("file-one/source/file-one"), size=4096) == DATA[:4096], True, what)
            server.script(FILE, script)
            t.fails(errno.EIO, off=2_000_000, limit=LIMIT)
            contains(remote()["last_error"], "the server sent ")
            server.healthy()
            wait_until(lambda: t.right_or_error() == 0, "it works again", t.daemon)


def check_slow(server):
    """Some KiB per second, over 4 connections: each brings its share."""
    with Try(server, "slow", {"patience": 60, "timeout": 5, "block": 4096}) as t:
        server.rate = 8 << 10
        got = read_anew(path("file-one/source/file-one"), size=4096, offset=3_000_000)
        equal(got == DATA[3_000_000:3_004_096], True, "slow: the bytes")
        equal(remote()["errors"], 0, "slow: errors")
        server.rate = 0
        server.release.set()
        t.check()


with BadServer(WWW) as the_server:
    for check in (check_info, check_mount, check_reader, check_slow):
        timed(check, the_server)
