#!/usr/bin/python3
"""docs/shards.md, done as a reader would."""

import tutorials

tutorials.run_page("docs/shards.md", "Read TFRecord with NumPy")
