#!/usr/bin/python3
# needs: python3-xgboost
"""docs/tutorials/csv.md, done as a reader would."""


import tutorials

tutorials.run("csv")
