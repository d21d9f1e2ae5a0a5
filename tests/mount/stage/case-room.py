#!/usr/bin/python3
"""epochfs stage with too little space: the bytes that it reports as staged are in the cache folder,
including those of other processes, and those under way when the space ran out."""

import os
import re
import subprocess

from bad_server import BadServer
from lib import PRIVATE, equal, run
from servers import MiB, disk_usage, place, sha256sums

WWW = f"{PRIVATE}/www"
FILES = 8
for i in range(FILES):
    place(WWW, f"file-{i}", os.urandom(2 * MiB))
sha256sums(WWW)


def cache(name, *options):
    return ",".join([f"cache={PRIVATE}/cache.{name}", "block=16K", *options])


def short_of(options, server):
    """The missing and the staged MiB, from the message about too little space."""
    said = run("stage", "-o", options, f"{server.url}/", code=4)
    found = re.search(r"expected ([0-9.]+) MiB more \(([0-9.]+) (MiB|B) of ([0-9.]+) MiB are staged\)", said)
    missing, staged, unit, total = found.groups() if found else (0, 0, said, 0)
    equal((unit, float(total)), ("MiB", 2.0 * FILES), said)
    equal(abs(float(missing) + float(staged) - float(total)) < 0.11, True, said)
    return float(staged)


def check_under_way(server):
    """Space for three files of eight: the reported bytes are in the folder, and do not shrink."""
    before = 0
    for _ in range(3):
        staged = short_of(cache("a", "cache_size=7M"), server)
        there = disk_usage(f"{PRIVATE}/cache.a") / MiB
        equal(staged >= before and abs(there - staged) < 0.7, True,
              f"{staged} MiB are said to be staged, {there} MiB are there, {before} MiB were")
        before = staged
    equal(before > 1, True, f"{before} MiB staged")


def check_others(server):
    """Other processes have staged the last three of eight files, and no other file fits."""
    for i in range(FILES - 3, FILES):
        run("stage", "-o", cache("b"), f"{server.url}/file-{i}")
    for options in ["cache_size=6300K"], ["cache_size=6300K", "jobs=2"]:
        equal(short_of(cache("b", *options), server), 6.0, "MiB of other processes")


def check_full_disk(server):
    """The disk is full."""
    folder = f"{PRIVATE}/cache.full"
    os.mkdir(folder)
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", folder],
                                      stderr=subprocess.DEVNULL).returncode:
        return
    try:
        for _ in range(2):
            staged = short_of(cache("full"), server)
            there = disk_usage(folder) / MiB
            equal(staged > 1 and abs(there - staged) < 0.7, True,
                  f"{staged} MiB are said to be staged, {there} MiB are there")
    finally:
        subprocess.run(["umount", folder], check=True)


with BadServer(WWW) as server:
    check_under_way(server)
    check_others(server)
    check_full_disk(server)
