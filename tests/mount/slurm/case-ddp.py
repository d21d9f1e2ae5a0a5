#!/usr/bin/python3
# needs: python3-torch slurm-wlm root
"""The program of docs/slurm.md as a job of Slurm, by the line of the page: eight tasks on two nodes, each with its
mount; one of four tasks that was stopped goes on with two, and each step has the samples that it has without a stop."""

import os
import re
import shutil

import slurm
from lib import SOURCE, contains, equal, small
from page_blocks import take

slurm.enter()

STEPS = 4  # of 256 samples in an epoch
TASK = take("docs/slurm.md", "scontrol show")  # the nodes of the test are this machine, and its python3 may be another
for page_has, here in ((re.search(r"\$\(scontrol .*?-n 1\)", TASK)[0], "127.0.0.1"),
                       ("\nexec python3 ddp.py", '\nexport GLOO_SOCKET_IFNAME=lo PYTHONPATH={dir}/python\nexec /usr/bin/python3 {dir}/ddp.py "$@"')):
    equal(page_has in TASK, True, f"{page_has!r} in the page's job")
    TASK = TASK.replace(page_has, here)


def steps(output):
    """What rank 0 has printed: (epoch, batch) of the next batch, and the sum of the step's samples."""
    return re.findall(r"^until (epoch \d batch \d), \d ranks: (samples \d+)$", output, re.M)


def main():
    small(256 * STEPS, side=28)
    with slurm.Cluster() as cluster:
        page = take("docs/slurm.md", "# ddp.py\n")
        slurm.program(f"{cluster.dir}/ddp.py", page.replace("torch.nn.Linear(784", "torch.nn.Linear(28 * 29"))
        shutil.copytree(os.path.join(slurm.HERE, "../../python/epochfs"), f"{cluster.dir}/python/epochfs")
        task = slurm.program(f"{cluster.dir}/task.sh", TASK.format(dir=cluster.dir))

        def run(*arguments, tasks=4):
            return over(cluster.submit(f"--ntasks-per-node={tasks // 2}", f"{cluster.tools}/job.sh", SOURCE, task, *arguments))

        def as_the_page_says():
            line = take("docs/slurm.md", "sbatch -N2").split()
            here = {"job.sh": f"{cluster.tools}/job.sh", "s3://bucket/fashion-mnist": SOURCE, "./task.sh": task}
            equal(sorted(set(line) & set(here)), sorted(here), f"words of {line}")
            line[1:1] = ["--parsable", f"--output={cluster.dir}/out/%j"]
            return over(int(cluster.call(*(here.get(word, word) for word in line))))

        def over(job):
            output = cluster.wait_over(job, 200)
            equal(cluster.state(job), "COMPLETED", f"state: {output}")
            cluster.check_nothing_left("a job")
            return output

        whole = as_the_page_says()
        contains(whole, "8 ranks", "done")
        equal(len(steps(whole)), 2 * STEPS, f"steps: {whole}")
        os.remove(f"{cluster.dir}/out/checkpoint.pt")
        broken = run("1", "1")
        equal(len(steps(broken)), STEPS + 1, f"steps until the stop: {broken}")
        rest = run(tasks=2)
        contains(rest, "2 ranks", "done")
        equal(steps(broken) + steps(rest), steps(whole), "samples of each step")


main()
