#!/usr/bin/python3
"""An ordinary user mounts, reads and unmounts by fusermount3; others see nothing unless allowed."""

import errno
import gzip
import json
import os
import shutil
import subprocess

import numpy as np

from lib import (EPOCHFS, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error,
                 idx_bytes, log_text, mount_type, mounted, path, run, skip, small, start, stop, text,
                 write)
from life import check_ended

if not shutil.which("fusermount3"):
    skip("fusermount3 is missing (package fuse3)")
ROOT = os.geteuid() == 0
USER = 65534 if ROOT else os.geteuid()
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if ROOT else []
if ROOT and subprocess.run([*AS_USER, "test", "-w", "/dev/fuse"]).returncode != 0:
    # Only root may open the device here: give the user another node, in a namespace of mounts.
    node = f"{PRIVATE}/fuse"
    if os.path.exists(node):
        skip("an ordinary user cannot be given /dev/fuse here")
    os.mknod(node, 0o020666, os.makedev(10, 229))
    os.chmod(node, 0o666)
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "bash", "-euc",
                          'mount --bind "$1" /dev/fuse; exec "$2"', "bash", node, __file__])
if subprocess.run([*AS_USER, "test", "-x", PRIVATE]).returncode != 0:
    skip(f"an ordinary user cannot get at {PRIVATE}")
binary = f"{PRIVATE}/epochfs"  # where the user can run it
shutil.copy(EPOCHFS, binary)
os.environ["EPOCHFS_CACHE"] = f"{PRIVATE}/cache"
for name in ("log", "log.sanitizer"):
    open(f"{PRIVATE}/{name}", "a").close()

images, labels = small()
write("packed-data.gz", gzip.compress(idx_bytes(np.arange(50, dtype=np.int16))))
write("secret", idx_bytes(np.arange(20, dtype=np.uint8)))
os.chmod(f"{SOURCE}/secret", 0o000)
if ROOT:
    os.chown(PRIVATE, USER, USER)
    for name in ("mountpoint", "cache", "log"):
        os.chown(f"{PRIVATE}/{name}", USER, USER)


def as_user(*arguments, code=0):
    done = subprocess.run([*AS_USER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          cwd=PRIVATE)
    equal(done.returncode, code, f"{arguments}: {done.stdout}")
    return done.stdout.decode(errors="replace")


def user_reads():
    got = as_user("cat", path("train/samples/raw/000003.image.raw"))
    equal(len(got) > 0, True, "the user reads")
    contains(as_user("cat", path("secret/ERROR.txt")), "secret", "Permission denied")
    contains(as_user("ls", path("packed-data/samples")), "npz")


def user_daemon():
    return json.loads(as_user("cat", path(".epochfs/status.json")))["pid"]


# ---- in the background ----
said = as_user(binary, "mount", "-o", "plan=batch=4,open=pass", SOURCE, MOUNTPOINT)
contains(said, "passthrough=on: all files are read through epochfs: epochfs runs without CAP_SYS_ADMIN")
equal(sorted(line.split(":")[1] for line in said.splitlines()), [" not used", " passthrough=on"],
      "mount says what is not used")
user_reads()
if ROOT:  # the kernel keeps others out, even root
    expect_error(errno.EACCES, os.listdir, MOUNTPOINT)
as_user(binary, "umount", MOUNTPOINT)
equal(mount_type(MOUNTPOINT), None, "unmounted")

# ---- in front, ended by a signal ----
if not ROOT:
    with mounted():
        user_reads()
        equal(os.stat(path("train")).st_uid, USER, "owner")

# ---- kill -9, then umount by the user ----
as_user(binary, "mount", SOURCE, MOUNTPOINT)
daemon = user_daemon()
os.kill(daemon, 9)
check_ended(daemon, "kill -9")
contains(as_user("ls", MOUNTPOINT + "/", code=2), "onnect")  # not connected, connection abort
as_user(binary, "umount", MOUNTPOINT)
equal(mount_type(MOUNTPOINT), None, "unmounted after kill -9")

# ---- mount over a dead mount; umount of one that is in use ----
as_user(binary, "mount", SOURCE, MOUNTPOINT)
os.kill(user_daemon(), 9)
contains(as_user(binary, "mount", SOURCE, MOUNTPOINT), "removed a stale mount left by a dead daemon")
# The same where unmounting works, and takes longer than it is waited for.
os.mkdir(f"{PRIVATE}/slow")
os.mkfifo(f"{PRIVATE}/slow/never")
with open(f"{PRIVATE}/slow/fusermount3", "w") as f:
    f.write(f"""#!/bin/sh
{shutil.which("fusermount3")} "$@" || exit
case $1 in -u) exec cat {PRIVATE}/slow/never ;; esac
""")
for name in ("slow", "slow/fusermount3"):
    os.chmod(f"{PRIVATE}/{name}", 0o755)
os.kill(user_daemon(), 9)
contains(as_user("env", f"PATH={PRIVATE}/slow:{os.environ['PATH']}", binary, "mount", SOURCE,
                 MOUNTPOINT), "removed a stale mount left by a dead daemon")
with subprocess.Popen([*AS_USER, "cat"], cwd=PRIVATE, stdin=subprocess.PIPE) as outside, \
        subprocess.Popen([*AS_USER, "sh", "-c", 'cd "$1" && echo there && exec cat', "sh",
                          MOUNTPOINT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as inside:
    equal(inside.stdout.readline(), b"there\n", "a user of the mount")
    message = as_user(binary, "umount", MOUNTPOINT)
    contains(message, "still in use by", f"{inside.pid} (")
    equal(f"{outside.pid} (" in message, False, message)
    equal(mount_type(MOUNTPOINT), None, "unmounted while in use")
    inside.communicate(b"")
    outside.communicate(b"")

# ---- a mountpoint that is not ours ----
if ROOT:
    os.mkdir(f"{PRIVATE}/root-only", 0o755)
    os.chown(f"{PRIVATE}/root-only", 0, 0)
    message = as_user(binary, "mount", SOURCE, f"{PRIVATE}/root-only", code=3)
    contains(message, "root-only: you need write permission on the mountpoint")
    # A cache folder that the user cannot write is reported, and plain files work.
    os.chown(f"{PRIVATE}/cache", 0, 0)
    os.chmod(f"{PRIVATE}/cache", 0o755)
    shutil.rmtree(f"{PRIVATE}/cache/unpacked")
    as_user(binary, "mount", SOURCE, MOUNTPOINT)
    contains(as_user("cat", path("packed-data.gz/ERROR.txt")), "Permission denied")
    as_user(binary, "umount", MOUNTPOINT)
    as_user(binary, "mount", "-o", f"cache={PRIVATE}/cache", SOURCE, MOUNTPOINT, code=4)

# ---- root mounts for others: modes are those of the sources ----
if ROOT:
    os.environ["EPOCHFS_CACHE"] = f"{PRIVATE}/cache"
    daemon = start(SOURCE, "allow_other")
    equal(len(as_user("ls", path("train/samples/npz")).split()), 20, "another user lists")
    as_user("cat", path("train/samples/raw/000003.image.raw"))
    equal(content(path("secret/samples/raw/000003.label.raw")), b"\3", "root reads the secret")
    contains(as_user("cat", path("secret/samples/raw/000003.label.raw"), code=1), "denied")
    contains(as_user("cat", path("secret/source/secret"), code=1), "denied")
    contains(as_user("cat", path("secret/dataset.json"), code=1), "denied")
    equal(oct(os.stat(path("secret/samples")).st_mode & 0o777), "0o0", "mode of a secret folder")
    stop(daemon)
    daemon = start(SOURCE)
    contains(as_user("ls", MOUNTPOINT, code=2), "denied")
    contains(as_user(binary, "umount", MOUNTPOINT, code=3), f"{MOUNTPOINT}: user 0 has mounted it; that user and root may unmount it")
    equal(mount_type(MOUNTPOINT), "fuse.epochfs", "what another user has tried to unmount")
    stop(daemon)
equal([line for line in log_text().splitlines() if "not used" not in line], [], "the log")
run("info", SOURCE)
text(f"{PRIVATE}/log")
