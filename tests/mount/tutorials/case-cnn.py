#!/usr/bin/python3
# needs: python3-torch
"""docs/images.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/images.md", "Train a CNN")
