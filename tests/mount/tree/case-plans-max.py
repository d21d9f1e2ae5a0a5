#!/usr/bin/python3
# slow: looks up 70,000 names
"""A mount opens so many plans, and no more: the log, the status and the Python module say why; what was opened stays. Epochs that
follow one another count as one."""

import errno
import os

import epochfs
from lib import MOUNTPOINT, SLOW, contains, equal, expect_error, log_text, mounted, path, run, skip, small, status

if SLOW:
    skip("looks up 70,000 names")
PLANS_MAX = 65536
REASON = f"this mount has opened {PLANS_MAX} plans and ranges of epochs, and cannot open more; mount it again"

small()
with mounted():
    for epoch in range(1000):
        os.stat(path(f"train/batches/batch=4,seed=7/epoch={epoch}"))
    opened = 0
    try:
        while opened <= PLANS_MAX:
            os.stat(path(f"train/batches/batch={opened + 1}"))
            opened += 1
    except OSError as e:
        equal(e.errno, errno.ENFILE, "a plan too many")
    equal(PLANS_MAX - 4 <= opened < PLANS_MAX, True, f"{opened} plans were opened besides the one with a seed")
    expect_error(errno.ENFILE, os.stat, path("train/batches/batch=4,seed=8"))
    equal(status()["last_refused_name"], f"train/batches/batch=4,seed=8: {REASON}", "last_refused_name")
    contains(run("status", MOUNTPOINT), REASON)
    contains(log_text(), REASON)
    train = epochfs.open(MOUNTPOINT)["train"]
    try:
        train.batches("batch=4,seed=9")
    except epochfs.PlanError as e:
        contains(str(e), "'batch=4,seed=9' does not open: ", REASON)
    else:
        raise AssertionError("a plan too many opens")
    equal(sum(len(b["label"]) for b in train.batches("batch=4,seed=7", epoch=5)), 20, "samples of a plan that was opened")
