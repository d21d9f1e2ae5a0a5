#!/usr/bin/python3
# needs: python3-hypothesis python3-scipy python3-sklearn python3-xgboost python3-pil module:soundfile
# slow: 378 sources
"""Random files of each format, by writers that are not ours, see tests/histories formats."""

import os

from lib import EPOCHFS, SLOW, skip

if SLOW or not os.path.exists(f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

import formats  # noqa: E402

formats.main(18)
