#!/usr/bin/python3
# slow: fills memory
"""The daemon in a memory cgroup while other processes use up its memory: the daemon drops what it
can make again; its bytes are still right, and nothing is killed."""

import io
import os
import signal
import subprocess

import numpy as np

from lib import (DEADLINE, SLOW, SOURCE, contains, content, equal, path, skip, start, stop, text,
                 write)
from memory_group import memory_group
from servers import wait_until

MiB = 1 << 20
LIMIT = 256 * MiB
SLAB, FEATURES, SLABS = 256, 250, 120  # rows that are decoded together, half a MiB of them
# Allocates memory MiB by MiB, up to a limit, and holds it.
EATER = ("import sys\nheld = []\nfor line in sys.stdin:\n"
         "    held.append(bytearray(b'x') * (int(line) << 20))\n    print('has it', flush=True)\n")


def rss(pid):
    return next(int(line.split()[1]) << 10 for line in text(f"/proc/{pid}/status").splitlines()
                if line.startswith("VmRSS:"))


def free_in(group, limit):
    """As the daemon finds it."""
    used = next(int(text(group, name)) for name in ("memory.current", "memory.usage_in_bytes")
                if os.path.exists(f"{group}/{name}"))
    numbers = dict(line.split() for line in text(group, "memory.stat").splitlines())
    return limit - used + int(numbers.get("total_inactive_file", numbers["inactive_file"]))


def read_slabs():
    """A batch has the rows that are decoded together."""
    for i in range(SLABS):
        data = content(path(f"rows.txt/batches/batch={SLAB},seed=3/epoch=0/npz/{i:06d}.npz"))
        with np.load(io.BytesIO(data)) as z:
            equal(z["data"].shape, (SLAB * FEATURES,), f"batch {i}")
            equal(np.array_equal(z["data"].reshape(SLAB, FEATURES)[:, 0], z["index"] % 64), True,
                  f"batch {i}")


def main():
    if SLOW:
        skip("a sanitizer keeps what was freed")
    rows = [b"1 " + b" ".join(b"%d:%d" % (i, i + k) for i in range(FEATURES)) + b"\n"
            for k in range(64)]
    write("rows.txt", b"".join(rows) * (SLABS * SLAB // 64))
    with memory_group(LIMIT) as (group, kills):
        into_group = ("sh", "-c", f'echo $$ >"{group}/cgroup.procs" && exec "$@"', "sh")
        daemon = start(f"{SOURCE}/rows.txt", "index_base=asis,ahead=1M", prefix=into_group)
        empty = rss(daemon.pid)
        read_slabs()
        full = rss(daemon.pid)
        print(f"{empty >> 20} MiB, with what it remembers {full >> 20} MiB", flush=True)
        equal(full > empty + 40 * MiB, True, "it remembers what it has decoded")
        eater = subprocess.Popen([*into_group, "python3", "-c", EATER], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        while free_in(group, LIMIT) > LIMIT // 16 - 4 * MiB and rss(daemon.pid) > full - 20 * MiB:
            eater.stdin.write("2\n")
            eater.stdin.flush()
            equal(eater.stdout.readline(), "has it\n", "another process")
        wait_until(lambda: rss(daemon.pid) < full - 20 * MiB, "it lets go", daemon)
        print(f"while memory is short {rss(daemon.pid) >> 20} MiB", flush=True)
        read_slabs()
        eater.send_signal(signal.SIGKILL)
        eater.wait(DEADLINE)
        contains(text(kills), "oom_kill 0\n")
        stop(daemon)


main()
