#!/usr/bin/python3
# needs: python3-torch
"""A PyTorch job reads a mix on four ranks, stops, and goes on with two and with eight, over the end of an epoch: the
same samples in each global batch."""

import os

import numpy as np

from lib import SOURCE, equal, mounted, path, small

import torch  # pylint: disable=wrong-import-position
from torch.utils.data import DataLoader, Dataset  # pylint: disable=wrong-import-position

GLOBAL, SEED = 32, 7
TEXT = "one/train*7+two/train*3+three/train*2@150:one/train*1+three/train*1/96"
STEPS = 96 // GLOBAL


class Batches(Dataset):
    """The batches of a rank from a step on, over all epochs."""

    def __init__(self, rank, ranks, steps):
        self.plan = f"batch={GLOBAL // ranks},rank={rank}of{ranks},seed={SEED},tail=drop"
        self.steps = steps

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, k):
        epoch, batch = divmod(self.steps[k], STEPS)
        with np.load(path("m", "batches", self.plan, f"epoch={epoch}", "npz", f"{batch:06d}.npz")) as data:
            return {name: torch.from_numpy(data[name]) for name in ("image", "label", "source", "index")}


def read(ranks, steps):
    """What each global step has, its ranks interleaved: element j of rank k is element j * ranks + k of all."""
    loaders = [DataLoader(Batches(rank, ranks, steps), batch_size=None, num_workers=1) for rank in range(ranks)]
    found = []
    for parts in zip(*loaders):
        found.append({name: torch.stack([p[name] for p in parts], 1).flatten(0, 1) for name in parts[0]})
    equal(len(found), len(steps), f"{ranks} ranks: steps")
    return found


def check(first, second):
    for step, (a, b) in enumerate(zip(first, second, strict=True)):
        for name in a:
            equal(torch.equal(a[name], b[name]), True, f"step {step}: {name}")


for name, n in (("one", 40), ("two", 11), ("three", 5)):
    small(n, name=f"{name}/", seed=n)
everything = list(range(4 * STEPS))
with mounted(SOURCE, f"mix=m={TEXT}"):
    alone = read(1, everything)
    equal({tuple(step["source"].unique().tolist()) for step in alone} >= {(0, 1, 2), (0, 2)}, True, "sources, and later two")
    four = read(4, everything[:5])
for ranks in (2, 8):  # the job is started again, and so is the mount
    with mounted(SOURCE, f"mix=m={TEXT}"):
        check(four + read(ranks, everything[5:]), alone)
# Weights that change later were not known before: what was read then is the same.
with mounted(SOURCE, f"mix=m={TEXT.split('@')[0]}/96"):
    check(read(2, everything[:4]), alone[:4])
equal(os.path.isdir(path("m")), False, "unmounted")
