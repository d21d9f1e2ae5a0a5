#!/usr/bin/python3
# slow: the commands of a long page
"""docs/speech.md, done as a reader would."""

import os

import numpy as np

import kaldi_dirs
import tutorials
from lib import SOURCE

kaldi_dirs.Folder(np.random.default_rng(3), "train", 20, 3, dim=40).keep("feats", "text", "utt2spk").write()
os.makedirs(f"{tutorials.HOME}/data")
os.rename(f"{SOURCE}/train", f"{tutorials.HOME}/data/train")
tutorials.run_page("docs/speech.md", "Compare arrays and archives")
