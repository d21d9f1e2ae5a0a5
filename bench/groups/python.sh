# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of the Python module: batches in PyTorch, against arrays in memory, np.load and torchvision's loader.

PACKAGES=(fuse3 python3 python3-numpy python3-torch python3-torchvision dataset-fashion-mnist)
BARS=(main workers loaders)

bar_main() { python_bars python_bars.py main; }
bar_workers() { python_bars python_bars.py workers; }
bar_loaders() { EPOCHFS_BENCH_ROUNDS=2 python_bars python_bars.py loaders; }
