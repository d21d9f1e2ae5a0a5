#!/usr/bin/python3
# needs: python3-hypothesis
# slow: 60 mounts and more
"""A few random histories, see tests/histories."""

import histories

histories.main()
