#!/usr/bin/python3
# needs: python3-pil
"""The tree of Fashion-MNIST: every listed name opens, and so on."""

import errno
import gzip
import io
import json
import os
import re
import stat
import subprocess

import numpy as np
from PIL import Image

from lib import (FASHION, MOUNTPOINT, contains, content, difference, equal, expect_error, log_text,
                 mounted, need_fashion, path, requests, run, status, text)

need_fashion()
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)


def entries():
    """Every folder, and of every folder with files of samples or batches the first and last."""
    found = {}
    for folder, folders, files in os.walk(MOUNTPOINT):
        names = sorted(folders) + sorted(files)
        equal(len(set(names)), len(names), f"{folder}: a name twice")
        if len(files) > 40:
            names = sorted(folders) + sorted(files)[:20] + sorted(files)[-20:]
        for name in names:
            full = os.path.join(folder, name)
            found[os.path.relpath(full, MOUNTPOINT)] = os.lstat(full)
    return found


def check_listing():
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "README.txt", "t10k", "train"], "top")
    equal(sorted(os.listdir(path(".epochfs"))), ["history.json", "metrics", "status.json"], ".epochfs")
    for name, samples in (("train", 60000), ("t10k", 10000)):
        equal(sorted(os.listdir(path(name))),
              ["batches", "dataset.json", "preview.png", "samples", "source"], name)
        encodings = sorted(["raw", "npy", "npz", "tar", "tfrecord", "png", "pgm", "idx"])
        equal(sorted(os.listdir(path(name, "samples"))), encodings, "samples")
        equal(sorted(os.listdir(path(name, "batches/batch=128"))), encodings, "batches")
        raw = os.listdir(path(name, "samples/raw"))
        equal(raw, [f"{i:06d}.{f}.raw" for i in range(samples) for f in ("image", "label")], "raw")
        npz = os.listdir(path(name, "batches/batch=128,seed=7/epoch=0/npz"))
        equal(npz, [f"{i:06d}.npz" for i in range(-(-samples // 128))], "a glob is the epoch")
    types = {entry.name: entry for entry in os.scandir(MOUNTPOINT)}
    equal((types["train"].is_dir(), types["README.txt"].is_file()), (True, True), "d_type")


def check_attributes(found):
    newest = {name: max(os.stat(f"{FASHION}/{name}-{part}.gz").st_mtime_ns
                        for part in ("images-idx3-ubyte", "labels-idx1-ubyte"))
              for name in ("train", "t10k")}
    numbers = {}
    for name, st in found.items():
        want = stat.S_IFDIR | 0o555 if stat.S_ISDIR(st.st_mode) else stat.S_IFREG | 0o444
        equal(oct(st.st_mode), oct(want), f"mode of {name}")
        equal(st.st_uid, os.geteuid(), f"owner of {name}")
        equal(st.st_nlink, 2 if stat.S_ISDIR(st.st_mode) else 1, f"links of {name}")
        equal(st.st_blocks, -(-st.st_size // 512), f"blocks of {name}")
        equal(numbers.setdefault(st.st_ino, name), name, f"inode number {st.st_ino}")
        top = name.split("/")[0]
        if stat.S_ISREG(st.st_mode):
            with open(path(name), "rb") as f:  # listed: opens, and is as long as it says
                data = f.read()
                opened = os.fstat(f.fileno()).st_size
            is_live = name in (".epochfs/history.json", ".epochfs/metrics", ".epochfs/status.json")
            equal(len(data), opened if is_live else st.st_size, f"size of {name}")
        if top in newest and not re.fullmatch(r"[^/]+/batches(/[^/]+)?", name):
            equal(st.st_mtime_ns, newest[top], f"time of {name}")


def check_readme():
    readme = text(path("README.txt"))
    contains(readme, FASHION, "train/", "60000 samples", "10000 samples", "uint8, 28 x 28",
             f"epochfs umount '{MOUNTPOINT}'")
    for word in re.findall(r"/\S+", readme):
        word = word.strip("',;.")
        if word.startswith(MOUNTPOINT):
            os.stat(word)


def check_pages(name, samples):
    page = json.loads(text(path(name, "dataset.json")))
    equal(page["orders"], {"permutation": 1, "draw": 1, "classes": 1, "length batches": 1}, "versions of orders")
    equal((page["dataset"], page["format"], page["samples"], page["order_version"]),
          (name, "idx", samples, 1), "dataset.json")
    fields = {f["name"]: (f["descr"], f["shape"], f["derived"]) for f in page["fields"]}
    equal(fields, {"image": ("|u1", [28, 28], False), "label": ("|u1", [], False),
                   "image01": ("<f4", [28, 28], True), "label1h": ("<f4", [10], True),
                   "index": ("<i8", [], True), "key": ("|S6", [], True)}, "fields")
    equal(sorted(page["encodings"]), sorted(os.listdir(path(name, "samples"))), "encodings")
    for source in page["sources"]:
        with gzip.open(f"{FASHION}/{source['file']}") as f:
            data = f.read()
        equal(len(data), source["bytes"], "bytes")
        equal(content(path(name, "source", source["file"][:-3])) == data, True, source["file"])
    equal(len(os.listdir(path(name, "source"))), len(page["sources"]), "source/")
    image = Image.open(io.BytesIO(content(path(name, "preview.png"))))
    image.load()
    equal(image.mode, "L", "preview.png")
    equal(min(image.size) >= 280, True, f"preview.png: {image.size}")
    first = np.load(path(name, "samples/npy/000000.image.npy"))
    equal(np.array_equal(np.asarray(image)[:28, :28], first), True, "preview.png begins with 0")


def check_status():
    before = status()
    equal((before["datasets"], before["unusable_files"], before["mountpoint"], before["source"]),
          (2, 0, MOUNTPOINT, FASHION), "status.json")
    with open(path(".epochfs/status.json"), "rb") as f:
        equal(len(f.read()), os.fstat(f.fileno()).st_size, "status.json: size")
    for _ in range(3):
        after = status()
        moved = difference(before["requests"], after["requests"])
        equal(moved.get("read", 0) >= 1, True, f"counters move at every read: {moved}")
        before = after
    name = path("t10k/samples/raw/004242.image.raw")
    content(name)
    after = status()
    equal(after["bytes_served"] >= before["bytes_served"] + 784, True, "bytes_served")
    metrics = text(path(".epochfs/metrics"))
    for line in metrics.splitlines():
        good = re.fullmatch(r"# (HELP|TYPE) \w+ .+|\w+(\{[^}]*\})? +\d+(\.\d+)?|# +", line)
        equal(bool(good), True, f"metrics: {line}")
    reads = int(re.search(r'requests_total\{type="read"\} +(\d+)', metrics)[1])
    equal(reads > after["requests"]["read"] - 1, True, "metrics and status.json agree")
    again = text(path(".epochfs/metrics"))
    equal(again != metrics, True, "metrics move")


def check_read_only():
    file, folder = path("t10k/samples/raw/000000.image.raw"), path("t10k/samples/raw")
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC):
        expect_error(READ_ONLY, os.open, file, flags)
    for where in (MOUNTPOINT, path("t10k"), folder, path("t10k/batches"), path(".epochfs")):
        expect_error(READ_ONLY, os.open, f"{where}/new", os.O_WRONLY | os.O_CREAT)
        expect_error(READ_ONLY, os.mkdir, f"{where}/new")
        expect_error(READ_ONLY, os.symlink, "x", f"{where}/new")
        expect_error(READ_ONLY, os.mkfifo, f"{where}/new")
    expect_error(READ_ONLY, os.unlink, file)
    expect_error(READ_ONLY, os.rename, file, file + "2")
    expect_error(READ_ONLY, os.link, file, folder + "/linked")
    expect_error(READ_ONLY, os.rmdir, path("t10k"))
    expect_error(READ_ONLY, os.chmod, file, 0o666)
    expect_error(READ_ONLY, os.chown, file, 1, 1)
    expect_error(READ_ONLY, os.utime, file)
    expect_error(READ_ONLY, os.truncate, file, 0)
    expect_error(READ_ONLY, os.setxattr, file, "user.x", b"y")
    expect_error(READ_ONLY, os.removexattr, file, "user.epochfs.key")
    equal(os.access(file, os.W_OK), False, "access")


def check_names():
    for name in ("t10k/samples/raw/010000.image.raw", "t10k/samples/raw/0.image.raw",
                 "t10k/samples/raw/0000000.image.raw", "t10k/samples/raw/000000.image.npy",
                 "t10k/samples/raw/000000", "t10k/samples/raw/00000x.image.raw",
                 "t10k/samples/raw/-00001.image.raw", "t10k/samples/zip", "t10k/sample",
                 "t10k/samples/raw/" + "0" * 255, "t10k/batches/batch=128/npz/000079.npz",
                 "t10k/batches/batch=128,seed=7/npz", "T10K", "t10k/dataset.json~"):
        expect_error(errno.ENOENT, os.stat, path(name))
    expect_error((errno.ENAMETOOLONG, errno.ENOENT), os.stat, path("t10k", "0" * 256))
    expect_error(errno.ENOTDIR, os.stat, path("README.txt/x"))
    expect_error(errno.EISDIR, content, path("t10k"))
    link = path("t10k/batches/seed=7,batch=128")
    equal(stat.S_ISLNK(os.lstat(link).st_mode), True, "another spelling is a link")
    equal(os.readlink(link), "batch=128,seed=7", "its target")
    equal(os.lstat(link).st_size, len("batch=128,seed=7"), "its size")
    equal(os.path.samefile(link, path("t10k/batches/batch=128,seed=7")), True, "its folder")
    equal(os.readlink(path("t10k/batches/batch=128,tail=keep,part=0of1")), "batch=128", "defaults")
    expect_error(errno.EINVAL, os.readlink, path("t10k/batches/batch=128"))
    sub = os.listdir(path("t10k/batches"))
    equal("seed=7,batch=128" in sub, False, "links are not listed")


def check_xattrs():
    file = path("t10k/samples/npy/000003.image.npy")
    want = {"user.epochfs.key": b"000003", "user.epochfs.index": b"3",
            "user.epochfs.dtype": b"|u1", "user.epochfs.shape": b"(28, 28)",
            "user.epochfs.source": b"t10k-images-idx3-ubyte.gz:2368+784"}
    equal({n: os.getxattr(file, n) for n in os.listxattr(file)}, want, "attributes of a sample")
    file = path("t10k/batches/batch=4/npz/000001.npz")
    want = {"user.epochfs.key": b"000001", "user.epochfs.index": b"4,5,6,7",
            "user.epochfs.source": b"t10k-images-idx3-ubyte.gz,t10k-labels-idx1-ubyte.gz"}
    equal({n: os.getxattr(file, n) for n in os.listxattr(file)}, want, "attributes of a batch")
    expect_error(errno.ENODATA, os.getxattr, file, "user.epochfs.other")
    equal(os.listxattr(path("t10k")), [], "attributes of a folder")
    large = path("t10k/batches/batch=all/raw/000000.image.raw")
    equal(len(os.getxattr(large, "user.epochfs.index").split(b",")), 10000, "index of 10000")
    large = path("train/batches/batch=all/raw/000000.image.raw")  # its list would pass 64 KiB
    expect_error(errno.ENODATA, os.getxattr, large, "user.epochfs.index")
    equal(sorted(os.listxattr(large)), [f"user.epochfs.{n}" for n in
                                        ("dtype", "key", "shape", "source")], "of a large batch")


def check_statfs():
    st = os.statvfs(MOUNTPOINT)
    total = sum(f.stat().st_size for d in ("train", "t10k") for f in os.scandir(path(d, "source")))
    equal(st.f_blocks * st.f_frsize >= total, True, "statfs: blocks")
    equal((st.f_bfree, st.f_bavail, st.f_namemax), (0, 0, 255), "statfs")
    equal(bool(st.f_flag & os.ST_RDONLY), True, "statfs: read-only")
    subprocess.run(["df", MOUNTPOINT], stdout=subprocess.DEVNULL, check=True)


with mounted(FASHION):
    check_listing()
    first = entries()
    check_attributes(first)
    check_readme()
    check_pages("train", 60000)
    check_pages("t10k", 10000)
    check_status()
    check_read_only()
    check_names()
    check_xattrs()
    check_statfs()
with mounted(FASHION):  # in another order of opening, the same numbers
    os.stat(path("train/batches/batch=128,seed=7/epoch=1"))
    os.stat(path("t10k/batches/batch=128,seed=7/epoch=0"))
    os.stat(path("train/batches/batch=128,seed=7/epoch=0"))
    second = {name: os.lstat(path(name)) for name in first}
for name, st in first.items():
    equal(second[name].st_ino, st.st_ino, f"inode number of {name} in the next mount")
    live = name.startswith(".epochfs/")
    same = name in ("README.txt", ".epochfs") or re.fullmatch(r"[^/]+/batches(/[^/]+)?", name)
    if not live and not same:
        equal(second[name].st_mtime_ns, st.st_mtime_ns, f"time of {name} in the next mount")
equal(log_text(), "epochfs: no such name: t10k/batches/batch=128,seed=7/npz: expected epoch=<a number from 0 "
      "to 2^64-1>, got 'npz'\n", "a healthy mount says nothing but what was mistyped")
run("info", FASHION)
