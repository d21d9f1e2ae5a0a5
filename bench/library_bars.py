#!/usr/bin/python3
"""The bars of the library (bench/groups/library.sh): library_bars.py BAR

500,000 samples of 784 bytes in a local IDX file, in memory, in batches of 1024; and what the names of the bars say. Both sides
in turn, with memory touched before. Prints the rows of the table as cache_bars.py does.
"""

import io
import os
import statistics
import subprocess
import sys
import tarfile
import time

import numpy as np

from bars import ROUNDS, ratio, row
from lib import EPOCHFS, FASHION, PRIVATE, equal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f"{ROOT}/python")
import epochfs

N, BATCH = 500_000, 1024
FILE, NAME = f"{PRIVATE}/data/images", "images"
OPEN = f"""
import sys, time
sys.path.insert(0, {ROOT + '/python'!r})
import numpy, epochfs, epochfs._library
epochfs._library._functions()
begin = time.monotonic()
data = epochfs.load({FASHION!r})
batch = data['train'].batches('batch=128,seed=7').read(0)
print(time.monotonic() - begin)
"""


def make():
    os.makedirs(os.path.dirname(FILE))
    rng = np.random.default_rng(1)
    with open(FILE, "wb") as f:
        f.write(bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (N, 28, 28)))
        for _ in range(10):
            f.write(rng.integers(0, 256, N // 10 * 784, np.uint8).tobytes())


def by_library(data, epoch, fields, encoding="npz"):
    seen, begin = 0, time.monotonic()
    for batch in data[NAME].batches(f"batch={BATCH},seed=7", epoch=epoch, fields=fields, encoding=encoding):
        seen += len(batch["index"])
    equal(seen, N, "samples of an epoch")
    return time.monotonic() - begin


def by_numpy(images, order, memory, floats=None):
    begin = time.monotonic()
    for at in range(0, N, BATCH):
        chosen = order[at:at + BATCH]
        batch = np.take(images, chosen, axis=0, out=memory[:len(chosen)])
        if floats is not None:
            np.divide(batch, np.float32(255), out=floats[:len(chosen)], dtype=np.float32)
    return time.monotonic() - begin


def compare(name, fields, encoding, floats, bound):
    make()
    images = np.memmap(FILE, np.uint8, "r", 16, (N, 28, 28))
    order = np.random.default_rng(2).permutation(N)
    memory = np.ones((BATCH, 28, 28), np.uint8)
    out = np.ones((BATCH, 28, 28), np.float32) if floats else None
    size = N * 784 * (4 if floats else 1)
    ours, theirs = [], []
    with epochfs.load(os.path.dirname(FILE)) as data:
        by_numpy(images, order, memory, out)
        by_library(data, 0, fields, encoding)
        for epoch in range(ROUNDS):
            ours.append(by_library(data, epoch + 1, fields, encoding))
            theirs.append(by_numpy(images, order, memory, out))
    speed = [f"{size / 1e6 / statistics.median(times):.0f} MB/s" for times in (ours, theirs)]
    row(f"library: {name}, shuffled, 784 B, of numpy", *speed, ratio(theirs, ours), ">=", bound)


def bar_gather():
    compare("gather", ["image", "index"], "npz", False, 0.6)


def bar_image01():
    compare("gather to float32", ["image01", "index"], "npy", True, 1.0)


def bar_open():
    times = [float(subprocess.run([sys.executable, "-c", OPEN], check=True, stdout=subprocess.PIPE).stdout)
             for _ in range(ROUNDS + 1)][1:]
    median = statistics.median(times) * 1e3
    row("library: open to the first batch, index kept", f"{median:.1f} ms", "30 ms", median / 30, "<=", 1.0)


# ---- members of 100 KB ----

MEMBERS, MEMBER = 5000, 100_000


def make_members():
    """A WebDataset tar of members of random bytes."""
    os.makedirs(os.path.dirname(FILE))
    rng = np.random.default_rng(1)
    with tarfile.open(f"{FILE}.tar", "w") as tar:
        for i in range(MEMBERS):
            member = tarfile.TarInfo(f"{i:06}.bin")
            member.size = MEMBER
            tar.addfile(member, io.BytesIO(rng.bytes(MEMBER)))


def by_preads(ranges):
    """Microseconds of a loop in C."""
    program = f"{os.path.dirname(EPOCHFS)}/epochfs-bench-first"
    return float(subprocess.run([program, "ranges", f"{FILE}.tar"], input=ranges, check=True, text=True, stdout=subprocess.PIPE).stdout.split()[0])


def bar_members():
    make_members()
    ours, theirs = [], []
    with tarfile.open(f"{FILE}.tar") as tar:
        places = [member.offset_data for member in tar]
    order = np.random.default_rng(2).permutation(MEMBERS)
    ranges = "".join(f"{places[i]} {MEMBER}\n" for i in order)
    with epochfs.load(os.path.dirname(FILE)) as data:
        for epoch in range(ROUNDS + 1):
            begin, seen = time.monotonic(), 0
            for batch in data[f"{NAME}.tar"].batches("batch=64,seed=7", epoch=epoch, fields=["bin"]):
                seen += batch["bin"].nbytes
            ours.append(1e6 * (time.monotonic() - begin))
            equal(seen, MEMBERS * MEMBER, "bytes of an epoch")
            theirs.append(by_preads(ranges))
    ours, theirs = ours[1:], theirs[1:]
    speed = [f"{MEMBERS * MEMBER / statistics.median(times):.0f} MB/s" for times in (ours, theirs)]
    row("library: members of 100 KB, shuffled, of a C loop of preads", *speed, ratio(theirs, ours), ">=", 0.85)


# ---- pictures ----


def bar_pictures():
    import picture_bars
    from bars import WWW, mount

    picture_bars.make()
    took = {"library": [], "daemon": []}
    os.mkdir(f"{PRIVATE}/mount")
    side, size = f"{picture_bars.SIDE}x{picture_bars.SIDE}", picture_bars.BATCH
    with mount(WWW, f"image_size={side}"), epochfs.load(WWW, image_size=side) as data:
        by_mount = epochfs.open(f"{PRIVATE}/mount")["pictures.tar"]
        for epoch in range(2 * ROUNDS + 2):
            what = ("library", "daemon")[epoch % 2]
            dataset = data["pictures.tar"] if what == "library" else by_mount
            begin, seen = time.monotonic(), 0
            for batch in dataset.batches(f"batch={size},seed=3", epoch=epoch, fields=["image"]):
                seen += int(batch["image"][:, ::7, ::7].any(axis=(1, 2, 3)).sum())
            took[what].append(time.monotonic() - begin)
            equal(seen, size * picture_bars.BATCHES, "pictures")
    speed = [f"{size * picture_bars.BATCHES / statistics.median(times[1:]):.0f} pictures/s" for times in took.values()]
    row(f"library: image_size={side}, of the daemon", *speed, ratio(took["daemon"][1:], took["library"][1:]), ">=", 1.0)


# ---- memory ----

AHEAD = 64  # MiB
READ_S = 40
MEMORY = f"""
import sys, time
sys.path.insert(0, {ROOT + '/python'!r})
import epochfs
def resident():
    return {{line.split(":")[0]: int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith(("RssAnon", "RssFile"))}}
with epochfs.load({os.path.dirname(FILE)!r}, readahead="{AHEAD}M") as data:
    before, most, end = resident(), {{}}, time.monotonic() + {READ_S}
    for i, batch in enumerate(data[{NAME!r}].batches(sys.argv[1], fields=["image"])):
        batch["image"][0, 0, 0]
        if i % 16 == 0:
            now = resident()
            most = {{name: max(most.get(name, 0), now[name] - before[name]) for name in now}}
        if time.monotonic() > end:
            break
print(*most.values())
"""


def bar_memory():
    """Samples of 1 MB in a sparse file of 100 GB, read for a while; the pages of mapped files are the kernel's cache, and it can drop them."""
    os.makedirs(os.path.dirname(FILE))
    with open(FILE, "wb") as f:
        f.write(bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (100_000, 1000, 1000)))
        f.truncate(16 + 100_000 * 1_000_000)
    for plan in ("batch=8", "batch=8,seed=7", "batch=8,seed=7,shuffle=1000"):
        anonymous, mapped = map(float, subprocess.run([sys.executable, "-c", MEMORY, plan], check=True, stdout=subprocess.PIPE).stdout.split())
        row(f"library: memory, {READ_S} s of an epoch of 100 GB, {plan}", f"{anonymous:.0f} MiB, {mapped:.0f} MiB mapped", f"{64 + AHEAD} MiB",
            anonymous / (64 + AHEAD), "<=", 1.0)


# ---- two processes ----

RANK = f"""
import sys
sys.path.insert(0, {ROOT + '/python'!r})
import time, epochfs
with epochfs.load({os.path.dirname(FILE)!r}) as data:
    for batch in data[{NAME!r}].batches(sys.argv[1], fields=["image"]):
        pass
    print(flush=True)
    sys.stdin.readline()
    begin = time.monotonic()
    for batch in data[{NAME!r}].batches(sys.argv[1], epoch=int(sys.argv[2]), fields=["image"]):
        pass
    print(time.monotonic() - begin)
"""


def by_ranks(n, epoch):
    """Seconds of an epoch that n processes share, each on one processor; the slowest counts."""
    cpus = sorted(os.sched_getaffinity(0))
    ranks = [subprocess.Popen(["taskset", "-c", str(cpus[i % len(cpus)]), sys.executable, "-c", RANK, f"batch={BATCH},seed=7,rank={i}of{n}", str(epoch)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for i in range(n)]
    for rank in ranks:
        rank.stdout.readline()
    for rank in ranks:
        rank.stdin.write("\n")
        rank.stdin.flush()
    return max(float(rank.communicate()[0]) for rank in ranks)


def bar_processes():
    make()
    times = [[by_ranks(n, epoch + 1) for epoch in range(ROUNDS)] for n in (1, 2)]
    row("library: two processes, rank=0of2 and 1of2, of one, a processor each", *(f"{N / statistics.median(t):.0f} samples/s" for t in times[::-1]),
        ratio(*times), ">=", 1.8)


# ---- training ----


def bar_train():
    import torch
    from torch import nn

    from lib import idx_parse, load_gz

    images, labels = (torch.from_numpy(idx_parse(load_gz(f"{FASHION}/train-{name}-ubyte.gz")).copy()) for name in ("images-idx3", "labels-idx1"))

    def epoch_of(batches):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10))
        optimizer = torch.optim.SGD(net.parameters(), 0.05)
        begin = time.monotonic()
        for image, label in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(image.unsqueeze(1).float() / 255), label.long()).backward()
            optimizer.step()
        return time.monotonic() - begin

    def of_memory():
        order = torch.randperm(len(images))
        return ((images[chosen], labels[chosen]) for chosen in order.split(128))

    ours, theirs = [], []
    with epochfs.load(FASHION) as data:
        for epoch in range(ROUNDS + 1):
            batches = data["train"].batches("batch=128,seed=7", epoch=epoch, fields=["image", "label"])
            ours.append(epoch_of((torch.from_numpy(b["image"]), torch.from_numpy(b["label"])) for b in batches))
            theirs.append(epoch_of(of_memory()))
    ours, theirs = ours[1:], theirs[1:]
    row("library: a tiny CNN on fashion-mnist, of arrays in memory", *(f"{len(images) / statistics.median(t):.0f} images/s" for t in (ours, theirs)),
        ratio(theirs, ours), ">=", 0.97)


os.environ["EPOCHFS_LIBRARY"] = f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"
{name[len("bar_"):]: bar for name, bar in list(globals().items()) if name.startswith("bar_")}[sys.argv[1]]()
