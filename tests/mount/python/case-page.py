#!/usr/bin/python3
# needs: python3-torch python3-sklearn python3-xgboost
"""docs/python.md, done as a reader would."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.run_page("docs/python.md")
