#!/usr/bin/python3
# slow: many runs of it
"""mount-scripts/quickstart: what it refuses, a second run, and what a run that ends early leaves.

The script is a copy in a checkout with nothing in it. `cmake --build` is the binary of this build, and the
packages are installed, or not, as each test has it: tests/empty-system does it with the real ones.
"""

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import struct
import subprocess

import numpy as np
import tfrecord_model
from lib import (DEADLINE, EPOCHFS, PRIVATE, SOURCE, contains, equal, idx_bytes, mount_type, requests, run, small,
                 status, text, write)
from page_blocks import take
from tar_model import shard

CASES = os.environ["CASES"]
CHECKOUT = f"{PRIVATE}/checkout"
QUICKSTART = f"{CHECKOUT}/mount-scripts/quickstart"
TOOLS = f"{PRIVATE}/tools"
TMP = f"{PRIVATE}/tmp"
ENV = dict(os.environ, PATH=f"{TOOLS}:{os.environ['PATH']}", TMPDIR=TMP)
BUILT = f"{CHECKOUT}/build/release/epochfs"


def tool(name, script):
    with open(f"{TOOLS}/{name}", "w") as f:
        f.write(f"#!/bin/bash\n{script}\n")
    os.chmod(f"{TOOLS}/{name}", 0o755)


def tools(cmake=f"mkdir -p {CHECKOUT}/build/release; ln -sfn {EPOCHFS} {BUILT}", installed=True):
    tool("cmake", cmake)
    tool("dpkg-query", f"echo {'installed' if installed else 'not-installed'}")
    tool("apt-get", f'echo "$*" >>{PRIVATE}/apt; exit 100')


def start(*arguments, prefix=(), **kwargs):
    return subprocess.Popen([*prefix, QUICKSTART, *arguments], env=ENV, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True, **kwargs)


def quickstart(*arguments, code=0, **kwargs):
    process = start(*arguments, **kwargs)
    said = process.communicate(timeout=DEADLINE)[0]
    equal(process.returncode, code, f"exit code of quickstart {arguments}: {said}")
    return said


def nothing_left(*but):
    """The path of a file that quickstart makes."""
    equal(os.listdir(TMP), list(but), "left in /tmp")
    logs = [name for name in os.listdir(f"{CHECKOUT}/build")] if os.path.isdir(f"{CHECKOUT}/build") else []
    equal([name for name in logs if name.startswith("quickstart-")], [], "logs left")


@contextlib.contextmanager
def mount_of_another_user(where):
    """Only a line for /proc/self/mounts; no daemon answers there."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=65534,group_id=65534"
    equal(libc.mount(b"epochfs", where.encode(), b"fuse.epochfs", 0, options.encode()), 0, "mount")
    try:
        yield
    finally:
        os.close(fd)
        libc.umount2(where.encode(), 0)


def refuses_before_it_installs():
    tools(installed=False)
    if os.path.exists(f"{PRIVATE}/apt"):
        os.remove(f"{PRIVATE}/apt")
    foreign = f"{PRIVATE}/foreign"
    os.makedirs(foreign, exist_ok=True)
    os.makedirs(f"{PRIVATE}/full/x", exist_ok=True)
    for arguments in (["--jason"], [SOURCE, "--jason"], [SOURCE, "a", "b"]):
        contains(quickstart(*arguments, code=2), "quickstart [SOURCE [MOUNTPOINT]]")
    contains(quickstart("--help"), "quickstart [SOURCE [MOUNTPOINT]]")
    contains(quickstart("/nowhere/mnist", code=1), "/nowhere/mnist: no such file or folder")
    contains(quickstart(SOURCE, f"{PRIVATE}/full", code=1), f"{PRIVATE}/full: is not empty")
    contains(quickstart(SOURCE, __file__, code=1), "is no folder")
    if os.geteuid() == 0:
        os.chown(foreign, 1, 1)
        contains(quickstart(SOURCE, foreign, code=1), f"{foreign}: belongs to ", "Choose a folder of yours")
        equal(mount_type(foreign), None, "mounted there")
        with mount_of_another_user(foreign):
            contains(quickstart(SOURCE, foreign, code=1), f"{foreign}: something else is mounted there")
            equal(mount_type(foreign), "fuse.epochfs", "the mount of another user")
        hidden = ["unshare", "--mount", "bash", "-euc", 'mount -t tmpfs tmpfs /dev; mknod -m 666 /dev/null c 1 3; exec "$@"', "bash"]
        contains(quickstart(SOURCE, code=1, prefix=hidden), "quickstart: /dev/fuse is missing: as root, modprobe fuse; a container "
                 "needs --device /dev/fuse --cap-add SYS_ADMIN")
    equal(os.path.exists(f"{PRIVATE}/apt"), False, "apt-get was run")
    nothing_left()


def says_what_failed():
    tools(installed=False)
    said = quickstart(SOURCE, code=1)
    contains(said, "apt-get update failed, see above")
    installs = set(re.search("installing (.*)", said)[1].split())
    control = text(f"{CASES}/../../debian/control")
    needs = set(re.findall(r"^ ([\w-]+)", re.search(r"Build-Depends:\n((?: .*\n)+)", control)[1], re.M))
    packaging = {"debhelper-compat", "dh-sequence-python3", "python3"}
    equal(installs - {"gcc", "libc6-dev", "make", "fuse3"}, needs - packaging, "what is installed, and Build-Depends")
    tools(cmake="echo no compiler; exit 1")
    said = quickstart(SOURCE, code=1)
    contains(said, "no compiler", "cmake failed, see above")
    kept = re.search(r"all of its output is in (\S+)", said)[1]
    equal(text(kept), "no compiler\n", "the log")
    equal([name for name in os.listdir(f"{CHECKOUT}/build") if name.startswith("quickstart-")],
          [os.path.basename(kept)], "logs: the last one")


def drawn(said, images):
    """The picture of sample 0, as the terminal shows it."""
    rows = ["".join(2 * " .:-=+*#%@"[int(pixel / 25.6)] for pixel in row) for row in images[0]]
    contains(said, "\n".join(rows), "it stays mounted")
    return re.search(r"epochfs mount \S+ (\S+)", said)[1]


def daemon_of(mountpoint):
    return status(mountpoint)["pid"]


def as_readme_says():
    """Its block, from `git clone` on: what is cloned is the checkout of this test."""
    clone = f"{PRIVATE}/where/epochfs"
    tools(cmake=f"mkdir -p {clone}/build/release; ln -sfn {EPOCHFS} {clone}/build/release/epochfs")
    tool("git", f'[[ "$*" == "clone https://example.org/epochfs.git epochfs" ]] && cp -r {CHECKOUT} epochfs')
    os.makedirs(os.path.dirname(clone))
    block = take("README.md", "mount-scripts/quickstart")
    said = subprocess.run(["bash", "-euc", block], env=dict(ENV, REPOSITORY="https://example.org/epochfs.git"), text=True,
                          cwd=os.path.dirname(clone), stdin=subprocess.DEVNULL, timeout=DEADLINE, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    mounted_at = re.search(r"epochfs mount \S+ (\S+)", said)[1]
    contains(said, "it stays mounted")
    equal(sorted(os.listdir(mounted_at)), [".epochfs", "README.txt", "t10k", "train"], "the sample dataset")
    run("umount", mounted_at)
    os.rmdir(mounted_at)
    os.remove(f"{TOOLS}/git")
    shutil.rmtree(os.path.dirname(clone))
    nothing_left()


def a_second_run_replaces_the_first(images):
    tools()
    os.umask(0o022)
    place = drawn(quickstart(SOURCE), images)
    contains(os.path.basename(place), "epochfs-quickstart-")
    nothing_left(os.path.basename(place))
    before = daemon_of(place)
    said = quickstart(SOURCE)
    equal(drawn(said, images), place, "the mountpoint of the second run")
    contains(said, "epochfs umount")
    equal(daemon_of(place) != before, True, "another mount")
    run("umount", place)
    equal(mount_type(place), None, "one mount, not two")
    equal(os.stat(place).st_mode & 0o777, 0o700, "mode of the folder")
    os.rmdir(place)

    own = f"{PRIVATE}/own"
    for _ in range(2):
        equal(drawn(quickstart(SOURCE, own), images), own, "the mountpoint that was given")
        equal(mount_type(own), "fuse.epochfs", "mounted")
    run("umount", own)
    nothing_left()


def takes_any_source():
    """Folders of pictures, shards and records: what it says to type can be typed."""
    jpeg = b"\xff\xd8\xff\xe0 a picture"
    shards = [[(f"{3 * s + i:03}.{ext}", data) for i in range(3) for ext, data in (("jpg", jpeg), ("cls", b"1"))]
              for s in range(2)]
    frames = b"".join(tfrecord_model.frame(tfrecord_model.example(x=tfrecord_model.integers(i))) for i in range(6))
    for source, dataset, samples in (("flat", "all", "raw"), ("classes", "train", "npy"), ("shards", "all", "npy"),
                                     ("tfrecord", "all", "npy"), ("rec", "a.rec", "raw")):
        if source == "flat":
            for i in range(6):
                write(f"flat/{i}.jpg", jpeg)
        elif source == "classes":
            for i in range(12):
                write(f"classes/{('train', 'val')[i % 2]}/{'abc'[i % 3]}/{i}.jpg", jpeg)
        elif source == "shards":
            for s, members in enumerate(shards):
                write(f"shards/s-{s}.tar", shard(members))
        elif source == "tfrecord":
            for s in range(2):
                write(f"tfrecord/t-0000{s}-of-00002", frames)
        else:
            write("rec/a.rec", b"".join(struct.pack("<II", 0xced7230a, 4) + b"%04d" % i for i in range(6)))
        said = quickstart(f"{SOURCE}/{source}")
        mounted_at = re.search(r"epochfs mount \S+ (\S+)", said)[1]
        contains(said, "\nbatches\ndataset.json\n", "it holds the samples ")
        listing = re.search(r"^  ls (\S+) [|] head$", said, re.M)[1]
        equal(listing, f"{mounted_at}/{dataset}/samples/{samples}", "what it shows")
        equal(len(os.listdir(listing)) >= 6, True, f"files in {listing}")
        run("umount", mounted_at)
        os.rmdir(mounted_at)
        shutil.rmtree(f"{SOURCE}/{source}")
    nothing_left()


def does_not_list_the_samples():
    """A dataset has several files for each sample: listing them took longer than all else but the build."""
    n = 30000
    write("many/labels-idx1-ubyte", idx_bytes(np.zeros(n, np.uint8)))
    said = quickstart(f"{SOURCE}/many")
    mounted_at = re.search(r"epochfs mount \S+ (\S+)", said)[1]
    listed = requests(mounted_at)["readdir"]
    equal(listed < 100, True, f"listings of {n} samples: {listed}, fewer than 100")
    run("umount", mounted_at)
    os.rmdir(mounted_at)
    shutil.rmtree(f"{SOURCE}/many")


def says_what_its_lines_need():
    """The commands that it shows to be typed; one needs NumPy."""
    for code, needs in ((0, False), (1, True)):
        tool("python3", f"exit {code}")
        said = quickstart(SOURCE)
        mounted_at = re.search(r"epochfs mount \S+ (\S+)", said)[1]
        line = re.search(r"^  python3 -c .*$", said, re.M)[0]
        equal(line.endswith("# needs python3-numpy"), needs, f"NumPy is missing: {needs}, and the line is {line}")
        run("umount", mounted_at)
        os.rmdir(mounted_at)
    os.remove(f"{TOOLS}/python3")


def a_mount_that_is_dead(images):
    tools()
    place = drawn(quickstart(SOURCE), images)
    pid = daemon_of(place)
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    equal(select.select([ended], [], [], DEADLINE)[0], [ended], "ended")
    os.close(ended)
    equal(drawn(quickstart(SOURCE), images), place, "the mountpoint after a death")
    run("umount", place)
    os.rmdir(place)


def interrupted(sig, cmake, wait_for, *arguments):
    """Ctrl-C, as the terminal sends it, once a tool has reported that it runs."""
    fifo = f"{PRIVATE}/fifo"
    os.mkfifo(fifo)
    tools(cmake)
    process = start(*arguments or [SOURCE])
    with open(fifo) as f:
        equal(f.read(), wait_for, "what was said")
    os.killpg(process.pid, sig)
    said = process.communicate(timeout=DEADLINE)[0]
    equal(process.returncode, 128 + sig, f"exit code after signal {sig}: {said}")
    os.remove(fifo)
    nothing_left()


def leaves_nothing_when_interrupted():
    fifo = f"{PRIVATE}/fifo"
    wait = f"echo here >{fifo}; read -r -u 5 5<>{PRIVATE}/never"
    os.mkfifo(f"{PRIVATE}/never")
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        interrupted(sig, wait, "here\n")
    mounts = f"mkdir -p {CHECKOUT}/build/release; printf '%s\\n' '#!/bin/bash' " \
             f"""'{EPOCHFS} "$@" || exit' '[ "$1" != mount ] || {{ {wait}; }}' >{BUILT}; chmod +x {BUILT}"""
    os.remove(BUILT)
    interrupted(signal.SIGINT, mounts, "here\n")
    os.remove(BUILT)


def as_a_user():
    """Without root and sudo: it says what to install; with the packages there it does not ask."""
    if os.geteuid() != 0:
        return
    tools(installed=False)
    os.chmod(TMP, 0o1777)
    tool("sudo", "exit 1")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    contains(quickstart(SOURCE, code=1, prefix=user), "as root: apt-get install gcc ")
    os.remove(f"{TOOLS}/sudo")
    tools()
    os.makedirs(f"{CHECKOUT}/build", exist_ok=True)
    if os.access("/dev/fuse", os.R_OK) and os.stat("/dev/fuse").st_mode & 0o006 == 0o006:
        contains(quickstart(SOURCE, code=1, prefix=user), f"{CHECKOUT}/build: expected a folder", "sudo rm -r")
    nothing_left()


def a_full_tmp(images):
    """The script needs no space in /tmp, except for the folder of the mountpoint."""
    if os.geteuid() != 0:
        return
    tools()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=20", "tmpfs", TMP], check=True)
    with open(f"{TMP}/fill", "wb") as f:
        f.write(bytes(4096))
    place = drawn(quickstart(SOURCE), images)
    run("umount", place)
    for number in range(40):
        try:
            open(f"{TMP}/{number}", "x").close()
        except OSError:
            break
    os.rmdir(place)
    open(f"{TMP}/last", "x").close()
    contains(quickstart(SOURCE, code=1), "No space left on device")
    subprocess.run(["umount", TMP], check=True)


def main():
    for folder in (os.path.dirname(QUICKSTART), TOOLS, TMP):
        os.makedirs(folder)
    shutil.copy(f"{CASES}/../../mount-scripts/quickstart", QUICKSTART)
    images, _ = small()
    refuses_before_it_installs()
    says_what_failed()
    a_second_run_replaces_the_first(images)
    as_readme_says()
    takes_any_source()
    does_not_list_the_samples()
    says_what_its_lines_need()
    a_mount_that_is_dead(images)
    leaves_nothing_when_interrupted()
    as_a_user()
    a_full_tmp(images)


main()
