#!/usr/bin/python3
# needs: slurm-wlm root
"""job.sh, which needs no administrator: a mount for the job on each node, held by one long-lived
step while others come and go. However the job ends, nothing is left; the next job removes what
SIGKILL leaves."""

import signal
import subprocess
import time

import numpy as np

import slurm
from lib import SOURCE, contains, equal, small

slurm.enter()
N = 1000
images, _ = small(N, side=28)


def submit(cluster, *arguments, source=SOURCE, **environment):
    return cluster.submit(f"{cluster.tools}/job.sh", source, *arguments, **environment)


def reads(cluster):
    job = submit(cluster, cluster.task, "epoch", EPOCHFS_OPTIONS="plan=batch=16+seed=7")
    print(cluster.wait_over(job))
    equal(cluster.state(job), "COMPLETED", "state")
    cluster.check_union(job, N)
    cluster.check_nothing_left("after a job")


def typo(cluster):
    job = submit(cluster, cluster.task, "epoch", source="/no/such/source")
    contains(cluster.wait_over(job), "/no/such/source: No such file")
    equal(cluster.state(job), "FAILED", "state")
    cluster.check_nothing_left("after a typo")


def reading(cluster):
    job = submit(cluster, cluster.task, "forever")
    cluster.wait_tasks(job, "reading")
    equal(len(cluster.mounts()), 2, "a mount on each node")
    return job


def cancelled(cluster):
    job = reading(cluster)
    cluster.call("scancel", str(job))
    cluster.wait_over(job)


def told_of_the_limit(cluster):
    """As Slurm does a minute before the end."""
    job = reading(cluster)
    cluster.call("scancel", "--batch", "--signal=TERM", str(job))
    cluster.wait_over(job)


def daemon_killed(cluster):
    job = reading(cluster)
    cluster.kill_daemons()
    contains(cluster.wait_over(job), "ended with exit code 137")


def kill_all(cluster):
    """Kill everything at once, so that nothing of the job can clean up."""
    job = reading(cluster)
    slurm.kill_tasks(signal.SIGSTOP)  # none sees that another has ended
    cluster.kill_daemons()
    slurm.kill_tasks()
    cluster.wait_over(job)
    equal((len(cluster.mounts()), len(cluster.left())), (2, 2), "mounts and folders that are left")


def all_killed(cluster):
    """The next job cleans up."""
    kill_all(cluster)
    reads(cluster)


def all_killed_then_clean(cluster):
    """Or the administrator's script, which removes only mounts, and then the next job."""
    kill_all(cluster)
    subprocess.run([f"{cluster.tools}/clean"], check=True, env=dict(
        cluster.environment, SLURMD_NODENAME=cluster.nodes[0],
        EPOCHFS_SLURM_SETTINGS=f"{cluster.dir}/settings.sh"))
    equal((cluster.mounts(), cluster.daemons()), ([], []), "mounts and processes after clean")
    reads(cluster)


with slurm.Cluster() as nodes:
    np.save(f"{nodes.dir}/images.npy", images)
    for test in (reads, typo, cancelled, told_of_the_limit, daemon_killed, all_killed,
                 all_killed_then_clean):
        begin = time.monotonic()
        test(nodes)
        nodes.check_nothing_left(test.__name__)
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
