#!/usr/bin/python3
"""Text about the data next to files of libsvm rows: what looks like rows here and there is no part
of `all`, unless it is named."""

import os

from lib import SOURCE, contains, content, equal, log_text, mounted, path, run, write

TRAIN = b"".join(b"1 %d:0.5 200:%d\n" % (i, i) for i in range(1, 101))
OTHER = b"".join(b"0 %d:0.5\n" % i for i in range(1, 41))
README = (b"# Heart scale\n\nSee http://example.org:80/x\n\n## Format\n\n    1 3:0.5 7:1\n"
          b"    0 2:1\n")
TENTH = OTHER.replace(b"0 5:0.5\n", b"0 5:x\n")  # one bad row among the first 32: it stays in
NAMES = {"README": README, "NOTES": b"# notes\nrun at 10:30\n"}


def rows_of_all():
    return content(path("all/batches/batch=all/svm/000000.svm"))


write("train.txt", TRAIN)
write("a.txt", TENTH)
for name, data in NAMES.items():
    write(name, data)
for options in ([], ["bad_rows=skip"]):
    with mounted(SOURCE, *options):
        skipped = TENTH.replace(b"0 5:x\n", b"") if options else TENTH
        equal(rows_of_all(), skipped + TRAIN, f"`all` with {options}")
        for name in NAMES:
            equal(os.path.exists(path(name)), True, f"{name} stays a dataset, or says why not")
contains(log_text(), "README: no part of `all`", "(1 of 3)", "NOTES: no part of `all`")
contains(run("info", SOURCE), "README: no part of `all`", "NOTES: no part of `all`")
with mounted(f"{SOURCE}/train.txt;{SOURCE}/README"):
    equal(len(os.listdir(path("all/samples/svm"))), 103, "a list joins what it names")
os.unlink(f"{SOURCE}/a.txt")
with mounted():
    equal(os.path.exists(path("all")), False, "one file and a text about it are no set")
