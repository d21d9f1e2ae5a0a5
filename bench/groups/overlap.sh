# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# Staging while a job trains; bench/overlap.py has the measurements.
# --quick: smaller sizes, 2 minutes; --write-docs: also writes docs/bench/overlap.md and .svg.

PACKAGES=(nginx-light curl fuse3 python3 python3-numpy)
BARS=(overlap)

bar_overlap() { python_bars overlap.py "${FLAGS[@]}"; }
