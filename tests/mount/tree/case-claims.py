#!/usr/bin/python3
# needs: data:files
"""Real files of every format: each is claimed by its own reader, and by no other."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

DATA = os.environ.get("SHARED_DATA", "/nowhere")

# What may be in a folder, and how many datasets there are at least, so that none is lost.
FORMATS = {"idx": ({"idx", "csv"}, 5), "libsvm": ({"libsvm"}, 7), "kaldi": ({"kaldi"}, 50), "files": ({"files"}, 10),
           "tar": ({"tar"}, 20), "tfrecord": ({"tfrecord", "csv"}, 30), "recordio": ({"recordio"}, 9),
           "mindrecord": ({"mindrecord"}, 15), "arrays": ({"npy", "npz"}, 15), "safetensors": ({"safetensors"}, 1), "libfm": ({"libfm"}, 1), "jsonl": ({"jsonl"}, 5),
           "csv": ({"csv"}, 6), "cifar": ({"cifar"}, 4), "tokens": ({"tokens"}, 5)}
found = {}
for folder, (formats, least) in FORMATS.items():
    if not os.path.isdir(os.path.join(DATA, folder)):
        continue
    about = json.loads(subprocess.run([EPOCHFS, "info", "--json", os.path.join(DATA, folder)], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    of = [ds["format"] for ds in about["datasets"] if "format" in ds]
    assert set(of) <= formats, f"{folder}: expected {formats}, got {set(of)}"
    assert len(of) >= least, f"{folder}: expected at least {least} datasets, got {len(of)}"
