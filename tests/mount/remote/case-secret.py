#!/usr/bin/python3
"""The query of a URL is a secret: no command line shows it while the process lives."""

import contextlib
import json
import os
import signal
import subprocess

import bad_server as bad
from bad_mount import FILE, WWW
from bad_server import BadServer
from lib import EPOCHFS, MOUNTPOINT, PRIVATE, content, equal, path, run

SECRET = "X-Amz-Signature=TOP5ECRET"


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read()


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found += map(int, content("/proc", str(pid), "task", task, "children").split())
    return found


def check_hidden(pid, *wants):
    shown = command_line(pid)
    equal(SECRET.encode() in shown or b"5ECRET" in shown, False, f"process {pid}: {shown}")
    words = shown.rstrip(b"\0").split(b"\0")
    for want in wants:
        equal(want.encode() in words, True, f"{want} in {words}")
    with open(f"/proc/{pid}/environ", "rb") as f:
        equal(b"5ECRET" in f.read(), False, f"the environment of {pid}")


with BadServer(WWW) as server:
    url = f"{server.url}{FILE}?{SECRET}"
    cache = f"cache={PRIVATE}/cache,block=16K,stage=off"
    run("mount", "-o", cache, url, MOUNTPOINT)
    daemon = json.loads(content(path(".epochfs/status.json")))["pid"]
    check_hidden(daemon, f"{server.url}{FILE}?...", MOUNTPOINT, cache)
    supervisors = children(daemon)
    equal(len(supervisors) >= 1, True, "the daemon has a supervisor")
    for pid in supervisors:
        check_hidden(pid)
    equal(b"5ECRET" in content("/proc/self/mountinfo"), False, "mountinfo")
    run("umount", MOUNTPOINT)

    said = run("info", url, url, code=1)
    equal("5ECRET" in said, False, said)

    # Commands, while they wait for the server.
    for command in (["mount", "-f", "-o", cache, url, MOUNTPOINT], ["info", url],
                    ["plan", "-o", cache, url], ["stage", "-o", cache, url]):
        server.healthy()
        server.script("*", bad.stall(), method=None)
        process = subprocess.Popen([EPOCHFS, *command], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        server.wait_stalled()
        check_hidden(process.pid, command[0], f"{server.url}{FILE}?...")
        process.send_signal(signal.SIGKILL)
        process.communicate()
