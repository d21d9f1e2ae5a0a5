# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh and bench/run
# The bars of Kaldi tables: the index of a large archive, utterances as files, archives and batches
# made from them. The page cache has the archives; only the mount is cold. Short matrices of 4 to
# 8 KB make many objects of few bytes; long ones, of 300 to 900 frames, are those of speech corpora.

PACKAGES=(fuse3)
BARS=(index headers second_mount samples whole_ark compressed)

INDEX_ROWS=100000 # short
SHORT_ROWS=20000
LONG_ROWS=4000
CM_ROWS=2000 # of 500 frames
CM_FRAMES=500
COLUMNS_EACH=40
PREFIX=103-1240-
SAMPLE_NAME="$PREFIX######.data.raw"
BATCH=32

# make_ark NAME fm|cm COUNT LOW HIGH [PREFIX]: $SCRATCH/NAME/NAME.ark, on disk, once.
make_ark() {
    local folder=$SCRATCH/$1
    [[ ! -f $folder/$1.ark ]] || return 0
    say "making $1.ark of $3 matrices"
    [[ -x $MAKE_KALDI ]] || die "no $MAKE_KALDI"
    mkdir -p "$folder"
    "$MAKE_KALDI" "$folder/part" "${@:2:4}" $COLUMNS_EACH "${@:6}"
    sync "$folder/part"
    mv "$folder/part" "$folder/$1.ark"
}

index_ark() { make_ark index fm $INDEX_ROWS 25 50; }
short_ark() { make_ark short fm $SHORT_ROWS 25 50 $PREFIX; }
long_ark() { make_ark long fm $LONG_ROWS 300 900 $PREFIX; }

new_cache() {
    rm -rf "$SCRATCH/cache"
    mkdir -m 700 "$SCRATCH/cache"
}

# mount_ready NAME: its archive at $SCRATCH/mount; reading dataset.json waits for the index.
mount_ready() {
    EPOCHFS_CACHE=$SCRATCH/cache mount_epochfs "$SCRATCH/$1" "$SCRATCH/mount"
    JSON=$(<"$SCRATCH/mount/$1.ark/dataset.json")
}

# first_index NAME: mount_ready with a new cache folder.
first_index() {
    new_cache
    elapsed mount_ready "$1"
}

umount_ready() { umount_epochfs "$SCRATCH/mount"; }

kept_files() { find "$SCRATCH/cache" -type f -printf '%P %s %T@\n' | sort; }

# The cost of a mount besides the index is measured with an archive of one matrix.
bar_index() {
    local tiny=() ours=() each=() limit=() i
    make_ark tiny fm 1 25 50
    index_ark
    cat "$SCRATCH/index/index.ark" >/dev/null
    for ((i = 1; i <= ROUNDS; i++)); do
        first_index tiny; tiny+=("$US")
        umount_ready
        first_index index; ours+=("$US")
        umount_ready
        each+=("$((ours[i - 1] - tiny[i - 1]))")
        limit+=($((INDEX_ROWS * 2))) # us, at 500,000 objects/s
    done
    row "index of $INDEX_ROWS matrices, warm ark" \
        "$(awk -v n=$INDEX_ROWS -v us="$(median "${each[@]}")" \
            'BEGIN { printf "%.0f objects/s", n * 1e6 / us }')" \
        "500000/s (all $(seconds ours))" "$(median_ratio limit each)" '>=' 1
}

# In the foreground: `mount` reads a part of an index itself before it leaves the rest to the
# daemon, so the figures of the daemon alone would be too small.
bar_headers() {
    local pid size read kept tries=0
    index_ark
    new_cache
    mkdir -p "$SCRATCH/mount"
    EPOCHFS_CACHE=$SCRATCH/cache "$EPOCHFS" mount -f "$SCRATCH/index" "$SCRATCH/mount" &
    pid=$!
    until [[ -e $SCRATCH/mount/index.ark/dataset.json ]]; do
        kill -0 $pid || die "no mount in the foreground"
        ((++tries < 1000)) || die "the mount in the foreground does not get ready"
        sleep 0.01
    done
    JSON=$(<"$SCRATCH/mount/index.ark/dataset.json")
    read=$(awk '/^rchar/ { print $2 }' "/proc/$pid/io")
    ! grep -q index.ark "/proc/$pid/maps" || die "the ark is mapped: what is read of it is not known"
    umount_ready
    wait $pid
    size=$(stat -c %s "$SCRATCH/index/index.ark")
    row "bytes read for an index, $((size / INDEX_ROWS)) B matrices" \
        "$((read / INDEX_ROWS)) B an object" "ark $((size / 1000000)) MB" \
        "$(calc "$read / $size")" '<=' 0.1
    kept=$(find "$SCRATCH/cache" -type f -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }')
    ((kept)) || die "no index was kept in the cache folder"
    row "bytes of the kept index" "$(calc "int($kept / $INDEX_ROWS * 10) / 10") B a row" "24 B" \
        "$(calc "$kept / $INDEX_ROWS / 24")" '<=' 1
}

# From the start of `epochfs mount` to its return and the attributes of a sample and of a batch.
mount_and_stat() {
    EPOCHFS_CACHE=$SCRATCH/cache mount_epochfs "$SCRATCH/index" "$SCRATCH/mount"
    [[ -s $SCRATCH/mount/index.ark/samples/raw/103-1240-0017.data.raw ]]
    [[ -s $SCRATCH/mount/index.ark/batches/batch=$BATCH/npy/000017.data.npy ]]
}

bar_second_mount() {
    local times=() kept first i
    index_ark
    first_index index
    first=("$US")
    umount_ready
    kept=$(kept_files)
    [[ -n $kept ]] || die "no index was kept in the cache folder"
    for ((i = 1; i <= ROUNDS; i++)); do
        elapsed mount_and_stat; times+=("$US")
        umount_ready
    done
    same "the kept index" "$kept" "$(kept_files)"
    row "mount with kept index, 2 stats, $INDEX_ROWS rows" "$(seconds times)" \
        "0.05 s (index $(seconds first))" "$(calc "$(median "${times[@]}") / 50000")" '<=' 1
}

# Do the files copied from the mount equal the archive's objects? Their total length must be that of
# the archive without its keys and the spaces after them, and the last file must equal its end.
# check_samples NAME COUNT BYTES
check_samples() {
    local ark=$SCRATCH/$1/$1.ark head=$((${#PREFIX} + 6 + 1)) last
    printf -v last "$SCRATCH/local/$PREFIX%06d.data.raw" $(($2 - 1))
    same "bytes of the objects" $(($(stat -c %s "$ark") - $2 * head)) "$3"
    cmp "$last" <(tail -c "$(stat -c %s "$last")" "$ark")
}

# compare_samples NAME COUNT: each once in random order, the mount and copies of its files.
compare_samples() {
    local here=$SCRATCH/local there=$SCRATCH/mount/$1.ark/samples/raw ours=() files=() bytes sum i
    first_index "$1"
    say "extracting $2 samples"
    cp -r "$there" "$here"
    sync -f "$here"
    readers -c "$here" "$SAMPLE_NAME" "$2"
    sum=$SUM bytes=$BYTES
    check_samples "$1" "$2" "$bytes"
    readers -c "$there" "$SAMPLE_NAME" "$2"
    same "$there" "$sum" "$SUM"
    for ((i = 1; i <= ROUNDS; i++)); do
        readers -r $i -s 200000 "$here" "$SAMPLE_NAME" "$2"; files+=("$US")
        same "bytes of $here" "$bytes" "$BYTES"
        readers -r $i -s 200000 "$there" "$SAMPLE_NAME" "$2"; ours+=("$US")
        same "bytes of $there" "$bytes" "$BYTES"
    done
    requests_of "$SCRATCH/mount" readers -c "$there" "$SAMPLE_NAME" "$2"
    same "$there" "$sum" "$SUM"
    umount_ready
    rm -r "$here"
    row "warm samples, random order, $1" "$(files_per_s "$2" ours)" \
        "files $(files_per_s "$2" files)" "$(median_ratio files ours)" '>=' 0.70
    row "requests of a warm pass, $1" "$REQUESTS requests" "$2 files" \
        "$(calc "$REQUESTS / $2")" '<=' 0
}

bar_samples() {
    short_ark
    long_ark
    compare_samples short $SHORT_ROWS
    compare_samples long $LONG_ROWS
}

# compare_arks NAME WHAT
compare_arks() {
    local source=$SCRATCH/$1/$1.ark ours=() files=() ark size i
    ark=$SCRATCH/mount/$1.ark/batches/batch=all/ark/000000.ark
    size=$(stat -c %s "$source")
    first_index "$1"
    cmp "$source" "$ark"
    umount_ready
    for ((i = 1; i <= ROUNDS; i++)); do
        elapsed dd "if=$source" of=/dev/null bs=1M status=none; files+=("$US")
        mount_ready "$1"
        same "size of $ark" "$size" "$(stat -c %s "$ark")"
        elapsed dd "if=$ark" of=/dev/null bs=1M status=none; ours+=("$US")
        umount_ready
    done
    row "first read of batch=all ark, $2, dd" "$(mb_per_s "$size" ours)" \
        "source $(mb_per_s "$size" files)" "$(median_ratio files ours)" '>=' 0.5
}

bar_whole_ark() {
    index_ark
    long_ark
    compare_arks index short
    compare_arks long long
}

bar_compressed() {
    local folder=$SCRATCH/mount/cm.ark/batches/batch=$BATCH/npy count=$(((CM_ROWS + BATCH - 1) / BATCH))
    local values=$((CM_ROWS * CM_FRAMES * COLUMNS_EACH * 4)) times=() limit=() names bytes i
    make_ark cm cm $CM_ROWS $CM_FRAMES $CM_FRAMES
    mapfile -t names < <(seq -f '%06g.data.npy' 0 $((count - 1)))
    names=("${names[@]/#/$folder/}")
    first_index cm
    bytes=$(cat "${names[@]}" | wc -c)
    same "values in $count batches" "$values" $((bytes - count * 128))
    umount_ready
    for ((i = 1; i <= ROUNDS; i++)); do
        mount_ready cm
        elapsed cat "${names[@]}" >/dev/null; times+=("$US")
        umount_ready
        limit+=($((bytes / 300)))
    done
    row "first read of CM, batch=$BATCH npy" "$(mb_per_s "$bytes" times)" "300 MB/s" \
        "$(median_ratio limit times)" '>=' 1
}
