#!/usr/bin/python3
"""The line of `epochfs status --watch` in docs/reference/commands.md has the form of those that it prints while epochs of a
staged source are read: each part, and the unit of each number. What came from the remote shows in the lines."""

import itertools
import re
import subprocess
import threading

import numpy as np

from lib import DEADLINE, EPOCHFS, MOUNTPOINT, SOURCE, equal, mounted, path, small
from page_blocks import take
from servers import MiB, Nginx

PLAN = "batch=128,seed=7"
EPOCHS = 1000  # more than are read until a line is complete
# One unit of the page stands for its kind: other numbers have other units.
KINDS = {"time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "speed": r"\d+(?:\.\d+)? [kMGTPE]?B/s",
         "left": r"\d+ (?:s|min \d+ s|h \d+ min|d \d+ h) left", "number": r"\d+(?:\.\d+)?"}
KIND = re.compile("|".join(f"(?P<{name}>{kind})" for name, kind in KINDS.items()))


def form_of(line):
    """A pattern; the name of the plan is as it is."""
    before, plan, after = line.partition(PLAN)
    equal(plan, PLAN, "the plan of the page's line")

    def free(words):
        pieces, at = [], 0
        for m in KIND.finditer(words):
            pieces += [re.escape(words[at:m.start()]), KINDS[m.lastgroup]]
            at = m.end()
        return "".join(pieces) + re.escape(words[at:])

    return free(before) + re.escape(plan) + free(after)


def read_epochs(enough, watch):
    """Ends the watch, so that the test does not wait for a line that no read causes."""
    try:
        for epoch, batch in itertools.product(range(EPOCHS), range(BATCHES)):
            if enough.is_set():
                break
            with np.load(path(f"train/batches/{PLAN}/epoch={epoch}/npz/{batch:06}.npz")) as arrays:
                equal(len(arrays["label"]), 128, "labels of a batch")
    finally:
        watch.terminate()


want = form_of(take("docs/reference/commands.md", "waited 2.5 s").strip())
images, _ = small(12800, side=28)
BATCHES = len(images) // 128
with Nginx(SOURCE, limit_rate=4 * MiB) as server, mounted(f"{server.url}/", "prefetch=off"):
    done = threading.Event()
    watch = subprocess.Popen([EPOCHFS, "status", "--watch", MOUNTPOINT], stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=read_epochs, args=(done, watch))
    # Lines also come for other states (not read yet, finished, no rate yet); on a slow machine many come before this one.
    lines, fetched = [], False
    for line in watch.stdout:
        if not lines:
            reader.start()  # so what it causes to be fetched comes between two looks
        lines.append(line)
        fetched = fetched or re.search(r"; remote (?!0 B)\d", line) is not None
        if fetched and re.fullmatch(want, line.rstrip("\n")):
            done.set()
            break
    equal(fetched, True, f"a line with bytes of the remote; the first of {len(lines)}: {lines[:3]}")
    equal(done.is_set(), True, f"a line like {want}; the last of {len(lines)}: {lines[-3:]}")
    reader.join()
    watch.communicate(timeout=DEADLINE)
    print(lines[-1], end="")
