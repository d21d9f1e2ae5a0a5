# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bar of arrays: batches of an npz against those of the same data as IDX.

PACKAGES=(fuse3 python3 python3-numpy)
BARS=(npz)

bar_npz() { python_bars arrays_bars.py npz; }
