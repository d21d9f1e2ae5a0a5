# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of remote sources and the cache; bench/cache_bars.py has the measurements.

PACKAGES=(nginx-light rclone curl fuse3 python3)
BARS=(first_pass second_pass random once limited half hang)

bar_first_pass() { python_bars cache_bars.py first_pass; }
bar_second_pass() { python_bars cache_bars.py second_pass; }
bar_random() { python_bars cache_bars.py random; }
bar_once() { python_bars cache_bars.py once; }
bar_limited() { python_bars cache_bars.py limited; }
bar_half() { python_bars cache_bars.py half; }
bar_hang() { python_bars cache_bars.py hang; }
