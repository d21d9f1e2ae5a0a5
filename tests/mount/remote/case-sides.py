#!/usr/bin/python3
"""SOURCE is one file of a remote: names of its side files are guesses. They are asked for only if the
file's format has side files, a server that answers every name makes no datasets of them, and one that
cannot be read makes the file an error. Here, content also decides what is a side file."""

import os

import numpy as np

import bad_server as bad
from lib import (CACHE, SOURCE, MOUNTPOINT, contains, equal, idx_bytes, mounted, path, run, text,
                 write)

IMAGES = idx_bytes(np.arange(240, dtype=np.uint8).reshape(12, 4, 5))
ROWS = b"".join(b"%d %d:1 50:2\n" % (i % 2, i + 1) for i in range(20))
PAGE = b"<!DOCTYPE html><html><body>log in</body></html>"
names = 0  # caches so far


def every_name(data):
    """The answer for names that are not there."""
    def act(reply):
        if reply.data is None:
            reply.data = data
            reply.headers = {"Accept-Ranges": "bytes", "ETag": '"any"'}
            reply.serve(reply.request.range)
    return act


def cache():
    global names
    names += 1
    return f"cache={CACHE}/{names}"


def datasets():
    return sorted(n for n in os.listdir(MOUNTPOINT) if n not in ("README.txt", ".epochfs"))


def check_every_name(server):
    for data in (IMAGES, ROWS, PAGE):
        server.script("*", every_name(data), method=None)
        with mounted(f"{server.url}/images", cache()):
            equal(datasets(), ["images"], f"an IDX file, and {data[:10]} for any name")
        with mounted(f"{server.url}/rows", cache()):
            equal(datasets(), ["rows"], f"rows, and {data[:10]} for any name")
            with np.load(path("rows/batches/batch=all/npz/000000.npz")) as found:
                equal(found["label"].tolist(), [i % 2 for i in range(20)], "labels")
                equal("weight" in found, False, "a field that nobody wrote")
        server.healthy()


def check_asked(server):
    """Which names a server is asked for."""
    asked = set()
    server.script("*", lambda reply: asked.add(reply.request.path), method=None)
    with mounted(f"{server.url}/images", cache()):
        equal([name for name in asked if name.startswith("/images.")], [], "an IDX file has none")
    run("stage", "-o", cache(), f"{server.url}/images")
    equal([name for name in asked if name.startswith("/images.")], [], "stage")
    with mounted(f"{server.url}/rows", cache()):
        equal("/rows.weight" in asked, True, f"rows may have: {asked}")
    asked.clear()
    server.script("*", bad.status(503))
    run("info", "-o", f"{cache()},patience=1,timeout=1", f"{server.url}/rows", code=2)
    equal([name for name in asked if name.startswith("/rows.")], [], "a file that cannot be read")
    server.healthy()


def check_unread(server):
    write("rows.weight", b"1\n" * 20)
    write("rows.group", b"20\n")
    for name in ("weight", "group"):
        server.script(f"/rows.{name}", bad.status(503))
    found = run("info", "-o", f"{cache()},patience=1,timeout=1", f"{server.url}/rows", code=2)
    contains(found, "nothing usable", "/rows.", "503")
    server.healthy()
    with mounted(f"{server.url}/rows", cache()):
        equal(datasets(), ["rows"], "with its side files")
        with np.load(path("rows/batches/batch=all/npz/000000.npz")) as found:
            equal("weight" in found, True, "weights")


write("images", IMAGES)
write("rows", ROWS)
with bad.BadServer(SOURCE) as the_server:
    check_every_name(the_server)
    check_asked(the_server)
    check_unread(the_server)
write("images.base_margin", IMAGES)
with mounted():
    contains(text(path("images.base_margin/dataset.json")), '"format": "idx"')
