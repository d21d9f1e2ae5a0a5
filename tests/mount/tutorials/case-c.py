#!/usr/bin/python3
"""docs/tutorials/c.md, done as a reader would."""

import tutorials
from lib import need_fashion

need_fashion()
tutorials.run("c")
