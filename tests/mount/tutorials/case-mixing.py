#!/usr/bin/python3
"""docs/tutorials/mixing.md, done as a reader would."""

import importlib.util

import tutorials
from lib import need_fashion, skip

need_fashion()
if not importlib.util.find_spec("torch"):
    skip("torch is missing (package python3-torch)")
tutorials.run("mixing")
