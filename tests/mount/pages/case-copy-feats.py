#!/usr/bin/python3
# needs: program:copy-feats
"""The command of docs/speech.md with Kaldi's own copy-feats: it prints the utterances of the batch, in its order. Debian has no
Kaldi, so this runs where copy-feats is installed."""

import re
import subprocess

import numpy as np

import kaldi_dirs as kd
import pages
from lib import SOURCE, equal, run, text
from page_blocks import take

rng = np.random.default_rng(6)
world = pages.World()
stored = {f"utt{i}": rng.normal(size=(20 + i, 13)).astype(np.float32) for i in range(40)}
kd.table("train/feats", [(key, kd.fm(matrix)) for key, matrix in stored.items()])
kd.table("train/cmvn", [(key, kd.fm(np.ones((2, 14), np.float32))) for key in stored])
run("mount", f"{SOURCE}/train", "/mnt")
said = subprocess.run(["bash", "-ec", take("docs/speech.md", "copy-feats")], stdout=subprocess.PIPE, check=True).stdout.decode()
keys = text("/mnt/all/batches/batch=32,seed=7/epoch=0/npy/000000.key.txt").split()
copied = re.findall(r"^(\S+)  \[\n(.*?) ?\]$", said, re.M | re.S)
equal([key for key, _ in copied], keys, "utterances that copy-feats prints")
for key, rows in copied:
    matrix = np.array([row.split() for row in rows.splitlines()], np.float32)
    equal((matrix.shape, np.allclose(matrix, stored[key], rtol=1e-5)), (stored[key].shape, True), key)
run("umount", "/mnt")
