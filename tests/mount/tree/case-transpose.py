#!/usr/bin/python3
"""Pictures that transpose cannot exchange: a note says so; and which file:// names are paths."""

import numpy as np

from lib import SOURCE, contains, equal, idx_bytes, run, write

write("train-images-idx4-ubyte", idx_bytes(np.zeros((3, 4, 5, 3), dtype=np.uint8)))
write("t10k-images-idx3-ubyte", idx_bytes(np.zeros((3, 4, 5), dtype=np.uint8)))
found = run("info", "-o", "transpose", SOURCE)
contains(found, "train-images-idx4-ubyte: transpose does nothing here", "got 3 axes")
equal("t10k-images-idx3-ubyte: transpose does" in found, False, "a picture of two axes")
equal("transpose does" in run("info", SOURCE), False, "without the option")
contains(run("info", f"file://localhost{SOURCE}"), "train-images")
contains(run("info", f"file://{SOURCE}"), "train-images")
contains(run("info", "file://host/data", code=2), "file://host/data", "file:///data", "'host'")
