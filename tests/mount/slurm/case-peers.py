#!/usr/bin/python3
# needs: slurm-wlm root
"""A job that says peers: its nodes are one cache, by prolog and by job.sh. The origin sends each byte once
to both nodes, nothing is left afterwards however the job ends, and the job also works without peers."""

import os
import re
import signal
import subprocess

import numpy as np

import slurm
from lib import PRIVATE, SOURCE, contains, equal, small, text
from page_blocks import take
from servers import Nginx, check_once, sent, wait_until

slurm.enter()
N = 4000
images, _ = small(N, side=28)
SIZES = {f"/{n}": os.path.getsize(f"{SOURCE}/{n}") for n in os.listdir(SOURCE)}


def name_nodes(cluster):
    """Names that resolve, in a mount namespace of our own."""
    hosts = f"{PRIVATE}/hosts"
    with open(hosts, "w", encoding="ascii") as f:
        f.write("127.0.0.1 localhost\n" + "".join(f"127.0.1.{i + 1} {n}\n" for i, n in enumerate(cluster.nodes)))
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)


def rings(cluster):
    """Processes of rings: by their folder, or that of their configuration."""
    found = []
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            words = text("/proc", pid, "cmdline")
            if "/peers" in words and cluster.dir in words and ("nginx" in words or "run" in words.split("\0")):
                found.append(int(pid))
        except OSError:
            pass  # it has just ended
    return found


def nothing_left(cluster, what):
    cluster.check_nothing_left(what)
    wait_until(lambda: not rings(cluster), f"{what}: no process of a ring is left: {rings(cluster)}")


def once(origin, cluster, job, what):
    cluster.check_union(job, N)
    check_once(origin.log(), SIZES, what)
    origin.forget()
    nothing_left(cluster, what)


def by_prolog(origin, cluster):
    page = re.fullmatch(r'#SBATCH --comment="(epochfs:)\S+ (peers=)500g(,plan=\S+)"', take("docs/cluster.md", " peers=500g").strip())
    job = cluster.batch(f"srun {cluster.task} epoch; srun bash -c 'cat $EPOCHFS_MOUNT/.epochfs/status.json'",
                        f"--comment={page[1]}{origin.url}/ {page[2]}1g{page[3]},keep=pin")
    said = cluster.wait_over(job)
    contains(said, '"peers_url": "http://127.0.1.1:', '"peers_url": "http://127.0.1.2:', '"peers_trouble": ""')
    once(origin, cluster, job, "a job by prolog")


def by_job_sh(origin, cluster):
    job = cluster.submit(f"{cluster.tools}/job.sh", f"{origin.url}/", cluster.task, "epoch",
                         EPOCHFS_OPTIONS="plan=batch=16+seed=7,peers")
    cluster.wait_over(job)
    equal(cluster.state(job), "COMPLETED", "state")
    once(origin, cluster, job, "a job by job.sh")


def cancelled(origin, cluster):
    """While its peers hang."""
    job = cluster.reading(f"{origin.url}/ peers")
    equal(len(rings(cluster)) >= 4, True, f"processes of two rings: {rings(cluster)}")
    for pid in rings(cluster):
        os.kill(pid, signal.SIGSTOP)
    cluster.call("scancel", str(job))
    cluster.wait_over(job)
    nothing_left(cluster, "a job that was cancelled")
    origin.forget()


def without(origin, cluster):
    """Nodes whose names are unknown: the job works without peers."""
    subprocess.run(["umount", "/etc/hosts"], check=True)
    job = cluster.batch(f"srun {cluster.task} epoch", f"--comment=epochfs:{origin.url}/ peers")
    cluster.wait_over(job)
    cluster.check_union(job, N)
    equal(sent(origin.log()) >= 2 * sum(SIZES.values()), True, "both nodes have asked the origin")
    nothing_left(cluster, "a job without peers")


with slurm.Cluster() as the_cluster, Nginx(SOURCE) as the_origin:
    name_nodes(the_cluster)
    np.save(f"{the_cluster.dir}/images.npy", images)
    by_prolog(the_origin, the_cluster)
    by_job_sh(the_origin, the_cluster)
    cancelled(the_origin, the_cluster)
    without(the_origin, the_cluster)
