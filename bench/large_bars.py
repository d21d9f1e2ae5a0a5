#!/usr/bin/python3
"""The bars of large files that the kernel reads itself (bench/groups/large.sh): large_bars.py BAR

Each compares the first read through a new mount with the same read of the file itself, warm."""

import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

from bars import PRIVATE, ROUNDS, WWW, calm, dataset, floor, make_images, mb_per_s, mount, ratio, row, say, warm
from lib import equal, run, status

MiB = 1 << 20
SIZE_MB, READS, READERS = 1000, 2000, 4
FILES, SLICE = 4000, 400
NPZ_FILES, NPZ_BYTES = 20, 146_000_000


def passed(daemon):
    equal(status(daemon.at)["open"]["mode"], "pass", status(daemon.at)["open"]["reason"])


def by_dd(path):
    buffer = bytearray(MiB)
    with open(path, "rb", buffering=0) as f:
        while f.readinto(buffer):
            pass


def by_mmap(path):
    with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        for at in range(0, len(m), 4096):
            m[at]


def by_readers(path):
    threads = [threading.Thread(target=by_dd, args=(path,)) for _ in range(READERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def by_random_reads(path):
    rng, buffer = random.Random(5), bytearray(MiB)
    with open(path, "rb", buffering=0) as f:
        end = os.fstat(f.fileno()).st_size - MiB
        for _ in range(READS):
            os.preadv(f.fileno(), [buffer], rng.randrange(end))


WAYS = (("in pieces of 1 MiB", by_dd, 1), ("by mmap", by_mmap, 1), ("by 4 readers at once", by_readers, READERS),
        ("at random places, 1 MiB each", by_random_reads, READS * MiB / (SIZE_MB * 1e6)))


def seconds(read, path):
    begin = time.monotonic()
    read(path)
    return time.monotonic() - begin


def cached():
    """Bytes of the page cache."""
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("Cached:"))


def bar_whole():
    n = make_images("big", SIZE_MB)
    warm("big")
    for what, read, times in WAYS:
        took = {"pass": [], "cached": [], "file": []}
        for _ in range(ROUNDS):
            for mode in ("pass", "cached"):
                with mount(WWW, f"passthrough={mode},readahead=0") as daemon:
                    if mode == "pass":
                        passed(daemon)
                    path = f"{dataset(daemon.at)}/source/big"
                    took[mode].append(seconds(read, path))
            took["file"].append(seconds(read, f"{WWW}/big"))
        size = SIZE_MB * 1e6 * times
        row(f"first read of 1 GB {what}", mb_per_s(size, took["pass"]), f"file {mb_per_s(size, took['file'])}",
            ratio(took["file"], took["pass"]), ">=", 0.9)
        row("  the same with passthrough=off (no bar)", mb_per_s(size, took["cached"]),
            f"file {mb_per_s(size, took['file'])}", ratio(took["file"], took["cached"]), ">=", 0)
    more = {}
    for mode in ("pass", "cached"):
        calm()
        with mount(WWW, f"passthrough={mode},readahead=0") as daemon:
            before = cached()
            by_dd(f"{dataset(daemon.at)}/source/big")
            by_dd(f"{WWW}/big")
            more[mode] = (cached() - before) / (n * 784)
    row("page cache of reading it through the mount and directly", f"{more['pass']:.2f} times its bytes",
        f"passthrough=off {more['cached']:.2f}", more["pass"], "<=", 1.05)


def bar_staged():
    """The file staged from WWW. The first open of a mount compares all of it, later ones do not."""
    make_images("big", SIZE_MB)
    cache = f"{PRIVATE}/staged"
    run("stage", "-o", f"cache_dir={cache}", WWW)
    warm("big")
    for what, read, times in WAYS:
        took = {"first": [], "pass": [], "cached": [], "file": []}
        for _ in range(ROUNDS):
            with mount(WWW, f"passthrough=on,readahead=0,cache_dir={cache}") as daemon:
                passed(daemon)
                path = f"{dataset(daemon.at)}/source/big"
                took["first"].append(seconds(read, path))
                took["pass"].append(seconds(read, path))
                equal(status(daemon.at)["open"]["passed"] >= 2, True, "opens by the kernel")
            with mount(WWW, f"passthrough=off,readahead=0,cache_dir={cache}") as daemon:
                took["cached"].append(seconds(read, f"{dataset(daemon.at)}/source/big"))
            took["file"].append(seconds(read, f"{WWW}/big"))
        size = SIZE_MB * 1e6 * times
        row(f"staged 1 GB, compared before, {what}", mb_per_s(size, took["pass"]), f"file {mb_per_s(size, took['file'])}",
            ratio(took["file"], took["pass"]), ">=", 0.9)
        row("  first read of a mount: opening compares it", mb_per_s(size, took["first"]),
            f"passthrough=off {mb_per_s(size, took['cached'])}", ratio(took["cached"], took["first"]), ">=", 1)


def round_trip(cpus):
    """Microseconds of a byte to another process and back, each on a CPU of its own or on the same."""
    allowed, turns, took = os.sched_getaffinity(0), 2000, []
    there, back = os.pipe(), os.pipe()
    other = os.fork()
    if not other:
        os.sched_setaffinity(0, {cpus[-1]})
        os.close(there[1])
        while os.read(there[0], 1):
            os.write(back[1], b"x")
        os._exit(0)
    os.sched_setaffinity(0, {cpus[0]})
    for _ in range(turns):
        begin = time.monotonic()
        os.write(there[1], b"x")
        os.read(back[0], 1)
        took.append((time.monotonic() - begin) * 1e6)
    for end in (*there, *back):
        os.close(end)
    os.waitpid(other, 0)
    os.sched_setaffinity(0, allowed)
    return statistics.median(took)


def make_many():
    """FILES files in ten folders; again, as links, in one. Returns that one and the names."""
    names, flat, data = [f"c{i % 10}/{i:05d}.jpg" for i in range(FILES)], f"{PRIVATE}/flat", os.urandom(MiB + FILES)
    os.makedirs(flat)
    for i, name in enumerate(names):
        os.makedirs(f"{WWW}/{name[:2]}", exist_ok=True)
        with open(f"{WWW}/{name}", "wb") as f:
            f.write(data[i:i + MiB])
        os.link(f.name, f"{flat}/{name[3:]}")
    calm(drop=False)
    return flat, names


def read_all(folder, names):
    buffer, begin = bytearray(MiB), time.monotonic()
    for name in names:
        with open(f"{folder}/{name}", "rb", buffering=0) as f:
            equal(f.readinto(buffer), MiB)
    return time.monotonic() - begin


def list_all(folder):
    """Have the kernel know the names, as it knows those of files."""
    with os.scandir(folder) as entries:
        equal(sum(1 for e in entries if e.stat()), FILES)


def bar_many():
    """The sides take turns, SLICE files each, so that what else the machine does is the same for all; open=cached,
    which fills the memory, comes last."""
    flat, names = make_many()
    took = {"pass": [], "floor": [], "files": [], "cached": []}
    read_all(WWW, names)
    for turn in range(ROUNDS):
        rng = random.Random(turn)
        order, seconds_of = rng.sample(names, FILES), dict.fromkeys(("pass", "floor", "files"), 0.0)
        with mount(WWW, "passthrough=on,readahead=0") as daemon, floor(flat) as bare:
            passed(daemon)
            samples = f"{dataset(daemon.at)}/samples/raw"
            list_all(samples)
            for name in names:
                os.stat(f"{bare}/{name[3:]}")
            for at in range(0, FILES, SLICE):
                for side in rng.sample(sorted(seconds_of), len(seconds_of)):
                    some = order[at:at + SLICE]
                    folder = {"pass": samples, "floor": bare, "files": WWW}[side]
                    seconds_of[side] += read_all(folder, some if side == "files" else [name[3:] for name in some])
        for side, found in seconds_of.items():
            took[side].append(found)
        say("pass", f"{seconds_of['files'] / seconds_of['pass']:.3f}", "floor",
            f"{seconds_of['files'] / seconds_of['floor']:.3f}", "files", f"{seconds_of['files'] / FILES * 1e6:.0f} µs")
    for turn in range(min(ROUNDS, 3)):
        with mount(WWW, "passthrough=off,readahead=0") as daemon:
            samples = f"{dataset(daemon.at)}/samples/raw"
            list_all(samples)
            took["cached"].append(read_all(samples, [n[3:] for n in random.Random(turn).sample(names, FILES)]))
    rate = {k: f"{FILES / statistics.median(v):.0f} files/s" for k, v in took.items()}
    row("open, read, close of 4,000 files of 1 MiB, random order", rate["pass"], f"files {rate['files']}",
        ratio(took["files"], took["pass"]), ">=", 0.6)
    row("the same", rate["pass"], f"passthrough=off {rate['cached']}", ratio(took["cached"], took["pass"]), ">=", 2)
    row("  by a daemon that only opens files", rate["floor"], f"files {rate['files']}",
        ratio(took["files"], took["floor"]), "-", 0)
    row("  epochfs against that daemon", rate["pass"], f"that {rate['floor']}", ratio(took["floor"], took["pass"]), ">=", 0.85)
    cpus = sorted(os.sched_getaffinity(0))
    apart, beside = round_trip(cpus), round_trip(cpus[:1])
    row("  a byte to a process on another core and back", f"{apart:.1f} µs", f"on the same core {beside:.1f} µs",
        apart / beside, "-", 0)


# A process of a training job: loads the arrays of the files of each line, a file after another.
WORKER = """
import json, sys
import numpy as np
for line in sys.stdin:
    for path in json.loads(line):
        with np.load(path) as arrays:
            print(sum(arrays[name].nbytes for name in arrays.files))
    print("end", flush=True)
"""


class Workers:
    def __init__(self, n):
        self.jobs = [subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                     for _ in range(n)]

    def load(self, paths):
        """All files, shared among the processes. Returns the seconds."""
        begin, found = time.monotonic(), 0
        for k, job in enumerate(self.jobs):
            job.stdin.write(json.dumps(paths[k::len(self.jobs)]) + "\n")
            job.stdin.flush()
        for job in self.jobs:
            while (line := job.stdout.readline().strip()) != "end":
                found += int(line)
        equal(found >= NPZ_FILES * NPZ_BYTES, True, "bytes of the arrays")
        return time.monotonic() - begin

    def end(self):
        for job in self.jobs:
            job.stdin.close()
            job.wait()


def bar_npz():
    """20 files of 146 MB, as MLPerf Storage's 3-D segmentation has them, from the mount's source/ folders."""
    folder, names = f"{WWW}/npz", [f"case_{i:05d}" for i in range(NPZ_FILES)]
    os.makedirs(folder)
    for name in names:
        x = np.frombuffer(os.urandom(NPZ_BYTES), "u1").reshape(-1, 1000, 1000)
        np.savez(f"{folder}/{name}.npz", x=x, y=np.zeros(len(x), "i8"))
    cache = f"{PRIVATE}/staged-npz"
    run("stage", "-o", f"cache_dir={cache}", folder)
    calm(drop=False)
    took = {"local": [], "staged": [], "files": []}
    workers = Workers(READERS)
    with mount(folder, "passthrough=on,readahead=0", name="local") as local, \
            mount(folder, f"passthrough=on,readahead=0,cache_dir={cache}", name="staged") as staged:
        passed(local)
        passed(staged)
        paths = {"files": [f"{folder}/{name}.npz" for name in names],
                 "local": [f"{local.at}/{name}/source/{name}.npz" for name in names],
                 "staged": [f"{staged.at}/{name}/source/{name}.npz" for name in names]}
        for turn in range(ROUNDS + 1):  # the first brings all into memory, and compares what is staged
            for way in random.Random(turn).sample(sorted(took), len(took)):
                found = workers.load(paths[way])
                took[way] += [found] if turn else []
    workers.end()
    size = sum(os.path.getsize(path) for path in paths["files"])
    for way in ("local", "staged"):
        row(f"20 npz of 146 MB by np.load in 4 processes, {way}", mb_per_s(size, took[way]),
            f"files {mb_per_s(size, took['files'])}", ratio(took["files"], took[way]), ">=", 0.9)


globals()[f"bar_{sys.argv[1]}"]()
