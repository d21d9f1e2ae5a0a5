# What the cases in bash share. Sourced:  source "$CASES/lib.sh"
# shellcheck shell=bash
# shellcheck disable=SC2034 # the cases use them
set -Eeuo pipefail

MOUNTPOINT=$PRIVATE/mountpoint
SOURCE=$PRIVATE/source
LOG=$PRIVATE/log
FASHION=/usr/share/datasets/fashion-mnist
DAEMON=

skip() {
    echo "skipped: $*"
    exit 77
}

die() {
    echo "FAILED (line ${BASH_LINENO[0]}): $*" >&2
    exit 1
}

trap 'echo "FAILED: line $LINENO: $BASH_COMMAND" >&2' ERR

# start SOURCE [OPTIONS]: a daemon in the foreground; returns once its mount answers; its messages
# go to $LOG.
start() {
    local options=()
    [ $# -lt 2 ] || options=(-o "$2")
    "$EPOCHFS" mount -f "${options[@]}" "$1" "$MOUNTPOINT" >>"$LOG" 2>&1 &
    DAEMON=$!
    "$PYTHON3" "$CASES/lib.py" wait-mounted "$DAEMON" "$MOUNTPOINT"
}

# stop [SIGNAL]: end that daemon, which must unmount and return 0.
stop() {
    local code=0
    kill -"${1:-TERM}" "$DAEMON"
    wait "$DAEMON" || code=$?
    [ "$code" = 0 ] || die "the daemon returned $code"
    ! is_mounted "$MOUNTPOINT" || die "still mounted after the daemon's end"
}

is_mounted() {
    findmnt --mountpoint "$1" -t fuse.epochfs >/dev/null
}

# expect CODE COMMAND...: the command must exit with CODE; its output is in $OUT afterwards.
expect() {
    local want=$1 code=0
    shift
    OUT=$("$@" 2>&1 </dev/null) || code=$?
    [ "$code" = "$want" ] || die "$*: expected exit code $want, got $code: $OUT"
}

# says TEXT...: each must be in $OUT.
says() {
    local word
    for word in "$@"; do
        [[ $OUT == *"$word"* ]] || die "want '$word' in: $OUT"
    done
}

# one_line: $OUT must be one message.
one_line() {
    [ "$(grep -c . <<<"$OUT")" = 1 ] || die "expected one line, got: $OUT"
}

# small_source: a small pair of IDX files in $SOURCE.
small_source() {
    "$PYTHON3" -c 'import lib; lib.small()'
}

# helper_in_sbin: install the helper for mount(8) until the case ends. Without root, or if there is
# a helper already, the case ends here, with success.
helper_in_sbin() {
    if [ "$(id -u)" != 0 ]; then
        echo "without the part that needs root: mount(8)"
        exit 0
    fi
    exec 9>/run/lock/epochfs-tests.lock
    flock 9 # one at a time: the name in /sbin is the same for all
    if [ -e /sbin/mount.epochfs ] || [ -L /sbin/mount.epochfs ]; then
        echo "without mount(8): there is a /sbin/mount.epochfs already"
        exit 0
    fi
    trap 'rm -f /sbin/mount.epochfs' EXIT
    ln -s "$EPOCHFS" /sbin/mount.epochfs
}

# gone PID: wait until that process, not our child, has ended.
gone() {
    "$PYTHON3" - "$1" <<'END'
import os, select, sys
try:
    fd = os.pidfd_open(int(sys.argv[1]))
except ProcessLookupError:
    sys.exit(0)
sys.exit(0 if select.select([fd], [], [], 30)[0] else "the process is still there")
END
}
