"""A machine whose first process is systemd, for the cases of units: in namespaces of its own, with the files of the case's
World (pages.py) and its network, but without the services that this machine has.

    world = pages.World()
    machine = Machine()                   nothing runs yet; what the case writes below /etc is the machine's
    with machine.booted():                systemd has started all that belongs to the boot; at the end it is halted
        machine.run("systemctl start x")  a line of bash in it; returns its output. user="ann": as a user of USERS
        machine.show("x.service", "Id")   a property of a unit
        machine.at("/mnt/mnist")          the path by which the case itself finds this one of the machine
        machine.wait_state("x", "failed failed")
    with machine.booted(): ...            the same machine, started again
"""

import contextlib
import glob
import os
import select
import shutil
import signal
import socket
import subprocess
import sys

import needs
import page_blocks
from lib import DEADLINE, EPOCHFS, PRIVATE, equal, skip, text
from servers import wait_until

INIT = "/lib/systemd/systemd"
UNITS = "/lib/systemd/system"
SCRIPTS = f"{page_blocks.ROOT}/mount-scripts"
USERS = {"root": 0, "ann": 61001, "bob": 61002}
HOMES = "/data/home"
# What starts at boot of all that the packages of this machine would start.
STARTED = {"dbus.service", "dbus.socket", "systemd-journald.service", "systemd-journald.socket",
           "systemd-journald-dev-log.socket", "systemd-logind.service", "systemd-user-sessions.service"}
GENERATORS = {"systemd-fstab-generator"}
# From the folders below / of the case, the machine has its own /dev, /proc, /run and /sys. $1: where systemd reports that it has
# booted. What would change the kernel that all share is read-only.
INSIDE = f"""
mount --make-rprivate /
for folder in /dev /sys; do
    ! mountpoint -q "$folder" || umount --recursive "$folder" # in a chroot, /dev may be a folder
done
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount -t sysfs -o ro sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t fusectl fusectl /sys/fs/fuse/connections
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /dev
mkdir -m 1777 /dev/shm
mkdir /dev/pts
mount -t devpts -o newinstance,ptmxmode=666 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx
ln -s /proc/self/fd /dev/fd
for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 fuse:10:229 autofs:10:235; do
    IFS=: read -r name major minor <<<"$device"
    mknod -m 666 "/dev/$name" c "$major" "$minor"
done
hostname machine
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=test NOTIFY_SOCKET="$1" \\
    {INIT} --log-target=journal --show-status=0 --unit=multi-user.target
"""


def number_inside(path):
    """The files of the process, in its own namespace."""
    return next(line.split()[-1] for line in text(path, "status").splitlines() if line.startswith("NSpid:"))


def in_group(group, *command):
    """The command, run in that cgroup."""
    return ["bash", "-euc", 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"', "bash", group, *command]


def mask(folder, name):
    if not os.path.lexists(f"{folder}/{name}"):
        os.symlink("/dev/null", f"{folder}/{name}")


class Machine:
    def __init__(self):
        for folder in ("/etc", "/usr"):
            if os.stat(folder).st_dev != os.stat("/").st_dev:
                skip(f"{folder} is a file system of its own, which would be changed")
        self.outside = needs.cgroup2()
        self.group = f"{self.outside}/epochfs-test-{os.getpid()}"
        self.process = self.pid = None
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the runner's: the cgroup must go
        self.empty("/etc/systemd/system")
        self.empty("/etc/systemd/user")
        os.mkdir("/etc/systemd/system/multi-user.target.wants")
        os.symlink(f"{UNITS}/remote-fs.target", "/etc/systemd/system/multi-user.target.wants/remote-fs.target")
        for path in glob.glob(f"{UNITS}/*.wants/*"):
            name = os.path.basename(path)
            if name not in STARTED and not name.endswith(".target"):
                mask("/etc/systemd/system", name)
        for name in ("modprobe@.service", "systemd-remount-fs.service"):
            mask("/etc/systemd/system", name)
        os.makedirs("/etc/systemd/system-generators", exist_ok=True)
        for path in glob.glob("/lib/systemd/system-generators/*"):
            if os.path.basename(path) not in GENERATORS:
                mask("/etc/systemd/system-generators", os.path.basename(path))
        self.write("/etc/systemd/journald.conf.d/test.conf", "[Journal]\nStorage=volatile\nRateLimitBurst=0\n")
        self.write("/etc/fstab", "")
        self.make_homes()
        for name in ("/usr/bin/epochfs", "/usr/sbin/mount.epochfs"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(name)
            shutil.copy(EPOCHFS, name)

    @staticmethod
    def empty(folder):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder], check=True)

    @staticmethod
    def write(path, content):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content)

    @staticmethod
    def service(conf, name="mnist", drop_in=None):
        """epochfs@NAME as the page says: the unit is copied, /etc/epochfs/NAME.conf has conf. drop_in: changes of the unit."""
        shutil.copy(f"{SCRIPTS}/systemd/epochfs@.service", "/etc/systemd/system/")
        Machine.write(f"/etc/epochfs/{name}.conf", conf)
        if drop_in:
            Machine.write(f"/etc/systemd/system/epochfs@{name}.service.d/test.conf", drop_in)

    def make_homes(self):
        """Only systemd has written to /var, and all homes are empty."""
        for folder in ("/var/cache", "/var/lib/systemd"):
            self.empty(folder)
        for file, line in (("passwd", "{0}:x:{1}:{1}::{2}/{0}:/bin/bash\n"), ("group", "{0}:x:{1}:\n"),
                           ("shadow", "{0}:*:19000:0:99999:7:::\n")):
            with open(f"/etc/{file}", "r+", encoding="utf-8") as f:
                others = [found for found in f if found.split(":")[0] not in USERS]
                f.seek(0)
                f.truncate()
                f.write("".join(others + [line.format(name, uid, HOMES) for name, uid in USERS.items()]))
        for name, uid in USERS.items():
            os.makedirs(f"{HOMES}/{name}")
            os.chmod(f"{HOMES}/{name}", 0o700)
            os.chown(f"{HOMES}/{name}", uid, uid)

    # ---- on and off ----

    @contextlib.contextmanager
    def booted(self):
        try:
            self.boot()
            yield self
            self.halt()
        finally:
            self.clear()

    def boot(self):
        os.mkdir(self.group)
        where = f"{PRIVATE}/booted"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(where)
            s.settimeout(DEADLINE)
            self.process = subprocess.Popen(
                in_group(self.group, "unshare", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--fork", "--kill-child=KILL",
                         "bash", "-euc", INSIDE, "bash", where), stdin=subprocess.DEVNULL)
            process = os.pidfd_open(self.process.pid)
            said = b""
            while b"READY=1" not in said:
                ready = select.select([s, process], [], [], DEADLINE)[0]
                equal(ready, [s], "systemd reports that it has booted")
                said = s.recv(4096)
            os.close(process)
        os.remove(where)
        self.pid = int(text(f"/proc/{self.process.pid}/task/{self.process.pid}/children"))
        # Only processes of the machine are in its cgroup, so that systemd may have controllers there.
        with open(f"{self.outside}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(self.process.pid))

    def halt(self):
        """As by the power button."""
        self.save_journal()
        os.kill(self.pid, signal.SIGRTMIN + 4)
        self.process.wait(2 * DEADLINE)
        self.pid = None

    def clear(self):
        """Whatever has happened: nothing of it runs, and its cgroup is gone."""
        if self.pid:
            self.save_journal()
        if self.process:
            self.process.kill()  # unshare's child is killed with it
            self.process.wait()
        self.process = self.pid = None
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{PRIVATE}/booted")
        wait_until(self.group_is_gone, "all processes of the machine have ended")

    def group_is_gone(self):
        for folder, _, _ in os.walk(self.group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return True

    def save_journal(self):
        """For a look at it after a failure."""
        with open(f"{PRIVATE}/log.journal", "ab") as f, contextlib.suppress(subprocess.TimeoutExpired):
            f.write(self.start("journalctl --no-pager --boot").communicate(timeout=DEADLINE)[0])

    # ---- in it ----

    def start(self, command, user="root", stdin=subprocess.DEVNULL):
        """A process in the machine; its output is a pipe."""
        within = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--cgroup", "--uts", "--ipc", "--root", "--wd=/",
                  "env", "-i", f"PATH={os.environ['PATH']}", "LC_ALL=C.UTF-8", "SYSTEMD_PAGER=cat", "SYSTEMD_COLORS=0"]
        uid = USERS[user]
        within += [f"HOME={HOMES}/{user}", f"USER={user}", f"XDG_RUNTIME_DIR=/run/user/{uid}",
                   "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        return subprocess.Popen(in_group(f"{self.group}/init.scope", *within, "bash", "-euc", command), stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command, code=0, user="root"):
        with self.start(command, user) as process:
            try:
                said = process.communicate(timeout=2 * DEADLINE)[0].decode(errors="replace")
            except BaseException:
                process.kill()
                raise
        if code is not None:
            equal(process.returncode, code, f"exit code of {command!r} in the machine: {said}")
        return said

    def show(self, unit, word, user="root"):
        """A property of a unit."""
        manager = "--system" if user == "root" else "--user"
        return self.run(f"systemctl {manager} show --property={word} --value '{unit}'", user=user).rstrip("\n")

    def wait_state(self, unit, *states, user="root"):
        """Until it is in one of these states, such as "active running"."""
        def state():
            return " ".join(self.show(unit, word, user) for word in ("ActiveState", "SubState"))
        return wait_until(lambda: (found := state()) in states and found, f"{unit} is one of {states}")

    def pidfd(self, pid):
        """A descriptor of the process that has that number in the machine."""
        inside = os.readlink(f"/proc/{self.pid}/ns/pid")
        for path in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):  # it has just ended
                if os.readlink(f"{path}/ns/pid") == inside and number_inside(path) == pid:
                    return os.pidfd_open(int(os.path.basename(path)))
        raise AssertionError(f"process {pid} of the machine has ended")

    def at(self, path):
        return f"/proc/{self.pid}/root{path}"

    def mount_type(self, path):
        """See lib.mount_type()."""
        return self.run(f"findmnt --noheadings --output=FSTYPE --mountpoint '{path}' | tail -n 1 || :").strip() or None

    def journal(self, unit):
        return self.run(f"journalctl --sync; journalctl --output=cat --unit='{unit}'")
