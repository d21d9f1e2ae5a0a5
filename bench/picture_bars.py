#!/usr/bin/python3
"""The bars of pictures as arrays (bench/groups/pictures.sh): picture_bars.py BAR

A job reads shuffled batches of 64 arrays of 224 x 224 from JPEGs of 500 x 375: from a mount with
picture=, and from two worker processes that decode, scale and cut with PIL, and stack. Each reader
touches its arrays once. The other job trains a small CNN with torch, on arrays of 64 x 64 of the same
pictures in class folders: from batches of a mount that starts again each time, and from torchvision's
ImageFolder with two workers. Prints rows as cache_bars.py does.
"""

import io
import multiprocessing
import os
import statistics
import sys
import tarfile
import time

import numpy as np
from PIL import Image

import bars
from bars import ROUNDS, mount, row, say
from lib import PRIVATE, equal, status

SIDE, BATCH, BATCHES, KINDS = 224, 64, 24, 96
WIDTH, HEIGHT = 500, 375
FILES = f"{PRIVATE}/files"


def jpeg(seed):
    """As large as photographs of that size are: smooth, with edges, and noise."""
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.BICUBIC)).astype(int)
    for _ in range(20):
        y, x = random.integers(0, HEIGHT - 60), random.integers(0, WIDTH - 60)
        pixels[y:y + 60, x:x + 60] += random.integers(-60, 60, 3)
    pixels = np.clip(pixels + random.normal(0, 8, pixels.shape), 0, 255)
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(out, "JPEG", quality=88)
    return out.getvalue()


def make():
    """The same pictures as files and as one tar of samples; returns the mean size of a file."""
    os.makedirs(FILES)
    os.makedirs(bars.WWW)
    kinds = [jpeg(seed) for seed in range(KINDS)]
    with tarfile.open(f"{bars.WWW}/pictures.tar", "w") as tar:
        for i in range(BATCH * BATCHES):
            data = kinds[i % KINDS]
            with open(f"{FILES}/{i:06}.jpg", "wb") as f:
                f.write(data)
            member = tarfile.TarInfo(f"{i:06}.jpg")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return statistics.mean(len(k) for k in kinds)


def work(batch):
    """What a worker of a loader does with a batch."""
    arrays = []
    for i in batch:
        image = Image.open(f"{FILES}/{i:06}.jpg").convert("RGB")
        width = SIDE * WIDTH // HEIGHT
        left = round((width - SIDE) / 2)
        image = image.resize((width, SIDE), Image.BILINEAR).crop((left, 0, left + SIDE, SIDE))
        arrays.append(np.asarray(image))
    return np.stack(arrays)


def by_pil(pool, orders):
    begin = time.monotonic()
    total = sum(int(batch[:, ::7, ::7].sum()) for batch in pool.imap(work, orders))
    return time.monotonic() - begin, total


def by_mount(folder, load):
    begin = time.monotonic()
    total = sum(int(load(f"{folder}/{i:06}")[:, ::7, ::7].sum()) for i in range(BATCHES))
    return time.monotonic() - begin, total


def bar_image():
    say(f"JPEGs of {make() / 1000:.0f} KB on average")
    loads = {"npy": lambda path: np.load(f"{path}.image.npy"),
             "npz": lambda path: np.load(f"{path}.npz")["image"]}
    took = {what: [] for what in ("PIL", *loads)}
    at = f"{PRIVATE}/mount"
    os.mkdir(at)
    with multiprocessing.Pool(2) as pool, mount(bars.WWW, f"image_size={SIDE}x{SIDE}"):
        dataset = bars.dataset(at)
        by_pil(pool, [[0], [1]])
        for turn in range(ROUNDS):
            for k, (what, load) in enumerate(loads.items()):
                epoch = f"{dataset}/batches/batch={BATCH},seed=3/epoch={2 * turn + k}"
                seconds, total = by_mount(f"{epoch}/{what}", load)
                took[what].append(seconds)
            orders = [np.load(f"{epoch}/npy/{i:06}.index.npy").tolist() for i in range(BATCHES)]
            seconds, expected = by_pil(pool, orders)
            took["PIL"].append(seconds)
            if abs(total - expected) > expected / 200:
                raise AssertionError(f"sums differ: {total}, PIL {expected}")
    n = BATCH * BATCHES
    for what in loads:
        row(f"image batches of {BATCH}, {what}, against PIL in two processes",
            f"{n / statistics.median(took[what]):.0f} pictures/s",
            f"{n / statistics.median(took['PIL']):.0f} pictures/s",
            bars.ratio(took["PIL"], took[what]), ">=" if what == "npy" else "-", 2)


def bar_kept():
    """From a mount that finds all pictures in the cache folder, decoded by another one."""
    make()
    loads = {"npy": lambda path: np.load(f"{path}.image.npy"),
             "npz": lambda path: np.load(f"{path}.npz")["image"]}
    took = {what: [] for what in ("PIL", *loads)}
    at, cache = f"{PRIVATE}/mount", f"{PRIVATE}/cache"
    os.mkdir(at)
    os.mkdir(cache, 0o700)
    options = (f"image_size={SIDE}x{SIDE}", "decoded_cache=10G", f"cache_dir={cache}")
    plan = f"batches/batch={BATCH},seed=3"
    with mount(bars.WWW, *options):
        by_mount(f"{bars.dataset(at)}/{plan}/epoch=0/npy", loads["npy"])
    with multiprocessing.Pool(2) as pool:
        by_pil(pool, [[0], [1]])
        for turn in range(ROUNDS):
            with mount(bars.WWW, *options):
                for k, (what, load) in enumerate(loads.items()):
                    epoch = f"{bars.dataset(at)}/{plan}/epoch={2 * turn + k + 1}"
                    seconds, total = by_mount(f"{epoch}/{what}", load)
                    took[what].append(seconds)
                orders = [np.load(f"{epoch}/npy/{i:06}.index.npy").tolist() for i in range(BATCHES)]
                equal(status(at)["pictures"]["decoded"], 0, "decoded again")
            seconds, expected = by_pil(pool, orders)
            took["PIL"].append(seconds)
            if abs(total - expected) > expected / 200:
                raise AssertionError(f"sums differ: {total}, PIL {expected}")
    n = BATCH * BATCHES
    for what in loads:
        row(f"kept image batches of {BATCH}, {what}, against PIL in two processes",
            f"{n / statistics.median(took[what]):.0f} pictures/s",
            f"{n / statistics.median(took['PIL']):.0f} pictures/s",
            bars.ratio(took["PIL"], took[what]), ">=" if what == "npy" else "-", 10)


SMALL, CLASSES = 64, 10


def make_classes():
    """The same pictures in class folders."""
    kinds = [jpeg(seed) for seed in range(KINDS)]
    for i in range(BATCH * BATCHES):
        folder = f"{bars.WWW}/train/class{i % CLASSES}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{i:06}.jpg", "wb") as f:
            f.write(kinds[i % KINDS])


def train(batches):
    """Train a new net on batches of (uint8 or float [n, 3, h, w] up to 1, labels): images/s."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Linear(16 * 36, CLASSES))
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    begin, n = time.monotonic(), 0
    for image, label in batches():
        image = image.float().div_(255) if image.dtype == torch.uint8 else image
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(image), label)
        loss.backward()
        optimizer.step()
        n += len(label)
    if n != BATCH * BATCHES or not np.isfinite(loss.item()):
        raise AssertionError(f"{n} pictures, loss {loss.item()}")
    return time.monotonic() - begin


def bar_torch():
    import torch
    from torchvision import datasets, transforms

    make_classes()
    scale = transforms.Compose([transforms.Resize(SMALL), transforms.CenterCrop(SMALL), transforms.ToTensor()])
    folder = datasets.ImageFolder(f"{bars.WWW}/train", scale)
    loader = torch.utils.data.DataLoader(folder, BATCH, shuffle=True, num_workers=2)
    at = f"{PRIVATE}/mount"
    os.mkdir(at)
    took = {"mount": [], "torchvision": []}

    def batches():
        for i in range(BATCHES):
            arrays = np.load(f"{bars.dataset(at)}/batches/batch={BATCH},seed=3/epoch=0/npz/{i:06}.npz")
            yield torch.from_numpy(arrays["image"]).permute(0, 3, 1, 2), torch.from_numpy(arrays["label"])

    train(lambda: loader)  # files are in the page cache, torch is loaded
    for _ in range(ROUNDS):
        with mount(bars.WWW, f"image_size={SMALL}x{SMALL}"):
            took["mount"].append(train(batches))
        took["torchvision"].append(train(lambda: loader))
    n = BATCH * BATCHES
    row(f"training on {SMALL} x {SMALL}, against ImageFolder with two workers",
        f"{n / statistics.median(took['mount']):.0f} images/s",
        f"{n / statistics.median(took['torchvision']):.0f} images/s",
        bars.ratio(took["torchvision"], took["mount"]), ">=", 1.3)


BARS = {"image": bar_image, "kept": bar_kept, "torch": bar_torch}

if __name__ == "__main__":
    equal(len(sys.argv), 2, "arguments")
    BARS[sys.argv[1]]()
