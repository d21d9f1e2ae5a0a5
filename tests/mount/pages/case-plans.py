#!/usr/bin/python3
"""docs/plans.md: its commands, and that each path of its examples opens."""

import functools
import os
import re
import subprocess

import numpy as np

import pages
import tutorials
from lib import contains, equal, idx_bytes, run
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
    take("docs/plans.md", "take=0:90%,seed"), take("docs/plans.md", "draw=60000:balanced"), take("docs/plans.md", "unit=qid"),
    take("docs/plans.md", "rank=3of8,seed=7,tail"), take("docs/plans.md", "batch=tokens:16384")) for line in block.splitlines()]
equal(len(examples), 15, "paths of examples")
# Fashion-MNIST has ten classes, no field of weights, and no tokens or frames.
LIKE = {"classes=16x4": "classes=8x8", ":weight": ":label", "tokens:": "bytes:", "frames:": "bytes:", "unit=qid": "unit=label"}
checks = "".join(opens(functools.reduce(lambda s, like: s.replace(*like), LIKE.items(), name), "/mnt/mnist/train")
                 for name in examples)
world.file("examples.py", checks.encode())
# The grammar, on two pages: its words are those that a plan may have, and each form opens.
grammar = "".join(take("docs/reference/plans.md", "[,only=NAME]").split())
equal("".join(take("docs/spec/order.md", "[,only=NAME]").split()), grammar, "the grammar on both pages")
FORMS = {"<n|all|HOW:N[:MOST]>": ["8", "all", "bytes:9000", "bytes:9000:4"], "W": ["32"], "A:B[:HOW]": ["1:2000", "0:900.5:label"], "Q": ["50"], "G": ["3"],
         "NAME": ["few"], "A:B": ["1:50"], "K@W0:W1:...": ["1@8:1:1"], "KofN": ["1of2"], "S": ["7"],
         "full|window:M": ["full", "window:16"], "N:uniform|balanced": ["50:uniform", "50:balanced", "50:balanced:label", "50:label"],
         "PxK": ["2x4", "2x4:label"], "FIELD": ["label"], "N": ["100"], "keep|drop|wrap": ["keep", "drop", "wrap"], "HxW": ["12x16", "12x16of20"]}
PREFIX = {"batch": "", "quad": "batch=bytes:9000,", "group": "batch=bytes:9000,"}
words = [word.split("=", 1) for word in re.findall(r"\w+=(?:<[^>]*>|[^][,]*)", grammar)]
said = run("mount", "-o", "plan=batch=8+foo=1", "/data/mnist", "/mnt/mnist", code=1)
contains(said, f"expected {', '.join(name for name, _ in words[:-1])} or {words[-1][0]} (parameters")
world.file("few.txt", b"#1\n#2\n")
forms = world.file("forms.py", "".join(
    opens(f"{PREFIX.get(name, 'batch=8,')}{name}={value}{'' if name == 'seed' else ',seed=7'}", "/mnt/mnist/train/batches")
    for name, form in words for value in FORMS[form]).encode())
subprocess.run(["bash", "-ec", f"epochfs mount -o list=few=few.txt,augment=few=flip /data/mnist /mnt/mnist; python3 {forms}; epochfs umount /mnt/mnist"],
               cwd=world.folder(""), env=tutorials.environment(), check=True)

mixed = world.file("mixed.py", opens(take("docs/plans.md", "/mnt/data/corpus").strip(), "").encode())
for i, name in enumerate(("web", "books", "code")):
    world.file(f"/data/{name}", idx_bytes(rng.integers(0, 9, (400 + i, 2, 2), dtype=np.uint8)))
world.run("docs/plans.md", "A list of samples",
          then={"subset=clean": "test $(ls /mnt/train/*/batches/batch=128,only=clean,seed=7/epoch=0/npz | wc -l) = 1"})
world.run("docs/plans.md", "Mixing datasets", then={"mix=corpus": f"python3 {mixed}"})
world.run("docs/plans.md", "Prove an epoch", then={"audit --all-ranks": "python3 examples.py"},
          before="epochfs mount /data/mnist /mnt/mnist\n")
