#!/usr/bin/python3
# slow: mounts each set of $SHARED_DATA
"""The library has the bytes of each mount of $SHARED_DATA. A folder with many files is listed, and some are read."""

import os

from lib import equal, skip
from paths import compare_source

DATA = os.environ.get("SHARED_DATA", "/nowhere")
MOST = 4  # files of a folder that are read

if not os.path.isdir(DATA):
    skip(f"{DATA} is missing")
total = 0
for name in sorted(os.listdir(DATA)):
    if os.path.isdir(os.path.join(DATA, name)) and name != "layouts":
        total += compare_source(os.path.join(DATA, name), {"plan": ["batch=100+seed=3"]}, MOST)
equal(total > 1000, True, f"{total} files")
