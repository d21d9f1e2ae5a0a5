#!/usr/bin/python3
"""A cache folder that other datasets have filled: what no process uses makes place, the oldest first. What is in use
is kept, and the mount says so, with what to type."""

import contextlib
import os

import numpy as np

from lib import MOUNTPOINT, PRIVATE, contains, content, equal, idx_bytes, log_text, mounted, path, run, stop
from servers import MiB, Nginx, disk_usage, files_below, place, remote, start_at, wait_staged, wait_until

WWW, CACHE = f"{PRIVATE}/www", f"{PRIVATE}/crowded"
SIZES = {"old": 12, "older": 6, "new": 3}
rng = np.random.default_rng(5)
DATA = {name: idx_bytes(rng.integers(0, 256, (size, 1024, 1024), dtype=np.uint8)) for name, size in SIZES.items()}
for name, data in DATA.items():
    place(WWW, f"{name}/{name}-data", data)


def fill(server, *names):
    """Stage datasets, used long ago, the first one last."""
    for i, name in enumerate(names):
        before = {p for p, _ in files_below(CACHE)} if os.path.exists(CACHE) else set()
        run("stage", "-o", f"cache={CACHE}", f"{server.url}/{name}/")
        for p, _ in files_below(CACHE):
            if p not in before and "/staged/" in p:
                os.utime(p, (10000 - 1000 * i,) * 2)


def staged():
    """The datasets of which files are staged."""
    return {name for name in SIZES if f"/{name}/" in run("cache", "list", CACHE)}


def check_unused(server):
    """A limit that older data exceed: they go, and the new one is staged."""
    fill(server, "old", "older")
    with mounted(f"{server.url}/new/", f"cache={CACHE},cache_size=5M"):
        wait_staged(total=len(DATA["new"]))
        equal(disk_usage(CACHE) <= 5 * MiB, True, "a limit is a limit")
        equal(content(path("new-data/source/new-data")) == DATA["new"], True, "bytes")
        equal(remote()["space_note"], "", "a note")
    equal(staged(), {"new"}, "what is left")
    equal("cache folder" in log_text(), False, log_text())


def check_oldest_first(server):
    """No more goes than must."""
    fill(server, "old", "older")
    with mounted(f"{server.url}/new/", f"cache={CACHE},cache_size=19M"):
        wait_staged(total=len(DATA["new"]))
    equal(staged(), {"new", "old"}, "what is left")


def check_own(server):
    """The dataset's own files are not unused, whatever their times are."""
    fill(server, "new", "older")
    with mounted(f"{server.url}/new/", f"cache={CACHE},cache_size=5M"):
        equal(content(path("new-data/source/new-data")) == DATA["new"], True, "bytes")
        equal(remote()["demand_bytes"] + remote()["background_bytes"] < MiB, True, "fetched again")


def check_in_use(server):
    """Another mount uses them: one line at the mount, and in the status, says what to do."""
    fill(server, "older")
    other = start_at("other", f"{server.url}/older/", f"cache={CACHE}")
    content(other.at, "older-data/source/older-data")
    with mounted(f"{server.url}/new/", f"cache={CACHE},cache_size=7M"):
        want = ("other files in use take 6.", "of its limit of 7.0 MiB", "of the 3.0 MiB of the source remain cached",
                "Use a larger cache_size=, or evict=plan")
        contains(log_text(), f"cache folder {CACHE}: ", *want)
        equal(content(path("new-data/source/new-data")) == DATA["new"], True, "bytes")
        wait_until(lambda: remote()["refused_inserts"], "a refusal")
        contains(remote()["space_note"], *want)
        said = run("status", MOUNTPOINT)
        contains(said, "note      cache folder", *want)
        contains(said, "of 7.0 MiB (cache_size=; default: 80 % of its disk)")
    stop(other)
    equal(staged() >= {"older"}, True, "what is left")


def check_small(server):
    """A cache that is smaller than the source."""
    with mounted(f"{server.url}/old/", f"cache={CACHE},cache_size=5M"):
        contains(log_text(), "its limit of 5.0 MiB is small", "of the 12.0 MiB of the source remain cached",
                 "Use a larger cache_size=, or evict=plan")


with Nginx(WWW) as origin:
    for check in (check_unused, check_oldest_first, check_own, check_in_use, check_small):
        check(origin)
        run("cache", "prune", "--all", CACHE)
        with contextlib.suppress(FileNotFoundError):
            os.truncate(f"{PRIVATE}/log", 0)
