#!/bin/bash
# mount.epochfs: the same binary under the name that mount(8) calls, with options as in fstab.
# shellcheck source=../lib.sh
source "$CASES/lib.sh"
small_source
ln -s "$EPOCHFS" "$PRIVATE/mount.epochfs"
helper=$PRIVATE/mount.epochfs

check_and_unmount() {
    is_mounted "$MOUNTPOINT" || die "not mounted: $OUT"
    findmnt -n -o OPTIONS --mountpoint "$MOUNTPOINT" | grep -qw ro || die "not read-only"
    [ -e "$MOUNTPOINT/train/samples/npz/000019.npz" ] || die "nothing there"
    expect 0 "$EPOCHFS" umount "$MOUNTPOINT"
}

for options in ro rw defaults noauto auto nofail x-systemd.automount,_netdev \
    x-systemd.requires=/data,nofail,ro,nosuid,nodev,noexec,noatime,relatime,user,users,comment=x \
    rw,plan=batch=8,noauto X-mount.mkdir,ro; do
    expect 0 "$helper" "$SOURCE" "$MOUNTPOINT" -o "$options"
    check_and_unmount
done
expect 0 "$helper" "$SOURCE" "$MOUNTPOINT" -o ro,plan=batch=8+seed=2,epochs=3
[ "$(ls "$MOUNTPOINT/train/batches/batch=8,seed=2")" = $'epoch=0\nepoch=1\nepoch=2' ] ||
    die "plan= and epochs= in fstab options"
check_and_unmount
# As mount(8) calls it: -s sloppy, -n no mtab, -v verbose, -t type; -f mounts nothing.
expect 0 "$helper" "$SOURCE" "$MOUNTPOINT" -sn -v -t epochfs -o rw
check_and_unmount
expect 0 "$helper" "$SOURCE" "$MOUNTPOINT" -f -o rw
! is_mounted "$MOUNTPOINT" || die "-f (fake) has mounted"
# The exit codes of mount(8).
expect 32 "$helper" "$PRIVATE/missing" "$MOUNTPOINT" -o ro
one_line
says "$PRIVATE/missing"
expect 32 "$helper" "$SOURCE" "$PRIVATE/missing" -o ro
expect 1 "$helper" "$SOURCE" "$MOUNTPOINT" -o ro,plam=batch=8
says "is it 'plan'?"
expect 1 "$helper"

# ---- mount(8) itself, with an fstab of our own ----
helper_in_sbin
fstab=$PRIVATE/fstab
for options in ro,plan=batch=128 rw defaults ro,noauto,nofail defaults,nofail,_netdev \
    noauto,x-systemd.automount,x-systemd.idle-timeout=60 "ro,plan=batch=4+seed=1,epochs=2,user"; do
    echo "$SOURCE $MOUNTPOINT epochfs $options 0 0" >"$fstab"
    expect 0 mount --fstab "$fstab" "$MOUNTPOINT"
    says ""
    check_and_unmount
done
echo "$SOURCE $MOUNTPOINT epochfs ro,plan=batch=5 0 0" >"$fstab"
expect 0 mount --fstab "$fstab" --all
[ "$(ls "$MOUNTPOINT/train/batches")" = batch=5 ] || die "mount -a"
expect 0 umount "$MOUNTPOINT"
! is_mounted "$MOUNTPOINT" || die "umount(8)"
expect 0 mount -t epochfs -o ro "$SOURCE" "$MOUNTPOINT"
check_and_unmount
code=0
OUT=$(mount -t epochfs "$PRIVATE/missing" "$MOUNTPOINT" 2>&1) || code=$?
[ "$code" = 32 ] || die "mount of a missing source: expected exit code 32, got $code"
says "epochfs: $PRIVATE/missing"
