#!/usr/bin/python3
# needs: slurm-wlm root
"""However a job or its daemon ends, the epilog leaves nothing, and the next job works: scancel in
mid-epoch, kill -9 of the daemon, a daemon that is stopped, kill -9 of all that slurmstepd started,
kill -9 of slurmd. (The time limit and a full disk: slurm/case-limits.py.)"""

import glob
import os
import signal
import time

import numpy as np

import slurm
from lib import DEADLINE, SOURCE, contains, equal, small
from servers import Nginx, end_process

slurm.enter()
N = 1000
images, _ = small(N, side=28)


def cancelled(cluster, source):
    job = cluster.reading(source)
    cluster.call("scancel", str(job))
    cluster.wait_over(job)
    equal(cluster.state(job), "CANCELLED", "state")


def daemon_killed(cluster, source):
    """Its tasks get an error, and the job ends."""
    job = cluster.reading(source)
    cluster.kill_daemons()
    contains(cluster.wait_over(job), "Error")
    equal(cluster.state(job), "FAILED", "state")


def daemon_stopped(cluster, source):
    """A task with a request at the stopped daemon cannot even be killed; the epilog ends both,
    though late."""
    job = cluster.reading(source)
    cluster.kill_daemons(signal.SIGSTOP)
    cluster.call("scancel", str(job))
    cluster.wait_over(job, 2 * DEADLINE)
    cluster.resume()


def tasks_killed(cluster, source):
    job = cluster.reading(source)
    slurm.kill_tasks()
    cluster.wait_over(job)


def slurmd_killed(cluster, source):
    """The job and its mounts go on without slurmd; its successor runs the epilog."""
    job = cluster.reading(source)
    end_process(cluster.processes[2])
    for path in glob.glob(f"{cluster.dir}/out/{job}.*.reading"):
        os.unlink(path)
    cluster.wait_tasks(job, "reading")
    cluster.start_node(cluster.nodes[0])
    cluster.call("scancel", str(job))
    cluster.wait_over(job)


with slurm.Cluster() as nodes, Nginx(SOURCE, limit_rate=100_000) as server:  # staging goes on
    np.save(f"{nodes.dir}/images.npy", images)
    for ending in (cancelled, daemon_killed, daemon_stopped, tasks_killed, slurmd_killed):
        begin = time.monotonic()
        ending(nodes, server.url)
        nodes.check_nothing_left(ending.__name__)  # and the next one finds that jobs work
        print(f"{ending.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    nodes.check_next_job(server.url, N, "all of these")
