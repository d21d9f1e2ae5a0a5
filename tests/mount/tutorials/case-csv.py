#!/usr/bin/python3
"""docs/tutorials/csv.md, done as a reader would."""

import importlib.util

import tutorials
from lib import skip

if not importlib.util.find_spec("xgboost"):
    skip("xgboost is missing (package python3-xgboost)")
tutorials.run("csv")
