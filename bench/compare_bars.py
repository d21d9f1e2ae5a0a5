#!/usr/bin/python3
"""The bars of bench/groups/compare.sh: compare_bars.py BAR

A bucket of OBJECTS objects behind a connection of RATE and DELAY, read once by one reader in random order, through a new mount
with an empty cache, and then through another mount with the cache that the first has left. And members of a tar archive in random
order. All sides in turn, each round with another one first; the ratio is the median over the rounds."""

import contextlib
import io
import os
import random
import statistics
import subprocess
import sys
import tarfile
import time
import types
import zlib

import lib
from bars import ROUNDS, Far, calm, empty, mount, ratio, row, say
from fake_s3 import FakeS3
from lib import PRIVATE, equal
from servers import end_process, wait_until

OBJECTS, OBJECT = 200, 100_000
RATE, DELAY = 80_000_000, 0.01  # bytes per second, seconds until an answer begins
MEMBERS, MEMBER, READ = 3000, 12_000, 300
rng = random.Random(7)


def picture(size):
    return b"\xff\xd8\xff\xe0" + rng.randbytes(size - 4)


def read(path):
    """A number of its bytes, for both sides must give the same."""
    with open(path, "rb") as f:
        return zlib.crc32(f.read())


@contextlib.contextmanager
def foreign(command, at, **environment):
    """Another program's mount, which stays in front."""
    os.makedirs(at, exist_ok=True)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env={**ours, **environment})
    try:
        wait_until(lambda: lib.mount_type(at), f"{command[0]} has mounted", process)
        yield at
    finally:
        subprocess.run(["umount", at], check=False)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:  # s3fs does not always end
            end_process(process)


def turns(sides):
    """{name: function that returns a list of seconds}: their results, a list a round for each."""
    found = {name: [] for name in sides}
    names = list(sides)
    for i in range(ROUNDS):
        for k in range(len(names)):
            name = names[(k + i) % len(names)]
            found[name].append(sides[name]())
        say("  ".join(f"{name} {' '.join(f'{t:.2f}' for t in found[name][-1])}" for name in names))
    return found


def rows(what, found, unit, most):
    """A row for each other side. What each round gave at place `unit` of its list; most: the bound."""
    ours = [times[unit] for times in found["epochfs"]]
    for name in found:
        if name != "epochfs":
            theirs = [times[unit] for times in found[name]]
            row(what, f"{statistics.median(ours):.2f} s", f"{name} {statistics.median(theirs):.2f} s", ratio(theirs, ours), ">=", most)


# ---- a bucket ----

def bar_bucket():
    names = [f"{i:04d}.jpg" for i in range(OBJECTS)]
    objects = {name: picture(OBJECT) for name in names}
    right = sum(map(zlib.crc32, objects.values()))
    s3 = FakeS3(objects)
    order = random.Random(3).sample(names, OBJECTS)
    requests = {}
    with s3:
        far_server = types.SimpleNamespace(port=int(s3.endpoint.rsplit(":", 1)[1]))

        def passes(name, mounted):
            """Two mounts, one after the other; the times of each until all objects are read."""
            cache, times = f"{PRIVATE}/cache.{name}", []
            empty(cache)
            os.makedirs(cache)
            with Far(far_server, RATE, delay=DELAY) as far:
                before = far.seen()
                for _ in range(2):
                    calm()
                    begin = time.monotonic()
                    with mounted(far.urls[0], cache) as folder:
                        equal(sum(read(f"{folder}/{key}") for key in order), right, f"{name}: bytes")
                        times.append(time.monotonic() - begin)
                    after = far.seen()
                    requests.setdefault(name, []).append(tuple(after[k] - before[k] for k in ("requests", "bytes")))
                    before = after
            return times

        @contextlib.contextmanager
        def ours(url, cache):
            with mount("s3://data/", f"cache_dir={cache},anonymous,endpoint_url={url}") as daemon:
                yield f"{daemon.at}/all/samples/raw"

        def s3fs(url, cache):
            at, secret = f"{PRIVATE}/s3fs", f"{PRIVATE}/s3fs.secret"
            with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
                f.write("key:secret\n")
            return foreign(["s3fs", "data", at, "-f", "-o", f"url={url},use_path_request_style,listobjectsv2,"
                            f"use_cache={cache},passwd_file={secret},ro"], at)

        def rclone(url, cache):
            at = f"{PRIVATE}/rclone"
            return foreign(["rclone", "mount", ":s3:data", at, "--vfs-cache-mode", "full", "--cache-dir", cache, "--read-only",
                            "--config", f"{PRIVATE}/no-rclone.conf"], at, RCLONE_S3_PROVIDER="Other", RCLONE_S3_ENDPOINT=url,
                           RCLONE_S3_ACCESS_KEY_ID="key", RCLONE_S3_SECRET_ACCESS_KEY="secret", RCLONE_S3_LIST_VERSION="2")

        found = turns({name: (lambda name=name, side=side: passes(name, side))
                       for name, side in (("epochfs", ours), ("s3fs", s3fs), ("rclone", rclone))})
    for name, counted in requests.items():
        for k in range(2):
            some = counted[k::2]
            say(f"{name}, {('first', 'second')[k]} mount: {statistics.median(r for r, _ in some):.0f} requests, "
                f"{statistics.median(b for _, b in some) / (OBJECTS * OBJECT):.2f} times the bytes")
    rows(f"{OBJECTS} objects of S3, one reader, empty cache", found, 0, 1)
    rows("the same, a later mount with that cache", found, 1, 1)


# ---- an archive ----

def bar_archive():
    archive = f"{PRIVATE}/pictures.tar"
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(MEMBERS):
            member = tarfile.TarInfo(f"{i:06d}.jpg")
            member.size = MEMBER
            tar.addfile(member, io.BytesIO(picture(MEMBER)))
    order = random.Random(4).sample(range(MEMBERS), READ)
    with tarfile.open(archive) as tar:
        right = sum(zlib.crc32(tar.extractfile(f"{i:06d}.jpg").read()) for i in order)

    def side(mounted):
        empty(f"{PRIVATE}/cache")
        calm()
        begin = time.monotonic()
        with mounted() as folder:
            total = sum(read(f"{folder}/{i:06d}.jpg") for i in order)
            took = time.monotonic() - begin
        equal(total, right, "bytes")
        return [took]

    @contextlib.contextmanager
    def ours():
        with mount(archive, f"cache_dir={PRIVATE}/cache") as daemon:
            yield f"{daemon.at}/pictures.tar/samples/raw"

    def theirs():
        at = f"{PRIVATE}/archivemount"
        return foreign(["archivemount", "-f", "-o", "readonly", archive, at], at)

    found = turns({"epochfs": lambda: side(ours), "archivemount": lambda: side(theirs)})
    rows(f"{READ} of {MEMBERS} members of a tar, random, with the mount", found, 0, 1)


globals()[f"bar_{sys.argv[1]}"]()
