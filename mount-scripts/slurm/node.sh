# What prolog, epilog, task-prolog and clean share. Sourced.
# shellcheck shell=bash
# shellcheck disable=SC2034 # not every script uses all
#
# The user owns what is in mnt, cache, log, peers and secret, and may mount something on each of them that
# never answers. So root does not touch these itself, but in bounded() (mount-scripts/mounts.sh).
#
# The files of a job are in $jobs/<job id>, a folder of root's:
#
#     mnt      the mountpoint, the user's
#     cache    its cache folder, the user's, unless caches= is set
#     log      the messages of `epochfs mount`, the user's
#     uid boot the user, and the time of the boot; after another boot the job has ended
#     peers    the node's part of the ring of peers, and secret, the user's; if the job wants peers
#     ended    the epilog has begun; a script that finds this finishes its work

# --- settings: change them in /etc/epochfs/slurm.sh, which is read after these

jobs=/var/lib/epochfs/jobs # on the node's own disk, because it contains caches
caches=                    # a folder in which each user has a permanent cache; empty: each job has its own
cache_days=14              # after so many days without use, files are removed from permanent caches
options=                   # options for every mount; those of the user follow
mount_limit=30             # seconds that a prolog waits for a mount
end_limit=5                # seconds that each step of unmounting may take
all_limit=40               # seconds that all work of an epilog may take, or what a prolog does before the mount
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

# shellcheck source=mount-scripts/mounts.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../mounts.sh"
jobs=$(realpath -m -- "$jobs") # as the kernel's table has it
caches=${caches:+$(realpath -m -- "$caches")}
boot=$(</proc/sys/kernel/random/boot_id)
work_until=$((SECONDS + all_limit))

say() { logger -t epochfs-slurm -- "$*" 2>/dev/null || printf 'epochfs-slurm: %s\n' "$*" >&2; }

# If a program of Slurm's fails, Slurm takes the node out of service. None of our errors is worth
# that: they are logged.
never_fail() {
    set -E
    trap 'say "$0, line $LINENO: $BASH_COMMAND: exit code $?"' ERR
    trap 'exit 0' EXIT
}

# time_left: sets seconds to what is left for all work; fails if nothing is.
time_left() {
    seconds=$((work_until - SECONDS))
    ((seconds > 0))
}

# step_limit: sets seconds to what the next step may take; fails if no time is left.
step_limit() {
    time_left || return 1
    ((seconds <= end_limit)) || seconds=$end_limit
}

# user_rights UID: sets rights, the beginning of a command with that user's rights and nothing of our
# environment. No PAM session: that may wait for other services, and the daemon must outlive it.
user_rights() {
    local gid
    gid=$(timeout -k 1 "$end_limit" id -g "$1")
    rights=(setpriv "--reuid=$1" "--regid=$gid" --init-groups --inh-caps=-all --reset-env --)
}

# as_user SECONDS UID COMMAND...: sets answer; see bounded().
as_user() {
    local rights seconds=$1 uid=$2
    user_rights "$uid"
    bounded "$seconds" 8192 "${rights[@]}" "${@:3}"
}

# without_query SOURCE: prints it without passwords, and up to its first query. A sentence gets it only so,
# because a query may have spaces.
without_query() {
    local source=${1//$'\n'/ }
    [[ $source != *\?* ]] || source=${source%%\?*}'?...'
    sed -E 's,(://)[^/@]*@,\1...@,g' <<<"$source"
}

# without_queries: copies a text; the queries and passwords of URLs may be secrets.
without_queries() { sed -E 's/\?[^[:space:]]*/?.../g; s,(://)[^/@[:space:]]*@,\1...@,g'; }

uid_of() { cat "$jobs/$1/uid" 2>/dev/null; }

# daemons JOB: the processes that `epochfs mount` has started for it: daemon, supervisor, commands
# of the source. Their environment identifies them, whatever they do with their sessions; only
# commands can change it, see commands= above. Other users' processes do not count.
daemons() {
    local uid pid
    uid=$(uid_of "$1") || return 0
    for pid in $(timeout -k 1 "$end_limit" grep -lzxF "EPOCHFS_SLURM_JOB=$1" /proc/[0-9]*/environ 2>/dev/null |
        grep -o '[0-9]*' || true); do
        [[ $(awk '$1 == "Uid:" { print $2 }' "/proc/$pid/status" 2>/dev/null) != "$uid" ]] || echo "$pid"
    done
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
    local uid seconds answer
    [[ -e $jobs/$1/peers.log ]] && uid=$(uid_of "$1") && time_left || return 0
    ((seconds <= end_limit + 4)) || seconds=$((end_limit + 4))
    as_user "$seconds" "$uid" "$peers" down --folder "$jobs/$1/peers" || true
}

# unmount_below UID FOLDER: lazily unmounts what that user has mounted in it, with the rights of the user,
# who controls the names. The outer mounts go first and take the inner ones along: then no path leads
# through a mount that may not answer.
unmount_below() {
    local found rights seconds path i
    while step_limit; do
        read_mounts 'fuse*'
        found=()
        while IFS= read -r -d '' path; do
            found+=("${path#* }")
        done < <(for i in "${!mount_paths[@]}"; do
            [[ ${mount_uids[i]} != "$1" || ${mount_paths[i]}/ != "$2"/* ]] ||
                printf '%d %s\0' "${#mount_paths[i]}" "${mount_paths[i]}"
        done | sort -z -n)
        ((${#found[@]})) || return 0
        user_rights "$1"
        # shellcheck disable=SC2016 # expanded there
        bounded "$seconds" 8192 "${rights[@]}" bash -c 'n=0
            for path; do fusermount3 -u -z -- "$path" && n=$((n + 1)); done
            ((n))' bash "${found[@]:0:100}" || return 0
    done
}

# unmount JOB: even if processes still use the mount or its daemon does not answer. A daemon ends
# with its mount; a stopped one is continued for that.
unmount() {
    local uid pids seconds word answer
    uid=$(uid_of "$1") || return 0
    peers_down "$1"
    unmount_below "$uid" "$jobs/$1"
    for word in CONT KILL; do
        mapfile -t pids < <(daemons "$1")
        ((${#pids[@]})) || return 0
        step_limit || break
        # shellcheck disable=SC2016 # expanded there
        as_user "$seconds" "$uid" bash -c 'kill -s "$@"' bash "$word" "${pids[@]}" || true
        ! daemons_end "$1" "$seconds" || return 0
    done
    say "job $1: these processes do not end: ${pids[*]}"
}

# end_job JOB: afterwards nothing of it is left. If time is over, the next prolog, or clean, goes on. Only one
# process at a time may call it, see with_job().
end_job() {
    local folder=$jobs/$1 seconds answer
    : >"$folder/ended"
    unmount "$1"
    if is_mounted "$folder/mnt"; then
        say "job $1: $folder/mnt cannot be unmounted"
        return
    fi
    # First the files of the user, who may have millions; our marks stay until these are gone.
    if time_left && bounded "$seconds" 500 find "$folder" -mindepth 1 -maxdepth 1 \
        ! -name boot ! -name uid ! -name ended -exec rm -rf --one-file-system -- {} +; then
        rm -rf --one-file-system -- "$folder" && return
    fi
    say "job $1: $folder is not removed yet: ${answer:-no time is left}"
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
    local folder seconds work_until=$((SECONDS + $1))
    for folder in "$jobs"/*/; do
        time_left || return 0 # the rest is left to the next sweep, or to clean
        folder=${folder%/}
        [[ -e $folder/boot ]] || continue
        if [[ -e $folder/ended || $(<"$folder/boot") != "$boot" ]]; then
            with_job 0 "${folder##*/}" end_job "${folder##*/}"
        fi
    done
}
