#!/usr/bin/python3
# needs: nginx-light
# slow: commands that wait for nodes
"""`peers up` that fails or is killed, `peers down` whatever was killed before: nothing of the ring remains afterwards, and nothing
else is touched: neither processes whose numbers are in its files, nor files that it has not made."""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from lib import DEADLINE, PRIVATE, contains, equal, text
from ring import TOOL, address, free_pair, make_secret, tool
from servers import end_process, timed, wait_until

SECRET = make_secret(f"{PRIVATE}/secret")
FOLDER = f"{PRIVATE}/ring"
NODES = f"{address(0)},{address(1)}"
PORT = free_pair(2)
LEFT = {".epochfs-peers", "back.log", "error.log"}  # after `down`


def words(folder=FOLDER, port=PORT, wait=0):
    return ["up", "--nodes", NODES, "--self", address(0), "--folder", folder, "--size", "1g", "--secret", SECRET,
            "--port", str(port), "--wait", str(wait)]


def up(code=2, **kwargs):
    """The other node is never there."""
    return tool(*words(**kwargs), code=code)


def down(folder=FOLDER):
    tool("down", "--folder", folder)


def processes(folder=FOLDER):
    """Those of the ring: number -> command line."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = open(f"/proc/{pid}/cmdline", "rb").read()
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        files = []
        for fd in descriptors:
            with contextlib.suppress(OSError):  # it has just been closed
                files.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        if folder.encode() in line or any(f.startswith(folder + "/") for f in files):
            found[int(pid)] = line.replace(b"\0", b" ").decode()
    return found


def check_gone(what, folder=FOLDER):
    wait_until(lambda: not processes(folder), f"{what}: no process is left")
    if os.path.exists(folder):
        equal(set(os.listdir(folder)) <= LEFT, True, f"{what}: files that are left: {os.listdir(folder)}")
    with open(SECRET, encoding="ascii") as f:
        equal(len(f.read()), 65, "the user's secret")


def check_killed():
    """Each process of the ring, and all of them; killed and stopped. Then it can be up again."""
    for which in ("run", "master", "worker", "all"):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            up()
            runner, master = int(text(FOLDER, "pid")), int(text(FOLDER, "nginx.pid"))
            others = [p for p in processes() if p not in (runner, master)]
            equal(len(others) >= 1, True, "workers of nginx")
            for pid in {"run": [runner], "master": [master], "worker": others, "all": [runner, master, *others]}[which]:
                os.kill(pid, number)
            down()
            check_gone(f"{which}, signal {number}")
    up()
    os.kill(int(text(FOLDER, "pid")), signal.SIGKILL)  # nginx lives on
    contains(up(code=3), "a ring is up there already")
    contains(tool("status", "--folder", FOLDER, code=2), f"{address(0)}: answers")
    shutil.rmtree(FOLDER)
    down()
    check_gone("the folder was removed before")


def check_interrupted():
    """`up` while it waits for the other node."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        process = subprocess.Popen([TOOL, *words(wait=600)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        wait_until(lambda: os.path.exists(f"{FOLDER}/nginx.pid"), "nginx is up", process)
        process.send_signal(number)
        process.communicate(timeout=DEADLINE)
        if number == signal.SIGKILL:
            down()
        else:
            equal(process.returncode, 3, f"exit code after signal {number}")
        check_gone(f"up, signal {number}")
    process = subprocess.Popen([TOOL, *words(wait=600)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    wait_until(lambda: os.path.exists(f"{FOLDER}/nginx.pid"), "nginx is up", process)
    down()
    process.communicate(timeout=DEADLINE)
    equal(process.returncode, 3, "exit code of up that is ended by down")
    check_gone("down while up waits")


def check_failed():
    """The port is taken, by a listener or not; nginx is refused."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for listens in (True, False):
        with socket.socket() as s:
            s.bind((address(0), PORT + 1))
            if listens:
                s.listen()
            contains(up(code=3), "is used by another program" if listens else "Address already in use")
        equal(os.path.exists(FOLDER), False, "a folder that `up` has made")


def check_foreign():
    """Numbers of other processes in the files of a ring, also of one that is up: they live on."""
    stranger = subprocess.Popen([sys.executable, "-c", "import sys; open(sys.argv[1]); sys.stdin.read()", SECRET],
                                stdin=subprocess.PIPE)
    reader = None
    try:
        for is_up in (False, True):
            up()
            if not is_up:
                down()
            for name in ("pid", "nginx.pid"):
                with open(f"{FOLDER}/{name}", "w", encoding="ascii") as f:
                    f.write(f"{stranger.pid}\n")
            # Reads the folder, as a backup does.
            reader = subprocess.Popen([sys.executable, "-c", "import sys; f = open(sys.argv[1]); print(flush=True); "
                                       "sys.stdin.read()", f"{FOLDER}/.epochfs-peers"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
            reader.stdout.readline()
            down()
            equal([p.poll() for p in (stranger, reader)], [None, None], "processes of others")
            reader.communicate(b"", timeout=DEADLINE)
            check_gone("with other numbers")
    finally:
        end_process(stranger)
        if reader:
            end_process(reader)


def check_other_disk():
    """`down` where another disk is in the folder's place, as on a node that shares only the numbers of processes."""
    if os.geteuid():
        return  # a mount namespace needs root
    for removed in (False, True):
        up()
        if removed:
            shutil.rmtree(FOLDER)
            os.mkdir(FOLDER, 0o700)
        before = set(processes())
        subprocess.run(["unshare", "--mount", "bash", "-ec", 'mount -t tmpfs tmpfs "$1"; exec "$0" down --folder "$1"', TOOL, FOLDER],
                       check=True)
        equal(set(processes()) & before, before, "processes of the ring")
        down()
        check_gone("after `down` elsewhere")


def check_folders():
    """Folders that are not a ring's alone."""
    other = f"{PRIVATE}/other"
    for name in ("share/a", "temp/b", "secret/c", "d"):
        os.makedirs(os.path.dirname(f"{other}/{name}"), exist_ok=True)
        with open(f"{other}/{name}", "w", encoding="ascii") as f:
            f.write("precious\n")
    before = sorted(os.walk(other))
    contains(up(code=3, folder=other), "expected a new folder, or one of an earlier ring; got one with other files")
    down(other)
    equal(sorted(os.walk(other)), before, "files that no ring has made")
    for mode in (0o770, 0o777, 0o1777):
        os.makedirs(f"{PRIVATE}/open", exist_ok=True)
        os.chmod(f"{PRIVATE}/open", mode)
        contains(up(code=3, folder=f"{PRIVATE}/open"), "expected a folder of one's own that nobody else can write to")
    os.symlink(other, f"{PRIVATE}/link")
    contains(up(code=3, folder=f"{PRIVATE}/link"), "expected a folder of one's own")
    equal(sorted(os.walk(other)), before, "files behind a link")
    # What it makes is the user's alone, whatever the umask says.
    mask = os.umask(0)
    try:
        up(folder=f"{PRIVATE}/new/ring")
    finally:
        os.umask(mask)
    found = {oct(os.stat(f"{PRIVATE}/new/{name}").st_mode & 0o77) for name in ("", "ring", *(
        f"ring/{name}" for name in os.listdir(f"{PRIVATE}/new/ring")))}
    equal(found, {"0o0"}, "rights of others")
    down(f"{PRIVATE}/new/ring")
    check_gone("umask 0", f"{PRIVATE}/new/ring")
    os.makedirs(f"{PRIVATE}/disk/lost+found", mode=0o700)
    os.chmod(f"{PRIVATE}/disk", 0o700)
    up(folder=f"{PRIVATE}/disk")
    down(f"{PRIVATE}/disk")
    equal(os.path.exists(f"{PRIVATE}/disk/lost+found"), True, "lost+found")


def check_together():
    """Two at the same time in one folder: one of them is up."""
    starting = [subprocess.Popen([TOOL, *words(port=port)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT) for port in (PORT, free_pair(2))]
    said = [p.communicate(timeout=DEADLINE)[0].decode() for p in starting]
    equal(sorted(p.returncode for p in starting), [2, 3], f"exit codes: {said}")
    contains(" ".join(said), "a ring is up there already")
    contains(tool("status", "--folder", FOLDER, code=2), f"{address(0)}: answers")
    begin = time.monotonic()
    down()
    equal(time.monotonic() - begin < DEADLINE, True, "down")
    check_gone("two at the same time")


def check_begun_meanwhile():
    """A folder in which another puts its mark while we look at it."""
    os.makedirs(f"{PRIVATE}/programs")
    with open(f"{PRIVATE}/programs/find", "w", encoding="ascii") as f:
        f.write(f"""#!/bin/sh
[ "$2" != -mindepth ] || touch {FOLDER}/.epochfs-peers
exec {shutil.which("find")} "$@"
""")
        os.fchmod(f.fileno(), 0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{PRIVATE}/programs:{path}"
    try:
        up()
    finally:
        os.environ["PATH"] = path
    down()
    check_gone("another mark")


def check_log():
    """What signs a URL is in no log, whatever else is in the query."""
    up()
    secret, ring = text(FOLDER, "secret").strip(), text(FOLDER, "ring").split()[0]
    for query in ("X-Amz-Signature=5ECRET", "a=b,c&sig=5ECRET", 'a="b&sig=5ECRET', "a=?,&sig=5ECRET"):
        back = http.client.HTTPConnection(address(0), PORT + 1, timeout=DEADLINE, source_address=(address(0), 0))
        back.putrequest("GET", f"/file?{query}", skip_host=True)
        for name, value in (("Host", "127.0.0.1:9"), ("X-Epochfs-Secret", secret), ("X-Epochfs-Ring", ring),
                            ("X-Epochfs-Key", "k"), ("X-Epochfs-Slice", "0"), ("If-Match", '"x"'),
                            ("X-Epochfs-Origin", "http://127.0.0.1:9"), ("Range", "bytes=0-9")):
            back.putheader(name, value)
        back.endheaders()
        reply = back.getresponse()
        equal((reply.status, reply.headers["X-Epochfs-Peers"]), (502, "origin"), "reply of a back whose origin is dead")
        back.close()
    wait_until(lambda: text(FOLDER, "error.log").count("upstream") >= 4, "lines of the log")
    for name in ("error.log", "back.log"):
        equal("5ECRET" in text(FOLDER, name), False, f"{name}: {text(FOLDER, name)}")
    contains(text(FOLDER, "error.log"), "/file?...")
    for pid, line in processes().items():
        with open(f"/proc/{pid}/environ", "rb") as f:
            equal((secret in line, secret.encode() in f.read()), (False, False), f"the secret, of process {pid}")
    down()


timed(check_failed)
timed(check_log)
timed(check_killed)
timed(check_interrupted)
timed(check_foreign)
timed(check_other_disk)
timed(check_folders)
timed(check_together)
timed(check_begun_meanwhile)
