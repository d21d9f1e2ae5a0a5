#!/usr/bin/python3
"""The bars of first reads (bench/groups/first.sh): first_bars.py BAR

Prints the rows of the table as cache_bars.py does. Both sides of a ratio read the same bytes in turn, and
the memory that they use was touched before.
"""

import os
import random
import statistics
import subprocess
import sys
import tarfile
import time

from bars import FAST, ROUNDS, TRAIN, WWW, dataset, dd, empty, floor, make_images, mb_per_s, mount, ratio, row, seconds
from lib import EPOCHFS, PRIVATE, equal
from memory_group import memory_group
from servers import Nginx, remote
from tar_make import make as make_tar

PROGRAM = os.path.join(os.path.dirname(EPOCHFS), "epochfs-bench-first")
TFRECORD = os.path.join(os.path.dirname(EPOCHFS), "epochfs-bench-tfrecord")
SAMPLES, IMAGE, BATCH = 500_000, 784, 1024
SIZE = SAMPLES * IMAGE
BATCHES = -(-SAMPLES // BATCH)
IDX_HEAD = 16
SOURCE, IDX = f"{PRIVATE}/source", f"{PRIVATE}/source/train-images-idx3-ubyte"
os.environ["EPOCHFS_CACHE"] = f"{PRIVATE}/cache"  # for the daemons; cache_dir= would copy the source
DEPTH = 32
JOBS = 8


def program(*arguments, **kwargs):
    out = subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True, **kwargs)
    return [int(word) for word in out.stdout.split()]


def touch(epochs=1):
    """The page cache of the source and of the mount, the batches, and some more."""
    program("touch", (epochs + 3) * SIZE >> 20)


def make_idx():
    os.makedirs(SOURCE, exist_ok=True)
    with open(IDX, "wb") as f:
        f.write(b"".join(v.to_bytes(4, "big") for v in (0x803, SAMPLES, 28, 28)))
        for _ in range(0, SIZE, SIZE // 8):
            f.write(os.urandom(SIZE // 8))
        f.flush()
        os.fsync(f.fileno())


def forget(*paths):
    """Drop these files from the page cache."""
    for path in paths:
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_files(folder, most=None, names=None):
    """Seconds and bytes of reading the files of a folder in order into one buffer. npy: those of the source's field."""
    buffer, size = bytearray(8 << 20), 0
    for name in names or ():  # the kernel knows them then, as after a listing
        os.stat(f"{folder}/{name}")
    if not names:
        names = [name for name in sorted(os.listdir(folder)) if ".npy" not in name or name.endswith(".image.npy")][:most]
    begin = time.monotonic()
    for name in names:
        fd = os.open(f"{folder}/{name}", os.O_RDONLY)
        while n := os.readv(fd, [buffer]):
            size += n
        os.close(fd)
    return time.monotonic() - begin, size


def floor_names(count, first=0):
    return [f"{i:05d}.jpg" for i in range(first, first + count)]


def floor_files(count, size):
    """A folder for floor(): files of that size."""
    folder = f"{PRIVATE}/whole"
    empty(folder)
    os.makedirs(folder)
    for name in floor_names(count):
        with open(f"{folder}/{name}", "wb") as f:
            f.truncate(size)
    return folder


def floor_row(what, least, compared, ratio_of):
    """No daemon that replies to reads can do better than this one, which has nothing else to do."""
    row(f"  {what}FUSE: a daemon that replies from one buffer", least, compared, ratio_of, "-", 0)


def batches(at, form, seed, batch=BATCH):
    return f"{dataset(at)}/batches/batch={batch},seed={seed}/epoch=0/{form}"


def read_memmap(seed):
    """Seconds of gathering all rows by a permutation, a batch at a time."""
    import numpy as np  # not for a job in a small cgroup

    order = np.random.default_rng(seed).permutation(SAMPLES)
    rows = np.memmap(IDX, "u1", "r", IDX_HEAD, (SAMPLES, IMAGE))
    begin = time.monotonic()
    for at in range(0, SAMPLES, BATCH):
        rows[order[at:at + BATCH]]
    return time.monotonic() - begin


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_epoch(form, seed):
    """Seconds of an epoch through a new mount, and those of its daemon's processors."""
    with mount(SOURCE) as daemon:
        folder, before = batches(daemon.at, form, seed), cpu_seconds(daemon.pid)
        took, size = read_files(folder)
        used = cpu_seconds(daemon.pid) - before
    equal(size >= SIZE, True, "bytes of the epoch")
    return took, used


def bar_warm():
    make_idx()
    touch()
    with mount(SOURCE):  # the index, if there is one
        pass
    took, used = {"npz": [], "npy": [], "memmap": []}, {"npz": [], "npy": []}
    read_memmap(0)
    for i in range(ROUNDS):
        for form, all_used in used.items():
            seconds, processor = first_epoch(form, i + 1)
            took[form].append(seconds)
            all_used.append(processor)
        took["memmap"].append(read_memmap(i + 1))
    for form, bound in (("npz", 0.30), ("npy", 0.33)):
        row(f"first read of shuffled 784 B samples, {form}", mb_per_s(SIZE, took[form]),
            f"numpy.memmap {mb_per_s(SIZE, took['memmap'])}", ratio(took["memmap"], took[form]), ">=", bound)
    for form, seconds in used.items():
        each = statistics.median(seconds) / SAMPLES * 1e6
        row(f"  processor time of the daemon for a sample, {form}", f"{each:.2f} µs", "1 µs", each, "<=", 1.0)


def bar_cold():
    make_idx()
    touch()
    ours, theirs, least, whole = [], [], [], floor_files(BATCHES, SIZE // BATCHES)
    for i in range(ROUNDS):
        forget(IDX)
        ours.append(first_epoch("npz", i + 1)[0])
        forget(IDX)
        theirs.append(read_memmap(i + 1))
        forget(IDX)
        in_sequence = dd(IDX)  # a shuffled batch has samples of all parts of the file
        with floor(whole, "reply") as at:
            least.append(in_sequence + read_files(at, names=floor_names(BATCHES))[0])
    row("the same, source not in the page cache", mb_per_s(SIZE, ours), f"numpy.memmap {mb_per_s(SIZE, theirs)}",
        ratio(theirs, ours), ">=", 1.2)
    floor_row("dd, then ", mb_per_s(SIZE, least), f"numpy.memmap {mb_per_s(SIZE, theirs)}", ratio(theirs, least))


def in_group(group):
    """A command in front of another one: it runs in that cgroup."""
    return ["sh", "-c", f"echo $$ >{group}/cgroup.procs && exec \"$@\"", "sh"]


def bar_small_memory():
    """Daemon and reader in a cgroup of a quarter of the data."""
    make_idx()
    touch()
    ours, theirs, most = [], [], 100
    for i in range(ROUNDS):
        forget(IDX)
        with memory_group(SIZE // 4) as (group, _), mount(SOURCE, prefix=in_group(group)) as daemon:
            done = subprocess.run([*in_group(group), sys.executable, __file__, "read",
                                   batches(daemon.at, "npz", i + 1), str(most)],
                                  check=True, stdout=subprocess.PIPE, text=True)
            ours.append(float(done.stdout))
        theirs.append(program("random", IDX, DEPTH, most * BATCH)[0] / 1e6)
    rate = {k: most * BATCH / statistics.median(v) for k, v in (("ours", ours), ("theirs", theirs))}
    row("the same in a cgroup of a quarter of the data", f"{rate['ours']:.0f} samples/s",
        f"random 4 KiB reads at depth {DEPTH}: {rate['theirs']:.0f}/s", ratio(theirs, ours), ">=", 0.7)


def members_of(path):
    """Where the members of a tar file with pictures are."""
    with tarfile.open(path) as tar:
        return [(m.offset_data, m.size) for m in tar]


def records_of(path):
    """Where the records of a TFRecord file are."""
    found, at = [], 0
    with open(path, "rb") as f:
        while head := f.read(12):
            size = int.from_bytes(head[:8], "little")
            found.append((at + 12, size))
            at += size + 16
            f.seek(at)
    return found


def bar_members():
    tar, tfrecord = f"{PRIVATE}/tar/a.tar", f"{PRIVATE}/tfrecord"
    make_tar(tar, 400e6, 100_000)
    os.makedirs(tfrecord)
    subprocess.run([TFRECORD, "make", tfrecord, "1", "4000", "100000", "100000"], check=True)
    records = os.path.join(tfrecord, os.listdir(tfrecord)[0])
    touch()
    whole = floor_files(64, 6_250_000)  # as large as batches of 64
    ways = (("tar as tar", f"{PRIVATE}/tar", "tar", tar, members_of(tar), 0.6),
            ("tar as npz", f"{PRIVATE}/tar", "npz", tar, members_of(tar), 0.5),
            ("TFRecord as npz", tfrecord, "npz", records, records_of(records), 0.4))
    for what, folder, form, path, ranges, bound in ways:
        ours, theirs, least = [], [], []
        size = sum(length for _, length in ranges)
        for i in range(ROUNDS + 1):
            lines = [f"{off} {length}\n" for off, length in random.Random(i).sample(ranges, len(ranges))]
            loop = program("ranges", path, input="".join(lines))[0] / 1e6
            with mount(folder) as daemon:
                took, got = read_files(batches(daemon.at, form, i, batch=64))
            equal(got >= size * 0.99, True, f"bytes of {what}: {got} of {size}")
            with floor(whole, "reply") as at:
                bare = read_files(at, names=floor_names(64))[0]
            if i:  # the first makes the index
                theirs.append(loop)
                ours.append(took)
                least.append(bare)
        row(f"shuffled members of 100 kB, {what}", mb_per_s(size, ours), f"pread {mb_per_s(size, theirs)}",
            ratio(theirs, ours), ">=", bound)
        floor_row("", mb_per_s(400e6, least), f"pread {mb_per_s(size, theirs)}", ratio(theirs, least))


def jobs(*arguments):
    """Seconds that jobs take at the same time. arguments: those of bar_read() for each job."""
    begin = time.monotonic()
    running = [subprocess.Popen([sys.executable, __file__, "read", *map(str, each)], stdout=subprocess.DEVNULL)
               for each in arguments]
    equal([job.wait() for job in running], [0] * len(running))
    return time.monotonic() - begin


def bar_jobs():
    """The second figure is one job on such a mount."""
    make_idx()
    one, all_of, least, whole = [], [], [], floor_files(JOBS * BATCHES, SIZE // BATCHES)
    for i in range(ROUNDS):
        touch(JOBS)  # each time: a balloon gives memory that is free for seconds to the host
        forget(IDX)
        one.append(first_epoch("npz", 100 + i)[0])
        forget(IDX)
        with mount(SOURCE) as daemon:
            all_of.append(jobs(*([batches(daemon.at, "npz", 10 * i + k)] for k in range(JOBS))))
        forget(IDX)
        in_sequence = dd(IDX)
        with floor(whole, "reply") as at:
            least.append(in_sequence + jobs(*([at, BATCHES, k * BATCHES] for k in range(JOBS))))
    row(f"{JOBS} jobs with seeds of their own on one cold mount", f"{statistics.median(all_of):.2f} s",
        f"one job {statistics.median(one):.2f} s", ratio(all_of, one), "<=", 2.5)
    floor_row("dd, then ", f"{statistics.median(least):.2f} s", f"one job {statistics.median(one):.2f} s",
              ratio(least, one))


def bar_remote():
    """A cold cache and a web server on this machine, against a copy by curl and an epoch of that."""
    most, batch, copy = 100, 500, f"{PRIVATE}/copy"
    make_idx()
    touch()
    ours, theirs, used, requests = [], [], [], []
    with Nginx(SOURCE, more=FAST) as server:
        for i in range(ROUNDS):
            empty(f"{PRIVATE}/cache-http")
            with mount(f"{server.url}/", f"cache_dir={PRIVATE}/cache-http") as daemon:
                before = cpu_seconds(daemon.pid)
                ours.append(read_files(batches(daemon.at, "npz", i, batch), most)[0])
                used.append(cpu_seconds(daemon.pid) - before)
                requests.append(remote(daemon.at)["requests"])
            empty(copy)
            os.makedirs(copy)
            name = os.path.basename(IDX)
            copied = seconds("curl", "-s", "-o", f"{copy}/{name}", f"{server.url}/{name}")
            with mount(copy) as daemon:
                theirs.append(copied + read_files(batches(daemon.at, "npz", i, batch), most)[0])
    row(f"{most} batches of {batch} from a web server, cold cache", f"{statistics.median(ours):.2f} s",
        f"curl and a warm epoch {statistics.median(theirs):.2f} s", ratio(ours, theirs), "<=", 1.6)
    row("  processor time of the daemon", f"{statistics.median(used):.2f} s", "1.5 ns a byte",
        statistics.median(used) / SIZE * 1e9, "<=", 1.5)
    row("  requests", f"{statistics.median(requests):.0f}", "1000", statistics.median(requests), "<=", 1000)


def bar_overlap():
    """A remote that limits each of 8 connections; one after the other would take as long as the job computes."""
    n, batch, alone, took = 60_000, 1000, 8, []
    name = make_images("train-images-idx3-ubyte", n * IMAGE // 1000000 + 1) and "train-images-idx3-ubyte"
    with Nginx(WWW, more=FAST, limit_rate=n * IMAGE // 8 // alone) as server:
        for _ in range(ROUNDS):
            empty(f"{PRIVATE}/cache-http")
            begin = time.monotonic()
            with mount(f"{server.url}/{name}", f"plan=batch={batch}+seed=7,cache_dir={PRIVATE}/cache-http") as daemon:
                subprocess.run([TRAIN, "files", "-g", str(alone * 1000000 * batch // n),
                                f"{dataset(daemon.at)}/batches/batch={batch},seed=7", "epoch=@/npy/######.image.npy",
                                str(n // batch)], check=True, stdout=subprocess.DEVNULL)
                took.append(time.monotonic() - begin)
    row(f"transfer = compute = {alone} s, batches of {batch}", f"{statistics.median(took):.2f} s", f"{alone} s",
        statistics.median(took) / alone, "<=", 1.08)


def bar_read():
    """Not a bar: a job. Arguments: a folder; how many files (0: all); in a mount of floor() the first one. Prints the seconds."""
    most, first = (int(word) for word in sys.argv[3:] + ["0"] * (5 - len(sys.argv)))
    print(read_files(sys.argv[2], most or None, floor_names(most, first) if sys.argv[4:] else None)[0])


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
