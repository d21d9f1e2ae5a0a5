# shellcheck shell=bash
# Fresh Debian systems to try things in: what tests/package and tests/empty-system share.
#
# The script that sources this calls alone before it does anything. Then it runs as root with mounts and
# processes of its own, which end with it, however it ends; $folder is its scratch folder. Systems are made
# by debootstrap and kept in $cache, an archive for each release beside the packages it has downloaded.

top=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
program=tests/$(basename "$0")
cache=${XDG_CACHE_HOME:-/var/cache}/epochfs-package
folder=${EPOCHFS_ALONE:-}
release= # bookworm or trixie: that the script works on
environment=() # NAME=VALUE...: more of it for in_tree

die() {
    echo "$program: $*" >&2
    exit 1
}

# say TEXT: what comes next, with the seconds since the start.
say() { printf '%4d s  %s: %s\n' "$SECONDS" "$release" "$*"; }

end_alone() {
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null || true # timeout kills the namespace a second later
        wait "$child" || true
    fi
    rm -rf --one-file-system "$folder"
}

# alone SECONDS ARGUMENTS-OF-THE-SCRIPT: the script again, where mounts and processes end with it, in that time.
alone() {
    local limit=$1 code=0
    shift
    if [ -n "$folder" ]; then
        exec </dev/null
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || die "want root or sudo, for debootstrap and chroot"
        exec sudo -n env XDG_CACHE_HOME="${XDG_CACHE_HOME:-}" TMPDIR="${TMPDIR:-/tmp}" "$0" "$@"
    fi
    command -v debootstrap >/dev/null || {
        apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install debootstrap
    } || die "debootstrap is missing, and apt-get could not install it"
    folder=$(mktemp -d --tmpdir epochfs-fresh-XXXXXX)
    child=
    trap end_alone EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    EPOCHFS_ALONE=$folder setpriv --pdeathsig TERM timeout --kill-after=1 "$limit" \
        unshare --mount --pid --fork --kill-child --mount-proc --propagation private "$0" "$@" &
    child=$!
    wait "$child" || code=$?
    child=
    ! grep -F "$folder" /proc/self/mountinfo || die "these mounts were left behind"
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        die "not finished after $limit s: stopped"
    fi
    exit "$code"
}

# The mirror that this machine uses.
mirror() {
    local found
    # shellcheck disable=SC2016 # apt replaces it
    found=$(apt-get indextargets --format '$(SITE)' 'Label: Debian' 2>/dev/null | sort -u | head -n 1)
    echo "${found:-http://deb.debian.org/debian}"
}

# in_tree TREE COMMAND...: as root would type it there.
in_tree() {
    local tree=$1
    shift
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        "${environment[@]}" chroot "$tree" "$@"
}

# inside TREE COMMAND...: quietly; all that it says if it fails.
inside() {
    in_tree "$@" >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        shift
        die "$release: failed: $*"
    }
}

# run_block TREE FOLDER PAGE WORDS: the page's block that has these words, as root types it in that folder of the tree, with a
# yes to each question; the words are in single quotes at the end of the line, where tests/check/blocks looks for them.
# $folder/log has what it prints.
run_block() {
    local text code=0
    text=$("$top/tests/page_blocks.py" "$3" "$4") || die "$release: $3: which block?"
    say "$3: $(sed '1!d; s/  .*//' <<<"$text")" # its first command
    in_tree "$1" bash -o pipefail -ec "cd $2
$text" < <(yes) >"$folder/log" 2>&1 || code=$?
    ((code == 0)) || {
        tail -n 50 "$folder/log" >&2
        die "$release: $3: this block failed, see above (exit code $code):"$'\n'"$text"
    }
}

install_in() {
    local tree=$1
    shift
    inside "$tree" apt-get -q -y --no-install-recommends install "$@"
}

# with_ccache TREE: compiles there find what this machine has compiled of the same bytes with the same compiler.
with_ccache() {
    local from to=$1/root/.cache/ccache
    command -v ccache >/dev/null && grep -qx "VERSION_CODENAME=$release" /etc/os-release || return 0
    from=$(ccache --get-config cache_dir)
    install_in "$1" ccache
    mkdir -p "$from" "$to"
    mount --bind "$from" "$to"
}

# What a tree needs of this machine, besides its files.
furnish() {
    local tree=$1
    mount --bind "$tree" "$tree" # so that tests may unshare mounts in it
    mount -t proc proc "$tree/proc"
    mount --rbind /sys "$tree/sys"
    mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$tree/dev/pts"
    [ -e "$tree/dev/fuse" ] || mknod -m 666 "$tree/dev/fuse" c 10 229
    mkdir -p "$cache/$release-debs"
    mount --bind "$cache/$release-debs" "$tree/var/cache/apt/archives"
    cp /etc/resolv.conf "$tree/etc/resolv.conf"
    ln -sfn ../proc/self/mounts "$tree/etc/mtab" # as the installer does
    echo force-unsafe-io >"$tree/etc/dpkg/dpkg.cfg.d/unsafe-io" # it need not outlive a power cut
    # A mirror that does not answer is an error, and soon.
    printf '%s\n' 'APT::Update::Error-Mode "any";' 'Acquire::http::Timeout "30";' >"$tree/etc/apt/apt.conf.d/90fresh"
    # Services of packages do not start here.
    printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
    chmod 755 "$tree/usr/sbin/policy-rc.d"
}

# copy_checkout TREE [FOLDER]: to that folder of it, or to /src/epochfs.
copy_checkout() { "$top/debian/copy-checkout" "$1${2:-/src/epochfs}"; }

# The archive of $release. A mirror that cannot be reached is a failure that says so.
make_archive() {
    local archive=$cache/$release.tar
    say "debootstrap"
    debootstrap --variant=minbase "$release" "$folder/base" "$(mirror)" >"$folder/log" 2>&1 || {
        tail -n 30 "$folder/log" >&2
        die "$release: debootstrap failed, see above; can this machine reach the mirror $(mirror)?"
    }
    tar -C "$folder/base" --one-file-system -cf "$archive.part" .
    mv "$archive.part" "$archive"
    rm -rf --one-file-system "$folder/base"
}

# fresh_tree TREE: a new system of $release. Nobody else uses what is kept of it until the script ends.
fresh_tree() {
    local tree=$1
    mkdir -p "$cache"
    if [ "${locked:-}" != "$release" ]; then
        locked=$release
        exec 9>"$cache/$release.lock"
        flock --wait 600 9 || die "$release: somebody else has used $cache for 10 minutes"
    fi
    [ -e "$cache/$release.tar" ] || make_archive
    mkdir "$tree"
    tar -C "$tree" -xf "$cache/$release.tar"
    furnish "$tree"
}
