#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, "What to put where": the line for slurmd.service removes what a crash of the node has left, before slurmd
starts, and never keeps it from starting. slurmd itself is a stand-in here; tests/mount/slurm has the real one."""

import os
import re

import page_blocks
import pages
import systemd
from lib import content, equal, text

LINE = re.search("`(ExecStartPre=-(/usr/share/epochfs/slurm/clean))`", text(page_blocks.ROOT, "docs/cluster.md"))
JOBS = "/var/lib/epochfs/jobs"
SLURMD = f"""
[Service]
{LINE[1]}
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'ls {JOBS} >/data/jobs'
[Install]
WantedBy=multi-user.target
"""


def leave(job, boot):
    """What prolog has made for a job of that boot."""
    for name in ("mnt", "cache"):
        os.makedirs(f"{JOBS}/{job}/{name}")
    for name, value in (("boot", boot), ("uid", "61001")):
        machine.write(f"{JOBS}/{job}/{name}", f"{value}\n")


world = pages.World()
machine = systemd.Machine()
machine.empty("/var/lib/epochfs")
os.symlink(systemd.SCRIPTS, "/usr/share/epochfs")
machine.write("/etc/systemd/system/slurmd.service", SLURMD)
leave(900001, "11111111-2222-3333-4444-555555555555")
leave(900002, text("/proc/sys/kernel/random/boot_id").strip())  # may be a living job: no controller answers
with machine.booted():
    machine.run("systemctl enable --now slurmd")
    equal(content("/data/jobs"), b"900002\n", "folders of jobs that slurmd finds")
os.remove("/usr/share/epochfs")
with machine.booted():
    equal(machine.show("slurmd", "ActiveState"), "active", "slurmd without clean")
