# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of first reads: shuffled batches that no one has read before, of a source that is in the
# page cache, or is not, or is larger than memory; bench/first_bars.py has the measurements.

PACKAGES=(curl fuse3 nginx-light python3 python3-numpy)
BARS=(warm cold small_memory members jobs remote overlap)

bar_warm() { python_bars first_bars.py warm; }

bar_cold() { python_bars first_bars.py cold; }

bar_small_memory() { python_bars first_bars.py small_memory; }

bar_members() { python_bars first_bars.py members; }

bar_jobs() { python_bars first_bars.py jobs; }

bar_remote() { python_bars first_bars.py remote; }

bar_overlap() { python_bars first_bars.py overlap; }
