#!/usr/bin/python3
# needs: python3-pil
"""docs/tutorials/recordio.md, done as a reader would."""


import tutorials

tutorials.run("recordio")
