#!/usr/bin/python3
"""The encoding tfrecord: of samples and of batches, against npz and against records written by protobuf's rules."""

import os
import random
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import tfrecord_model as model  # noqa: E402
from lib import *  # noqa: E402

rng = np.random.default_rng(3)


def file(dataset, name):
    return content(path(dataset, name))


def features(record):
    return {name.decode(): value for name, value in model.read_example(record)[0].items()}


def message(values):
    """An Example as deterministic writers have it: features sorted by the bytes of their names."""
    return model.example(**dict(sorted(values.items(), key=lambda item: item[0].encode())))


# Each kind of feature, and the bytes of each
SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "sequences/tfrecord/expected.tfrecord")
rows = [{"label": model.integers(k - 2), "x": model.floats(*rng.integers(-9, 9, 6) / 4), "größe": model.floats(0.5),
         "jpg": model.strings(b"\xff\xd8\xff" + rng.bytes(k + 3)), "tokens": model.integers(*range(k * 60, k * 61)) if k else
         model.field(3, b""), "big": model.integers(-1, 2**63 - 1, -2**63, 127, 128)} for k in range(300)]
write("t/a.tfrecord", b"".join(model.frame(model.example(**row)) for row in rows))
want = [model.frame(message({**row, "key": model.strings(b"%06d" % k), "index": model.integers(k)})) for k, row in enumerate(rows)]
if os.path.exists(SHARED):  # the features of that file but index and key, which epochfs adds again
    shared = [model.frame(model.field(1, b"".join(model.field(1, entry) for _, _, entry in model.parts(body)
                                                  if not entry[2:].startswith((b"index", b"key")))))
              for record in model.records(content(SHARED)) for _, _, body in model.parts(record)]
    write("t/shared.tfrecord", b"".join(shared))

# Arrays of other types, and what numpy has and TFRecord lacks
n = 40
arrays = {"f8": rng.random((n, 3)), "f2": rng.random(n).astype("f2"), "b": rng.random(n) < 0.5, "u1": rng.integers(0, 256, (n, 4), "u1"),
          "i2": rng.integers(-9, 9, (n, 2, 2)).astype("i2"), "picture": rng.integers(0, 256, (n, 2, 3), "u1"),
          "u8": np.full(n, 2**63 - 1, "u8")}
for name, values in (("good", arrays), ("large", {"u8": np.full(n, 2**63, "u8")}), ("complex", {"c": np.ones(n, "c8")})):
    os.makedirs(os.path.join(SOURCE, "n"), exist_ok=True)
    np.savez(os.path.join(SOURCE, "n", f"{name}.npz"), **values)

# Files and texts; arrays whose second axis differs
for k in range(5):
    write(f"f/a{k}.txt", f"text {k}".encode() * k)
    write(f"f/a{k}.jpg", b"\xff\xd8\xff\xe0" + bytes(k))
    np.save(os.path.join(SOURCE, f"f/a{k}.npy"), rng.random((2, k + 1)).astype("f4"))
write("s/x.svm", "".join(f"{k} {k + 1}:0.5 {k + 70}:{k}\n" for k in range(9)).encode())

with mounted(SOURCE, "mix=both=n/good:split=0@1:1*1+n/good:split=1@1:1*3"):
    for k in (0, 1, 299):
        equal(file("t/a.tfrecord", f"samples/tfrecord/{k:06d}.tfrecord"), want[k], f"sample {k}")
    batch = path("t/a.tfrecord", "batches/batch=200,seed=4/epoch=2")
    whole = content(f"{batch}/tfrecord/000000.tfrecord")
    equal(whole, b"".join(want[k] for k in np.load(f"{batch}/npy/000000.index.npy")), "a batch")
    with open(f"{batch}/tfrecord/000001.tfrecord", "rb", buffering=0) as f:
        rest = f.read(1 << 20)
        for _ in range(50):
            at, size = random.randrange(len(rest)), random.randrange(5000)
            equal(os.pread(f.fileno(), size, at), rest[at:at + size], "a range")
    if os.path.exists(SHARED):
        equal(file("t/shared.tfrecord", "batches/batch=5/tfrecord/000000.tfrecord"), content(SHARED), "protobuf's bytes")

    found = [features(record) for record in model.records(file("n/good", "batches/batch=all/tfrecord/000000.tfrecord"))]
    for k, row in enumerate(found):
        for name, values in arrays.items():
            value = values[k]
            if name == "picture":
                expected = ("bytes", [value.tobytes()])
            elif value.dtype.kind == "f":
                expected = ("float", np.ravel(value).astype("f4").tolist())
            else:
                expected = ("int64", np.ravel(value).astype("i8").tolist())
            equal(row[name], expected, f"{name} of {k}")
    mixed = path("both/batches/batch=12,seed=1/epoch=0")
    found = [features(record) for record in model.records(content(f"{mixed}/tfrecord/000000.tfrecord"))]
    batch = np.load(f"{mixed}/npz/000000.npz")
    for name in "index", "source", "i2":
        equal([row[name] for row in found], [("int64", np.ravel(v).tolist()) for v in batch[name]], f"{name} of a mix")
    for name, words in (("large", "expected integers below 2^63"), ("complex", "expected real numbers, got complex ones")):
        contains(run("cat", SOURCE, f"n/{name}/batches/batch=3/tfrecord/000000.tfrecord", code=2), words)

    for k, record in enumerate(model.records(file("f", "batches/batch=5/tfrecord/000000.tfrecord"))):
        value = np.load(os.path.join(SOURCE, f"f/a{k}.npy"))
        equal(features(record),
              {"index": ("int64", [k]), "key": ("bytes", [b"a%d" % k]), "txt": ("bytes", [b"text %d" % k * k]),
               "jpg": ("bytes", [b"\xff\xd8\xff\xe0" + bytes(k)]), "npy": ("float", value.ravel().tolist()),
               "npy_shape": ("int64", list(value.shape))}, f"files of {k}")
    row = features(file("s/x.svm", "samples/tfrecord/000003.tfrecord")[12:-4])
    equal((row["indices"], row["data"], row["label"]), (("int64", [4, 73]), ("float", [0.5, 3.0]), ("float", [3.0])), "a sparse row")
