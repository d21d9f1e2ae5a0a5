#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, "Mounting at boot": the lines of fstab.example, those that its table names, and a unit of one's own, as
systemd mounts them."""

import os

import pages
import systemd
from lib import contains, content, equal, skip, text

EXAMPLE = content(f"{systemd.SCRIPTS}/systemd/fstab.example").decode()
WEB = "https://data.example.org"
MORE = f"""
/data/none  /mnt/none  epochfs  ro,nofail  0  0
{WEB}/mnist/  /mnt/idle  epochfs  ro,noauto,nofail,_netdev,x-systemd.automount,x-systemd.idle-timeout=1,cache=/var/cache/idle  0  0
{WEB}/mnist/  /mnt/long  epochfs  ro,noauto,nofail,_netdev,x-systemd.automount,x-systemd.idle-timeout=600  0  0
"""
OWN = f"[Mount]\nWhat={WEB}/a%%20b/\nWhere=/mnt/own\nType=epochfs\n"
PICTURES = "t10k/source/t10k-images-idx3-ubyte"


def state(machine, unit):
    return machine.show(unit, "ActiveState")


def sees(machine, at, user="root"):
    return machine.run(f"cmp -s {at}/{PICTURES} /data/mnist/t10k-images-idx3-ubyte && echo yes || echo no", user=user) == "yes\n"


def at_boot(machine):
    """A line that can be mounted is; one that cannot does not stop the boot, and its unit's log says why."""
    equal(state(machine, "mnt-mnist.mount"), "active", "a local source")
    equal([sees(machine, "/mnt/mnist", user) for user in ("root", "bob")], [True, True], "who can read with allow_other: root, bob")
    machine.run("ls '/mnt/mnist/t10k/batches/batch=128,seed=7'")
    equal([state(machine, unit) for unit in ("mnt-none.mount", "multi-user.target")], ["failed", "active"], "a missing source")
    contains(machine.run("systemctl status mnt-none.mount", code=3), "/data/none: No such file or directory")


def at_the_first_access(machine):
    equal([state(machine, unit) for unit in ("mnt-remote.automount", "mnt-remote.mount")], ["active", "inactive"], "before it")
    equal(sees(machine, "/mnt/remote"), True, "it is mounted")
    equal(state(machine, "mnt-remote.mount"), "active", "after it")
    equal(machine.show("mnt-remote.mount", "TimeoutUSec"), "1min", "x-systemd.mount-timeout=60")
    equal(machine.show("mnt-long.automount", "TimeoutIdleUSec"), "10min", "x-systemd.idle-timeout=600")
    equal(os.listdir("/var/cache/epochfs") != [], True, "cache=/var/cache/epochfs")


def with_the_network(machine):
    """What systemd starts after the network it ends before."""
    after = {unit: machine.show(unit, "After").split() for unit in ("mnt-remote.mount", "mnt-mnist.mount")}
    equal({unit: "network-online.target" in units for unit, units in after.items()},
          {"mnt-remote.mount": True, "mnt-mnist.mount": False}, "_netdev: after the network")


def idle(machine):
    """It is unmounted; the cache is kept, and it is mounted at the next access."""
    equal(sees(machine, "/mnt/idle"), True, "the first access")
    machine.wait_state("mnt-idle.mount", "inactive dead")
    blocks = machine.run("du -s /var/cache/idle")
    equal(int(blocks.split()[0]) > 1000, True, f"the cache: {blocks}")
    equal(sees(machine, "/mnt/idle"), True, "the next access")


def the_cache_of_root(machine):
    equal(os.path.exists("/data/home/root/.cache/epochfs"), False, "a cache of root is there before")
    equal(sees(machine, "/mnt/long"), True, "a line without cache=")
    equal(os.listdir("/data/home/root/.cache/epochfs") != [], True, "root's default")
    equal(sees(machine, "/mnt/long", "bob"), False, "without allow_other others can read")


def any_user(machine):
    """Who owns the folder may mount it, with his own keys of S3, and unmount it."""
    command = f"AWS_ENDPOINT_URL={s3.endpoint} mount /mnt/bucket"
    contains(machine.run(f"{command} || :", user="bob"), "user has no write access to mountpoint /mnt/bucket")
    equal(machine.mount_type("/mnt/bucket"), None, "mounted by a user who does not own the folder")
    machine.write("/data/home/ann/.aws/credentials", "[default]\naws_access_key_id = KEYOFANN\naws_secret_access_key = hush\n")
    machine.run(command, user="ann")
    equal(machine.run("ls /mnt/bucket", user="ann"), "README.txt\nt10k-labels-idx1-ubyte\n", "what ann sees")
    equal(s3.signers, {"KEYOFANN"}, "whose keys were used")
    machine.run("ls /mnt/bucket", code=2)
    machine.run("umount /mnt/bucket", user="ann")
    equal(machine.mount_type("/mnt/bucket"), None, "mounted after umount")


def own_unit(machine):
    machine.run("systemctl start mnt-own.mount")
    equal(sees(machine, "/mnt/own"), True, "a unit with %% in its URL")
    machine.run("systemctl stop mnt-own.mount")
    equal(machine.mount_type("/mnt/own"), None, "mounted after the stop")


if "\tautofs\n" not in text("/proc/filesystems"):
    skip("the kernel has no autofs")
world = pages.World()
world.fashion("/data/mnist", "t10k")
world.web({"mnist": "/data/mnist", "a b": "/data/mnist"})
s3 = world.s3({"prefix/t10k-labels-idx1-ubyte": content("/data/mnist/t10k-labels-idx1-ubyte")})
of_the_case = systemd.Machine()
for name in ("mnist", "remote", "bucket", "none", "idle", "long", "own"):
    os.mkdir(f"/mnt/{name}")
os.chown("/mnt/bucket", systemd.USERS["ann"], systemd.USERS["ann"])
of_the_case.write("/etc/fstab", EXAMPLE + MORE)
of_the_case.write("/etc/systemd/system/mnt-own.mount", OWN)
with of_the_case.booted():
    for test in (at_boot, at_the_first_access, with_the_network, idle, the_cache_of_root, any_user, own_unit):
        test(of_the_case)
