#!/usr/bin/python3
"""docs/python.md, done as a reader would."""

import importlib.util

import tutorials
from lib import need_fashion, skip

need_fashion()
for module in ("torch", "sklearn", "xgboost"):
    if not importlib.util.find_spec(module):
        skip(f"{module} is missing")
tutorials.run_page("docs/python.md")
