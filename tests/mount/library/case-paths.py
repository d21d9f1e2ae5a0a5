#!/usr/bin/python3
# slow: reads every file of a dozen mounts
"""Every path of a mount has the same bytes in the library, and a file that cannot be read in one cannot be read in the other."""

import gzip
import os
import tarfile

import numpy as np

import kaldi_dirs as kd
from lib import SOURCE, equal, idx_bytes, write
from paths import compare_source

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
    write("unusable/c.rec", b"".join(b"\x0a\x23\xd7\xce" + bytes([4, 0, 0, flag << 5]) + b"data" for flag in (1, 0)))  # a record begins in a record


make()
total = 0
for source, *options in (("idx", "transpose", "one_hot=9"), ("idx", "image_size=3x3"), ("packed",), ("rows",), ("table", "on_error=skip"), ("lines",),
                         ("folders",), ("arrays",), ("shards",), ("tokens", "token_dtype=uint16", "seq_len=16"), ("kaldi",), ("unusable",), ("",)):
    words = {"plan": ["batch=4+seed=3", "batch=all", "batch=5+tail=drop"], "epochs": "2"}
    words.update(dict(option.partition("=")[::2] if "=" in option else (option, True) for option in options))
    total += compare_source(os.path.join(SOURCE, source), words)
equal(total > 4000, True, f"{total} files")
