#!/usr/bin/python3
# needs: data:idx python3-pil
"""MNIST, QMNIST and the files of the wild, where ../shared/data has them."""

import hashlib
import json
import os

import numpy as np

import model
from lib import (SHARED_IDX, contains, content, equal, idx_parse, load_gz, mounted, path, run,
                 text)


MD5 = {"t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
       "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637"}

with mounted(SHARED_IDX):
    for name, want in MD5.items():
        got = hashlib.md5(content(path("mnist/t10k/source", name))).hexdigest()
        equal(got, want, name)
    images = idx_parse(load_gz(f"{SHARED_IDX}/mnist/t10k-images-idx3-ubyte.gz"))
    labels = idx_parse(load_gz(f"{SHARED_IDX}/mnist/t10k-labels-idx1-ubyte.gz"))
    mnist = model.Dataset(path("mnist/t10k"), {"image": images, "label": labels})
    for sample in (0, 5000, 9999):
        model.check_sample(mnist, sample)
    model.check_batch(mnist, path("mnist/t10k/batches/batch=100"), 42, list(range(4200, 4300)))

    # QMNIST: class, series, writer, digit, NIST class, global id, duplicate, unused.
    folder = path("qmnist")
    names = [d for d in sorted(os.listdir(folder)) if "idx2" in d]
    equal(len(names), 1, f"QMNIST's 2-D labels among {os.listdir(folder)}")
    raw = idx_parse(load_gz(f"{SHARED_IDX}/qmnist/qmnist-test-labels-idx2-int.gz"))
    qmnist = model.Dataset(os.path.join(folder, names[0]), {"label": raw})
    page = json.loads(text(folder, names[0], "dataset.json"))
    equal((page["samples"], page["fields"][0]["dtype"], page["fields"][0]["shape"]),
          (60000, "int32", [8]), "QMNIST labels")
    for sample in (0, 59999):
        model.check_sample(qmnist, sample)
    every = np.load(f"{qmnist.folder}/batches/batch=all/npy/000000.label.npy")
    equal(np.array_equal(every, raw), True, "QMNIST labels")
    equal(np.array_equal(every[:10000, 0], labels), True, "its first 10000 are MNIST's")
    table = load_gz(f"{SHARED_IDX}/qmnist/qmnist-test-labels.tsv.gz").splitlines()[-60000:]
    want = np.array([row.split()[:8] for row in table], np.int32)
    equal(np.array_equal(every, want), True, "QMNIST labels equal the table")
    one = next(d for d in os.listdir(folder) if "idx1" in d)
    classes = np.load(f"{folder}/{one}/batches/batch=all/npy/000000.label.npy")
    equal(np.array_equal(classes, raw[:, 0]), True, "idx1 and idx2 labels agree")

    lone = os.listdir(path("mnist-potedo"))
    equal(len(lone), 1, "mnist-potedo")
    got = np.load(path("mnist-potedo", lone[0], "samples/npy/000007.label.npy"))
    equal(int(got), int(labels[7]), "mnist-potedo")

    for name in os.listdir(f"{SHARED_IDX}/emnist-lfs-pointers"):
        contains(text(path("emnist-lfs-pointers", name, "ERROR.txt")), name, "git-lfs",
                 "git lfs pull")

found = json.loads(run("info", "--json", SHARED_IDX))
equal("mnist/t10k" in [d["dataset"] for d in found["datasets"]], True, "info")
equal(len([u for u in found["unusable"] if "git lfs" in u["reason"]]), 2, "info")
