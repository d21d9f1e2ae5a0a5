#!/usr/bin/python3
# needs: python3-sklearn
"""docs/tutorials/scikit-learn.md, done as a reader would."""


import tutorials
from lib import need_fashion

need_fashion()
tutorials.write_rows("train.txt", 4000)
tutorials.run("scikit-learn")
