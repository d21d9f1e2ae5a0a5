#!/usr/bin/python3
"""The bars of augmented pictures (bench/groups/augment.sh): augment_bars.py BAR

Ours are batches of the library, whose threads make them ahead. Theirs are batches of torchvision's transforms in a
DataLoader with two workers. Both are uint8, both read the same JPEGs of 500 x 375 from the page cache, and each reader
touches its arrays once. All sides are measured in turn, after a pass that touches their memory. Prints rows as cache_bars.py
does.
"""

import os
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms
from torchvision.transforms import InterpolationMode

import bars
import picture_bars
from bars import ROUNDS, row, say
from lib import EPOCHFS, PRIVATE, equal
from picture_bars import BATCH, SIDE

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, f"{ROOT}/python")
import epochfs

N = BATCH * picture_bars.BATCHES
BILINEAR = InterpolationMode.BILINEAR
POLICIES = {"trivial": transforms.TrivialAugmentWide(interpolation=BILINEAR),
            "auto": transforms.AutoAugment(interpolation=BILINEAR),
            "rand": transforms.RandAugment(interpolation=BILINEAR)}


def touch(image):
    """Read a part of each row of a batch."""
    return int(np.asarray(image)[:, ::7, ::7].sum())


def by_library(data, plan, epoch, fields=("image",)):
    """Seconds of an epoch."""
    seen, begin = 0, time.monotonic()
    for batch in data.batches(plan, epoch=epoch, fields=list(fields)):
        touch(batch["image"])
        seen += len(batch["image"])
    equal(seen, len(data), "samples of an epoch")
    return time.monotonic() - begin


def by_torchvision(loader, samples):
    seen, begin = 0, time.monotonic()
    for image, _ in loader:
        touch(image)
        seen += len(image)
    equal(seen, samples, "samples of an epoch")
    return time.monotonic() - begin


def loader_of(dataset, batch=BATCH):
    return torch.utils.data.DataLoader(dataset, batch, shuffle=True, num_workers=2)


def folder_of(*steps):
    """The JPEGs with these transforms between the flip and the tensor."""
    crop = [transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip()]
    return loader_of(datasets.ImageFolder(f"{bars.WWW}/train", transforms.Compose([*crop, *steps, transforms.PILToTensor()])))


def in_turn(sides):
    """{name: seconds of each round} of {name: function of a round's number}; the first round does not count."""
    took = {name: [] for name in sides}
    for turn in range(ROUNDS + 1):
        for name, side in sides.items():
            seconds = side(turn)
            if turn:
                took[name].append(seconds)
    return took


def compare(what, took, ours, theirs, bound, samples=N):
    row(what, *(f"{samples / statistics.median(took[side]):.0f} pictures/s" for side in (ours, theirs)),
        bars.ratio(took[theirs], took[ours]), ">=", bound)


def pictures(recipe, **options):
    return epochfs.load(bars.WWW, image_size=f"{SIDE}x{SIDE}", augment=f"t={recipe}", **options)


PLAIN, AUGMENTED = f"batch={BATCH},seed=3", f"batch={BATCH},seed=3,augment=t"


def bar_crop():
    picture_bars.make_classes()
    loader = folder_of()
    with pictures("rrc+flip") as source:
        data = source["train"]
        took = in_turn({"rrc": lambda k: by_library(data, AUGMENTED, k), "plain": lambda k: by_library(data, PLAIN, k),
                        "torchvision": lambda k: by_torchvision(loader, N)})
    compare("rrc+flip, against the middle of the pictures", took, "rrc", "plain", 1)
    compare("rrc+flip, against torchvision with two workers", took, "rrc", "torchvision", 2.5)


def bar_policies():
    picture_bars.make_classes()
    for word, step in POLICIES.items():
        loader = folder_of(step)
        with pictures(f"rrc+flip+{word}") as source:
            data = source["train"]
            took = in_turn({"ours": lambda k: by_library(data, AUGMENTED, k),
                            "torchvision": lambda k: by_torchvision(loader, N)})
        compare(f"rrc+flip+{word}, against torchvision with two workers", took, "ours", "torchvision", 2)


def bar_base():
    """Pictures whose short side is 256 that another process has kept, against decoding them."""
    picture_bars.make_classes()
    cache = f"{PRIVATE}/cache"
    os.mkdir(cache, 0o700)
    kept = dict(decoded_cache="4G", cache_dir=cache)
    with pictures("base:256+rrc+flip", **kept) as source:
        by_library(source["train"], AUGMENTED, 0)
    with pictures("base:256+rrc+flip", **kept) as warm, pictures("base:256+rrc+flip") as cold:
        took = in_turn({"kept": lambda k: by_library(warm["train"], AUGMENTED, k + 1),
                        "decoded": lambda k: by_library(cold["train"], AUGMENTED, k + 1)})
    compare("base:256+rrc+flip, kept, against decoded", took, "kept", "decoded", 2)


class InMemory(torch.utils.data.Dataset):
    """Tensors with v1 transforms, as CIFAR is often trained on."""

    steps = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip()])

    def __init__(self, images, labels):
        self.images = torch.from_numpy(images.reshape(-1, 3, 32, 32))
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.steps(self.images[i]), self.labels[i]


def make_cifar(n):
    """A file of CIFAR-10's binary version, of random pictures."""
    records = np.random.default_rng(1).integers(0, 256, (n, 1 + 3072), dtype=np.uint8)
    records[:, 0] %= 10
    folder = f"{bars.WWW}/cifar-10-batches-bin"
    os.makedirs(folder)
    records.tofile(f"{folder}/data_batch_1.bin")
    return records[:, 1:].copy(), records[:, 0].tolist()


def bar_cifar():
    n = 10_000
    loader = loader_of(InMemory(*make_cifar(n)), 128)
    with epochfs.load(bars.WWW, augment="t=crop:4+flip") as source:
        data = source[next(iter(source))]
        took = in_turn({"ours": lambda k: by_library(data, "batch=128,seed=3,augment=t", k),
                        "torchvision": lambda k: by_torchvision(loader, n)})
    compare("CIFAR crop:4+flip, against tensors with two workers", took, "ours", "torchvision", 5, n)


def bar_train():
    """ResNet-18 on two cores: the share of time that waits for batches, after the first one."""
    from torchvision.models import resnet18

    picture_bars.make_classes()
    torch.manual_seed(1)
    model = resnet18(num_classes=10)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with pictures("rrc+flip+trivial", normalize="imagenet") as source:
        batches = iter(source["train"].batches(AUGMENTED, fields=["image_norm", "label"], encoding="npy"))
        waits, begin = [], time.monotonic()
        for k in range(9):
            asked = time.monotonic()
            batch = next(batches)
            waits.append(time.monotonic() - asked)
            if not k:
                begin = time.monotonic()
            loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(batch["image_norm"])),
                                                     torch.from_numpy(batch["label"]).long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        took = time.monotonic() - begin
    row("ResNet-18, rrc+flip+trivial, waiting for batches", f"{sum(waits[1:]) * 1e3:.0f} ms", f"{took:.1f} s",
        sum(waits[1:]) / took, "<=", 0.02)


def make_shapes(n):
    """Pictures of three classes in folders, n for training and as many for validation."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[-40:40, -55:55]
    inside = {"stripes": np.sin(x / 3) > 0, "checks": np.sin(x / 3) * np.sin(y / 3) > 0, "slope": x + y > 0}
    for i in range(2 * n):
        name = list(inside)[i % 3]
        folder = f"{bars.WWW}/{'train' if i < n else 'val'}/{name}"
        os.makedirs(folder, exist_ok=True)
        pixels = np.where(np.roll(inside[name], rng.integers(-9, 9), 1)[..., None], *rng.integers(0, 256, (2, 3)))
        pixels = pixels + rng.normal(0, 10, (80, 110, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(f"{folder}/{i:04}.jpg")


def accuracy(batches, validation, seed):
    """A small CNN on batches(epoch) of normalised pictures and labels, then its accuracy on others."""
    from torch import nn

    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
                          nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 3))
    optimizer = torch.optim.Adam(model.parameters(), 0.003)
    for epoch in range(12):
        for image, label in batches(epoch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(image), label).backward()
            optimizer.step()
    with torch.no_grad():
        return torch.cat([model(image).argmax(1) == label for image, label in validation]).float().mean().item()


def bar_accuracy():
    """Three seeds of each; the difference of the means against what chance allows in 95 of 100 cases (t of 4 degrees)."""
    n, seeds = 600, (1, 2, 3)
    make_shapes(n)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    folder = datasets.ImageFolder(f"{bars.WWW}/train", transforms.Compose([
        transforms.RandomResizedCrop(48), transforms.RandomHorizontalFlip(), POLICIES["trivial"], transforms.ToTensor(),
        transforms.Normalize(mean, std)]))

    def ours(source, name, plan, epoch=0):
        for batch in source[name].batches(plan, epoch=epoch, fields=["image_norm", "label"], encoding="npy"):
            yield torch.from_numpy(batch["image_norm"]), torch.from_numpy(batch["label"]).long()

    with epochfs.load(bars.WWW, image_size="48x48", augment="t=rrc+flip+trivial", normalize="imagenet") as source:
        validation = list(ours(source, "val", "batch=100"))
        a = [accuracy(lambda epoch, seed=seed: ours(source, "train", f"batch=32,seed={seed},augment=t", epoch), validation, seed)
             for seed in seeds]
    b = [accuracy(lambda epoch: torch.utils.data.DataLoader(folder, 32, shuffle=True), validation, seed) for seed in seeds]
    noise = 2.776 * ((statistics.variance(a) + statistics.variance(b)) / len(seeds)) ** 0.5
    row("accuracy of a small CNN, difference from torchvision's transforms", f"{statistics.mean(a) * 100:.1f} %",
        f"{statistics.mean(b) * 100:.1f} %", abs(statistics.mean(a) - statistics.mean(b)) / max(noise, 0.005), "<=", 1)


LARGE = f"""
import re, sys
sys.path.insert(0, {ROOT + '/python'!r})
import epochfs

def peak():
    with open('/proc/self/status') as f:
        return int(re.search(r'VmHWM:\\s*(\\d+)', f.read())[1])

before = peak()
with epochfs.load(sys.argv[1], image_size='224x224', augment='t=rrc+flip') as data:
    for epoch in range(4):
        data['train'].batches('batch=4,seed=3,augment=t', epoch=epoch, fields=['image']).read(0)
print(peak() - before)
"""


def bar_large():
    """A JPEG of 16384 x 16384, which would be 768 MiB, among small ones."""
    os.makedirs(f"{bars.WWW}/train/a")
    side = 16384
    Image.new("L", (side, side), 77).convert("RGB").save(f"{bars.WWW}/train/a/0.jpg", quality=90)
    for i in range(1, 4):
        with open(f"{bars.WWW}/train/a/{i}.jpg", "wb") as f:
            f.write(picture_bars.jpeg(i))
    done = subprocess.run([sys.executable, "-c", LARGE, bars.WWW], check=True, stdout=subprocess.PIPE)
    used = int(done.stdout) / 1024
    row(f"memory for a JPEG of {side} x {side}", f"{used:.0f} MiB", "256 MiB", used / 256, "<=", 1)


BARS = {"crop": bar_crop, "policies": bar_policies, "base": bar_base, "cifar": bar_cifar, "train": bar_train,
        "accuracy": bar_accuracy, "large": bar_large}

if __name__ == "__main__":
    equal(len(sys.argv), 2, "arguments")
    os.environ["EPOCHFS_LIBRARY"] = f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"
    say(f"{N} JPEGs, {ROUNDS} rounds")
    BARS[sys.argv[1]]()
