#!/usr/bin/python3
"""What a job on a compute node waits for, on a real Slurm of two nodes (tests/mount/slurm.py): the
prolog with its mount, by the prolog's own clock, and the first batch that a task reads. (By
bench/run node.) Local source, both nodes on this machine, at the same time.
"""

import re
import statistics

import numpy as np

import slurm
from bars import ROUNDS, row, say
from lib import SOURCE, small

PLAIN = "--comment=nothing to mount"

slurm.enter()
images, _ = small(60000, side=28)
prologs, firsts, epilogs, plain = [], [], [], []
with slurm.Cluster() as cluster:
    np.save(f"{cluster.dir}/images.npy", images)
    for turn in range(ROUNDS):
        say(f"job {turn + 1} of {ROUNDS}")
        job = cluster.batch("true", PLAIN)
        cluster.wait_over(job)
        plain.append(cluster.seconds("prolog", job))
        job = cluster.batch(f"srun {cluster.task} first", f"--comment=epochfs:{SOURCE}")
        said = cluster.wait_over(job)
        cluster.check_nothing_left(f"job {job}")
        prologs.append(cluster.seconds("prolog", job))
        epilogs.append(cluster.seconds("epilog", job))
        firsts.append(max(float(s) for s in re.findall(r"first batch (\S+)", said)))

total = statistics.median(a + b for a, b in zip(prologs, firsts))
row("Slurm: prolog, mount, first batch", f"{total:.3f} s",
    f"prolog of other jobs {statistics.median(plain):.3f} s", total, "<=", 0.5)
row("Slurm: epilog, all is gone", f"{statistics.median(epilogs):.3f} s", "-",
    statistics.median(epilogs), "-", 0)
