#!/usr/bin/python3
"""Images per second of a job that trains (busy_job.py), with the push and without, in turn. (By
bench/run busy.) all: torch has all processors, and its threads spin while they wait for one
another, so none is ever free; one: it leaves one free."""

import os
import statistics
import subprocess
import sys

from bars import HERE, ROUNDS, mount, row, say
from lib import equal

SOURCE = "/usr/share/datasets/fashion-mnist"
EPOCHS = 3


def images_per_s(ahead, threads, wait):
    options = ["plan=batch=128+seed=7", *ahead]
    with mount(SOURCE, ",".join(options)) as daemon:
        said = subprocess.run(
            [f"{HERE}/busy_job.py", f"{daemon.at}/train/batches/batch=128,seed=7", str(threads),
             str(EPOCHS)], env={**os.environ, "OMP_WAIT_POLICY": wait}, check=True,
            stdout=subprocess.PIPE, text=True).stdout.split()
    return float(said[0]), said[1]


def main(which):
    processors = len(os.sched_getaffinity(0))
    threads, wait, bound = {"all": (processors, "active", 0.97),
                            "one": (max(processors - 1, 1), "passive", 1.1)}[which]
    without, default = [], []
    for _ in range(ROUNDS):
        off, loss = images_per_s(["ahead=0"], threads, wait)
        on, same = images_per_s([], threads, wait)
        equal(loss, same, "the last loss with the push and without")
        without.append(off)
        default.append(on)
        say(f"{threads} threads: ahead=0 {off:.0f} images/s, default {on:.0f}")
    row(f"training, {threads} of {processors} processors busy",
        f"{statistics.median(default):.0f} images/s",
        f"ahead=0 {statistics.median(without):.0f}/s",
        statistics.median(a / b for a, b in zip(default, without)), ">=", bound)


main(sys.argv[1])
