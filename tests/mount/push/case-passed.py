#!/usr/bin/python3
# slow: fills memory
"""A source larger than the memory of a cgroup: what readers have passed leaves the page cache, so another
file of the job stays in it. All bytes are right, and nothing is killed."""

import os
import subprocess

import numpy as np

from lib import PRIVATE, SLOW, SOURCE, contains, equal, idx_bytes, path, skip, start, status, stop, text, write
from memory_group import memory_group
from push import resident, whole

MiB = 1 << 20
LIMIT = 256 * MiB
N, SIDE, BATCH = 62500, 80, 50  # 400 MB


def main():
    if SLOW:
        skip("a sanitizer takes more memory than the group has")
    data = np.random.default_rng(7).integers(0, 256, (N, SIDE, SIDE), dtype=np.uint8)
    write("train-data", idx_bytes(data))
    with open(f"{SOURCE}/train-data", "rb") as f:
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    own = f"{PRIVATE}/own"
    with open(own, "wb") as f:
        f.write(os.urandom(16 * MiB))
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    sums = np.zeros(256, np.int64)
    with memory_group(LIMIT) as (group, kills):
        inside = ("sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh")
        for _ in range(2):
            subprocess.run([*inside, "cat", own], stdout=subprocess.DEVNULL, check=True)
        daemon = start(SOURCE, prefix=inside)
        for i in range(N // BATCH):
            got = whole(path(f"train-data/batches/batch={BATCH},seed=2/epoch=0/raw/{i:06d}.image.raw"))
            sums += np.bincount(np.frombuffer(got, np.uint8), minlength=256)
        push = status()["push"]
        print(f"{resident(own) / MiB:.1f} MiB of 16 are in memory; {push}", flush=True)
        equal(np.array_equal(sums, np.bincount(data.ravel(), minlength=256)), True, "the bytes of an epoch")
        equal(push["sequence_bytes"], 0, "bytes in sequence, of what does not fit the memory")
        equal(push["passed_bytes"] > 100 * MiB, True, f"bytes that left: {push}")
        equal(resident(own) >= 15 * MiB, True, f"{resident(own)} bytes of another file are in memory")
        contains(text(kills), "oom_kill 0\n")
        stop(daemon)


main()
