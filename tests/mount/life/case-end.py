#!/usr/bin/python3
# slow: waits for mounts that hang
"""epochfs umount always returns, and mount never waits for an existing mount: mounts in use,
stopped daemons, dead ones, readers that hang; mounts of other file systems are left alone."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import time

import numpy as np

from lib import (CACHE, DEADLINE, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal,
                 expect_error, idx_bytes, mount_type, path, run, small, text)
from life import (CONNECTIONS, ROOT, check_ended, check_nothing_left, daemon_of, has_connections,
                  mount, mount_connections, processes, system_mount, thread_states)
from servers import Nginx, place, wait_until, within

WWW = f"{PRIVATE}/www"
IN_TIME = 12  # seconds that umount may take in any case
images, labels = small()


def stopped(pid):
    """Wait until each of its threads has stopped: one that has not received the signal yet goes
    on."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(state.startswith("T") for state in thread_states(pid)), "it has stopped")


def reader(file):
    """A process that opens a file of the mount, and then prints a line."""
    process = subprocess.Popen(["python3", "-c", "import sys; f = open(sys.argv[1], 'rb'); "
                                "print('open', flush=True); sys.stdin.read(); print(len(f.read()))",
                                file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    equal(process.stdout.readline(), "open\n", "the reader")
    return process


def umount_in_time(what):
    with within(IN_TIME, f"umount: {what}"):
        return run("umount", MOUNTPOINT)


def check_plain():
    """When umount returns, the daemon has ended and released its cache."""
    with Nginx(WWW) as server:
        for at in (MOUNTPOINT, f"{MOUNTPOINT}/", f"{MOUNTPOINT}//"):
            equal(mount(f"{server.url}/", at=at), "", "mount says")
            pid = daemon_of()
            content(path("train/samples/npz/000003.npz"))
            equal(run("umount", at), "", "umount says")
            equal(os.path.exists(f"/proc/{pid}/fd/0"), False, "the daemon is there after umount")
            shutil.rmtree(CACHE)
            os.mkdir(CACHE)
    equal(mount(SOURCE), "", "mount says")
    contains(run("mount", SOURCE, MOUNTPOINT, code=3), "an epochfs is mounted there")
    equal(mount_type(MOUNTPOINT), "fuse.epochfs", "a living mount is left alone")
    pid = daemon_of()
    equal(run("umount", MOUNTPOINT, cwd=MOUNTPOINT), "", "umount from inside")
    check_ended(pid, "umount from inside", 0)


def check_in_use():
    """umount names the processes that use the mount; they may go on, no other can enter; the daemon
    ends with the last of them."""
    mount(SOURCE)
    pid, user = daemon_of(), reader(path("train/samples/raw/000001.image.raw"))
    inside = subprocess.Popen(["cat"], cwd=path("train"), stdin=subprocess.PIPE)
    said = umount_in_time("in use")
    contains(said, MOUNTPOINT, "still in use by", f"{user.pid} (python3)", f"{inside.pid} (cat)")
    equal(said.count("\n"), 1, f"one line: {said}")
    equal(f"{pid} " in said, False, f"the daemon is no user: {said}")
    equal(mount_type(MOUNTPOINT), None, "mounted")
    equal(os.listdir(MOUNTPOINT), [], "what is at the mountpoint")
    contains(run("umount", MOUNTPOINT, code=3), "no epochfs is mounted there")
    equal(mount(SOURCE), "", "the next one is mounted meanwhile")
    equal(user.communicate("", timeout=DEADLINE)[0], "30\n", "the user reads on")
    inside.communicate(timeout=DEADLINE)
    check_ended(pid, "the last user has gone")
    equal(umount_in_time("the next one"), "", "umount says")


def check_mapped():
    """A mapped file is in use even when it is closed."""
    mount(SOURCE)
    code = "import mmap, sys; f = open(sys.argv[1], 'rb'); " \
        "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); f.close(); " \
        "print('open', flush=True); sys.stdin.read()"
    user = subprocess.Popen(["python3", "-c", code, path("train/samples/raw/000001.image.raw")],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    user.stdout.readline()
    contains(umount_in_time("mapped"), "still in use by", f"{user.pid} (python3)")
    user.communicate("", timeout=DEADLINE)


def check_remote_stalls():
    """A reader that continues after umount does not wait long for a silent remote, because while it
    waits the daemon cannot end."""
    place(f"{WWW}/far", "large-data", idx_bytes(np.zeros((100, 256, 256), np.uint8)))
    with Nginx(f"{WWW}/far") as server:
        mount(f"{server.url}/", "patience=300,stage=off")
        pid, user = daemon_of(), reader(path("large-data/samples/raw/000099.image.raw"))
        server.stall()
        contains(umount_in_time("in use"), "still in use by", f"{user.pid} (python3)")
        with within(IN_TIME, "a read of a remote that stalls"):
            contains(user.communicate("", timeout=DEADLINE)[1], "OSError: [Errno 5]")
        check_ended(pid, "the last user has gone")
        server.resume()


def check_elsewhere():
    """A container made meanwhile has a copy of the mount: the daemon ends when the copy is gone."""
    mount(SOURCE)
    pid = daemon_of()
    with subprocess.Popen(["unshare", "--mount", "--propagation", "private", "cat"],
                          stdin=subprocess.PIPE) as other:
        ours = os.readlink("/proc/self/ns/mnt")
        wait_until(lambda: os.readlink(f"/proc/{other.pid}/ns/mnt") != ours, "it has its own")
        contains(umount_in_time("mounted elsewhere"), f"process {pid}, has not ended", "container")
    check_ended(pid, "it is mounted nowhere")


def check_unseen():
    """No process has it open, for example while the daemon itself waits for a remote: umount ends
    the daemon."""
    mount(SOURCE)
    pid = daemon_of()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = os.open(MOUNTPOINT, os.O_RDONLY)
        socket.send_fds(ours, [b"x"], [fd])  # in flight, where no process has it open
        os.close(fd)
        equal(umount_in_time("unseen"), "", "umount says")
        check_ended(pid, "in use by nobody", 0)


def check_stopped():
    """A stopped daemon: mount and status report it, umount returns and says what is left."""
    mount(SOURCE)
    pid = daemon_of()
    stopped(pid)
    with within(IN_TIME, "mount over it"):
        contains(mount(SOURCE, code=3), f"process {pid}", "has not answered", "epochfs umount")
    equal(mount_type(MOUNTPOINT), "fuse.epochfs", "it was left")
    contains(umount_in_time("stopped"), f"process {pid}", "is stopped and so cannot end")
    equal(mount_type(MOUNTPOINT), None, "mounted")
    os.kill(pid, signal.SIGCONT)
    check_ended(pid, "it goes on")


def hanging_reader(connection):
    """It has asked a stopped daemon, where that can be seen."""
    user = subprocess.Popen(["cat", path("train/samples/raw/000009.image.raw")],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if has_connections():
        wait_until(lambda: int(text(f"{CONNECTIONS}/{connection}/waiting")) > 0, "it asks")
    return user


def check_stopped_in_use():
    """A process waits for a stopped daemon: it gets an error, if the connection may be aborted."""
    mount(SOURCE)
    pid, connection = daemon_of(), os.minor(os.stat(MOUNTPOINT).st_dev)
    stopped(pid)
    user = hanging_reader(connection)
    inside = subprocess.Popen(["cat"], cwd=MOUNTPOINT, stdin=subprocess.PIPE)
    said = umount_in_time("stopped, in use")
    contains(said, "still in use by", f"{inside.pid} (cat)", "does not answer", f"process {pid}")
    if has_connections():
        contains(said, "its readers get an error now")
        said = user.communicate(timeout=DEADLINE)[1]
        contains(said, "abort")
    else:
        contains(said, f"{CONNECTIONS}/")
    os.kill(pid, signal.SIGCONT)
    user.wait(DEADLINE)
    inside.communicate(timeout=DEADLINE)
    check_ended(pid, "it goes on")


def killed():
    """A mount whose daemon is dead."""
    mount(SOURCE)
    pid = daemon_of()
    os.kill(pid, signal.SIGKILL)
    check_ended(pid, "kill -9")


def kill_while_asked():
    mount(SOURCE)
    pid, connection = daemon_of(), os.minor(os.stat(MOUNTPOINT).st_dev)
    stopped(pid)
    user = hanging_reader(connection)
    os.kill(pid, signal.SIGKILL)
    said = user.communicate(timeout=DEADLINE)[1]
    gone = os.strerror(errno.ENOTCONN), os.strerror(errno.ECONNABORTED)
    equal(any(why in said for why in gone), True, f"the reader says: {said}")
    check_ended(pid, "kill -9")
    equal(run("umount", MOUNTPOINT), "", "umount says")


def check_killed_while_asked():
    """A reader that waits when the daemon is killed learns that the mount is gone, not of a disk
    error."""
    for _ in range(10):  # whether the supervisor or the kernel answers is chance
        kill_while_asked()


def check_dead():
    """Dead mounts are removed at once and silently, in use or not, and the next mount replaces
    them."""
    limit = 4  # one that does not answer is waited for for 5 s
    killed()
    with within(limit, "umount of a dead one"):
        equal(run("umount", MOUNTPOINT), "", "umount of a dead mount says")
    mount(SOURCE)
    inside = subprocess.Popen(["cat"], cwd=path("train"), stdin=subprocess.PIPE)
    pid = daemon_of()
    os.kill(pid, signal.SIGKILL)
    check_ended(pid, "kill -9")
    with within(limit, "umount of a dead one that is in use"):
        equal(run("umount", MOUNTPOINT), "", "umount of a dead mount that is in use says")
    inside.communicate(timeout=DEADLINE)
    killed()
    for helper in (False, True):
        if helper:
            name = f"{PRIVATE}/mount.epochfs"
            os.symlink(os.environ["EPOCHFS"], name)
            done = subprocess.run([name, SOURCE, MOUNTPOINT, "-o", "ro"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=DEADLINE)
            equal(done.returncode, 0, f"mount.epochfs: {done.stdout}")
            said = done.stdout
        else:
            said = mount(SOURCE)
        equal(said, f"epochfs: mountpoint {MOUNTPOINT}: removed a stale mount left by a "
              "dead daemon\n", "mount over a dead one says")
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            equal(f.read().count(f" {MOUNTPOINT} "), 1, "mounts there")
        os.kill(daemon_of(), signal.SIGKILL)
        wait_until(lambda: not processes(), "they have ended")
    equal(run("umount", MOUNTPOINT), "", "umount says")


def check_not_ours():
    """A dead mount of another file system is left alone."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    system_mount("other", MOUNTPOINT, "fuse.other", 0,
                 f"fd={fd},rootmode=40000,user_id=0,group_id=0")
    os.close(fd)
    expect_error(errno.ENOTCONN, os.statvfs, MOUNTPOINT)
    contains(mount(SOURCE, code=3), MOUNTPOINT, "not connected")
    equal(mount_type(MOUNTPOINT), "fuse.other", "what is mounted")
    contains(run("umount", MOUNTPOINT, code=3), "no epochfs is mounted there")
    equal(mount_type(MOUNTPOINT), "fuse.other", "what is mounted")
    subprocess.run(["umount", MOUNTPOINT], check=True)


def main():
    mount_connections()
    for name in os.listdir(SOURCE):
        place(WWW, name, content(SOURCE, name))
    checks = [check_plain, check_in_use, check_mapped, check_remote_stalls, check_unseen,
              check_stopped, check_stopped_in_use, check_killed_while_asked, check_dead]
    for check in checks + ([check_elsewhere, check_not_ours] if ROOT else []):
        begin = time.monotonic()
        check()
        print(f"{check.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    check_nothing_left()


main()
