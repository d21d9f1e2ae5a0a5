#!/usr/bin/python3
# needs: python3-pil
"""Rows I-1 to I-18 of the IDX table, pointers, odd files and odd names: each gives an ERROR.txt or
a dataset, and the good files next to it work."""

import json
import os
import re
import socket

import numpy as np

import model
from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, idx_bytes, idx_header,
                 log_text, mounted, path, run, small, status, text, write)
from tar_model import shard

ARRAY = np.arange(60, dtype=np.uint8).reshape(5, 3, 4)
GOOD = idx_bytes(ARRAY)
MAX = 2 ** 32 - 1

# name: (content, byte offset, or None: any, "": none, text that the message must have)
BAD = {
    "i-01-magic-first-byte": (b"\x01" + GOOD[1:], "", ["of no format", "begins with 01 00"]),
    "i-01-magic-second-byte": (b"\0\x01" + GOOD[2:], "", ["of no format", "begins with 00 01"]),
    "i-01-magic-little-endian": (b"\x03\x08\0\0" + GOOD[4:], "", ["of no format", "begins with 03 08"]),
    "i-02-type-0a": (b"\0\0\x0a\x03" + GOOD[4:], 2, ["expected 08", "got 0a"]),
    "i-02-type-07": (b"\0\0\x07\x03" + GOOD[4:], 2, ["got 07"]),
    "i-02-type-ff": (b"\0\0\xff\x03" + GOOD[4:], 2, ["got ff"]),
    "i-03-no-dimensions": (b"\0\0\x08\0\x05", 3, ["expected 1 to 255", "got 0"]),
    "i-05-payload-one-byte-short": (GOOD[:-1], 16, ["expected 60 bytes", "got 59"]),
    "i-05-no-payload": (GOOD[:16], 16, ["expected 60 bytes", "got 0"]),
    "i-06-one-byte-behind": (GOOD + b"x", 16, ["expected 60 bytes", "got 61"]),
    "i-06-twice": (GOOD + GOOD, 16, ["expected 60 bytes", "got 136"]),
    "i-07-zero-with-payload": (idx_header(8, [0, 28, 28]) + b"x", 16, ["expected 0 bytes", "got 1"]),
    "i-08-product-2-96": (idx_header(8, [MAX, MAX, MAX]), 4, ["expected", "got"]),
    "i-08-product-0-mod-2-32": (idx_header(8, [65536, 65536]), 12, [f"expected {2 ** 32} bytes",
                                                                    "got 0"]),
    "i-08-product-0-mod-2-64": (idx_header(8, [65536] * 4), 4, ["expected", "got"]),
    "i-08-width-overflows": (idx_header(0x0E, [2 ** 31, 2 ** 30]) + bytes(8), 4, ["expected", "got"]),
    "i-08-item-overflows": (idx_header(0x0E, [0] + [MAX] * 2), 4, ["expected", "got"]),
    "i-08-255-dimensions": (idx_header(8, [MAX] * 255), 4, ["expected", "got"]),
    "i-10-negative-count": (idx_header(8, [2 ** 31 + 1]) + b"x", 8, [f"expected {2 ** 31 + 1} bytes",
                                                                     "got 1"]),
    "i-16-git-lfs-pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 7\n",
                             "", ["git-lfs", "git lfs pull"]),
    "i-16-git-annex-pointer": (b"/annex/objects/SHA256E-s7--1.gz\n", "",
                               ["git-annex", "git annex get"]),
    "i-18-empty": (b"", "", ["is empty"]),
    "i-18-1-byte": (b"\0", "", ["of no format", "begins with 00"]),
    "i-18-2-bytes": (GOOD[:2], None, ["expected", "got 2"]),
    "i-18-3-bytes": (GOOD[:3], None, ["expected", "got 3"]),
    "i-18-no-sizes": (GOOD[:4], None, ["expected 16 bytes", "got 4"]),
    "i-18-sizes-cut": (GOOD[:15], None, ["expected 16 bytes", "got 15"]),
    "i-18-255-sizes-cut": (idx_header(8, [1] * 255)[:-1], None, ["expected 1024", "got 1023"]),
    "prose": (b"hello, world\n", "", ["is text of no format"]),
}

# Rows that are valid data.
FINE = {
    "i-04-four-dimensions": ARRAY.reshape(5, 3, 2, 2),
    "i-07-no-samples": ARRAY[:0],
    "i-07-empty-samples": ARRAY[:, :0],
    "i-12-not-28x28": ARRAY,
    "i-12-float": ARRAY.astype(np.float32),
    "i-13-labels-to-255": np.arange(251, 256, dtype=np.uint8),
}

ODD_NAMES = [b"with blank", b"new\nline", b"caf\xe9", b"quote\"d", b"it's", b"back\\slash", b"per%cent",
             b"-dash", b"star*", b"tab\there", b"\xf0\x9f\x90\xa7", b"x" * 255, b"colon:comma,plus+",
             b"$(touch x)", b"..hidden-not", b"trailing ", b"README.txt", b"metrics",
             b"\x1b[31mred\x07"]


def check_error(name, offset, words):
    equal(os.listdir(path(name)), ["ERROR.txt"], name)
    message = text(path(name, "ERROR.txt"))
    contains(message, name, *words)
    equal(message.endswith("\n") and message.count("\n") == 1, True, f"one line: {message!r}")
    if offset is None:
        equal(bool(re.search(r"\bbyte \d+", message)), True, f"a byte offset in: {message!r}")
    elif offset != "":
        contains(message, f"byte {offset}")
    return message


def check_good(name, array):
    field = {("u", 1, 3): "image", ("u", 1, 1): "label"}.get(
        (array.dtype.kind, array.dtype.itemsize, array.ndim), "data")
    ds = model.Dataset(path(name), {field: array})
    for sample in range(len(array)):
        model.check_sample(ds, sample)
    if len(array):
        model.check_batch(ds, path(name, "batches/batch=all"), 0, list(range(len(array))))


# ---- every row in one folder ----

for name, (data, _, _) in BAD.items():
    write(name, data)
for name, array in FINE.items():
    write(name, idx_bytes(array))
images, labels = small(10, "good-")
os.symlink("../.git/annex/objects/xX/yY/SHA256E-s7--1.gz/SHA256E-s7--1.gz", f"{SOURCE}/annexed")
os.symlink("nowhere", f"{SOURCE}/dangling")
os.symlink("circle", f"{SOURCE}/circle")
os.mkfifo(f"{SOURCE}/fifo")
os.symlink("fifo", f"{SOURCE}/fifo-link")
os.symlink("/dev/zero", f"{SOURCE}/device")
listener = socket.socket(socket.AF_UNIX)
os.chdir(SOURCE)
listener.bind("socket")
write(".hidden", GOOD)
write("SHA256SUMS", b"0000  x\n")
os.mkdir(f"{SOURCE}/empty-folder")
# Pairs that do not fit.
write("uneven-images-idx3-ubyte", idx_bytes(ARRAY))
write("uneven-labels-idx1-ubyte", idx_bytes(np.arange(4, dtype=np.uint8)))

with mounted():
    messages = {name: check_error(name, *BAD[name][1:]) for name in BAD}
    for name, array in FINE.items():
        check_good(name, array)
    ds = model.Dataset(path("good-train"), {"image": images, "label": labels})
    model.check_sample(ds, 9)
    model.check_batch(ds, path("good-train/batches/batch=4"), 2, [8, 9])
    contains(text(path("annexed/ERROR.txt")), "annexed", "git-annex", "git annex get",
             "annex/objects/xX")
    contains(text(path("dangling/ERROR.txt")), "dangling", "nowhere", "No such file")
    contains(text(path("circle/ERROR.txt")), "circle", "symbolic links")
    contains(text(path("uneven/ERROR.txt")), "uneven-images", "uneven-labels", "5", "4", "byte 4",
             "expected the same number")
    check_good("uneven-images-idx3-ubyte", ARRAY)
    check_good("uneven-labels-idx1-ubyte", np.arange(4, dtype=np.uint8))
    bad = set(BAD) | {"annexed", "dangling", "circle", "uneven"}
    want = bad | set(FINE) | {"good-train", "uneven-images-idx3-ubyte", "uneven-labels-idx1-ubyte",
                              ".epochfs", "README.txt"}
    equal(sorted(os.listdir(MOUNTPOINT)), sorted(want), "the top of the mount")
    equal(status()["unusable_files"], len(bad), "unusable_files")
    readme = text(path("README.txt"))
    contains(readme, "could not be used", *(f"  {name}\n" for name in bad))
contains(log_text(), f"not used: {messages['i-01-magic-first-byte'].strip()}")
listener.close()
found = json.loads(run("info", "--json", SOURCE))
equal({u["name"] for u in found["unusable"]}, bad, "info --json: unusable")
for unusable in found["unusable"]:
    if unusable["name"] in messages:
        equal(unusable["reason"] + "\n", messages[unusable["name"]], "info and ERROR.txt agree")
contains(run("info", "--check", SOURCE, code=2), f"{len(bad)} other files cannot be used")
contains(run("info", SOURCE), "29 more files are not usable: 29 without an extension")
contains(run("info", "--json", SOURCE), "i-02-type-0a: type at byte 2: expected ")

# ---- each row alone: nothing usable is exit code 2 and one message ----

for name, (data, offset, words) in BAD.items():
    file = f"{PRIVATE}/cache/{name}"
    with open(file, "wb") as f:
        f.write(data)
    message = run("mount", file, MOUNTPOINT, code=2)
    contains(message, "epochfs: ", name, *words)
    equal(message.count("\n"), 1, f"one message: {message!r}")
contains(run("mount", f"{SOURCE}/empty-folder", MOUNTPOINT, code=2), "no files found")
contains(run("mount", f"{SOURCE}/fifo", MOUNTPOINT, code=2), "expected a folder or a file")
contains(run("mount", f"{SOURCE}/dangling", MOUNTPOINT, code=2), "No such file")
contains(run("mount", f"{SOURCE}/none", MOUNTPOINT, code=2), "none", "No such file")

# ---- odd names, loops of folders, names that are taken ----

SOURCE2 = os.fsencode(PRIVATE) + b"/odd, \"source\" \\ caf\xe9"
os.makedirs(SOURCE2 + b"/sub\n\xff/deep er")
for name in ODD_NAMES:
    for folder in (SOURCE2, SOURCE2 + b"/sub\n\xff/deep er"):
        with open(folder + b"/" + name, "wb") as f:
            f.write(GOOD)
os.symlink(b".", SOURCE2 + b"/loop")
os.symlink(b"../..", SOURCE2 + b"/sub\n\xff/up")
os.symlink(b"sub\n\xff", SOURCE2 + b"/again")
for name in (b"both", b"both.gz"):  # the same file, packed and unpacked
    with open(SOURCE2 + b"/" + name, "wb") as f:
        f.write(GOOD)
os.mkdir(SOURCE2 + b"/taken")
for name in (b"/taken/x", b"/taken-images-idx3-ubyte"):
    with open(SOURCE2 + name, "wb") as f:
        f.write(GOOD)
with open(SOURCE2 + b"/taken-labels-idx1-ubyte", "wb") as f:
    f.write(idx_bytes(np.arange(5, dtype=np.uint8)))


def bpath(*names):
    return b"/".join([os.fsencode(MOUNTPOINT), *names])


with mounted(os.fsdecode(SOURCE2)):
    shown = {b"README.txt": b"README.txt~2", b"..hidden-not": None}
    for folder in ([], [b"sub\n\xff", b"deep er"], [b"again", b"deep er"]):
        for name in ODD_NAMES:
            name = shown.get(name, name) if not folder else name
            if name is None or name.startswith(b"."):
                continue
            at = bpath(*folder, name)
            equal(content(at + b"/samples/raw/000003.image.raw"), ARRAY[3].tobytes(), at)
            page = json.loads(content(at + b"/dataset.json"))
            equal(page["samples"], 5, at)
            equal(len(os.getxattr(at + b"/samples/raw/000003.image.raw",
                                  "user.epochfs.source")) > 5, True, at)
            equal(len(os.listdir(at + b"/source")), 1, at)
            equal(content(at + b"/source/" + os.listdir(at + b"/source")[0]), GOOD, at)
    top = os.listdir(bpath())
    equal(sorted(t for t in top if t.startswith((b"both", b"taken"))),
          [b"both", b"taken", b"taken~2"], "names that were taken")
    equal(content(bpath(b"taken/x/samples/raw/000000.image.raw")), ARRAY[0].tobytes(), "taken/x")
    equal(sorted(os.listdir(bpath(b"taken~2/samples/npz")))[:1], [b"000000.npz"], "taken~2")
    equal(b"loop" in top, False, "a loop is not followed")
    json.loads(content(bpath(b".epochfs/status.json")))
    text(path("README.txt"))
json.loads(run("info", "--json", os.fsdecode(SOURCE2)))
with open(SOURCE2 + b"/\x1b]0;title\x07bad", "wb") as f:
    f.write(b"hello\n")
with open(SOURCE2 + b"/shard.tar", "wb") as f:
    f.write(shard([("a.\x1b[32mext\n", b"field")]))
with mounted(os.fsdecode(SOURCE2)):
    line = re.search(r"^  shard\.tar/ .*$", text(path("README.txt")), re.M)[0]
equal(line.startswith("  shard.tar/  1 samples: ?[32mext? ("), True, line)
for command in ("info", "plan"):
    said = run(command, os.fsdecode(SOURCE2))
    equal([c for c in said if c < " " and c != "\n"], [], f"{command}: what a terminal would obey")
    contains(said, "?[31mred?", "?]0;title?bad")
