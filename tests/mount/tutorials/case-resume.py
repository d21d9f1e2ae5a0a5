#!/usr/bin/python3
# needs: python3-torch
"""docs/resume.md, done as a reader would."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.run_page("docs/resume.md")
