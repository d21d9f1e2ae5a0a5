# What prolog, epilog, task-prolog and clean share. Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2034 # not each of them uses all
#
# What belongs to a job is in $jobs/<job id>, a folder of root's:
#
#     mnt      the mountpoint, the user's
#     cache    its cache folder, the user's, unless caches= is set
#     log      the messages of `epochfs mount`
#     uid boot the user, and the time of the boot; after another boot the job has ended
#     ended    the epilog has begun; a script that finds this finishes its work

# --- settings: change them in /etc/epochfs/slurm.sh, which is read after these

jobs=/var/lib/epochfs/jobs # on the node's own disk, because it contains caches
caches=                    # a folder in which each user has a permanent cache; empty: each job has its own
cache_days=14              # after so many days without use, files are removed from permanent caches
options=                   # options of every mount, before those of the user
mount_limit=30             # seconds that a prolog waits for a mount
end_limit=5                # seconds that each step of unmounting may take
commands=no                # yes: jobs may use allow_commands; the limits of the job do not apply to these commands
epochfs=epochfs

settings=${EPOCHFS_SLURM_SETTINGS:-/etc/epochfs/slurm.sh}
if [[ -r $settings ]]; then
    # shellcheck source=/dev/null
    . "$settings"
fi

# ---

jobs=$(realpath -m -- "$jobs") # as the kernel's table has it
caches=${caches:+$(realpath -m -- "$caches")}
boot=$(</proc/sys/kernel/random/boot_id)

say() { logger -t epochfs-slurm -- "$*" 2>/dev/null || printf 'epochfs-slurm: %s\n' "$*" >&2; }

# A program of Slurm's that fails takes the node out of service, and none of our troubles is worth
# that: they are logged.
never_fail() {
    set -E
    trap 'say "$0, line $LINENO: $BASH_COMMAND: exit code $?"' ERR
    trap 'exit 0' EXIT
}

# as_user UID COMMAND...: with that user's rights and nothing of our environment. No PAM session:
# that may wait for others, and the daemon is to outlive it.
as_user() {
    local uid=$1 gid
    shift
    gid=$(id -g "$uid")
    setpriv --reuid="$uid" --regid="$gid" --init-groups --reset-env -- "$@"
}

is_mounted() { grep -qF " ${1// /\\040} " /proc/self/mountinfo; }

# The table says what is mounted without a question to the daemon, which may not answer.
detach() { timeout -k 1 "$end_limit" umount --no-canonicalize --internal-only "$@"; }

# daemons JOB: what `epochfs mount` has started for it: daemon, warden, commands of the source.
# They are known by their environment; so they are found whatever they do with their sessions, but
# for commands that change it, see commands= above.
daemons() {
    timeout -k 1 "$end_limit" grep -lzxF "EPOCHFS_SLURM_JOB=$1" /proc/[0-9]*/environ 2>/dev/null |
        grep -o '[0-9]*' || true
}

# daemons_end JOB SECONDS: are all gone by then?
daemons_end() {
    local until=$((SECONDS + $2))
    while [[ $(daemons "$1") ]]; do
        ((SECONDS < until)) || return 1
        sleep 0.05
    done
}

# unmount JOB: whoever is still in there, and whether its daemon answers or not. A daemon ends when
# its mount does; one that was stopped is continued for that.
unmount() {
    local mountpoint=$jobs/$1/mnt pids word
    if is_mounted "$mountpoint"; then
        detach "$mountpoint" 2>/dev/null || detach --lazy "$mountpoint" || true
    fi
    for word in CONT KILL; do
        mapfile -t pids < <(daemons "$1")
        ((${#pids[@]})) || return 0
        kill -s "$word" "${pids[@]}" 2>/dev/null || true
        ! daemons_end "$1" "$end_limit" || return 0
    done
    say "job $1: these processes do not end: ${pids[*]}"
}

# detach_others JOB: what its user has mounted in his folders there, the deepest first; with his
# rights, for the names are his.
detach_others() {
    local uid where
    uid=$(cat "$jobs/$1/uid" 2>/dev/null) || return 0
    while read -r where; do
        as_user "$uid" timeout -k 1 "$end_limit" fusermount3 -u -z -- "$(printf %b "${where//\\/\\0}")" || true
    done < <(awk -v below="$jobs/$1/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
}

# end_job JOB: afterwards nothing of it is left. By one at a time, see with_job().
end_job() {
    local folder=$jobs/$1
    : >"$folder/ended"
    unmount "$1"
    detach_others "$1"
    if is_mounted "$folder/mnt"; then
        say "job $1: $folder/mnt cannot be unmounted"
        return
    fi
    rm -rf --one-file-system -- "$folder" || say "job $1: $folder cannot be removed"
}

# with_job SECONDS JOB COMMAND...: while nobody else works at that job; not at all if somebody
# does so for that long.
with_job() {
    local lock
    [[ -d $jobs/$2 ]] || return 0
    { exec {lock}<"$jobs/$2"; } 2>/dev/null || return 0 # it has just gone
    if ! flock -w "$1" "$lock"; then
        (($1 == 0)) || say "job $2: another process still works in $jobs/$2, after $1 s"
    elif [[ -d $jobs/$2 ]]; then
        "${@:3}"
    fi
    exec {lock}<&-
}

# sweep SECONDS: what was left by jobs of before the last boot, and by epilogs that were ended.
sweep() {
    local folder
    for folder in "$jobs"/*/; do
        ((SECONDS < $1)) || return 0 # the rest is for the next one, or clean
        folder=${folder%/}
        [[ -e $folder/boot ]] || continue
        if [[ -e $folder/ended || $(<"$folder/boot") != "$boot" ]]; then
            with_job 0 "${folder##*/}" end_job "${folder##*/}"
        fi
    done
}
