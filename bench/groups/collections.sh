# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of collections: folders of many files, shards of records.

PACKAGES=(nginx-light curl rclone fuse3 python3)
BARS=(far_folder beside_tar beside_tfrecord beside_files recordio_index tar_index tar_far tar_hints tfrecord_index tfrecord_epoch tfrecord_warm)

bar_far_folder() { python_bars collection_bars.py far_folder; }
bar_beside_tar() { python_bars index_bars.py beside_tar; }
bar_beside_tfrecord() { python_bars index_bars.py beside_tfrecord; }
bar_beside_files() { python_bars index_bars.py beside_files; }
bar_recordio_index() { python_bars index_bars.py recordio; }
bar_tar_index() { python_bars tar_bars.py index; }
bar_tar_far() { python_bars tar_bars.py far; }
bar_tar_hints() { python_bars tar_bars.py hints; }
bar_tfrecord_index() { python_bars tfrecord_bars.py index; }
bar_tfrecord_epoch() { python_bars tfrecord_bars.py epoch; }
bar_tfrecord_warm() { python_bars tfrecord_bars.py warm; }
