# shellcheck shell=bash disable=SC2034,SC2153 # names of and for bench/lib.sh
# The bars of IDX datasets: samples and batches of Fashion-MNIST, a large array, a billion samples.
# Each bar makes what it needs in $SCRATCH, once.

PACKAGES=(squashfuse squashfs-tools fuse3 dataset-fashion-mnist)
BARS=(warm_samples first_pass warm_batches large_array billion listing)

SOURCE=/usr/share/datasets/fashion-mnist
SAMPLES=60000
IMAGE=784
SAMPLE_NAME='######.image.raw'
BATCH_NAME='######.image.npy'

# idx_header COUNT: of a file of 28x28 pictures
idx_header() {
    local count
    printf -v count '\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255))
    printf '%b' '\x00\x00\x08\x03' "$count" '\x00\x00\x00\x1c\x00\x00\x00\x1c'
}

# The first mount unpacks the .gz files of the source into the cache folder.
mount_source() { EPOCHFS_CACHE=$SCRATCH/cache mount_epochfs "$SOURCE" "$SCRATCH/epochfs"; }

# The one dataset of a mount of one file.
only_dataset() { dirname "$1"/*/dataset.json; }

local_samples() {
    [[ ! -d $SCRATCH/local ]] || return 0
    say "extracting $SAMPLES samples"
    mkdir "$SCRATCH/local" "$SCRATCH/batches"
    gunzip -c "$SOURCE/train-images-idx3-ubyte.gz" >"$SCRATCH/train-images"
    gunzip -c "$SOURCE/train-labels-idx1-ubyte.gz" >"$SCRATCH/train-labels"
    "$READERS" split "$SCRATCH/train-images" 16 $IMAGE "$SCRATCH/local" "$SAMPLE_NAME"
    "$READERS" split "$SCRATCH/train-images" 16 $IMAGE "$SCRATCH/batches" "$BATCH_NAME" 128 '28, 28'
    mksquashfs "$SCRATCH/local" "$SCRATCH/local.squashfs" -quiet -no-progress >&2
    mount_source
    umount_epochfs "$SCRATCH/epochfs"
}

bar_warm_samples() {
    local here=$SCRATCH/local there=$SCRATCH/epochfs/train/samples/raw squash=$SCRATCH/squash
    local ours=() files=() theirs=() sum i
    local_samples
    mount_source
    mount_squash "$SCRATCH/local.squashfs" "$squash"
    readers -c "$here" "$SAMPLE_NAME" $SAMPLES
    sum=$SUM
    for i in "$there" "$squash"; do
        readers -c "$i" "$SAMPLE_NAME" $SAMPLES
        same "$i" "$sum" "$SUM"
    done
    for ((i = 1; i <= ROUNDS; i++)); do
        readers -r $i -s $IMAGE "$here" "$SAMPLE_NAME" $SAMPLES; files+=("$US")
        readers -r $i -s $IMAGE "$there" "$SAMPLE_NAME" $SAMPLES; ours+=("$US")
        readers -r $i -s $IMAGE "$squash" "$SAMPLE_NAME" $SAMPLES; theirs+=("$US")
    done
    requests_of "$SCRATCH/epochfs" readers -c "$there" "$SAMPLE_NAME" $SAMPLES
    same "$there" "$sum" "$SUM"
    row "warm samples, random order" "$(files_per_s $SAMPLES ours)" \
        "files $(files_per_s $SAMPLES files)" "$(median_ratio files ours)" '>=' 0.70
    row "warm samples, random order" "$(files_per_s $SAMPLES ours)" \
        "squashfuse $(files_per_s $SAMPLES theirs)" "$(median_ratio theirs ours)" '>=' 7
    row "requests of a warm pass over the samples" "$REQUESTS requests" "$SAMPLES files" \
        "$(calc "$REQUESTS / $SAMPLES")" '<=' 0
}

bar_first_pass() {
    local ours=() theirs=() sum i rounds=3 # squashfuse needs half a minute for each
    local_samples
    for ((i = 1; i <= rounds; i++)); do
        mount_squash "$SCRATCH/local.squashfs" "$SCRATCH/squash"
        readers -c -r $i "$SCRATCH/squash" "$SAMPLE_NAME" $SAMPLES; theirs+=("$US") sum=$SUM
        unmount "$SCRATCH/squash"
        mount_source
        readers -c -r $i "$SCRATCH/epochfs/train/samples/raw" "$SAMPLE_NAME" $SAMPLES; ours+=("$US")
        umount_epochfs "$SCRATCH/epochfs"
        same "first pass" "$sum" "$SUM"
    done
    row "first pass over the samples, random order" "$(files_per_s $SAMPLES ours)" \
        "squashfuse $(files_per_s $SAMPLES theirs)" "$(median_ratio theirs ours)" '>=' 1.0
}

bar_warm_batches() {
    local here=$SCRATCH/batches there=$SCRATCH/epochfs/train/batches/batch=128/npy
    local count=$(((SAMPLES + 127) / 128)) full=$((128 + 128 * IMAGE)) passes=40
    local ours=() files=() sum bytes i
    local_samples
    mount_source
    readers -c "$here" "$BATCH_NAME" $count
    sum=$SUM
    readers -c "$there" "$BATCH_NAME" $count
    same "$there" "$sum" "$SUM"
    for ((i = 1; i <= ROUNDS; i++)); do
        readers -r $i -p $passes -s $full "$here" "$BATCH_NAME" $count; files+=("$US")
        bytes=$BYTES
        readers -r $i -p $passes -s $full "$there" "$BATCH_NAME" $count; ours+=("$US")
        same "bytes of $there" "$bytes" "$BYTES"
    done
    requests_of "$SCRATCH/epochfs" readers -c "$there" "$BATCH_NAME" $count
    same "$there" "$sum" "$SUM"
    row "warm batches, batch=128 npy" "$(mb_per_s "$bytes" ours)" \
        "files $(mb_per_s "$bytes" files)" "$(median_ratio files ours)" '>=' 0.9
    row "requests of a warm pass over the batches" "$REQUESTS requests" "$count files" \
        "$(calc "$REQUESTS / $count")" '<=' 0
}

bar_large_array() {
    local count=1280000 mount=$SCRATCH/large/mount file=$SCRATCH/large/array.npy
    local ours=() files=() array i
    mkdir -p "$SCRATCH/large/source"
    {
        idx_header $count
        head -c $((count * IMAGE)) /dev/urandom
    } >"$SCRATCH/large/source/large-images-idx3-ubyte"
    {
        "$READERS" npy "$count, 28, 28"
        tail -c +17 "$SCRATCH/large/source/large-images-idx3-ubyte"
    } >"$file"
    for ((i = 1; i <= ROUNDS; i++)); do
        elapsed dd "if=$file" of=/dev/null bs=1M status=none; files+=("$US")
        mount_epochfs "$SCRATCH/large/source" "$mount"
        array=$(only_dataset "$mount")/batches/batch=all/npy/000000.image.npy
        elapsed dd "if=$array" of=/dev/null bs=1M status=none; ours+=("$US")
        if ((i == 1)); then cmp "$file" "$array"; fi
        umount_epochfs "$mount"
    done
    row "first read of a batch=all npy of 1 GB, dd" "$(mb_per_s $((count * IMAGE)) ours)" \
        "file $(mb_per_s $((count * IMAGE)) files)" "$(median_ratio files ours)" '>=' 0.5
    rm -r "$SCRATCH/large/source" "$file"
}

# compare_opens WHAT PATTERN SMALL-COUNT LARGE-PATTERN LARGE-COUNT: of cold opens in fresh mounts.
compare_opens() {
    local small=() large=() sum i
    for ((i = 1; i <= ROUNDS; i++)); do
        mount_epochfs "$SCRATCH/thousand" "$SCRATCH/mount3"
        readers -c -l -n 200 -r $i "$(only_dataset "$SCRATCH/mount3")" "$2" "$3"
        small+=("$MEDIAN_US") sum=$SUM
        umount_epochfs "$SCRATCH/mount3"
        mount_epochfs "$SCRATCH/billion" "$SCRATCH/mount9"
        readers -c -l -n 200 -r $i "$(only_dataset "$SCRATCH/mount9")" "$4" "$5"
        large+=("$MEDIAN_US")
        umount_epochfs "$SCRATCH/mount9"
        same "$1" "$sum" "$SUM"
    done
    row "cold open in 10^9 samples, $1" "$(median "${large[@]}") us" \
        "10^3 samples $(median "${small[@]}") us" "$(median_ratio large small)" '<=' 1.5
}

bar_billion() {
    local times=() i pid rss peak mount=$SCRATCH/mount9 plan='batches/batch=4,rank=1of2,seed=@'
    for i in thousand:1000 billion:1000000000; do
        mkdir -p "$SCRATCH/${i%:*}"
        idx_header "${i#*:}" >"$SCRATCH/${i%:*}/big-images-idx3-ubyte"
        truncate -s $((16 + ${i#*:} * IMAGE)) "$SCRATCH/${i%:*}/big-images-idx3-ubyte"
    done
    for ((i = 1; i <= ROUNDS; i++)); do
        elapsed mount_epochfs "$SCRATCH/billion" "$mount"; times+=("$US")
        umount_epochfs "$mount"
    done
    row "mount of 10^9 samples" "$(seconds times)" "0.2 s" \
        "$(calc "$(median "${times[@]}") / 200000")" '<=' 1
    compare_opens "samples" 'samples/raw/######.image.raw' 1000 \
        'samples/raw/#########.image.raw' 1000000000
    compare_opens "any seed, epoch" 'batches/batch=1,seed=@/epoch=@/npy/######.image.npy' 1000 \
        'batches/batch=1,seed=@/epoch=@/npy/#########.image.npy' 1000000000
    compare_opens "window, rank" "$plan,shuffle=window:64/epoch=@/npy/######.image.npy" 125 \
        "$plan,shuffle=window:64/epoch=@/npy/#########.image.npy" 125000000

    mount_epochfs "$SCRATCH/billion" "$mount"
    readers -n "$OPENS" -t 4 "$(only_dataset "$mount")" 'samples/raw/#########.image.raw' 1000000000
    same "bytes of $OPENS samples" $((OPENS * IMAGE)) "$BYTES"
    pid=$(daemon_pid "$mount")
    rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
    peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
    row "daemon after $OPENS random opens" "$(calc "int($rss / 102.4) / 10") MiB RSS" \
        "32 MiB (peak $(calc "int($peak / 102.4) / 10"))" "$(calc "$rss / 32768")" '<=' 1
}

names_and_sizes() { find "$1" -type f -printf '%f %s\n' | sort; }

bar_listing() {
    local here=$SCRATCH/listing there=$SCRATCH/epochfs/train/samples/raw first=() warm=() files=() i
    local_samples
    cp -al "$SCRATCH/local" "$here"
    "$READERS" split "$SCRATCH/train-labels" 8 1 "$here" '######.label.raw'
    for ((i = 1; i <= ROUNDS; i++)); do
        mount_source
        elapsed /bin/ls -l "$here" >/dev/null; files+=("$US")
        elapsed /bin/ls -l "$there" >/dev/null; first+=("$US")
        elapsed /bin/ls -l "$there" >/dev/null; warm+=("$US")
        if ((i == 1)); then cmp <(names_and_sizes "$here") <(names_and_sizes "$there"); fi
        umount_epochfs "$SCRATCH/epochfs"
    done
    row "first ls -l of 120000 files" "$(seconds first)" "files $(seconds files)" \
        "$(median_ratio first files)" '<=' 2
    row "warm ls -l of 120000 files" "$(seconds warm)" "files $(seconds files)" \
        "$(median_ratio warm files)" '<=' 2
}
