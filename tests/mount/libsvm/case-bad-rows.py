#!/usr/bin/python3
"""Files of libsvm rows, the first or all of which cannot be read: each is reported as libsvm text,
by line and column, not as an scp file with odd paths; text that is no row is still not taken for
libsvm."""

import os

from lib import MOUNTPOINT, SOURCE, contains, equal, mounted, path, run, text, write

ROWS = {
    "first.txt": (b"1 1:x 2:3\n1 3:\n1 1:1 2:2\n0 2:5\n", 4, "first.txt:1:5: expected"),
    "label.txt": (b"a 1:1\nb 2:2\n", 2, "label.txt:1:1: expected"),
    "all.txt": (b"1 1:a 2:b\n-1 2:c\n", 2, "all.txt:1:5: expected"),
    "index.txt": (b"1 3000000000000:1 4:5\n2 1:1\n", 2, "index.txt:1:3: expected"),
    "space.txt": (b"+1 1:1 2:2x\n+1 1:1x\n+1 1:1 2:2\n", 3, "space.txt:1:"),
}
OTHERS = {
    "log.txt": b"2024-01-01 12:30:01 started\n2024-01-01 12:30:02 ended\n",
    "prose.txt": b"chapter 1: it begins\nchapter 2: it ends\n",
}

for name, (data, _, _) in ROWS.items():
    write(name, data)
for name, data in OTHERS.items():
    write(name, data)
write("t.txt", b"utt1 missing.ark:12\nutt2 missing.ark:40\n")
contains(run("info", "--check", SOURCE, code=2), *(place for _, _, place in ROWS.values()))
with mounted():
    for name, (_, samples, _) in ROWS.items():
        contains(text(path(name, "dataset.json")), '"format": "libsvm"', f'"samples": {samples}')
        equal(len(os.listdir(path(name, "samples/svm"))), samples, name)
    for name in OTHERS:
        equal(os.listdir(path(name)), ["ERROR.txt"], name)
    contains(text(path("t.txt/ERROR.txt")), "missing.ark")  # an scp file is still one
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
