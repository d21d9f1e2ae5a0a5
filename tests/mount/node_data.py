"""Files on a server that several nodes read, each in its own order: for the cases that count what the origin sends."""

import os
import random

import numpy as np

from lib import PRIVATE, idx_bytes
from servers import place, read_anew

WWW = f"{PRIVATE}/www"
PIECE = 64 << 10
rng = np.random.default_rng(5)


def any_images(n):
    return idx_bytes(rng.integers(0, 256, (n, 32, 32), dtype=np.uint8))


DATA = {"train/train-images-idx3-ubyte": any_images(9000),
        "train/train-labels-idx1-ubyte": idx_bytes(rng.integers(0, 10, 9000, dtype=np.uint8)),
        "one-data": any_images(7000), "sub/two-data": any_images(3001)}
SIZES = {f"/{name}": len(data) for name, data in DATA.items()}
TOTAL = sum(SIZES.values())
for file, data in DATA.items():
    place(WWW, file, data)


def in_mount(name):
    """The place of a source file's bytes in a mount."""
    folder, base = os.path.split(name)
    return f"train/train/source/{base}" if folder == "train" else f"{name}/source/{base}"


def read_all(daemon, seed, wrong):
    """Every piece of every file, in this node's own order."""
    pieces = [(name, at) for name, data in DATA.items() for at in range(0, len(data), PIECE)]
    random.Random(seed).shuffle(pieces)
    for name, at in pieces:
        if read_anew(daemon.at, in_mount(name), size=PIECE, offset=at) != DATA[name][at:at + PIECE]:
            wrong.append((seed, name, at))
