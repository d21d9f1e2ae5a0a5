#!/usr/bin/python3
"""docs/tutorials/gpt.md, done as a reader would."""

import importlib.util

import tutorials
from lib import skip

if not importlib.util.find_spec("torch"):
    skip("torch is missing (package python3-torch)")
tutorials.run("gpt")
