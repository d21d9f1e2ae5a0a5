#!/usr/bin/python3
# slow: reads every file of a dozen mounts
"""Every path of a mount has the same bytes in the library, and a file that cannot be read in one cannot be read in the other."""

import gzip
import os
import stat
import sys
import tarfile

import numpy as np

import kaldi_dirs as kd
from lib import EPOCHFS, MOUNTPOINT, SLOW, SOURCE, equal, idx_bytes, mounted, skip, write
from page_blocks import ROOT

sys.path.insert(0, f"{ROOT}/python")
import epochfs  # noqa: E402

if SLOW or not os.path.exists(f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

rng = np.random.default_rng(8)


def idx(folder, n, side, pack=bytes):
    write(f"{folder}/train-images-idx3-ubyte", pack(idx_bytes(rng.integers(0, 256, (n, side, side), np.uint8))))
    write(f"{folder}/train-labels-idx1-ubyte", pack(idx_bytes(rng.integers(0, 4, n, np.uint8))))


def make():
    idx("idx", 23, 5)
    idx("packed", 12, 4)
    for name in os.listdir(f"{SOURCE}/packed"):
        with open(f"{SOURCE}/packed/{name}", "rb") as f:
            write(f"packed/{name}.gz", gzip.compress(f.read()))
        os.remove(f"{SOURCE}/packed/{name}")
    write("rows/a.libsvm", b"".join(b"%d %d:0.5 %d:%d\n" % (i % 2, i + 1, i + 40, i) for i in range(17)))
    write("table/t.csv", b"a,b,label\n" + b"".join(b"%d,%d.5,%d\n" % (i, i, i % 3) for i in range(19)))
    write("lines/x.jsonl", b"".join(b'{"text": "%s", "label": %d}\n' % (b"w" * i, i) for i in range(9)))
    for i in range(7):
        write(f"folders/{'cat' if i % 2 else 'dog'}/{i}.txt", b"x" * (i + 1))
    os.makedirs(f"{SOURCE}/arrays")
    np.savez(f"{SOURCE}/arrays/d.npz", x=rng.normal(size=(11, 3)).astype(np.float32), y=np.arange(11))
    np.save(f"{SOURCE}/arrays/ragged.npy", np.arange(40, dtype=np.int16).reshape(10, 4))
    os.makedirs(f"{SOURCE}/shards")
    write("shards/.a", b"hello")
    with tarfile.open(f"{SOURCE}/shards/a-000000.tar", "w") as tar:
        for i in range(6):
            for ext in ("txt", "cls"):
                write("one", b"%d" % i * (i + 1))
                tar.add(f"{SOURCE}/one", f"{i:03d}.{ext}")
    os.remove(f"{SOURCE}/one")
    write("tokens/t.bin", rng.integers(0, 1000, 400, np.uint16).tobytes())
    kd.table("kaldi/feats", [(f"utt{i}", kd.fm(rng.normal(size=(i + 2, 3)).astype(np.float32))) for i in range(8)])
    write("kaldi/text", b"".join(b"utt%d word%d\n" % (i, i) for i in range(8)))
    write("unusable/what.zip", b"PK\x03\x04 no archive")
    write("unusable/b.libsvm", b"1 1:2\n")


def result(function, *arguments):
    try:
        return function(*arguments)
    except OSError as e:
        return e.errno


def of_mount(path):
    with open(path, "rb") as f:
        return f.read().replace(MOUNTPOINT.encode(), b"")


def of_library(data, path):
    found = bytearray(data.stat_of(path).bytes)
    memory = (epochfs._library.ctypes.c_char * len(found)).from_buffer(found)
    equal(data.read_into(path, 0, memory, len(found)), len(found), path)
    return bytes(found)


def compare(data, folder):
    names = os.listdir(os.path.join(MOUNTPOINT, folder))
    equal(sorted(data.names(folder)), sorted(names), f"names of {folder}")
    files = 0
    for name in names:
        path = os.path.join(folder, name)
        there = os.path.join(MOUNTPOINT, path)
        if name == ".epochfs":
            continue
        st = result(os.stat, there)
        if isinstance(st, os.stat_result):
            mine = data.stat_of(path)
            equal((mine.inode, mine.mode), (st.st_ino, st.st_mode), path)
            if stat.S_ISDIR(st.st_mode):
                files += compare(data, path)
                continue
            if MOUNTPOINT.encode() not in open(there, "rb").read():
                # A file that is made has the time of the mount.
                dated = folder and "batches" not in path and name != "ERROR.txt"
                equal((mine.bytes, mine.mtime_ns if dated else 0), (st.st_size, st.st_mtime_ns if dated else 0), path)
        equal(result(of_library, data, path), result(of_mount, there), path)
        files += 1
    return files


make()
total = 0
for source, *options in (("idx", "transpose", "one_hot=9"), ("idx", "image_size=3x3"), ("packed",), ("rows",), ("table", "on_error=skip"), ("lines",),
                         ("folders",), ("arrays",), ("shards",), ("tokens", "token_dtype=uint16", "seq_len=16"), ("kaldi",), ("unusable",), ("",)):
    words = {"plan": ["batch=4+seed=3", "batch=all", "batch=5+tail=drop"], "epochs": "2"}
    words.update(dict(option.partition("=")[::2] if "=" in option else (option, True) for option in options))
    where = os.path.join(SOURCE, source)
    with mounted(where, *epochfs._mount.option_words(words)), epochfs.load(where, **words) as data:
        n = compare(data, "")
        print(f"{source or 'all of them'} {options}: {n} files")
        total += n
equal(total > 1000, True, f"{total} files")
