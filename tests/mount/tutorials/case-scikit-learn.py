#!/usr/bin/python3
"""docs/tutorials/scikit-learn.md, done as a reader would."""

import importlib.util

import tutorials
from lib import need_fashion, skip

need_fashion()
if not importlib.util.find_spec("sklearn"):
    skip("sklearn is missing (package python3-sklearn)")
tutorials.write_rows("train.txt", 4000)
tutorials.run("scikit-learn")
