#!/usr/bin/python3
# slow: looks up 70,000 names
"""A mount opens so many plans, and no more: the log, the status and the Python module say why; open plans are kept. Epochs that
follow one another count as one."""

import errno
import os
import subprocess
import sys

import epochfs
from lib import MOUNTPOINT, SLOW, SOURCE, contains, equal, expect_error, log_text, mounted, path, run, skip, small, status

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

# Another user, who opens as many as there are, leaves some for the owner and for other users.
COUNT = """
import os, sys
os.setgid(61001), os.setuid(int(sys.argv[1]))
n = 0
try:
    while n <= 65536:
        os.stat(f"{sys.argv[2]}/batch={n + int(sys.argv[3])}")
        n += 1
except OSError as e:
    print(n, e.errno)
"""


def opens(user, first):
    said = subprocess.run([sys.executable, "-c", COUNT, str(user), path("train/batches"), str(first)], stdout=subprocess.PIPE, check=True)
    n, number = map(int, said.stdout.split())
    equal(number, errno.ENFILE, "a plan too many of a user")
    return n


if os.geteuid() == 0:
    with mounted(SOURCE, "allow_other"):
        first = opens(61001, 1)
        share = PLANS_MAX // 4 + 256  # half of what is shared, and the part of a user
        equal(share - 4 <= first <= share + 4, True, f"plans of the first user: {first}")
        contains(status()["last_refused_name"], "user 61001 has opened ", "because the rest is for other users")
        contains(os.getxattr(path("train/batches"), "user.epochfs.why.batch=0").decode(), "'0'")
        second = opens(61002, first + 1)
        equal(second > PLANS_MAX // 8, True, f"plans of the second user: {second}")
        os.stat(path("train/batches/batch=7,seed=1"))
