#!/usr/bin/python3
# needs: python3-pil
"""Generated IDX files: every type, 1 to 5 and 255 dimensions, special floats, empty axes."""

import io
import json
import math
import os
import zipfile

import numpy as np

import model
from lib import (IDX_CODES, SLOW, content, equal, idx_bytes, idx_header, mounted, path, text,
                 write)

SHAPES = {1: (13,), 2: (11, 3), 3: (9, 4, 5), 4: (8, 2, 3, 4), 5: (7, 2, 1, 3, 2)}
FLOATS = [math.nan, -math.nan, math.inf, -math.inf, -0.0, 0.0, 1e-310, 1.5, -3.25e38, 2 ** -149]
rng = np.random.default_rng(5)


def values(kind, shape):
    n = math.prod(shape)
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        array = rng.standard_normal(n).astype(dtype)
        k = min(n, len(FLOATS))
        with np.errstate(over="ignore"):
            array[:k] = np.array(FLOATS[:k], dtype)
        bits = array.view(f"u{dtype.itemsize}")
        bits[-1] |= np.array(-1).astype(bits.dtype) >> np.array(1).astype(bits.dtype)  # odd nan
        return array.reshape(shape)
    info = np.iinfo(dtype)
    array = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    array[:2] = [info.min, info.max]
    return array.reshape(shape)


def field_of(kind, ndim):
    """What a file is by its magic, where its name says nothing."""
    return {("u1", 3): "image", ("u1", 1): "label"}.get((kind, ndim), "data")


datasets = {}
for kind in IDX_CODES:
    for ndim, shape in SHAPES.items():
        array = values(kind, shape)
        name = f"{kind}-{ndim}d"
        write(name, idx_bytes(array))
        datasets[name] = {field_of(kind, ndim): array}

# Pairs: the name decides the field, whatever type and shape.
pairs = {
    "float": (values("f4", (10, 3, 4)), np.arange(10, dtype=np.int32)),
    "multi": (values("u1", (10, 6, 2)), values("i4", (10, 8))),
    "negative": (values("u1", (10, 6, 2)), np.array([-1, 5] * 5, np.int8)),
    "large": (values("u1", (4, 1, 1)), np.array([0, 300, 2, 32767], np.int16)),
    "wide": (values("u1", (4, 3, 2)), np.array([0, 70000, 2, 9], np.int32)),
    "real": (values("i2", (6, 2)), values("f8", (6,))),
    "highlabel": (values("u1", (3, 2, 2)), np.array([255, 254, 0], np.uint8)),
}
for name, (images, labels) in pairs.items():
    write(f"{name}-images-idx3-ubyte", idx_bytes(images))
    write(f"{name}-labels.idx1-ubyte", idx_bytes(labels))  # a dot for a dash
    datasets[name] = {"image": images, "label": labels}

write("none", idx_bytes(np.zeros((0, 28, 28), np.uint8)))
write("hollow", idx_bytes(np.zeros((5, 0, 28), np.uint8)))
write("hollow-huge", idx_header(0x08, [2 ** 32 - 1, 0]))
DIMS = [3, 2] + [1] * 252 + [4]
wide = values("i2", (24,))
write("255d", idx_header(0x0B, DIMS) + wide.astype(">i2").tobytes())


def check_255():
    page = json.loads(text(path("255d/dataset.json")))
    equal((page["samples"], page["fields"][0]["shape"]), (3, DIMS[1:]), "255d")
    equal(content(path("255d/samples/raw/000001.data.raw")), wide[8:16].astype(">i2").tobytes(),
          "255d: raw")
    equal(content(path("255d/batches/batch=2/idx/000000.data.idx")),
          idx_header(0x0B, [2] + DIMS[1:]) + wide[:16].astype(">i2").tobytes(), "255d: idx")
    for file, shape, want in (("samples/npy/000002.data.npy", DIMS[1:], wide[16:]),
                              ("batches/batch=2/npy/000000.data.npy", [2] + DIMS[1:], wide[:16])):
        data = content(path("255d", file))
        f = io.BytesIO(data)
        equal(np.lib.format.read_magic(f), (1, 0), file)
        got = np.lib.format.read_array_header_1_0(f)
        equal(got, (tuple(shape), False, np.dtype("<i2")), file)
        equal(f.tell() % 64, 0, file)
        equal(data[f.tell():], want.astype("<i2").tobytes(), file)
    with zipfile.ZipFile(path("255d/batches/batch=2/npz/000001.npz")) as z:
        equal(z.testzip(), None, "255d: npz")
    shape = os.getxattr(path("255d/samples/raw/000000.data.raw"), "user.epochfs.shape")
    equal(shape.decode(), str(tuple(DIMS[1:])), "255d: shape")


def check_empty():
    equal(json.loads(text(path("none/dataset.json")))["samples"], 0, "none")
    equal(os.listdir(path("none/samples/raw")), [], "none")
    equal(os.path.exists(path("none/preview.png")), False, "none")
    equal(os.listdir(path("none/batches/batch=4/npz")), [], "none")
    everything = path("none/batches/batch=all/npy/000000.image.npy")
    equal(np.load(everything).shape, (0, 28, 28), "none: batch=all")
    equal(np.load(path("none/batches/batch=all,seed=1/epoch=3/npz/000000.npz"))["image"].shape,
          (0, 28, 28), "none: batch=all with a seed")
    for enc in os.listdir(path("none/batches/batch=all")):
        for name in os.listdir(path("none/batches/batch=all", enc)):
            content(path("none/batches/batch=all", enc, name))
    model.check_sample(model.Dataset(path("hollow"), {"image": np.zeros((5, 0, 28), np.uint8)}), 3,
                       ["npy", "npz", "raw", "idx"])
    equal(os.path.exists(path("hollow/preview.png")), False, "hollow")
    os.stat(path("hollow-huge/samples/raw/4294967294.data.raw"))
    equal(np.load(path("hollow-huge/batches/batch=3,seed=1/epoch=0/npy/1431655764.data.npy")).shape,
          (3, 0), "hollow-huge")


with mounted():
    equal(sorted(set(os.listdir(path())) - {".epochfs", "README.txt"}),
          sorted([*datasets, "none", "hollow", "hollow-huge", "255d"]), "datasets")
    for name, fields in datasets.items():
        ds = model.Dataset(path(name), fields)
        page = json.loads(text(path(name, "dataset.json")))
        stored = {f["name"]: f["shape"] for f in page["fields"] if not f["derived"]}
        equal(stored, {n: list(a.shape[1:]) for n, a in fields.items()}, name)
        derived = {f["name"] for f in page["fields"] if f["derived"]} - {"index", "key"}
        equal(derived, set(ds.derived), name)
        equal(sorted(os.listdir(path(name, "samples"))), sorted([*ds.encodings(), "tfrecord"]), name)
        for sample in {0, 1, ds.samples - 1} if SLOW else range(ds.samples):
            model.check_sample(ds, sample)
        model.check_batch(ds, path(name, "batches/batch=3"), 0, [0, 1, 2])
        rest = list(range(ds.samples))[-(ds.samples % 3 or 3):]
        model.check_batch(ds, path(name, "batches/batch=3"), (ds.samples - 1) // 3, rest)
        model.check_batch(ds, path(name, "batches/batch=all"), 0, list(range(ds.samples)))
    check_255()
    check_empty()

one_hot = model.Dataset(path("wide"), datasets["wide"], classes=70001)
equal("label1h" in one_hot.derived, False, "the model knows the bound")
with mounted(path().replace("mountpoint", "source"), "classes=12,transpose"):
    ds = model.Dataset(path("float"), {"image": pairs["float"][0].transpose(0, 2, 1),
                                       "label": pairs["float"][1]}, classes=12)
    model.check_sample(ds, 3, ["npy", "npz", "tar"])
    model.check_batch(ds, path("float/batches/batch=4"), 1, [4, 5, 6, 7], ["npy", "npz"])
    ds = model.Dataset(path("multi"), {"image": pairs["multi"][0].transpose(0, 2, 1),
                                       "label": pairs["multi"][1]})
    model.check_sample(ds, 3, ["npy", "npz", "tar", "png", "pgm"])
    model.check_batch(ds, path("multi/batches/batch=4"), 1, [4, 5, 6, 7], ["npy", "png", "pgm"])
    stored = model.Dataset(path("multi"), {"image": pairs["multi"][0], "label": pairs["multi"][1]})
    model.check_sample(stored, 3, ["raw", "idx"])  # as stored
    model.check_batch(stored, path("multi/batches/batch=4"), 1, [4, 5, 6, 7], ["raw", "idx"])
