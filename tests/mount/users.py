"""Several users of one machine, for the cases that need them: each has his groups and his umask, and
may mount. Only root can become them.

    users.may_mount(__file__)                 once, first
    user = User("ann", [GROUP], umask="077")
    user.run("mount", "-o", options, SOURCE, user.mountpoint)
"""

import os
import shutil
import subprocess
import sys

from lib import DEADLINE, EPOCHFS, PRIVATE, equal, mount_type, skip


NAMES = {"ann": 61001, "bob": 61002, "eve": 61003}
GROUP = 61100  # of ann and bob


def may_mount(case):
    """Make the users, who may open /dev/fuse and get at PRIVATE: in a namespace of mounts, in which
    the case runs again, with a device and a list of users of its own."""
    if os.geteuid():
        skip("only root can become several users")
    if not shutil.which("fusermount3") or not shutil.which("setpriv"):
        skip("fusermount3 or setpriv is missing (packages fuse3, util-linux)")
    device, passwd = f"{PRIVATE}/fuse", f"{PRIVATE}/passwd"
    if os.path.exists(passwd):
        return
    os.chmod(PRIVATE, 0o755)
    if subprocess.run([*as_user(NAMES["eve"]), "test", "-x", PRIVATE], check=False).returncode:
        skip(f"an ordinary user cannot get at {PRIVATE}")
    os.mknod(device, 0o020666, os.makedev(10, 229))
    os.chmod(device, 0o666)
    shutil.copy("/etc/passwd", passwd)
    with open(passwd, "a", encoding="utf-8") as f:  # fusermount3 wants a name for each
        for name, uid in NAMES.items():
            f.write(f"{name}:x:{uid}:{uid}::/nonexistent:/bin/sh\n")
    os.chmod(passwd, 0o644)
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "bash", "-euc",
                          'mount --bind "$1" /dev/fuse; mount --bind "$2" /etc/passwd; exec "$3"',
                          "bash", device, passwd, os.path.abspath(case)])


def as_user(uid, groups=()):
    member = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *member]


class User:
    def __init__(self, name, groups=(), umask="022"):
        self.name, self.uid = name, NAMES[name]
        self.home = f"{PRIVATE}/home.{name}"
        self.mountpoint = f"{self.home}/mnt"
        self.log = f"{PRIVATE}/log.{name}"
        for folder in (self.home, self.mountpoint):
            os.mkdir(folder, 0o700)
            os.chown(folder, self.uid, self.uid)
        os.chmod(self.home, 0o711)
        self.prefix = ["env", f"HOME={self.home}", f"USER={name}", *as_user(self.uid, groups),
                       "sh", "-c", f'umask {umask}; exec "$@"', "sh"]
        self.binary = f"{PRIVATE}/epochfs"  # where users can run it
        if not os.path.exists(self.binary):
            shutil.copy(EPOCHFS, self.binary)

    def start(self, *arguments, **kwargs):
        return subprocess.Popen([*self.prefix, *arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.home,
                                text=True, errors="surrogateescape", **kwargs)

    def do(self, *arguments, code=0):
        """Run a program as this user; its exit code must be code. Returns what it says."""
        with self.start(*arguments) as process:
            said = process.communicate(timeout=2 * DEADLINE)[0]
        equal(process.returncode, code, f"exit code of {arguments} of user {self.name}: {said}")
        return said

    def run(self, *arguments, code=0):
        return self.do(self.binary, *arguments, code=code)

    def mount(self, source, *options):
        self.run("mount", *(word for o in options for word in ("-o", o)), source, self.mountpoint)

    def umount(self):
        self.run("umount", self.mountpoint)
        equal(mount_type(self.mountpoint), None, "unmounted")

    def python(self, text, *arguments):
        """Start a program in Python as this user."""
        return self.start(sys.executable, "-c", text, *arguments)

    def read(self, name, code=0):
        return self.do("cat", f"{self.mountpoint}/{name}", code=code)
