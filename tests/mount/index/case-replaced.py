#!/usr/bin/python3
"""A source file is replaced by one of the same size whose time is set back, in place (`cp -p`) or by
rename (`mv` after `touch -r`). Kept indexes, unpacked and staged copies are those of the old file:
the next mount shows the new rows, and a mount that runs shows old bytes or ESTALE. A file of which
only the mode or the links have changed is read again, and shows the same."""

import errno
import gzip
import io
import itertools
import os
import shutil
import tarfile

import numpy as np
from lib import MOUNTPOINT, PRIVATE, equal, idx_bytes, mounted, run
from servers import error_of, read_anew

NUMBERS = itertools.count()


def packed(data):
    """Packed bytes whose size depends on the size of data alone."""
    return gzip.compress(data, compresslevel=0, mtime=0)


def tar(sizes):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for i, size in enumerate(sizes):
            member = tarfile.TarInfo(f"{i}.txt")
            member.size = size
            archive.addfile(member, io.BytesIO(bytes([65 + i]) * size))
    return out.getvalue()


SVM = (b"1 1:1\n2 2:2\n3 3:3 4:4 5:5\n", b"1 1:1 2:2\n8 2:7\n3 3:3 4:4\n")
KINDS = {
    "x.svm": ("", *SVM),
    "x.svm.gz": ("", *map(packed, SVM)),
    "y.svm": (f",cache={PRIVATE}/staged", *SVM),
    "x.csv": ("", b"a,b,c\n1,2,3\n44,55,66\n7,8,9\n", b"a,b,c\n1,2,333\n4,5,6\n77,8,9\n"),
    "x.jsonl": ("", b'{"a": 1}\n{"a": 22}\n{"a": 333}\n', b'{"a": 333}\n{"a": 22}\n{"a": 1}\n'),
    "x.tar": ("", tar((100, 600, 30)), tar((600, 30, 100))),
    "x-idx3-ubyte": (f",cache={PRIVATE}/staged", *(idx_bytes(np.full((5, 8, 8), i, np.uint8)) for i in (1, 2))),
    "z-idx3-ubyte.gz": (f",cache={PRIVATE}/staged",
                        *(packed(idx_bytes(np.full((5, 8, 8), i, np.uint8))) for i in (3, 4))),
}


def dump(reads=read_anew):
    """What a mount shows, by path."""
    found = {}
    for folder, folders, names in os.walk(MOUNTPOINT):
        folders[:] = [name for name in folders if name not in (".epochfs", "batches")]
        for name in names:
            file = os.path.join(folder, name)
            if not os.path.islink(file) and name != "dataset.json":
                found[os.path.relpath(file, MOUNTPOINT)] = reads(file)
    return {name: data for name, data in found.items() if MOUNTPOINT.encode() not in data}


def replace(file, data, in_place):
    """Until the time of the last change of the inode is another: the kernel counts it in ticks."""
    before = os.stat(file)
    while os.stat(file).st_ctime_ns == before.st_ctime_ns:
        to = file if in_place else f"{file}.new"
        with open(to, "r+b" if in_place else "wb") as f:
            f.write(data)
        os.utime(to, ns=(before.st_atime_ns, before.st_mtime_ns))
        if not in_place:
            os.rename(to, file)
    after = os.stat(file)
    equal((after.st_size, after.st_mtime_ns), (before.st_size, before.st_mtime_ns), file)


def change_inode(file):
    before = os.stat(file).st_ctime_ns
    while os.stat(file).st_ctime_ns == before:
        os.chmod(file, 0o600)
        os.chmod(file, 0o644)
    os.link(file, f"{file}.link")
    os.unlink(f"{file}.link")


def check(name, more, old, new, in_place, beside=False):
    equal(len(old), len(new), f"sizes of {name}")
    folder = f"{PRIVATE}/source.{next(NUMBERS)}"
    os.mkdir(folder)
    file = f"{folder}/{name}"
    with open(file, "wb") as f:
        f.write(old)
    if beside:
        run("index", folder, "-o", f"{folder}/.epochfs")
    options = f"cache={PRIVATE}/cache" + more
    what = f"{name}, {'in place' if in_place else 'renamed'}{', with .epochfs/' if beside else ''}"
    with mounted(folder, options):
        before = dump()
    with mounted(folder, options):
        equal(dump(), before, f"{what}: nothing changed")
    change_inode(file)
    with mounted(folder, options):
        equal(dump(), before, f"{what}: mode and links changed")
        replace(file, new, in_place)
        for relative, want in before.items():
            at = os.path.join(MOUNTPOINT, relative)
            error = error_of(read_anew, at)
            if error:
                equal(error, errno.ESTALE, f"{what}: {relative} under the mount")
            else:
                equal(read_anew(at), want, f"{what}: {relative} under the mount")
    with mounted(folder, options):
        after = dump()
    if beside:
        shutil.rmtree(f"{folder}/.epochfs")
    with mounted(folder, f"cache={PRIVATE}/fresh.{next(NUMBERS)}"):
        equal(after, dump(), f"{what}: the next mount")
    equal(before != after, True, f"{what}: no bytes differ")


for kind, (added, first, second) in KINDS.items():
    for way in (True, False):
        check(kind, added, first, second, way)
    if not added and not kind.endswith(".gz"):
        check(kind, added, first, second, True, beside=True)
