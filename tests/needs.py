#!/usr/bin/python3
"""Run a test where nothing that it starts can leave the machine, or say why it is skipped:  needs.py TEST [ARGUMENTS]
    needs.py --of SOURCE PROGRAM [ARGUMENTS]      the same for a program of this source in C

A test says what it needs beyond the build and Python, in comments above its first statement:

    # needs: python3-scipy nginx-light root
    # slow: looks up 70,000 names
    # plain: other programs read what the daemon gives

A word of needs is a package of PACKAGES, a word of CONDITIONS, program:NAME, module:NAME (of Python), or data:NAME, which is
a folder of $SHARED_DATA. What is missing is the reason to skip the test (exit code 77).

EPOCHFS_TESTS_QUICK, set by tests/run, has the packages of the quick tests. Then a test that needs others, or is slow, is
skipped wherever it runs, so that the quick tests are the same everywhere. SANITIZED, of the mount cases of such a build, does
the same with those that are plain: the daemon does nothing in them that it does not do in others.
"""

import ctypes
import fcntl
import glob
import importlib.util
import os
import re
import shutil
import socket
import struct
import sys

SKIP = 77
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

# What is looked for: a program, module:NAME or file:PATTERN. All of it must exist.
PACKAGES = {
    "awscli": ["/usr/bin/aws"],
    "ceph": ["ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "/usr/bin/aws"],
    "chromium": ["chromium", "chromedriver"],
    "clang": ["clang"],
    "clang-format": ["clang-format"],
    "curl": ["curl"],
    "dataset-fashion-mnist": ["file:/usr/share/datasets/fashion-mnist"],
    "environment-modules": ["file:/usr/share/modules/init/bash"],
    "fuse3": ["fusermount3"],
    "g++": ["g++"],
    "groff-base": ["groff"],
    "iproute2": ["ip"],
    "libeigen3-dev": ["file:/usr/include/eigen3"],
    "libsvm-tools": ["svm-train"],
    "lua5.3": ["lua5.3"],
    "man-db": ["man"],
    "mandoc": ["mandoc"],
    "mkdocs": ["mkdocs"],
    "nginx-light": ["nginx"],
    "openssl": ["openssl"],
    "polkitd": ["pkcheck"],
    "python3-hypothesis": ["module:hypothesis"],
    "python3-kubernetes": ["module:kubernetes"],
    "python3-mypy": ["module:mypy"],
    "python3-numpy": ["module:numpy"],
    "python3-pil": ["module:PIL"],
    "python3-scipy": ["module:scipy"],
    "python3-sklearn": ["module:sklearn"],
    "python3-torch": ["module:torch"],
    "python3-torchvision": ["module:torchvision"],
    "python3-venv": ["module:venv", "module:ensurepip"],
    "python3-xgboost": ["module:xgboost"],
    "python3-yaml": ["module:yaml"],
    "shellcheck": ["shellcheck"],
    "slurm-wlm": ["slurmctld", "slurmd", "munged", "sbatch", "srun", "scancel", "scontrol"],
    "strace": ["strace"],
    "systemd": ["file:/lib/systemd/systemd", "file:/lib/*/security/pam_systemd.so", "dbus-daemon", "loginctl", "systemd-run"],
    "zsh": ["zsh"],
    "zstd": ["zstd"],
}


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


def stay_here():
    """No process of the test can reach another machine, and none of its ports is another test's: as root it has a network of
    its own. Without root, programs that respect the usual variables ask a proxy that is not there."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0:
        loopback_up()
        return
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy"):
        os.environ[name] = os.environ[name.upper()] = "http://127.0.0.1:9"
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1,::1"
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"


def cgroup2():
    """The folder of this process' cgroup of version 2; None: there is none, or it cannot be written."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        tops = [line.split()[4] for line in f if " - cgroup2 " in line]
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        paths = [line.rstrip("\n")[3:] for line in f if line.startswith("0::")]
    found = [os.path.normpath(f"{top}/{path}") for top in tops for path in paths]
    return found[0] if found and os.access(found[0], os.W_OK) else None


CONDITIONS = {
    "root": ("root", lambda: os.geteuid() == 0),
    "cgroup2": ("a cgroup of version 2 that can be written", cgroup2),
}


def there(what):
    kind, _, name = what.rpartition(":")
    if kind == "module":
        return importlib.util.find_spec(name) is not None
    if kind == "file":
        return bool(glob.glob(name))
    if kind == "data":
        return os.path.isdir(os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), name))
    return shutil.which(name, path=PATH) is not None


def declared(test):
    """The words that it needs, why it is slow and why it is plain; None: it is not."""
    words, why = [], {"slow": None, "plain": None}
    with open(test, encoding="utf-8") as f:
        for line in f:
            found = re.match(r"(?:#|/\*)(!| needs: (.*)| (slow|plain): (.*?)(?: \*/)?$| |$)", line)
            if not found:
                break
            words += (found[2] or "").split()
            if found[3]:
                why[found[3]] = found[4]
    return words, why["slow"], why["plain"]


def missing(word, quick):
    """What of a word is missing, as it is told to the user; None: nothing. quick: the packages of quick tests."""
    if word in CONDITIONS:
        name, holds = CONDITIONS[word]
        return None if holds() else name
    if word in PACKAGES:
        here = (quick is None or word in quick) and all(there(what) for what in PACKAGES[word])
        return None if here else word
    if ":" not in word:
        raise SystemExit(f"needs.py: {word}: not in PACKAGES or CONDITIONS")
    return None if there(word.removeprefix("program:")) else f"../shared/data/{word[5:]}" if word.startswith("data:") else word


def reason(test):
    """Why it cannot run, or is not one of the quick tests or of a sanitized build; None: it runs."""
    words, slow, plain = declared(test)
    quick = os.environ.get("EPOCHFS_TESTS_QUICK")
    lacks = [found for found in (missing(word, quick and quick.split()) for word in words) if found]
    if lacks:
        return "needs " + ", ".join(lacks)
    if slow and quick:
        return f"slow: {slow}"
    return f"plain: {plain}" if plain and os.environ.get("SANITIZED") else None


def main():
    test, command = (sys.argv[2], sys.argv[3:]) if sys.argv[1] == "--of" else (sys.argv[1], sys.argv[1:])
    why = reason(test)
    if why:
        print(f"skipped: {why}")
        return SKIP
    stay_here()
    if test.endswith(".py") or open(test, "rb").readline().startswith(b"#!/usr/bin/python3"):
        command.insert(0, sys.executable)  # the one that was asked for modules
    sys.stdout.flush()
    os.execv(command[0], command)
    return 1


if __name__ == "__main__":
    sys.exit(main())
