#!/usr/bin/python3
# needs: python3-torchvision python3-pil
"""docs/tutorials/augment.md, done as a reader would."""

import tutorials

tutorials.run("augment")
