#!/usr/bin/python3
# needs: root
"""Folders of a cache folder that another user owns, or may write to, are refused as the cache folder
itself is: who can put files there decides what is read."""

import gzip
import os

from lib import CACHE, contains, run, SOURCE, write

NOBODY = 65534

write("rows.txt.gz", gzip.compress(b"1 1:1\n0 2:1\n"))
options = ["-o", f"cache={CACHE}", SOURCE]
contains(run("stage", *options), "complete and correct")
for name in ("staged", "unpacked"):
    folder = f"{CACHE}/{name}"
    for spoil, mend, words in (
            (lambda: os.chown(folder, NOBODY, 0), lambda: os.chown(folder, 0, 0),
             ("expected a folder of user 0", f"got one of user {NOBODY}")),
            (lambda: os.chmod(folder, 0o777), lambda: os.chmod(folder, 0o700),
             ("mode 0777", "chmod o-w"))):
        spoil()
        contains(run("stage", *options, code=4), folder, *words)
        contains(run("info", *options, code=4), folder, *words)
        mend()
    os.chmod(folder, 0o1777)  # sticky: no other user replaces what is ours
    run("info", *options)
    os.chmod(folder, 0o700)
    os.rename(folder, f"{CACHE}/kept")
    os.symlink(f"{CACHE}/kept", folder)
    contains(run("info", *options, code=4), folder, "got a link")
    os.unlink(folder)
    os.rename(f"{CACHE}/kept", folder)
contains(run("stage", *options), "complete and correct")
