#!/usr/bin/python3
"""Arrays in several files, whose names differ by a number only; and names of splits."""

import io
import json
import os
import shutil

import numpy as np

from array_model import check, npy
from lib import SOURCE, contains, equal, mounted, path, run, text, write

RNG = np.random.default_rng(7)


def numbers(n, *shape, dtype="<f4"):
    return RNG.integers(0, 100, (n, *shape)).astype(dtype)


def make(files):
    """A source of these arrays: name -> array, or bytes."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    os.mkdir(SOURCE)
    for name, data in files.items():
        write(name, data if isinstance(data, bytes) else npy(data))


def look(*options):
    found = json.loads(run("info", "--json", *options, SOURCE))
    return ({d["dataset"]: d for d in found["datasets"]}, {u["name"]: u["reason"] for u in found["unusable"]})


def shapes(datasets):
    """{dataset: {field: samples and shape}}"""
    return {name: {f["name"]: [d["samples"], *f["shape"]] for f in d["fields"] if f["name"] not in ("index", "key")}
            for name, d in datasets.items()}


def missing(dataset):
    return [m["name"] for m in dataset["missing"]]


# ---- one array in several files ----

EMB = [numbers(n, 8) for n in (100, 100, 40)]
make({f"emb_{i}.npy": a for i, a in enumerate(EMB)})
datasets, unusable = look()
equal((shapes(datasets), unusable), ({"emb": {"data": [240, 8]}}, {}), "three files")
contains(datasets["emb"]["notes"][0], "emb_0.npy to emb_2.npy are one array in 3 files", "-o pair=off")
equal("one sample" in datasets["emb"]["notes"][0], False, "the last one is shorter")
equal((datasets["emb"]["missing"], datasets["emb"]["arrays"]),
      ([], [{"field": "data", "array": "emb", "files": 3}]), "what it is made of")
with mounted():
    check("emb", {"data": np.concatenate(EMB)})
run("info", "--check", SOURCE)
equal(sorted(look("-o", "pair=off")[0]), ["emb_0", "emb_1", "emb_2"], "pair=off")

TEN = [numbers(3, 2, dtype=">i4") for _ in range(12)]
for names, what in (([f"p{i}.npy" for i in range(12)], "numbers of several widths"),
                    ([f"p-{i:03}.npy" for i in range(1, 13)], "numbers from 1 on"),
                    ([f"{i}.npy" for i in range(12)], "names that are numbers"),
                    ([f"m-{i:05}-of-00012.npy" for i in range(12)], "-of-N")):
    make(dict(zip(names, TEN)))
    datasets, _ = look()
    equal([(list(f), d["missing"]) for f, d in zip(shapes(datasets).values(), datasets.values())], [(["data"], [])], what)
    contains(next(iter(datasets.values()))["notes"][0], "each is int32 (3, 2): if each is one sample, store them as members of a tar")
    with mounted():
        check(next(iter(datasets)), {"data": np.concatenate(TEN).astype(">i4")}, batch=5)

# ---- pairs ----

X, Y = [numbers(n, 4, 4, dtype="u1") for n in (7, 5)], [numbers(n, dtype="<i8") for n in (7, 5)]
make({f"{name}_{i}.npy": a for name, arrays in (("X", X), ("y", Y)) for i, a in enumerate(arrays)})
equal(shapes(look()[0]), {"all": {"X": [12, 4, 4], "y": [12]}}, "pairs of files")
with mounted():
    check("all", {"X": np.concatenate(X), "y": np.concatenate(Y)}, batch=5)
make({"X_0.npy": X[0], "X_1.npy": X[1], "y_0.npy": Y[1], "y_1.npy": Y[0]})
contains(run("info", SOURCE, code=2), "in files of as many", "-o pair=off")
make({f"{name}_train_{i}.npy": a for name, arrays in (("X", X), ("y", Y)) for i, a in enumerate(arrays)} | {"X_test.npy": X[0], "y_test.npy": Y[0]})
equal(shapes(look()[0]), {"train": {"X": [12, 4, 4], "y": [12]}, "test": {"X": [7, 4, 4], "y": [7]}}, "of splits")

# ---- what is no array in several files ----

make({"layer_1.npy": numbers(9, 4), "layer_2.npy": numbers(9, 6)})
datasets, _ = look()
equal(shapes(datasets), {"all": {"layer_1": [9, 4], "layer_2": [9, 6]}}, "other shapes")
contains(datasets["all"]["notes"][0], "layer_1.npy and layer_2.npy are not one array", "(9, 4)", "(9, 6)")
make({"a0.npy": numbers(9, 4), "a1.npy": numbers(9, 4, dtype="<f8")})
contains(look()[0]["all"]["notes"][0], "float32", "float64")
make({"x_fold1.npy": X[0], "x_fold2.npy": X[1]})
equal(sorted(look()[0]), ["x_fold1", "x_fold2"], "folds")

EQUAL = [numbers(3, 2) for _ in range(4)]
for what, files in (("folds of one size", {f"{n}_fold{i}.npy": a for i in (1, 2) for n, a in (("x", EQUAL[i]), ("y", EQUAL[0][:, 0]))}),
                    ("ranges that do not follow each other", {"emb-0-1000.npy": EQUAL[0], "emb-2000-3000.npy": EQUAL[1]}),
                    ("two numbers", {f"emb_{i}_{k}.npy": EQUAL[i + 2 * k] for i in (0, 1) for k in (0, 1)})):
    make(files)
    contains(run("info", SOURCE, code=2), "differ by numbers only", "-o pair=off")
for rows in (3, 2):
    make({"emb_0.npy": EQUAL[0], "emb_1.npy": EQUAL[1][:rows].astype(">f4")})
    contains(run("info", SOURCE, code=2), "emb: files of one array differ in their order of bytes", "little-endian as in emb_0.npy",
             "big-endian in emb_1.npy", "astype('<')", "-o pair=off")
equal(sorted(look("-o", "pair=off")[0]), ["emb_0", "emb_1"], "pair=off")

# ---- fields by their lengths alone ----

for names, noted in (("alice", "bob"), True), (("emb", "scores"), True), (("X", "y"), False), (("images", "labels"), False):
    make({f"{name}.npy": EQUAL[i] for i, name in enumerate(names)})
    notes = look()[0]["all"]["notes"]
    equal(len(notes), int(noted), names)
    for note in notes:
        contains(note, "alice.npy and bob.npy" if "alice" in names else "emb.npy", "the same number of rows", "-o pair=off")

# ---- ranges ----

make({"emb-0-1000.npy": EQUAL[0], "emb-1000-2000.npy": EQUAL[1], "emb-3000-4000.npy": EQUAL[2]})
datasets, _ = look()
equal((shapes(datasets), missing(datasets["emb"])), ({"emb": {"data": [9, 2]}}, ["emb-2000-3000.npy"]), "ranges")
with mounted():
    check("emb", {"data": np.concatenate(EQUAL[:3])})

# ---- what is missing ----

make({"emb_0.npy": EMB[0], "emb_1.npy": npy(EMB[1])[:50], "emb_2.npy": EMB[2], "emb_4.npy": EMB[2]})
datasets, unusable = look()
equal((shapes(datasets), sorted(missing(datasets["emb"])), list(unusable)), ({"emb": {"data": [180, 8]}}, ["emb_1.npy", "emb_3.npy"], ["emb_1.npy"]),
      "a damaged file, and a gap")
run("info", "--check", SOURCE, code=2)
make({"m-00001-of-00003.npy": EMB[0], "m-00003-of-00003.npy": EMB[1]})
equal(missing(look()[0]["m"]), ["m-00002-of-00003.npy"], "-of-N")

# ---- names of splits ----

A, B, C, D = numbers(6, 3), numbers(6), numbers(2, 3), numbers(2)
for train_x, train_y, test_x, test_y in (("train-images", "train-labels", "test-images", "test-labels"),
                                         ("train.images", "train.labels", "test.images", "test.labels"),
                                         ("images-train", "labels-train", "images-test", "labels-test"),
                                         ("Train_images", "TRAIN_labels", "Test_images", "test_labels"),
                                         ("images_training", "labels_training", "images_testing", "labels_testing"),
                                         ("train images", "train labels", "test images", "test labels")):
    make({f"{train_x}.npy": A, f"{train_y}.npy": B, f"{test_x}.npy": C, f"{test_y}.npy": D})
    found = shapes(look()[0])
    train, test = ("training", "testing") if "training" in train_x else ("train", "test")
    equal(found, {train: {"images": [6, 3], "labels": [6]}, test: {"images": [2, 3], "labels": [2]}}, train_x)
make({"my_train_images.npy": A, "my_train_labels.npy": B, "my_test_images.npy": C, "my_test_labels.npy": D})
equal("all" in look()[0], False, "`all` is no split")

# ---- sets of files of several arrays ----


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def safetensors(**arrays):
    head, data = {}, b""
    for name, a in arrays.items():
        head[name] = {"dtype": {"f4": "F32", "u1": "U8", "i8": "I64"}[a.dtype.str[1:]], "shape": list(a.shape),
                      "data_offsets": [len(data), len(data) + a.nbytes]}
        data += a.tobytes()
    head = json.dumps(head).encode()
    return len(head).to_bytes(8, "little") + head + data


for end, pack in ("npz", npz), ("safetensors", safetensors):
    names = [f"model-0000{i}-of-00002.{end}" for i in (1, 2)] if end == "safetensors" else [f"data_{i}.npz" for i in (0, 1)]
    stem = names[0][:5].rstrip("_")[:4] if end == "npz" else "model"
    make({name: pack(x=x, y=y) for name, x, y in zip(names, X, Y)})
    datasets, unusable = look()
    equal((shapes(datasets), unusable), ({stem: {"x": [12, 4, 4], "y": [12]}}, {}), f"{end}: two files")
    contains(datasets[stem]["notes"][0], f"{names[0]} to {names[1]} are one set of 2 files")
    with mounted():
        check(stem, {"x": np.concatenate(X), "y": np.concatenate(Y)}, batch=5)
    run("info", "--check", SOURCE)
    make({f"d{i}.{end}": pack(**{f"{n}_{s}": a for s, n, a in (("train", "x", X[i]), ("train", "y", Y[i]), ("test", "x", X[1]), ("test", "y", Y[1]))})
          for i in (0, 1)})
    equal(shapes(look()[0]), {"train": {"x": [12, 4, 4], "y": [12]}, "test": {"x": [10, 4, 4], "y": [10]}}, f"{end}: splits")
    make({f"d0.{end}": pack(x=X[0], y=Y[0]), f"d1.{end}": pack(x=X[1]), f"e.{end}": pack(x=X[0])})
    datasets, _ = look()
    equal(sorted(datasets), ["d0", "d1", "e"], f"{end}: other arrays")
    contains(datasets["d0"]["notes"][0], f"d0.{end} and d1.{end} are not one set")
    make({f"d0.{end}": pack(x=X[0]), f"d2.{end}": pack(x=X[1]), f"d1.{end}": pack(x=X[1])[:-9]})
    datasets, _ = look()
    equal((shapes(datasets), missing(datasets["d"])), ({"d": {"data": [12, 4, 4]}}, [f"d1.{end}"]), f"{end}: a damaged file")
    make({f"d0.{end}": pack(x=X[0], y=Y[0]), f"d1.{end}": pack(x=X[1], y=Y[0])})
    equal(shapes(look()[0]), {"x": {"data": [12, 4, 4]}, "y": {"data": [14]}}, f"{end}: rows that do not fit")

    # A file for each sample, not for some of the rows.
    make({f"case{i}.{end}": pack(x=numbers(4, 5 + i)) for i in range(3)})
    contains(run("info", SOURCE, code=2), "case: 3 arrays", "probably one sample each")
    make({f"case{i}.{end}": pack(x=numbers(4, 5), y=np.arange(4)) for i in range(3)})
    equal((shapes(look()[0]), "one sample" in look()[0]["case"]["notes"][0]), ({"case": {"x": [12, 5], "y": [12]}}, False), f"{end}: rows")
    make({f"case{i}.{end}": pack(x=numbers(4, 5), mask=numbers(4, 5)) for i in range(3)})
    contains(look()[0]["case"]["notes"][0], "each is float32 (4, 5): if each is one sample")

make({f"case{i}.npz": npz(x=numbers(4, 5), y=np.int64(i)) for i in range(3)})
contains(run("info", SOURCE, code=2), "case: 3 arrays", "probably one sample each")
make({f"case{i}.npz": npz(x=numbers(4, 5), y=np.arange(4), rate=np.int64(16000)) for i in range(3)})
equal(shapes(look()[0]), {"case": {"x": [12, 5], "y": [12]}}, "a number next to rows with labels")
TEXTS = np.array(["a", "b", "c"])
make({f"d{i}.npz": npz(x=EQUAL[i], y=TEXTS) for i in (0, 1)})
contains(run("info", SOURCE, code=2), "array y cannot be read", "got strings", "-o pair=off")

# ---- a split of one file ----

make({f"{a}_{kind}_{i}.npy": numbers(n, *shape) for a, shape in (("x", (4,)), ("y", ())) for kind, i, n in
      (("train", 0, 5), ("train", 1, 3), ("test", 0, 2))})
datasets, unusable = look()
equal((shapes(datasets), unusable), ({"train": {"x": [8, 4], "y": [8]}, "test": {"x": [2, 4], "y": [2]}}, {}), "test in one file")
contains("\n".join(datasets["test"]["notes"]), "x_test_0.npy is x_test, because files of x_train have numbers", "-o pair=off")
make({"x_test_0.npy": EQUAL[0], "y_test_0.npy": EQUAL[1]})
equal(shapes(look()[0]), {"x_test_0": {"x_test_0": [3, 2], "y_test_0": [3, 2]}}, "no split in several files")

# ---- half a pair ----

make({f"X_{i}.npy": EQUAL[i] for i in range(4)} | {f"y_{i}.npy": EQUAL[i][:, 0] for i in range(2)})
datasets, _ = look()
equal({name: missing(d) for name, d in datasets.items()}, {"X": [], "y": ["y_2.npy", "y_3.npy"]}, "an array that ends early")
run("info", "--check", SOURCE, code=2)

for bad in b"<html>not found</html>", npy(TEXTS):
    make({"x_train.npy": EQUAL[0], "y_train.npy": bad, "x_test.npy": EQUAL[1]})
    datasets, _ = look()
    equal({name: missing(d) for name, d in datasets.items()}, {"train": ["y_train.npy"], "test": []}, "half of a split")
    make({"X.npy": EQUAL[0], "y.npy": bad, "README.html": b"<html>no array</html>"})
    equal([missing(d) for d in look()[0].values()], [["y.npy"]], "half of a pair")
    make({"x_train_0.npy": EQUAL[0], "x_train_1.npy": EQUAL[1], "y_train_0.npy": bad, "y_train_1.npy": bad})
    equal(missing(look()[0]["train"]), ["y_train_0.npy", "y_train_1.npy"], "half of a split in parts")
    make({"x_train_0.npy": EQUAL[0], "x_train_1.npy": bad})
    equal([missing(d) for d in look()[0].values()], [["x_train_1.npy"]], "a part is listed once")

# ---- an array a sample ----

MELS = {f"{i:03}.npy": numbers(80, 50 + i % 7) for i in range(20)}
for what, files in (("flat", MELS), ("class folders", {f"{kind}/{name}": a for kind in ("cat", "dog") for name, a in MELS.items()}),
                    ("names", {f"utt-{chr(97 + i // 26)}{chr(97 + i % 26)}.npy": numbers(80, 50 + i) for i in range(80)})):
    make(files)
    contains(run("info", SOURCE, code=2), "probably one sample each", "(80, 50)", "tar ", "-o pair=off",
             "among 40 files (40 .npy)" if what == "class folders" else "nothing usable: ")
make({"x.npz": npz(**{f"u{chr(97 + i // 26)}{chr(97 + i % 26)}": numbers(80, 50 + i) for i in range(80)})})
contains(run("info", SOURCE, code=2), "probably one sample each")
equal(len(look("-o", "pair=off")[0]), 80, "pair=off")
