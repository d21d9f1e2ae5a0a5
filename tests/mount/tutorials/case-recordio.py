#!/usr/bin/python3
# needs: python3-pil
"""docs/shards.md, done as a reader would."""


import tutorials

tutorials.run_page("docs/shards.md", "Read RecordIO without MXNet")
