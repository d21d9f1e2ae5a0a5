#!/usr/bin/python3
# needs: python3-torch python3-pil dataset-fashion-mnist
"""The training of README.md, as it is, on the images of its quick start, with no mount: killed at any batch and started again, it
has the same weights at each checkpoint as one that was never stopped."""

import os
import subprocess
import sys

import clothes
from lib import PRIVATE, SOURCE, content, equal
from page_blocks import take

BLOCK = take("README.md", "import os, torch")
STEPS = 3 * (len(clothes.CLASSES) * clothes.EACH // 32 + 1)  # batches of three epochs
SAVES = 3 * (len(clothes.CLASSES) * clothes.EACH // 32 // 10 + 1)  # every 10 batches, and at the end of an epoch
TRAINED = f"{PRIVATE}/trained"
HOME = f"{PRIVATE}/home"
# It writes down the weights that it saves, and is killed before torch.save() of some checkpoint, or in the middle of it.
BEFORE = f"""
import hashlib, os, sys, torch
torch.manual_seed(1)
torch.set_num_threads(1)
save = torch.save
def save_and_stop(state, file):
    with open({TRAINED!r}, 'a') as f:
        print(hashlib.sha256(b''.join(w.numpy().tobytes() for w in state['model'].values())).hexdigest(), file=f)
    n = str(sum(1 for _ in open({TRAINED!r})))
    if n == sys.argv[1]:
        os._exit(9)
    save(state, file)
    if n == sys.argv[2]:
        os.truncate(file, os.path.getsize(file) // 2)
        os._exit(9)
torch.save = save_and_stop
"""


def program(*arguments):
    return subprocess.run([sys.executable, "-c", BEFORE + BLOCK, *arguments], cwd=PRIVATE, check=False,
                          env=dict(os.environ, TMPDIR=PRIVATE, HOME=HOME))


def training():
    loop = BLOCK[BLOCK.index("if os.path.exists"):].splitlines()
    equal(len(loop) <= 12, True, f"lines that train, save and resume: {loop}")
    equal(program("0", "0").returncode, 0, "exit code without a stop")
    whole = content(TRAINED).split()
    equal((len(whole), len(set(whole))), (SAVES, SAVES), f"checkpoints of {STEPS} batches")
    os.unlink(TRAINED)
    os.unlink(f"{PRIVATE}/checkpoint.pt")
    stops = (("1", "0"), ("0", "3"), ("5", "0"), ("0", "8"), ("10", "0"))
    for stop in stops:
        equal(program(*stop).returncode, 9, f"exit code of {stop}")
    equal(program("0", "0").returncode, 0, "exit code at the end")
    # What was trained after the last checkpoint is trained again.
    found, again = content(TRAINED).split(), [max(int(n) for n in stop) for stop in stops]
    equal([b for i, b in enumerate(found) if i + 1 not in again], whole, "weights")


clothes.make(SOURCE)
os.makedirs(HOME)
os.symlink(SOURCE, f"{PRIVATE}/clothes")
training()
