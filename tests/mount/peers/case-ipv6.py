#!/usr/bin/python3
# needs: root iproute2
"""Peers on nodes that have IPv6 addresses: three network namespaces as nodes, named by address, and spelled in
other ways than the system does. The origin sends each byte once, only the nodes may ask, `peers status` names the
addresses, and no reader misses a node that is killed."""

import itertools
import os
import signal
import subprocess

import numpy as np

from lib import DEADLINE, EPOCHFS, PRIVATE, contains, equal, idx_bytes, skip, text
from ring import TOOL, make_secret
from servers import Late, Nginx, calmly, check_once, end_process, free_port, place, sent, wait_until

NODES = 3
NET, NET4, ORIGIN = "fd00:e:f5::", "10.77.0.", 100
CACHES = itertools.count()
SPELLED = ["FD00:E:F5::1", "fd00:e:f5:0:0:0:0:2", "fd00:e:f5::3"]  # as an administrator may
if not os.path.exists("/proc/net/if_inet6"):
    skip("this system has no IPv6")
if not os.environ.get("OWN_NETWORK"):
    os.environ["OWN_NETWORK"] = "1"
    os.execvp("unshare", ["unshare", "--net", os.path.abspath(__file__)])
WWW = f"{PRIVATE}/www"
DATA = {name: idx_bytes(np.random.default_rng(6).integers(0, 256, (9000, 32, 32), dtype=np.uint8))
        for name in ("one-data", "two-data")}
SIZES = {f"/{name}": len(data) for name, data in DATA.items()}
for file, data in DATA.items():
    place(WWW, file, data)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Node:
    """A network namespace with one interface on the bridge."""

    def __init__(self, i):
        self.i = i
        own = os.readlink("/proc/self/ns/net")
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        wait_until(lambda: os.readlink(f"/proc/{self.process.pid}/ns/net") != own, "a namespace", self.process)
        self.prefix = ["nsenter", "-t", str(self.process.pid), "-n"]
        self.folder = f"{PRIVATE}/node.{i}"
        ip("link", "add", f"v{i}", "type", "veth", "peer", "name", "net0", "netns", str(self.process.pid))
        ip("link", "set", f"v{i}", "master", "bridge0", "up")
        for words in (["addr", "add", f"{NET}{i + 1}/64", "dev", "net0", "nodad"],
                      ["addr", "add", f"{NET4}{i + 1}/24", "dev", "net0"],
                      ["link", "set", "lo", "up"], ["link", "set", "net0", "up"]):
            subprocess.run([*self.prefix, "ip", *words], check=True)

    def start(self, *words):
        return subprocess.Popen([*self.prefix, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, *words, code=0):
        process = self.start(*words)
        said = process.communicate(timeout=DEADLINE)[0]
        equal(process.returncode, code, f"{words}: {said}")
        return said


def network():
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge0", "type", "bridge")
    ip("addr", "add", f"{NET}{ORIGIN}/64", "dev", "bridge0", "nodad")
    ip("addr", "add", f"{NET4}{ORIGIN}/24", "dev", "bridge0")
    ip("link", "set", "bridge0", "up")
    return [Node(i) for i in range(NODES)]


def up(node, port, origin, secret, names, wait=DEADLINE):
    return node.start(TOOL, "up", "--nodes", ",".join(names), "--self", names[node.i], "--folder", node.folder,
                      "--size", "1g", "--secret", secret, "--port", str(port), "--origin", origin, "--wait", str(wait))


def stage(node, name, origin, port):
    return node.start(EPOCHFS, "stage", "-o", f"cache={PRIVATE}/cache.{name},via=http://127.0.0.1:{port},"
                      f"via_secret={node.folder}/secret", f"{origin}/")


def check_ring(nodes, server, origin, port, names):
    secret = f"{PRIVATE}/secret"
    for process in [up(node, port, origin, secret, names) for node in nodes]:
        said = process.communicate(timeout=DEADLINE)[0]
        equal(process.returncode, 0, f"peers up: {said}")
        contains(said, f"peers=http://127.0.0.1:{port},")
    server.forget()
    staging = [stage(node, next(CACHES), origin, port) for node in nodes]
    said = [process.communicate(timeout=DEADLINE)[0] for process in staging]
    for one in said:
        contains(one, "complete and correct")
    if "the origin is asked in their place" in "".join(said):
        for node in nodes:
            node.run(TOOL, "down", "--folder", node.folder)
        raise Late(f"a front had no processor for a second: {said}")
    check_once(server.log(), SIZES, f"{NODES} nodes")
    said = nodes[0].run(TOOL, "status", "--folder", nodes[0].folder)
    contains(said, *(f"{name}: answers" for name in names))
    # Not a node: the machine of the origin, with the secret.
    ask = ["curl", "-s", "-g", "-o", "/dev/null", "-w", "%{http_code}", "-H", f"X-Epochfs-Secret: {text(secret).strip()}",
           f"http://[{NET}2]:{port + 1}/.epochfs-peers/list"]
    equal(subprocess.run(ask, stdout=subprocess.PIPE, check=False).stdout, b"403", "a machine that is no node")
    equal(nodes[0].run(*ask), "204", "a node")


def check_names(node, origin):
    """A node finds itself, however its address is spelled; the same address twice is refused."""
    secret = f"{PRIVATE}/secret"
    words = [TOOL, "up", "--folder", node.folder, "--size", "1g", "--secret", secret, "--port", "22000", "--origin",
             origin, "--wait", "0"]
    said = node.run(*words, "--nodes", f"{NET}1,FD00:E:F5:0:0::1", code=3)
    contains(said, f"nodes '{NET}1' and 'FD00:E:F5:0:0::1' have the same address, {NET}1")
    contains(node.run(*words, "--nodes", f"{NET}2,FD00:E:F5::3", code=3), "is not in the list of nodes")
    contains(node.run(*words, "--nodes", "FD00:E:F5:0:0::1,FD00:E:F5::3", code=2), "peers=http://127.0.0.1:22000,")
    node.run(TOOL, "down", "--folder", node.folder)


def check_dead(nodes, server, origin, port, names):
    os.killpg(int(text(f"{nodes[2].folder}/pid")), signal.SIGKILL)
    server.forget()
    contains(stage(nodes[0], "dead", origin, port).communicate(timeout=DEADLINE)[0], "complete and correct")
    equal(0 < sent(server.log()) < sum(SIZES.values()), True, f"bytes sent again: {sent(server.log())}")
    contains(nodes[0].run(TOOL, "status", "--folder", nodes[0].folder, code=2), f"{names[2]}: does not answer")


the_nodes = network()
try:
    origin_port, ring_port = free_port(), 21000
    with Nginx(WWW, more=f"listen {NET4}{ORIGIN}:{origin_port};") as the_server:
        url = f"http://{NET4}{ORIGIN}:{origin_port}"
        make_secret(f"{PRIVATE}/secret")
        check_names(the_nodes[0], url)
        calmly(check_ring, the_nodes, the_server, url, ring_port, SPELLED)
        check_dead(the_nodes, the_server, url, ring_port, SPELLED)
        for the_node in the_nodes:
            the_node.run(TOOL, "down", "--folder", the_node.folder)
finally:
    for the_node in the_nodes:
        end_process(the_node.process)
