#!/usr/bin/python3
# needs: python3-torch
# plain: torch trains on what other cases read
"""docs/audio.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/audio.md", "Train a CTC model on batches by frames")
