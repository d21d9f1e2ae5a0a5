# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of token streams: batches against nanoGPT's own loop, a far file, starting on very much.

PACKAGES=(nginx-light fuse3 python3 python3-numpy python3-torch)
BARS=(batches far start pairs)

bar_batches() { python_bars tokens_bars.py batches; }
bar_far() { python_bars tokens_bars.py far; }
bar_start() { python_bars tokens_bars.py start; }
bar_pairs() { python_bars tokens_bars.py pairs; }
