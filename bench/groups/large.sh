# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of large files that the kernel reads itself (open=pass); bench/large_bars.py has the
# measurements.

PACKAGES=(fuse3 python3 python3-numpy)
BARS=(whole staged many npz)

bar_whole() { python_bars large_bars.py whole; }

bar_staged() { python_bars large_bars.py staged; }

bar_many() { python_bars large_bars.py many; }

bar_npz() { python_bars large_bars.py npz; }
