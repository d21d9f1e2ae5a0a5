#!/usr/bin/python3
# slow: lists all samples
"""The kernel does not repeat requests for what it has cached: warm reads cause no request, `ls -l`
few."""

import errno
import os
import random
import subprocess
import threading

from lib import (FASHION, difference, equal, expect_error, mounted, need_fashion, path, requests,
                 status, text)
from servers import wait_until

need_fashion()
rng = random.Random(2)
FILES = 1000


def read_all(files):
    total = 0
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        while True:
            data = os.read(fd, 1 << 20)
            if not data:
                break
            total += len(data)
        os.close(fd)
    return total


def requests_of(action, *arguments):
    """The requests that one action causes, minus those of reading the counters."""
    requests()
    before = requests()
    nothing = difference(before, requests())
    before = requests()
    action(*arguments)
    moved = difference(before, requests())
    return {name: n - nothing.get(name, 0) for name, n in moved.items() if n != nothing.get(name, 0)}


def stat_all(files):
    for f in files:
        os.stat(f)


def check_warm(files, what):
    before = status()["push"]["files"]
    cold = requests_of(read_all, files)
    pushed = status()["push"]["files"] - before  # these cause no requests of the reader
    equal(cold.get("read", 0) + pushed >= len(files) // 2, True,
          f"{what}: the first pass reads: {cold}, {pushed} were pushed")
    os.stat(path("t10k/batches"))  # grows with a new plan: requested once
    # The kernel may evict pages and inodes at any time, so one pass of five must be silent; a real
    # defect causes requests in every pass.
    for action, name in ((read_all, "read"), (stat_all, "stat")):
        passes = []
        while {} not in passes and len(passes) < 5:
            rng.shuffle(files)
            passes.append(requests_of(action, files))
        equal({} in passes, True, f"{what}: requests of warm passes ({name}): {passes}")


def ls_lists_attributes():
    """That of coreutils 9.6 and newer looks for ACLs by listxattr, of each file."""
    said = subprocess.run(["ls", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [int(n) for n in said.split("\n")[0].split()[-1].split(".")] >= [9, 6]


def stat_folder(folder):
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)


def check_listing():
    for enc, kinds in (("raw", 2), ("npy", 4)):
        folder = path(f"t10k/samples/{enc}")
        command = ["ls", "-l", "--color=never", folder]
        out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
        equal(out.count(b"\n"), 10000 * kinds + 1, folder)
    folder = path("train/samples/raw")
    n = 120000

    def list_once():
        subprocess.run(["ls", "-l", "--color=never", folder], stdout=subprocess.DEVNULL, check=True)

    # An inode that the kernel evicts meanwhile makes it ask again for those of one reply.
    for what, action, where in (("stat", stat_folder, path("train/samples/npy")),
                                ("ls -l", lambda _: list_once(), folder)):
        cold = requests_of(action, where)
        names = ["lookup", "getattr", "getxattr", "listxattr"]
        if what == "ls -l" and ls_lists_attributes():
            names.remove("listxattr")
        for name in names:
            equal(cold.get(name, 0) < n / 4, True, f"{what} of {n} files: {cold}")
        equal(cold["readdir"] < n / 10, True, f"{what} of {n} files: {cold}")
    files = [f"{folder}/{rng.randrange(60000):06d}.image.raw" for _ in range(300)]
    after = once_undisturbed(list_once, lambda: requests_of(read_all, files),
                             lambda r: r.get("lookup", 0) == 0)
    equal(after.get("lookup", 0), 0, f"reading listed files needs no lookup: {after}")


def once_undisturbed(prepare, measure, is_good):
    """The result of measure() after prepare(), of the first good try: the kernel may drop what it
    has cached at any moment (some reclaim what lies idle), but not each time."""
    for _ in range(5):
        prepare()
        result = measure()
        if is_good(result):
            break
    return result


def wait_quiet():
    """What is pushed ahead is listed and looked up for that: until nothing of it is left."""
    pause = threading.Event()
    wait_until(lambda: requests_of(pause.wait, 0.05) == {}, "nobody asks")


def check_listing_cached():
    folder = path("t10k/samples/png")
    first = os.listdir(folder)

    def is_cached(moved):
        return set(moved) <= {"readdir"} and moved.get("readdir", 0) <= 2

    wait_quiet()
    again = once_undisturbed(lambda: os.listdir(folder), lambda: requests_of(os.listdir, folder),
                             is_cached)
    equal(is_cached(again), True, f"a second listing: {again}")
    equal(os.listdir(folder), first, "the same listing")


def check_negative():
    """Missing names are cached too; that does no harm to a plan that is opened later."""
    names = [path(f"t10k/samples/raw/{i:06d}.image.nop") for i in range(200)]
    for name in names:
        expect_error(errno.ENOENT, os.stat, name)
    wait_quiet()
    equal(requests_of(lambda: [os.path.exists(n) for n in names]), {}, "names that are not there")


def check_links():
    link = path("t10k/batches/seed=3,batch=64")
    os.readlink(link)
    file = f"{link}/epoch=0/npy/000000.image.npy"
    read_all([file])
    read_all([file])  # the folders that have grown are requested once
    moved = once_undisturbed(wait_quiet, lambda: requests_of(read_all, [file]),
                             lambda r: set(r) <= {"readlink"})
    equal(set(moved) <= {"readlink"}, True, f"reading by another spelling of the plan: {moved}")


with mounted(FASHION):
    folder = path("t10k/samples/raw")
    check_warm([f"{folder}/{i:06d}.image.raw" for i in rng.sample(range(10000), FILES)], "samples")
    folder = path("t10k/samples/npy")
    check_warm([f"{folder}/{i:06d}.label.npy" for i in rng.sample(range(10000), FILES)], "npy")
    for enc in ("npz", "tar", "png", "idx"):
        folder = path(f"t10k/samples/{enc}")
        names = os.listdir(folder)
        check_warm([f"{folder}/{n}" for n in rng.sample(names, 100)], enc)
    folder = path("t10k/batches/batch=10,seed=7/epoch=4")
    check_warm([f"{folder}/npy/{i:06d}.image.npy" for i in range(FILES)], "batches")
    check_warm([f"{folder}/npz/{i:06d}.npz" for i in range(200)], "batches as npz")
    check_warm([path("t10k/batches/batch=all/raw/000000.image.raw"),
                path("t10k/source/t10k-images-idx3-ubyte"), path("t10k/dataset.json"),
                path("README.txt")], "large files and pages")
    check_listing()
    check_listing_cached()
    check_negative()
    check_links()
    text(path(".epochfs/metrics"))
