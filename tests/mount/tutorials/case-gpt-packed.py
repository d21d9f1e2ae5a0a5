#!/usr/bin/python3
# needs: python3-torch
"""docs/tutorials/gpt-packed.md, done as a reader would."""


import tutorials

tutorials.run("gpt-packed")
