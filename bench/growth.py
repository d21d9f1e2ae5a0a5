#!/usr/bin/python3
"""How cost grows (bench/groups/growth.sh): growth.py AXIS...

Each axis is measured at n, 10 n and 100 n. A row gives the cost of one unit at one of them, divided
by that at the one before: linear growth gives 1, costs paid once make it less, and the bar is 1.5.

Cost is processor time, of the daemon and of the commands that use it, because it measures the work
whatever else runs on the machine. For listings it is that of the daemon alone, because the kernel's
cache of names and inodes has its own costs. The minimum of several rounds counts; a measurement
longer than LONG seconds of real time, its mount included, is made once. Servers are not counted.
"""

import contextlib
import os
import random
import resource
import subprocess
import sys
import time

import lib
import servers
from bars import FAST, empty, mount, row, say
from lib import EPOCHFS, PRIVATE
from servers import Nginx

ROUNDS = int(os.environ.get("EPOCHFS_BENCH_ROUNDS", "3"))
BUILD = os.path.dirname(EPOCHFS)
BAR = 1.5
LONG = 5
CACHE = f"{PRIVATE}/cache"
FEW, SOME, MANY = (100, 1000, 10000), (1000, 10000, 100000), (10000, 100000, 1000000)
MOST = (100000, 1000000, 10000000)
PAIRS = (150, 1500, 15000)  # of files
UPLOADED = (50, 500, 5000)  # of them, to S3: each file is a request of its own


# ---- what it costs ----

def cpu_of(daemon):
    """Seconds of processor time of all its threads, including those that have ended."""
    return time.clock_gettime((~daemon.pid << 3) | 2)  # clock_getcpuclockid(3)


def cpu_here():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def cost(work, daemon=None, alone=False):
    """The cost of work(): here, in children that have ended, and in the daemon; alone: only in the
    daemon."""
    here, there = cpu_here(), cpu_of(daemon) if daemon else 0
    work()
    return (0 if alone else cpu_here() - here) + (cpu_of(daemon) - there if daemon else 0)


def settled(daemon):
    """Wait until the mount has finished its own start-up work, which must not be measured."""
    before = -1
    while cpu_of(daemon) - before > 0.002:
        before = cpu_of(daemon)
        time.sleep(0.2)


def axis(what, unit, counts, measure):
    """measure(n): seconds that n units cost. Each round covers all counts, so that a temporary load
    on the machine affects them alike."""
    least, took = {}, {}
    for _ in range(ROUNDS):
        for n in counts:
            if took.get(n, 0) < LONG:
                start = time.monotonic()
                seconds = measure(n)
                took[n] = time.monotonic() - start
                least[n] = min(least.get(n, seconds), seconds)
                say(f"{what}: {n}: {seconds:.4f} s, {1e6 * seconds / n:.3g} µs each")
    for low, high in zip(counts, counts[1:]):
        before, after = (least[n] / n for n in (low, high))
        row(what, f"{high} {unit}: {1e6 * after:.3g} µs", f"{low}: {1e6 * before:.3g} µs",
            after / before, "<=", BAR)


# ---- sources ----

def fresh(name):
    folder = f"{PRIVATE}/{name}"
    empty(folder)
    os.makedirs(folder)
    return folder


def idx_folder(name, n, item=16, sparse=False):
    folder = fresh(name)
    with open(f"{folder}/data-idx2-ubyte", "wb") as f:
        f.write(lib.idx_header(8, (n, item)))
        if sparse:
            f.truncate(f.tell() + n * item)
        left, noise = 0 if sparse else n * item, os.urandom(1 << 20)
        while left:
            left -= f.write(noise[:left])
    return folder


def made_by(maker, name, file, *arguments):
    folder = fresh(name)
    subprocess.run([f"{BUILD}/epochfs-bench-{maker}", f"{folder}/{file}", *map(str, arguments)],
                   check=True, stdout=subprocess.DEVNULL)
    return folder


def svm_folder(name, n):
    return made_by("libsvm", name, "rows.svm", n, 2, 4, 3)


def ark_folder(name, n):
    return made_by("kaldi", name, "feats.ark", "fm", n, 2, 6, 4)


def pairs_folder(name, n):
    folder = fresh(name)
    for i in range(n):
        with open(f"{folder}/part{i:05d}-images-idx2-ubyte", "wb") as f:
            f.write(lib.idx_header(8, (3, 4)) + bytes(12))
        with open(f"{folder}/part{i:05d}-labels-idx1-ubyte", "wb") as f:
            f.write(lib.idx_header(8, (3,)) + bytes(3))
    return folder


# ---- mounts and reads ----

@contextlib.contextmanager
def mounted(source, *options):
    """A mount, and the path of its only dataset, once that is ready."""
    with mount(source, f"cache_dir={CACHE}", *options) as daemon:
        name, = (n for n in os.listdir(daemon.at)
                 if n != ".epochfs" and os.path.isdir(f"{daemon.at}/{n}"))
        lib.text(daemon.at, name, "dataset.json")
        yield daemon, f"{daemon.at}/{name}"


def only(folder, suffix=""):
    """The path of the only file in it with a name that ends in that suffix."""
    name, = (n for n in os.listdir(folder) if n.endswith(suffix))
    return f"{folder}/{name}"


def dd(path):
    subprocess.run(["dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none"], check=True)


def ls(folder):
    subprocess.run(["ls", "-lU", folder], check=True, stdout=subprocess.DEVNULL)


def read(path):
    with open(path, "rb", buffering=0) as f:
        return f.read()


# ---- samples of a file, and of a listing ----

def shuffled(what, make, counts, encoder, suffix):
    folders = {n: make(f"source-{n}", n) for n in counts}

    def measure(n):
        with mounted(folders[n], "readahead=0") as (daemon, at):
            path = only(f"{at}/batches/batch=all,seed=7/epoch=0/{encoder}", suffix)
            return cost(lambda: dd(path), daemon)

    axis(f"shuffled batch=all, {what}", "samples", counts, measure)


def axis_shuffled_idx():
    shuffled("IDX npy", idx_folder, MOST, "npy", ".data.npy")


def axis_shuffled_libsvm():
    shuffled("libsvm svm", svm_folder, MOST, "svm", ".svm")


def axis_shuffled_libsvm_npz():
    shuffled("libsvm npz", svm_folder, MOST, "npz", ".npz")


def axis_shuffled_kaldi():
    shuffled("Kaldi ark", ark_folder, MANY, "ark", ".ark")


def axis_listing():
    for what, make, encoder in (("IDX", idx_folder, "raw"), ("libsvm", svm_folder, "svm"),
                                ("Kaldi", ark_folder, "ark")):
        folders = {n: make(f"source-{n}", n) for n in MANY}
        for where, folder in (("samples", "samples"),
                              ("batches of 1", "batches/batch=1,seed=7/epoch=0")):
            def measure(n):
                with mounted(folders[n], "readahead=0") as (daemon, at):
                    return cost(lambda: ls(f"{at}/{folder}/{encoder}"), daemon, alone=True)

            axis(f"ls -l, {where}, {what}", "files", MANY, measure)


def axis_sparse():
    """Reads the ends of files of all samples. For shuffled ones only a stat: each byte would touch
    a cold page of its own, which costs more the larger the file, until no page is met twice."""
    def measure(n):
        folder = idx_folder("source", n, 1, sparse=True)
        with mounted(folder, "readahead=0") as (daemon, at):
            def work():
                for encoder in ("raw", "npy", "idx", "tar"):
                    ls(f"{at}/batches/batch=all,seed=7/epoch=0/{encoder}")
                    for name in os.listdir(f"{at}/batches/batch=all/{encoder}"):
                        path = f"{at}/batches/batch=all/{encoder}/{name}"
                        with open(path, "rb", buffering=0) as f:
                            f.read(100)
                            f.seek(-100, os.SEEK_END)
                            f.read(100)

            return cost(work, daemon)

    axis("opening batch=all", "samples", (40000000, 400000000, 4000000000), measure)


# ---- plans and epochs ----

def read_plans(at, plans):
    for plan in plans:
        for i in range(2):
            read(f"{at}/batches/{plan}/raw/{i:06d}.data.raw")


def axis_plans():
    folder = idx_folder("source", 200)

    def measure(n):
        with mounted(folder) as (daemon, at):
            settled(daemon)
            plans = [f"batch=100,seed={seed}/epoch=0" for seed in range(n)]
            return cost(lambda: read_plans(at, plans), daemon)

    axis("plans open at once", "plans", FEW, measure)


def axis_epochs():
    folder = idx_folder("source", 200)

    def measure(n):
        with mounted(folder) as (daemon, at):
            settled(daemon)
            plans = [f"batch=100,seed=7/epoch={epoch}" for epoch in range(n)]
            return cost(lambda: read_plans(at, plans), daemon)

    axis("epochs read", "epochs", FEW, measure)


# ---- files of a folder ----

def folder_of(what, source, *options, counts=PAIRS):
    def opened(n):
        empty(CACHE)
        options_of_all = ",".join([f"cache_dir={CACHE}", *options])
        return cost(lambda: lib.run("info", "--json", "-o", options_of_all, source(n)))

    def looked_up(n):
        empty(CACHE)
        with mount(source(n), f"cache_dir={CACHE}", *options) as daemon:
            settled(daemon)
            paths = [f"{daemon.at}/part{i:05d}/samples" for i in range(n)]
            return cost(lambda: (os.listdir(daemon.at), [os.stat(path) for path in paths]), daemon)

    lib.DEADLINE = servers.DEADLINE = 600
    axis(f"files of a folder, {what}: info", "pairs", counts, opened)
    axis(f"files of a folder, {what}: look-ups", "pairs", counts, looked_up)


def axis_folder():
    folders = {n: pairs_folder(f"pairs-{n}", n) for n in PAIRS}
    folder_of("local", lambda n: folders[n])


def axis_folder_http():
    for n in PAIRS:
        pairs_folder(f"www/{n}", n)
    with Nginx(f"{PRIVATE}/www", more=FAST) as server:
        folder_of("HTTP", lambda n: f"{server.url}/{n}/", "prefetch=off")


def axis_folder_s3():
    lib.DEADLINE = servers.DEADLINE = 600
    with servers.Ceph() as s3:
        os.environ.update(s3.environment)
        s3.aws("configure", "set", "default.s3.max_concurrent_requests", "20")
        s3.aws("s3api", "create-bucket", "--bucket", "data")
        for n in UPLOADED:
            s3.aws("s3", "cp", "--quiet", "--recursive", pairs_folder("up", n), f"s3://data/{n}/")
        folder_of("S3", lambda n: f"s3://data/{n}/", f"endpoint_url={s3.endpoint}", "prefetch=off",
                  counts=UPLOADED)


# ---- staging ----

def axis_blocks():
    for n in SOME:
        idx_folder(f"www/{n}", n, 4080)
    with Nginx(f"{PRIVATE}/www", more=FAST) as server:
        def stage(n):
            lib.run("stage", "-o", f"cache_dir={CACHE},block_size=4K", f"{server.url}/{n}/")

        def staged(n):
            empty(CACHE)
            return cost(lambda: stage(n))

        def again(n):
            stage(n)
            return cost(lambda: stage(n))

        def scattered(n):
            stage(n)
            with mounted(f"{server.url}/{n}/", "block_size=4K", "readahead=0") as (daemon, at):
                path = only(f"{at}/batches/batch=all,seed=7/epoch=0/raw", ".data.raw")
                return cost(lambda: dd(path), daemon)

        axis("blocks of a file: staged", "blocks", SOME, staged)
        axis("blocks of a file: checked again", "blocks", SOME, again)
        axis("blocks of a file: read shuffled", "blocks", SOME, scattered)


def axis_keep_plan():
    """Three epochs through a cache of half of the blocks."""
    counts = (3000, 30000)
    for n in counts:
        idx_folder(f"www/{n}", n, 4080)
    with Nginx(f"{PRIVATE}/www", more=FAST) as server:
        def measure(n):
            empty(CACHE)
            options = ("block_size=4K", "evict=plan", "prefetch=off", f"cache_size={n * 2300 + 2000000}",
                       "readahead=0")
            with mounted(f"{server.url}/{n}/", *options) as (daemon, at):
                paths = [f"{at}/batches/batch=100,seed=7/epoch={epoch}/raw/{i:06d}.data.raw"
                         for epoch in range(3) for i in range(n // 100)]
                return cost(lambda: [read(path) for path in paths], daemon)

        axis("blocks of a file: evict=plan", "blocks", counts, measure)


def axis_cache():
    lib.DEADLINE = 600
    one = idx_folder("one", 100)
    with Nginx(f"{PRIVATE}/www", more=FAST) as server:
        for n in PAIRS:
            pairs_folder(f"www/{n}", n)
            lib.run("stage", "-o", f"cache_dir={PRIVATE}/cache-{n}", f"{server.url}/{n}/")
        few = f"{server.url}/few/"
        pairs_folder("www/few", 1)

        def started(n):
            return cost(lambda: lib.run("info", "-o", f"cache_dir={PRIVATE}/cache-{n}", one))

        def staged(n):
            return cost(lambda: lib.run("stage", "-o", f"cache_dir={PRIVATE}/cache-{n}", few))

        def listed(n):
            return cost(lambda: lib.run("cache", "list", f"{PRIVATE}/cache-{n}"))

        def verified(n):
            return cost(lambda: lib.run("cache", "verify", f"{PRIVATE}/cache-{n}"))

        def pruned(n):
            copy = fresh("copy")
            subprocess.run(["cp", "-a", f"{PRIVATE}/cache-{n}/.", copy], check=True)
            return cost(lambda: lib.run("cache", "prune", "--all", copy))

        for what, measure in (("a start", started), ("a file more", staged), ("list", listed),
                              ("verify", verified), ("prune", pruned)):
            axis(f"files in the cache folder: {what}", "pairs", PAIRS, measure)


# ---- datasets ----

def datasets_folder(n):
    """n folders with two pictures each, which are datasets: the archive next to them says that they are no classes."""
    root = fresh(f"datasets-{n}")
    with open(f"{root}/beside.tar", "wb") as f:
        f.write(bytes(1024))
    for i in range(n):
        os.mkdir(f"{root}/{i:06d}")
        for name in "ab":
            with open(f"{root}/{i:06d}/{name}.jpg", "wb") as f:
                f.write(b"picture")
    return root


def axis_datasets():
    folders = {n: datasets_folder(n) for n in SOME}

    def info(n):
        empty(CACHE)
        return cost(lambda: lib.run("info", "-o", f"cache_dir={CACHE}", folders[n]))

    axis("folders of pictures as datasets: info", "datasets", SOME, info)


# ---- entries of an scp file ----

def scp_folder(name, n):
    """A table in random order next to its archive."""
    folder = ark_folder(name, n)
    with mounted(folder, "readahead=0") as (_, at):
        with open(only(f"{at}/batches/batch=all/ark", ".scp"), "rb") as f:
            lines = [line.split() for line in f]
    random.Random(n).shuffle(lines)
    with open(f"{folder}/feats.scp", "wb") as f:
        for key, place in lines:
            f.write(b"%s feats.ark:%s\n" % (key, place.rpartition(b":")[2]))
    return f"{folder}/feats.scp"


def axis_scp():
    lib.DEADLINE = 600
    tables = {n: scp_folder(f"scp-{n}", n) for n in MANY}

    def indexed(n):
        empty(CACHE)
        return cost(lambda: lib.run("info", "--json", "-o", f"cache_dir={CACHE}", tables[n]))

    def whole(n):
        with mounted(tables[n], "readahead=0") as (daemon, at):
            path = only(f"{at}/batches/batch=all/ark", ".ark")
            return cost(lambda: dd(path), daemon)

    axis("entries of an scp file: index", "entries", MANY, indexed)
    axis("entries of an scp file: batch=all", "entries", MANY, whole)


# ---- cold reads ----

def axis_cold():
    import growth_cold
    axis("samples of a cold batch, HTTP, elapsed", "samples", (200, 2000, 20000),
         growth_cold.cold_batch)


def axis_readers():
    """The same samples, read by more and more ranks of one plan: each sample must cost the same."""
    import growth_cold
    counts = (1, 4, 16)
    times = {n: min(growth_cold.cold_readers(n) for _ in range(ROUNDS)) for n in counts}
    for low, high in zip(counts, counts[1:]):
        row("readers at once, cold, elapsed", f"{high} readers: {times[high]:.2f} s",
            f"{low}: {times[low]:.2f} s", times[high] / times[low], "<=", BAR)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[f"axis_{name}"]()
