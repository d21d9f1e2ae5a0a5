# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of remote sources and the cache; what is measured is in bench/cache_bars.py.

PACKAGES=(nginx-light rclone curl fuse3 python3)
BARS=(first_pass second_pass random once limited half hang)

# cache_bar NAME: in a place of its own, which goes with it.
# shellcheck disable=SC2154 # here is set by bench/run
cache_bar() {
    local fields rows=$SCRATCH/rows
    rm -rf --one-file-system "$SCRATCH/cache"
    mkdir "$SCRATCH/cache"
    EPOCHFS=$EPOCHFS PRIVATE=$SCRATCH/cache EPOCHFS_BENCH_ROUNDS=${EPOCHFS_BENCH_ROUNDS:-5} \
        PYTHONPATH=$here/../tests/mount PYTHONDONTWRITEBYTECODE=1 \
        "$here/cache_bars.py" "$1" >"$rows"
    while IFS=$'\t' read -r -a fields; do row "${fields[@]}"; done <"$rows"
    unmount_all
    rm -rf --one-file-system "$SCRATCH/cache"
}

bar_first_pass() { cache_bar first_pass; }
bar_second_pass() { cache_bar second_pass; }
bar_random() { cache_bar random; }
bar_once() { cache_bar once; }
bar_limited() { cache_bar limited; }
bar_half() { cache_bar half; }
bar_hang() { cache_bar hang; }
