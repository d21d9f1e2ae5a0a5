#!/usr/bin/python3
# needs: python3-torch
"""The Python of README.md, as it is: three lines that read, and a training; killed at any batch and started again, it has the
same weights after each batch as one that was never stopped."""

import os
import subprocess
import sys

from lib import PRIVATE, SOURCE, content, equal, need_fashion, small
from page_blocks import take

need_fashion()
BLOCKS = [take("README.md", "with epochfs.mount("), take("README.md", "import os, torch")]
TRAINED = f"{PRIVATE}/trained"
# It writes down the weights that it saves, and is killed before torch.save() of some batch, or in the middle of it.
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


def program(block, *arguments):
    return subprocess.run([sys.executable, "-c", BEFORE + block, *arguments], cwd=PRIVATE, check=False,
                          env=dict(os.environ, TMPDIR=PRIVATE))


def three_lines():
    small(30)
    block = BLOCKS[0].replace("/usr/share/datasets/fashion-mnist", SOURCE)
    equal(len(BLOCKS[0].splitlines()), 3, "lines")
    done = subprocess.run([sys.executable, "-c", "import epochfs\n" + block + "\nprint(len(y))"], check=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, TMPDIR=PRIVATE))
    equal(done.stdout, b"30\n", "samples of the last batch")


def training():
    equal(len(BLOCKS[1].splitlines()) <= 13, True, f"lines: {BLOCKS[1]}")
    equal(program(BLOCKS[1], "0", "0").returncode, 0, "exit code without a stop")
    whole = content(TRAINED).split()
    equal((len(whole), len(set(whole))), (3 * 469, 3 * 469), "batches of three epochs")
    os.unlink(TRAINED)
    os.unlink(f"{PRIVATE}/state")
    stops = (("5", "0"), ("0", "20"), ("470", "0"), ("0", "900"), ("1000", "0"))
    for stop in stops:
        equal(program(BLOCKS[1], *stop).returncode, 9, f"exit code of {stop}")
    equal(program(BLOCKS[1], "0", "0").returncode, 0, "exit code at the end")
    # A batch that was trained, but not saved, is trained again.
    found, again = content(TRAINED).split(), [max(int(n) for n in stop) for stop in stops]
    equal([b for i, b in enumerate(found) if i + 1 not in again], whole, "weights")


three_lines()
training()
