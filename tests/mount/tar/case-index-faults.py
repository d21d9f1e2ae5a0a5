#!/usr/bin/python3
"""`epochfs index` of a bucket, whose mounts then use what lies next to the data; on a full disk, and interrupted:
nothing is left behind, and the old files are kept."""

import os
import signal
import subprocess

import numpy as np

from fake_s3 import FakeS3
from lib import CACHE, PRIVATE, content, contains, equal, log_text, path, run, stop
from servers import Nginx, start_at, wait_until
from tar_model import Shards, shard

rng = np.random.default_rng(61)
N = 6
DATA = [shard([(f"{i:02d}{k:04d}.{ext}", body) for k in range(8)
               for ext, body in (("jpg", rng.bytes(40_000)), ("cls", b"%d" % k))]) for i in range(N)]
OUT = f"{PRIVATE}/out"


def files(folder):
    return {name: content(folder, name) for name in sorted(os.listdir(folder))}


def plain(found):
    """The files, whose table has no versions: those differ from place to place."""
    table = found["index.txt"].decode().splitlines()
    lines = [line.split(" ") for line in table]
    return {**found, "index.txt": [line[:3] + line[4:] if line[0] == "file" else line for line in lines]}


def check_bucket():
    """What `epochfs index` writes of a bucket is put next to the data; a new mount then reads less."""
    with FakeS3({f"set/s-{i}.tar": data for i, data in enumerate(DATA)}) as s3:
        os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
        asked = {}
        contains(run("index", "s3://data/set", "-o", OUT, "-o", f"anonymous,cache={CACHE}.made"),
                 f"{N} indexes written")
        for turn in ("without", "with"):
            before = s3.objects
            daemon = start_at(turn, "s3://data/set", f"anonymous,cache={CACHE}.{turn},stage=off,block=4K")
            ds = Shards(f"{daemon.at}/all", *DATA)
            ds.check_listing()
            asked[turn] = s3.objects - before
            for i in (0, 9, 8 * N - 1):
                ds.check_sample(i)
            equal("is ignored" in log_text(f"log.{turn}"), False, log_text(f"log.{turn}"))
            stop(daemon)
            for name, data in files(OUT).items():
                s3.put(f"set/.epochfs/{name}", data)
        print(f"requests for objects until {N} shards are ready: {asked}")
        equal(asked["with"] < asked["without"], True, f"{asked}")
    return files(OUT)


def check_full(good):
    """A disk without room: exit code 4, with the reason, and an earlier folder stays as it was."""
    disk = f"{PRIVATE}/disk"
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "full", disk], check=True)
    try:
        with Nginx(f"{PRIVATE}/www") as server:
            for _ in range(2):
                contains(run("index", f"{server.url}/", "-o", f"{disk}/.epochfs", "-o", f"cache={CACHE}.full", code=4),
                         "No space left on device")
                equal(os.listdir(disk), [], "what is left on the disk")
            os.mkdir(f"{disk}/.epochfs")
            for name in list(good)[-1:]:
                with open(f"{disk}/.epochfs/{name}", "wb") as f:
                    f.write(good[name])
            before = files(f"{disk}/.epochfs")
            run("index", f"{server.url}/", "-o", f"{disk}/.epochfs", "-o", f"cache={CACHE}.full", code=4)
            equal(files(f"{disk}/.epochfs") == before, True, "the folder of before")
            equal(os.listdir(disk), [".epochfs"], "what is left on the disk")
    finally:
        subprocess.run(["umount", disk], check=True)


def check_interrupted(good):
    """Ctrl-C while shards come slowly: no folder, and the next run writes all."""
    out = f"{PRIVATE}/interrupted/.epochfs"
    os.mkdir(os.path.dirname(out))
    command = [os.environ["EPOCHFS"], "index", "-o", out, "-o", f"cache={CACHE}.cut"]
    with Nginx(f"{PRIVATE}/www", limit_rate=4000) as server:
        process = subprocess.Popen([*command, f"{server.url}/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: server.log(), "a shard is read", process)
        process.send_signal(signal.SIGINT)
        equal(process.wait(60) != 0, True, "exit code")
        equal(os.listdir(os.path.dirname(out)), [], "what is left")
    with Nginx(f"{PRIVATE}/www") as server:
        run(*command[1:], f"{server.url}/")
    equal(plain(files(out)) == plain(good), True, "what the next run wrote")


def check_two_writers(good):
    """Several at once write the same folder, which is new, or is replaced: each ends well, and one folder is left."""
    out = f"{PRIVATE}/two/.epochfs"
    os.mkdir(os.path.dirname(out))
    for _ in range(5):
        writers = [subprocess.Popen([os.environ["EPOCHFS"], "index", f"{PRIVATE}/www", "-o", out, "-o",
                                     f"cache={CACHE}.two{i}"], stdout=subprocess.DEVNULL) for i in range(4)]
        equal([writer.wait(60) for writer in writers], [0] * 4, "exit codes")
        equal(os.listdir(os.path.dirname(out)), [".epochfs"], "what is left")
        equal(plain(files(out)) == plain(good), True, "what they wrote")


os.mkdir(f"{PRIVATE}/www")
for number, bytes_ in enumerate(DATA):
    with open(f"{PRIVATE}/www/s-{number}.tar", "wb") as file:
        file.write(bytes_)
made = check_bucket()
if not os.geteuid():
    check_full(made)
check_interrupted(made)
check_two_writers(made)
