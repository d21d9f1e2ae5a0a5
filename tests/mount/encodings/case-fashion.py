#!/usr/bin/python3
# needs: python3-pil
"""Every encoding of samples and batches of Fashion-MNIST t10k against numpy, and how readers
open them: pread, lseek, mmap, np.load, np.memmap, sklearn."""

import glob
import mmap
import os
import random

import numpy as np

import model
from lib import (FASHION, SLOW, content, equal, expect_error, idx_parse, load_gz, mounted,
                 need_fashion, path)

need_fashion()
images = idx_parse(load_gz(f"{FASHION}/t10k-images-idx3-ubyte.gz"))
labels = idx_parse(load_gz(f"{FASHION}/t10k-labels-idx1-ubyte.gz"))
ds = model.Dataset(path("t10k"), {"image": images, "label": labels})
rng = random.Random(1)


def check_ranges(file):
    """pread at odd places, lseek, small and large pieces: always the same bytes."""
    whole = content(file)
    fd = os.open(file, os.O_RDONLY)
    try:
        for _ in range(60):
            off = rng.randrange(len(whole) + 10)
            size = rng.choice([0, 1, 2, 3, 511, 4095, 4096, 4097, 65537, 2 ** 20 + 1])
            equal(os.pread(fd, size, off) == whole[off:off + size], True, f"{file}: {size}@{off}")
        equal(os.pread(fd, 10, len(whole)), b"", "behind the end")
        equal(os.lseek(fd, -7, os.SEEK_END), len(whole) - 7, "lseek")
        equal(os.read(fd, 100), whole[-7:], "read after lseek")
        equal(os.lseek(fd, 5, os.SEEK_SET), 5, "lseek")
        equal(os.read(fd, 3), whole[5:8], "read after lseek")
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
            equal(m[:] == whole, True, f"{file}: mmap")
            off = rng.randrange(len(whole) - 1)
            equal(m[off:off + 5000] == whole[off:off + 5000], True, f"{file}: mmap at {off}")
        with mmap.mmap(fd, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ) as m:
            equal(m[-1], whole[-1], "shared mmap")
        expect_error(13, mmap.mmap, fd, 0)  # a writable one
    finally:
        os.close(fd)


def check_cold_ranges(folder):
    """The same for files that no reader has read whole: each piece is made by itself."""
    for enc in ds.encodings():
        for suffix in ds.suffixes(enc, True):
            file = f"{folder}/{enc}/000003{suffix}"
            size = os.stat(file).st_size
            fd = os.open(file, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            pieces = {off: os.pread(fd, n, off)
                      for off, n in ((size - 1, 1), (size // 2, 4097), (1, 1), (size - 30, 30),
                                     (4095, 3), (size // 3, 70000))}
            os.close(fd)
            whole = content(file)
            for off, piece in pieces.items():
                equal(piece == whole[off:off + len(piece)] and bool(piece) == (off < size), True,
                      f"{file}: cold at {off}")


with mounted(FASHION):
    for sample in [0, 1, 9999] + rng.sample(range(10000), 20 if SLOW else 60):
        model.check_sample(ds, sample)
    plan = f"{ds.folder}/batches/batch=128"
    for number in (0, 1, 78):
        model.check_batch(ds, plan, number, list(range(number * 128, min(10000, number * 128 + 128))))
    check_cold_ranges(f"{ds.folder}/batches/batch=500")
    model.check_batch(ds, f"{ds.folder}/batches/batch=all", 0, list(range(10000)))
    model.check_batch(ds, f"{ds.folder}/batches/batch=1", 77, [77])

    for file in (f"{plan}/npy/000002.image01.npy", f"{plan}/npz/000002.npz",
                 f"{plan}/tar/000002.tar", f"{plan}/png/000002.image.png",
                 f"{ds.folder}/batches/batch=all/npz/000000.npz",
                 path("t10k/source/t10k-images-idx3-ubyte"),
                 f"{ds.folder}/samples/npy/000123.image.npy"):
        check_ranges(file)

    mapped = np.load(f"{ds.folder}/batches/batch=all/npy/000000.image.npy", mmap_mode="r")
    equal(isinstance(mapped, np.memmap), True, "mmap_mode")
    equal(np.array_equal(mapped[4321], images[4321]), True, "mmap_mode")
    equal(np.array_equal(mapped, images), True, "mmap_mode")
    raw = np.memmap(f"{ds.folder}/batches/batch=all/raw/000000.image.raw", mode="r",
                    shape=(10000, 28, 28))
    equal(np.array_equal(raw[::977], images[::977]), True, "np.memmap of raw")

    files = sorted(glob.glob(f"{plan}/npz/*"))
    equal(len(files), 79, "glob")
    x = np.concatenate([np.load(f)["image"] for f in files])
    y = np.concatenate([np.load(f)["label"] for f in files])
    equal(np.array_equal(x, images) and np.array_equal(y, labels), True, "an epoch by glob")

    try:
        from sklearn.linear_model import SGDClassifier
    except ImportError:
        print("without sklearn")
    else:
        classifier = SGDClassifier(random_state=0)
        train = f"{path('train')}/batches/batch=1000,seed=7/epoch=0/npy"
        for number in range(5):
            x = np.load(f"{train}/{number:06d}.image01.npy")
            y = np.load(f"{train}/{number:06d}.label.npy")
            classifier.partial_fit(x.reshape(len(x), -1), y, classes=range(10))
        x = np.load(f"{plan}/npy/000000.image01.npy")
        score = classifier.score(x.reshape(len(x), -1), labels[:128])
        equal(score > 0.6, True, f"a classifier learns from shuffled batches: {score}")
