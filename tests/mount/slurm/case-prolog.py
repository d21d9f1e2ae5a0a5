#!/usr/bin/python3
# needs: slurm-wlm root
"""Prolog and epilog: each node mounts what the job's comment names, as its user; the tasks read
disjoint ranks with the epoch as their union; afterwards nothing is left. Whatever a comment says,
the job runs and its nodes stay in service. The next prolog removes what dead jobs have left."""

import contextlib
import os
import re
import signal
import socket
import subprocess

import numpy as np

import slurm
from lib import PRIVATE, SOURCE, contains, content, equal, small, text
from page_blocks import take
from servers import took, wait_until

slurm.enter()
N = 1000
images, _ = small(N, side=28)
TASKS = 'echo "mount: $EPOCHFS_MOUNT"; srun {task} epoch'


def reads(cluster):
    """Two nodes with two tasks each. The printed figures are the waits of a job."""
    job = cluster.batch(TASKS.format(task=cluster.task), f"--comment=epochfs:{SOURCE}")
    said = cluster.wait_over(job)
    cluster.check_nothing_left("after a job")
    cluster.check_union(job, N)
    contains(said, f"mount: {cluster.dir}/jobs.{cluster.nodes[0]}/{job}/mnt")
    first = max(float(s) for s in re.findall(r"first batch (\S+)", said))
    prolog = cluster.seconds("prolog", job)
    print(f"prolog and mount {prolog:.3f} s, first batch {first:.3f} s, epilog "
          f"{cluster.seconds('epilog', job):.3f} s")
    took(prolog + first, "prolog, mount and first batch", 20)


def page(cluster):
    """The job script of docs/slurm.md, with another source, whose ./train lists the batches that it gets."""
    lines = take("docs/slurm.md", "#SBATCH --nodes=2")
    contains(lines, "s3://bucket/mnist")
    script = slurm.program(f"{cluster.dir}/page.sh", "#!/bin/bash\n" + lines.replace("s3://bucket/mnist", SOURCE))
    train = slurm.program(f"{cluster.dir}/out/train", '#!/bin/bash\necho "$(basename "$1"): $(ls "$1/epoch=0/npy" | grep -c image01)"\n')
    said = cluster.wait_over(int(cluster.call("sbatch", "--parsable", f"--output={cluster.dir}/out/%j", script)))
    os.unlink(train)
    equal(sorted(line for line in said.splitlines() if line.startswith("batch=")),
          [f"batch=128,rank={k}of8,seed=7: 1" for k in range(8)], "ranks, and batches of their 125 samples")
    cluster.check_nothing_left("after the page's job")


def no_mount(cluster, what, comment, *words):
    """The job runs, and its output says why it has no mount."""
    job = cluster.batch('ls "$EPOCHFS_MOUNT"; cat "$EPOCHFS_MOUNT/ERROR.txt"',
                        f"--comment=epochfs:{comment}")
    contains(cluster.wait_over(job), "ERROR.txt", f"{cluster.nodes[0]}: epochfs: ", *words)
    cluster.check_nothing_left(what)
    took(cluster.seconds("prolog", job), f"the prolog, {what}", 20)


def typos(cluster):
    no_mount(cluster, "after a typo", "/no/such/source", "/no/such/source: No such file")
    no_mount(cluster, "after a bad option", f"{SOURCE} plam=batch=4", "plam")
    no_mount(cluster, "after no source", "", "epochfs")
    canary = f"{PRIVATE}/canary"
    no_mount(cluster, "after a hostile comment", f"-o;$(touch {canary})`touch {canary}`' {canary}",
             "touch")
    equal(os.path.exists(canary), False, "a comment was run")


def other_comments(cluster):
    job = cluster.batch('echo "mount: ${EPOCHFS_MOUNT-none}"', "--comment=see epochfs:ticket 7")
    contains(cluster.wait_over(job), "mount: none")


def blanks_and_caches(cluster):
    """A space in the name; a staged path, and its bytes in the node's cache."""
    os.symlink(SOURCE, f"{PRIVATE}/two words")
    job = cluster.batch(
        f'srun {cluster.task} epoch; ls "${{EPOCHFS_MOUNT%/mnt}}/cache/staged"',
        fr"--comment=epochfs:{PRIVATE}/two\040words ,plan=batch=16,,cache=node,")
    said = cluster.wait_over(job)
    cluster.check_union(job, N)
    equal(len(re.findall(r"^[0-9a-f]{64}$", said, re.M)), 2, f"staged files: {said}")
    cluster.check_nothing_left("after a job with a cache")


def silent_remote(cluster):
    """A remote that accepts connections and sends nothing: the prolog ends in time."""
    settings = f"{cluster.dir}/settings.sh"
    before = content(settings)
    with open(settings, "a", encoding="ascii") as f:
        f.write("mount_limit=3\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        no_mount(cluster, "after a remote that hangs",
                 f"http://127.0.0.1:{server.getsockname()[1]}/ patience=600,timeout=600",
                 "was not mounted in 3 s")
    with open(settings, "wb") as f:
        f.write(before)


def leave_behind(cluster, job, boot, ended):
    """What a dead job may have left: a folder, a cache, a mount without a daemon."""
    folder = f"{cluster.dir}/jobs.{cluster.nodes[0]}/{job}"
    os.makedirs(f"{folder}/mnt")
    os.makedirs(f"{folder}/cache/staged")
    for name, value in (("boot", boot), ("uid", "65534")) + ((("ended", ""),) if ended else ()):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(f"{value}\n")
    os.chown(f"{folder}/mnt", slurm.USER, slurm.USER)
    cluster.call(cluster.environment["EPOCHFS"], "mount", SOURCE, f"{folder}/mnt")
    for pid in cluster.daemons():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not cluster.daemons(), "the end of a daemon")


def leftovers(cluster):
    boot = text("/proc/sys/kernel/random/boot_id").strip()
    leave_behind(cluster, 900001, "11111111-2222-3333-4444-555555555555", ended=False)
    leave_behind(cluster, 900002, boot, ended=True)
    leave_behind(cluster, 900003, boot, ended=False)  # may be a job that is just beginning
    equal(len(cluster.mounts()), 3, "mounts without daemons")
    job = cluster.batch(TASKS.format(task=cluster.task), f"--comment=epochfs:{SOURCE}")
    cluster.wait_over(job)
    cluster.check_union(job, N)
    equal([os.path.basename(path) for path in cluster.left()], ["900003"], "what a prolog leaves")
    subprocess.run([f"{cluster.tools}/clean"], check=True, env=dict(
        cluster.environment, SLURMD_NODENAME=cluster.nodes[0],
        EPOCHFS_SLURM_SETTINGS=f"{cluster.dir}/settings.sh"))
    cluster.check_nothing_left("after clean")


def lasting_caches(cluster):
    """Each user has a lasting cache."""
    with open(f"{cluster.dir}/settings.sh", "a", encoding="ascii") as f:
        f.write(f"caches={cluster.dir}/caches.$SLURMD_NODENAME options=cache=node\n")
    for turn in ("first", "second"):
        job = cluster.batch(f"srun {cluster.task} epoch; cat $EPOCHFS_MOUNT/.epochfs/status.json",
                            f"--comment=epochfs:{SOURCE}")
        said = cluster.wait_over(job)
        cluster.check_union(job, N)
        fetched = int(re.search(r'"distinct_bytes": *(\d+)', said)[1])
        equal(fetched > 0, turn == "first", f"bytes fetched by the {turn} job: {fetched}")
        cluster.check_nothing_left(f"after the {turn} job with a lasting cache",
                                   f"{cluster.dir}/caches.{cluster.nodes[0]}")


with slurm.Cluster() as nodes:
    np.save(f"{nodes.dir}/images.npy", images)
    for test in (reads, page, typos, other_comments, blanks_and_caches, silent_remote, leftovers,
                 lasting_caches):
        test(nodes)
    wait_until(nodes.idle, "both nodes are in service")
