#!/usr/bin/python3
# needs: python3-torch
"""A training that is killed while its workers begin: they also end, and hold neither its pipes nor the mount."""

import os
import signal
import subprocess
import sys

from lib import DEADLINE, MOUNTPOINT, PRIVATE, equal, mounted, small

TRAINING = """
import os, select, signal, sys
import epochfs, epochfs.torch

def begin(worker):  # in a worker, before DataLoader watches over its training
    training = os.getppid()
    if training != int(os.environ["TRAINING"]):
        training = int(os.environ["TRAINING"])  # of a fork server
    ended = select.poll()
    ended.register(os.pidfd_open(training), select.POLLIN)
    os.kill(training, signal.SIGKILL)
    ended.poll()

if __name__ == "__main__":
    os.environ["TRAINING"] = str(os.getpid())
    batches = epochfs.torch.Batches(epochfs.open(sys.argv[1])["train"], "batch=16,seed=7")
    for _ in epochfs.torch.Loader(batches, num_workers=1, worker_init_fn=begin, multiprocessing_context=sys.argv[2]):
        pass
"""
small(200)
with open(f"{PRIVATE}/training.py", "w", encoding="ascii") as f:
    f.write(TRAINING)
with mounted():
    for how in ("fork", "spawn", "forkserver"):
        training = subprocess.Popen([sys.executable, f"{PRIVATE}/training.py", MOUNTPOINT, how], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, start_new_session=True)
        try:
            said = training.communicate(timeout=DEADLINE)  # until no process has its pipes any more
        except subprocess.TimeoutExpired:
            os.killpg(training.pid, signal.SIGKILL)
            raise
        equal(training.returncode, -signal.SIGKILL, f"{how}: the end of the training: {said}")
