#!/usr/bin/python3
"""docs/shards.md, done as a reader would."""

import tutorials
from lib import need_fashion

need_fashion()
tutorials.run_page("docs/shards.md", "Stream batches as tar files")
