#!/usr/bin/python3
# needs: python3-torchvision python3-pil
"""docs/images.md, done as a reader would."""

import tutorials

tutorials.run_page("docs/images.md", "Train a ResNet-18 on augmented images")
