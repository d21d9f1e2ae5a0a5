#!/usr/bin/python3
"""What is in the place of a staged file, an entry or a part and is no file of ours: links, pipes and
empty folders go, and what they name is not touched; a folder with something in it is named, with what
to do, by the mount that meets it, and no mount waits for it."""

import gzip
import os
import shutil

from lib import CACHE, PRIVATE, contains, content, equal, idx_bytes, mounted, path, run
from servers import Nginx

import numpy as np

WWW = os.path.join(PRIVATE, "www")
OTHER = os.path.join(PRIVATE, "other")
DATA = idx_bytes(np.arange(3000, dtype=np.uint8).reshape(30, 10, 10))


def stand(place, what):
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place)
    elif os.path.lexists(place):
        os.unlink(place)
    if what == "folder":
        os.mkdir(place)
    elif what == "full folder":
        os.mkdir(place)
        with open(f"{place}/mine", "w") as f:
            f.write("mine")
    elif what == "pipe":
        os.mkfifo(place)
    else:
        os.symlink(OTHER, place)


def staged():
    found = sorted(os.listdir(f"{CACHE}/staged"))
    equal([name[64:] for name in found], ["", ".content"], "staged files")
    return f"{CACHE}/staged/{found[0]}"


def read(url):
    with mounted(url, f"cache={CACHE}", "patience=5"):
        return content(path("images/source/images"))


def check_repaired(url):
    options = ["-o", f"cache={CACHE},patience=5", url]
    run("stage", *options)
    place = staged()
    for what in ("folder", "pipe", "link"):
        stand(place, what)
        equal(read(url) == DATA, True, f"a {what}: the bytes of a mount")
        stand(place, what)
        contains(run("stage", *options), "complete and correct")
        stand(place, what)
        contains(run("cache", "list", CACHE), "damaged")
        contains(run("cache", "verify", CACHE, code=4), os.path.basename(place), "removed")
        equal(os.path.lexists(place), False, f"a {what}: verify removes it")
        stand(place, what)
        contains(run("cache", "prune", "--dry-run", CACHE), os.path.basename(place))
        contains(run("cache", "prune", CACHE), os.path.basename(place), "1 file removed")
        equal(os.path.lexists(place), False, f"a {what}: prune removes it")
        with open(OTHER) as f:
            equal(f.read(), "other", f"a {what}: what a link leads to")
    return place


def check_named(url, place):
    """A folder that is not empty is not ours to remove."""
    wants = [place, "expected a file, got a folder that is not empty; remove it"]
    stand(place, "full folder")
    contains(run("stage", "-o", f"cache={CACHE},patience=600", url, code=4), *wants)
    contains(run("info", "-o", f"cache={CACHE}", url, code=2), *wants)
    contains(run("mount", "-o", f"cache={CACHE}", url, path(), code=2), *wants)
    contains(run("cache", "verify", CACHE, code=4), *wants)
    contains(run("cache", "prune", "--all", CACHE, code=4), *wants)
    equal(content(f"{place}/mine"), b"mine", "what is in the folder")
    shutil.rmtree(place)


def check_parts():
    """The part of an entry."""
    with open(f"{WWW}/images", "wb") as f:
        f.write(gzip.compress(DATA))
    for what in ("folder", "pipe", "link"):
        shutil.rmtree(CACHE)
        equal(read(f"{WWW}/images") == DATA, True, "unpacked")
        name, = os.listdir(f"{CACHE}/unpacked")
        os.unlink(f"{CACHE}/unpacked/{name}")
        stand(f"{CACHE}/unpacked/{name}.part", what)
        equal(read(f"{WWW}/images") == DATA, True, f"a {what} in the place of a part")


os.mkdir(WWW)
with open(OTHER, "w") as file:
    file.write("other")
with open(f"{WWW}/images", "wb") as file:
    file.write(DATA)
with Nginx(WWW) as server:
    check_named(f"{server.url}/images", check_repaired(f"{server.url}/images"))
check_parts()
