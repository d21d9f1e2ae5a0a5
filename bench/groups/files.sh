# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # names of and for bench/lib.sh
# The bars of folders of files: samples and batches against the files themselves, a million names.
# Each bar makes what it needs in $SCRATCH, once.

PACKAGES=(fuse3 python3 python3-numpy)
BARS=(warm_files pushed_files million)

FILES=60000
FILE_NAME='######.jpg'

# 60,000 files of 10 to 20 KB in 100 class folders, each also called by its number in one folder.
class_folders() {
    [[ ! -d $SCRATCH/classes ]] || return 0
    say "making $FILES files"
    mkdir -p "$SCRATCH/links"
    python3 - "$SCRATCH" $FILES <<'PYTHON'
import os, random, sys
root, n = sys.argv[1], int(sys.argv[2])
rng, noise = random.Random(1), os.urandom(1 << 20)
for c in range(100):
    os.makedirs(f"{root}/classes/train/c{c:02d}")
for i in range(n):
    size, at = rng.randrange(10000, 20001), rng.randrange(1 << 19)
    with open(f"{root}/classes/train/c{i % 100:02d}/{i:06d}.jpg", "wb") as f:
        f.write(noise[at:at + size])
    os.link(f.name, f"{root}/links/{i:06d}.jpg")
PYTHON
}

bar_warm_files() {
    local here=$SCRATCH/links there=$SCRATCH/epochfs/train/samples/raw ours=() files=() sum i
    class_folders
    mount_epochfs "$SCRATCH/classes" "$SCRATCH/epochfs"
    readers -c "$here" "$FILE_NAME" $FILES
    sum=$SUM
    readers -c "$there" "$FILE_NAME" $FILES
    same "$there" "$sum" "$SUM"
    for ((i = 1; i <= ROUNDS; i++)); do
        readers -r $i "$here" "$FILE_NAME" $FILES; files+=("$US")
        readers -r $i "$there" "$FILE_NAME" $FILES; ours+=("$US")
    done
    row "warm pictures of a folder, random order" "$(files_per_s $FILES ours)" \
        "files $(files_per_s $FILES files)" "$(median_ratio files ours)" '>=' 0.65
    umount_epochfs "$SCRATCH/epochfs"
}

bar_pushed_files() {
    class_folders
    FOLDERS=$SCRATCH python_bars files_bars.py pushed
}

bar_million() { python_bars files_bars.py million; }
