#!/usr/bin/python3
# needs: python3-sklearn python3-xgboost
"""docs/frameworks.md, done as a reader would; the frameworks that Debian lacks: pages/case-frameworks.py."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.write_rows("train.txt", 4001)
tutorials.run_page("docs/frameworks.md")
