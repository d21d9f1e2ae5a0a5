"""A memory cgroup for the cases with little memory."""

import contextlib
import os
import signal

from lib import skip
from servers import wait_until


def all_end(group):
    """Kill the processes left in it, as after a failure. True: none is left."""
    with open(f"{group}/cgroup.procs", encoding="ascii") as f:
        left = [int(line) for line in f]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not left


@contextlib.contextmanager
def memory_group(limit):
    """A cgroup with that limit, of version 2 or 1; gives its folder and the file that counts
    kills."""
    name = f"epochfs-test-{os.getpid()}"
    for top, file, kills in (("/sys/fs/cgroup", "memory.max", "memory.events"),
                             ("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                              "memory.oom_control")):
        group = f"{top}/{name}"
        with contextlib.suppress(OSError):
            os.mkdir(group)
        if not os.path.exists(f"{group}/{file}"):
            with contextlib.suppress(OSError):
                os.rmdir(group)
            continue
        try:
            with open(f"{group}/{file}", "w", encoding="ascii") as f:
                f.write(str(limit))
            yield group, f"{group}/{kills}"
        finally:
            wait_until(lambda: all_end(group), "all processes of the cgroup end")
            os.rmdir(group)
        return
    skip("no memory cgroup can be made here")
