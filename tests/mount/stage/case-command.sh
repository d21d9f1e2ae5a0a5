#!/bin/bash
# epochfs stage: fills the cache, continues after an interruption, and returns 0 only if everything
# is staged.
# shellcheck source=../lib.sh
source "$CASES/lib.sh"
small_source
cache=$PRIVATE/a-cache

# Large files that no format reads are staged too.
"$PYTHON3" - <<'END'
import random
import lib
lib.write("sub/noise", random.Random(1).randbytes(20 << 20))
END
gzip "$SOURCE/train-images-idx3-ubyte"

# ---- a first time, then there is nothing to do ----
expect 4 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
one_line
says "not in the cache"
expect 0 "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"
one_line
says "$SOURCE: 3 files, 20.0 MiB: complete and correct, in $cache"
expect 0 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
says "complete and correct"
expect 0 "$EPOCHFS" stage --progress -o "cache=$cache" "$SOURCE"
says "100 %  staged 20.0 MiB of 20.0 MiB"
expect 0 "$EPOCHFS" stage --check --progress -o "cache=$cache" "$SOURCE"
says "100 %  checked 20.0 MiB of 20.0 MiB"
expect 0 "$EPOCHFS" cache list "$cache"
says "$SOURCE/sub/noise" "$SOURCE/train-images-idx3-ubyte.gz" "unpacked/" ": 4 files"
[[ $OUT != *"in use"* ]] || die "in use: $OUT"

# ---- then a mount has everything ----
start "$SOURCE" "cache=$cache"
cat "$MOUNTPOINT"/train/source/* "$MOUNTPOINT"/train/samples/npz/* >"$PRIVATE/read"
expect 0 "$EPOCHFS" status "$MOUNTPOINT"
says "staged    20.0 MiB of 20.0 MiB (100 %)" "fetched   0 B" "hits      100 %" "waits     0"
stop TERM

# ---- damage: found, named, and fetched again ----
big=$(find "$cache/staged" -size +10M)
damage() {
    printf X | dd of="$big" bs=1 seek=$((10 << 20)) conv=notrunc status=none
}
damage
expect 4 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
says "noise" "damaged"
expect 0 "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"
expect 0 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
damage
expect 4 "$EPOCHFS" cache verify "$cache"
says "$SOURCE/sub/noise: 1 of 5120 blocks were wrong" "1 of 4 files"
expect 0 "$EPOCHFS" cache verify "$cache"
expect 4 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
expect 0 "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"

# ---- another version: the old one is useless now ----
"$PYTHON3" - <<'END'
import random
import lib
lib.write("sub/noise", random.Random(2).randbytes(20 << 20))
END
expect 4 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
expect 0 "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"
expect 0 "$EPOCHFS" cache prune "$cache"
says "removed $SOURCE/sub/noise (20.0 MiB, an older version)" "1 file removed"
expect 0 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"

# ---- a signal ends it quickly, and the next run continues ----
for signal in INT TERM; do
    "$PYTHON3" - "$signal" "$PRIVATE/cache-$signal" <<'END'
import os, signal, subprocess, sys, time
import lib
number, cache = getattr(signal, "SIG" + sys.argv[1]), sys.argv[2]
stage = subprocess.Popen([lib.EPOCHFS, "stage", "--progress", "-o", f"rate=1M,cache={cache}",
                          lib.SOURCE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
while " staged " not in stage.stderr.readline():
    pass
began = time.monotonic()
stage.send_signal(number)
_, said = stage.communicate(timeout=lib.DEADLINE)
lib.equal(stage.returncode, 128 + number, said)
lib.contains(said, "continues from there")
if time.monotonic() - began > 10:  # all of it takes 20 s
    raise AssertionError(f"it took {time.monotonic() - began} s to end")
END
    expect 4 "$EPOCHFS" stage --check -o "cache=$PRIVATE/cache-$signal" "$SOURCE"
    expect 0 "$EPOCHFS" stage -o "cache=$PRIVATE/cache-$signal" "$SOURCE"
done

# ---- too little space ----
expect 4 "$EPOCHFS" stage -o "cache=$PRIVATE/little,cache_size=5M" "$SOURCE"
one_line
says "the cache $PRIVATE/little is full" "of 20.0 MiB are staged" "of 5.0 MiB" "cache_size="
[ "$(du -sm "$PRIVATE/little" | cut -f1)" -le 5 ] || die "the limit is none"
expect 0 "$EPOCHFS" stage -o "cache=$PRIVATE/little" "$SOURCE"

# ---- what cannot be staged ----
touch "$PRIVATE/a-file"
expect 4 "$EPOCHFS" stage -o "cache=$PRIVATE/a-file/x" "$SOURCE"
one_line
expect 2 "$EPOCHFS" stage -o "cache=$cache" "$PRIVATE/missing"
one_line
mkdir "$PRIVATE/empty"
expect 2 "$EPOCHFS" stage -o "cache=$cache" "$PRIVATE/empty"
says "no files found"
echo "this is no gzip" | gzip >"$SOURCE/cut.gz"
truncate -s -9 "$SOURCE/cut.gz"
expect 2 "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"
says "cut.gz" "1 of 4 files could not be read"
rm "$SOURCE/cut.gz"

# ---- prune --all removes everything, and it comes again; also with the default folder ----
expect 0 "$EPOCHFS" cache prune --all "$cache"
says "0 B left"
expect 4 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
EPOCHFS_CACHE=$cache expect 0 "$EPOCHFS" stage "$SOURCE"
says "in $cache"
expect 0 "$EPOCHFS" stage --check -o "cache=$cache" "$SOURCE"
