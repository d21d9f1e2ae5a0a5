# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# Staging while a job trains; what is measured is in bench/overlap.py.
# --quick: smaller sizes, 2 minutes; --write-docs: docs/overlap.md and .svg are written.

PACKAGES=(nginx-light curl fuse3 python3 python3-numpy)
BARS=(overlap)

bar_overlap() { python_bars overlap.py "${FLAGS[@]}"; }
