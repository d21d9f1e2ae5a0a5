#!/usr/bin/python3
# needs: root iproute2
# slow: four nodes, with nothing else running
"""The commands of docs/cluster.md on four nodes, as written: each node is a network, a host name and disks of its own, the origin
speaks HTTPS, and no two nodes share more than the bridge and the page's secret. The origin sends each byte once to all
four, and `peers down` ends the ring of its node alone."""

import os
import re
import subprocess

import pages
import tutorials
from lib import DEADLINE, contains, equal, text
from page_blocks import ROOT, take
from servers import check_once, end_process, wait_until

NET, ORIGIN = "10.77.0.", 100


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Node:
    def __init__(self, i, name):
        self.name = name
        own = os.readlink("/proc/self/ns/uts")
        self.process = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "sleep", "infinity"])
        wait_until(lambda: os.readlink(f"/proc/{self.process.pid}/ns/uts") != own, "namespaces", self.process)
        # With our root and folder, which are not those of the mount namespace.
        self.prefix = ["nsenter", "-t", str(self.process.pid), "-n", "-m", "-u", "-r", "-w"]
        ip("link", "add", f"v{i}", "type", "veth", "peer", "name", "net0", "netns", str(self.process.pid))
        ip("link", "set", f"v{i}", "master", "bridge0", "up")
        self.run(f"""hostname {name}
ip address add {NET}{i + 1}/24 dev net0; ip link set lo up; ip link set net0 up
mount -t tmpfs tmpfs /local; mount -t tmpfs tmpfs /mnt; mkdir /mnt/mnist""")

    def start(self, commands):
        return subprocess.Popen([*self.prefix, "bash", "-ec", commands], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env=dict(tutorials.environment(), EPOCHFS_CACHE="/local/cache"))

    def run(self, commands, code=0):
        return said_by(self.start(commands), f"{self.name}: {commands}", code)


def said_by(process, what, code=0):
    said = process.communicate(timeout=DEADLINE)[0]
    equal(process.returncode, code, f"{what}: {said}")
    return said


def all_run(nodes, commands):
    """On all nodes at the same time; what they print."""
    started = [node.start(commands) for node in nodes]
    return [said_by(process, f"{node.name}: {commands}") for node, process in zip(nodes, started)]


block = take("docs/cluster.md", "peers up --nodes n1,n2")
up, mount, status, down = block.splitlines()
names = re.search(r"--nodes (\S+)", up)[1].split(",")
equal(len(names), 4, "nodes of the page")
world = pages.World()
world.fashion("/data/mnist", "train")
sizes = {f"/mnist/{name}": os.path.getsize(f"/data/mnist/{name}") for name in os.listdir("/data/mnist")}
server = world.web({"mnist": "/data/mnist"})
with open("/etc/hosts", "w", encoding="ascii") as f:
    f.write(f"127.0.0.1 localhost\n{NET}{ORIGIN} data.example.org\n")
    f.writelines(f"{NET}{i + 1} {name}\n" for i, name in enumerate(names))
os.makedirs("/local", exist_ok=True)
os.symlink(f"{ROOT}/mount-scripts/peers", "/usr/local/bin/peers")
ip("link", "add", "bridge0", "type", "bridge")
ip("address", "add", f"{NET}{ORIGIN}/24", "dev", "bridge0")
ip("link", "set", "bridge0", "up")
secret = re.search(r"`(\(umask .*>~/\.peers\))`", text(ROOT, "docs/cluster.md"))[1]
nodes = []
try:
    nodes += [Node(i, name) for i, name in enumerate(names)]
    nodes[0].run(secret)
    for said in all_run(nodes, up):
        contains(mount, f" -o {said.strip()} ")
    all_run(nodes, mount)
    all_run(nodes, "for file in /data/mnist/*; do cmp $file /mnt/mnist/train/source/${file##*/}; done")
    check_once(server.log(), sizes, "four nodes")
    for said in all_run(nodes, status):
        contains(said, *(f"{name}: answers\n" for name in names))
    all_run(nodes, "epochfs umount /mnt/mnist")
    for i, node in enumerate(nodes):
        node.run(down)
        equal(node.run("ls -A /local/peers").split(), [".epochfs-peers", "back.log", "error.log"], f"files after `down` of {node.name}")
        for other in nodes[i + 1:]:
            said = other.run(status, code=2)
            equal(sorted(re.findall("(.*): answers", said)), names[i + 1:], f"who answers {other.name} after `down` of {node.name}")
finally:
    for node in nodes:
        end_process(node.process)
