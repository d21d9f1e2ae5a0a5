#!/usr/bin/python3
"""Plans with typos: each of many ranks gets the reason of its own, every time, even if others have the same typo or another one."""

import errno
import multiprocessing
import os

import epochfs
from lib import MOUNTPOINT, contains, equal, expect_error, log_text, mounted, path, run, small, status

RANKS = 8
PLANS = {"batch=10,sed=7": "'sed'", "batch=0": "'0'", "batch=10,seed=x": "'x'"}
PLANS.update({f"batch=10,wort{i}=1": f"'wort{i}'" for i in range(40)})


def ask(turn):
    """What each plan says, in an order of this rank's own."""
    names = sorted(PLANS)
    train = epochfs.open(MOUNTPOINT)["train"]
    wrong = []
    for name in names[turn:] + names[:turn]:
        try:
            train.batches(name)
            wrong.append((name, "opens"))
        except epochfs.PlanError as e:
            if "does not open: " not in str(e) or PLANS[name] not in str(e):
                wrong.append((name, str(e)))
        except epochfs.Error as e:
            wrong.append((name, str(e)))
    return wrong


small()
with mounted():
    with multiprocessing.get_context("fork").Pool(RANKS) as pool:
        for round_ in range(2):
            equal([found for found in pool.map(ask, range(RANKS), 1) if found], [], f"reasons, round {round_}")
    # With a shell: the status has the last one, even if the kernel knows that name.
    for name in ("batch=10,sed=7", "batch=0", "batch=10,sed=7"):
        expect_error(errno.ENOENT, os.stat, path(f"train/batches/{name}"))
        contains(status()["last_refused_name"], f"train/batches/{name}: ", PLANS[name])
        contains(run("status", MOUNTPOINT), PLANS[name])
    batches = path("train/batches")
    contains(os.getxattr(batches, "user.epochfs.why.batch=0").decode(), "'0'")
    contains(os.getxattr(f"{batches}/batch=4,seed=7", "user.epochfs.why.epoch=x").decode(), "epoch=")
    for at, name in ((batches, "batch=4"), (f"{batches}/batch=4,seed=7", "epoch=1"), (path("train"), "batch=0")):
        expect_error(errno.ENODATA, os.getxattr, at, f"user.epochfs.why.{name}")
    equal([n for n in os.listxattr(batches) if "why" in n], [], "attributes that are listed")
    expect_error(errno.ENOENT, os.stat, path("train/batches/batch=0"))
    count = log_text().count("batch=0: ")
    for _ in range(20):
        expect_error(errno.ENOENT, os.stat, path("train/batches/batch=0"))
    equal(log_text().count("batch=0: "), count, "lines of the log for the same name again")
