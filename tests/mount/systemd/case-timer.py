#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, "Numbers to watch": a timer of systemd instead of cron's line collects the metrics of the node."""

import os
import re

import page_blocks
import pages
import prometheus
import systemd
from lib import contains, content, equal, text

PAGE = "docs/cluster.md"
COMMAND = "systemd-run --on-calendar=minutely"
OUT = "/var/lib/prometheus/node-exporter"

world = pages.World()
world.fashion("/data/mnist", "t10k")
os.makedirs("/mnt/mnist")
machine = systemd.Machine()
machine.empty("/var/lib/prometheus")
os.mkdir(OUT)
os.symlink(systemd.SCRIPTS, "/usr/share/epochfs")
contains(text(page_blocks.ROOT, PAGE), f"`{COMMAND}` works as well")
line = re.search("/usr/share/.*", page_blocks.take(PAGE, "* * * * *"))[0]
with machine.booted():
    machine.run("epochfs mount /data/mnist /mnt/mnist")
    machine.run(f"{COMMAND} --unit=metrics {line}")
    equal(machine.show("metrics.timer", "ActiveState"), "active", "the timer")
    contains(machine.run("systemctl cat metrics.timer"), "OnCalendar=minutely")
    machine.run("systemctl start metrics.service")  # what the timer does every minute
    machine.wait_state("metrics.service", "inactive dead")
    found = prometheus.parse(content(OUT, "epochfs.prom"))
    equal(prometheus.value_of(found, "epochfs_up", mountpoint="/mnt/mnist"), 1, "epochfs_up")
    machine.run("epochfs umount /mnt/mnist")
