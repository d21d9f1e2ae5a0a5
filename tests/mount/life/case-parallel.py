#!/usr/bin/python3
# slow: many readers read everything
"""Many readers at once get the right bytes, also while plans are opened."""

import io
import os
import random
import subprocess
import sys

import numpy as np

import order_reference
from lib import (DEADLINE, EPOCHFS, FASHION, MOUNTPOINT, SLOW, equal, idx_parse, load_gz, mounted,
                 need_fashion, path, status)

READERS = 8
FILES = 300 if SLOW else 600


def reader(seed):
    """Files at random, in every encoding that is quick to check."""
    ref = order_reference.load()
    rng = random.Random(seed)
    images = idx_parse(load_gz(f"{FASHION}/t10k-images-idx3-ubyte.gz"))
    labels = idx_parse(load_gz(f"{FASHION}/t10k-labels-idx1-ubyte.gz"))
    for i in range(FILES):
        kind = rng.randrange(6)
        if kind < 2:
            sample = rng.randrange(10000)
            with open(path(f"t10k/samples/raw/{sample:06d}.image.raw"), "rb") as f:
                equal(f.read() == images[sample].tobytes(), True, f"sample {sample}")
            with open(path(f"t10k/samples/png/{sample:06d}.label.cls"), "rb") as f:
                equal(int(f.read()), labels[sample], f"label {sample}")
            continue
        # Small batches: the reference takes longer than the daemon.
        plan = (f"batch={rng.choice([3, 7, 12])},seed={rng.randrange(20)}" if kind < 5 else
                f"batch=8,rank={rng.randrange(4)}of4,seed={seed * 1000 + i},tail=wrap")
        epoch = rng.randrange(4)
        number = rng.randrange(min(70, ref.batch_count(10000, plan)))
        want = ref.batch_samples(10000, plan, epoch, number)
        folder = path(f"t10k/batches/{plan}/epoch={epoch}")
        if kind == 2:
            with np.load(f"{folder}/npz/{number:06d}.npz") as z:
                equal(z["index"].tolist(), want, plan)
                equal(np.array_equal(z["image"], images[want]), True, plan)
                equal(np.array_equal(z["label"], labels[want]), True, plan)
        elif kind == 3:
            x = np.load(f"{folder}/npy/{number:06d}.image01.npy", mmap_mode="r")
            equal(np.array_equal(x, images[want] / np.float32(255)), True, plan)
        else:
            with open(f"{folder}/raw/{number:06d}.image.raw", "rb", buffering=0) as f:
                off = rng.randrange(len(want) * 784)
                got = os.pread(f.fileno(), 5000, off)
                equal(got == images[want].tobytes()[off:off + 5000], True, plan)
        if i % 50 == 0:
            equal(os.path.basename(folder) in os.listdir(os.path.dirname(folder)), True,
                  f"{folder} is listed")
            status()


def main():
    need_fashion()
    with mounted(FASHION, "plan=batch=7+seed=3"):
        readers = [subprocess.Popen([sys.executable, __file__, str(i)]) for i in range(READERS)]
        codes = [r.wait() for r in readers]
        equal(codes, [0] * READERS, "exit codes of the readers")
        equal(status()["read_errors"], 0, "read_errors")
        # Four readers of one large file at once.
        file = path("t10k/batches/batch=all,seed=1/epoch=0/npz/000000.npz")
        sums = [subprocess.Popen(["md5sum", file], stdout=subprocess.PIPE) for _ in range(3)]
        sums.append(subprocess.Popen(["bash", "-c", 'cat "$0" | md5sum', file],
                                     stdout=subprocess.PIPE))
        got = {s.communicate()[0].split()[0] for s in sums}
        equal(len(got), 1, "sums of one file")
        with open(file, "rb") as f, np.load(io.BytesIO(f.read())) as z:
            equal(sorted(z["index"].tolist()), list(range(10000)), "all samples")
        # An interrupted reader returns at once and does no harm.
        for seed in range(2, 5):
            file = path(f"t10k/batches/batch=all,seed={seed}/epoch=0/npz/000000.npz")
            one = subprocess.Popen(["md5sum", file], stdout=subprocess.DEVNULL)
            os.stat(file)
            one.kill()
            one.wait(DEADLINE)
        # Two mounts of the same source at once, one folder each.
        other = os.path.join(os.path.dirname(MOUNTPOINT), "other")
        os.mkdir(other)
        with mounted(FASHION, at=other):
            name = "t10k/batches/batch=64,seed=5/epoch=6/tar/000010.tar"
            with open(path(name), "rb") as a, open(f"{other}/{name}", "rb") as b:
                equal(a.read() == b.read(), True, "two mounts show the same bytes")


if len(sys.argv) > 1:
    reader(int(sys.argv[1]))
else:
    assert EPOCHFS
    main()
