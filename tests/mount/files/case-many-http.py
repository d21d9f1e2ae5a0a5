#!/usr/bin/python3
# slow: many files on a server
"""A folder of many pictures on a web server: the first mount asks for the version of each file, the second
one only for its index pages, and for files of pages that have changed. A file that was replaced in a way
that its page does not show gives ESTALE, and the mount after that asks for all versions again."""

import errno
import os
import time

from lib import PRIVATE, content, equal, expect_error, stop
from servers import Nginx, place, start_at

WWW = f"{PRIVATE}/www"
N, CLASSES = 5000, 20
OLD = 1600000000
OPTIONS = (f"cache={PRIVATE}/cache", "stage=off")


def name(i):
    return f"{i:05d}.jpg"


def put(i, data, when):
    os.utime(place(WWW, f"train/c{i % CLASSES:02d}/{name(i)}", data), (when, when))


def data(i):
    return b"picture %d " % i * (1 + i % 50)


def mount(server):
    """A mount; requests for pages, and for versions, that it took."""
    server.forget()
    daemon = start_at("mount", f"{server.url}/", *OPTIONS)
    log = server.log(data_only=False)
    return daemon, sum(r.path.endswith("/") for r in log), sum(r.method == "HEAD" for r in log)


def sample(at, i):
    return content(at, "train/samples/raw", name(i))


for i in range(N):
    put(i, data(i), OLD)
with Nginx(WWW) as server:
    pages = CLASSES + 2
    daemon, listed, asked = mount(server)
    equal((listed, asked), (pages, N), "pages, and versions, of the first mount")
    equal(sample(daemon.at, 17), data(17))
    stop(daemon)

    daemon, listed, asked = mount(server)
    equal((listed, asked), (pages, 0), "pages, and versions, of the second mount")
    for i in (0, 17, 18, N - 1):
        equal(sample(daemon.at, i), data(i))
    stop(daemon)

    # One that has changed, one that is gone, and a new one: what their pages show is asked for.
    put(7, b"another picture", OLD + 3600)
    os.unlink(f"{WWW}/train/c08/{name(8)}")
    put(N + 9, b"a new picture", time.time())
    few = 3 * N // CLASSES
    daemon, listed, asked = mount(server)
    equal((listed, asked), (pages, few), "pages, and versions, after a change")
    equal(sample(daemon.at, 7), b"another picture")
    equal(sample(daemon.at, N + 9), b"a new picture")
    equal(sample(daemon.at, 27), data(27))
    expect_error(errno.ENOENT, sample, daemon.at, 8)
    stop(daemon)

    # A page with a file that has just been changed shows too little.
    daemon, listed, asked = mount(server)
    equal((listed, asked), (pages, N // CLASSES + 1), "pages, and versions, with a new file")
    stop(daemon)
    put(N + 9, b"a new picture", OLD)
    stop(mount(server)[0])

    # Replaced by one of the same size within the minute of its time.
    put(30, data(30)[::-1], OLD + 1)
    daemon, listed, asked = mount(server)
    equal((listed, asked), (pages, 0), "pages, and versions, where a change is not seen")
    expect_error((errno.ESTALE, errno.EIO), sample, daemon.at, 30)
    equal(sample(daemon.at, 31), data(31))
    stop(daemon)
    daemon, listed, asked = mount(server)
    equal((listed, asked), (pages, N), "pages, and versions, after that was met")
    equal(sample(daemon.at, 30), data(30)[::-1])
    stop(daemon)
