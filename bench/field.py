#!/usr/bin/python3
"""What the field measures, by its own rules: field.py nets|storage [--quick] [--write-docs]     (by bench/run field)

Nets: a CNN, AlexNet and ResNet-50 train on JPEGs of the sizes of ImageNet (tar shards, batches of 128) that come over a limited
connection: without staging, copied first, and by epochfs, alone and while another host reads. The accelerator is emulated: a batch
takes what one V100 takes for it in float32 (images/s of NETS).

Storage: an emulated accelerator reads batches of RetinaNet's and UNet3D's sizes, in random order, from files of a cold disk. Its
time for a batch is set so that files of ext4 keep it busy for 97 % of the time. blind: the storage is not told the order;
planned: it is. Utilisation is the time that batches compute, over all time of the steady state.

All sides read the same samples, touch all bytes, and begin with an empty page cache; each figure is a median of ROUNDS.
Prints the rows of bench/run; --write-docs: also writes its section of docs/bench/field.md, and field.svg.
"""

import collections
import contextlib
import io
import math
import os
import platform
import queue
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
import time
import zlib

import bars
from bars import WWW, Far, calm, dataset, empty, mount, row, say, seconds
from lib import EPOCHFS, PRIVATE, equal
from servers import Nginx

sys.path.insert(0, f"{os.path.dirname(bars.HERE)}/python")
import epochfs
import numpy as np

QUICK = "--quick" in sys.argv
ROUNDS = int(os.environ.get("EPOCHFS_BENCH_ROUNDS", "3" if QUICK else "5"))
DOCS = os.path.join(bars.HERE, "..", "docs")
RATE = 80_000_000  # bytes per second of the connection
NETS = {"small CNN": 12_000, "AlexNet": 3_000, "ResNet-50": 360}  # images per second
JPEGS = (1_500, 3_000) if QUICK else (1_500, 4_000, 8_000)
THREADS, AHEAD, SEED = 8, 4, 7
# name: samples, their mean bytes, samples of a batch
SHAPES = {"RetinaNet": (640 if QUICK else 4_000, 300_000, 16), "UNet3D": (48 if QUICK else 96, 146_600_628 // 4, 2)}
TABLES = collections.defaultdict(list)  # heading -> rows of text, for the page
CHART = []  # (group, name, share)
INDEXED = []  # seconds that an index of the shards took, for each of JPEGS


def jpeg_of(random_number, size):
    """What begins as JPEG does; it is not decoded."""
    return b"\xff\xd8\xff\xe0" + random_number.randbytes(size - 4)


def sizes(samples, mean, spread=0.5):
    """Lognormal, as those of photographs are."""
    return np.maximum(np.random.default_rng(1).lognormal(np.log(mean) - spread ** 2 / 2, spread, samples), 2_000).astype(int)


# ---- nets whose data is staged ----

def make_shards(count):
    folder = f"{WWW}/jpegs-{count}"
    os.makedirs(folder)
    numbers, left = random.Random(count), list(sizes(count, 110_000))
    for shard in range(-(-count // 1_000)):
        with tarfile.open(f"{folder}/{shard:06}.tar", "w") as tar:
            for i in range(shard * 1_000, min((shard + 1) * 1_000, count)):
                for name, data in ((f"{i:08}.jpg", jpeg_of(numbers, left[i])), (f"{i:08}.cls", b"%d" % (i % 1_000))):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    INDEXED.append(seconds(EPOCHFS, "index", folder, "--output", f"{folder}/.epochfs"))
    names = [name for name in sorted(os.listdir(folder)) if name.endswith(".tar")]
    return names, sum(os.path.getsize(f"{folder}/{name}") for name in names)


def measure_net(far, names, count, net, epochs, mode):
    """Seconds from the first command to the end of the last batch."""
    urls = [f"{far.urls[0]}/jpegs-{count}/{name}" for name in names]
    folder, cache = f"{PRIVATE}/copy", f"{PRIVATE}/cache"
    empty(folder)
    empty(cache)
    calm()
    for name in names:
        bars.warm(f"jpegs-{count}/{name}")
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        if mode == "copy first":
            os.makedirs(folder)
            seconds("curl", "-sfZ", "--no-progress-meter", "--parallel-max", str(THREADS), "--remote-name-all", "--output-dir", folder, *urls)
            at = stack.enter_context(mount(folder)).at
        else:
            options = f"cache_dir={cache},plan=batch=128+seed={SEED}"
            if mode == "no staging":
                options = f"cache_dir={cache},prefetch=off,evict=after_use,readahead=0"
            elif mode == "without an index":
                options += f",files={';'.join(names)}"
            at = stack.enter_context(mount(os.path.dirname(urls[0]) + "/", options)).at
        lines = subprocess.run([os.environ["TRAIN"], "files", "-g", str(int(128e6 / NETS[net])), "-e", str(epochs),
                                f"{at}/all/batches/batch=128,seed={SEED}", "epoch=@/tar/######.tar", str(-(-count // 128))],
                               stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n")
        took = time.monotonic() - begin
    return took, [line.split()[3] for line in lines if line]


@contextlib.contextmanager
def other_host(far, count, names, works):
    process = subprocess.Popen(["curl", "-s", "-Z", "--parallel-max", "4", "-o", "/dev/null",
                                f"{far.urls[1]}/jpegs-{count}/{names[0]}?[1-10000]"], stderr=subprocess.DEVNULL) if works else None
    try:
        yield
    finally:
        if process:
            process.terminate()
            process.wait(60)


MODES = ("no staging", "copy first", "epochfs", "without an index")


def nets():
    shards = {count: make_shards(count) for count in JPEGS}
    with Nginx(WWW, more=bars.FAST + " keepalive_requests 1000000;") as server, Far(server, RATE, 2) as far:
        for count in JPEGS:
            for contended in False, True:
                for net in NETS:
                    for epochs in (1, 10) if count == JPEGS[0] and net != "ResNet-50" else (1,):
                        net_row(far, *shards[count], count, net, epochs, contended)


def net_row(far, names, size, count, net, epochs, contended):
    took, sums = {mode: [] for mode in MODES}, set()
    for turn in range(ROUNDS if count == JPEGS[0] else 1):
        for k in range(len(MODES)):
            mode = MODES[(k + turn) % len(MODES)]
            if mode == MODES[-1] and count != JPEGS[0]:
                continue
            with other_host(far, count, names, contended):
                seconds_, found = measure_net(far, names, count, net, epochs, mode)
            took[mode].append(seconds_)
            sums.add(tuple(found))
    equal(len(sums), 1, "the bytes that all modes read")
    middle = {mode: statistics.median(times) for mode, times in took.items() if times}
    less = 1 - middle["epochfs"] / middle["copy first"]
    what = f"{net}, {size / 1e6:.0f} MB, {epochs} epoch{'s' * (epochs > 1)}{', contended' if contended else ''}"
    TABLES["nets"].append((net, f"{size / 1e6:.0f} MB", epochs, "contended" if contended else "alone",
                           f"{count * epochs / NETS[net]:.1f}", *(f"{middle[mode]:.1f}" if mode in middle else "" for mode in MODES), f"{less:.1%}"))
    bound = 0.35 if net == "ResNet-50" and contended else 0
    row(f"{what}: less than copying first", f"{middle['epochfs']:.1f} s", f"{middle['copy first']:.1f} s", less,
        ">=" if bound else "-", bound)


# ---- storage that feeds an accelerator ----

def read_file(path):
    """All bytes, into memory that was touched before and is used again."""
    view, at = BUFFERS.get(), 0
    with open(path, "rb", buffering=0) as f:
        while n := f.readinto(view[at % len(view):at % len(view) + (1 << 22)]):
            at += n
    BUFFERS.put(view)
    return at


BUFFERS = queue.SimpleQueue()
for _ in range(THREADS):
    BUFFERS.put(memoryview(bytearray(b"1" * (1 << 26))))


def feed(batches, load, compute):
    """(utilisation, seconds) of an accelerator that takes `compute` seconds for each batch, which THREADS make ahead. It takes a batch
    that is there as soon as it has done the one before, however late the processors are that count. The utilisation is that of the
    steady state: without the first batches, those with which all threads begin."""
    ready, places = [queue.Queue(1) for _ in batches], threading.Semaphore(AHEAD + THREADS)
    numbers = iter(range(len(batches)))
    lock = threading.Lock()

    def work():
        while True:
            places.acquire()
            with lock:
                k = next(numbers, None)
            if k is None:
                return
            load(batches[k])
            ready[k].put(time.monotonic())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    end = steady = begin
    for k in range(len(batches)):
        end = max(end, ready[k].get()) + compute
        if k < THREADS:
            steady = end
        time.sleep(max(0, end - time.monotonic()))
        places.release()
    for _ in threads:
        places.release()
    for thread in threads:
        thread.join()
    return compute * (len(batches) - THREADS) / (end - steady), end - begin


def make_files(shape):
    samples, mean, _ = SHAPES[shape]
    numbers, folder = random.Random(1), f"{PRIVATE}/{shape}/files"
    os.makedirs(folder)
    names = []
    for i, size in enumerate(sizes(samples, mean, 0.3)):
        names.append(f"{i:06}.{'jpg' if shape == 'RetinaNet' else 'npz'}")
        with open(f"{folder}/{names[-1]}", "wb") as f:
            f.write(jpeg_of(numbers, int(size)))
    return folder, names


@contextlib.contextmanager
def mounted_image(kind, image, at):
    os.makedirs(at, exist_ok=True)
    loop = None
    if kind != "squashfuse":  # without the page cache of the image, which would hold all bytes twice
        loop = subprocess.run(["losetup", "--direct-io=on", "--read-only", "--show", "--find", image], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    try:
        subprocess.run(["mount", "-t", kind, "-o", "ro", loop, at] if loop else ["squashfuse", image, at], check=True)
        try:
            yield at
        finally:
            subprocess.run(["umount", at], check=True)
    finally:
        if loop:
            subprocess.run(["losetup", "--detach", loop], check=True)


def made(shape, kind, command, path):
    """Seconds and bytes of an image or archive of the files."""
    took = seconds(*command)
    size = os.path.getsize(path)
    TABLES["made"].append((shape, kind, f"{took:.1f}", f"{size / 1e6:.0f} MB"))
    return took, size


def storage(shape):
    folder, names = make_files(shape)
    base, (samples, _, batch) = os.path.dirname(folder), SHAPES[shape]
    made(shape, "EROFS", ["mkfs.erofs", f"{base}/erofs.img", folder], f"{base}/erofs.img")
    made(shape, "squashfs", ["mksquashfs", folder, f"{base}/squash.img", "-quiet", "-no-progress", "-noD", "-noI", "-noF"],
         f"{base}/squash.img")
    os.mkdir(f"{base}/tar")
    made(shape, "tar", ["tar", "-C", folder, "--sort=name", "-cf", f"{base}/tar/all.tar", "."], f"{base}/tar/all.tar")
    order = names[:]
    random.Random(SEED).shuffle(order)
    chunks = [order[i:i + batch] for i in range(0, samples, batch)]
    plan = f"batch={batch},seed={SEED}"

    def files(at):
        return chunks, lambda chunk: sum(read_file(f"{at}/{name}") for name in chunk)

    def members():
        """The samples of a tar in its order, as loaders of shards read them; shuffled after they are read."""
        held = open(f"{base}/tar/all.tar", "rb", buffering=0)
        size = os.path.getsize(f"{base}/tar/all.tar")
        return list(range(len(chunks))), lambda k: len(os.pread(held.fileno(), size // len(chunks), k * (size // len(chunks))))

    @contextlib.contextmanager
    def side(name):
        with contextlib.ExitStack() as stack:
            if name == "files on ext4":
                yield files(folder)
            elif name in ("EROFS", "squashfs", "squashfuse"):
                kind = name.lower()
                image = f"{base}/{'erofs' if kind == 'erofs' else 'squash'}.img"
                yield files(stack.enter_context(mounted_image(kind, image, f"{base}/at")))
            elif name == "tar in its order":
                yield members()
            elif name == "epochfs, blind":
                at = stack.enter_context(mount(f"{base}/tar", "readahead=0")).at
                yield files(f"{dataset(at)}/samples/raw")
            elif name == "epochfs, planned":
                at = stack.enter_context(mount(f"{base}/tar", f"plan={plan.replace(',', '+')}")).at
                where = f"{dataset(at)}/batches/{plan}/epoch=0/tar"
                yield list(range(len(chunks))), lambda k: read_file(f"{where}/{k:06}.tar")
            else:
                data = stack.enter_context(epochfs.load(f"{base}/tar"))
                batches = iter(next(iter(data.values())).batches(plan))
                lock = threading.Lock()

                def load(_):
                    with lock:
                        given = next(batches)
                    return sum(zlib.crc32(memoryview(v)[:1]) + v.nbytes for v in given.values() if hasattr(v, "nbytes") and v.nbytes)

                yield list(range(len(chunks))), load

    sides = ["files on ext4", "EROFS", "squashfs", "squashfuse", "tar in its order", "epochfs, blind", "epochfs, planned",
             "epochfs, library"]
    times = []
    for _ in range(3):
        calm()
        with side(sides[0]) as (batches, load):
            times.append(feed(batches, load, 0)[1])
    took = statistics.median(times)
    compute = took / len(batches) * 1.35
    say(f"{shape}: a batch takes {took / len(batches) * 1e3:.1f} ms from files, computes {compute * 1e3:.1f} ms")
    shares, rates, times = (collections.defaultdict(list) for _ in range(3))
    for turn in range(ROUNDS):
        for k in range(len(sides)):
            name = sides[(k + turn) % len(sides)]
            for pace, found in (compute, shares), (0, rates):
                calm()
                with side(name) as (batches, load):
                    share, took = feed(batches, load, pace)
                    found[name].append(share if pace else samples / took)
                    if pace:
                        times[name].append(took)
    for name in sides:
        share, rate = statistics.median(shares[name]), statistics.median(rates[name])
        spread = max(shares[name]) - min(shares[name])
        TABLES["storage"].append((shape, name, f"{share:.3f}", f"{spread:.3f}", f"{statistics.median(times[name]):.2f}", f"{rate:.1f}"))
        CHART.append((shape, name, share))
        bound = 0.95 if name == "epochfs, planned" else 0
        row(f"{shape}: utilisation with {name}", f"{share:.3f}", f"{rate:.1f} samples/s", share, ">=" if bound else "-", bound)
    shutil.rmtree(base)


# ---- the page ----

def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
                      *("| " + " | ".join(str(cell) for cell in cells) + " |" for cells in rows)])


def figure():
    """A bar for each side of each shape."""
    height = 40 + 20 * len(CHART) + 24 * len(SHAPES)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" width="640" height="{height}" '
           'font-family="sans-serif" font-size="12">')
    yield f'<rect width="640" height="{height}" fill="#ffffff"/><g fill="#222222">'
    yield '<text x="10" y="20" font-weight="bold">Utilisation of an emulated accelerator, files of a cold disk</text>'
    y, before = 30, None
    for shape, name, share in CHART:
        if shape != before:
            y += 22
            yield f'<text x="10" y="{y}" font-weight="bold">{shape}</text>'
            y, before = y + 8, shape
        color = "#2f6fb3" if name.startswith("epochfs") else "#8a94a3"
        yield f'<text x="150" y="{y + 12}" text-anchor="end">{name}</text>'
        yield f'<rect x="160" y="{y + 2}" width="{share * 400:.1f}" height="13" fill="{color}"/>'
        yield f'<text x="{165 + share * 400:.1f}" y="{y + 12}">{share:.2f}</text>'
        y += 20
    yield "</g></svg>"


NETS_TEXT = """JPEG files of ImageNet's sizes (mean 110 KB, 1,000 classes, tar shards of 1,000) come over a connection of {rate} MB/s. Batches of 128
are read in a shuffled order. An index of the shards lies next to them (`epochfs index` takes at most {indexed} s); without it the first mount goes
from header to header before it can shuffle. The accelerator is emulated: {nets} images/s, which is one V100 in float32. Contended:
another host reads through the same connection. Seconds from the first command to the end of the last batch; all modes read the same
bytes.

{table}

The paper of runtime staging reports at most 30.8 % less than copying first, on a contended parallel file system.

Each figure is the median of {rounds} runs; the nets of larger data are single runs. The server and the job share the cores.
"""

STORAGE_TEXT = """![utilisation by file system](field.svg)

Shapes of MLPerf Storage: RetinaNet ({retina[0]} files of {retina[1]} bytes, batches of {retina[2]}) and UNet3D ({unet[0]} files of
{unet[1]} bytes, batches of {unet[2]}). {threads} threads read ahead of an emulated accelerator, in random order, from a cold disk.
The time of a batch is 1.35 times what files on ext4 need. Blind: the storage is not told the order. Planned: the path of a batch
says it. Utilisation is that of the steady state, without the {threads} batches with which the threads begin; the seconds are all, from
the first open on. The last column is without compute. Each figure is the median of {rounds} runs.

{table}

What the images and archives take:

{made}
"""

HEAD = "# The field's own benchmarks\n\nWritten by `bench/run field --write-docs`. Do not edit.\n"
TITLES = {"nets": "Nets whose data is staged", "storage": "Storage that feeds an accelerator"}


def write_section(part, text):
    """Write a part's section of the page; the other stays as it is."""
    page = f"{DOCS}/bench/field.md"
    version = subprocess.run([EPOCHFS, "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split("\n", maxsplit=1)[0]
    found = {}
    if os.path.exists(page):
        with open(page, encoding="utf-8") as f:
            found = dict(section.split("\n", maxsplit=1) for section in f.read().split("\n## ")[1:])
    found[TITLES[part]] = (f"\n{text}\n`bench/run field {part}{' --quick' * QUICK}`: {version}, {os.cpu_count()} cores, "
                           f"Linux {platform.release()}, {time.strftime('%Y-%m-%d')}.\n")
    with open(page, "w", encoding="utf-8") as f:
        f.write(HEAD + "".join(f"\n## {title}\n{found[title].rstrip()}\n" for title in TITLES.values() if title in found))


def write_nets():
    write_section("nets", NETS_TEXT.format(
        rate=RATE // 1000000, nets=", ".join(f"{net} {rate}" for net, rate in NETS.items()), rounds=ROUNDS,
        indexed=f"{math.ceil(max(INDEXED, default=0) * 10) / 10:.1f}",
        table=table(("net", "data", "epochs", "connection", "compute, s", *(f"{mode}, s" for mode in MODES), "less than copying"), TABLES["nets"])))


def write_storage():
    write_section("storage", STORAGE_TEXT.format(
        retina=SHAPES["RetinaNet"], unet=SHAPES["UNet3D"], threads=THREADS, rounds=ROUNDS,
        table=table(("shape", "storage", "utilisation", "spread", "all, s", "samples/s"), TABLES["storage"]),
        made=table(("shape", "as", "seconds to make", "size"), TABLES["made"])))
    with open(f"{DOCS}/bench/field.svg", "w", encoding="utf-8") as f:
        f.write("\n".join(figure()) + "\n")


def main():
    writes = "--write-docs" in sys.argv
    os.makedirs(WWW, exist_ok=True)
    os.environ["EPOCHFS_LIBRARY"] = f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"
    if "storage" in sys.argv:
        for shape in SHAPES:
            storage(shape)
        if writes:
            write_storage()
    if "nets" in sys.argv:
        nets()
        if writes:
            write_nets()


main()
