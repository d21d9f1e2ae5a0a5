# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# How cost grows with the numbers that users can raise: no worse than linear. bench/growth.py has
# the measurements, bench/growth_cold.py those of cold reads.

PACKAGES=(nginx-light fuse3 python3 ceph-mon ceph-osd radosgw ceph-common awscli)
BARS=(cold readers shuffled_idx shuffled_libsvm shuffled_libsvm_npz shuffled_kaldi listing sparse
    plans epochs folder folder_http folder_s3 datasets blocks keep_plan cache scp)

for bar in "${BARS[@]}"; do
    eval "bar_$bar() { python_bars growth.py $bar; }"
done
unset bar
