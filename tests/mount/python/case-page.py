#!/usr/bin/python3
# plain: Python works with what other cases read
"""docs/python.md, done as a reader would."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.run_page("docs/python.md")
