#!/usr/bin/python3
"""Class folders: the samples, labels and classes of torchvision's ImageFolder, numeric names (F-6) and a class
without a picture (F-4) included; files next to a picture; every encoding; splits; shuffled batches."""

import json
import os

import numpy as np

import files_model as model
from lib import MOUNTPOINT, SOURCE, contains, content, equal, mounted, path, run, skip, text, write

rng = np.random.default_rng(5)


def data(n=None):
    return rng.integers(0, 256, n or int(rng.integers(1, 3000)), dtype=np.uint8).tobytes()


def make():
    for split, count in (("train", 12), ("val", 3)):
        for name in ("10", "9", "cat", "a-b", "a"):
            for i in range(count):
                write(f"{split}/{name}/{name}_{i:03d}.{'JPEG' if i % 5 == 1 else 'jpg'}", data())
        for i in range(3):  # folders below a class, and names that repeat
            write(f"{split}/cat/sub/{i}.png", data())
            write(f"{split}/cat/sub-x/{i}.png", data())
            write(f"{split}/9/{i}.png", data())
        write(f"{split}/a/a_000.json", b'{"x": 1}')
        write(f"{split}/a/a_000.seg.png", data())
        write(f"{split}/a/Thumbs.db", b"thumbs")
        write(f"{split}/README.md", b"# Data\n")
        write(f"{split}/.hidden/x.jpg", b"x")
    write("train/cat/empty.jpg", b"")
    os.makedirs(f"{SOURCE}/train/zebra")


def check_split(split):
    classes, samples = model.class_folders(f"{SOURCE}/{split}")
    n = len(samples)
    about = json.loads(text(path(split, "dataset.json")))
    equal(about["samples"], n, "samples")
    equal(about["classes"], [c.decode() for c in classes], "classes")
    model.check_samples(path(split), samples)
    for i in (0, 7, n - 1):
        key = model.name_of(samples[i].key).decode()
        equal(np.load(path(split, "samples/npy", f"{key}.label.npy")).tolist(), samples[i].label, "label")
    for plan, order in (("batch=16", None), ("batch=16,seed=3", "epoch=1"), ("batch=all", None)):
        folder = path(split, "batches", plan, *([order] if order else []))
        seen = []
        for name in sorted(os.listdir(f"{folder}/npz")):
            numbers = np.load(f"{folder}/npz/{name}")["index"].tolist()
            seen += numbers
            chosen = [samples[i] for i in numbers]
            model.check_npz(content(folder, "npz", name), chosen, numbers)
            model.check_tar(content(folder, "tar", name.replace("npz", "tar")), chosen)
            number = name.partition(".")[0]
            equal(np.load(f"{folder}/npy/{number}.label.npy").tolist(), [s.label for s in chosen], "label.npy")
            equal(content(folder, "npy", f"{number}.key.txt").splitlines(), [s.key for s in chosen], "key.txt")
        equal(sorted(seen), list(range(n)), f"all samples of {plan}")
    return samples


def check_torchvision(split, samples):
    try:
        from torchvision.datasets.folder import make_dataset, find_classes
    except ImportError:
        return
    root = f"{SOURCE}/{split}"
    names, numbers = find_classes(root)
    numbers.pop(".hidden", None)
    names = [n for n in names if n != ".hidden"]
    numbers = {name: i for i, name in enumerate(names)}
    if "zebra" in numbers:
        os.rmdir(f"{root}/zebra")
        os.makedirs(f"{root}/.away")
        numbers.pop("zebra")
    listed = make_dataset(root, numbers, extensions=tuple(e.decode() for e in model.PICTURES))
    equal([(os.fsdecode(s.path), s.label) for s in samples], listed, "torchvision's ImageFolder")


make()
with mounted():
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "README.txt", "train", "val"], "top")
    for split in ("train", "val"):
        samples = check_split(split)
        check_torchvision(split, samples)
    contains(text(path("README.txt")), "samples/raw")
found = run("info", SOURCE)
contains(found, "train", "ignored: 1 .md (README.md), 1 .db (Thumbs.db)", "zebra" if os.path.isdir(f"{SOURCE}/train/zebra") else "train")

# SOURCE itself is the dataset `all`.
with mounted(f"{SOURCE}/val"):
    classes, samples = model.class_folders(f"{SOURCE}/val")
    model.check_samples(path("all"), samples)
