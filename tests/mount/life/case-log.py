#!/usr/bin/python3
"""The messages of a daemon, and their number: each failure of a remote once, however many readers
meet it; from the background to syslog, with the mountpoint, and never too many to read."""

import contextlib
import errno
import os
import re
import socket
import threading

import numpy as np

from bad_server import BadServer, status as http_status
from lib import (MOUNTPOINT, PRIVATE, equal, idx_bytes, log_text, run, start, status, stop)
from life import ROOT, check_nothing_left, daemon_of, mount
from servers import Nginx, error_of, place, read_anew, wait_until

WWW = f"{PRIVATE}/www"
DATA = np.random.default_rng(4).integers(0, 256, (2000, 50, 50), dtype=np.uint8)  # 5 MB
N_FILES = 2
for number in range(N_FILES):
    place(WWW, f"{number}-data", idx_bytes(DATA))
OPTIONS = "block=16K,stage=off,timeout=1,patience=1"


def read_all_over(at, n=40):
    """Reads that fail, of different places."""
    def read(k):
        equal(error_of(read_anew, at, f"{k % N_FILES}-data/source/{k % N_FILES}-data", size=4096,
                       offset=1_000_000 + 60_000 * k), errno.EIO, "a read of what is not here")
    readers = [threading.Thread(target=read, args=(k,)) for k in range(n)]
    for r in readers:
        r.start()
    for r in readers:
        r.join()


def check_gone():
    """The server goes away, and comes back."""
    with Nginx(WWW) as server:
        daemon = start(f"{server.url}/", OPTIONS, log="log.gone")
        server.stop()
        for _ in range(2):
            read_all_over(MOUNTPOINT)
        equal(status()["remote"]["errors"] >= 80, True, "errors that readers had")
        lines = [line for line in log_text("log.gone").splitlines() if ": remote: " in line]
        equal(len(lines) <= 2 * N_FILES, True, f"a line for a file and a reason: {lines}")
        equal(len(lines) >= N_FILES, True, f"a line for each file: {lines}")
        for k in range(N_FILES):
            equal(any(re.search(rf"remote: \S*/{k}-data: ", line) for line in lines), True,
                  f"{k} in {lines}")
        reads = [line for line in log_text("log.gone").splitlines() if "read failed" in line]
        equal(len(reads) <= 2 * N_FILES, True, f"lines of reads that failed: {reads}")
        server.start()
        wait_until(lambda: error_of(read_anew, MOUNTPOINT, "0-data/source/0-data", size=4096,
                                    offset=2_000_000) == 0, "it answers again")
        wait_until(lambda: "it answers again, after" in log_text("log.gone"), "that is told")
        stop(daemon)
        said = log_text("log.gone")
        equal(said.count("answers again"), 1, f"the news of the server: {said}")
        counted = re.findall(r"remote: \S*/\d-data: .* \(\d+ times? more\)", said)
        equal(len(counted) >= N_FILES, True, f"counts in the end: {said}")


def check_single_failure():
    """One 503 that made no reader wait long: a line, and no outage."""
    with BadServer(WWW) as server:
        daemon = start(f"{server.url}/0-data", OPTIONS.replace("patience=1", "patience=20"),
                       log="log.single")
        server.script("/0-data", http_status(503), times=1)
        equal(len(read_anew(MOUNTPOINT, "0-data/source/0-data", size=4096, offset=3_000_000)), 4096,
              "the read")
        stop(daemon)
        said = log_text("log.single")
        equal(len(re.findall(r"remote: \S*/0-data: .*503", said)), 1, f"the failure: {said}")
        equal("read failed" in said, False, said)


# ---- syslog ----

class Syslog:
    """/dev/log of a mount namespace of our own."""

    def __init__(self):
        self.lines, self.socket = [], socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/dev/log")
        self.socket.bind("/dev/log")
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self):
        while True:
            line = self.socket.recv(65536).decode(errors="replace")
            if line == "end":
                return
            self.lines.append(line)

    def end(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", "/dev/log")
        self.thread.join()
        self.socket.close()
        os.unlink("/dev/log")

    def of(self, mountpoint):
        return [line for line in self.lines if f": {mountpoint}: " in line]


def check_syslog():
    """Two mounts in the background, distinguished in syslog."""
    syslog = Syslog()
    other = f"{PRIVATE}/other"
    os.makedirs(other)
    with Nginx(WWW) as server:
        for at in (MOUNTPOINT, other):
            mount(f"{server.url}/", OPTIONS, f"cache={PRIVATE}/cache.{os.path.basename(at)}", at=at)
        pid = daemon_of(other)
        server.stop()
        read_all_over(other, 4)
        wait_until(lambda: any("remote: " in line for line in syslog.of(other)), "it is told")
        equal(syslog.of(MOUNTPOINT), [], "what the mount says that nobody reads")
        told = list(syslog.lines)  # a daemon that takes long to end says so
        for at in (MOUNTPOINT, other):
            run("umount", at)
        syslog.end()
    for line in told:
        # <facility * 8 + level>: daemon (3), of errors (3), warnings (4) and news (6)
        equal(bool(re.match(rf"<(27|28|30)>.* epochfs\[{pid}\]: {other}: ", line)), True, line)
    equal(any(line.startswith("<28>") and "remote: " in line for line in told), True,
          f"warnings of the remote: {told}")


def main():
    check_gone()
    check_single_failure()
    if ROOT:
        check_syslog()
    check_nothing_left(cache=PRIVATE)


if ROOT and not os.environ.get("LOG_NAMESPACE"):
    # A /dev of our own: the device nodes that are needed, and a place for the socket.
    os.makedirs(f"{PRIVATE}/dev")
    os.environ["LOG_NAMESPACE"] = "yes"
    os.execvp("unshare", [
        "unshare", "--mount", "--propagation", "private", "bash", "-euc",
        'mount -t tmpfs none "$1"; for node in null zero fuse full random urandom tty; do '
        'touch "$1/$node"; mount --bind "/dev/$node" "$1/$node"; done; '
        'ln -s /proc/self/fd "$1/fd"; mkdir "$1/shm"; mount --move "$1" /dev; exec "$2"',
        "bash", f"{PRIVATE}/dev", __file__])
main()
