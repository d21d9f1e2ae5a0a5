#!/usr/bin/python3
"""docs/tables.md, done as a reader would."""

import tutorials

tutorials.run_page("docs/tables.md", "Train on Keras' mnist.npz")
