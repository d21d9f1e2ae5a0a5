#!/bin/bash
# The command line: help, exit codes, messages, and that mount returns when the mount answers.
# shellcheck source=../lib.sh
source "$CASES/lib.sh"
small_source

# ---- help and usage ----
fits_terminal() {
    [ "$(awk 'length > 80' <<<"$OUT")" = "" ] || die "wider than 80 columns: $OUT"
}

expect 0 "$EPOCHFS" --version
[[ $OUT =~ ^epochfs\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || die "--version: $OUT"
expect 0 "$EPOCHFS" --help
says "usage: epochfs" "mount" "umount" "info" "plan" "stage" "status" "cache" "SOURCE"
for command in mount umount info plan stage status cache; do
    expect 0 "$EPOCHFS" "$command" --help
    says "usage: epochfs $command"
    [ -z "$("$EPOCHFS" "$command" --help 2>&1 >/dev/null)" ] || die "help is not on stdout"
    fits_terminal
done
expect 0 "$EPOCHFS" --help
fits_terminal
expect 0 "$EPOCHFS" mount --help
says plan= epochs= cache_dir= allow_other fstab "mount --help all"
fits_terminal
expect 0 "$EPOCHFS" mount --help all
fits_terminal
says plan= epochs= cache_dir= one_hot= transpose log_level= allow_other fstab cache_size= evict= prefetch= block_size= \
    transfers= bwlimit= retry_timeout= timeout= version= files= ca_cert= endpoint_url= region= profile= no_sign_request requester_pays \
    virtual_host

expect 1 "$EPOCHFS"
says "usage"
expect 1 "$EPOCHFS" mounted
says "'mounted' is not a command (is it 'mount'?)" "--help"
expect 1 "$EPOCHFS" nonsense
says "'nonsense' is not a command; "
for wrong in statsu:status infos:info stgae:stage unmout:unmount --versoin:--version help2:help; do
    expect 1 "$EPOCHFS" "${wrong%:*}"
    one_line
    says "'${wrong%:*}' is not a command (is it '${wrong#*:}'?)"
done
for word in version -v -V --version; do
    expect 0 "$EPOCHFS" "$word"
    [ "$OUT" = "$("$EPOCHFS" --version)" ] || die "$word: $OUT"
done
for word in "help umount" "help unmount" "-h umount" "unmount --help"; do
    # shellcheck disable=SC2086 # two words
    expect 0 "$EPOCHFS" $word
    [ "$OUT" = "$("$EPOCHFS" umount --help)" ] || die "$word: $OUT"
done
expect 0 "$EPOCHFS" help
[ "$OUT" = "$("$EPOCHFS" --help)" ] || die "help: $OUT"
expect 1 "$EPOCHFS" help statsu
says "'statsu' is not a command (is it 'status'?)"
expect 1 "$EPOCHFS" unmount /nowhere/at/all /b
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
expect 0 "$EPOCHFS" status
expect 1 "$EPOCHFS" status --watch
says "--watch: expected a MOUNTPOINT"
for command in plan stage status cache; do
    if [ "$command" != status ]; then
        expect 1 "$EPOCHFS" "$command"
        one_line
        says "epochfs: " "epochfs $command --help"
    fi
    expect 1 "$EPOCHFS" "$command" --jason "$SOURCE"
    says "epochfs $command --help"
done
for command in info stage status umount; do
    expect 1 "$EPOCHFS" "$command" a b
    says "got 2 arguments" "epochfs $command --help"
    expect 1 "$EPOCHFS" "$command" -qz "$SOURCE"
    says "$command: cannot make sense of '-q';"
    expect 0 "$EPOCHFS" "$command" --help
    says "usage: epochfs $command"
done
expect 1 "$EPOCHFS" stage --progress --chekc "$SOURCE"
says "cannot make sense of '--chekc' (is it '--verify'?)"
expect 1 "$EPOCHFS" status --json=1 "$SOURCE"
says "cannot make sense of '--json=1'"
expect 1 "$EPOCHFS" info "$SOURCE" -o
says "expected -o OPTIONS"
expect 1 "$EPOCHFS" stage a b
expect 1 "$EPOCHFS" status a b
expect 1 "$EPOCHFS" cache list a b
expect 1 "$EPOCHFS" cache lsit
says "expected list, verify or prune, got lsit (is it 'list'?)"
expect 1 "$EPOCHFS" cache list --all
says "cache list: cannot make sense of '--all'"
expect 1 "$EPOCHFS" cache prune --to 1.5G
says "option --to=1.5G"
expect 1 "$EPOCHFS" cache prune --max-size 1.5G
says "option --max-size=1.5G"
# Old names of flags and of a command, and their new ones.
for word in --check --verify; do
    expect 4 "$EPOCHFS" stage "$word" -o "cache_dir=$PWD/none" "$SOURCE"
done
for word in --rate --assume-rate; do
    expect 1 "$EPOCHFS" plan "$word=fast" "$SOURCE"
    says "option $word=fast"
done
for command in mount umount info plan stage index status audit cache; do
    expect 0 "$EPOCHFS" "$command" --help
    fits_terminal
    says "usage: epochfs $command" "example: epochfs $command"
done
expect 0 "$EPOCHFS" estimate --help
says "usage: epochfs plan"
expect 1 "$EPOCHFS" cache prune --older-than x
says "--older-than=x"

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
bad_option cash=/tmp "is it 'cache_dir'?"
bad_option transpos "is it 'transpose'?"
bad_option ro,defaults,gibberish "unknown option 'gibberish'"
bad_option seed=7 "plan=batch=128+seed=7"
bad_option plan "expected plan=PLAN"
bad_option plan= "batch"
bad_option plan=batch=0 "plan=batch=0" "batch: expected"
bad_option plan=seed=1 "batch= is missing"
bad_option plan=batch=1+rank=4of4 "rank: expected"
bad_option epochs=x "epochs=x" "expected a number"
bad_option epochs=-1 "expected a number"
bad_option classes=0 "classes=0" "expected a number from 1"
bad_option log=loud "expected error, warning, info or debug"
bad_option transpose=yes "takes no value"
bad_option cache= "expected a folder"
bad_option cache_size=1.5G "cache_size=1.5G" "200G"
bad_option cache_size=0% "expected 1% to 100%"
bad_option keep=plam "keep=plam" "expected never, after_use or plan"
bad_option block=3K "expected a power of two"
bad_option jobs=1 "expected a number from 2 to 64"
bad_option endpoint=example.org "expected a URL"
bad_option secret=HUSH "option secret:" "AWS_ACCESS_KEY_ID" "/.aws/credentials"
[[ $OUT != *HUSH* ]] || die "a secret is shown: $OUT"

# ---- a home folder that no shell has put in ----
cd "$PRIVATE"
for words in "mount -o keep=pin,cache=~/c $SOURCE $MOUNTPOINT" "stage -o cache=~ $SOURCE"; do
    # shellcheck disable=SC2086 # words
    expect 1 "$EPOCHFS" $words
    one_line
    says "option cache=~" "~ is not expanded here" "Write \$HOME or the whole path"
done
expect 4 env EPOCHFS_CACHE="~/c" "$EPOCHFS" mount http://127.0.0.1:9/x "$MOUNTPOINT"
says "cache folder ~/c: ~ is not expanded here"
[ ! -e "$PRIVATE/~" ] || die "a folder ~ was made"
expect 0 "$EPOCHFS" stage -o "cache=./~/c" "$SOURCE"
[ -d "$PRIVATE/~/c/staged" ] || die "./~/c was not used"
cd - >/dev/null

# ---- what cannot be mounted ----
expect 2 "$EPOCHFS" mount "$PRIVATE/missing" "$MOUNTPOINT"
one_line
says "$PRIVATE/missing" "No such file"
expect 2 "$EPOCHFS" mount ftp://example.org/x "$MOUNTPOINT"
says "ftp://example.org/x" "https://"
expect 2 "$EPOCHFS" mount -o patience=1 http://127.0.0.1:9/x "$MOUNTPOINT"
one_line
says "http://127.0.0.1:9/x"
expect 2 "$EPOCHFS" mount /dev/null "$MOUNTPOINT"
expect 3 "$EPOCHFS" mount "$SOURCE" "$PRIVATE/missing"
one_line
says "mountpoint $PRIVATE/missing: expected a folder, got none; make it: mkdir -p $PRIVATE/missing"
touch "$PRIVATE/a-file"
expect 3 "$EPOCHFS" mount "$SOURCE" "$PRIVATE/a-file"
one_line
says "expected a folder"
expect 3 "$EPOCHFS" mount "$SOURCE" "$PRIVATE/a-file/below"
expect 4 "$EPOCHFS" mount -o "cache=$PRIVATE/a-file/x" "$SOURCE" "$MOUNTPOINT"
one_line
! is_mounted "$MOUNTPOINT" || die "something was mounted"

# ---- a mountpoint that is not empty, a system without the device ----
touch "$MOUNTPOINT/hidden"
expect 0 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
one_line
says "epochfs: mountpoint $MOUNTPOINT: the folder is not empty; its files are hidden until epochfs is unmounted"
[ ! -e "$MOUNTPOINT/hidden" ] || die "it is not hidden"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"
rm "$MOUNTPOINT/hidden"
if [ "$(id -u)" = 0 ]; then
    # shellcheck disable=SC2016 # it is for the inner shell
    without_device() { # COMMAND...: /dev has no fuse, but what COMMAND makes there
        unshare -m bash -c 'mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3 && eval "$1" &&
                            exec "$2" mount "$3" "$4"' - "$1" "$EPOCHFS" "$SOURCE" "$MOUNTPOINT"
    }
    expect 3 without_device true
    says "cannot mount on $MOUNTPOINT: there is no /dev/fuse; load the module (modprobe fuse)"
    expect 3 without_device 'mkdir /dev/fuse'
    says "cannot mount on $MOUNTPOINT: /dev/fuse cannot be opened; let its users read and write it"
    expect 3 setpriv --bounding-set=-sys_admin "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
    says "cannot mount on $MOUNTPOINT: root has no right to mount here, which is CAP_SYS_ADMIN; start the container with it"
fi

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

# ---- a folder of a mount for its mountpoint, and a mountpoint for a source ----
for command in status umount; do
    for folder in "$MOUNTPOINT/train" "$MOUNTPOINT/train/samples/"; do
        expect 3 "$EPOCHFS" "$command" "$folder"
        one_line
        says "$folder: expected the folder on which an epochfs is mounted, which is $MOUNTPOINT"
    done
done
mkdir "$PRIVATE/second"
for words in "info $MOUNTPOINT" "info file://$MOUNTPOINT" "stage $MOUNTPOINT/" "mount $MOUNTPOINT $PRIVATE/second"; do
    # shellcheck disable=SC2086 # words
    expect 2 "$EPOCHFS" $words
    one_line
    says "$MOUNTPOINT" "expected a source, got the mountpoint of an epochfs; \`epochfs status\` names its source"
done
expect 0 "$EPOCHFS" info "$MOUNTPOINT/train/source"

# ---- a mountpoint that is in use ----
exec 7<"$MOUNTPOINT/README.txt"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT/"
one_line
says "$MOUNTPOINT: still in use by " " $$ (case-cli.sh)" "the mount ends when these processes close their files"
! is_mounted "$MOUNTPOINT" || die "a mount that was in use is still there"
exec 7<&-
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

# ---- in the foreground: SIGTERM, SIGINT, SIGHUP ----
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

# ---- kill -9, then umount cleans up, or the next mount ----
start "$SOURCE"
kill -KILL "$DAEMON"
{ wait "$DAEMON" || true; } 2>/dev/null
expect 2 ls "$MOUNTPOINT/"
expect 2 "$EPOCHFS" info "$MOUNTPOINT"
says "expected a source, got the mountpoint"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"
expect 0 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
kill -KILL "$("$PYTHON3" -c 'import lib; print(lib.status()["pid"])')"
expect 0 "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT"
one_line
says "removed a stale mount left by a dead daemon"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"

# ---- several at once: one is first ----
pids=()
for _ in 1 2 3 4; do
    { code=0; "$EPOCHFS" mount "$SOURCE" "$MOUNTPOINT" 2>/dev/null || code=$?; echo "$code" >>"$PRIVATE/codes"; } &
    pids+=("$!")
done
wait "${pids[@]}"
[ "$(sort "$PRIVATE/codes" | tr '\n' ' ')" = "0 3 3 3 " ] || die "four mounts at once: $(cat "$PRIVATE/codes")"
[ "$(grep -cF " $MOUNTPOINT " /proc/self/mountinfo)" = 1 ] || die "four mounts at once"
# A signal to all processes of a job does not end it.
for signal in USR1 USR2 ALRM PIPE; do
    kill -"$signal" "$("$PYTHON3" -c 'import lib; print(lib.status()["pid"])')"
done
expect 0 "$EPOCHFS" status "$MOUNTPOINT"
expect 0 "$EPOCHFS" umount "$MOUNTPOINT"

# ---- output that cannot be written ----
for words in --help "info $SOURCE" "info --json $SOURCE"; do
    code=0
    # shellcheck disable=SC2086 # words
    "$EPOCHFS" $words >/dev/full 2>"$PRIVATE/said" || code=$?
    [ "$code" = 6 ] || die "$words: expected exit code 6 on a full disk, got $code"
    grep -q "standard output" "$PRIVATE/said" || die "$words: $(cat "$PRIVATE/said")"
done

# ---- status ----
for at in "$MOUNTPOINT" "$PRIVATE/missing" /proc; do
    expect 3 "$EPOCHFS" status "$at"
    one_line
    says "$at"
done
start "$SOURCE"
expect 3 "$EPOCHFS" status "$MOUNTPOINT/train"
cat "$MOUNTPOINT"/train/samples/raw/*.raw >"$PRIVATE/read"
expect 0 "$EPOCHFS" status "$MOUNTPOINT/"
says "source    $SOURCE" "on $MOUNTPOINT," "pid $DAEMON" "1 of 1 ready" "reads     " "0 failed"
expect 0 "$EPOCHFS" status --json "$MOUNTPOINT"
"$PYTHON3" -c 'import json, sys; assert json.loads(sys.argv[1])["datasets"] == 1' "$OUT"
"$PYTHON3" - <<'END'
import os, pty, re, select, signal, subprocess, lib
# --watch prints a line for each change; Ctrl-C ends it.
def watching():
    return subprocess.Popen([lib.EPOCHFS, "status", "--watch", lib.MOUNTPOINT],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
watch = watching()
for i in range(3):
    want = f"train batch={i + 1} epoch 0 npz: batch " if i else "(reads|train samples) "
    lines = [watch.stdout.readline()]  # others may come before it: that the plan is not read yet, say
    while not re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ " + want, lines[-1]):
        if not lines[-1]:
            raise AssertionError(f"lines of --watch: {lines}, want {want}")
        lines.append(watch.stdout.readline())
    lib.content(lib.path(f"train/batches/batch={i + 2}/npz/000000.npz"))
watch.send_signal(signal.SIGINT)
watch.communicate(timeout=lib.DEADLINE)
lib.equal(watch.returncode, 0, "Ctrl-C")
# Without a change it prints nothing; its own reads are no change.
watch = watching()
watch.stdout.readline()
lib.equal(select.select([watch.stdout], [], [], 2.5)[0], [], "lines of an idle mount")
# On a terminal it redraws a page.
ours, theirs = pty.openpty()
drawn = subprocess.Popen([lib.EPOCHFS, "status", "--watch", lib.MOUNTPOINT], stdout=theirs,
                         stderr=theirs)
os.close(theirs)
said = b""
while said.count(b"source ") < 3:
    said += os.read(ours, 4096)
three = b"".join(said.split(b"source ")[:3])  # until the third; it may have drawn more
lib.equal(len(re.findall(rb"\033\[\d+A\033\[J", three)), 2, f"pages that were drawn over: {said}")
drawn.send_signal(signal.SIGINT)
lib.equal(drawn.wait(lib.DEADLINE), 0, "Ctrl-C on a terminal")
os.close(ours)
# A daemon that hangs is reported; status does not wait for it.
pid = lib.status()["pid"]
os.kill(pid, signal.SIGSTOP)
try:
    lib.contains(lib.run("status", lib.MOUNTPOINT, code=3), "has not answered for")
    _, said = watch.communicate(timeout=lib.DEADLINE)
    lib.contains(said, "has not answered for")
    lib.equal(watch.returncode, 3, "watching a daemon that hangs")
finally:
    os.kill(pid, signal.SIGCONT)
watch = subprocess.Popen([lib.EPOCHFS, "status", "--watch", lib.MOUNTPOINT],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
lib.contains(watch.stdout.readline(), "Z train batch=")
lib.run("umount", lib.MOUNTPOINT)
said, _ = watch.communicate(timeout=lib.DEADLINE)
lib.contains(said, f"Z {lib.MOUNTPOINT}: unmounted\n")
lib.equal(watch.returncode, 0, f"watching a mount that ends: {said}")
END
wait "$DAEMON" || die "the daemon returned $?"
start "$SOURCE"
kill -KILL "$DAEMON"
{ wait "$DAEMON" || true; } 2>/dev/null
expect 3 "$EPOCHFS" status "$MOUNTPOINT"
one_line
says "its daemon has died" "epochfs umount"
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
expect 0 "$EPOCHFS" umount .
says "still in use by " " $$ (case-cli.sh)"
cd ..
expect 3 "$EPOCHFS" umount ./mountpoint

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
says "nonsense" "not usable" "of no format"
expect 2 "$EPOCHFS" info --check "$SOURCE"
says "1 other file cannot be used"
expect 0 "$EPOCHFS" info -o classes=12 --json "$SOURCE"
says '"shape": [12]'
expect 1 "$EPOCHFS" info -o clases=12 "$SOURCE"
says "is it 'one_hot'?"
