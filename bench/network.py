"""Nodes of a cluster as network namespaces: each has one link, of a given rate in each direction, to one switch.

    network.enter()                      first of all, before other modules are used
    with Network(8, rate, origin_rate) as n:   n.at(i), n.prefix(i), n.address(i), n.traffic()

enter() starts the program again as process 1 of namespaces for network, processes and mounts. So no interface of the
machine is touched, and when the program ends, in whatever way, the kernel ends all its processes, and its interfaces
and mounts are gone. The program itself is the origin's machine. Needs root, and tbf in the kernel.
"""

import json
import os
import signal
import subprocess
import sys

NET = "10.77"
ORIGIN, SITE = f"{NET}.1.1", f"{NET}.2.1"
NAMES = "/run/netns"
BURST = 128 << 10  # bytes that a link may send at once after a rest
QUEUE = 1 << 20  # bytes that wait for a link; what comes then is dropped, as by a switch


def end(*_):
    sys.exit(130)


def enter():
    """Returns in the new namespaces."""
    if not os.environ.get("EPOCHFS_INSIDE"):
        os.environ["EPOCHFS_INSIDE"] = "yes"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child",
                              "--mount-proc", sys.executable, *sys.argv])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # process 1 ignores what it does not handle
        signal.signal(number, end)
    os.makedirs(NAMES, exist_ok=True)
    call("mount", "-t", "tmpfs", "none", NAMES)
    call("ip", "link", "set", "lo", "up")


def call(*words):
    done = subprocess.run(words, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout.decode(errors='replace')}")
    return done.stdout.decode()


def limit(device, rate, *space):
    """What leaves by the device: rate bytes per second."""
    call(*space, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{rate * 8}bit", "burst", str(BURST),
         "limit", str(QUEUE))


class Network:
    """n nodes, counted from 0, and a site's machine; rates in bytes per second, of each direction of a link."""

    def __init__(self, n, rate, origin_rate):
        self.n = n
        self.rates = {"origin": origin_rate, "site": rate, **{f"node{i}": rate for i in range(n)}}

    def __enter__(self):
        call("ip", "netns", "add", "switch")
        call("ip", "-n", "switch", "link", "add", "bridge", "type", "bridge")
        call("ip", "-n", "switch", "link", "set", "bridge", "up")
        for name, rate in self.rates.items():
            self.connect(name, rate)
        return self

    def __exit__(self, *_):
        for name in self.rates:
            call("ip", "-n", "switch", "link", "delete", name)
            if name != "origin":
                call("ip", "netns", "delete", name)
        call("ip", "netns", "delete", "switch")

    def connect(self, name, rate):
        """A link named after the machine at the switch, and eth at the machine."""
        address = {"origin": ORIGIN, "site": SITE}.get(name) or self.address(int(name[4:]))
        space = [] if name == "origin" else self.prefix(name)
        if space:
            call("ip", "netns", "add", name)
        call("ip", "-n", "switch", "link", "add", name, "type", "veth", "peer", "name", "eth", "netns", name if space else "1")
        call(*space, "ip", "link", "set", "lo", "up")
        call(*space, "ip", "address", "add", f"{address}/16", "dev", "eth")
        call(*space, "ip", "link", "set", "eth", "up")
        limit("eth", rate, *space)
        call("ip", "-n", "switch", "link", "set", name, "master", "bridge", "up")
        limit(name, rate, *self.prefix("switch"))

    @staticmethod
    def address(i):
        return f"{NET}.3.{i + 1}"

    @staticmethod
    def prefix(name):
        """Words before a command, so that it runs on that machine; name: node0 ..., site, switch."""
        return ["nsenter", f"--net={NAMES}/{name}"]

    def traffic(self):
        """name -> bytes that have come to the machine and left it, by its link."""
        found = json.loads(call("ip", "-n", "switch", "-s", "-j", "link", "show"))
        return {link["ifname"]: (link["stats64"]["tx"]["bytes"], link["stats64"]["rx"]["bytes"])
                for link in found if link["ifname"] in self.rates}
