"""A ring of peers on loopback, for the cases: mount-scripts/peers on "nodes" 127.0.1.1, 127.0.1.2 ...

    with Ring(4, origin.url) as ring:   ring.options(i), ring.log(i), ring.kill(i), ring.stall(i) ...

Nodes are counted from 0. Each has its folder, its front and its back.

A front or a member that gets no processor for a second counts as dead, and then the origin is asked. What must not
happen otherwise is checked by rings_calmly(check): check calls untroubled() with what its mounts have said.
"""

import collections
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from lib import DEADLINE, PRIVATE, equal, skip, text
from servers import Late, calmly, free_port, remote, wait_until

TOOL = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../mount-scripts/peers"))
SLICE = 1 << 20

# A request that a back has answered; origin: bytes that it received for that.
Answer = collections.namedtuple("Answer", "status sent cache origin range method path")


def address(i):
    return f"127.0.1.{i + 1}"


def free_pair(n):
    """A port that is free, with its successor, on the addresses of n nodes."""
    while True:
        port = free_port()
        try:
            for i in range(n):
                for p in (port, port + 1):
                    with socket.socket() as s:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                        s.bind((address(i), p))
            return port
        except OSError:
            continue


def tool(*arguments, code=0, **kwargs):
    """Run mount-scripts/peers; returns stdout and stderr as one."""
    done = subprocess.run([TOOL, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=DEADLINE, check=False, **kwargs)
    equal(done.returncode, code, f"exit code of peers {arguments}: {done.stdout.decode()}")
    return done.stdout.decode()


def make_secret(path):
    with open(path, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write(os.urandom(32).hex() + "\n")
    return path


def untroubled(*said):
    """No mount and no command has said that it asks the origin in the place of peers."""
    for text_of in said:
        if "in their place" in text_of:
            raise Late(f"a member or a front may have had no processor for a second: {text_of}")


def read_until_used(daemon, offsets, read):
    """Read at one of the offsets now and then, less and less often, until the front is used again: it is asked again when
    something is fetched. The offsets last as long as it is waited for."""
    begin, left = time.monotonic(), list(offsets)

    def used():
        if left and time.monotonic() - begin >= DEADLINE * (1 - len(left) / len(offsets)) ** 2:
            read(left.pop())
        return remote(daemon.at)["peers_trouble"] == ""

    wait_until(used, "the front is used again", daemon)


def rings_calmly(check, *arguments):
    """Call check(*arguments), again after Late: without the rings, the caches (cache.*) and the logs of the try before."""
    def from_nothing(*arguments):
        for folder in glob.glob(f"{PRIVATE}/cache.*") + glob.glob(f"{PRIVATE}/ring*"):
            shutil.rmtree(folder)
        for log in glob.glob(f"{PRIVATE}/log*"):
            if "sanitizer" not in log:
                os.truncate(log, 0)
        return check(*arguments)
    return calmly(from_nothing, *arguments)


class Ring:
    def __init__(self, n, *origins, size="1g", more=(), folder=f"{PRIVATE}/ring"):
        if subprocess.run(["bash", "-c", "PATH=$PATH:/usr/sbin command -v nginx"], stdout=subprocess.DEVNULL,
                          check=False).returncode:
            skip("nginx is missing (package nginx-light)")
        self.n, self.folder, self.port = n, folder, free_pair(n)
        os.makedirs(folder)
        self.secret = make_secret(f"{folder}/secret")
        self.nodes = ",".join(address(i) for i in range(n))
        self.more = [word for o in origins for word in ("--origin", o)] + list(more)
        self.size = size

    def arguments(self, i, wait):
        return [TOOL, "up", "--nodes", self.nodes, "--self", address(i), "--folder", self.at(i), "--size", self.size,
                "--secret", self.secret, "--port", str(self.port), "--wait", str(wait), *self.more]

    def __enter__(self):
        starting = [subprocess.Popen(self.arguments(i, DEADLINE), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT) for i in range(self.n)]
        for i, process in enumerate(starting):
            out = process.communicate(timeout=DEADLINE)[0].decode()
            equal((process.returncode, out), (0, self.options(i) + "\n"), f"peers up of node {i}")
        return self

    def __exit__(self, *_):
        for i in range(self.n):
            tool("down", "--folder", self.at(i))

    def at(self, i):
        return f"{self.folder}/{i}"

    def front(self, i):
        return f"http://{address(i)}:{self.port}"

    def back(self, i):
        return f"http://{address(i)}:{self.port + 1}"

    def options(self, i):
        return f"peers={self.front(i)},peers_secret={self.at(i)}/secret"

    # ---- what may happen to a node ----

    def signal(self, i, number):
        """To all processes of the node."""
        os.killpg(int(text(self.at(i), "pid")), number)

    def kill(self, i):
        self.signal(i, signal.SIGKILL)
        wait_until(lambda: not self.answers(i), f"node {i} is dead")

    def stall(self, i):
        self.signal(i, signal.SIGSTOP)

    def resume(self, i):
        self.signal(i, signal.SIGCONT)

    def start(self, i):
        """Again, with an empty share."""
        done = subprocess.run(self.arguments(i, 0), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE, check=False)
        equal(done.returncode in (0, 2), True, f"peers up of node {i}: {done.stdout}")

    def answers(self, i):
        with socket.socket() as s:
            return s.connect_ex((address(i), self.port + 1)) == 0

    def limit(self, i, rate):
        """What its back sends for a request, in bytes per second; 0: no limit."""
        path = f"{self.at(i)}/nginx.conf"
        conf = re.sub(r" limit_rate \d+;", "", text(path))
        with open(path, "w", encoding="utf-8") as f:
            f.write(conf.replace(f"listen {address(i)}:{self.port + 1};",
                                 f"listen {address(i)}:{self.port + 1}; limit_rate {rate};"))
        os.kill(int(text(self.at(i), "nginx.pid")), signal.SIGHUP)

    # ---- what it has done ----

    def log(self, i):
        found = []
        for line in text(self.at(i), "back.log").splitlines():
            m = re.fullmatch(r'\S+ (\d+) (\d+) (\S+) (\S+) "([^"]*)" (\S+) (.*)', line)
            equal(bool(m), True, f"a line of the log: {line!r}")
            found.append(Answer(int(m[1]), int(m[2]), m[3], m[4], m[5], m[6], m[7]))
        return found
