#!/usr/bin/python3
"""docs/plans.md: its commands, and that each path of its examples opens."""

import os

import numpy as np

import pages
from lib import equal, idx_bytes
from page_blocks import take

world = pages.World()
world.fashion()
rng = np.random.default_rng(3)
for name in ("n01440764_10026", "n01440764_10027", *(f"n0{i}" for i in range(40))):
    world.file(f"/data/train/{name}.jpg", b"\xff\xd8\xff\xe0" + name.encode())
world.file("clean.txt", b"n01440764_10026\n#17\nn01440764_10027\n")
world.file("/data/train/.keep", b"")
os.makedirs("/mnt/mnist")
os.makedirs("/mnt/train")
os.makedirs("/mnt/data")


def opens(name, dataset):
    """Python that opens what a path below batches/ names."""
    path = f"{dataset}/{name.removesuffix('...')}"
    return f"import os\nassert os.path.getsize('{path}')\n" if path.endswith(".npz") else \
        f"import os\nassert os.path.isdir('{path}')\n"


examples = [line.split()[0] for block in (
    take("docs/plans.md", "batch=128,seed=7/epoch"), take("docs/plans.md", "split=0@90:10,seed"),
    take("docs/plans.md", "take=0:90%,seed"), take("docs/plans.md", "draw=60000:balanced"),
    take("docs/plans.md", "rank=3of8,seed=7,tail")) for line in block.splitlines()]
equal(len(examples), 10, "paths of examples")
# Fashion-MNIST has ten classes and no field of weights.
checks = "".join(opens(name.replace("classes=16x4", "classes=8x8").replace(":weight", ":label"), "/mnt/mnist/train")
                 for name in examples)
world.file("examples.py", checks.encode())
mixed = world.file("mixed.py", opens(take("docs/plans.md", "/mnt/data/corpus").strip(), "").encode())
for i, name in enumerate(("web", "books", "code")):
    world.file(f"/data/{name}", idx_bytes(rng.integers(0, 9, (400 + i, 2, 2), dtype=np.uint8)))
world.run("docs/plans.md", {"list=clean": "test $(ls /mnt/train/*/batches/batch=128,only=clean,seed=7/epoch=0/npz | wc -l) = 1",
                 "mix=corpus": f"python3 {mixed}\nepochfs umount /mnt/data\nepochfs mount /data/mnist /mnt/mnist",
                 "audit --all-ranks": "python3 examples.py"})
