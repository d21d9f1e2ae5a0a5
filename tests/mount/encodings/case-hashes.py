#!/usr/bin/python3
# needs: data:idx
# slow: mounts 200 sources
"""Mounts of the shared data show the bytes whose hashes are in tests/mount_hashes.txt."""

import os
import subprocess
import sys

from lib import EPOCHFS, SLOW, skip

if SLOW:
    skip("the bytes do not depend on sanitizers")
tool = os.path.join(os.environ["CASES"], "..", "mount_hashes")
sys.exit(subprocess.run([tool, "check", EPOCHFS, os.environ["SHARED_DATA"]], check=False).returncode)
