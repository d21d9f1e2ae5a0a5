#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, the service whose source cannot be opened: the reason is in the log, and how often the start is repeated."""

import os

import pages
import systemd
from lib import contains, equal

CONF = "SOURCE={}\nMOUNTPOINT=/mnt/mnist\nOPTIONS={}\n"
UNIT = "epochfs@mnist"


def fails(machine, reason, starts, *conf):
    """It fails for good after so many starts."""
    machine.service(CONF.format(*conf), drop_in="[Service]\nRestartSec=0\n")
    with machine.booted():
        contains(machine.run(f"systemctl start {UNIT}", code=1), f"Job for {UNIT}.service failed", f"journalctl -xeu {UNIT}.service")
        machine.wait_state(UNIT, "failed failed")
        log = machine.journal(UNIT)
        equal((log.count(f"Starting {UNIT}.service"), log.count(reason)), (starts, starts), f"starts, and reasons in the log: {log}")
        equal(machine.show(UNIT, "StartLimitIntervalUSec"), "5min", "the time in which it is started so often")
        equal(machine.mount_type("/mnt/mnist"), None, "what is mounted")


world = pages.World()
world.fashion("/data/mnist", "t10k")
world.web({"mnist": "/data/mnist"})
os.makedirs("/mnt/mnist")
of_the_case = systemd.Machine()
fails(of_the_case, "/data/none: No such file or directory", 5, "/data/none", "")
fails(of_the_case, "it has neither SHA256SUMS nor an index page", 5, "https://data.example.org/none/", "patience=20")
fails(of_the_case, "is it 'plan'?", 1, "/data/mnist", "plam=batch=3")
# The source is there when the first start has failed: the next one finds it.
of_the_case.service(CONF.format("/data/late", ""), drop_in="[Service]\nRestartSec=0\nExecStopPost=mv /data/mnist /data/late\n")
with of_the_case.booted():
    of_the_case.run(f"systemctl start {UNIT}", code=None)
    of_the_case.wait_state(UNIT, "active running")
    equal(of_the_case.show(UNIT, "NRestarts"), "1", "how often it was started again")
    equal(of_the_case.mount_type("/mnt/mnist"), "fuse.epochfs", "what is mounted")
