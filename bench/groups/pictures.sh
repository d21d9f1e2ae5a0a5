# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of pictures as arrays; bench/picture_bars.py has the measurements.

PACKAGES=(fuse3 python3 python3-numpy python3-pil python3-torch python3-torchvision)
BARS=(image kept torch)

bar_image() { python_bars picture_bars.py image; }
bar_kept() { python_bars picture_bars.py kept; }
bar_torch() { python_bars picture_bars.py torch; }
