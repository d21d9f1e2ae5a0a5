#!/usr/bin/python3
# needs: python3-xgboost
"""docs/tables.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/tables.md", "Train XGBoost on CSV")
