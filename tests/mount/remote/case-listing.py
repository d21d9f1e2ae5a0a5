#!/usr/bin/python3
# slow: many kinds of servers
"""How the files of a web server are listed: SHA256SUMS, its index page, files=, or SOURCE is one
file. Also packed files, redirects, names of all kinds, and pages that are no listing."""

import gzip
import hashlib
import json
import os
import pty
import subprocess
import urllib.parse

import numpy as np

from lib import (DEADLINE, EPOCHFS, PRIVATE, SOURCE, contains, content, equal, idx_bytes, log_text, mounted,
                 path, run, small, text)
from servers import Nginx, check_once, place, sha256sums

WWW = f"{PRIVATE}/www"
images, labels = small(40)
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
BIG = idx_bytes(np.random.default_rng(3).integers(0, 256, (300, 30, 40), dtype=np.uint8))
ODD = idx_bytes(np.arange(200, dtype=np.uint8))
ODD_NAMES = ["with space", "plus+and%25percent", "ümlaut", "semi;colon", "a&b=c", "quote'\"s",
             "[brackets]", "tilde~", "at@sign", "comma,name"]
CACHES = iter(range(100))


def fresh(*options):
    """The option for a new cache folder."""
    return ",".join([f"cache={PRIVATE}/cache.{next(CACHES)}", *options])


def fill(folder):
    for name in NAMES:
        place(f"{WWW}/{folder}", name, content(SOURCE, name))


def check_train(*below):
    for i in (0, 17, 39):
        equal(content(path(*below, f"train/samples/raw/{i:06d}.image.raw")), images[i].tobytes(),
              f"image {i}")
    with np.load(path(*below, "train/batches/batch=all/npz/000000.npz")) as z:
        equal(np.array_equal(z["image"], images) and np.array_equal(z["label"], labels), True,
              "the whole batch")


# ---- SHA256SUMS: other files do not exist; binary marks, subfolders, "./" ----
fill("sums/sub")
place(f"{WWW}/sums", "big", BIG)
place(f"{WWW}/sums", "not-listed", ODD)
sha256sums(f"{WWW}/sums", "big", *(f"sub/{name}" for name in NAMES))
lines = text(WWW, "sums/SHA256SUMS").splitlines()
place(f"{WWW}/sums", "SHA256SUMS", "\n".join(
    [lines[0].replace("  ", " *"), lines[1].replace("  ", "  ./"), "", lines[2]]).encode())
with Nginx(WWW, autoindex=False) as server:
    with mounted(f"{server.url}/sums/", fresh()):
        check_train("sub")
        equal(content(path("big/source/big")) == BIG, True, "big")
        equal(os.path.exists(path("not-listed")), False, "a file that SHA256SUMS does not name")
    check_once(server.log(), {"/sums/big": len(BIG), **{
        f"/sums/sub/{name}": os.path.getsize(f"{SOURCE}/{name}") for name in NAMES}}, "SHA256SUMS")
    contains(run("info", "-o", fresh(), f"{server.url}/sums/"), "train", "big")
    contains(run("info", "-o", fresh(), f"HtTp{server.url[4:]}/sums/"), "train", "big")

    # ---- files=, a single file, nothing at all: no index, no SHA256SUMS ----
    fill("bare/sub")
    place(f"{WWW}/bare", "big", BIG)
    for url in (f"{server.url}/bare/", f"{server.url}/bare"):  # nginx says 403
        contains(run("info", "-o", fresh(), url, code=2), "SHA256SUMS", "index page",
                 "-o 'files=NAME;NAME'")
    with mounted(f"{server.url}/bare/", fresh("files=big;" + ";".join(f"sub/{n}" for n in NAMES))):
        check_train("sub")
        equal(content(path("big/source/big")) == BIG, True, "big by files=")
    for source in (f"{server.url}/bare/big", f"{server.url}/sums/big"):
        with mounted(source, fresh()):
            equal(content(path("big/source/big")) == BIG, True, "a file on its own")
            equal([n for n in os.listdir(path()) if os.path.isdir(path(n)) and n[0] != "."],
                  ["big"], "a file on its own")
    contains(run("info", "-o", fresh(), f"{server.url}/bare/none", code=2), "none")
    contains(run("info", "-o", fresh("files=big;missing"), f"{server.url}/bare/"), "missing")
    contains(run("info", "-o", fresh(), f"http://127.0.0.1:1/{'x'}", code=2), "127.0.0.1")

# ---- the index page: folders in folders, names of all kinds, links that lead elsewhere ----
fill("index/sub/deeper")
for name in ODD_NAMES:
    place(f"{WWW}/index", name, ODD)
place(f"{WWW}/index", ".hidden", ODD)
with Nginx(WWW) as server:
    with mounted(f"{server.url}/index/", fresh()):
        check_train("sub/deeper")
        for name in ODD_NAMES:
            equal(content(path(name, "source", name)), ODD, f"{name!r} by the index page")
    equal([r for r in server.log(False) if not r.path.startswith("/index")], [],
          "requests outside of SOURCE")
    listed = [r.path for r in server.log(False) if r.path.endswith("/")]
    equal(sorted(set(listed)), ["/index/", "/index/sub/", "/index/sub/deeper/"], "index pages")

# Pages as Apache and others make them; absolute links, sorting links, other hosts, parents.
place(f"{WWW}/apache", "data-one", ODD)
place(f"{WWW}/apache", "data two", BIG)
place(f"{WWW}/apache", "index.html", f"""<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html><head><title>Index of /apache</title></head><body><h1>Index of /apache</h1><table>
<tr><th><a href="?C=N;O=D">Name</a></th><th><a href='?C=M;O=A'>Last modified</a></th></tr>
<tr><td><a href="/">Parent Directory</a></td></tr><tr><td><A HREF="../">up</A></td></tr>
<tr><td><a href="data-one">data-one</a></td></tr><tr><td><a
 class="x" href="{urllib.parse.quote('data two')}">data two</a></td></tr>
<tr><td><a href="http://example.invalid/e1">x</a><a href="//example.invalid/e2">y</a></td></tr>
<tr><td><a href="../sums/big">z</a><a href="/sums/big">z</a><a href="#top">top</a>
<a href="mailto:me@example.invalid">m</a><a href="javascript:void(0)">j</a>
<a href="%2e%2e/sums/big">dots</a><a href="..%2fsums%2fbig">dots</a><a href="">e</a></td></tr>
</table></body></html>""".encode())
with Nginx(WWW) as server, mounted(f"{server.url}/apache/", fresh()):
    equal(content(path("data-one/source/data-one")), ODD, "a page as Apache makes them")
    equal(content(path("data two/source/data two")) == BIG, True, "a name with a blank")
    equal([r.path for r in server.log() if not r.path.startswith("/apache/")], [],
          "files outside of SOURCE")

# ---- a SHA256SUMS that leads elsewhere ----
place(f"{WWW}/evil", "good", ODD)
place(f"{WWW}/evil", "SHA256SUMS", b"".join(b"%064d  %b\n" % (0, name) for name in (
    b"../sums/big", b"/etc/passwd", b"a/../../sums/big", b"..", b".", b"", b"a//b", b"x\0y",
    b"http://127.0.0.1:1/x", b"%2e%2e/sums/big")) + b"no sum at all\n" + b"\xff\xfe" * 50 + b"\n")
with Nginx(WWW) as server:
    run("info", "-o", fresh(), f"{server.url}/evil/", code=2)
    place(f"{WWW}/evil", "SHA256SUMS", content(WWW, "evil/SHA256SUMS") + b"%s  good\n" % (
        hashlib.sha256(ODD).hexdigest().encode()))
    note = "SHA256SUMS: 11 of 13 lines ignored"
    contains(run("info", "-o", fresh(), f"{server.url}/evil/"), f"note     {note}")
    contains(json.loads(run("info", "--json", "-o", fresh(), f"{server.url}/evil/"))["notes"][0],
             note)
    contains(run("stage", "-o", fresh(), f"{server.url}/evil/", code=2), note)
    with mounted(f"{server.url}/evil/", fresh(), log="log.evil"):
        contains(log_text("log.evil"), note)
    equal([r for r in server.log() if not r.path.startswith("/evil/")], [], "outside of SOURCE")

# ---- packed files: unpacked while they are staged; fetched once ----
for name in NAMES:
    place(f"{WWW}/packed", f"{name}.gz", gzip.compress(content(SOURCE, name), mtime=0))
place(f"{WWW}/packed", "big.gz", gzip.compress(BIG, mtime=0))
place(f"{WWW}/packed", "cut.gz", gzip.compress(BIG, mtime=0)[:-3000])
sizes = {f"/packed/{n}": os.path.getsize(f"{WWW}/packed/{n}") for n in os.listdir(f"{WWW}/packed")}
with Nginx(WWW) as server:
    options = fresh()
    for _ in range(2):
        with mounted(f"{server.url}/packed/", options):
            check_train()
            equal(content(path("big/source/big")) == BIG, True, "unpacked")
            contains(text(path("cut.gz/ERROR.txt")), "cut.gz")
    check_once(server.log(), sizes, "packed files, two mounts")

# Long unpacking is shown on a terminal, and nowhere else.
with Nginx(WWW, more=f"location /slow/ {{ alias {WWW}/packed/; limit_rate 60k; }}") as server:
    for is_terminal in (True, False):
        ours, theirs = pty.openpty() if is_terminal else os.pipe()
        done = subprocess.run([EPOCHFS, "mount", "-o", fresh("jobs=2,stage=off"),
                               f"{server.url}/slow/big.gz", path()], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=theirs, timeout=DEADLINE, check=False)
        os.write(theirs, b"end")
        said = os.read(ours, 65536).decode()
        os.close(ours)
        os.close(theirs)
        equal(done.returncode, 0, f"mount: {said}")
        equal(content(path("big/source/big")) == BIG, True, "unpacked slowly")
        run("umount", path())
        if is_terminal:
            contains(said, "unpacked of big.gz: 256 KiB of", " %")
        else:
            equal(said, "end", "what is said where there is no terminal")

# ---- a user from ~/.netrc: sent to the server; messages have only the name ----
os.makedirs(f"{PRIVATE}/home")
with open(f"{PRIVATE}/passwords", "w", encoding="ascii") as f:
    f.write("me:{PLAIN}hush-hush\n")
with Nginx(WWW, more=f"""
        location /locked/ {{ auth_basic "locked"; auth_basic_user_file {PRIVATE}/passwords;
                             alias {WWW}/sums/; }}""") as server:
    home = {**os.environ, "HOME": f"{PRIVATE}/home"}
    for url in (f"{server.url}/locked/", f"{server.url}/locked/big"):
        said = run("info", "-o", fresh(), url, code=2, env=home)
        contains(said, "401", "it expects a user: put one into ~/.netrc")
        equal("files=" in said, False, f"advice that does not help: {said}")
    with open(f"{PRIVATE}/home/.netrc", "w", encoding="ascii") as f:
        f.write("machine 127.0.0.1 login me password wrong\n")
    contains(run("info", "-o", fresh(), f"{server.url}/locked/", code=2, env=home), "401",
             "it was asked as machine 127.0.0.1 of ~/.netrc")
    with open(f"{PRIVATE}/home/.netrc", "w", encoding="ascii") as f:
        f.write("machine 127.0.0.1 login me password hush-hush\n")
    said = run("info", "-o", fresh(), f"{server.url}/locked/", env=home)
    contains(said, "big", "credentials  machine 127.0.0.1 of ~/.netrc")
    equal("hush" in said, False, f"info names the password: {said}")
    found = json.loads(run("info", "--json", "-o", fresh(), f"{server.url}/locked/", env=home))
    equal(found["credentials"], "machine 127.0.0.1 of ~/.netrc", "info --json")

# ---- redirects, on the server and to another one ----
with Nginx(WWW) as other, Nginx(WWW, more=f"""
        location /moved/ {{ return 301 /sums/; }}
        location = /far/big {{ return 302 {other.url}/sums/big; }}
        location = /r307/big {{ return 307 /far/big; }}
        location = /r308/big {{ return 308 /sums/big; }}
        location = /loop/big {{ return 302 /loop/big; }}""") as server:
    for folder in ("far", "r307", "r308"):
        with mounted(f"{server.url}/{folder}/big", fresh()):
            equal(content(path("big/source/big")) == BIG, True, f"redirected: {folder}")
    check_once(other.log(), {"/sums/big": len(BIG)}, "redirected, into two cache folders",
               spare=len(BIG))
    contains(run("info", "-o", fresh(), f"{server.url}/loop/big", code=2), "big")
