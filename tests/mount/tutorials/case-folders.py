#!/usr/bin/python3
# needs: python3-pil
"""docs/tutorials/folders.md, done as a reader would."""


import tutorials

tutorials.run("folders")
