#!/usr/bin/python3
# needs: root
"""An epoch by load(), and the training of README.md, with no privilege at all: in a user namespace without /dev/fuse, with a read-only root, as uid 65534,
without HOME, with 64 descriptors and without io_uring. Only the directory where the program runs and, as in
containers, /dev/shm can be written."""

import ctypes
import os
import struct
import subprocess
import sys

import numpy as np

from lib import EPOCHFS, PRIVATE, SLOW, SOURCE, equal, idx_bytes, skip, write
from page_blocks import ROOT, take

BUILD = os.path.dirname(EPOCHFS)
if SLOW or not os.path.exists(f"{BUILD}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")
if subprocess.run(["unshare", "--user", "--mount", "--map-root-user", "true"], stderr=subprocess.DEVNULL).returncode:
    skip("no user namespaces here")

SET_SECCOMP, FILTER = 22, 2
IO_URING = (425, 426, 427)  # setup, enter, register; on all machines
LOAD, EQUAL, RETURN, ERROR, ALLOW = 0x20, 0x15, 0x06, 0x50000, 0x7FFF0000
LIMITED = """
mount --bind /dev/null /dev/fuse 2>/dev/null
mount -t tmpfs none . && cd "$PWD" || exit 1
mkdir clothes && mount --bind "$1" clothes
while read -r _ _ _ _ at _; do [[ $at = /proc* || $at = /dev/shm ]] || mount -o remount,bind,ro "$at" 2>/dev/null; done < /proc/self/mountinfo
mount -o remount,bind,rw "$PWD"
shift
ulimit -n 64
unset HOME
exec unshare --user --map-user=65534 --map-group=65534 "$@"
"""
CHECK = """
import ctypes, os, resource
assert (os.getuid(), os.environ.get("HOME"), resource.getrlimit(resource.RLIMIT_NOFILE)) == (65534, None, (64, 64))
assert ctypes.CDLL(None, use_errno=True).syscall(425, 8, 0) == -1 and ctypes.get_errno() == 1, "io_uring"
for name in ("/usr/x", "/tmp/x", "/var/tmp/x"):
    try:
        open(name, "w")
    except OSError:
        continue
    raise AssertionError(name)
try:
    open("/dev/fuse", "rb").read(1) and 1 / 0
except OSError:
    pass
"""


def forbid_io_uring():
    """A seccomp profile, as container engines have it: these calls fail with EPERM. The shell is to set up mounts before, so rights are kept."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = [(LOAD, 0, 0, 0)]  # the number of the call
    code += [(EQUAL, len(IO_URING) - i, 0, nr) for i, nr in enumerate(IO_URING)]
    code += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERROR | 1)]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(instructions))
    if libc.prctl(SET_SECCOMP, FILTER, program, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def bare(program):
    os.makedirs(f"{PRIVATE}/work", exist_ok=True)
    done = subprocess.run(["unshare", "--user", "--mount", "--map-root-user", "bash", "-c", LIMITED, "bash", SOURCE, sys.executable, "-c", CHECK + program],
                          preexec_fn=forbid_io_uring, cwd=f"{PRIVATE}/work", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={"EPOCHFS_LIBRARY": f"{BUILD}/libepochfs.so.0", "PYTHONPATH": f"{ROOT}/python", "PATH": os.environ["PATH"]})
    equal(done.returncode, 0, done.stdout)
    return done.stdout


rng = np.random.default_rng(5)
IMAGES = rng.integers(0, 256, (300, 28, 28), np.uint8)
write("train-images-idx3-ubyte", idx_bytes(IMAGES))
write("train-labels-idx1-ubyte", idx_bytes(rng.integers(0, 3, 300, np.uint8)))
equal(bare("""
import epochfs
with epochfs.load("clothes") as data:
    print(sum(int(batch["image"].sum()) for batch in data["train"].batches("batch=32,seed=7")))
"""), f"{int(IMAGES.sum())}\n")

if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
    skip("PyTorch is missing, which the block of README.md needs")
BLOCK = take("README.md", "import os, torch").replace("image_size='28x28'", "").replace("28 * 28 * 3", "28 * 28")
equal(bare(BLOCK + "print(epoch, sorted(os.listdir()))\n"), "2 ['checkpoint.pt', 'clothes']\n")
