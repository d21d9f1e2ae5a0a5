# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of the library: batches in memory against numpy's gather from a mapped file, and how soon the first one is there.

PACKAGES=(python3 python3-numpy dataset-fashion-mnist)
BARS=(gather image01 open)

bar_gather() { python_bars library_bars.py gather; }
bar_image01() { python_bars library_bars.py image01; }
bar_open() { python_bars library_bars.py open; }
