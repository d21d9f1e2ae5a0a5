#!/usr/bin/python3
"""What a user has to know of Kaldi tables, and what was lost without a word: byte order marks, utterances that a table lacks,
files outside of SOURCE, lattices."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

MARK = b"\xef\xbb\xbf"


def matrix(rows, columns=2):
    return b"\0BFM \x04" + rows.to_bytes(4, "little") + b"\x04" + columns.to_bytes(4, "little") + \
        np.arange(rows * columns, dtype="<f4").tobytes()


def put_feats(folder, keys, archive="feats.ark", mark=b"", scp="feats.scp"):
    data, lines = b"", mark
    for i, key in enumerate(keys):
        data += key + b" "
        lines += key + b" %s:%d\n" % (archive.encode(), len(data))
        data += matrix(i + 1)
    write(f"{folder}/{os.path.basename(archive)}" if "/" not in archive else archive, data)
    write(f"{folder}/{scp}", lines)


def info(folder, *options, code=0):
    return run("info", *options, os.path.join(SOURCE, folder), code=code)


# A byte order mark is no part of the first key
keys = [b"utt1", b"utt2", b"utt3"]
put_feats("mark", keys, mark=MARK)
write("mark/text", MARK + b"utt1 one\nutt2 two\nutt3 three\n")
write("mark/utt2spk", MARK + b"utt1 s\nutt2 s\nutt3 s\n")
write("mark-alone/words.ark", MARK + b"a x y\nb z w v\n")
with mounted():
    equal(content(path("mark/all/batches/batch=all/npy/000000.key.txt")), b"utt1\nutt2\nutt3\n", "keys")
    equal(content(path("mark/all/batches/batch=all/txt/000000.text.txt")) if os.path.exists(path("mark/all/batches/batch=all/txt/000000.text.txt"))
          else b"".join(content(path(f"mark/all/samples/txt/{k.decode()}.text.txt")).rstrip(b"\n") + b"\n" for k in keys),
          b"one\ntwo\nthree\n", "texts")
    equal(content(path("mark-alone/words.ark/batches/batch=all/npy/000000.key.txt")), b"a\nb\n", "keys of an archive")
contains(info("mark"), "byte order mark", "utt2spk")

# Utterances that a table lacks, or has alone
put_feats("short", keys)
write("short/text", b"utt1 one\nutt3 three\n")
lacks = "text: lacks 1 of 3 utterances, which are omitted: 'utt2'"
contains(info("short"), "samples  2", "note     " + lacks)
contains(info("short", "--check", code=2), "epochfs: " + lacks)
with mounted(os.path.join(SOURCE, "short"), f"cache={CACHE}"):
    contains(text(path("all/dataset.json")), lacks)
with mounted(os.path.join(SOURCE, "short"), f"cache={CACHE}"):  # from the kept index
    contains(text(path("all/dataset.json")), lacks)
put_feats("long", keys)
write("long/text", b"".join(b"utt%d x\n" % i for i in range(1, 9)))
contains(info("long", "--check", code=2), "text: 5 of its rows belong to no utterance, and are omitted: 'utt4', 'utt5', 'utt6', ...")

# A table without anything in it, or with a pointer in its place: the dataset would lack a field
for bad, words in ((b"", "text: is empty"), (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 5\n", "git lfs pull")):
    for files in (("utt2spk",), ()):
        folder = f"half{len(bad)}{len(files)}"
        put_feats(folder, keys)
        write(f"{folder}/text", bad)
        for name in files:
            write(f"{folder}/{name}", b"utt1 s\nutt2 s\nutt3 s\n")
        contains(info(folder), "all\n    not usable: ", words)
        if not bad:
            contains(info(folder), "all would lack a field", "-o kaldi=p")
            contains(info(folder, "-o", "kaldi=p"), "samples  3", words)

# Files outside of SOURCE: no dataset without their field
put_feats("source/data", keys, archive=f"{SOURCE}/else/feats.ark")
write("source/data/text", b"utt1 one\nutt2 two\nutt3 three\n")
write("source/words/words.ark", b"a x y\nb z\n")
printed = info("source")
contains(printed, "data/all", "allow_outside", "would lack a field")
equal(printed.count("samples"), 1, printed)
contains(info("source/data", "-o", "allow_outside"), "samples  3", "feats")
printed = info("source/data", "-o", "kaldi=p")
contains(printed, "samples  3", "allow_outside")

# A blank line far behind the start
put_feats("blank", [b"k%05d" % i for i in range(3)] )
lines = content(SOURCE, "blank/feats.scp")
write("blank/feats.scp", lines * 2000 + b"\n" + lines)
contains(info("blank", code=2), "feats.scp:6001: blank line before other lines", "-o kaldi=p")
write("blank/feats.scp", lines + b"\n \n")
contains(info("blank"), "samples  3")

# Lattices are no words
write("lattice/lat.ark", b"utt1 \n0\t1\t5\t5\t1.2,3.4,1_2_3\n1\t2\t7\t7\t0.5,0.5,4_4\n2\t0,0,\n\nutt2 \n0\t1\t5\t5\t1,2,3\n1\t0,0,\n\n")
write("fst/graph.ark", b"utt1 \n0 1 5 5 0.5\n1\n\n")
write("binary/lat.ark", b"utt1 \xd6\xfd\xb2\x7e\x06\0\0\0vector\x0f\0\0\0compactlattice44")
for folder in ("lattice", "fst", "binary"):
    contains(info(folder, code=2), "lattices or FSTs, which epochfs does not read", "lattice-best-path")
write("words/words.ark", b"utt1 \n0 one two\nutt2 three\n")  # an utterance without words, and one called 0
contains(info("words"), "samples  3")
