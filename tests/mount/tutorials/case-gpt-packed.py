#!/usr/bin/python3
# needs: python3-torch
# plain: torch trains on what other cases read
"""docs/tutorials/gpt-packed.md, done as a reader would."""


import tutorials

tutorials.run("gpt-packed")
