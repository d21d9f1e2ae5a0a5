#!/usr/bin/python3
# slow: fills memory
"""The daemon in a memory cgroup smaller than the limit `ahead`: it pushes less, nothing is killed,
all bytes are right."""

import numpy as np

from lib import SLOW, SOURCE, contains, equal, idx_bytes, path, start, stop, text, write
from memory_group import memory_group
from push import compute, resident, whole

MiB = 1 << 20
LIMIT = (160 if SLOW else 96) * MiB  # a sanitizer takes 60 MiB, and more where it ends
N = 40000


def main():
    data = np.random.default_rng(6).integers(0, 256, (N, 80, 80), dtype=np.uint8)  # 256 MB
    write("train-data", idx_bytes(data))
    folder = "train-data/batches/batch=64/raw"
    with memory_group(LIMIT) as (group, kills):
        daemon = start(SOURCE, "ahead=1G", prefix=(
            "sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh"))
        most = 0
        for i in range(N // 64):
            got = whole(path(folder, f"{i:06d}.image.raw"))
            equal(got == data[i * 64:][:64].tobytes(), True, f"batch {i}")
            compute(0.002)
            if i % 100 == 50:
                ahead = sum(resident(path(folder, f"{k:06d}.image.raw"))
                            for k in range(i + 1, N // 64))
                most = max(most, ahead)
        print(f"{most >> 20} MiB ahead at most", flush=True)
        equal(MiB < most < LIMIT // 2, True, f"{most} bytes ahead with a limit of {LIMIT}")
        contains(text(kills), "oom_kill 0\n")
        stop(daemon)


main()
