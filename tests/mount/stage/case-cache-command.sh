#!/bin/bash
# epochfs cache lists, verifies and prunes the files of epochfs, and no others.
# shellcheck source=../lib.sh
source "$CASES/lib.sh"
small_source
gzip "$SOURCE/train-images-idx3-ubyte"
cache=$PRIVATE/a-cache

# ---- folders that are not ours ----
mkdir "$PRIVATE/mine"
echo precious >"$PRIVATE/mine/file"
for verb in list verify prune; do
    expect 4 "$EPOCHFS" cache "$verb" "$PRIVATE/missing"
    one_line
    says "$PRIVATE/missing" "No such file"
    expect 4 "$EPOCHFS" cache "$verb" "$PRIVATE/mine"
    one_line
    says "$PRIVATE/mine" "expected a cache folder of epochfs"
    EPOCHFS_CACHE=$PRIVATE/missing expect 0 "$EPOCHFS" cache "$verb"
    says "$PRIVATE/missing" "no cache folder yet"
done
[ "$(ls "$PRIVATE/mine")" = file ] || die "something was made in a folder that is not ours"
[ ! -e "$PRIVATE/missing" ] || die "a folder was made"

# ---- one that is in use ----
EPOCHFS_CACHE=$cache start "$SOURCE"
expect 0 "$EPOCHFS" cache list "$cache"
says "unpacked/" " of $(realpath "$SOURCE")/train-images-idx3-ubyte.gz, in use" "$cache: 1 file, "
expect 0 "$EPOCHFS" cache list --json "$cache"
"$PYTHON3" - "$OUT" "$cache" "$SOURCE/train-images-idx3-ubyte.gz" <<'END'
import json, os, sys
said = json.loads(sys.argv[1])
assert said["folder"] == sys.argv[2], said
f, = said["files"]
assert f["kind"] == "unpacked" and f["in_use"] and not f["damaged"] and not f["part"], f
st = os.stat(os.path.join(sys.argv[2], "unpacked", f["id"]))
assert f["url"] is None and f["source"] == os.path.realpath(sys.argv[3]), f
assert f["size"] == st.st_size - 64 - len(f["source"]) and f["disk"] == st.st_blocks * 512 == said["disk_bytes"], f
assert 0 < said["default_limit_bytes"], said
END
for options in "" "--all" "--to 1" "--older-than 0"; do
    # shellcheck disable=SC2086 # words
    expect 0 "$EPOCHFS" cache prune $options "$cache"
    says "0 files removed" "1 file in use"
done
stop TERM
[ "$(find "$cache/unpacked" -type f | wc -l)" = 1 ] || die "it was removed"

# ---- damaged files ----
echo half >"$cache/unpacked/0123456789abcdef0123456789abcdef.part"
echo damaged >"$cache/rows-are-not-a-folder"
mkdir -p "$cache/rows"
echo damaged >"$cache/rows/0123456789abcdef0123456789abcdef"
echo mine >"$cache/rows/mine"
expect 0 "$EPOCHFS" cache list "$cache"
says "left by a process that died" ", damaged" ": 3 files"
expect 0 "$EPOCHFS" cache prune --older-than 1 "$cache"
says "removed rows/0123456789abcdef0123456789abcdef (" "damaged)" \
    "removed unpacked/0123456789abcdef0123456789abcdef.part (" "2 files removed"
for file in rows/mine rows-are-not-a-folder; do
    [ -e "$cache/$file" ] || die "it removed $file, which is not ours"
done
expect 0 "$EPOCHFS" cache prune "$cache"
says "0 files removed"

# ---- prune --dry-run: lists what it would remove, and removes nothing ----
before=$(cd "$cache" && find . -type f | sort)
expect 0 "$EPOCHFS" cache prune --all --dry-run "$cache"
says "would remove " " (" ", not in use)" "$cache: 1 file to remove, "
[ "$(cd "$cache" && find . -type f | sort)" = "$before" ] || die "--dry-run removed something"

# ---- verify: exit code 4 once ----
expect 0 "$EPOCHFS" cache verify "$cache"
says "1 file, " "no damage"
expect 0 "$EPOCHFS" cache verify --progress "$cache"
says "100 %" "checked"
truncate -s -1 "$cache"/unpacked/*
expect 4 "$EPOCHFS" cache verify "$cache"
says "$cache/unpacked/" "damaged" "1 of 1 files"
expect 0 "$EPOCHFS" cache verify "$cache"
says "0 files" "no damage"

# A flipped byte in an index, of rows or of a table: after the headers, which have their own
# checksums.
"$PYTHON3" - <<'END'
import os
here = os.environ["PRIVATE"] + "/text"
os.mkdir(here)
with open(here + "/a.libsvm", "w") as f:
    f.writelines(f"{i % 2} {i % 7}:1 9:0.5\n" for i in range(1000))
with open(here + "/b.ark", "w") as f:
    f.writelines(f"key-{i} [\n 1 {i} ]\n" for i in range(1000))
END
index() {
    EPOCHFS_CACHE=$cache start "$PRIVATE/text"
    ls -R "$MOUNTPOINT" >/dev/null
    stop TERM
}
index
expect 0 "$EPOCHFS" cache list "$cache"
says "rows/" " of $PRIVATE/text/a.libsvm" "tables/" " of $PRIVATE/text/b.ark"
expect 0 "$EPOCHFS" cache verify "$cache"
files=$(find "$cache/rows" "$cache/tables" -type f ! -name mine | wc -l)
says "$files files, " "no damage"
for kind in rows tables; do
    file=$(find "$cache/$kind" -type f ! -name mine | head -n 1)
    [ -n "$file" ] || die "no index in $kind"
    printf '\377' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc status=none
    expect 4 "$EPOCHFS" cache verify "$cache"
    says "$file" "damaged" "1 of "
    [ ! -e "$file" ] || die "$file is still there"
    expect 0 "$EPOCHFS" cache verify "$cache"
    index
    [ -e "$file" ] || die "$file was not made again"
done
# An entry of another version is neither used nor called damaged.
file=$(find "$cache/rows" -type f ! -name mine)
"$PYTHON3" - "$file" <<'END'
import struct, sys, zlib
with open(sys.argv[1], "r+b") as f:
    f.seek(-64, 2)
    trailer = bytearray(f.read(60))
    trailer[8:16] = struct.pack("<II", 3, 0)
    f.seek(-64, 2)
    f.write(trailer + struct.pack("<I", zlib.crc32(trailer)))
END
expect 0 "$EPOCHFS" cache verify "$cache"
expect 0 "$EPOCHFS" cache list "$cache"
says ", an older version"
[[ $OUT != *damaged* ]] || die "damaged: $OUT"
expect 0 "$EPOCHFS" cache prune "$cache"
says "removed rows/" "an older version" "1 file removed"
index
[ -e "$file" ] || die "$file was not made again"

# ---- the source of an output is its command; control characters are not shown ----
mkdir "$PRIVATE/commands"
gzip -c <"$PRIVATE/text/b.ark" >"$PRIVATE/b.gz"
long=$(printf 'x%.0s' {1..1100})
esc=$'\033'
output="gzip -dc $PRIVATE/b.gz | head -n 2 | cut -d ' ' -f 2-"
printf '%s\n' "a $output |" "b $output # ${esc}[31m |" "c $output # $long |" >"$PRIVATE/commands/c.scp"
EPOCHFS_CACHE=$cache start "$PRIVATE/commands" allow_commands
ls -R "$MOUNTPOINT" >/dev/null
find "$MOUNTPOINT" -path '*/samples/*' -type f -exec cat {} + >/dev/null
stop TERM
expect 0 "$EPOCHFS" cache list "$cache"
says "commands/" " of $output" "# ?[31m" "xxx..."
[[ $OUT != *"$esc"* && $OUT != *"$long"* ]] || die "a source is shown as it is: $OUT"
expect 0 "$EPOCHFS" cache verify "$cache"
says "no damage"

# A source that is no text, or too long; the trailer's own checksum is right.
for bad in nul length; do
    file=$(find "$cache/commands" -type f | head -n 1)
    "$PYTHON3" - "$file" "$bad" <<'END'
import struct, sys, zlib
with open(sys.argv[1], "r+b") as f:
    data = bytearray(f.read())
    trailer = data[-64:-4]
    named, = struct.unpack("<I", trailer[12:16])
    assert 0 < named <= 1024, named
    if sys.argv[2] == "nul":
        data[-64 - named] = 0
    else:
        trailer[12:16] = struct.pack("<I", 0xffffffff)
    f.seek(0)
    f.write(data[:-64] + trailer + struct.pack("<I", zlib.crc32(trailer)))
END
    expect 0 "$EPOCHFS" cache list "$cache"
    expect 4 "$EPOCHFS" cache verify "$cache"
    says "$file" "damaged" "1 of "
    [ ! -e "$file" ] || die "$file is still there"
done
rm -r "$PRIVATE/text" "$PRIVATE/commands" "$cache/rows" "$cache/tables" "$cache/commands"

# ---- by age and size ----
fill() {
    EPOCHFS_CACHE=$cache start "$SOURCE"
    stop TERM
    touch -d '72 hours ago' "$cache"/unpacked/*
}
fill
expect 0 "$EPOCHFS" cache list "$cache"
says " 3 d "
expect 0 "$EPOCHFS" cache list "$cache" # listing does not count as use
says " 3 d "
expect 0 "$EPOCHFS" cache prune --older-than 4 --to 1T "$cache"
says "0 files removed"
expect 0 "$EPOCHFS" cache prune --older-than 3 "$cache"
says "not used for long" "1 file removed"
fill
expect 0 "$EPOCHFS" cache prune --to 1 "$cache"
says "the least recently used" "1 file removed" "0 B left"
fill
EPOCHFS_CACHE=$cache expect 0 "$EPOCHFS" cache prune --all
says "not in use" "1 file removed"
# Removed entries are made again.
EPOCHFS_CACHE=$cache start "$SOURCE"
stop TERM
expect 0 "$EPOCHFS" cache list "$cache"
says ": 1 file, "

# ---- a folder that cannot be written to is not damaged ----
if [ "$(id -u)" = 0 ]; then
    # In a namespace of our own; "$@": a command there, with the folder read-only.
    read_only() {
        # shellcheck disable=SC2016 # sh expands it
        unshare --mount sh -c 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99
            shift; exec "$@"' sh "$cache" "$@"
    }
    expect 0 "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"
    expect 0 read_only "$EPOCHFS" cache verify "$cache"
    says "no damage"
    expect 4 read_only "$EPOCHFS" stage -o "cache=$cache" "$SOURCE"
    one_line
    says "$cache: " "cannot be written" "Read-only file system"
    expect 4 read_only "$EPOCHFS" mount -o "cache=$cache" "$SOURCE" "$MOUNTPOINT"
    one_line
    says "$cache: " "cannot be written" "Read-only file system"
    for file in "$cache"/staged/*.content "$cache"/unpacked/*; do
        "$PYTHON3" - "$file" <<'END'
import sys
with open(sys.argv[1], "r+b") as f:
    at = max(f.seek(0, 2) - 65, 0)
    f.seek(at)
    byte = f.read(1)
    f.seek(at)
    f.write(bytes([byte[0] ^ 1]))
END
    done
    expect 4 read_only "$EPOCHFS" cache verify "$cache"
    says "is damaged, and cannot be removed: Read-only file system" "could not be dropped"
    [[ $OUT != *"was dropped"* ]] || die "it says that something was dropped: $OUT"
    expect 4 "$EPOCHFS" cache verify "$cache"
    says "what is damaged was dropped"
    expect 0 "$EPOCHFS" cache verify "$cache"
else
    echo "without the part that needs root: a read-only folder"
fi
