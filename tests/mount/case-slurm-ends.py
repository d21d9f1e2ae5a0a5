#!/usr/bin/python3
"""However a job or its daemon ends, the epilog leaves nothing, and the next job works: scancel in
mid-epoch, kill -9 of the daemon, a daemon that is stopped, kill -9 of all that slurmstepd started,
a full disk, the time limit."""

import re
import signal
import subprocess
import time

import numpy as np

import slurm
from lib import SOURCE, contains, equal, small
from servers import Nginx

slurm.enter()
N = 3000
images, _ = small(N, side=28)


def reading(cluster, source, *arguments):
    """A job that reads for ever, when its tasks have begun."""
    job = cluster.batch(f"srun {cluster.task} forever", f"--comment=epochfs:{source}", *arguments)
    cluster.wait_tasks(job, "reading")
    equal(len(cluster.mounts()), 2, "a mount on each node")
    return job


def next_job(cluster, source, what):
    cluster.check_nothing_left(what)
    job = cluster.batch(f"srun {cluster.task} epoch", f"--comment=epochfs:{source}")
    cluster.wait_over(job)
    cluster.check_union(job, N)
    cluster.check_nothing_left(f"the job after {what}")


def cancelled(cluster, source):
    job = reading(cluster, source)
    cluster.call("scancel", str(job))
    cluster.wait_over(job)
    equal(cluster.state(job), "CANCELLED", "state")


def daemon_killed(cluster, source):
    """Its tasks are told, and the job ends."""
    job = reading(cluster, source)
    cluster.kill_daemons()
    contains(cluster.wait_over(job), "Error")
    equal(cluster.state(job), "FAILED", "state")


def daemon_stopped(cluster, source):
    job = reading(cluster, source)
    cluster.kill_daemons(signal.SIGSTOP)
    cluster.call("scancel", str(job))
    cluster.wait_over(job)


def tasks_killed(cluster, source):
    job = reading(cluster, source)
    slurm.kill_tasks()
    cluster.wait_over(job)


def disk_full(cluster, source):
    """A cache that holds a quarter of the source: all is served, and the disk is free afterwards."""
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
    """Slurm looks every half a minute."""
    job = reading(cluster, source)
    end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 2))
    subprocess.run(["scontrol", "update", f"JobId={job}", f"EndTime={end}"], check=True,
                   env=cluster.environment)
    cluster.wait_over(job)
    equal(cluster.state(job), "TIMEOUT", "state")


with slurm.Cluster() as nodes, Nginx(SOURCE) as server:
    np.save(f"{nodes.dir}/images.npy", images)
    for ending in (cancelled, daemon_killed, daemon_stopped, tasks_killed, time_limit):
        begin = time.monotonic()
        ending(nodes, server.url)
        next_job(nodes, server.url, ending.__name__)
        print(f"{ending.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    disk_full(nodes, server.url)
