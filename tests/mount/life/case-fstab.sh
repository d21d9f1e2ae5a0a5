#!/bin/bash
# mount-scripts/fstab-line: makes lines that mount(8) accepts, whatever is in the names, and none
# for a source that cannot be mounted.
# shellcheck source=../lib.sh
source "$CASES/lib.sh"
fstab_line=$CASES/../../mount-scripts/fstab-line
export FSTAB=$PRIVATE/fstab EPOCHFS_HELPER=$PRIVATE/mount.epochfs
ln -s "$EPOCHFS" "$EPOCHFS_HELPER"
small_source

# ---- what it prints ----
expect 0 "$fstab_line" "$SOURCE" "$MOUNTPOINT"
[ "$OUT" = "$SOURCE  $MOUNTPOINT  epochfs  ro,nofail  0  0" ] || die "a plain line: $OUT"
expect 0 "$fstab_line" "$SOURCE/." "$MOUNTPOINT/../mountpoint" plan=batch=4+seed=1,allow_other
[ "$OUT" = "$SOURCE  $MOUNTPOINT  epochfs  ro,nofail,plan=batch=4+seed=1,allow_other  0  0" ] ||
    die "real paths: $OUT"
odd=$PRIVATE/$'# a\tb \\ c\nd'
mkdir "$odd" "$odd/at"
cp "$SOURCE"/* "$odd"
expect 0 "$fstab_line" "$odd" "$odd/at"
says "$PRIVATE"'/#\040a\011b\040\134\040c\012d  ' 'd/at  epochfs  '
[ ! -e "$FSTAB" ] || die "$FSTAB is there without --append"

# ---- what it refuses ----
expect 1 "$fstab_line" "$PRIVATE/missing" "$MOUNTPOINT"
says missing
expect 1 "$fstab_line" "$SOURCE" "$PRIVATE/missing"
says "expected a folder that exists"
expect 1 "$fstab_line" "$SOURCE" "$MOUNTPOINT" plam=batch=4
says "is it 'plan'?" "SOURCE cannot be mounted"
expect 1 "$fstab_line" --apend "$SOURCE" "$MOUNTPOINT"
expect 1 "$fstab_line" "$SOURCE"
expect 1 "$fstab_line" --append "$PRIVATE/missing" "$MOUNTPOINT"
EPOCHFS_HELPER=$PRIVATE/none expect 1 "$fstab_line" "$SOURCE" "$MOUNTPOINT"
says "is missing"
expect 0 "$fstab_line" --help
says "--append"
[ ! -e "$FSTAB" ] || die "$FSTAB is there though nothing was right"

# ---- --append ----
printf '# a comment, %s\nproc /proc proc defaults 0 0' "$MOUNTPOINT" >"$FSTAB" # no line end
expect 0 "$fstab_line" --append "$SOURCE" "$MOUNTPOINT" x-systemd.automount,_netdev,user,plan=batch=5
expect 0 "$fstab_line" --append "$odd" "$odd/at"
[ "$(wc -l <"$FSTAB")" = 4 ] || die "want four lines: $(cat "$FSTAB")"
cp "$FSTAB" "$FSTAB.before"
expect 1 "$fstab_line" --append "$SOURCE" "$MOUNTPOINT"
says "has a line for $MOUNTPOINT already"
sed -i "s|  $MOUNTPOINT  |  $MOUNTPOINT/  |" "$FSTAB"
expect 1 "$fstab_line" --append "$SOURCE" "$MOUNTPOINT"
cp "$FSTAB.before" "$FSTAB"
expect 1 "$fstab_line" --append "$SOURCE" "$odd/at"
cmp "$FSTAB" "$FSTAB.before"
findmnt --fstab --tab-file "$FSTAB" --mountpoint "$odd/at" >/dev/null || die "findmnt reads it"

# ---- mount(8) with these lines ----
helper_in_sbin
sed -i /proc/d "$FSTAB"
expect 0 mount --all --fstab "$FSTAB"
says ""
is_mounted "$MOUNTPOINT" || die "mount -a: $MOUNTPOINT"
is_mounted "$odd/at" || die "mount -a: the odd one"
[ "$(ls "$MOUNTPOINT/train/batches")" = batch=5 ] || die "options in the line"
[ -e "$odd/at/train/samples/npz/000019.npz" ] || die "nothing there"
expect 0 mount --all --fstab "$FSTAB" # all is mounted: nothing to do
expect 0 umount "$MOUNTPOINT"
expect 0 "$EPOCHFS" umount "$odd/at"
# mount -a skips it (noauto); mount by its name works.
echo "$SOURCE $MOUNTPOINT epochfs ro,noauto,nofail,_netdev,users,x-systemd.automount,x-systemd.idle-timeout=60 0 0" >"$FSTAB"
expect 0 mount --all --fstab "$FSTAB"
! is_mounted "$MOUNTPOINT" || die "noauto"
expect 0 mount --fstab "$FSTAB" "$MOUNTPOINT"
is_mounted "$MOUNTPOINT" || die "noauto, by name"
expect 0 umount "$MOUNTPOINT"
# A missing source: with nofail mount(8) is silent about a missing device; epochfs reports it, and
# mount(8) goes on.
echo "$PRIVATE/missing $MOUNTPOINT epochfs ro,nofail 0 0" >"$FSTAB"
code=0
OUT=$(mount --all --fstab "$FSTAB" 2>&1) || code=$?
! is_mounted "$MOUNTPOINT" || die "a missing source"
says "$PRIVATE/missing"
