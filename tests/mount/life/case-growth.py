#!/usr/bin/python3
# slow: thousands of mounts, reads and plans
"""The daemon must not grow with what was done: each kind of work is done so many times, and then so
many times again, and what is allocated may then be no more than it was, except what status.json
says is kept, which has a limit. GROWTH=N does all of it N times as often."""

import contextlib
import os
import random
import signal
import threading

import numpy as np

from lib import PRIVATE, SLOW, equal, idx_bytes, skip, status, stop
from push import compute, whole
from servers import MiB, Nginx, place, read_anew, remote, start_at, wait_until

TIMES = int(os.environ.get("GROWTH", "1"))
WWW = f"{PRIVATE}/www"
SLACK = 3 * MiB  # a thread more, a connection more
PER_TIME = 64  # bytes for one more read, name, or killed reader: none is needed
rng = random.Random(5)


def memory(at):
    found = status(at)["memory"]
    kept = {entry["what"]: entry for entry in found["kept"]}
    equal(sum(entry["bytes"] for entry in kept.values()), found["kept_bytes"], "kept_bytes")
    equal(sum(entry["limit_bytes"] for entry in kept.values()), found["kept_limit_bytes"],
          "kept_limit_bytes")
    return found, kept


def rest(found):
    return found["allocated_bytes"] - found["kept_bytes"]


def sample(at):
    read_anew(f"{at}/wide-data/samples/raw/{rng.randrange(3000):06d}.data.raw")


def small_sample(at):
    read_anew(f"{at}/set/train/samples/npy/{rng.randrange(20000):06d}.image.npy")


def batch(at):
    epoch, number = rng.randrange(3), rng.randrange(625)
    read_anew(f"{at}/set/train/batches/batch=32,seed=0/epoch={epoch}/npz/{number:06d}.npz")


def large_batch(at):
    seed = rng.randrange(500)
    read_anew(f"{at}/set/train/batches/batch=2500,seed={seed}/epoch=0/npz/000000.npz")


def in_order(at):
    """Some batches one after another, so that files are pushed and the forecast is used."""
    folder = f"{at}/wide-data/batches/batch=8,seed={rng.randrange(4)}/epoch={rng.randrange(4)}/npy"
    begin = rng.randrange(300)
    for i in range(begin, begin + 50):
        whole(f"{folder}/{i:06d}.data.npy")


def source(at):
    read_anew(f"{at}/wide-data/source/wide-data")


def texts(at):
    whole(f"{at}/.epochfs/status.json")
    whole(f"{at}/.epochfs/metrics")


def plan(at):
    os.stat(f"{at}/set/train/batches/batch=32,seed={rng.randrange(1 << 40)}")


def epoch(at):
    os.stat(f"{at}/set/train/batches/batch=32,seed=9/epoch={rng.randrange(1 << 40)}")


def refused(at):
    with contextlib.suppress(FileNotFoundError):
        os.stat(f"{at}/set/train/batches/no{rng.randrange(1 << 40)}")


def listing(at):
    os.listdir(f"{at}/set/train/batches/batch=32,seed=0/epoch={rng.randrange(1 << 40)}/npy")


def killed(at):
    pid = os.fork()
    if not pid:
        while True:
            batch(at)
    compute(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def many_at_once(at):
    """All threads of the daemon have worked then, and have their buffers."""
    readers = [threading.Thread(target=large_batch, args=(at,)) for _ in range(24)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def check(at, what, kind, times):
    times *= TIMES
    for _ in range(times // 4):
        kind(at)
    before, _ = memory(at)
    for _ in range(times):
        kind(at)
    after, kept = memory(at)
    grown, more = rest(after) - rest(before), after["kept_bytes"] - before["kept_bytes"]
    print(f"{what}: {kind.__name__} {times} times: {grown / times:.1f} bytes each, kept "
          f"{more / times:.1f} each; now {after['resident_bytes'] / MiB:.1f} MiB, kept "
          f"{after['kept_bytes'] / MiB:.1f}, rest {rest(after) / MiB:.1f}, unused "
          f"{after['unused_bytes'] / MiB:.1f}", flush=True)
    equal(grown <= SLACK + PER_TIME * times, True, f"{what}, {kind.__name__}: {grown} bytes more")
    for name, entry in kept.items():
        equal(entry["bytes"] <= entry["limit_bytes"], True, f"{what}, {kind.__name__}: {name}")
    equal(after["unused_bytes"] <= 4 * MiB + after["allocated_bytes"] // 4, True,
          f"{what}, {kind.__name__}: {after['unused_bytes']} bytes are freed and not used again")


KINDS = [(sample, 20000), (small_sample, 8000), (batch, 4000), (in_order, 40), (large_batch, 150),
         (source, 20), (texts, 1000), (plan, 3000), (epoch, 3000), (refused, 3000), (listing, 40),
         (killed, 100), (sample, 20000)]
DROPS = [(sample, 4000), (batch, 2000), (in_order, 40), (killed, 50), (sample, 4000)]


def data():
    random_data = np.random.default_rng(17)
    place(WWW, "set/train-images-idx3-ubyte",
          idx_bytes(random_data.integers(0, 256, (20000, 30, 30), dtype=np.uint8)))
    place(WWW, "set/train-labels-idx1-ubyte",
          idx_bytes(random_data.integers(0, 10, 20000, dtype=np.uint8)))
    place(WWW, "wide-data",
          idx_bytes(random_data.standard_normal((3000, 700)).astype(np.float32)))


def check_mount(what, url, options, kinds):
    daemon = start_at(what, url, options)
    many_at_once(daemon.at)
    for kind, times in kinds:
        check(daemon.at, what, kind, times)
    stop(daemon)


def check_buffers(url):
    """Buffers of transfers are let go of when no transfer has used them for a while, though the
    cache never has all that is needed."""
    daemon = start_at("idle", url, f"cache={PRIVATE}/idle-cache,cache_size=13M,block=64K")
    many_at_once(daemon.at)
    wait_until(lambda: memory(daemon.at)[1]["transfers"]["bytes"] == 0, "no buffers are kept",
               daemon)
    stop(daemon)


def main():
    if SLOW:
        skip("a sanitizer keeps what was freed")
    data()
    check_mount("local", WWW, "ahead=16M", KINDS[:3] + KINDS[6:7])
    with Nginx(WWW) as server:
        check_buffers(f"{server.url}/")
        for keep, kinds in ("pin", KINDS), ("once", DROPS), ("plan", DROPS):
            check_mount(keep, f"{server.url}/", f"cache={PRIVATE}/cache-{keep},keep={keep},"
                        "cache_size=13M,block=64K,ahead=16M,plan=batch=32+seed=0", kinds)


main()
