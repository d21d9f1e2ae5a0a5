#!/usr/bin/python3
"""Images per second of a job that trains (busy_job.py), with the default options and with nothing
done ahead of its reads, in turn. (By bench/run busy.) all: torch has all processors; one: it leaves
one free. remote_all, remote_one: the same from a server, with an empty cache; the server also has a
large file that the job does not read, so that staging continues during the job."""

import contextlib
import gzip
import os
import statistics
import subprocess
import sys

from bars import FAST, HERE, ROUNDS, WWW, calm, empty, make_images, mount, row, say
from lib import PRIVATE, equal
from servers import MiB, Nginx

FASHION = "/usr/share/datasets/fashion-mnist"
EPOCHS = 6
BESIDE_MB = 2000
RATE = 32 * MiB  # bytes per second and connection, so that staging lasts as long as the job
CACHE = f"{PRIVATE}/cache"


def images_per_s(source, options, threads):
    """Measure a mount in a session of its own, as from another shell: the scheduler groups by
    session (autogroup), so the job and the daemon must be in different ones."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    with mount(source, "plan=batch=128+seed=7", *options, prefix=("setsid",)) as daemon:
        said = subprocess.run(
            [f"{HERE}/busy_job.py", f"{daemon.at}/train/batches/batch=128,seed=7", str(threads),
             str(EPOCHS)], env=environment, check=True, stdout=subprocess.PIPE, text=True,
            start_new_session=True).stdout.split()
    return float(said[0]), said[1]


@contextlib.contextmanager
def local():
    yield FASHION, [], ["readahead=0"]


@contextlib.contextmanager
def remote():
    """A packed file would be fetched and unpacked before the job begins."""
    os.makedirs(WWW)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        with gzip.open(f"{FASHION}/{name}.gz") as packed, open(f"{WWW}/{name}", "wb") as f:
            f.write(packed.read())
    make_images("beside-images-idx3-ubyte", BESIDE_MB)
    with Nginx(WWW, more=FAST, limit_rate=RATE) as server:
        yield (f"{server.url}/", [f"cache_dir={CACHE}"],
               [f"cache_dir={CACHE}", "readahead=0", "prefetch=off"])


def main(which):
    processors = len(os.sched_getaffinity(0))
    threads, bound = {"all": (processors, 0.97), "one": (max(processors - 1, 1), 1.1)}[
        which.removeprefix("remote_")]
    is_remote = which.startswith("remote_")
    rates = {"default": [], "nothing ahead": []}
    losses = set()
    with remote() if is_remote else local() as (source, ours, theirs):
        for turn in range(ROUNDS):
            for side in sorted(rates, reverse=bool(turn % 2)):
                empty(CACHE)
                calm(drop=False)
                rate, loss = images_per_s(source, ours if side == "default" else theirs, threads)
                rates[side].append(rate)
                losses.add(loss)
            say(f"{threads} threads:", *(f"{side} {r[-1]:.0f}" for side, r in rates.items()),
                "images/s")
    equal(len(losses), 1, "last losses, whatever is done ahead")
    default, nothing = rates.values()
    row(f"training{', remote' * is_remote}, {threads} of {processors} processors busy",
        f"{statistics.median(default):.0f} images/s",
        f"{theirs[-1]} {statistics.median(nothing):.0f}/s",
        statistics.median(a / b for a, b in zip(default, nothing)), ">=", bound)


main(sys.argv[1])
