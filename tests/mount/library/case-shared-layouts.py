#!/usr/bin/python3
# slow: mounts each layout of $SHARED_DATA
"""The library has the bytes of each mount of $SHARED_DATA/layouts. A folder with many files is listed, and some are read."""

import os

from lib import equal, skip
from paths import compare_source

DATA = os.environ.get("SHARED_DATA", "/nowhere") + "/layouts"
MOST = 8  # files of a folder that are read

if not os.path.isdir(DATA):
    skip(f"{DATA} is missing")
total = 0
for name in sorted(os.listdir(DATA)):
    if os.path.isdir(os.path.join(DATA, name)):
        total += compare_source(os.path.join(DATA, name), {"plan": ["batch=100+seed=3"]}, MOST)
equal(total > 1000, True, f"{total} files")
