# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh and bench/run
# The bars of libsvm text: its index, epochs of batches, and the mount of a file with a kept index.
# The page cache has the files; only the mount is cold. Rates count the bytes of the text, whatever
# is made from it.

PACKAGES=(fuse3 python3-numpy python3-scipy python3-sklearn python3-xgboost)
BARS=(index epochs second_mount)

TEXT_ROWS=848000   # of 10 to 60 features: 400 MB
PART_ROWS=106000   # an eighth of these, for slow readers
LONG_ROWS=10000000 # of 2 to 4 features
BATCH=1024

# reader ARGUMENTS (of libsvm_readers.py): sets US to its time, SEEN to the rest of its output.
reader() {
    local line
    line=$(/usr/bin/python3 "$here/libsvm_readers.py" "$@")
    read -r US SEEN <<<"$line"
}

# make_text NAME ROWS LOW HIGH DIGITS: $SCRATCH/NAME, and its counts in $SCRATCH/NAME.seen, once.
make_text() {
    [[ ! -f $SCRATCH/$1.seen ]] || return 0
    say "making $1 of $2 rows"
    [[ -x $MAKE_LIBSVM ]] || die "no $MAKE_LIBSVM"
    "$MAKE_LIBSVM" "$SCRATCH/$1" "${@:2}" >"$SCRATCH/seen"
    mv "$SCRATCH/seen" "$SCRATCH/$1.seen"
}

# Sets TEXT TEXT_BYTES TEXT_SEEN.
the_text() {
    make_text text.svm $TEXT_ROWS 10 60 6
    TEXT=$SCRATCH/text.svm
    TEXT_BYTES=$(stat -c %s "$TEXT")
    TEXT_SEEN=$(<"$TEXT.seen")
}

# mount_ready NAME: $SCRATCH/NAME at $SCRATCH/mount; reading dataset.json waits for the index.
mount_ready() {
    EPOCHFS_CACHE=$SCRATCH/cache mount_epochfs "$SCRATCH/$1" "$SCRATCH/mount"
    JSON=$(<"$SCRATCH/mount/$1/dataset.json")
}

# first_index NAME: mount_ready with a new cache folder.
first_index() {
    rm -rf "$SCRATCH/cache"
    mkdir "$SCRATCH/cache"
    chmod 700 "$SCRATCH/cache"
    elapsed mount_ready "$1"
}

umount_ready() { umount_epochfs "$SCRATCH/mount"; }

kept_files() { find "$SCRATCH/cache" -type f -printf '%P %s %T@\n' | sort; }

bar_index() {
    local ours=() lines=() xgboost=() i
    the_text
    for ((i = 1; i <= ROUNDS; i++)); do
        elapsed wc -l "$TEXT" >/dev/null; lines+=("$US")
        first_index text.svm; ours+=("$US")
        umount_ready
        reader xgboost "$TEXT"; xgboost+=("$US")
        same "$TEXT, xgboost" "$TEXT_SEEN" "$SEEN"
    done
    row "new mount until dataset.json is read, text" "$(mb_per_s "$TEXT_BYTES" ours)" \
        "wc -l $(mb_per_s "$TEXT_BYTES" lines)" "$(median_ratio lines ours)" '>=' 0.25
    row "new mount until dataset.json is read" "$(seconds ours)" \
        "xgboost.DMatrix $(seconds xgboost)" "$(median_ratio xgboost ours)" '>=' 4
}

# read_epoch EPOCH COUNT: every batch once, front to back; sets US SEEN.
read_epoch() { reader plain "$SCRATCH/mount/text.svm/batches/$1" "$2"; }

# check_epoch EPOCH COUNT: against the text; sets BYTES SUM of the batches.
check_epoch() {
    local folder=$SCRATCH/mount/text.svm/batches/$1
    SEEN=$(/usr/bin/python3 "$here/libsvm_readers.py" check "$TEXT" "$folder" "$2")
    same "$folder" "$TEXT_SEEN" "$SEEN"
    readers -c -s $((64 << 20)) "$folder/npz" '######.npz' "$2"
}

bar_epochs() {
    local count=$(((TEXT_ROWS + BATCH - 1) / BATCH)) plan=batch=$BATCH
    local shuffled=$plan,seed=7/epoch=0 part=$((TEXT_ROWS / PART_ROWS))
    local first=() second=() shuffle=() xgboost=() sklearn=() bytes shuffled_bytes sum i
    the_text
    head -n $PART_ROWS "$TEXT" >"$SCRATCH/part.svm"
    first_index text.svm
    check_epoch "$shuffled" $count
    shuffled_bytes=$BYTES
    check_epoch "$plan" $count
    bytes=$BYTES sum=$SUM
    umount_ready
    for ((i = 1; i <= ROUNDS; i++)); do
        reader xgboost "$TEXT"; xgboost+=("$US")
        mount_ready text.svm
        read_epoch "$plan" $count; first+=("$US")
        same "first epoch" "$count $bytes" "$SEEN"
        read_epoch "$plan" $count; second+=("$US")
        umount_ready
        mount_ready text.svm
        read_epoch "$shuffled" $count; shuffle+=("$US")
        same "shuffled epoch" "$count $shuffled_bytes" "$SEEN"
        umount_ready
        reader sklearn "$SCRATCH/part.svm"; sklearn+=($((US * part)))
    done
    mount_ready text.svm
    read_epoch "$plan" $count
    requests_of "$SCRATCH/mount" read_epoch "$plan" $count
    readers -c -s $((64 << 20)) "$SCRATCH/mount/text.svm/batches/$plan/npz" '######.npz' $count
    same "warm epoch" "$bytes $sum" "$BYTES $SUM"
    row "first epoch, batch=$BATCH npz, text" "$(mb_per_s "$TEXT_BYTES" first)" \
        "xgboost.DMatrix $(mb_per_s "$TEXT_BYTES" xgboost)" "$(median_ratio xgboost first)" '>=' 1.0
    row "first epoch, batch=$BATCH npz" "$(seconds first)" \
        "sklearn, $part x 1/$part $(seconds sklearn)" "$(median_ratio sklearn first)" '>=' 8
    row "second epoch, warm" "$(mb_per_s "$bytes" second)" \
        "first epoch $(mb_per_s "$bytes" first)" "$(median_ratio first second)" '>=' 10
    row "requests of the second epoch" "$REQUESTS requests" "$count files" \
        "$(calc "$REQUESTS / $count")" '<=' 0
    row "first epoch, seed=7" "$(seconds shuffle)" \
        "stored order $(seconds first)" "$(median_ratio first shuffle)" '>=' 0.5
}

# From the start of `epochfs mount` to its return and the attributes of a sample and of a batch.
mount_and_stat() {
    EPOCHFS_CACHE=$SCRATCH/cache mount_epochfs "$SCRATCH/long.svm" "$SCRATCH/mount"
    [[ -s $SCRATCH/mount/long.svm/samples/svm/0000000.svm ]]
    [[ -s $SCRATCH/mount/long.svm/batches/batch=$BATCH/npz/000000.npz ]]
}

bar_second_mount() {
    local times=() kept first i
    make_text long.svm $LONG_ROWS 2 4 1
    first_index long.svm
    first=("$US")
    umount_ready
    kept=$(kept_files)
    [[ -n $kept ]] || die "no index was kept in the cache folder"
    for ((i = 1; i <= ROUNDS; i++)); do
        elapsed mount_and_stat; times+=("$US")
        umount_ready
    done
    same "the kept index" "$kept" "$(kept_files)"
    row "mount with kept index, 2 stats, 10^7 rows" "$(seconds times)" \
        "0.05 s (index $(seconds first))" "$(calc "$(median "${times[@]}") / 50000")" '<=' 1
}
