# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of the library: batches in memory against numpy's gather from a mapped file, a loop of preads, the daemon and arrays in memory;
# its first batch, its memory, two processes.

PACKAGES=(fuse3 python3 python3-numpy python3-pil python3-torch dataset-fashion-mnist)
BARS=(gather image01 open members pictures memory processes train)

bar_gather() { python_bars library_bars.py gather; }
bar_image01() { python_bars library_bars.py image01; }
bar_open() { python_bars library_bars.py open; }
bar_members() { python_bars library_bars.py members; }
bar_pictures() { python_bars library_bars.py pictures; }
bar_memory() { python_bars library_bars.py memory; }
bar_processes() { python_bars library_bars.py processes; }
bar_train() { python_bars library_bars.py train; }
