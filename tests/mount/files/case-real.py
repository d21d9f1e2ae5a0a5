#!/usr/bin/python3
# needs: data:files
"""Real folders of pictures, against what is known of them (EXPECTED-collections.md next to the data)."""

import hashlib
import json
import os
import re

import numpy as np

from lib import content, equal, mounted, path, text

DATA = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "files")
EXPECTED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "EXPECTED-collections.md")

with open(EXPECTED) as f:
    lines = f.read().splitlines()
datasets, current = {}, None
for line in lines:
    head = re.match(r"ImageFolder files/(\S+): classes (\[.*\]), samples (\d+)", line)
    row = re.match(r"\s+(\d+): (\S+) label (\d+) (\d+) B .* sha ([0-9a-f]{16})", line)
    if head:
        current = datasets[head[1]] = (json.loads(head[2].replace("'", '"')), int(head[3]), [])
    elif row and current:
        current[2].append((int(row[1]), row[2], int(row[3]), int(row[4]), row[5]))
    elif not line.startswith(" "):
        current = None
equal(len(datasets), 5, "folders with class folders")

with mounted(DATA):
    for name, (classes, n, rows) in datasets.items():
        about = json.loads(text(path(name, "dataset.json")))
        has_label = len(classes) > 1  # one class says nothing
        equal((about["samples"], about.get("classes")), (n, classes if has_label else None), name)
        folder = path(name, "batches/batch=all")
        keys = content(folder, "npy/000000.key.txt").decode().splitlines()
        equal(os.path.exists(f"{folder}/npy/000000.label.npy"), has_label, f"{name}: label")
        labels = np.load(f"{folder}/npy/000000.label.npy").tolist() if has_label else [0] * n
        for number, file, label, size, sha in rows:
            stem, ext = os.path.splitext(os.path.basename(file))
            equal((keys[number], labels[number]), (stem, label), f"{name} sample {number}")
            data = content(path(name, "samples/raw", stem + ext))
            equal((len(data), hashlib.sha256(data).hexdigest()[:16]), (size, sha), file)
    # One stem, several kinds of pictures: one sample (F-11).
    equal(sorted(os.listdir(path("formats/samples/raw"))),
          ["apple.bmp", "apple.gif", "apple.jpg", "apple.png", "apple.tiff", "apple.webp",
           "apple_4_channels.png", "apple_grayscale.jpg"], "formats")
    equal(json.loads(text(path("formats/dataset.json")))["samples"], 3, "formats")
    for file in os.listdir(f"{DATA}/formats"):
        equal(content(path("formats/samples/raw", file)), content(DATA, "formats", file), file)
    names = sorted(os.listdir(path("mnist-flat/samples/raw")))
    equal((len(names), names[0], names[-1]), (30, "000000-num7.png", "000029-num1.png"), "mnist-flat")
