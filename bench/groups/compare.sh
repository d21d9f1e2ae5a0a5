# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# Other programs of Debian that mount what epochfs mounts: a bucket of S3, and a tar archive (docs/bench/comparison.md).

PACKAGES=(rclone s3fs archivemount fuse3 python3)
BARS=(bucket archive)

bar_bucket() { python_bars compare_bars.py bucket; }
bar_archive() { python_bars compare_bars.py archive; }
