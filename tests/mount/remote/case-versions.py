#!/usr/bin/python3
# slow: waits for replies that are refused
"""What a server says decides which version its bytes are of, and what it says of errors is passed on:
replies that lack what a file is known by, machines with other ETags for the same bytes, sums that do
not match, refusals in the server's words, folders without a list."""

import errno
import os
import subprocess
import sys

import numpy as np

import bad_server
from bad_server import BadServer
from lib import MOUNTPOINT, PRIVATE, contains, equal, idx_bytes, mounted, run, status
from servers import Nginx, error_of, place, read_anew, remote, sha256sums, wait_until

WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(3)
FIRST = idx_bytes(rng.integers(0, 256, (2000, 50, 50), dtype=np.uint8))
SECOND = idx_bytes(rng.integers(0, 256, (2000, 50, 50), dtype=np.uint8))
place(WWW, "x-idx3-ubyte", FIRST)
SOURCE = "x-idx3-ubyte"
OPTIONS = "block=16K,stage=off,patience=2,timeout=2"


def fresh(name):
    return f"{OPTIONS},cache={PRIVATE}/cache.{name}"


def said(text, *words):
    contains(text, *words)
    equal("0123456789" in text, False, f"a secret in: {text}")


def unlike(*names):
    """Bytes of another version of the same size, without those headers."""
    def act(reply):
        reply.headers.setdefault("ETag", '"some"')
        bad_server.other(SECOND)(reply)
        bad_server.without(*names)(reply)
    return act


def check_lacking(server, url, known_by, *names):
    """Later replies are of another version, and do not say so: no byte of it is given."""
    name = "-".join([known_by, *names])
    if known_by != "ETag":
        server.script("*", bad_server.without("ETag"), method=None)
    with mounted(url, fresh(name)):
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE, size=4096) == FIRST[:4096], True, name)
        server.script("/x-idx3-ubyte", unlike(*names), times=None)
        equal(error_of(read_anew, MOUNTPOINT, SOURCE, "source", SOURCE, size=4096,
                       offset=3_000_000), errno.EIO, name)
        contains(status()["last_read_error"],
                 f"a reply has no {known_by}, by which this file is known")
        server.healthy()
        if known_by != "ETag":
            server.script("*", bad_server.without("ETag"), method=None)
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE, size=4096, offset=4_000_000) ==
              FIRST[4_000_000:4_004_096], True, f"{name}: afterwards")
    server.script("/x-idx3-ubyte", unlike(*names), first=2)
    contains(run("stage", "-o", f"block=16K,patience=2,cache={PRIVATE}/cache.s{name}", url, code=2),
             f"a reply has no {known_by}")
    server.healthy()


LATER = "Tue, 02 Jan 2024 00:00:00 GMT"


def second(*names, etag='"second"', modified=None):
    """The second version, of the same size, without those headers; None: what the first one has."""
    def act(reply):
        if reply.data is None:
            return
        match = reply.request.headers.pop("if-match", None)
        reply.headers.setdefault("ETag", '"none"')
        bad_server.other(SECOND)(reply)
        reply.headers["ETag"] = etag or reply.headers["ETag"]
        if modified:
            reply.headers["Last-Modified"] = modified
        if match not in (None, "*", reply.headers["ETag"]):
            bad_server.status(412)(reply)
        bad_server.without(*names)(reply)
    return act


def check_silent_head(server, url, head, get=(), modified=None):
    """HEAD lacks what GET tells. The file is replaced after the mount: no byte of the second version
    is mixed with the first one, nor the first one's bytes by later mounts."""
    name = "-".join(["head", *head, *get])
    server.script("*", bad_server.without(*head), method="HEAD")
    server.script("*", bad_server.without(*get))
    with mounted(url, fresh(name)):
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE, size=4096) == FIRST[:4096], True, name)
        server.script("*", second(*get, modified=modified))
        equal(error_of(read_anew, MOUNTPOINT, SOURCE, "source", SOURCE, size=4096,
                       offset=3_000_000), errno.ESTALE, name)
        contains(status()["last_read_error"], "has changed")
    server.healthy()
    server.script("*", second(*head, modified=modified), method="HEAD")
    server.script("*", second(*get, modified=modified))
    with mounted(url, fresh(name)):
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE) == SECOND, True, f"{name}: later")
    server.healthy()


def same_etag(value):
    def act(reply):
        if reply.data is not None:
            reply.request.headers.pop("if-match", None)
            reply.serve(reply.request.range)
            reply.headers["ETag"] = value
    return act


def check_same_etag(server, url):
    """An ETag made of the size alone: the time tells the versions apart, within a mount and after
    it. With version=etag the user says that it does not matter."""
    server.script("*", same_etag('"size"'), method=None)
    later = second(etag='"size"', modified=LATER)
    for name, options in (("both", ""), ("etag", ",version=etag")):
        with mounted(url, fresh(name) + options):
            equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE, size=4096) == FIRST[:4096], True,
                  name)
            server.script("*", later, method=None)
            if name == "both":
                equal(error_of(read_anew, MOUNTPOINT, SOURCE, "source", SOURCE, size=4096,
                               offset=3_000_000), errno.ESTALE, name)
                contains(status()["last_read_error"], "its ETag is still", "-o version=etag")
            else:
                equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE, size=4096,
                                offset=3_000_000) == SECOND[3_000_000:3_004_096], True, name)
        if name == "both":
            with mounted(url, fresh(name)):
                equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE) == SECOND, True, "later")
        server.healthy()
        server.script("*", same_etag('"size"'), method=None)
    server.healthy()


def check_no_version(server, url):
    """Neither ETag nor Last-Modified: said, and no later mount uses what is staged, unless
    SHA256SUMS tells the version."""
    bare = bad_server.without("ETag", "Last-Modified")
    server.script("*", bare, method=None)
    with mounted(url, fresh("none")):
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE) == FIRST, True, "no version")
    contains(run("info", "-o", fresh("none"), url), "sends neither ETag nor Last-Modified")
    equal(os.listdir(f"{PRIVATE}/cache.none/staged"), [], "what was staged")
    server.script("*", second("ETag", "Last-Modified"), method=None)
    with mounted(url, fresh("none")):
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE) == SECOND, True, "no version, later")
    server.healthy()
    place(f"{WWW}/summed", SOURCE, FIRST)
    sha256sums(f"{WWW}/summed", SOURCE)
    server.script("*", bare, method=None)
    top = url.removesuffix(SOURCE) + "summed/"
    for _ in "ab":
        equal("neither ETag" in run("info", "-o", fresh("summed"), top), False, "with sums")
        with mounted(top, fresh("summed")):
            equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE) == FIRST, True, "with sums")
        server.script("*", second("ETag", "Last-Modified"))  # all of it is cached
    server.healthy()


def alternate():
    """Machines with other ETags for the same bytes, of which some obey If-Match."""
    turn = [0]

    def act(reply):
        turn[0] += 1
        if turn[0] % 2 and reply.data is not None:
            reply.headers["ETag"] = '"machine-b"'
            if reply.request.headers.get("if-match") not in (None, "*", '"machine-b"'):
                reply.status, reply.body = 412, b""
                reply.headers.pop("Content-Range", None)
    return act


def check_alternating(server, url):
    server.script("*", alternate(), method=None)
    contains(run("info", "-o", fresh("two"), url, code=2), "its ETag was ", '"machine-b"',
             "mount with -o version=time")
    with mounted(url, fresh("time") + ",version=time"):
        equal(read_anew(MOUNTPOINT, SOURCE, "source", SOURCE) == FIRST, True, "version=time")
    server.healthy()


def check_flipped(server, url):
    """A large file is compared with its sum when all of it has come; later reads get the reason, in
    status and in the exceptions of Python."""
    data = idx_bytes(rng.integers(0, 256, (17 << 20 >> 11, 32, 64), dtype=np.uint8))
    place(f"{WWW}/sums", "train-idx3-ubyte", data)
    sha256sums(f"{WWW}/sums", "train-idx3-ubyte")
    server.script("/sums/train-idx3-ubyte", bad_server.flip(17_000_000))
    with mounted(f"{url}sums/", f"patience=2,cache={PRIVATE}/cache.sums"):
        wait_until(lambda: remote()["bad_files"], "the sum is compared")
        for _ in "ab":
            equal(error_of(read_anew, MOUNTPOINT, "train-idx3-ubyte/source/train-idx3-ubyte"),
                  errno.EIO, "a wrong sum")
            contains(status()["last_read_error"], "train-idx3-ubyte: SHA-256: ", "SHA256SUMS says")
        script = ("import sys; sys.path.insert(0, sys.argv[1]); import epochfs\n"
                  "try:\n"
                  "    for batch in epochfs.open(sys.argv[2])['train-idx3-ubyte'].batches('batch=64'): pass\n"
                  "except epochfs.Error as e: print(e)\n")
        root = os.path.dirname(os.path.dirname(os.environ["CASES"]))
        done = subprocess.run([sys.executable, "-c", script, f"{root}/python", MOUNTPOINT],
                              capture_output=True, text=True, check=False)
        contains(done.stdout + done.stderr, "SHA-256: ", "SHA256SUMS says")
    server.healthy()


def refuse(code, body, kind="application/xml"):
    def act(reply):
        reply.status, reply.body, reply.headers = code, body, {"Content-Type": kind}
    return act


def check_words(server, url):
    """The server's own sentence, and nothing of the query."""
    for code, body, words in (
            (403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
             "AccessDenied: Request has expired"),
            (403, b"<Error><Code>InvalidObjectState</Code><Message>The action is not valid for the "
             b"object's storage class</Message></Error>", "not valid for the object's storage class"),
            (403, b"Please log in first\n", "Please log in first"),
            (403, b"<html><title>Wait for approval</title></html>", "Wait for approval")):
        server.script("*", refuse(code, body), method=None)
        said(run("info", "-o", fresh("words"), f"{url}{SOURCE}?X-Amz-Signature=0123456789", code=2),
             words)
        server.healthy()
    server.script("*", refuse(403, b"bad signature 0123456789"), method=None)
    said(run("info", "-o", fresh("words"), f"{url}{SOURCE}?X-Amz-Signature=0123456789", code=2),
         "403")
    server.healthy()


with BadServer(WWW) as bad:
    top = f"{bad.url}/{SOURCE}"
    check_lacking(bad, top, "ETag", "ETag", "Last-Modified")
    check_lacking(bad, top, "ETag", "ETag")
    check_lacking(bad, top, "Last-Modified", "ETag", "Last-Modified")
    check_lacking(bad, top, "Last-Modified", "Last-Modified")
    check_silent_head(bad, top, ["ETag"])
    check_silent_head(bad, top, ["ETag", "Last-Modified"])
    check_silent_head(bad, top, ["ETag", "Last-Modified"], ["ETag"], LATER)
    check_same_etag(bad, top)
    check_no_version(bad, top)
    check_alternating(bad, top)
    check_flipped(bad, f"{bad.url}/")
    check_words(bad, f"{bad.url}/")
place(f"{PRIVATE}/bare", "x-idx3-ubyte", FIRST)
with Nginx(f"{PRIVATE}/bare", autoindex=False) as nginx:
    contains(run("info", "-o", fresh("bare"), f"{nginx.url}/", code=2),
             "sha256sum {} + > SHA256SUMS", "autoindex on;", "-o 'files=NAME;NAME'")
    subprocess.run("find . -type f ! -name SHA256SUMS -exec sha256sum {} + > SHA256SUMS",
                   shell=True, check=True, cwd=f"{PRIVATE}/bare")
    run("info", "-o", fresh("bare"), f"{nginx.url}/")
