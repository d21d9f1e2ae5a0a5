# What prolog, epilog, task-prolog and clean share. Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2034 # not every script uses all
#
# The files of a job are in $jobs/<job id>, a folder of root's:
#
#     mnt      the mountpoint, the user's
#     cache    its cache folder, the user's, unless caches= is set
#     log      the messages of `epochfs mount`
#     uid boot the user, and the time of the boot; after another boot the job has ended
#     peers    the node's part of the ring of peers, and secret, the user's; if the job wants peers
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
peers=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../peers
peers_size=100g                 # of the job's data that a node keeps for the others, at most
peers_key=/etc/munge/munge.key  # a secret of the cluster, the same on all nodes, that only root can read
peers_wait=5                    # seconds that a prolog waits for the peers of the other nodes

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

# If a program of Slurm's fails, Slurm takes the node out of service. None of our errors is worth
# that: they are logged.
never_fail() {
    set -E
    trap 'say "$0, line $LINENO: $BASH_COMMAND: exit code $?"' ERR
    trap 'exit 0' EXIT
}

# as_user UID COMMAND...: with that user's rights and nothing of our environment. No PAM session:
# that may wait for other services, and the daemon must outlive it.
as_user() {
    local uid=$1 gid
    shift
    gid=$(id -g "$uid")
    setpriv --reuid="$uid" --regid="$gid" --init-groups --reset-env -- "$@"
}

is_mounted() { grep -qF " ${1// /\\040} " /proc/self/mountinfo; }

# The kernel's table shows the mount without a request to the daemon, which may not answer.
detach() { timeout -k 1 "$end_limit" umount --no-canonicalize --internal-only "$@"; }

# daemons JOB: the processes that `epochfs mount` has started for it: daemon, supervisor, commands
# of the source. Their environment identifies them, whatever they do with their sessions; only
# commands can change it, see commands= above.
daemons() {
    timeout -k 1 "$end_limit" grep -lzxF "EPOCHFS_SLURM_JOB=$1" /proc/[0-9]*/environ 2>/dev/null |
        grep -o '[0-9]*' || true
}

# daemons_end JOB SECONDS: have all ended by then?
daemons_end() {
    local until=$((SECONDS + $2))
    while [[ $(daemons "$1") ]]; do
        ((SECONDS < until)) || return 1
        sleep 0.05
    done
}

# peers_down JOB: before the job's other daemons end, because its processes are found by their folder.
peers_down() {
    local uid
    [[ -d $jobs/$1/peers ]] || return 0
    uid=$(cat "$jobs/$1/uid" 2>/dev/null) || return 0
    as_user "$uid" timeout -k 1 "$((end_limit + 4))" "$peers" down --folder "$jobs/$1/peers" || true
}

# unmount JOB: even if processes still use the mount or its daemon does not answer. A daemon ends
# with its mount; a stopped one is continued for that.
unmount() {
    local mountpoint=$jobs/$1/mnt pids word
    peers_down "$1"
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

# detach_others JOB: unmounts what its user has mounted in the job's folders, the deepest first;
# with the user's rights, because the user controls the names.
detach_others() {
    local uid where
    uid=$(cat "$jobs/$1/uid" 2>/dev/null) || return 0
    while read -r where; do
        as_user "$uid" timeout -k 1 "$end_limit" fusermount3 -u -z -- "$(printf %b "${where//\\/\\0}")" || true
    done < <(awk -v below="$jobs/$1/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
}

# end_job JOB: afterwards nothing of it is left. Only one process at a time may call it, see
# with_job().
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

# with_job SECONDS JOB COMMAND...: runs it while no other process works on that job; gives up after
# SECONDS.
with_job() {
    local lock
    [[ -d $jobs/$2 ]] || return 0
    { exec {lock}<"$jobs/$2"; } 2>/dev/null || return 0 # it was just removed
    if ! flock -w "$1" "$lock"; then
        (($1 == 0)) || say "job $2: another process still works in $jobs/$2, after $1 s"
    elif [[ -d $jobs/$2 ]]; then
        "${@:3}"
    fi
    exec {lock}<&-
}

# sweep SECONDS: removes what is left of jobs from before the last boot, and of interrupted epilogs.
sweep() {
    local folder
    for folder in "$jobs"/*/; do
        ((SECONDS < $1)) || return 0 # the rest is left to the next sweep, or to clean
        folder=${folder%/}
        [[ -e $folder/boot ]] || continue
        if [[ -e $folder/ended || $(<"$folder/boot") != "$boot" ]]; then
            with_job 0 "${folder##*/}" end_job "${folder##*/}"
        fi
    done
}
