#!/usr/bin/python3
# needs: python3-pil
"""docs/folders.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/folders.md", "Read a folder by name")
