#!/usr/bin/python3
# needs: python3-torch
"""docs/slurm.md, "Try it on one machine", done as by a reader."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.run_page("docs/slurm.md")
