#!/usr/bin/python3
"""What a daemon inherits from the process that started it: no descriptor, no terminal, no folder;
and of root's privileges only those that it needs."""

import os
import pty
import select
import shutil
import signal
import subprocess

import numpy as np

from kaldi_dirs import fm, script
from lib import (DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, content, equal,
                 log_text, mount_type, path, run, small, start, stop, text, write)
from life import (ROOT, check_ended, check_nothing_left, daemon_of, mount, process_status,
                  processes)
from servers import Nginx, ended, pidfd, place, wait_until

SYS_ADMIN, DAC_OVERRIDE, FOWNER, LEASE = 21, 1, 3, 28
KEPT = sum(1 << cap for cap in (SYS_ADMIN, DAC_OVERRIDE, FOWNER, LEASE)) & \
    int(process_status("self")["CapPrm"], 16)
USER = 65534 if ROOT else os.geteuid()
small()


def open_files(pid):
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            pass
    return found


# ---- descriptors ----

def check_descriptors():
    """A process that waits for the end of a pipe, or for a lock, does not wait for the daemon."""
    file = f"{PRIVATE}/inherited"
    place(PRIVATE, "inherited", b"")
    done = subprocess.run(
        ["bash", "-c", 'out=$("$0" mount "$1" "$2" 2>&1 7>&1 9<"$3" 250<"$3"); echo "[$out]"',
         EPOCHFS, SOURCE, MOUNTPOINT, file],
        stdout=subprocess.PIPE, text=True, timeout=DEADLINE, check=True)
    equal(done.stdout, "[]\n", "a shell that takes all that mount has to say")
    for pid in processes():
        names = open_files(pid).values()
        equal([n for n in names if "inherited" in n], [], f"what process {pid} has inherited")
    run("umount", MOUNTPOINT)
    # In the foreground too.
    daemon = subprocess.Popen(["bash", "-c", 'exec "$0" mount -f "$1" "$2" 9<"$3"', EPOCHFS, SOURCE,
                               MOUNTPOINT, file], stdin=subprocess.DEVNULL)
    wait_until(lambda: mount_type(MOUNTPOINT) and os.path.exists(path("README.txt")), "it answers",
               daemon)
    equal([n for n in open_files(daemon.pid).values() if "inherited" in n], [], "in front")
    daemon.terminate()
    equal(daemon.wait(DEADLINE), 0, "exit code")
    # If the standard files are closed, messages do not end up in one of our files.
    subprocess.run(["bash", "-c", 'exec "$0" mount "$1" "$2" <&- >&- 2>&-', EPOCHFS, SOURCE,
                    MOUNTPOINT], timeout=DEADLINE, check=True)
    files = open_files(daemon_of())
    for fd in (0, 1, 2):
        equal(files[fd] == "/dev/null" or "/log." in files[fd], True, f"{fd}: {files}")
    content(path("train/samples/npz/000003.npz"))
    run("umount", MOUNTPOINT)


# ---- the terminal ----

def start_on_terminal(*words):
    """A shell that leads a session with its own terminal, runs the words, reports that, and waits.
    Returns its process and our end of the terminal."""
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["setsid", "--ctty", "sh", "-c", '"$@"; echo "code $?"; cat', "sh", *words],
        stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"code " not in said:
        said += os.read(ours, 4096)
    contains(said.decode(), "code 0")
    return shell, ours


def check_foreground_on_terminal():
    """In front, it says that it is mounted, and how that ends; into a file it says nothing, as main() checks."""
    ours, theirs = pty.openpty()
    daemon = subprocess.Popen(["setsid", "--ctty", EPOCHFS, "mount", "-f", SOURCE, MOUNTPOINT],
                              stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while b"\n" not in said and select.select([ours], [], [], DEADLINE)[0]:
        said += os.read(ours, 4096)
    equal(said.decode().strip(), f"epochfs: mounted on {MOUNTPOINT} until Ctrl-C, or `epochfs umount`", "what it says")
    content(path("README.txt"))
    os.write(ours, b"\3")
    equal(daemon.wait(DEADLINE), 0, "exit code after Ctrl-C")
    os.close(ours)
    equal(mount_type(MOUNTPOINT), None, "mounted after Ctrl-C")


def check_terminal():
    """The terminal hangs up, and the shell ends; also after a signal to its whole session."""
    shell, ours = start_on_terminal(EPOCHFS, "mount", SOURCE, MOUNTPOINT)
    pid = daemon_of()
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    equal(fields[4], "0", "the daemon's terminal")
    equal(int(fields[3]), pid, "the daemon's session")
    equal(os.readlink(f"/proc/{pid}/cwd"), "/", "the daemon's folder")
    os.close(ours)  # it hangs up: SIGHUP for the shell and all in front
    equal(shell.wait(DEADLINE) != 0, True, "the shell ends by the hangup")
    with pidfd(pid) as fd:
        content(path("train/samples/npz/000003.npz"))
        equal(ended(fd, 0), False, "the daemon has ended with its terminal")
    os.kill(pid, signal.SIGHUP)  # sent to it, it is a request
    check_ended(pid, "SIGHUP")
    equal(mount_type(MOUNTPOINT), None, "mounted after SIGHUP")
    # nohup: also in front.
    daemon = subprocess.Popen(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", EPOCHFS, "mount", "-f",
                               SOURCE, MOUNTPOINT], stdin=subprocess.DEVNULL)
    wait_until(lambda: mount_type(MOUNTPOINT) and os.path.exists(path("README.txt")), "it answers",
               daemon)
    daemon.send_signal(signal.SIGHUP)
    content(path("train/samples/npz/000003.npz"))
    equal(daemon.poll(), None, "SIGHUP where it is ignored")
    daemon.terminate()
    equal(daemon.wait(DEADLINE), 0, "SIGTERM afterwards")


# ---- privileges ----

def check_capabilities(pid, want, what):
    for task in [pid] if SLOW else os.listdir(f"/proc/{pid}/task"):  # a sanitizer has its own
        try:
            found = process_status(f"{pid}/task/{task}")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        for name in ("CapEff", "CapPrm"):
            equal(int(found[name], 16), want, f"{what}, thread {task}: {name}")
        equal(int(found["CapInh"], 16) | int(found["CapAmb"], 16), 0, f"{what}: passed on")
        if ROOT:
            equal(int(found["CapBnd"], 16) & ~KEPT, 0, f"{what}, thread {task}: CapBnd")
            equal(found["NoNewPrivs"], "1", f"{what}, thread {task}: NoNewPrivs")


def check_privileges(source, *flags):
    """The privileges of the daemon and each of its threads; the supervisor has none."""
    daemon = None
    if flags:
        daemon = start(source)
    else:
        mount(source)
    pid = daemon_of()
    content(path("train/batches/batch=4,seed=1/epoch=0/npz/000001.npz"))
    check_capabilities(pid, KEPT if ROOT else 0, f"the daemon {flags}")
    for other in processes():
        if other != pid:
            wait_until(lambda pid=other: int(process_status(pid)["CapEff"], 16) == 0,
                       "the warden has given up what it could do")
            check_capabilities(other, 0, "the warden")
    may = subprocess.run(["sh", "-c", "echo -500 >/proc/self/oom_score_adj"], check=False,
                         stderr=subprocess.DEVNULL).returncode == 0
    if text("/proc/self/oom_score_adj") == "0\n":
        equal(text(f"/proc/{pid}/oom_score_adj"), "-500\n" if may else "0\n", "oom_score_adj")
    if daemon:
        stop(daemon)
    else:
        run("umount", MOUNTPOINT)


def check_chosen_oom_score():
    """A score chosen by the user is kept."""
    done = subprocess.run(["sh", "-c", 'echo 300 >/proc/self/oom_score_adj && exec "$@"', "sh",
                           EPOCHFS, "mount", SOURCE, MOUNTPOINT], timeout=DEADLINE, check=False)
    equal(done.returncode, 0, "mount")
    equal(text(f"/proc/{daemon_of()}/oom_score_adj"), "300\n", "oom_score_adj")
    run("umount", MOUNTPOINT)


def check_sources_of_others(user=USER):
    """Root reads private files of users, but stages them into no folder of theirs: they could
    change what root reads from there."""
    folder = f"{PRIVATE}/theirs"
    os.makedirs(f"{folder}/source")
    os.makedirs(f"{folder}/cache")
    for name in os.listdir(SOURCE):
        place(f"{folder}/source", name, content(SOURCE, name))
        os.chmod(f"{folder}/source/{name}", 0o600)
        os.chown(f"{folder}/source/{name}", user, user)
    for below in ("source", "cache", ""):
        os.chmod(f"{folder}/{below}", 0o700)
        os.chown(f"{folder}/{below}", user, user)
    contains(mount(f"{folder}/source", f"cache={folder}/cache", code=4), f"{folder}/cache",
             f"got one of user {user}", "-o cache_dir=")
    os.mkdir(f"{folder}/own", 0o700)
    mount(f"{folder}/source", f"cache={folder}/own")
    equal(len(content(path("train/batches/batch=all/raw/000000.image.raw"))), 600, "a batch")
    run("umount", MOUNTPOINT)


def check_commands():
    """Commands from lines of an scp are not spared by the OOM killer, and have no more privileges
    than the daemon."""
    m = np.arange(6, dtype=np.float32).reshape(2, 3)
    write("m.mat", fm(m))
    out = f"{PRIVATE}/command"
    script("t.scp", [f"u1 cat /proc/self/oom_score_adj /proc/self/status >{out}; "
                     f"cat {SOURCE}/m.mat |"])
    mount(f"{SOURCE}/t.scp", "allow_commands")
    equal(np.array_equal(np.load(path("t.scp/samples/npy/u1.data.npy")), m), True, "its output")
    score, *lines = content(out).decode().splitlines()
    equal(score, "0", "oom_score_adj of a command")
    if ROOT:
        found = dict(line.split(":\t") for line in lines if ":\t" in line)
        equal(int(found["CapEff"], 16) & ~KEPT, 0, "capabilities of a command")
    run("umount", MOUNTPOINT)
    os.unlink(f"{SOURCE}/t.scp")
    os.unlink(f"{SOURCE}/m.mat")


def check_secrets(user=USER):
    """Other users cannot inspect a process that may have credentials in memory: its files in /proc
    belong to root."""
    www = f"{PRIVATE}/www"
    place(www, "train-data", content(SOURCE, "train-images-idx3-ubyte"))
    as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if ROOT else []
    binary = f"{PRIVATE}/epochfs"  # where the user can run it
    shutil.copy(EPOCHFS, binary)
    os.makedirs(f"{PRIVATE}/user-cache")
    os.chmod(f"{PRIVATE}/user-cache", 0o777)
    with Nginx(www) as server:
        server.stall()
        process = subprocess.Popen([*as_user, binary, "info", "-o", f"cache={PRIVATE}/user-cache",
                                    f"{server.url}/"], stdout=subprocess.DEVNULL)
        wait_until(lambda: os.stat(f"/proc/{process.pid}/mem").st_uid == 0 and
                   process_status(process.pid)["Uid"].split()[0] == str(user),
                   "memory is hidden", process)
        server.resume()
        equal(process.wait(DEADLINE), 0, "info")


def main():
    check_descriptors()
    check_foreground_on_terminal()
    check_terminal()
    check_privileges(SOURCE)
    check_privileges(SOURCE, "-f")
    check_chosen_oom_score()
    if ROOT:
        check_sources_of_others()
    check_commands()
    if subprocess.run(["setpriv", f"--reuid={USER}", "test", "-x", PRIVATE], check=False,
                      stderr=subprocess.DEVNULL).returncode == 0 or not ROOT:
        check_secrets()
    check_nothing_left()
    equal(log_text(), "", "the log")


main()
