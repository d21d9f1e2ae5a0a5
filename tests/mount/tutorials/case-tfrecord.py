#!/usr/bin/python3
"""docs/tutorials/tfrecord.md, done as a reader would."""

import tutorials

tutorials.run("tfrecord")
