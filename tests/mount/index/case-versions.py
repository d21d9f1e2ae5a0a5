#!/usr/bin/python3
# slow: many versions of files
"""Indexes next to the data against files that have changed in ways that are hard to see: the same size, the same
four blocks, and a time that is old, or not known. No byte of a sample is ever wrong: what has moved is ESTALE, the
rest is right, and the next mount is right everywhere. Copies, whose versions differ, use the index."""

import errno
import io
import os
import random
import shutil

import numpy as np

from lib import CACHE, PRIVATE, SOURCE, content, contains, equal, expect_error, log_text, run, stop
from servers import Nginx, start_at
from tar_model import shard

import sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "recordio"))
from recordio_model import record  # noqa: E402
from tfrecord_model import frame  # noqa: E402

N, OLD = 60, 1600000000
rng = random.Random(7)


def text_record(i, size):
    return b'{"i": %d, "x": "%s"}' % (i, bytes(rng.choice(b"abcdef") for _ in range(size - 20)))


def number_record(i, size):
    return b"%d,2,%s" % (i, b"".join(b"%d" % rng.randrange(1, 9) for _ in range(30))) + b" " * (size - 40)


def made(name, form, suffix, ext, some=lambda i, size: b"%04d" % i + rng.randbytes(size)):
    return {"name": name, "file": form, "suffix": suffix, "ext": ext, "some": some}


FORMATS = [
    made("tar", lambda records: shard([(f"{i:06d}.bin", data) for i, data in enumerate(records)]), "tar", "bin"),
    made("tfrecord", lambda records: b"".join(frame(data) for data in records), "tfrecord", "record"),
    made("recordio", lambda records: b"".join(record(data) for data in records), "rec", "record"),
    made("jsonl", lambda records: b"\n".join(records) + b"\n", "jsonl", "json", text_record),
    made("csv", lambda records: b"\n".join(records) + b"\n", "csv", "csv", number_record),
]


def blocks(data):
    third = (len(data) - 4096) // 3
    return [data[at:at + 4096] for at in (0, third, 2 * third, len(data) - 4096)]


def versions(form):
    """Records of a file, and of one of the same size and blocks in which some are moved."""
    records = [form["some"](i, 2000 + 17 * i) for i in range(N)]
    before = form["file"](records)
    for at in range(N // 8, N // 3):
        changed = list(records)
        changed[at] = form["some"](at, 1500 + 17 * at)
        changed[at + 1] = form["some"](at + 1, 2500 + 17 * (at + 1))
        data = form["file"](changed)
        for pad in range(-64, 65):  # to the same size, where frames pad
            changed[at + 1] = form["some"](at + 1, 2500 + 17 * (at + 1) + pad)
            data = form["file"](changed)
            if len(data) == len(before):
                break
        if len(data) == len(before) and blocks(data) == blocks(before):
            return records, before, changed, data
    raise AssertionError(f"no other version of {form['name']}")


def read_all(at, form, records, offset=0):
    """Samples are right, or ESTALE: returns how many are."""
    stale = 0
    for i, want in enumerate(records):
        try:
            equal(content(at, f"{form['dataset']}/samples/raw", f"{offset + i:06d}.{form['ext']}") == want, True,
                  f"{form['name']}: sample {i}")
        except OSError as e:
            equal(e.errno in (errno.ESTALE, errno.EIO), True, f"{form['name']}: sample {i}: {e}")
            stale += 1
    return stale


def mount_and_read(source, cache, form, records):
    """Returns how many samples are stale."""
    daemon = start_at(f"at.{cache}", source, f"cache={CACHE}.{cache}", "stage=off")
    stale = read_all(daemon.at, form, records)
    np.load(f"{daemon.at}/{form['dataset']}/batches/batch=4/npz/{N // 4 - 1:06d}.npz")
    stop(daemon)
    return stale


def problems(name):
    """Lines of the log; random numbers of CSV are rounded."""
    return [line for line in log_text(f"log.at.{name}").splitlines() if "that float32 rounds" not in line]


def put(folder, form, data, when):
    path = os.path.join(folder, f"s.{form['suffix']}")
    with open(path, "r+b" if os.path.exists(path) else "wb") as f:
        f.write(data)
    os.utime(path, ns=(when, when))


def check_local(form):
    records, before, changed, after = versions(form)
    folder, name = os.path.join(PRIVATE, form["name"]), form["name"]
    os.mkdir(folder)
    put(folder, form, before, OLD * 10**9 + 5)
    contains(run("index", folder, "-o", f"{folder}/.epochfs", "-o", f"cache={CACHE}.{name}"), "1 index written")
    equal(mount_and_read(folder, f"{name}-same", form, records), 0, "as it was")

    # A copy with another time: the index is used, and what it says is true.
    copy = f"{folder}.copy"
    shutil.copytree(folder, copy)
    os.utime(f"{copy}/s.{form['suffix']}", (OLD - 9, OLD - 9))
    equal(mount_and_read(copy, f"{name}-copy", form, records), 0, "a copy")
    equal(problems(f"{name}-copy"), [], "the log of a copy")

    # Changed in place, as `rsync -a --inplace` does it: the time is another old one, or later but touched.
    for turn, when in (("old", OLD * 10**9 + 6), ("touched", None)):
        put(folder, form, after, when or os.stat(folder).st_mtime_ns)
        if not when:
            os.utime(f"{folder}/.epochfs/index.txt")
        stale = mount_and_read(folder, f"{name}-{turn}", form, changed)
        equal(0 < stale <= 3, True, f"{name}, {turn}: {stale} samples are stale")
        contains(log_text(f"log.at.{name}-{turn}"), "index next to the data")
        equal(mount_and_read(folder, f"{name}-{turn}", form, changed), 0, f"{name}, {turn}: after a remount")

    # A table of the first version, whose files have no versions; its one index is a file.
    put(folder, form, before, OLD * 10**9 + 5)
    with open(f"{folder}/.epochfs/index.txt", "r+", encoding="utf-8") as f:
        lines = [line.split(" ") for line in f.read().splitlines()]
        f.seek(0)
        f.truncate()
        for line in lines:
            if line[0] != "joined":
                f.write(" ".join(line[:3] + line[4:] if line[0] == "file" else line).replace(
                    "epochfs-index 3", "epochfs-index 1") + "\n")
    names = {line[0]: line[-1] for line in lines}
    os.rename(f"{folder}/.epochfs/{names['joined']}", f"{folder}/.epochfs/{names['index']}")
    equal(mount_and_read(folder, f"{name}-v1", form, records), 0, "a table of the first version")
    equal(problems(f"{name}-v1"), [], "its log")


def check_far(form):
    """On a server: its ETag says that a file is as it was, and none of its blocks is asked for; or that it is not."""
    records, before, changed, after = versions(form)
    folder, name = os.path.join(PRIVATE, f"www.{form['name']}"), f"far-{form['name']}"
    os.mkdir(folder)
    put(folder, form, before, OLD * 10**9)
    with Nginx(folder) as server:
        run("index", f"{server.url}/", "-o", f"{folder}/.epochfs", "-o", f"cache={CACHE}.{name}")
        server.forget()
        daemon = start_at("counted", f"{server.url}/", f"cache={CACHE}.{name}-0", "stage=off,block=4K")
        os.listdir(f"{daemon.at}/{form['dataset']}/samples/raw")
        asked = [r for r in server.log() if r.path.endswith(form["suffix"])]
        equal(read_all(daemon.at, form, records), 0, "as it was")
        stop(daemon)
        equal(len(asked) <= 1, True, f"{name}: requests for the file before it is read: {asked}")
        put(folder, form, after, (OLD + 1) * 10**9)
        stale = mount_and_read(f"{server.url}/", f"{name}-1", form, changed)
        equal(0 < stale <= 3, True, f"{name}: {stale} samples are stale")
        equal(mount_and_read(f"{server.url}/", f"{name}-1", form, changed), 0, f"{name}: after a remount")


def check_orders():
    """Arrays whose bytes stay and whose header changes: the order of bytes, of axes, or the type. Sizes and blocks are the same."""
    arrays = [np.arange(i, i + 600, dtype="<i4").reshape(20, 30) for i in range(N)]

    def member(i):
        out = io.BytesIO()
        np.save(out, arrays[i])
        return out.getvalue()

    name = "orders"
    data = shard([(f"{i:06d}.npy", member(i)) for i in range(N)])
    changes = ((N // 6, b"'fortran_order': False", b"'fortran_order': True "), (N // 5, b"'<i4'", b"'>i4'"), (N // 4, b"'<i4'", b"'<f4'"))
    after = bytearray(data)
    for i, old, new in changes:
        at = after.index(old, after.index(b"%06d.npy" % i))
        after[at:at + len(old)] = new
    equal((len(after), blocks(bytes(after))), (len(data), blocks(data)), "size and blocks")
    folder, form = os.path.join(PRIVATE, name), {"name": name, "suffix": "tar"}
    os.mkdir(folder)
    put(folder, form, data, OLD * 10**9)
    run("index", folder, "-o", f"{folder}/.epochfs", "-o", f"cache={CACHE}.{name}")
    put(folder, form, bytes(after), (OLD + 1) * 10**9)
    daemon = start_at(f"at.{name}", folder, f"cache={CACHE}.{name}-1", "stage=off")
    stale = [i for i, _, _ in changes]
    for i in range(N):
        file = f"{daemon.at}/s.tar/samples/npy/{i:06d}.npy.npy"
        if i in stale:
            expect_error(errno.ESTALE, content, file)
        else:
            equal(np.load(file).tolist(), arrays[i].tolist(), f"sample {i}")
    contains(log_text(f"log.at.{name}"), "the order of bytes and axes of an array")
    stop(daemon)


def main():
    check_orders()
    for form in FORMATS:
        form["dataset"] = f"s.{form['suffix']}"
        check_local(form)
        check_far(form)


main()
