#!/usr/bin/python3
"""mount-scripts/prometheus-textfile: the metrics of several mounts become one text that keeps all
rules, and a mount that is dead is told of."""

import os
import shutil
import subprocess
import sys

import prometheus
from lib import DEADLINE, EPOCHFS, PRIVATE, SOURCE, content, equal, run, small, status, stop
from servers import start_at

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "../../mount-scripts/prometheus-textfile")
OUT = f"{PRIVATE}/out put"
# In a mount namespace of its own: away with the mounts of others, then what is given.
ALONE = """
import os, re, subprocess, sys
for line in open("/proc/self/mountinfo", "rb").read().splitlines():
    where = re.sub(rb"\\\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), line.split()[4])
    if b" - fuse.epochfs " in line and not where.startswith(os.fsencode(sys.argv[1])):
        subprocess.run([b"umount", b"-l", where])
os.execv(sys.argv[2], sys.argv[2:])
"""


def collect(*mountpoints, prefix=()):
    done = subprocess.run([*prefix, SCRIPT, OUT, *mountpoints], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE,
                          env=dict(os.environ, EPOCHFS=EPOCHFS), check=False)
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
if os.geteuid() == 0 and shutil.which("unshare"):
    alone = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", ALONE, PRIVATE]
    equal(ups(collect(prefix=alone)), {one.at: 1, two.at: 1}, "mounts that it finds itself")
two.kill()
two.wait(DEADLINE)
equal(ups(collect(one.at, two.at)), {one.at: 1, two.at: 0}, "a dead one")
run("umount", two.at)
stop(one)
