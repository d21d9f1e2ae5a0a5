#!/usr/bin/python3
"""A folder on a web server with a SHA256SUMS: a picture that is not what it says gives EIO, and so does none of
those next to it."""

import errno

from lib import PRIVATE, content, equal, expect_error, log_text, stop
from servers import Nginx, place, sha256sums, start_at

WWW, N, BAD = f"{PRIVATE}/www", 200, 77


def name(i):
    return f"{i:04d}.jpg"


def data(i):
    return b"picture %d " % i * (100 + i)


for i in range(N):
    place(WWW, f"train/c{i % 2}/{name(i)}", data(i))
sha256sums(WWW)
place(WWW, f"train/c{BAD % 2}/{name(BAD)}", data(BAD)[::-1])
with Nginx(WWW) as server:
    daemon = start_at("mount", f"{server.url}/", f"cache={PRIVATE}/cache,stage=off")
    for turn in range(2):
        for i in range(N):
            if i == BAD:
                expect_error(errno.EIO, content, daemon.at, "train/samples/raw", name(i))
            else:
                equal(content(daemon.at, "train/samples/raw", name(i)), data(i), name(i))
    equal("SHA-256: expected" in log_text("log.mount"), True, "the log has the sums")
    stop(daemon)
