#!/usr/bin/python3
# slow: a hundred mounts
"""A hundred mounts of a local folder and of a server, a fifth of them killed; and mounts that end
while they are made. In the end no mount, process, lock, file or connection is left."""

import gzip
import os
import random
import signal
import subprocess
import time

from lib import (DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, content, equal,
                 mount_type, path, run, small)
from life import (check_ended, check_nothing_left, daemon_of, mount, mount_connections,
                  processes)
from servers import Nginx, ended, locks_in, pidfd, place, wait_until

CYCLES = 20 if SLOW else 100
KILLS = CYCLES // 5
STEP_MS = 20 if SLOW else 4
WWW = f"{PRIVATE}/www"
images, labels = small(200)


def prepare():
    """The same data as a packed file, so that the cache is used, and on a server."""
    for name in os.listdir(SOURCE):
        data = content(SOURCE, name)
        place(WWW, name, data)
        place(SOURCE, f"packed/{name}.gz", gzip.compress(data))
        os.unlink(f"{SOURCE}/{name}")
    return "packed/train"


def use(folder, rng):
    i = rng.randrange(len(labels))
    equal(content(path(folder, f"samples/raw/{i:06d}.image.raw")) == images[i].tobytes(), True,
          f"sample {i}")
    content(path(folder, f"batches/batch=16,seed={i % 5}/epoch={i % 3}/npz/000002.npz"))


def check_cycles(server):
    """Each cycle ends with umount, a signal, or kill -9; after every other kill the dead mount
    still exists when the next one is made."""
    rng = random.Random(os.environ.get("SEED", "1"))
    packed = prepare()
    killed = set(rng.sample(range(CYCLES - 1), KILLS))
    is_dead = False
    for i in range(CYCLES):
        source, folder = (SOURCE, packed) if i % 2 else (f"{server.url}/", "train")
        said = mount(source)
        if is_dead:
            contains(said, f"mountpoint {MOUNTPOINT}", "removed a stale mount left by a dead daemon")
        else:
            equal(said, "", f"cycle {i}: mount says")
        use(folder, rng)
        pid = daemon_of()
        is_dead = i in killed
        if is_dead:
            os.kill(pid, signal.SIGKILL)
            check_ended(pid, "kill -9")
            is_dead = i % 4 < 2
        elif i % 7 == 3:
            os.kill(pid, signal.SIGTERM)
            check_ended(pid, "SIGTERM")
            equal(mount_type(MOUNTPOINT), None, "mounted after SIGTERM")
            continue
        if not is_dead:
            equal(run("umount", MOUNTPOINT), "", f"cycle {i}: umount says")
            equal(locks_in(f"{PRIVATE}/cache"), [], "locks when umount has returned")
    equal(mount_type(MOUNTPOINT), None, "mounted in the end")


def end_while_made(sig, delay_ms, *flags):
    """Whatever exists when the signal comes is removed again. Returns whether the signal came
    late."""
    process = subprocess.Popen([EPOCHFS, "mount", *flags, SOURCE, MOUNTPOINT],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    with pidfd(process.pid) as fd:
        ended(fd, delay_ms / 1000)
        process.send_signal(sig)
        equal(ended(fd, DEADLINE), True, f"mount {flags} has ended by {sig.name} in time")
    # Before it handles signals, it dies of them.
    equal(process.wait() in (0, 3, -sig), True, f"mount {flags}: exit code {process.returncode}")
    late = process.returncode == 0 and not flags and mount_type(MOUNTPOINT) is not None
    if late:  # it was made before; or it is about to end
        subprocess.run([EPOCHFS, "umount", MOUNTPOINT], stderr=subprocess.DEVNULL, check=False)
    wait_until(lambda: not processes(), f"mount {flags}, {sig.name} after {delay_ms} ms: the end")
    equal(mount_type(MOUNTPOINT), None, f"mount {flags}, {sig.name} after {delay_ms} ms: mounted")
    return late


def check_signals():
    late = sum(end_while_made(sig, delay, *flags)
               for delay in range(0, 61, STEP_MS) for sig in (signal.SIGTERM, signal.SIGINT)
               for flags in ((), ("-f",)))
    print(f"{late} signals came when the mount was made", flush=True)


def main():
    mount_connections()
    with Nginx(WWW) as server:
        os.makedirs(WWW, exist_ok=True)
        begin = time.monotonic()
        check_cycles(server)
        print(f"{CYCLES} cycles in {time.monotonic() - begin:.1f} s", flush=True)
        check_nothing_left()
        begin = time.monotonic()
        check_signals()
        print(f"signals: {time.monotonic() - begin:.1f} s", flush=True)
        check_nothing_left()


main()
