# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of augmented pictures; bench/augment_bars.py has the measurements.

PACKAGES=(fuse3 python3 python3-numpy python3-pil python3-torch python3-torchvision)
BARS=(crop policies base cifar train accuracy large)

bar_crop() { python_bars augment_bars.py crop; }
bar_policies() { EPOCHFS_BENCH_ROUNDS=3 python_bars augment_bars.py policies; }
bar_base() { python_bars augment_bars.py base; }
bar_cifar() { python_bars augment_bars.py cifar; }
bar_train() { python_bars augment_bars.py train; }
bar_accuracy() { python_bars augment_bars.py accuracy; }
bar_large() { python_bars augment_bars.py large; }
