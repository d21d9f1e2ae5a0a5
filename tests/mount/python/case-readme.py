#!/usr/bin/python3
"""The Python of README.md, as it is: three lines that read, eight that train and resume; killed after any batch, each batch
of three epochs is trained once."""

import importlib.util
import os
import subprocess
import sys

from lib import PRIVATE, SOURCE, content, equal, need_fashion, skip, small
from page_blocks import take

need_fashion()
if not importlib.util.find_spec("torch"):
    skip("torch is missing (package python3-torch)")
BLOCKS = [take("README.md", "with epochfs.mount("), take("README.md", "import os, torch")]
TRAINED = f"{PRIVATE}/trained"
# What a user has already: his training, here one that writes down what it gets, and that is killed at some batch, or in the middle
# of torch.save() after it.
TRAIN = f"""
import hashlib, os, sys, torch
def lines():
    return sum(1 for _ in open({TRAINED!r}))
save = torch.save
def save_half(state, file):
    save(state, file)
    if lines() == int(sys.argv[2]):
        os.truncate(file, os.path.getsize(file) // 2)
        os._exit(9)
torch.save = save_half
def train(x, y):
    assert x.shape[1:] == (28, 28) and len(x) == len(y), x.shape
    with open({TRAINED!r}, 'a') as f:
        print(hashlib.sha256(x.numpy().tobytes()).hexdigest(), file=f)
    if lines() == int(sys.argv[1]):
        os._exit(9)
"""


def program(block, *arguments):
    return subprocess.run([sys.executable, "-c", TRAIN + block, *arguments], cwd=PRIVATE, check=False,
                          env=dict(os.environ, TMPDIR=PRIVATE))


def three_lines():
    small(30)
    block = BLOCKS[0].replace("s3://bucket/mnist", SOURCE)
    equal(len(BLOCKS[0].splitlines()), 3, "lines")
    done = subprocess.run([sys.executable, "-c", "import epochfs\n" + block + "\nprint(len(y))"], check=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, TMPDIR=PRIVATE))
    equal(done.stdout, b"30\n", "samples of the last batch")


def eight_lines():
    equal(len(BLOCKS[1].splitlines()) <= 8, True, f"lines: {BLOCKS[1]}")
    equal(program(BLOCKS[1], "0", "0").returncode, 0, "exit code without a stop")
    whole = content(TRAINED).split()
    equal(len(whole), 3 * 469, "batches of three epochs")
    os.unlink(TRAINED)
    os.unlink(f"{PRIVATE}/place")
    stops = (("5", "0"), ("0", "20"), ("470", "0"), ("0", "900"), ("1000", "0"))
    for stop in stops:
        equal(program(BLOCKS[1], *stop).returncode, 9, f"exit code of {stop}")
    equal(program(BLOCKS[1], "0", "0").returncode, 0, "exit code at the end")
    # What was trained, but killed before its place was written, comes once more: the user's checkpoint would not have it.
    found, again = content(TRAINED).split(), [max(int(n) for n in stop) for stop in stops]
    equal([b for i, b in enumerate(found) if i + 1 not in again], whole, "batches")


three_lines()
eight_lines()
