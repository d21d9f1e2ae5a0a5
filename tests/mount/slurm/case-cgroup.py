#!/usr/bin/python3
# needs: slurm-wlm root
"""proctrack/cgroup, as on most clusters: processes started by a step end with the step, even a
daemon in its own session. So job.sh keeps a step alive; and the prolog's mount belongs to no
step."""

import os
import signal

import numpy as np

import slurm
from lib import SOURCE, contains, equal, skip, small

slurm.enter()
if not os.path.isdir("/sys/fs/cgroup/freezer") or not os.access("/sys/fs/cgroup/freezer", os.W_OK):
    skip("no version 1 cgroup freezer to be written")
N = 500
images, _ = small(N, side=28)


def daemon_of_a_step(cluster):
    """Why a step must live as long as its mount."""
    job = cluster.batch(f"""
        at=$SLURM_TMPDIR/at; mkdir "$at"
        srun -N1 -n1 $EPOCHFS mount {SOURCE} "$at"
        if ls "$at" 2>/dev/null; then echo alive; else echo dead; fi
        $EPOCHFS umount "$at"; rmdir "$at"
        """)
    contains(cluster.wait_over(job), "dead")
    cluster.check_nothing_left("a daemon in a step")


def job_script(cluster):
    job = cluster.submit(f"{cluster.tools}/job.sh", SOURCE, cluster.task, "epoch")
    cluster.wait_over(job)
    equal(cluster.state(job), "COMPLETED", "state")
    cluster.check_union(job, N)
    cluster.check_nothing_left("job.sh")


def step_killed(cluster):
    """By SIGKILL, the daemon with it: job.sh takes the dead mounts away."""
    job = cluster.submit(f"{cluster.tools}/job.sh", SOURCE, cluster.task, "forever")
    cluster.wait_tasks(job, "reading")
    for pid in cluster.shells("node-mount"):
        os.kill(pid, signal.SIGKILL)
    cluster.wait_over(job)
    equal(cluster.state(job), "FAILED", "state")
    cluster.check_nothing_left("a step that was killed")


def prolog(cluster):
    """Steps come and go, and the mount is kept; a task that outlives the first step is ended."""
    job = cluster.batch(f"""
        srun -N2 -n2 bash -c 'setsid sleep 1000 & cat "$EPOCHFS_MOUNT/README.txt" >/dev/null'
        srun {cluster.task} epoch
        """, f"--comment=epochfs:{SOURCE}")
    cluster.wait_over(job)
    equal(cluster.state(job), "COMPLETED", "state")
    cluster.check_union(job, N)
    cluster.check_nothing_left("prolog and epilog")


with slurm.Cluster(proctrack="cgroup") as nodes:
    np.save(f"{nodes.dir}/images.npy", images)
    for test in (daemon_of_a_step, job_script, step_killed, prolog):
        test(nodes)
