#!/usr/bin/python3
"""Tensors of safetensors files: each type, pairing, omitted and rejected ones. Each check names its row of
the table of cases."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from array_model import check, described, error  # noqa: E402
from lib import CACHE, SOURCE, contains, equal, mounted, path, run, status, text, write  # noqa: E402
from servers import *  # noqa: E402

RNG = np.random.default_rng(12)
REAL = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "safetensors")
NAMES = {"|b1": "BOOL", "|u1": "U8", "|i1": "I8", "<u2": "U16", "<i2": "I16", "<u4": "U32", "<i4": "I32", "<u8": "U64",
         "<i8": "I64", "<f2": "F16", "<f4": "F32", "<f8": "F64", "<c8": "C64"}


def numbers(dtype, *shape):
    return RNG.integers(0, 2 if np.dtype(dtype) == bool else 100, shape).astype(dtype)


def file(header, data=b"", length=None):
    words = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(words) if length is None else length).to_bytes(8, "little") + words + data


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def saved(metadata=None, other=None, **arrays):
    """A file of the arrays; other: the names of types that are not numpy's, and their shapes."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in arrays.items():
        dtype, shape = (other or {}).get(name, (NAMES[array.dtype.str], array.shape))
        header[name] = entry(dtype, shape, len(data), len(data) + array.nbytes)
        data += array.tobytes()
    return file(header, data)


X, Y = numbers("u1", 40, 9, 8), numbers("<i4", 40)
XY = {"x": X, "y": Y}
TYPES = {f"t{i}": numbers(dtype, 40, 2) for i, dtype in enumerate(NAMES)}
TRAIN = {"x_train": X, "y_train": Y, "x_test": X[:7], "y_test": Y[:7]}
BF16, F8, F4 = numbers("<u2", 40, 3), numbers("u1", 40, 5), numbers("u1", 40, 2)
GOOD = {  # folder -> (file, datasets)
    "T-1": (saved(**XY), {"T-1": XY}),
    "T-1 metadata": (saved({"format": "pt"}, **XY), {"T-1 metadata": XY}),
    "T-1 spaces": (file(json.dumps({"x": entry("U8", (4,), 0, 4)}).encode() + b" " * 5000, b"abcd"),
                   {"T-1 spaces": {"data": np.frombuffer(b"abcd", "u1")}}),
    "types": (saved(**TYPES), {"types": TYPES}),
    "no rows": (saved(x=X, y=Y[:0]), {"x": {"data": X}}),
    "splits": (saved(**TRAIN), {"train": XY, "test": {"x": X[:7], "y": Y[:7]}}),
    "T-3 BF16": (saved(other={"x": ("BF16", (40, 3))}, x=BF16), {"T-3 BF16": {"data": BF16}}),
    "T-3 F8": (saved(other={"x": ("F8_E4M3", (40, 5))}, x=F8), {"T-3 F8": {"data": F8}}),
    "T-3 F4": (saved(other={"x": ("F4", (40, 4))}, x=F4), {"T-3 F4": {"data": F4}}),
    "T-3 F6": (saved(other={"x": ("F6_E2M3", (40, 2, 4))}, x=numbers("u1", 40, 2, 3)), None),
    "T-4 one length": (saved(**{f"w{i}": numbers("u1", 6) for i in range(70)}),
                       {f"w{i}": None for i in range(70)}),
    "T-5": (saved(x=X, scale=np.array(3, "<f4")), {"T-5": {"data": X}}),
    "a long name": (saved(**{"x": X, "n" * 49: Y}), {"a long name": {"data": X}}),
    "nine axes": (saved(**{"x": X, "y": numbers("u1", *[1] * 9)}), {"nine axes": {"data": X}}),
}
HALF = {"x": entry("U8", (4,), 0, 4)}
BAD = {  # folder -> (file, words of the message)
    "T-1 length": (file(HALF, b"abcd", 10**6), ["length of the header at byte 0: expected at most", "got 1000000"]),
    "T-2 size": (file({"x": entry("U8", (4,), 0, 5)}, b"abcde"), ["tensor x", "expected 4 bytes", "got 5"]),
    "T-2 order": (file({"x": entry("U8", (4,), 4, 0)}, b"abcd"), ["tensor x", "got 4 and 0"]),
    "T-2 outside": (file(HALF, b"abc"), ["tensor x", "up to 3, got 0 and 4"]),
    "T-2 hole": (file({**HALF, "y": entry("U8", (1,), 5, 6)}, b"abcdef"), ["tensor y", "expected 4", "got 5"]),
    "T-2 first hole": (file({"y": entry("U8", (1,), 1, 2)}, b"ab"), ["tensor y", "expected 0", "got 1"]),
    "T-2 overlap": (file({**HALF, "y": entry("U8", (3,), 2, 5)}, b"abcde"), ["tensor y", "expected 4", "got 2"]),
    "T-2 behind": (file(HALF, b"abcdef"), ["expected tensors up to the end"]),
    "T-2 overflow": (file({"x": entry("U8", (2**62, 2**62), 0, 4)}, b"abcd"), ["tensor x", "2^64"]),
    "T-2 negative": (file({"x": entry("U8", (-4,), 0, 4)}, b"abcd"), ["tensor x", "shape"]),
    "T-2 text": (file({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, "4"]}}, b"abcd"), ["tensor x", "data_offsets"]),
    "T-3 unknown": (file({"x": entry("F128", (4,), 0, 4)}, b"abcd"), ["tensor x", "got 'F128'"]),
    "T-4": (saved(**{f"w{i}": numbers("u1", 4 + i % 3) for i in range(70)}), ["70 tensors", "weights", "pair=off"]),
    "twice": (file(b'{"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}, '
                   b'"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}', b"abcd"), ["duplicate"]),
    "one name": (saved(**{"a/b": X, "a.b": Y}), ["tensor a.b", "two tensors have this name"]),
    "no shape": (file({"x": {"dtype": "U8", "data_offsets": [0, 4]}}, b"abcd"), ["tensor x", "expected a shape"]),
    "an array": (file({"x": [1, "data_offsets"], **HALF}, b"abcd"), None),
    "cut short": (saved(**XY)[:-1], ["up to 3039"]),
    "JSON": (file(b'{"data_offsets" 1}'), ["header", "line 1"]),
    "nothing": (file({"__metadata__": {"a": "b"}}), ["expected tensors, got none"]),
    "a scalar alone": (saved(n=np.array(3)), ["expected a tensor of samples", "a scalar"]),
}

for name, (data, _) in {**GOOD, **BAD}.items():
    write(f"{name}/{name}.safetensors", data)
with mounted():
    for name, (data, sets) in GOOD.items():
        for dataset, fields in (sets or {}).items():
            if fields:
                check(f"{name}/{dataset}", fields)
            else:
                equal(described(name, dataset)["samples"], 6, dataset)
    equal([a.get("stored_as") for a in described("T-3 BF16", "T-3 BF16")["arrays"]], ["BF16"], "the name of a type")
    equal(described("T-3 F6", "T-3 F6")["samples"], 40, "F6")
    contains(described("T-5", "T-5")["left_out"][0], "scale", "scalar")
    contains(described("a long name", "a long name")["left_out"][0], "longer than 48 bytes")
    contains(described("nine axes", "nine axes")["left_out"][0], "at most 8 axes")
    for name, (_, says) in BAD.items():
        if says:
            contains(error(name, f"{name}.safetensors"), *says)
with mounted(os.path.join(SOURCE, "T-1"), "pair=off"):
    check("x", {"data": X})
    check("y", {"data": Y})
with mounted(os.path.join(SOURCE, "T-4"), "pair=off"):
    equal(described("w69")["samples"], 4, "pair=off")
contains(run("info", "--check", os.path.join(SOURCE, "T-1")), "safetensors", "uint8, 9 x 8")

with Nginx(SOURCE) as server, mounted(f"{server.url}/splits/splits.safetensors", f"cache={CACHE}"):
    check("train", XY)
    check("test", {"x": X[:7], "y": Y[:7]})

# Numbers of which numpy has no type: only those of one type are mixed, and their bits are no numbers, pictures or labels.
MIXED = {"b0": "BF16", "b1": "BF16", "u": "U16", "f4": "F8_E4M3", "f5": "F8_E5M2"}
for name, dtype in MIXED.items():
    size = 1 if dtype[0] == "F" else 2
    tensors = {"x": (24, 10, 10), "tall": (24, 4 + (name == "b1"), 2), "w": (24,)}
    data = {key: numbers(f"u{size}", *shape) for key, shape in tensors.items()}
    MIXED[name] = data
    write(f"mixed/{name}.safetensors", saved(other={key: (dtype, shape) for key, shape in tensors.items()},
                                             label=np.arange(24), **data))
with mounted(f"{SOURCE}/mixed", "mix=bb=b0*1+b1*1", "mix=bu=b0*1+u*1", "mix=ff=f4*1+f5*1"):
    types = {field["name"]: field.get("stored_as") for field in described("bb")["fields"]}
    equal({name: types[name] for name in ("x", "w", "tall", "label")},
          {"x": "BF16", "w": "BF16", "tall": "BF16", "label": None}, "types of a mix")
    with np.load(path("bb/batches/batch=4/npz/000000.npz")) as batch:
        for i, (source, k) in enumerate(zip(batch["source"], batch["index"])):
            equal(batch["x"][i].tolist(), MIXED[f"b{source}"]["x"][k].tolist(), "mixed")
    contains(text(path("bu/ERROR.txt")), "'x' as BF16 (10, 10) in b0, and as uint16 (10, 10) in u")
    contains(text(path("ff/ERROR.txt")), "'x' as F8_E4M3 (10, 10) in f4, and as F8_E5M2 (10, 10) in f5")
    for name, plan in (("b0", "batch=4,draw=8:w,seed=1"), ("f4", "batch=4,draw=8:w,seed=1")):
        equal(os.path.exists(path(f"{name}/batches/{plan}/epoch=0")), False, plan)
        contains(status()["last_refused_name"], "field w: expected a number in each sample", "only the bits are shown")
    for name in "b0", "f4":
        for encoding in "png", "cls":
            equal(os.path.exists(path(name, "samples", encoding)), False, f"{encoding} of {name}")
        files = os.listdir(path(name, "samples/npy"))
        equal([f for f in files if f.endswith(".w.cls")], [], name)
contains(run("info", f"{SOURCE}/mixed/b0.safetensors"), "uint16 (the bits of BF16)")

if os.path.isdir(REAL):
    with open(f"{REAL}/jfk-codes.safetensors", "rb") as f:
        codes = np.frombuffer(f.read(), "<i8", offset=80).reshape(1, 2, 828)
    with mounted(REAL):
        check("jfk-codes", {"data": codes})
