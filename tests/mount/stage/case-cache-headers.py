#!/usr/bin/python3
"""cache_size= counts all that a staged file takes on disk: also its header and records, which for
small files is most of it. A file for whose header there is no room is served, and not staged."""

import os
import subprocess

from lib import CACHE, PRIVATE, contains, content, equal, mounted, path, run
from servers import Nginx, remote

WWW = os.path.join(PRIVATE, "www")
FILES, LIMIT = 300, 1 << 20


def row(i):
    return b"1 %d:1 %d:3\n" % (i, i + 1)


def disk():
    """What all files of the cache folder take: folders are the file system's."""
    found = subprocess.run(["find", CACHE, "-type", "f", "-printf", "%b\n"], check=True,
                           stdout=subprocess.PIPE).stdout.split()
    return sum(map(int, found)) * 512


os.mkdir(WWW)
for number in range(FILES):
    with open(f"{WWW}/f{number:03d}.txt", "wb") as file:
        file.write(row(number))
with Nginx(WWW) as server:
    contains(run("stage", "-o", f"cache={CACHE},cache_size=1M", server.url + "/", code=4), "cache_size=")
    equal(disk() <= LIMIT, True, f"stage: {disk()} bytes of a limit of {LIMIT}")
    few = len(os.listdir(f"{CACHE}/staged")) // 2  # two files for each
    equal(0 < few < FILES, True, f"{few} files are staged, within the limit")
    with mounted(server.url + "/", f"cache={CACHE}", "cache_size=1M", "stage=off"):
        for number in (*range(0, FILES, 7), FILES - 1):
            name = f"f{number:03d}.txt"
            equal(content(path(name, "source", name)), row(number), name)
        equal(len(content(path("all/batches/batch=all/svm/000000.svm")).splitlines()), FILES, "`all`")
        equal(remote()["errors"], 0, "errors")
        equal(disk() <= LIMIT, True, f"a mount: {disk()} bytes of a limit of {LIMIT}")
    run("stage", "-o", f"cache={CACHE},cache_size=100M", server.url + "/")
    equal(len(os.listdir(f"{CACHE}/staged")), 2 * FILES, "with room all of them are staged")
