#!/bin/bash
# The command line: help, exit codes, messages, and that mount returns when the mount answers.
# shellcheck source=lib.sh
source "$CASES/lib.sh"
small_source

# ---- help and usage ----
expect 0 "$EPOCHFS" --version
[[ $OUT =~ ^epochfs\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || die "--version: $OUT"
expect 0 "$EPOCHFS" --help
says "usage: epochfs" "mount" "umount" "info" "SOURCE"
for command in mount umount info; do
    expect 0 "$EPOCHFS" "$command" --help
    says "usage: epochfs $command"
    [ -z "$("$EPOCHFS" "$command" --help 2>&1 >/dev/null)" ] || die "help is not on stdout"
done
expect 0 "$EPOCHFS" mount --help
says plan= epochs= cache= classes= transpose log= allow_other fstab

expect 1 "$EPOCHFS"
says "usage"
expect 1 "$EPOCHFS" mounted
says "'mounted'" "--help"
expect 1 "$EPOCHFS" mount
says "SOURCE and MOUNTPOINT"
expect 1 "$EPOCHFS" mount "$SOURCE"
expect 1 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT" extra
expect 1 "$EPOCHFS" mount --nope "$SOURCE" "$MOUNTPOINT"
expect 1 "$EPOCHFS" mount -o
expect 1 "$EPOCHFS" umount
expect 1 "$EPOCHFS" umount a b
expect 1 "$EPOCHFS" info
expect 1 "$EPOCHFS" info --jason "$SOURCE"

# ---- options ----
bad_option() {
    expect 1 "$EPOCHFS" mount -o "$1" "$SOURCE" "$MOUNTPOINT"
    one_line
    shift
    says "epochfs: " "$@"
    ! is_mounted "$MOUNTPOINT" || die "mounted all the same"
}
bad_option plam=batch=4 "unknown option 'plam=batch=4'" "is it 'plan'?"
bad_option epoch=3 "is it 'epochs'?"
bad_option cash=/tmp "is it 'cache'?"
bad_option transpos "is it 'transpose'?"
bad_option ro,defaults,gibberish "unknown option 'gibberish'"
bad_option seed=7 "plan=batch=128+seed=7"
bad_option plan "want plan=PLAN"
bad_option plan= "batch"
bad_option plan=batch=0 "plan=batch=0" "batch: want"
bad_option plan=seed=1 "batch= is missing"
bad_option plan=batch=1+rank=4of4 "rank: want"
bad_option epochs=x "epochs=x" "want a number"
bad_option epochs=-1 "want a number"
bad_option classes=0 "classes=0" "want a number from 1"
bad_option log=loud "want error, warning, info or debug"
bad_option transpose=yes "takes no value"
bad_option cache= "want a folder"

# ---- what cannot be mounted ----
expect 2 "$EPOCHFS" mount "$PRIVATE/missing" "$MOUNTPOINT"
one_line
says "$PRIVATE/missing" "No such file"
expect 2 "$EPOCHFS" mount s3://bucket/x "$MOUNTPOINT"
says "s3://bucket/x" "file://"
expect 2 "$EPOCHFS" mount https://example.org/x "$MOUNTPOINT"
expect 2 "$EPOCHFS" mount /dev/null "$MOUNTPOINT"
expect 3 "$EPOCHFS" mount "$SOURCE" "$PRIVATE/missing"
one_line
says "mountpoint $PRIVATE/missing" "No such file"
touch "$PRIVATE/a-file"
expect 3 "$EPOCHFS" mount "$SOURCE" "$PRIVATE/a-file"
one_line
says "want a folder"
expect 3 "$EPOCHFS" mount "$SOURCE" "$PRIVATE/a-file/below"
expect 4 "$EPOCHFS" mount -o "cache=$PRIVATE/a-file/x" "$SOURCE" "$MOUNTPOINT"
one_line
! is_mounted "$MOUNTPOINT" || die "something was mounted"

# ---- mount returns when the mount answers ----
for i in 1 2 3 4 5; do
    expect 0 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
    [ -z "$OUT" ] || die "mount said: $OUT"
    [ "$(stat -c %s "$MOUNTPOINT/train/samples/raw/000000.image.raw")" = 30 ] || die "no answer"
    expect 0 "$EPOCHFS" umount "$MOUNTPOINT"
    [ -z "$OUT" ] || die "umount said: $OUT"
    ! is_mounted "$MOUNTPOINT" || die "round $i: still mounted"
done
# The daemon keeps no terminal, no pipe and no folder of its caller.
mkdir "$PRIVATE/busy"
(cd "$PRIVATE/busy" && timeout 30 "$EPOCHFS" mount ../source ../mountpoint | cat)
pid=$(tr -d ' ,' <"$MOUNTPOINT/.epochfs/status.json" | sed -n 's/^"pid"://p')
[ "$(readlink "/proc/$pid/cwd")" = / ] || die "the daemon stays in $(readlink "/proc/$pid/cwd")"
for fd in 0 1 2; do
    [[ $(readlink "/proc/$pid/fd/$fd") == /dev/null ]] ||
        [[ $(readlink "/proc/$pid/fd/$fd") == "$PRIVATE"/log.* ]] || die "fd $fd is open"
done
[ "$(ps -o pid= -o sid= -p "$pid" | awk '{print ($1 == $2)}')" = 1 ] || die "no session of its own"

# ---- a mountpoint that is in use ----
exec 7<"$MOUNTPOINT/README.txt"
expect 3 "$EPOCHFS" umount "$MOUNTPOINT"
[[ $OUT == *"$MOUNTPOINT"*"in use"* || $OUT == *"$MOUNTPOINT"*busy* ]] || die "a busy mount: $OUT"
exec 7<&-
expect 0 "$EPOCHFS" umount "$MOUNTPOINT/"
gone "$pid"
expect 3 "$EPOCHFS" umount "$MOUNTPOINT"
one_line
says "$MOUNTPOINT" "no epochfs is mounted"
expect 3 "$EPOCHFS" umount /
says "no epochfs"
expect 3 "$EPOCHFS" umount /proc
says "no epochfs"
expect 3 "$EPOCHFS" umount "$PRIVATE/missing"
expect 3 "$EPOCHFS" umount "$PRIVATE/missing/x"

# ---- in front: SIGTERM, SIGINT, SIGHUP ----
for signal in TERM INT HUP; do
    "$PYTHON3" - "$signal" <<'END'
import signal, sys, lib
daemon = lib.start()
lib.content(lib.path("README.txt"))
daemon.send_signal(getattr(signal, "SIG" + sys.argv[1]))
lib.equal(daemon.wait(30), 0, sys.argv[1])
lib.equal(lib.mount_type(lib.MOUNTPOINT), None, sys.argv[1])
END
done
# ... and by umount from elsewhere.
start "$SOURCE"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"
wait "$DAEMON" || die "the daemon returned $?"

# ---- kill -9, then umount cleans up ----
start "$SOURCE"
kill -KILL "$DAEMON"
{ wait "$DAEMON" || true; } 2>/dev/null
expect 2 ls "$MOUNTPOINT/"
expect 3 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
says "epochfs umount"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"
expect 0 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"

# ---- odd paths ----
odd="$PRIVATE/o, d\\d 'm' \"p\" #1"
mkdir "$odd" "$PRIVATE/s,r\\c =x"
cp "$SOURCE"/* "$PRIVATE/s,r\\c =x/"
expect 0 "$EPOCHFS" mount -o plan=batch=4 "$PRIVATE/s,r\\c =x" "$odd"
[ "$(find "$odd/train/batches/batch=4/npz" -type f | wc -l)" = 5 ] || die "odd paths"
[[ $(findmnt -n -o SOURCE --mountpoint "$odd") == *"s,r"* ]] || die "the mount table has no source"
expect 0 "$EPOCHFS" umount "$odd"
ln -s source "$PRIVATE/link-to-source"
ln -s mountpoint "$PRIVATE/link-to-mountpoint"
cd "$PRIVATE"
expect 0 "$EPOCHFS" mount link-to-source link-to-mountpoint
[ -e mountpoint/README.txt ] || die "by links"
expect 0 "$EPOCHFS" umount link-to-mountpoint/
expect 0 "$EPOCHFS" mount "file://$SOURCE/train-images-idx3-ubyte" mountpoint
[ -e mountpoint/train-images-idx3-ubyte/dataset.json ] || die "one file by file://"
cd mountpoint
expect 3 "$EPOCHFS" umount .
cd ..
expect 0 "$EPOCHFS" umount ./mountpoint

# ---- info ----
expect 0 "$EPOCHFS" info "$SOURCE"
says train "samples  20" "image" "uint8, 5 x 6" "label" "image01" "label1h" "(from label)"
expect 0 "$EPOCHFS" info --json "$SOURCE"
"$PYTHON3" -c '
import json, sys
info = json.loads(sys.argv[1])
assert [d["dataset"] for d in info["datasets"]] == ["train"], info
assert info["datasets"][0]["samples"] == 20 and info["unusable"] == [], info' "$OUT"
expect 0 "$EPOCHFS" info --check "$SOURCE"
expect 2 "$EPOCHFS" info "$PRIVATE/missing"
one_line
says "$PRIVATE/missing"
echo nonsense >"$SOURCE/nonsense"
expect 0 "$EPOCHFS" info "$SOURCE"
says "nonsense" "not usable" "want 00 00"
expect 2 "$EPOCHFS" info --check "$SOURCE"
says "1 of 2"
expect 0 "$EPOCHFS" info -o classes=12 --json "$SOURCE"
says '"shape": [12]'
expect 1 "$EPOCHFS" info -o clases=12 "$SOURCE"
says "is it 'classes'?"
