#!/usr/bin/python3
# needs: python3-torch
# plain: torch trains on what other cases read
"""docs/text.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/text.md", "Train a GPT on packed documents")
