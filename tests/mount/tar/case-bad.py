#!/usr/bin/python3
"""Damaged shards: what is whole is served, the rest is an error that says where; archives that are no
shards are never taken for one; shards that change while they are mounted."""

import errno
import gzip
import io
import os
import shutil
import tarfile

import numpy as np

from lib import (MOUNTPOINT, SOURCE, contains, content, equal, expect_error, mounted, path, run, text,
                 write)
from tar_model import Shards, npy, shard

BODY = os.urandom(3000)


def entries(n):
    return [(f"{i:03d}.{ext}", body) for i in range(n)
            for ext, body in (("bin", BODY[:100 * i]), ("cls", b"%d" % i))]


WHOLE = shard(entries(20))


def fresh(**files):
    shutil.rmtree(SOURCE, ignore_errors=True)
    os.mkdir(SOURCE)
    for name, data in files.items():
        write(f"{name}.tar", data)


def place(data, name):
    """The byte of a member's header."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return tar.getmember(name).offset


def check_first(name, n, *words):
    """The first n samples are served, and the dataset says what is wrong."""
    ds = Shards(path(name), shard(entries(n)))
    for i in range(n):
        ds.check_sample(i)
    contains(run("info", f"{SOURCE}/{name}"), *words)
    contains(run("info", "--check", f"{SOURCE}/{name}", code=2), *words)


def check_cut():
    header, second = place(WHOLE, "007.bin"), place(WHOLE, "007.cls")
    body, other = bytearray(WHOLE), bytearray(WHOLE)
    body[header + 5] ^= 1
    other[second + 200] ^= 1
    fresh(header=WHOLE[:header + 300], body=WHOLE[:header + 612], second=WHOLE[:second + 512],
          damaged=bytes(body), half=bytes(other), joined=WHOLE + WHOLE, noend=WHOLE[:header],
          oneblock=WHOLE[:header] + bytes(512), garbage=WHOLE + b"x", wide=WHOLE + bytes(1 << 21), empty=bytes(10240), first=b"x" + WHOLE[1:])
    write("packed.tar.gz", gzip.compress(WHOLE[:header]))
    with mounted():
        check_first("header.tar", 7, f"byte {header}", "end of the file", "samples before it")
        check_first("body.tar", 7, f"byte {header + 512}", "'007.bin'", "cut short")
        check_first("second.tar", 7, "'007.cls'", "cut short")
        for name in ("body.tar", "second.tar"):  # the sample that is cut is listed, and an error
            expect_error(errno.EIO, content, path(name), "samples/raw/007.bin")
        check_first("damaged.tar", 7, f"byte {header}", "checksum")
        check_first("half.tar", 7, f"byte {second}", "checksum")
        equal(content(path("half.tar"), "samples/raw/007.bin"), BODY[:700], "a whole member")
        for name in ("joined.tar", "wide.tar", "garbage.tar"):
            check_first(name, 20, "after the end of the archive are not read", "tar --concatenate")
        contains(run("info", f"{SOURCE}/joined.tar"), f"byte {len(WHOLE)}: the {len(WHOLE)} bytes after")
        for name, found in (("noend.tar", "none"), ("oneblock.tar", "one")):
            Shards(path(name), shard(entries(7))).check_plan("batch=3")
            check_first(name, 7, f"byte {header}: the archive may be cut short", f"two blocks of zeros at its end, got {found}")
        contains(run("info", "--check", f"{SOURCE}/packed.tar.gz", code=2), f"byte {header}: the archive may be cut short")
        contains(text(path("first.tar"), "ERROR.txt"), "byte 0", "checksum")
        equal(os.path.exists(path("empty.tar", "ERROR.txt")), True, "an archive of nothing")


def check_faults():
    """A sample with two members of one extension, or a sparse one, is an error; the others go on."""
    sparse = bytearray(shard([("s.db", b"stored")])[:1024])
    sparse[156:157] = b"S"
    sparse[148:156] = b" " * 8
    sparse[148:155] = b"%06o\0" % sum(sparse[:512])
    fresh(twice=shard([("a.txt", b"1"), ("a.cls", b"1"), ("a.TXT", b"2"), ("b.txt", b"3"),
                       ("b.cls", b"4")]),
          sparse=bytes(sparse) + shard([("t.db", b"whole")]))
    with mounted():
        equal(content(path("twice.tar"), "samples/raw/b.txt"), b"3", "the next one")
        equal(np.load(path("twice.tar", "samples/npy/b.cls.npy")).item(), 4, "its number")
        for file in ("raw/a.txt", "raw/a.cls", "npy/a.cls.npy", "npz/a.npz", "tar/a.tar"):
            expect_error(errno.EIO, content, path("twice.tar"), "samples", file)
        expect_error(errno.EIO, content, path("sparse.tar"), "samples/raw/s.db")
        equal(content(path("sparse.tar"), "samples/raw/t.db"), b"whole", "the next one")
        equal(content(path("twice.tar"), "batches/batch=1/tar/000001.tar")[:5], b"b.cls", "a batch")
        expect_error(errno.EIO, content, path("twice.tar"), "batches/batch=2/tar/000000.tar")
    contains(run("info", "--check", f"{SOURCE}/twice.tar", code=2), "two members of one extension")
    contains(run("info", "--check", f"{SOURCE}/sparse.tar", code=2), "sparse")


def check_values():
    """Fields that are not what their extension says are shown as they are."""
    fresh(values=shard([("0.cls", b"7"), ("0.npy", npy(np.arange(3))), ("0.id", b"1"),
                        ("1.cls", b"cat"), ("1.npy", b"no array"), ("1.id", b"9" * 19)]))
    with mounted():
        ds = Shards(path("values.tar"), shard([("0.cls", b"7"), ("0.npy", npy(np.arange(3))),
                                               ("0.id", b"1"), ("1.cls", b"cat"),
                                               ("1.npy", b"no array"), ("1.id", b"9" * 19)]))
        ds.check_listing()
        for i in range(2):
            ds.check_sample(i)
        npz = np.load(io.BytesIO(content(ds.folder, "batches/batch=2/npz/000000.npz")))
        equal(npz["cls"].tobytes(), b"7cat", "bytes")
        equal(sorted(os.listdir(f"{ds.folder}/batches/batch=2/npy")), ["000000.index.npy", "000000.key.txt"],
              "arrays")
    contains(run("info", f"{SOURCE}/values.tar"), "expected a decimal integer", ".cls are shown as they are",
             "expected a header of .npy", ".id are shown")


def check_projects():
    """Source code is no dataset, and says so; nor are files that have nothing in common."""
    code = [(f"p-1.0/src/{i}.{ext}", b"code") for i in range(40) for ext in ("c", "h")]
    mixed = [(f"{i}.{i % 7}", b"x") for i in range(200)]
    large = [("p/data.bin", bytes(50000))]
    fresh(code=shard([("p-1.0/CMakeLists.txt", b"x")] + code), mixed=shard(mixed),
          late=shard(large + code + [("p-1.0/Makefile", b"x")]), good=WHOLE,
          nothing=shard([("README", b"x"), ("d", b"", tarfile.DIRTYPE)]))
    with mounted():
        contains(text(path("code.tar"), "ERROR.txt"), "p-1.0/CMakeLists.txt", "a project")
        contains(text(path("nothing.tar"), "ERROR.txt"), "got none")
        Shards(path("good.tar"), WHOLE).check_plan("batch=8,seed=1")
        for name, word in (("late.tar", "p-1.0/Makefile"), ("mixed.tar", "extensions in common")):
            contains(run("info", f"{SOURCE}/{name}", code=2), word)
            expect_error(errno.EIO, os.stat, path(name, "samples/raw/x.c"))


def check_dali():
    """DALI's indexes next to shards are no files that want an explanation; nor are they used."""
    fresh(a=WHOLE)
    for version in ("v1.1", "v1.2"):
        write(f"a.{version}.idx", f"{version} 1\nbin 512 5\n".encode())
    with mounted():
        Shards(path("a.tar"), WHOLE).check_plan("batch=8")
        equal(sorted(n for n in os.listdir(path()) if n.startswith("a")), ["a.tar"], "datasets")


def check_change():
    """A shard that is replaced under a reader: no byte of another version."""
    fresh(a=WHOLE)
    with mounted():
        ds = Shards(path("a.tar"), WHOLE)
        ds.check_sample(3)
        write("a.tar", shard([(name, body[::-1]) for name, body in entries(20)]))
        for i in (5, 19):
            expect_error(errno.ESTALE, content, ds.folder, f"samples/raw/{i:03d}.bin")


check_cut()
check_faults()
check_values()
check_projects()
check_dali()
check_change()
