#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, the service whose daemon dies: it is mounted again, with the blocks that are staged."""

import errno
import os

import pages
import systemd
from lib import content, equal, expect_error, status
from page_blocks import take
from servers import ended, wait_until

CONF = take("docs/cluster.md", "SOURCE=https://data.example.org")
FILE = "/mnt/mnist/t10k/source/t10k-images-idx3-ubyte"


def kill(machine, number):
    """Returns when the service is mounted again: the number of its process."""
    before = machine.show("epochfs@mnist", "MainPID")
    daemon = machine.pidfd(before)
    with open(machine.at(FILE), "rb", buffering=0) as f:
        equal(f.read(1000), images[:1000], "an open file")
        machine.run(f"systemctl kill --kill-who=main --signal={number} epochfs@mnist")
        equal(ended(daemon, systemd.DEADLINE), True, "the daemon has ended")
        wait_until(lambda: machine.show("epochfs@mnist", "MainPID") not in ("0", before), "another daemon")
        machine.wait_state("epochfs@mnist", "active running")
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # what the kernel has can be read for ever
        expect_error(errno.ENOTCONN, f.read, 1000)
    os.close(daemon)
    equal(machine.run("grep -c ' /mnt/mnist fuse.epochfs ' /proc/mounts"), "1\n", "mounts: the dead one is removed")


world = pages.World()
world.fashion("/data/mnist", "t10k")
images = content("/data/mnist/t10k-images-idx3-ubyte")
web = world.web({"mnist": "/data/mnist"})
os.makedirs("/mnt/mnist")
of_the_case = systemd.Machine()
of_the_case.service(CONF, drop_in="[Service]\nRestartSec=0\n")
with of_the_case.booted():
    of_the_case.run("systemctl start epochfs@mnist")
    equal(content(of_the_case.at(FILE)) == images, True, "all of a file")
    for times, signal_name in enumerate(("KILL", "ABRT"), 1):
        kill(of_the_case, signal_name)
        equal(of_the_case.show("epochfs@mnist", "NRestarts"), str(times), "how often it was started again")
        equal(content(of_the_case.at(FILE)) == images, True, f"all of the file after {signal_name}")
        remote = status(of_the_case.at("/mnt/mnist"))["remote"]
        equal(remote["demand_bytes"] + remote["background_bytes"], 0, f"bytes that it has fetched after {signal_name}: they are staged")

    # Also without another start.
    of_the_case.service(CONF, drop_in="[Service]\nRestart=no\n")
    of_the_case.run("systemctl daemon-reload\nsystemctl kill --kill-who=main --signal=KILL epochfs@mnist")
    of_the_case.wait_state("epochfs@mnist", "failed failed")
    equal(of_the_case.mount_type("/mnt/mnist"), None, "what is mounted: the dead mount is removed")
