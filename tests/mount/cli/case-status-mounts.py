#!/usr/bin/python3
# slow: waits for a mount that hangs
"""epochfs status without a mountpoint: the mounts of this user, with their sources, and whether they answer."""

import json
import os
import signal

import users
from lib import PRIVATE, SOURCE, contains, equal, run, small
from servers import wait_until

users.may_mount(__file__)
small()
ann, eve = users.User("ann"), users.User("eve")
equal(ann.run("status"), "no epochfs of this user is mounted\n", "nothing is mounted")
equal(json.loads(ann.run("status", "--json")), [], "nothing is mounted")
other = f"{ann.home}/o\tdd \\ name"
ann.do("mkdir", other)
ann.mount(SOURCE)
ann.run("mount", SOURCE, other)
eve.mount(SOURCE)


def listed(text):
    return [(m["mountpoint"], m["source"], m["state"], m["user"]) for m in json.loads(text)]


mine = [(at, SOURCE, "answers", ann.uid) for at in (ann.mountpoint, other)]
equal(listed(ann.run("status", "--json")), mine, "the mounts of a user")
equal(listed(run("status", "--json")), mine + [(eve.mountpoint, SOURCE, "answers", eve.uid)], "the mounts that root sees")
lines = ann.run("status").splitlines()
equal([line.split()[0] for line in lines], ["STATE", "answers", "answers"], "the table")
contains(lines[1], ann.mountpoint, SOURCE)
contains(lines[2], "o?dd \\ name")
pid = json.loads(ann.read(".epochfs/status.json"))["pid"]
os.kill(pid, signal.SIGSTOP)
equal(listed(ann.run("status", "--json"))[0][2], "does not answer", "a daemon that is stopped")
for command in (["audit", ann.mountpoint, "batch=1"], ["info", ann.mountpoint],
                ["info", f"{ann.mountpoint}/x"]):
    contains(ann.run(*command, code=3), "the daemon has not answered for 5 s")
os.kill(pid, signal.SIGKILL)
wait_until(lambda: listed(ann.run("status", "--json"))[0][2] == "dead", "a daemon that is dead")
for flag in ("--watch", f"--html={PRIVATE}/x"):
    contains(ann.run("status", flag, code=1), "expected a MOUNTPOINT")
ann.umount()
ann.run("umount", other)
eve.umount()
