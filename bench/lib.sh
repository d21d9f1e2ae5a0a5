# shellcheck shell=bash disable=SC2034
# What the groups of bench/run share: mounts, timing, ratios, the table. Needs LC_ALL=C.
# Times are whole microseconds. All files are below $SCRATCH, which cleanup() unmounts and removes.

ROUNDS=${EPOCHFS_BENCH_ROUNDS:-7}
OPENS=${EPOCHFS_BENCH_OPENS:-1000000}

say() { printf 'bench: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 2
}

# --- before and after

need_packages() {
    local missing=() sudo=() package
    for package; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]}"
    if ((EUID)); then sudo=(sudo); fi
    "${sudo[@]}" apt-get update -qq >&2
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "${missing[@]}" >&2
}

# need_build CHECKOUT: sets EPOCHFS, READERS, TRAIN, PASS_FLOOR, MAKE_LIBSVM and MAKE_KALDI.
need_build() {
    local build=${EPOCHFS_BUILD:-$1/build/release}
    if [[ -z ${EPOCHFS_BUILD:-} && ! (-x $build/epochfs && -x $build/epochfs-bench &&
        -x $build/epochfs-bench-libsvm && -x $build/epochfs-bench-kaldi &&
        -x $build/epochfs-bench-tfrecord && -x $build/epochfs-bench-train &&
        -x $build/epochfs-bench-orders && -x $build/epochfs-bench-first &&
        -x $build/epochfs-bench-pass && -e $build/libepochfs.so.0) ]]; then
        (cd "$1" && cmake --preset release &&
            cmake --build --preset release --target epochfs libepochfs epochfs-bench) >&2 || die "no build"
    fi
    build=$(realpath "$build")
    EPOCHFS=$build/epochfs
    READERS=$build/epochfs-bench
    TRAIN=$build/epochfs-bench-train
    PASS_FLOOR=$build/epochfs-bench-pass
    MAKE_LIBSVM=$build/epochfs-bench-libsvm
    MAKE_KALDI=$build/epochfs-bench-kaldi
    [[ -x $EPOCHFS && -x $READERS ]] || die "no epochfs and epochfs-bench in $build"
}

unmount() { fusermount3 -u "$1" 2>/dev/null || umount "$1"; }

unmount_all() {
    local point
    while read -r _ point _; do
        [[ $point != "$SCRATCH"/* ]] || unmount "$point" || fusermount3 -uz "$point" || umount -l "$point"
    done < <(tac /proc/self/mounts)
}

cleanup() {
    cd /
    unmount_all
    rm -rf --one-file-system "$SCRATCH"
}

# --- mounts: each function makes the mountpoint, and returns when the mount is ready

# mount_epochfs SOURCE MOUNTPOINT [OPTIONS]
mount_epochfs() {
    mkdir -p "$2"
    "$EPOCHFS" mount ${3:+-o "$3"} "$1" "$2"
}

umount_epochfs() { "$EPOCHFS" umount "$1"; }

mount_squash() {
    mkdir -p "$2"
    squashfuse_ll "$1" "$2"
}

# The requests that have reached the daemon of a mount; reading this number adds some.
requests() {
    tr -d ' \n' <"$1/.epochfs/status.json" | grep -o '"requests":{[^}]*}' |
        awk -F'[:,}]' '{ for (i = 1; i <= NF; i++) n += $i } END { print n + 0 }'
}

# requests_of MOUNT COMMAND...: sets REQUESTS, minus the requests of reading the number. The kernel
# may evict pages and inodes at any time, so the minimum of three tries counts.
requests_of() {
    local before start end
    REQUESTS=
    for _ in 1 2 3; do
        before=$(requests "$1")
        start=$(requests "$1")
        "${@:2}"
        end=$(requests "$1")
        before=$((end - start - (start - before)))
        [[ -n $REQUESTS ]] && ((REQUESTS <= before)) || REQUESTS=$before
        ((REQUESTS > 0)) || break
    done
}

daemon_pid() { tr -d ' \n' <"$1/.epochfs/status.json" | grep -o '"pid":[0-9]*' | cut -d: -f2; }

# --- timing

# elapsed COMMAND...: sets US.
elapsed() {
    local start=${EPOCHREALTIME/./}
    "$@"
    US=$((${EPOCHREALTIME/./} - start))
}

# readers ARGUMENTS of epochfs-bench read: sets US FILES BYTES SUM MEDIAN_US.
readers() {
    local line
    line=$("$READERS" read "$@")
    read -r US FILES BYTES SUM MEDIAN_US <<<"$line"
}

median() { printf '%s\n' "$@" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

calc() { awk "BEGIN { printf \"%.6g\", $1 }"; }

# median_ratio A B: the median of A[i] / B[i], of the arrays with these names.
median_ratio() {
    local -n over=$1 under=$2
    local ratios=() i
    for i in "${!over[@]}"; do ratios+=("$(calc "${over[i]} / ${under[i]}")"); done
    median "${ratios[@]}"
}

# Plain figures from a count and an array of microseconds, by name.
files_per_s() {
    local -n list=$2
    awk -v n="$1" -v us="$(median "${list[@]}")" 'BEGIN { printf "%.0f files/s", n * 1e6 / us }'
}

mb_per_s() {
    local -n list=$2
    awk -v n="$1" -v us="$(median "${list[@]}")" 'BEGIN { printf "%.0f MB/s", n / us }'
}

seconds() {
    local -n list=$1
    awk -v us="$(median "${list[@]}")" 'BEGIN { printf "%.3f s", us / 1e6 }'
}

# --- the table

line() { printf '| %-43s | %-22s | %-26s | %6s | %-7s | %-6s |\n' "$@"; }

table_head() {
    line what measured 'compared with' ratio bar result
    line what measured 'compared with' ratio bar result | sed 's/[^|]/-/g'
}

# row WHAT MEASURED COMPARED RATIO OPERATOR BOUND; OPERATOR -: a figure without a bar
row() {
    local result=MISSED
    if [[ $5 == - ]]; then
        line "$1" "$2" "$3" "$(awk -v r="$4" 'BEGIN { printf "%.3g", r }')" - -
        return
    fi
    if awk "BEGIN { exit !($4 $5 $6) }"; then result=ok; else echo "$1" >>"$SCRATCH/missed"; fi
    line "$1" "$2" "$3" "$(awk -v r="$4" 'BEGIN { printf "%.3g", r }')" "$5 $6" "$result"
}

# python_bars FILE ARGUMENTS: the rows that a file of bench/ prints (bench/bars.py). It runs in its
# own folder, which is removed afterwards.
# shellcheck disable=SC2154 # here is set by bench/run
python_bars() {
    local fields rows=$SCRATCH/rows
    rm -rf --one-file-system "$SCRATCH/private"
    mkdir "$SCRATCH/private"
    EPOCHFS=$EPOCHFS TRAIN=$TRAIN PASS_FLOOR=$PASS_FLOOR PRIVATE=$SCRATCH/private PYTHONPATH=$here/../tests/mount \
        PYTHONDONTWRITEBYTECODE=1 "$here/$1" "${@:2}" >"$rows"
    while IFS=$'\t' read -r -a fields; do row "${fields[@]}"; done <"$rows"
    unmount_all
    rm -rf --one-file-system "$SCRATCH/private"
}

# same WHAT A B: fails unless both sides gave the same bytes.
same() {
    [[ $2 == "$3" ]] || die "$1: the two sides differ: $2, $3"
}

# A bar that cannot be measured does not stop the others.
run_bar() {
    local status
    declare -F "bar_$1" >/dev/null || die "no bar $1 in this group"
    say "$1"
    set +e
    (
        set -e
        "bar_$1"
    )
    status=$?
    set -e
    unmount_all
    if ((status)); then
        echo "$1" >>"$SCRATCH/missed"
        line "$1" - - - - FAILED
    fi
}
