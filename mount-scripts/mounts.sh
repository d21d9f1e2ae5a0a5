# Mounts of epochfs, for scripts that root may run: which there are, and work on them with the rights of
# the users that mounted them. Sourced.
# shellcheck shell=bash
#
# A user controls nearly everything about a mount: source, path, every folder on the path at any time, all
# files, and whether and when the daemon answers. Therefore:
#
#   * Owners come from the last field of the mount's line in /proc/self/mountinfo, which the kernel writes.
#     A line without them is no mount for us.
#   * A mount is found, and unmounted, by its own path, field 5; never by a source, which can be any text.
#   * Its files are read with the rights of its owner, in a folder whose mount was compared.
#   * What a process writes is limited. A process that does not end is left behind: if it waits for a
#     daemon, even SIGKILL may not end it.

# read_mounts [TYPE]: fills mount_ids, mount_paths, mount_uids, mount_gids with the mounts of that type (a
# pattern); a later mount on a path covers the earlier ones.
read_mounts() {
    local lines line id root path type=${1:-fuse.epochfs}
    mount_ids=() mount_paths=() mount_uids=() mount_gids=()
    # cat reads the table front to back. bash seeks in it, and could join the halves of two lines.
    mapfile -t lines < <(cat /proc/self/mountinfo)
    for line in "${lines[@]}"; do
        # shellcheck disable=SC2053 # a pattern
        [[ ${line#* - } == $type' '* && ,${line##* } =~ ^.*,user_id=([0-9]+),group_id=([0-9]+)(,|$) ]] || continue
        IFS=' ' read -r id _ _ root path _ <<<"$line"
        [[ $root == / ]] || continue             # a part of it, mounted a second time
        printf -v path %b "${path//\\/\\0}" # \040 is a space
        mount_ids+=("$id") mount_paths+=("$path")
        mount_uids+=("${BASH_REMATCH[1]}") mount_gids+=("${BASH_REMATCH[2]}")
    done
}

# find_mount PATH: sets mount to the index of the topmost mount there; fails if there is none.
find_mount() {
    for ((mount = ${#mount_paths[@]} - 1; mount >= 0; mount--)); do
        [[ ${mount_paths[mount]} != "$1" ]] || return 0
    done
    return 1
}

# is_mounted PATH: is any file system of a user mounted there?
is_mounted() {
    local mount
    read_mounts 'fuse*'
    find_mount "$1"
}

# owner_rights INDEX: sets rights, the beginning of a command with the rights of that mount's owner and
# nothing of our environment.
owner_rights() {
    local uid=${mount_uids[$1]} gid=${mount_gids[$1]} groups=--clear-groups
    rights=(env -i "PATH=$PATH" LC_ALL=C)
    ((EUID == 0)) || return 0
    ! timeout -k 1 2 getent passwd "$uid" >/dev/null || groups=--init-groups
    rights+=(setpriv "--reuid=$uid" "--regid=$gid" "$groups" --inh-caps=-all --)
}

# bounded SECONDS BYTES COMMAND...: sets answer to what it writes, at most BYTES long, without NULs and the
# newline at its end.
# Returns its exit code, or 124 if it has not ended. It reads the line $input, and inherits no file of ours.
bounded() {
    local seconds=$1 bytes=$2 pipe code
    shift 2
    exec {pipe}< <(
        exec 2>&1 <<<"${input:-}"
        [[ -z ${lock:-} ]] || exec {lock}<&-
        set +eE
        trap - ERR
        timeout -k 1 "$seconds" "$@" | head -c "$bytes"
        printf '\n%d' "${PIPESTATUS[0]}"
    )
    answer=$(trap - ERR; timeout -k 1 "$((seconds + 2))" head -c "$((bytes + 4))" <&"$pipe" | tr -d '\0') || true
    exec {pipe}<&-
    code=${answer##*$'\n'} answer=${answer%$'\n'*}
    answer=${answer%$'\n'}
    [[ $code =~ ^[0-9]{1,3}$ ]] || code=124
    return "$code"
}

# read_live INDEX NAME SECONDS BYTES: sets answer to the text .epochfs/NAME of a mount; returns 0, or a
# code as bounded() with the reason in answer. No link is followed out of the mount.
read_live() {
    local rights
    owner_rights "$1"
    ((EUID != 0)) || rights+=(setpriv --no-new-privs --)
    # shellcheck disable=SC2016 # expanded there
    bounded "$3" "$4" "${rights[@]}" bash -c '
        cd -P -- "$2/.epochfs" && exec 9<. || exit 1
        [[ $(</proc/self/fdinfo/9) =~ mnt_id:[[:space:]]*$1($|[^0-9]) ]] || { echo "another mount is there"; exit 1; }
        exec dd if="$3" bs="$4" count=1 iflag=nofollow,fullblock status=none 9<&-' \
        bash "${mount_ids[$1]}" "${mount_paths[$1]}" "$2" "$4"
}

# is_dead INDEX: only a mount without a daemon says this. Sets answer.
is_dead() {
    local rights
    owner_rights "$1"
    ! bounded 2 8192 "${rights[@]}" stat -- "${mount_paths[$1]}" &&
        [[ $answer == *": Transport endpoint is not connected" ]]
}

# only_roots PATH: can only root change what this path means? In a child, because a folder on it may not
# answer.
only_roots() {
    local answer
    # shellcheck disable=SC2016 # expanded there
    bounded 2 100 bash -euc '
        parent=${1%/*} folder=""
        while [[ $folder != "$parent" ]]; do
            [[ $(find "${folder:-/}" -maxdepth 0 -uid 0 \( ! -perm /022 -o -perm -1000 \)) ]]
            rest=${parent#"$folder"/} folder+=/${rest%%/*}
        done
        [[ $(find "${parent:-/}" -maxdepth 0 -uid 0 ! -perm /022) ]]' bash "$1"
}

# unmount_mount INDEX SECONDS: lazily, with the owner rights: then it does not matter which links a user
# has put on the path. root has no such limits, so for a mount of root only root may control the path.
unmount_mount() {
    local rights
    ((mount_uids[$1] != 0)) || only_roots "${mount_paths[$1]}" || return 1
    owner_rights "$1"
    bounded "$2" 500 "${rights[@]}" fusermount3 -u -z -- "${mount_paths[$1]}"
}
