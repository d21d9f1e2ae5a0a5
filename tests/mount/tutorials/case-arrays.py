#!/usr/bin/python3
"""docs/tutorials/arrays.md, done as a reader would."""

import tutorials

tutorials.run("arrays")
