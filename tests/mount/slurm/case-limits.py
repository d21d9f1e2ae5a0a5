#!/usr/bin/python3
# needs: slurm-wlm root
"""The time limit of a job, a disk that is full, a cache that is kept: as slurm/case-ends.py."""

import re
import subprocess
import time

import numpy as np

import slurm
from lib import SOURCE, contains, equal, small
from servers import Nginx

slurm.enter()
N = 3000
images, _ = small(N, side=28)


def lasting_cache(cluster, source):
    """In a lasting cache a killed daemon leaves no lock and no unfinished file."""
    caches = f"{cluster.dir}/caches"
    with open(f"{cluster.dir}/settings.sh", "a", encoding="ascii") as f:
        f.write(f"caches={caches}.$SLURMD_NODENAME\n")
    job = cluster.reading(source)
    cluster.kill_daemons()
    cluster.wait_over(job)
    for node in cluster.nodes:
        cluster.check_nothing_left("a killed daemon", f"{caches}.{node}")


def disk_full(cluster, source):
    """A cache for a quarter of the source: all bytes are served, and the disk is free
    afterwards."""
    disks = [f"{cluster.dir}/jobs.{node}" for node in cluster.nodes]
    for disk in disks:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "small", disk], check=True)
    job = cluster.batch(f"srun {cluster.task} epoch; cat $EPOCHFS_MOUNT/.epochfs/status.json",
                        f"--comment=epochfs:{source} cache_size=100%")
    said = cluster.wait_over(job)
    cluster.check_union(job, N)
    contains(said, '"refused_inserts"')
    equal(int(re.search(r'"refused_inserts": *(\d+)', said)[1]) > 0, True, "the cache was full")
    cluster.check_nothing_left("after a full disk")
    for disk in disks:
        subprocess.run(["umount", disk], check=True)


def time_limit(cluster, source):
    """Slurm checks the limit every half minute."""
    job = cluster.reading(source)
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 2))
    subprocess.run(["scontrol", "update", f"JobId={job}", f"EndTime={end}"], check=True,
                   env=cluster.environment)
    cluster.wait_over(job)
    equal(cluster.state(job), "TIMEOUT", "state")


with slurm.Cluster() as nodes, Nginx(SOURCE) as server:
    np.save(f"{nodes.dir}/images.npy", images)
    time_limit(nodes, server.url)
    nodes.check_next_job(server.url, N, "the time limit")
    disk_full(nodes, server.url)
    lasting_cache(nodes, server.url)
