"""What the bars in Python share: data, empty caches, mounts, a far remote, the rows.

$PRIVATE is an empty folder on the measured disk. The servers and mounts come from tests/mount.
"""

import collections
import contextlib
import glob
import json
import os
import statistics
import subprocess
import sys
import time

import lib
import servers
from lib import PRIVATE, equal
from servers import MiB, remote, start_at, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS = int(os.environ.get("EPOCHFS_BENCH_ROUNDS", "5"))
WWW = f"{PRIVATE}/www"
IMAGE = 28 * 28
TRAIN = os.environ.get("TRAIN")
FAST = "sendfile on;"  # a real remote costs no CPU here; this one costs as little as possible


def row(what, measured, compared, ratio, operator, bound):
    print(what, measured, compared, f"{ratio:.6g}", operator, f"{bound:.6g}", sep="\t", flush=True)


def say(*words):
    print("bench:", *words, file=sys.stderr, flush=True)


def block_of(size):
    """The bytes of a block of a file of `size` bytes, as block_size=auto has it (docs/reference/options.md)."""
    block = 4 << 10
    while block < 128 << 10 and -(-size // block) > 1 << 18:
        block *= 2
    return block


def make_images(name, mb, side=28):
    """An IDX file of random bytes; returns how many pictures."""
    n = mb * 1000000 // (side * side)
    os.makedirs(WWW, exist_ok=True)
    with open(f"{WWW}/{name}", "wb") as f:
        f.write(bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (n, side, side)))
        left = n * side * side
        while left:
            left -= f.write(os.urandom(min(left, 4 * MiB)))
    return n


def calm(drop=True):
    """Write out all dirty pages; drop: also drop the page cache."""
    os.sync()
    if not drop:
        return
    if os.geteuid() == 0:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("3\n")
        return
    for file, _ in servers.files_below(PRIVATE):
        with contextlib.suppress(OSError), open(file, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def warm(name):
    """Read the server's files into memory."""
    subprocess.run(["dd", f"if={WWW}/{name}", "of=/dev/null", "bs=1M", "status=none"], check=True)


def seconds(*command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def dd(path):
    return seconds("dd", f"if={path}", "of=/dev/null", "bs=1M", "status=none")


def empty(folder):
    subprocess.run(["rm", "-rf", folder], check=True)


def ratio(over, under):
    return statistics.median(a / b for a, b in zip(over, under))


def mb_per_s(size, times):
    return f"{size / 1e6 / statistics.median(times):.0f} MB/s"


Epoch = collections.namedtuple("Epoch", "took waited bytes sum first")  # seconds


def train(folder, pattern, count, *options):
    """Read files as a training job does; returns an Epoch."""
    done = subprocess.run([TRAIN, "files", *(str(o) for o in options), folder, pattern, str(count)],
                          stdout=subprocess.PIPE, check=True, text=True)
    took, waited, size, total, first = done.stdout.split()
    return Epoch(int(took) / 1e6, float(waited) / 1e6, int(size), total, float(first) / 1e6)


@contextlib.contextmanager
def mount(source, *options, name="mount", **kwargs):
    daemon = start_at(name, source, *options, **kwargs)
    try:
        yield daemon
    finally:
        lib.stop(daemon)


@contextlib.contextmanager
def floor(folder, *mode):
    """A mount of the folder that does nothing but what passthrough needs, or with "reply" replies to reads."""
    at = f"{PRIVATE}/floor"
    os.makedirs(at, exist_ok=True)
    with subprocess.Popen([os.environ["PASS_FLOOR"], folder, at, *mode], stdout=subprocess.PIPE, text=True) as daemon:
        equal(daemon.stdout.readline(), "mounted\n")
        device = os.stat(at).st_dev
        setting = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb"
        with contextlib.suppress(OSError), open(setting, "w", encoding="ascii") as f:
            f.write("1024")  # as epochfs does, if it may
        try:
            yield at
        finally:
            subprocess.run(["umount", at], check=True)


def dataset(at):
    """The only dataset of the mount."""
    return os.path.dirname(glob.glob(f"{at}/*/dataset.json")[0])


class Far:
    """A server behind a limited connection: limit_proxy.py. urls: one for each host on this
    side."""

    def __init__(self, server, rate, hosts=1, delay=0):
        self.process = subprocess.Popen(
            [f"{HERE}/limit_proxy.py", str(server.port), str(rate), str(hosts), str(delay)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ports = [int(port) for port in self.process.stdout.readline().split()]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def seen(self):
        """The traffic so far: connections, requests, bytes."""
        self.process.stdin.write(b"?\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextlib.contextmanager
def limited(server, rate):
    """The server behind one bandwidth for all its connections: its URL."""
    with Far(server, rate) as far:
        yield far.urls[0]


def all_staged(daemon):
    return wait_until(lambda: (r := remote(daemon.at))["staged_bytes"] == r["total_bytes"] and r,
                      "all is staged", daemon)
