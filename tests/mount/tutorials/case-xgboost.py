#!/usr/bin/python3
# needs: python3-xgboost
"""docs/tutorials/xgboost.md, done as a reader would."""


import tutorials

tutorials.write_rows("train.txt", 4001)
tutorials.run("xgboost")
