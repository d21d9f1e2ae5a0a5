#!/usr/bin/python3
# needs: python3-torch python3-pil
"""Pictures that are made for a plan, in Python: the batches of the library are those of the mount, and epochfs.torch has them as tensors."""

import io

import numpy as np
from PIL import Image

import epochfs
import epochfs.torch
import lib
from lib import MOUNTPOINT, SOURCE, equal, skip, start, stop, write

import os
import torch

if lib.SLOW or not os.path.exists(f"{os.path.dirname(lib.EPOCHFS)}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

PLAN, FIELDS = "batch=4,seed=7,picture=24x16,augment=t", ["image", "image_box", "image_norm", "label", "index"]
rng = np.random.default_rng(3)
for i in range(10):
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (30 + i, 40, 3), dtype=np.uint8)).save(out, "PNG")
    write(f"train/{'cat' if i % 2 else 'dog'}/{i}.png", out.getvalue())
daemon = start(SOURCE, "augment=t=rrc+flip+trivial,augment=c=crop:4", "normalize=imagenet")
mount = epochfs.Mount(MOUNTPOINT)
with epochfs.load(SOURCE, augment=["t=rrc+flip+trivial", "c=crop:4"], normalize="imagenet") as data:
    sets = mount["train"], data["train"]
    for epoch in 0, 5:
        for a, b in zip(*(dataset.batches(PLAN, epoch=epoch, fields=FIELDS, encoding="npy") for dataset in sets)):
            equal(list(a), list(b))
            for name in FIELDS:
                equal([a[name].dtype, a[name].shape, a[name].tobytes()], [b[name].dtype, b[name].shape, b[name].tobytes()], name)
        for a, b in zip(*(dataset.batches(PLAN, epoch=epoch) for dataset in sets)):
            equal([list(a), a["image"].tobytes()], [list(b), b["image"].tobytes()])
    for dataset in sets:
        batches = epochfs.torch.Batches(dataset, PLAN, fields=["image_norm", "label"], encoding="npy")
        for workers in 0, 2:
            batches.seek(0)
            found = list(epochfs.torch.Loader(batches, num_workers=workers))
            equal([(b["image_norm"].dtype, tuple(b["image_norm"].shape), b["label"].dtype) for b in found],
                  [(torch.float32, (n, 3, 24, 16), torch.int64) for n in (4, 4, 2)])
            torch.nn.Conv2d(3, 2, 3)(found[0]["image_norm"])
            equal(found[1]["image_norm"].numpy().tobytes(), sets[0].batches(PLAN, fields=["image_norm"], encoding="npy").read(1)["image_norm"].tobytes())
        # The size of the pictures is no part of the position: larger ones go on where smaller ones were.
        batches.seek(1, 2)
        larger = epochfs.torch.Batches(dataset, PLAN.replace("24x16", "32x32"), fields=["image_norm"], encoding="npy")
        larger.load_state_dict(batches.state_dict())
        equal([tuple(b["image_norm"].shape) for b in larger], [(2, 3, 32, 32)])
stop(daemon)
