#!/usr/bin/python3
"""Files of a folder whose names differ by a number only: parts of one set. What a set lacks is named by its dataset."""

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import tarfile

import numpy as np

from array_model import npy
from lib import SOURCE, contains, equal, idx_bytes, mounted, path, run, text, write


def make(files):
    """A source of these files: name -> content."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    os.mkdir(SOURCE)
    for name, data in files.items():
        write(name, data if isinstance(data, bytes) else data.encode())


def look(*options):
    """{dataset: its page}, {name of what is unusable: reason}"""
    found = json.loads(run("info", "--json", *options, SOURCE))
    return ({d["dataset"]: d for d in found["datasets"]}, {u["name"]: u["reason"] for u in found["unusable"]})


def samples(datasets):
    return {name: d["samples"] for name, d in datasets.items()}


def missing(dataset):
    return [m["name"] for m in dataset["missing"]]


def check(code):
    """`info --check` ends with that exit code."""
    return run("info", "--check", SOURCE, code=code)


def tar_bytes(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def rows(*numbers):
    return "".join(f'{{"a": {n}}}\n' for n in numbers)


# ---- -of-N names the set ----

PARTS = {f"t-{i:05}-of-{n:05}": rows(*range(10 * n + i, 10 * n + i + 2)) for n, have in ((2, (0, 1)), (3, (0, 1)))
         for i in have}
make(PARTS)
datasets, unusable = look()
equal({name: n for name, n in samples(datasets).items() if name not in PARTS}, {"t-of-2": 4, "t-of-3": 4}, "two sets")
equal(missing(datasets["t-of-2"]), [], "the whole set")
equal(datasets["t-of-3"]["missing"], [{"name": "t-00002-of-00003", "reason": "no such file"}], "the other set")
contains(unusable["all"], "t-00000-of-00002", "t-00000-of-00003", "two sets")
check(2)

make({name: data for name, data in PARTS.items() if name.endswith("3")})
datasets, unusable = look()
equal((samples(datasets)["all"], missing(datasets["all"]), unusable), (4, ["t-00002-of-00003"], {}), "an incomplete set")
contains(check(2), "missing  t-00002-of-00003: no such file")
datasets = json.loads(run("info", "--json", ";".join(f"{SOURCE}/t-0000{i}-of-00003" for i in (0, 1))))["datasets"]
equal([d["missing"] for d in datasets], [[]] * 3, "files that the user has named")
one = json.loads(run("info", "--json", f"{SOURCE}/t-00000-of-00003"))["datasets"]
equal([d["missing"] for d in one], [[]], "one file that the user has named")
with mounted():
    page = json.loads(text(path("all/dataset.json")))
    equal(page["missing"], [{"name": "t-00002-of-00003", "reason": "no such file"}], "dataset.json")

make({"m-00001-of-00002.jsonl": rows(1), "m-00002-of-00002.jsonl": rows(2)})  # numbers that begin at 1
equal((samples(look()[0])["all"], missing(look()[0]["all"])), (2, []), "numbers from 1 on")
check(0)

# ---- parts that alone are not recognised ----

LONG = json.dumps({"a": "x" * 20000}) + "\n"
for what, files, n in (
        ("a part of one row", {"part-0.json": rows(1, 2), "part-1.json": rows(3), "part-2.json": rows(4, 5)}, 5),
        ("a first row beyond the head", {"part-0.json": rows(1, 2), "part-1.json": LONG + rows(3)}, 4),
        ("names without an extension", {"part-00000": rows(1, 2), "part-00001": rows(3), "part-00002": LONG}, 4),
        ("an empty part", {"part-0.json": rows(1, 2), "part-1.json": "", "part-2.json": rows(4)}, 3),
        ("an empty part of JSON lines", {"part-0.jsonl": rows(1, 2), "part-1.jsonl": "", "part-2.jsonl": rows(4)}, 3),
        ("packed parts", {"part-0.json.gz": gzip.compress(rows(1, 2).encode()),
                          "part-1.json.gz": gzip.compress(rows(3).encode())}, 3),
        ("CSV without headers", {"part-00000": "1,2,3\n4,5,6\n", "part-00001": "7,8,9\n", "part-00002": "1,1,1\n2,2,2\n"}, 5),
        ("CSV of one row each but for one", {"p0.csv": "1,2\n", "p1.csv": "3,4\n5,6\n", "p2.csv": "7,8\n"}, 4),
        ("CSV of counted rows", {"p_0.csv": "0,5\n1,7\n2,9\n", "p_1.csv": "3,1\n4,2\n", "p_2.csv": "1,1\n2,2\n3,3\n"}, 8),
        ("CSV of semicolons", {"part0": "1;2;3\n4;5;6\n", "part1": "7;8;9\n"}, 3)):
    make(files)
    datasets, unusable = look()
    equal((samples(datasets).get("all"), datasets["all"]["missing"] if "all" in datasets else None, unusable), (n, [], {}), what)
    check(0)

# ---- parts of no bytes, where a whole file has some ----

for what, end, one in (("packed JSON lines", "jsonl.gz", gzip.compress(rows(1).encode())), ("arrays", "npy", npy(np.zeros((1, 2)))), ("archives", "tar", tar_bytes("a.txt", b"a"))):
    make({f"part-0.{end}": one, f"part-1.{end}": "", f"part-2.{end}": one})
    datasets, unusable = look()
    equal([missing(d) for d in datasets.values() if d["dataset"] in ("all", "part")], [[f"part-1.{end.removesuffix('.gz')}"]], what)
    check(2)

# ---- one decision for a set ----

TABLE, ROW, RAGGED = "1 2 3\n4 5 6\n", "9 9 9\n", "1 1 1\n2 2\n"
for what, files, want in (
        ("a table, and one row of as many", {"part-0.txt": TABLE, "part-1.txt": ROW}, ("csv", 3)),
        ("one row first", {"part-0.txt": ROW, "part-1.txt": TABLE}, ("csv", 3)),
        ("a part that is no table", {"part-0.txt": TABLE, "part-1.txt": ROW, "part-2.txt": RAGGED}, ("libsvm", 5)),
        ("features without values", {"part-0.txt": RAGGED, "part-1.txt": TABLE, "part-2.txt": RAGGED}, ("libsvm", 6)),
        ("most are tables, but one is not", {"part-0.txt": TABLE, "part-1.txt": TABLE, "part-2.txt": RAGGED}, ("libsvm", 6)),
        ("features with values in one part", {"part-0": "1 1:2\n", "part-1": TABLE, "part-2": ROW}, ("libsvm", 4))):
    make(files)
    datasets, unusable = look()
    equal({(d["format"], len(d["missing"])) for d in datasets.values()}, {(want[0], 0)}, what)
    equal((samples(datasets)["all"], unusable), (want[1], {}), what)

make({"part-0.txt": "1 1:2\n0 2:3\n", "part-1.txt": rows(1, 2), "part-2.txt": TABLE, "other.txt": rows(3, 4)})
datasets, unusable = look()
equal({name: (d["format"], d["samples"], d["missing"]) for name, d in datasets.items()},
      {"part-0.txt": ("libsvm", 2, []), "part-2.txt": ("libsvm", 2, []),
       "all": ("libsvm", 4, [{"name": "part-1.txt", "reason": "is jsonl, not libsvm as this dataset is"}]),
       "part-1.txt": ("jsonl", 2, []), "other.txt": ("jsonl", 2, []),
       "all~2": ("jsonl", 4, [{"name": f"part-{i}.txt", "reason": "is libsvm, not jsonl as this dataset is"} for i in (0, 2)])},
      "parts of two formats")
check(2)
make({"part-0.txt": "1 1:2\n0 2:3\n", "part-1.txt": rows(1, 2)})
equal({name: missing(d) for name, d in look()[0].items()},
      {"part-0.txt": ["part-1.txt"], "part-1.txt": ["part-0.txt"]}, "two parts of two formats")

# ---- parts that cannot be read ----

make({"part-0.json": rows(1, 2), "part-1.json": b"\x89\x01\x02 damaged", "part-2.json": rows(4, 5)})
datasets, unusable = look()
equal((samples(datasets)["all"], missing(datasets["all"]), list(unusable)), (4, ["part-1.json"], ["part-1.json"]), "damaged")
check(2)

# Packings that are not read, wherever they are in the set
LZ4, LZIP, ZIP = b"\x04\x22\x4d\x18 abc", b"LZIP\1abc", b"PK\3\4abc"
TAR = tar_bytes("0.txt", b"a")
for files, want in (({"p-0.csv": "a\n1\n", "p-1.csv.lz": LZIP, "p-2.csv": "a\n5\n", "p-3.csv.lz4": LZ4}, ["p-1.csv.lz", "p-3.csv.lz4"]),
                    ({"p-0.csv": "a\n1\n", "p-1.csv": "a\n5\n", "p-2.zip": ZIP}, ["p-2.zip"]),
                    ({"p-0.csv": "a\n1\n", "p-1.csv": "a\n5\n", "p-1.csv.lz4": LZ4, "other.zip": ZIP, "p-9": LZ4}, []),
                    ({"s-0.tar": TAR, "s-1.tar": TAR, "s-2.tar.lz4": LZ4, "s-3.zip": ZIP, "s-4.tlz4": LZ4},
                     ["s-2.tar.lz4", "s-3.zip", "s-4.tlz4"])):
    make(files)
    found = look()[0]["all"]["missing"]
    equal([m["name"] for m in found], want, f"{list(files)}")
    equal(["no such file" in m["reason"] for m in found], [False] * len(want), f"{found}")

make({"part-0.json": rows(1, 2), "part-2.json": rows(4, 5), "part-3.json": rows(6, 7)})
equal(look()[0]["all"]["missing"], [{"name": "part-1.json", "reason": "no such file"}], "a gap")
make({"2018.json": rows(1, 2), "2021.json": rows(4, 5)})
equal(missing(look()[0]["all"]), [], "years")
make({"part-0.json": rows(1, 2), "part-1.json": b"version https://git-lfs.github.com/spec/v1\n", "part-2.json": rows(4, 5)})
datasets, unusable = look()
equal(("all" in datasets, sorted(unusable)), (False, ["all", "part-1.json"]), "a part that may be fetched")
make({"part-0.json": rows(1, 2), "part-1.json": '{"a": 1}', "other.json": '{"name": "a description"}', "part-2.json": rows(3)})
equal((samples(look()[0])["all"], list(look()[1])), (4, ["other.json"]), "a description is no row")

# ---- the same file packed and unpacked ----

IMAGES, LABELS = idx_bytes(np.zeros((4, 9, 9), np.uint8)), idx_bytes(np.arange(4, dtype=np.uint8))
make({"train-images-idx3-ubyte": IMAGES, "train-images-idx3-ubyte.gz": gzip.compress(IMAGES),
      "train-labels-idx1-ubyte": LABELS, "train-labels-idx1-ubyte.gz": gzip.compress(LABELS)})
for name in os.listdir(SOURCE):
    os.utime(f"{SOURCE}/{name}", (1e9 + name.endswith("ubyte"), 1e9 + name.endswith("ubyte")))
datasets, unusable = look()
equal((samples(datasets), unusable), ({"train": 4}, {}), "torchvision's raw folder")
equal(datasets["train"]["notes"], [f"train-{kind}-ubyte.gz is ignored: train-{kind}-ubyte has the same name, unpacked"
                                   for kind in ("images-idx3", "labels-idx1")], "notes of twins")
check(0)
os.utime(f"{SOURCE}/train-images-idx3-ubyte.gz", (2e9, 2e9))
contains(look()[0]["train"]["notes"][0], "unpacked, but is older. Remove the one that is out of date")
make({"a.jsonl": rows(1, 2), "a.jsonl.gz": gzip.compress(rows(1).encode())})
os.utime(f"{SOURCE}/a.jsonl.gz", (1e9, 1e9))
contains(look()[0]["a.jsonl"]["notes"][0], "unpacked, but another size")
make({"a.jsonl": rows(1, 2), "a.jsonl.gz": b"\x1f\x8b broken", "a.jsonl.xz": lzma.compress(rows(1).encode()),
      "b.jsonl.gz": gzip.compress(rows(3).encode()), "b.jsonl.xz": lzma.compress(rows(4).encode())})
datasets, unusable = look()
equal((samples(datasets), unusable), ({"a.jsonl": 2, "b.jsonl": 1, "all": 3}, {}), "other formats")
contains(datasets["b.jsonl"]["notes"][0], "b.jsonl.xz is ignored: b.jsonl.gz has the same name")
both = json.loads(run("info", "--json", f"{SOURCE}/b.jsonl.gz;{SOURCE}/b.jsonl.xz"))
equal(sum(d["samples"] for d in both["datasets"] if d["dataset"] != "all"), 2, "files that the user has named")

TAR = {i: tar_bytes(f"{i}.txt", b"text") for i in range(3)}
make({"s-0.tar": TAR[0], "s-0.tgz": gzip.compress(TAR[0]), "s-1.tar.gz": gzip.compress(TAR[1]), "s-1.tgz": gzip.compress(TAR[1]),
      "s-1.txz": lzma.compress(TAR[1]), "s-1.tbz2": bz2.compress(TAR[1]), "s-2.tgz": gzip.compress(TAR[2]), "s-2.txz": lzma.compress(TAR[2])})
for name in os.listdir(SOURCE):
    os.utime(f"{SOURCE}/{name}", (1e9, 1e9))  # none is older
datasets, unusable = look()
equal((samples(datasets)["all"], missing(datasets["all"]), unusable), (3, [], {}), "packed tars")
for kept, other in (("s-0.tar", "s-0.tgz"), ("s-1.tar.gz", "s-1.tgz"), ("s-1.tar.gz", "s-1.txz"), ("s-1.tar.gz", "s-1.tbz2"),
                    ("s-2.tgz", "s-2.txz")):
    contains(datasets["all"]["notes"], f"{other} is ignored: {kept} has the same name{', unpacked' * kept.endswith('.tar')}")

# ---- lists of numbers next to data join nothing, unless the user names the files ----

FEATURES = "1 1:0.5 3:2\n0 2:1\n2 1:7\n"
make({"rank.train": FEATURES, "rank.train.position": "0\n1\n2\n", "notes.txt": "1\n"})
datasets, _ = look()
equal(samples(datasets), {"rank.train": 3, "rank.train.position": 3, "notes.txt": 1}, "positions of ranking data")
contains(datasets["rank.train.position"]["notes"][0], "no part of `all`", "no features")
make({"rank.train": FEATURES, "rank.test": FEATURES, "rank.train.position": "0\n1\n2\n"})
datasets, _ = look()
equal((samples(datasets)["all"], missing(datasets["all"])), (6, []), "two files of rows, and a list")
contains(datasets["all"]["notes"][0], "rank.train.position: no part of `all`")
equal([d["samples"] for d in json.loads(run("info", "--json", f"{SOURCE}/rank.train;{SOURCE}/rank.train.position"))["datasets"]
       if d["dataset"] == "all"], [6], "files that the user has named")
make({"X_train.txt": "0.1 0.2 0.3\n0.4 0.5 0.6\n", "y_train.txt": "5\n4\n", "subject_train.txt": "1\n1\n"})
equal("all" in look()[0], False, "UCI HAR")
make({"balanced-mapping.txt": "0 48\n1 49\n2 50\n", "letters-mapping.txt": "1 65\n2 66\n"})
equal("all" in look()[0], False, "mappings of EMNIST")
make({"image_class_labels.txt": "1 1\n2 1\n3 2\n", "train_test_split.txt": "1 0\n2 1\n3 1\n"})
equal("all" in look()[0], False, "lists of CUB")
equal([d["samples"] for d in json.loads(run("info", "--json", ";".join(f"{SOURCE}/{name}" for name in sorted(os.listdir(SOURCE)))))["datasets"]
       if d["dataset"] == "all"], [6], "lists that the user has named")
make({"a.csv": "1,5\n2,7\n4,9\n", "b.csv": "3,1\n9,9\n"})
equal(samples(look()[0])["all"], 5, "tables of two columns")
make({"a.txt": "1 1:2\n0 2:2\n", "b.txt": "1 1:2\n0 2:2\n", "c.txt": "1 1:2\nx y:2\n3 z 1:2\n"})
datasets, _ = look("-o", "bad_rows=skip")
equal((samples(datasets)["all"], missing(datasets["all"])), (4, ["c.txt"]), "a text about data")

# ---- a file that is no part ----

make({"ratings.csv": "userId,rating\n1,4\n2,5\n", "movies.csv": "movieId,title\n1,Toy\n"})
equal(look()[0]["ratings.csv"]["missing"], [], "files of no set")
make({"a.json": LONG + rows(3)})
contains(run("info", SOURCE, code=2), "JSON whose first line is longer than what is looked at", "-o format=jsonl")
equal(samples(look("-o", "format=jsonl")[0]), {"a.json": 2}, "as it says")
