#!/usr/bin/python3
"""docs/tutorials/recordio.md, done as a reader would."""

import importlib.util

import tutorials
from lib import skip

if not importlib.util.find_spec("PIL"):
    skip("PIL is missing (package python3-pil)")
tutorials.run("recordio")
