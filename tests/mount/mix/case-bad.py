#!/usr/bin/python3
"""Mixes that cannot be: what the option says, what the sources are, and sources that are refused late."""

import json
import os

import numpy as np

from lib import MOUNTPOINT, SOURCE, contains, equal, idx_bytes, mounted, path, run, small, text, write


def arrays(file):
    with np.load(file) as loaded:
        return dict(loaded)


def npz(name, **arrays):
    os.makedirs(SOURCE, exist_ok=True)
    np.savez(os.path.join(SOURCE, f"{name}.npz"), **arrays)


def refused(option, *words, code=2):
    contains(run("mount", "-o", option, SOURCE, MOUNTPOINT, code=code), *words)
    equal(os.path.ismount(MOUNTPOINT), False, option)


def check_texts():
    """What does not parse is an error of the command line."""
    for option, words in (
            ("mix=m", ["expected NAME=SOURCE*WEIGHT"]),
            ("mix=m=a", ["expected NAME*WEIGHT, got 'a'"]),
            ("mix=m=a*0", ["expected a weight above 0"]),
            ("mix=m=a*-1", ["expected a weight above 0"]),
            ("mix=m=a*nan", ["expected a weight above 0"]),
            ("mix=m=a*65536+b*1", ["sum to at most 65536", "the nearest that do are a*65535+b*1"]),
            ("mix=m=a*1/281474976710657", ["/N with N from 1 to 2^48"]),
            ("mix=m=a*1@281474976710657:b*1", ["at most 2^48"]),
            ("mix=m=a:rank=0of2*1", ["'rank' is not a word of a source"]),
            ("mix=m=" + "+".join(f"s{i}*1" for i in range(257)), ["at most 256 sources"]),
            ("mix", ["expected mix=NAME="])):
        refused(option, *words, code=1)


def check_names():
    """Names are those of the mount, and there are no mixes of mixes."""
    for option, words in (
            ("mix=m=a*1+nothing*1", ["expected names of datasets", "a, b, ", "got 'nothing'"]),
            ("mix=m=a*1+m*1", ["got the mix itself"]),
            ("mix=m=n*1+a*1,mix=n=m*1+a*1", ["got 'n', which is a mix"]),
            ("mix=m=a*1,mix=n=m*1", ["got 'm', which is a mix"]),
            ("mix=a=a*1+b*1", ["expected a name that nothing else in the mount has"]),
            ("mix=m=a*1,mix=m=b*1", ["expected a name that nothing else"]),
            ("mix=sub=a*1", ["expected a name that nothing else"]),
            ("mix=README.txt=a*1", ["expected a name that nothing else"]),
            ("mix=m=sub*1", ["got 'sub'"])):
        refused(option, "option mix=", *words)


def check_sources():
    """What the sources are is found out later: the rest of the mount works."""
    for text_of_mix, words in (
            ("a*1+floats*1", ["'label' as int32 () in a, and as float32 () in floats"]),
            ("a*1+wide*1", ["'image' as uint8 (4, 3) in a, and as uint8 (4, 5) in wide"]),
            ("a*1+other*1", ["a field in common, got none in a and other"]),
            ("a*1+empty*1", ["expected sources that have samples, got none in empty"]),
            ("a:take=9:9*1+b*1", ["got none in a:take=9:9"]),
            ("a:split=0@0:1*1+b*1", ["split: expected a share that has samples"]),
            ("a*1+bad-idx3-ubyte*1", ["bad-idx3-ubyte cannot be used: "]),
            ("a*1+b*1@5:a*1/all", ["b rests for ever"])):
        with mounted(SOURCE, f"mix=m={text_of_mix}"):
            equal(os.listdir(path("m")), ["ERROR.txt"], text_of_mix)
            contains(text(path("m", "ERROR.txt")), "mix m: ", *words)
            equal(len(arrays(path("a", "batches", "batch=all", "npz", "000000.npz"))["label"]), 20, "a")
            contains(text(path("README.txt")), "could not be used", "\n  m\n")


def check_meanings():
    """Columns and classes with other names: each source alone is right, and together they would be wrong."""
    where = os.path.join(SOURCE, "named")
    for name, head in (("a", b"age,income,label"), ("b", b"income,age,label"), ("more", b"age,income,label")):
        write(f"named/{name}.csv", head + b"\n1,2,0\n3,4,1\n")
    write("named/bare.csv", b"5,6,1\n0.5,7,1\n")
    for file in ("cats/cat/a.jpg", "cats/dog/b.jpg", "birds/bird/c.jpg", "birds/cat/d.jpg",  # no number: the tables name none
                 "more/cat/e.jpg", "more/dog/f.jpg", "more/eel/g.jpg"):
        write(f"named/{file}", b"\xff\xd8\xff\xe0" + file.encode())
    for text_of_mix, words in (
            ("a.csv*1+b.csv*1", ['differ in the columns of \'x\'', '"age", "income" as in a.csv', '"income", "age" in b.csv']),
            ("b.csv*1+bare.csv*1+a.csv*1", ['"income", "age" as in b.csv', '"age", "income" in a.csv']),
            ("cats*1+birds*1", ["differ in the classes of 'label'", '"cat", "dog" as in cats', '"bird", "cat" in birds']),
            ("cats*1+more*1+birds*1", ['"cat", "dog", "eel" as in more', '"bird", "cat" in birds'])):
        contains(run("info", "-o", f"mix=m={text_of_mix}", where), "mix m: its sources ", *words)
    contains(run("info", "-o", "mix=m=a.csv*1+bare.csv*1,label_column=2", where),
             "a.csv has names of the columns of 'x', bare.csv has none")
    with mounted(where, "mix=m=a.csv*1+more.csv*1"):
        equal(len(arrays(path("m", "batches", "batch=all", "npz", "000000.npz"))["label"]), 4, "the same columns")
    with mounted(where, "mix=m=cats*1+more*1"):
        equal(len(arrays(path("m", "batches", "batch=all", "npz", "000000.npz"))["label"]), 5, "more classes at the end")


def check_shapes():
    """The first axis may differ: then arrays are ragged, and batches of npy padded. Fields that not all have are
    omitted; `source` of a source has another name."""
    with mounted(SOURCE, "mix=m=a*1+tall*1"):
        batch = arrays(path("m", "batches", "batch=4", "npz", "000000.npz"))
        equal(sorted(batch), ["image", "image_offsets", "index", "key", "label", "source", "source~2"], "members")
        equal(batch["image_offsets"].tolist(), [0, 4, 10, 14, 20], "offsets")
        equal(batch["image"].shape, (20, 3), "rows")
        equal(np.load(path("m", "batches", "batch=4", "npy", "000000.image_len.npy")).tolist(), [4, 6, 4, 6], "lengths")
        equal(np.load(path("m", "samples", "npy", "1-000002.image.npy")).shape, (6, 3), "a sample")
        equal(batch["source~2"].tolist(), [7, 9, 7, 9], "the field of the sources")
        equal(json.loads(text(path("m", "dataset.json")))["mix"]["fields_left_out"], "weight", "left out")
    contains(run("info", "-o", "mix=m=a*1+tall*1", SOURCE), "omitted  weight: not in all sources")


def check_late():
    """Sources that are indexed first: the mix waits for them."""
    write("good.svm", b"".join(b"%d 1:1\n" % i for i in range(40)))
    write("more.svm", b"".join(b"%d 2:1\n" % i for i in range(10)))
    with mounted(SOURCE, "mix=m=good.svm*3+more.svm*1"):
        batch = arrays(path("m", "batches", "batch=8,seed=1", "epoch=0", "npz", "000000.npz"))
        equal(batch["source"].tolist(), [0, 0, 0, 1, 0, 0, 0, 1], "sources")
        equal(batch["label"].tolist(), batch["index"].tolist(), "labels")


rng = np.random.default_rng(2)
for name, count, side, kind in (("a", 20, 3, np.int32), ("b", 12, 3, np.int32), ("floats", 5, 3, np.float32),
                                ("wide", 6, 5, np.int32)):
    more = {"source": np.full(count, 7, np.int16)} if name == "a" else {}
    npz(name, image=rng.integers(0, 256, (count, 4, side), dtype=np.uint8), label=np.arange(count).astype(kind), **more)
npz("tall", image=rng.integers(0, 256, (9, 6, 3), dtype=np.uint8), label=np.arange(9, dtype=np.int32),
    source=np.full(9, 9, np.int16), weight=np.ones(9))
npz("other", text=np.arange(7))
npz("empty", image=np.zeros((0, 4, 3), np.uint8), label=np.zeros(0, np.int32))
write("bad-idx3-ubyte", idx_bytes(np.zeros((3, 2, 2), np.uint8))[:-1])
small(4, name="sub/")
check_texts()
check_names()
check_sources()
check_meanings()
check_shapes()
check_late()
