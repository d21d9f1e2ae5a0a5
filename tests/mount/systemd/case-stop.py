#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, the service that is stopped, and the service whose mount was unmounted by hand."""

import contextlib
import os
import subprocess

import pages
import systemd
from lib import contains, equal
from servers import ended, wait_until

CONF = "SOURCE=/data/mnist\nMOUNTPOINT=/mnt/mnist\nOPTIONS=allow_other\n"
# It reads one byte, then, when it may, the others.
READER = "exec 3</mnt/mnist/t10k/source/t10k-images-idx3-ubyte; dd bs=1 count=1 status=none <&3 >/data/read; echo open; read -r; cat <&3 >>/data/read"


def line_of(setting):
    with open("/etc/systemd/system/epochfs@.service", encoding="utf-8") as unit:
        return next(line for line in unit if line.startswith(setting))


def start(machine):
    """Returns a descriptor of the daemon."""
    machine.run("systemctl start epochfs@mnist")
    equal(machine.mount_type("/mnt/mnist"), "fuse.epochfs", "what is mounted")
    return machine.pidfd(machine.show("epochfs@mnist", "MainPID"))


def check_ended(machine, daemon, mounted=None):
    """The service and its daemon have ended well, and it is not started again."""
    equal(ended(daemon, systemd.DEADLINE), True, "the daemon has ended")
    os.close(daemon)
    machine.wait_state("epochfs@mnist", "inactive dead")
    equal(machine.mount_type("/mnt/mnist"), mounted, "what is mounted")
    equal([machine.show("epochfs@mnist", word) for word in ("Result", "NRestarts")], ["success", "0"], "how it has ended")


@contextlib.contextmanager
def reader(machine):
    with machine.start(READER, stdin=subprocess.PIPE) as process:
        equal(process.stdout.readline(), b"open\n", "a reader")
        yield process
        process.stdin.close()


def go_on(process):
    """Let the reader read. Returns its exit code and what it has said."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    return process.wait(systemd.DEADLINE), process.stdout.read()


def nobody_uses_it(machine):
    daemon = start(machine)
    machine.run("systemctl stop epochfs@mnist")
    check_ended(machine, daemon)


def a_file_is_open(machine):
    """It can be read until it is closed; no other file can be opened."""
    daemon = start(machine)
    with reader(machine) as process, machine.start("systemctl stop epochfs@mnist") as stop:
        wait_until(lambda: machine.mount_type("/mnt/mnist") is None, "it is unmounted", stop)
        equal(go_on(process), (0, b""), "the reader")
        equal(stop.wait(systemd.DEADLINE), 0, "exit code of `systemctl stop`")
    with open("/data/read", "rb") as f:
        equal(f.read() == images, True, "it has read the file's bytes")
    check_ended(machine, daemon)


def a_file_stays_open(machine):
    """The limit is 20 s; here it is shorter."""
    machine.service(CONF, drop_in=f"[Service]\nExecStop=\n{line_of('ExecStop=').replace('timeout 20', 'timeout 0.01')}")
    machine.run("systemctl daemon-reload")
    daemon = start(machine)
    with reader(machine) as process:
        machine.run("systemctl stop epochfs@mnist")
        check_ended(machine, daemon)
        code, said = go_on(process)
        equal(code, 1, "exit code of the reader")
        contains(said.decode(), "Transport endpoint is not connected")


def unmounted_by_somebody(machine):
    for command in ("umount", "epochfs umount"):
        daemon = start(machine)
        machine.run(f"{command} /mnt/mnist")
        check_ended(machine, daemon)


def another_mount_instead(machine):
    """It is left alone, though it is there before the service has ended."""
    os.mkfifo("/data/fifo")
    machine.service(CONF, drop_in=f"[Service]\nExecStopPost=\nExecStopPost=/bin/sh -c 'read line </data/fifo'\n{line_of('ExecStopPost=')}")
    machine.run("systemctl daemon-reload")
    daemon = start(machine)
    machine.run("umount /mnt/mnist\nepochfs mount /data/mnist /mnt/mnist\necho >/data/fifo")
    check_ended(machine, daemon, "fuse.epochfs")
    machine.run("epochfs umount /mnt/mnist")


world = pages.World()
world.fashion("/data/mnist", "t10k")
with open("/data/mnist/t10k-images-idx3-ubyte", "rb") as source:
    images = source.read()
os.makedirs("/mnt/mnist")
of_the_case = systemd.Machine()
of_the_case.service(CONF)
contains(line_of("ExecStop="), "timeout 20")
with of_the_case.booted():
    for test in (nobody_uses_it, a_file_is_open, unmounted_by_somebody, another_mount_instead, a_file_stays_open):
        test(of_the_case)
