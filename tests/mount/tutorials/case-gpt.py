#!/usr/bin/python3
# needs: python3-torch
"""docs/text.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/text.md", "Train a tiny GPT")
