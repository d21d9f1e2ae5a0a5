#!/usr/bin/python3
# needs: root
"""epochfs mount SOURCE /dev/fd/N: another program has opened /dev/fuse and mounted, as `apptainer --fusemount` does."""

import ctypes
import errno
import os
import re
import select
import signal
import subprocess

from lib import DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error, mounted, run, small, status, text
from page_blocks import take

BATCH = "train/batches/batch=8,seed=7/epoch=0/npz/000001.npz"
NEWNS, PRIVATE_ALL, NOSUID_NODEV, DETACH = 0x20000, 0x44000, 6, 2
libc = ctypes.CDLL(None, use_errno=True)
small()
os.chdir(PRIVATE)
os.makedirs("other", exist_ok=True)
OTHER = f"{PRIVATE}/other"


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


check(libc.unshare(NEWNS))
check(libc.mount(None, b"/", None, PRIVATE_ALL, None))


def opener(at=MOUNTPOINT, kind=b"fuse"):
    """Open /dev/fuse and mount: what Apptainer does before it starts the program."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    check(libc.mount(b"fuse", at.encode(), kind, NOSUID_NODEV, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd))
    return fd


def connection_is_known(fd):
    return "fuse_connection" in text(f"/proc/self/fdinfo/{fd}")


def gone(at=MOUNTPOINT):
    check(libc.umount2(at.encode(), DETACH))


PAGE = re.search('"container:epochfs (.*) /mnt"', take("docs/containers.md", "--fusemount"))[1]
PAGE = PAGE.replace("/tmp/epochfs", f"{PRIVATE}/cache").replace("/data/mnist", SOURCE).split()


def leave():
    """Go to a mount namespace that does not have the mount."""
    check(libc.unshare(NEWNS))
    gone()


with mounted(at=OTHER):
    BYTES = content(OTHER, BATCH)

# In the background.
for kind in (b"fuse", b"fuse.epochfs"):
    fd = opener(kind=kind)
    known = connection_is_known(fd)
    run("mount", SOURCE, f"/dev/fd/{fd}", pass_fds=[fd])
    os.close(fd)
    equal(content(MOUNTPOINT, BATCH), BYTES, "a batch")
    equal(status()["mountpoint"], MOUNTPOINT if known else "", "mountpoint")
    if not known:
        print("this Linux does not say which mount a descriptor has")
        os.kill(status()["pid"], signal.SIGTERM)
        gone()
        continue
    contains(text(MOUNTPOINT, "README.txt"), MOUNTPOINT)
    contains(run("status"), f"answers          {MOUNTPOINT}")
    contains(run("status", MOUNTPOINT), SOURCE)
    contains(run("mount", SOURCE, MOUNTPOINT, code=3), "an epochfs is mounted there; `epochfs umount` it")
    contains(run("info", MOUNTPOINT, code=2), "got the mountpoint of an epochfs")
    daemon = os.pidfd_open(status()["pid"])
    equal(run("umount", MOUNTPOINT), "")
    equal(select.select([daemon], [], [], 0)[0], [daemon], "the daemon has ended")
    contains(run("umount", MOUNTPOINT, code=3), "no epochfs is mounted there")

# In front, with the page's command and Apptainer's order of words; the mount is of another namespace, so its place is not known.
for elsewhere in (False, True):
    fd = opener()
    daemon = subprocess.Popen([EPOCHFS, *PAGE, f"/dev/fd/{fd}", "-f"], pass_fds=[fd], stderr=subprocess.PIPE, text=True,
                              preexec_fn=leave if elsewhere else None)
    os.close(fd)
    equal(content(MOUNTPOINT, BATCH), BYTES, "a batch")
    if elsewhere:
        equal(status()["mountpoint"], "", "a mountpoint that is not seen")
        contains(run("status", MOUNTPOINT, code=3), "expected an epochfs that is mounted there, got none")
    daemon.terminate()
    said = daemon.communicate(timeout=DEADLINE)[1]
    equal("Linux does not say where another program has mounted" in said, elsewhere or not known, said)
    equal(daemon.returncode, 0, "exit code")
    expect_error(errno.ENOTCONN, os.listdir, MOUNTPOINT)
    gone()

# Descriptors that are no mount.
served = opener()
with subprocess.Popen([EPOCHFS, "mount", "-f", SOURCE, f"/dev/fd/{served}"], pass_fds=[served]) as daemon:
    equal(content(MOUNTPOINT, BATCH), BYTES)
    contains(run("mount", SOURCE, f"/dev/fd/{served}", pass_fds=[served], code=1), "got one that a program serves already; mount again")
    daemon.terminate()
contains(run("mount", SOURCE, f"/dev/fd/{served}", code=1), "got a number that is not open; pass it on")
gone()
with open("/dev/fuse", "rb") as fuse, open("/dev/null", "rb") as null:
    contains(run("mount", SOURCE, f"/dev/fd/{fuse.fileno()}", pass_fds=[fuse.fileno()], code=1), "first call mount(2) with the option fd=")
    contains(run("mount", SOURCE, f"/dev/fd/{null.fileno()}", pass_fds=[null.fileno()], code=1), "expected a descriptor of /dev/fuse, got another file")
for name in ("0", "x", "", "3x", "99999999999999999999"):
    contains(run("mount", SOURCE, f"/dev/fd/{name}", code=1), f"mountpoint /dev/fd/{name}: expected /dev/fd/N, where N is a descriptor of 3 or more")
contains(run("mount", "-o", "ro,allow_other,fsname=x", SOURCE, "/dev/fd/9", code=1), "option allow_other: means nothing with mountpoint /dev/fd/9")
