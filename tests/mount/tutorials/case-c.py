#!/usr/bin/python3
"""docs/library.md, files of a mount in C, done as a reader would; then its program where a batch is not what it wants, which it
must say."""

import errno
import os
import subprocess

import numpy as np

import tutorials
from lib import MOUNTPOINT, SOURCE, contains, equal, idx_bytes, need_fashion, small, start, stop, write

need_fashion()
tutorials.run_page("docs/library.md", "Read files of a mount in C")
subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all", "-o", "try", "brightness.c"], cwd=tutorials.HOME, check=True)


def says(epoch, code=1):
    done = subprocess.run(["./try", epoch], cwd=tutorials.HOME, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(done.returncode, code, f"exit code: {done.stdout}")
    return done.stdout


small(150, side=27)  # pictures of 27 x 28
write("other/train-images-idx3-ubyte", idx_bytes(np.zeros((300, 28, 28), np.uint8)))
write("other/train-labels-idx1-ubyte", idx_bytes((np.arange(300) // 30).astype(np.uint8)))
write("many/train-images-idx3-ubyte", idx_bytes(np.zeros((30, 28, 28), np.uint8)))
write("many/train-labels-idx1-ubyte", idx_bytes(np.arange(30, dtype=np.uint8)))
daemon = start(SOURCE)
good = f"{MOUNTPOINT}/other/train/batches/batch=128"
contains(says(good, 0), "300 samples")
contains(says(f"{MOUNTPOINT}/other/train/batches/batch=256"), "larger than a batch")
contains(says(f"{MOUNTPOINT}/train/batches/batch=128"), "batch 0: expected images of 784 bytes")
contains(says(f"{MOUNTPOINT}/many/train/batches/batch=128"), "expected labels below 10, got 10")
contains(says(f"{MOUNTPOINT}/none/train/batches/batch=128"), "No such file or directory")
stop(daemon)
contains(says(good), "No such file or directory")  # of a mount that is gone
daemon = start(SOURCE)
daemon.kill()
daemon.wait()
said = says(good)  # whether the supervisor or the kernel answers is chance
equal(any(os.strerror(e) in said for e in (errno.ENOTCONN, errno.ECONNABORTED)), True, f"of a daemon that was killed: {said}")
