# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of collections: folders of many files.

PACKAGES=(nginx-light rclone fuse3 python3)
BARS=(far_folder)

bar_far_folder() { python_bars collection_bars.py far_folder; }
