#!/usr/bin/python3
# slow: waits for a server that comes back
"""A server with lasting failures, or with another file than before: a read fails with a clear error
within `patience`, staged bytes can still be read, and when the server recovers, so does the mount.
A body that differs from SHA256SUMS."""

import errno
import os
import threading

import bad_server as bad
from bad_mount import BLOCK, CLEAR, DATA, FILE, OTHER, PATIENCE, WWW, Try
from bad_server import BadServer
from lib import PRIVATE, contains, content, equal, log_text, path, run, text
from servers import check_counters, error_of, place, read_anew, remote, sha256sums, timed, wait_until


def lasting(server):
    """Lasting failures: EIO after `patience`, while staged bytes can be read; then the mount
    recovers by itself."""
    for what, action in (("503 for ever", bad.status(503)), ("resets for ever", bad.reset(100)),
                         ("stalls for ever", bad.stall(100)), ("no answers", bad.stall()),
                         ("wrong parts for ever", bad.content_range(shift=BLOCK, size_too=True)),
                         ("packed for ever", bad.packed()), ("garbage for ever", bad.garbage())):
        # A transfer in which nothing comes ends long before the reader gives up.
        with Try(server, what, {"patience": 2 * PATIENCE} if "stalls" in what or "answers" in what else None) as t:
            start_of = read_anew(path("file-one/source/file-one"), size=4096)
            equal(start_of == DATA[:4096], True, what)
            server.script(FILE, action)
            # A connection that delivers a little is not a stalled one.
            t.fails(errno.EIO, off=3_600_000, limit=15 if "resets" in what or "stalls" in what else None)
            equal(read_anew(path("file-one/source/file-one"), size=4096) == DATA[:4096], True,
                  f"{what}: what is here")
            r = remote()
            equal(r["errors"] > 0 and r["last_error"] != "", True, f"{what}: told in status: {r}")
            contains(log_text(t.log), "file-one")
            equal(log_text(t.log).count("\n") < 20, True, f"{what}: a log that is not flooded")
            server.healthy()
            t.check(" when it is healthy again")
            wait_until(lambda: remote()["last_error"] == "", f"{what}: no error any more")


def check_gone(server):
    with Try(server, "gone") as t:
        server.gone()
        t.fails(errno.EIO, off=3_600_000)
        server.up()
        t.check(" when it is back")
        check_counters(server.data(), "gone and back", remote())
    with Try(server, "gone for a while", {"patience": 30}) as t:
        server.gone()
        back = threading.Timer(1, server.up)
        back.start()
        t.check()
        back.join()
        equal(remote()["errors"], 0, "gone for a while: nobody was told")


def check_changed(server):
    """Another version: ESTALE for missing bytes, never a mixture."""
    for what, action in (("another ETag", bad.etag('"other"')),
                         ("another total", bad.content_range(total=1)),
                         ("removed", bad.status(404)), ("forbidden", bad.status(403))):
        with Try(server, what) as t:
            read_anew(path("file-one/source/file-one"), size=4096)
            server.script(FILE, action, method=None)
            wants = (errno.ESTALE,) if "another" in what else CLEAR
            t.fails(*wants, off=3_600_000)
            equal(read_anew(path("file-one/source/file-one"), size=4096) == DATA[:4096], True,
                  f"{what}: what is here")
            contains(log_text(t.log), "file-one")
    for what, some in (("another file", False), ("another file in the middle", True)):
        with Try(server, what) as t:
            if some:
                read_anew(path("file-one/source/file-one"), size=4096, offset=2_300_000)
            place(WWW, FILE[1:] + ".new", OTHER)
            os.rename(f"{WWW}{FILE}.new", f"{WWW}{FILE}")
            t.fails(errno.ESTALE, off=3_600_000)
            equal(t.right_or_error() > 0, True, f"{what}: some of it is not here")
        with Try(server, f"{what}, mounted anew") as t:
            equal(content(path("file-one/source/file-one")) == OTHER, True, "the new version")
        place(WWW, FILE[1:], DATA)
    # A server without If-Match and ETags: size and time decide.
    with Try(server, "no ETag", before=[("*", bad.without("ETag"), {"method": None})]) as t:
        t.right_or_error()
        place(WWW, FILE[1:], OTHER + b"x")
        t.fails(errno.ESTALE, off=3_200_000)
    place(WWW, FILE[1:], DATA)


def check_sums(server):
    """A body that differs from SHA256SUMS."""
    place(WWW, "data/file-two", OTHER)
    sha256sums(f"{WWW}/data")
    # That of a whole file, from the first byte on.
    with Try(server, "not what SHA256SUMS says", {"stage": "auto"}, source="/data/",
             before=[(FILE, bad.other(OTHER))]) as t:
        wait_until(lambda: remote()["bad_files"] > 0, "bad_files counts", t.daemon)
        if os.path.exists(path("file-one/ERROR.txt")):  # it was known before the mount was made
            contains(text(path("file-one/ERROR.txt")), "file-one")
        else:
            wait_until(lambda: "SHA256SUMS" in log_text(t.log), "it is logged, which is later", t.daemon)
            contains(log_text(t.log), "file-one")
            e = error_of(read_anew, path("file-one/source/file-one"))
            equal(e, errno.EIO, "not what SHA256SUMS says: a read of it; errno")
        equal(content(path("file-two/source/file-two")) == OTHER, True, "another file")
    told = run("stage", "-o", f"cache={PRIVATE}/sums,patience=2,timeout=1", f"{server.url}/data/",
                 code=2)
    contains(told, "file-one", "SHA256SUMS")
    # A bit flipped on the way: it is reported, and the wrong bytes are not kept.
    options = f"cache={PRIVATE}/flip,block=16K,jobs=2"
    server.healthy()
    server.script(FILE, bad.flip(3_300_000))
    told = run("stage", "-o", options, f"{server.url}/data/", code=2)
    contains(told, "file-one", "SHA256SUMS")
    server.healthy()
    run("stage", "-o", options, f"{server.url}/data/")
    run("stage", "--check", "-o", options, f"{server.url}/data/")
    with Try(server, "a flipped bit", {"cache": f"{PRIVATE}/flip"}, source="/data/") as t:
        t.check()
    os.unlink(f"{WWW}/data/SHA256SUMS")


with BadServer(WWW) as the_server:
    for check in (lasting, check_gone, check_changed, check_sums):
        timed(check, the_server)
