#!/usr/bin/python3
# needs: systemd root cgroup2
"""docs/cluster.md, mounts of users: the service with the rights of a user, by user.conf; and the service that users start
themselves, which outlives their sessions."""

import os
import re

import pages
import systemd
from lib import contains, content, equal
from page_blocks import take
from servers import ended, wait_until

AT = "/data/home/ann/mnt"
FILE = f"{AT}/t10k/source/t10k-images-idx3-ubyte"
UNIT = "epochfs@mnist"
CONF = "SOURCE=https://data.example.org/mnist/\nMOUNTPOINT=/data/home/ann/mnt\nOPTIONS={}\n"
POLKIT = "/usr/lib/polkit-1/polkitd"
USER_CONF = f"{systemd.SCRIPTS}/systemd/user.conf"
LINGER, RUN, STOP = take("docs/cluster.md", "loginctl enable-linger").replace("SOURCE", "/data/mnist").replace("MOUNTPOINT", AT).splitlines()
EPOCHFS_MOUNT = re.search("epochfs mount .*", RUN)[0].replace(" -f ", " ")


def install(machine, options="", more="", left_out=None):
    """The unit with user.conf, without its line left_out."""
    lines = content(USER_CONF).decode().replace("User=ann\n", f"User=ann\n{more}").splitlines(keepends=True)
    machine.service(CONF.format(options), drop_in="".join(line for line in lines if line.strip() != left_out))
    machine.run(f"systemctl daemon-reload; systemctl reset-failed '{UNIT}' || :")


def sees(machine, user):
    """Can this user read the data?"""
    return machine.run(f"cmp -s {FILE} /data/mnist/t10k-images-idx3-ubyte && echo yes || echo no", user=user) == "yes\n"


# ---- a service with User= ----

def service_of_a_user(machine):
    install(machine)
    machine.run(f"systemctl start {UNIT}")
    equal([sees(machine, user) for user in ("ann", "bob", "root")], [True, False, False], "who can read: ann, bob, root")
    equal(machine.run(f"stat -c %U /proc/$(systemctl show --property=MainPID --value {UNIT})"), "ann\n", "whose daemon it is")
    equal(os.listdir("/data/home/ann/.cache/epochfs") != [], True, "the cache is the user's")
    equal(os.path.exists("/var/cache/epochfs"), False, "there is a cache of root")
    machine.run(f"systemctl stop {UNIT}")
    equal(machine.mount_type(AT), None, "what is mounted after the stop")


def killed(machine):
    install(machine, more="RestartSec=0\n")
    machine.run(f"systemctl start {UNIT}")
    before = machine.show(UNIT, "MainPID")
    machine.run(f"systemctl kill --kill-who=main --signal=KILL {UNIT}")
    wait_until(lambda: machine.show(UNIT, "MainPID") not in ("0", before), "another daemon")
    machine.wait_state(UNIT, "active running")
    equal(sees(machine, "ann"), True, "ann can read")
    machine.run(f"systemctl stop {UNIT}")
    equal(machine.mount_type(AT), None, "what is mounted after the stop")


def other_readers(machine):
    """They want user_allow_other in /etc/fuse.conf."""
    install(machine, options="allow_other", more="Restart=no\n")
    machine.write("/etc/fuse.conf", "")
    machine.run(f"systemctl start {UNIT}", code=1)
    contains(machine.journal(UNIT), "user_allow_other")
    machine.write("/etc/fuse.conf", "user_allow_other\n")
    os.chmod("/data/home/ann", 0o711)
    machine.run(f"systemctl start {UNIT}")
    equal([sees(machine, user) for user in ("ann", "bob", "root")], [True, True, True], "who can read: ann, bob, root")
    machine.run(f"systemctl stop {UNIT}")


def all_lines_are_needed(machine):
    """Without any line that changes the rights the user cannot mount."""
    for line in content(USER_CONF).decode().splitlines():
        if re.match(r"NoNew|Lock|Memory|Restrict|System", line):
            install(machine, more="Restart=no\n", left_out=line)
            machine.run(f"systemctl start {UNIT}", code=1)
            contains(machine.journal(UNIT), "fusermount3: mount failed: Operation not permitted")


# ---- the user's own service ----

def session(machine, commands):
    """A login of ann, in which these are run; returns when logind has ended it."""
    machine.run(f"systemd-run --pipe --wait --quiet --uid=ann --property=PAMName=login bash -euc '{commands}'")
    wait_until(lambda: "ann" not in machine.run("loginctl --no-legend list-sessions"), "the session has ended")


def ends_with_its_session(machine):
    """By KillUserProcesses=yes."""
    session(machine, f"{EPOCHFS_MOUNT}\nls -d {AT}/t10k")
    wait_until(lambda: machine.mount_type(AT) is None, "it is unmounted")


def outlives_its_session(machine):
    if not os.path.exists(POLKIT):
        print(f"without {POLKIT} (package polkitd)")
        return
    session(machine, f"{LINGER}\n{RUN}\nls -d {AT}/t10k")
    equal(sees(machine, "ann"), True, "ann can read after the session")
    daemon = machine.pidfd(machine.show("mnist", "MainPID", user="ann"))
    session(machine, STOP)
    equal(ended(daemon, systemd.DEADLINE), True, "the daemon has ended")
    os.close(daemon)
    equal(machine.mount_type(AT), None, "what is mounted")


def without_polkit(machine):
    """Only root may say that a user's services are kept."""
    session(machine, "! loginctl enable-linger")
    machine.run("loginctl enable-linger ann")
    session(machine, f"{RUN}\nls -d {AT}/t10k")
    equal(sees(machine, "ann"), True, "ann can read after the session")


world = pages.World()
world.fashion("/data/mnist", "t10k")
world.web({"mnist": "/data/mnist"})
of_the_case = systemd.Machine()
of_the_case.write("/etc/systemd/logind.conf.d/test.conf", "[Login]\nKillUserProcesses=yes\n")
os.mkdir(AT)
os.chown(AT, systemd.USERS["ann"], systemd.USERS["ann"])
with of_the_case.booted():
    for test in (service_of_a_user, killed, other_readers, all_lines_are_needed, ends_with_its_session, outlives_its_session):
        test(of_the_case)
of_the_case.empty("/var/lib/systemd")  # where it is written who may
systemd.mask("/etc/systemd/system", "polkit.service")
with of_the_case.booted():
    without_polkit(of_the_case)
