# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# What the field measures: nets that train while their data is staged, and storage that keeps an accelerator busy, with the file
# systems and loaders that users would choose instead. bench/field.py has the measurements.
# --quick: less data; --write-docs: also writes docs/bench/field.md and .svg.

PACKAGES=(nginx-light curl fuse3 erofs-utils squashfs-tools squashfuse python3 python3-numpy)
BARS=(storage nets)

bar_storage() { python_bars field.py storage "${FLAGS[@]}"; }
bar_nets() { python_bars field.py nets "${FLAGS[@]}"; }
