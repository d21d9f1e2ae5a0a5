#!/usr/bin/python3
"""Names that are hard (F-13, F-14): not UTF-8, with newlines, '%', 255 bytes, dots, spaces; equal except for case; links
(F-7) within SOURCE, out of it, in circles, to nothing."""

import errno
import os

import files_model as model
from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error, mounted, path, run, text, write)

NAMES = [b"caf\xe9.jpg", b"new\nline.jpg", b"100%.jpg", b"a b.jpg", b"%2F.jpg", b"x.y.z.jpg", b"Case.jpg", b"case.jpg",
         b"\xff\xfe\x01.png", b"tab\t.png", "snow\u2603man.gif".encode(), b"-rf.jpg", b"'quote\".jpg"]
LONG = b"n" * 251 + b".jpg"
for folder in (b"one", b"caf\xe9 %", b"two\nlines"):
    for i, name in enumerate(NAMES):
        write(os.path.join(b"set", folder, folder[:1] + name), b"%d" % i + folder)
write(b"set/one/" + LONG, b"long")

# Links.
os.makedirs(f"{PRIVATE}/outside")
for where in (f"{PRIVATE}/outside/secret.jpg", f"{SOURCE}/elsewhere/inside.txt"):
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "wb") as f:
        f.write(b"content of a link")
os.symlink("../../elsewhere/inside.txt", f"{SOURCE}/set/one/link.jpg")
os.symlink(f"{SOURCE}/elsewhere/inside.txt", f"{SOURCE}/set/one/absolute.jpg")
os.symlink(f"{PRIVATE}/outside/secret.jpg", f"{SOURCE}/set/one/secret.jpg")
os.symlink("nowhere", f"{SOURCE}/set/one/dangling.jpg")
os.symlink("..", f"{SOURCE}/set/one/circle")

with mounted():
    classes, samples = model.class_folders(f"{SOURCE}/set")
    for s in samples:
        name = model.name_of(s.key)
        if len(name) > 180:
            found = [n for n in os.listdir(os.fsencode(path("set/samples/raw"))) if n.startswith(b"nnn")]
            equal(len(found), 1, "the long name")
            name = found[0][:-4]
        where = os.path.join(os.fsencode(path("set/samples/raw")), name + os.path.splitext(s.path)[1])
        if b"secret" in s.path:
            expect_error(errno.ENOENT, content, where)
            continue
        equal(content(where), next(iter(s.files.values())), where)
    equal(len(os.listdir(path("set/samples/raw"))), len(samples) - 1, "samples")
    contains(text(path("set/dataset.json")), "two\\u000alines")
contains(run("info", SOURCE), "2 ignored, because they cannot be read: set/one/")
with mounted(SOURCE, "allow_outside"):
    equal(content(path("set/samples/raw/secret.jpg")), b"content of a link", "allow_outside")

# More kinds of files than a dataset has fields: it says how many files it does not show, and the pictures, which
# all samples have, are shown.
for i in range(1100):
    write(f"kinds/{i:04d}.jpg", b"j%d" % i)
    write(f"kinds/{i:04d}.a{i:04d}", b"a%d" % i)
contains(run("info", f"{SOURCE}/kinds"), "samples  1100", "77 files ignored, whose extensions are beyond the first 1024, '.a1023' first")
with mounted(f"{SOURCE}/kinds"):
    names = os.listdir(path("all/samples/raw"))
    equal(len([n for n in names if n.endswith(".jpg")]), 1100, "pictures")
    equal(content(path("all/samples/raw/1099.jpg")), b"j1099", "the last")
