#!/usr/bin/python3
# needs: root
"""docs/containers.md, with namespaces as containers: a mount of the host comes into a container that has the folder above it
as a slave, also when it is mounted again; root of a user namespace can mount."""

import os
import subprocess

from lib import EPOCHFS, PRIVATE, SOURCE, contains, equal, mounted, small

small()
HOST = f"{PRIVATE}/host"
os.makedirs(f"{HOST}/mnist")


class Container:
    """A shell in a mount namespace whose mounts are slaves of ours; each command answers with a line."""

    def __init__(self, propagation):
        self.shell = subprocess.Popen(["unshare", "--mount", "--propagation", propagation, "bash"], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def do(self, command):
        print(f"echo \"$({command} 2>&1)\" | tail -n 1", file=self.shell.stdin, flush=True)
        return self.shell.stdout.readline().strip()

    def end(self):
        self.shell.stdin.close()
        equal(self.shell.wait(), 0, "exit code of the container")
        self.shell.stdout.close()


def check_host():
    subprocess.run(["mount", "--bind", HOST, HOST], check=True)
    subprocess.run(["mount", "--make-shared", HOST], check=True)
    slave, private = Container("slave"), Container("private")
    try:
        for c in (slave, private):
            equal(c.do(f"ls {HOST}/mnist | wc -l"), "0", "before it is mounted")
        for _ in range(2):  # and mounted again
            with mounted(SOURCE, at=f"{HOST}/mnist"):
                equal(slave.do(f"cat {HOST}/mnist/train/batches/batch=all/npz/000000.npz | wc -c"),
                      str(os.path.getsize(f"{HOST}/mnist/train/batches/batch=all/npz/000000.npz")), "a batch, in the slave")
                equal(private.do(f"ls {HOST}/mnist | wc -l"), "0", "a mount that came later, in the private one")
            equal(slave.do(f"ls {HOST}/mnist | wc -l"), "0", "after it was unmounted")
    finally:
        slave.end()
        private.end()
        subprocess.run(["umount", HOST], check=True)


def check_inside():
    """Root of a user namespace of its own mounts, reads and unmounts."""
    inside = f"{PRIVATE}/inside"
    os.makedirs(inside)
    command = (f"{EPOCHFS} mount -o cache={PRIVATE}/cache {SOURCE} {inside} && cat {inside}/train/dataset.json && "
               f"{EPOCHFS} umount {inside}")
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if "Operation not permitted" in done.stdout and "unshare" in done.stdout:
        print("no user namespaces here")
        return
    equal(done.returncode, 0, done.stdout)
    contains(done.stdout, '"samples": 20')


check_host()
check_inside()
