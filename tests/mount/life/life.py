"""What the cases of a mount's life share: daemons in the background, and checks for what they
leave."""

import contextlib
import ctypes
import os
import re
import signal
import sys

from lib import CACHE, DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, equal, mount_type, run, status
from servers import ended, files_below, locks_in, wait_until

CONNECTIONS = "/sys/fs/fuse/connections"
ROOT = os.geteuid() == 0
TSAN = os.environ.get("SANITIZED") == "thread"


def mount_connections():
    """The mounts in the namespace from the runner."""
    if ROOT and not os.path.ismount(CONNECTIONS):
        system_mount("none", CONNECTIONS, "fusectl", 0, "")


def has_connections():
    return ROOT and os.path.ismount(CONNECTIONS)


USED = set()  # connections that were ours


def connections():
    """The kernel's FUSE connections, without mounts of other namespaces, where other cases come and
    go."""
    found, ours = set(os.listdir(CONNECTIONS)), os.readlink("/proc/self/ns/mnt")
    seen = {ours}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            namespace = name.isdigit() and os.readlink(f"/proc/{name}/ns/mnt")
            if namespace and namespace not in seen:
                seen.add(namespace)
                with open(f"/proc/{name}/mountinfo", encoding="utf-8", errors="replace") as f:
                    found -= {line.split()[2].split(":")[1] for line in f}
    return found


def processes():
    """The daemons of this case, with their supervisors, and the running commands."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[0] == os.fsencode(EPOCHFS) and any(os.fsencode(PRIVATE) in w for w in words):
                found.append(int(name))
    return found


def mount(source, *options, at=MOUNTPOINT, code=0):
    """Mount in the background. Returns the output."""
    said = run("mount", *(word for o in options for word in ("-o", o)), source, at, code=code)
    if code == 0:
        USED.add(str(os.minor(os.stat(at).st_dev)))
    return said


def daemon_of(at=MOUNTPOINT):
    return status(at)["pid"]


def check_ended(pid, what, seconds=DEADLINE):
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        equal(ended(fd, seconds), True, f"{what}: process {pid} has ended in {seconds} s")
    finally:
        os.close(fd)


def kill_hung():
    """The runtime of gcc 12's thread sanitizer may hang where a daemon in the background ends: its threads wait
    for the sanitizer's own registry of threads (__sanitizer::ThreadRegistry::Lock), which no thread holds. The
    kernel has ended the mount by then. The same end is checked in the builds without that sanitizer."""
    for pid in processes():
        equal(mount_type(MOUNTPOINT) == "fuse.epochfs", False, f"process {pid} still serves")
        print(f"process {pid} hangs in the thread sanitizer", file=sys.stderr)
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes(), "killed processes have ended")


def check_nothing_left(cache=CACHE):
    """No process, no lock, no unused file and no connection is left."""
    try:
        wait_until(lambda: not processes(), "all our processes have ended", seconds=20 if TSAN else DEADLINE)
    except AssertionError:
        if not TSAN:
            raise
        kill_hung()
    equal(locks_in(cache), [], "locks that are left")
    left = [file for file, _ in files_below(cache) if re.search(r"\.(part|tmp)$", file)]
    equal(left, [], "files that no mount needs")
    if has_connections():
        wait_until(lambda: not connections() & USED, f"none of the connections {USED} is left")


def process_status(pid):
    """/proc/PID/status, as words."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def thread_states(pid):
    """The State of each thread."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found.append(process_status(f"{pid}/task/{thread}")["State"])
    return found


def system_mount(source, target, kind, flags, data):
    """mount(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")
