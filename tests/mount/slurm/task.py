#!/usr/bin/python3
"""A task of the jobs of case-slurm-*.py: reads its rank of the images below $EPOCHFS_MOUNT.

    task.py first      its first batch
    task.py epoch      the epoch, once; <job>.<task>.read.npy has the samples read
    task.py forever    one epoch after another; makes <job>.<task>.reading when it has begun

The files are made in the current folder. Each image must equal that of images.npy next to this
program.
"""

import itertools
import os
import select
import sys
import time

import numpy as np

TASK = f"{os.environ['SLURM_JOB_ID']}.{os.environ['SLURM_PROCID']}"
RANK = f"rank={os.environ['SLURM_PROCID']}of{os.environ['SLURM_NTASKS']}"
PLAN = f"{os.environ['EPOCHFS_MOUNT']}/train/batches/batch=16,{RANK},seed=7"
images = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "images.npy"))


def read_epoch(epoch):
    """The numbers of its samples, batch by batch."""
    folder = f"{PLAN}/epoch={epoch}/npz"
    for name in sorted(os.listdir(folder)):  # glob() would take a dead mount for an empty one
        with np.load(f"{folder}/{name}") as batch:
            if not (batch["image"] == images[batch["index"]]).all():
                sys.exit(f"{folder}/{name}: wrong bytes")
            yield batch["index"]


def note(what):
    with open(f"{TASK}.{what}", "w", encoding="ascii"):
        pass


def read_forever():
    for epoch in itertools.count():
        for _ in read_epoch(epoch):
            note("reading")
            select.select([], [], [], 0.1)  # computes: the processors are for what the case waits for


def read_first():
    begin = time.monotonic()
    np.load(f"{PLAN}/epoch=0/npz/000000.npz")["index"]
    print(f"first batch {time.monotonic() - begin:.4f}", flush=True)


def read_once():
    read_first()
    np.save(f"{TASK}.read.npy", np.concatenate(list(read_epoch(0))))


{"first": read_first, "epoch": read_once, "forever": read_forever}[sys.argv[1]]()
