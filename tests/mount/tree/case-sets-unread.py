#!/usr/bin/python3
# slow: each file of many sets
"""One file of a folder cannot be read at mount, for a reason that passes: whatever has the name that
it has in a whole mount has the same bytes, and the sets of which the file is say why they are not
there."""

import gzip
import os
import shutil

import numpy as np

import bad_server as bad
import kaldi_dirs as kd
from lib import (CACHE, MOUNTPOINT, SOURCE, contains, content, equal, idx_bytes, mounted,
                 path, small, text, write)

PLAN = "batch=7,seed=1/epoch=0"
rng = np.random.default_rng(4)


def rows(first, n):
    return b"".join(b"%d %d:1 99:2\n" % (first + i, i + 1) for i in range(n))


def write_source():
    """Returns, for each file that will fail, what must say so."""
    small(12, "idx/")
    write("idx/images-idx3-ubyte", idx_bytes(rng.integers(0, 256, (9, 3, 4), dtype=np.uint8)))
    write("idx/labels-idx1-ubyte", idx_bytes(np.arange(9, dtype=np.uint8)))
    for i, name in enumerate("abc"):
        write(f"svm/{name}.txt", rows(100 * i, 30))
    write("sides/a.txt", rows(0, 20))
    write("sides/a.txt.weight.gz", gzip.compress(b"0.5\n" * 20))
    write("sides/b.txt", rows(50, 10))
    write("sides/b.txt.weight", b"0.25\n" * 10)
    kd.Folder(rng, "kaldi", 10, 2).keep("text", "utt2spk", "feats", "utt2dur").write()
    write("kaldi/spk2utt", b"s0 s0-u000\n")
    return {"idx/train-labels-idx1-ubyte": ["idx/train"],
            "idx/train-images-idx3-ubyte": ["idx/train"],
            "idx/labels-idx1-ubyte": ["idx/images-idx3-ubyte"],
            "idx/images-idx3-ubyte": [],
            "svm/a.txt": ["svm/all"], "svm/b.txt": ["svm/all"], "svm/c.txt": ["svm/all"],
            "sides/a.txt.weight.gz": ["sides/a.txt", "sides/all"], "sides/b.txt": ["sides/all"],
            "kaldi/text": ["kaldi/all"], "kaldi/feats.scp": ["kaldi/all"],
            "kaldi/utt2dur": ["kaldi/all"], "kaldi/spk2utt": []}


def batches():
    """The first shuffled batch of every dataset: {path: bytes}."""
    found = {}
    for folder in sorted(os.listdir(MOUNTPOINT)):
        if not os.path.isdir(path(folder)) or folder.startswith("."):
            continue
        for name in os.listdir(path(folder)):
            if os.path.exists(path(folder, name, "ERROR.txt")):
                continue
            for encoding in ("svm", "npz"):
                batch = path(folder, name, "batches", PLAN, encoding)
                if not os.path.isdir(batch):
                    continue
                for file in os.listdir(batch):
                    found[os.path.join(folder, name, encoding, file)] = content(batch, file)
    return found


def check_remote(server, want, file, sets):
    shutil.rmtree(CACHE)
    if file:
        server.script(f"/{file}", bad.status(503))
    with mounted(server.url + "/", f"cache={CACHE}", f"files={names}", "patience=1", "timeout=1"):
        found = batches()
        for name in sets:
            contains(text(path(name, "ERROR.txt")), os.path.basename(name), f"/{file}: ", "503",
                     "Mount again when it can be read")
        if file and file not in sets:
            contains(text(path(file, "ERROR.txt")), "503")
    server.healthy()
    differ = [name for name in found if want and want.get(name, found[name]) != found[name]]
    equal(differ, [], f"{file} fails: other bytes under the same names")
    return found


def check_bad_for_good(want):
    """What is wrong in the content of a file is wrong everywhere: it is omitted."""
    write("svm/d.txt.gz", gzip.compress(rows(300, 30))[:-20])
    os.symlink("nowhere", f"{SOURCE}/svm/e.txt")
    os.symlink("/etc/hostname", f"{SOURCE}/svm/f.txt")
    with mounted():
        equal(batches()["svm/all/svm/000000.svm"], want["svm/all/svm/000000.svm"], "left out")
        for name in ("d.txt.gz", "e.txt", "f.txt"):
            equal(os.listdir(path("svm", name)), ["ERROR.txt"], name)


def check_no_room():
    """No room to unpack a file of a set."""
    write("svm/d.txt.gz", gzip.compress(rows(300, 9000)))
    with mounted(SOURCE, f"cache={CACHE}", "cache_size=40K"):
        equal(os.listdir(path("svm/all")), ["ERROR.txt"], "without room for d.txt.gz")
        contains(text(path("svm/all/ERROR.txt")), "svm/d.txt.gz", "cache_size=")


def check_elsewhere():
    """Content that is on another machine."""
    write("svm/d.txt", b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 7\n")
    with mounted():
        contains(text(path("svm/all/ERROR.txt")), "git lfs pull", "Make it readable, or remove it from SOURCE")
    os.unlink(f"{SOURCE}/svm/d.txt")
    os.symlink("../.git/annex/objects/x", f"{SOURCE}/svm/d.txt")
    with mounted():
        contains(text(path("svm/all/ERROR.txt")), "git annex get")
    os.unlink(f"{SOURCE}/svm/d.txt")


failing = write_source()
names = ";".join(os.path.relpath(os.path.join(at, name), SOURCE)
                 for at, _, found in os.walk(SOURCE) for name in found)
with bad.BadServer(SOURCE) as the_server:
    whole = check_remote(the_server, None, None, [])
    equal(len(whole) > 12, True, f"datasets: {sorted(whole)}")
    for bad_file, broken in failing.items():
        check_remote(the_server, whole, bad_file, broken)
check_elsewhere()
check_no_room()
os.unlink(f"{SOURCE}/svm/d.txt.gz")
with mounted():
    good = batches()
check_bad_for_good(good)
