#!/usr/bin/python3
"""mount-scripts/prometheus-textfile: the metrics of several mounts become one text that keeps all
rules, and a dead mount is reported."""

import os
import shlex
import subprocess

import prometheus
from lib import DEADLINE, PRIVATE, SOURCE, contains, content, equal, run, small, status, stop
from page_blocks import take
from servers import start_at

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../../mount-scripts/prometheus-textfile")
OUT = f"{PRIVATE}/out put"


def collect(*mountpoints):
    done = subprocess.run([SCRIPT, OUT, *mountpoints], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE,
                          check=False)
    equal((done.returncode, done.stdout), (0, b""), "what the script says")
    equal(os.listdir(OUT), ["epochfs.prom"], "files that are there")
    text = content(OUT, "epochfs.prom")
    prometheus.promtool(text)
    return prometheus.parse(text)


def ups(families):
    return {dict(labels)["mountpoint"]: value for (_, labels), value in
            families["epochfs_up"].samples.items()}


os.mkdir(OUT)
small()
one = start_at("one", SOURCE)
two = start_at('quo"te \\ mount', SOURCE, f"cache={PRIVATE}/cache.two")
content(two.at, "train/batches/batch=10/npz/000000.npz")
found = collect(one.at, two.at)
equal(ups(found), {one.at: 1, two.at: 1}, "epochfs_up")
for family in found.values():
    for _, labels in family.samples:
        equal(dict(labels)["mountpoint"] in (one.at, two.at), True, f"labels of {family.name}")
equal(len(found["epochfs_datasets"].samples), 2, "a series for each mount")
equal(prometheus.value_of(found, "epochfs_remote_source_bytes", mountpoint=two.at),
      status(two.at)["remote"]["total_bytes"], "a number of one mount")
equal(oct(os.stat(f"{OUT}/epochfs.prom").st_mode & 0o777), "0o644", "node_exporter may read it")
if os.geteuid() == 0:  # who sees no others
    equal(ups(collect()), {one.at: 1, two.at: 1}, "mounts that it finds itself")
    # The line for cron: five times, a user, a command.
    *times, user, line = take("docs/cluster.md", "prometheus-textfile /var").split(None, 6)
    equal((len(times), user), (5, "root"), "the page's line for cron")
    os.mkdir(f"{PRIVATE}/node-exporter")
    for at, here in (("/usr/share/epochfs/prometheus-textfile", SCRIPT),
                     ("/var/lib/prometheus/node-exporter", f"{PRIVATE}/node-exporter")):
        contains(line, at)
        line = line.replace(at, shlex.quote(here))
    subprocess.run(["sh", "-c", line], check=True)
    equal(ups(prometheus.parse(content(PRIVATE, "node-exporter/epochfs.prom"))), {one.at: 1, two.at: 1}, "by cron's line")
two.kill()
two.wait(DEADLINE)
equal(ups(collect(one.at, two.at)), {one.at: 1, two.at: 0}, "a dead one")
run("umount", two.at)
stop(one)
