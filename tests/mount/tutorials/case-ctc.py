#!/usr/bin/python3
# needs: python3-torch
"""docs/tutorials/ctc.md, done as a reader would."""


import tutorials

tutorials.run("ctc")
