#!/usr/bin/python3
# needs: python3-torch
# plain: torch trains on what other cases read
"""docs/speech.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/speech.md", "Train a CTC model on batches by frames")
