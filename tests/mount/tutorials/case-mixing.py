#!/usr/bin/python3
# needs: python3-torch
"""docs/plans.md, done as a reader would."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.run_page("docs/plans.md", "Train on a mix that changes")
