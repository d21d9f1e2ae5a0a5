#!/usr/bin/python3
"""Arrays of one field that differ along any axis, in a batch: equal shapes stack, others pad along each axis that
differs, with their shapes; npz has them flat, with offsets and shapes. Against numpy, from tar shards, from a folder
of files, and from two shards that differ; small batches, all at once, and read in pieces."""

import io
import json
import os
import tarfile

import numpy as np

from lib import PRIVATE, SOURCE, content, equal, mounted, path, run, write

rng = np.random.default_rng(11)
N = 96
# Each field: its type, and the shape of sample i.
FIELDS = {
    "same": ("<f4", lambda i: (3, 2)),
    "rows": ("<i2", lambda i: (i % 5, 4)),
    "wide": ("<f8", lambda i: (2, 1 + i % 7)),
    "both": ("<i4", lambda i: (i % 4, 3 + i // 32)),  # the second axis is the same in samples 0..31, ...
    "deep": ("|u1", lambda i: (1 + i % 3, 2, 1 + i % 2, 5 - i % 4)),
    "empty": ("<i8", lambda i: (2, i % 3)),
    "odd": (">i4", lambda i: (1 + i % 2, 2 + i % 3)),
    "holes": ("<f4", lambda i: (1 + i % 3, 1 + i % 4)),
}


def value(name, i):
    dtype, shape = FIELDS[name]
    a = rng.integers(1, 100, shape(i)).astype(dtype)
    return np.asfortranarray(a) if name == "odd" and i % 5 == 0 else a


SAMPLES = [{name: value(name, i) for name in FIELDS if name != "holes" or i % 3} for i in range(N)]


def npy(a):
    out = io.BytesIO()
    np.save(out, a)
    return out.getvalue()


def shard(name, samples):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with tarfile.open(name, "w") as tar:
        for i in samples:
            for field, a in SAMPLES[i].items():
                data = npy(a)
                info = tarfile.TarInfo(f"{i:03d}.{field}.npy")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def load(*parts):
    return np.load(io.BytesIO(content(*parts)))


def same(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), f"{what}: form")
    equal(got.tobytes(), want.tobytes(), what)


def model(name, chosen):
    """The members of npz, and the files of npy, by numpy."""
    dtype = np.dtype(FIELDS[name][0]).newbyteorder("<")
    rank = len(FIELDS[name][1](0))
    arrays = [SAMPLES[i].get(name, np.zeros((0,) * rank, dtype)).astype(dtype) for i in chosen]
    shapes = np.array([a.shape for a in arrays], np.int64).reshape(len(arrays), rank)
    with_rows = [a for a in arrays if a.shape[0]]
    most = shapes.max(axis=0)
    if name == "same":
        return {name: np.stack(arrays)}, {name: np.stack(arrays)}
    if len({a.shape[1:] for a in with_rows}) > 1:
        padded = np.zeros((len(arrays), *most), dtype)
        for k, a in enumerate(arrays):
            padded[(k, *map(slice, a.shape))] = a
        flat = np.concatenate([a.ravel() for a in arrays])
        offsets = np.cumsum([0, *(a.size for a in arrays)]).astype(np.int64)
        return ({name: flat, f"{name}_offsets": offsets, f"{name}_shape": shapes},
                {name: padded, f"{name}_len": shapes})
    tail = with_rows[0].shape[1:] if with_rows else tuple(most[1:])
    padded = np.zeros((len(arrays), most[0], *tail), dtype)
    for k, a in enumerate(arrays):
        padded[k, :len(a)] = a.reshape(len(a), *tail) if len(a) else 0
    offsets = np.cumsum([0, *(len(a) for a in arrays)]).astype(np.int64)
    return ({name: np.concatenate([a for a in arrays if len(a)]) if with_rows else np.zeros((0, *tail), dtype),
             f"{name}_offsets": offsets}, {name: padded, f"{name}_len": shapes[:, 0]})


def check_batch(root, plan, i, order):
    npz = load(root, plan, f"npz/{i:06}.npz")
    chosen = [order[k] for k in npz["index"].tolist()]
    want = {"index", "key"}
    for name in FIELDS:
        arrays, files = model(name, chosen)
        want |= set(arrays)
        for member, a in arrays.items():
            same(npz[member], a, f"{plan} {i} npz {member}")
        for file, a in files.items():
            same(load(root, plan, f"npy/{i:06}.{file}.npy"), a, f"{plan} {i} npy {file}")
    equal(set(npz.files) - {"jpg", "jpg_offsets"}, want, f"{plan} {i}: members")
    return chosen


def check_pieces(file):
    """Bytes of a file in pieces of odd sizes are those of the whole."""
    with open(file, "rb") as f:
        whole = f.read()
    fd = os.open(file, os.O_RDONLY)
    for size in (1, 7, 100, 4099):
        for at in sorted({0, 3, 128, 129, len(whole) // 2, len(whole) - size, *rng.integers(0, len(whole), 20).tolist()}):
            if at >= 0:
                equal(os.pread(fd, size, at), whole[at:at + size], f"{file}: {size} at {at}")
    os.close(fd)


def check(root, order):
    seen = []
    for plan, n in ("batches/batch=8,seed=2/epoch=1", 12), ("batches/batch=32", 3), ("batches/batch=all", 1), \
                   ("batches/batch=1,seed=1/epoch=0", 3):
        for i in range(n):
            seen += check_batch(root, plan, i, order)
    equal(sorted(seen[:N]), order, "samples of an epoch")
    for name in "deep", "wide", "odd":
        for member in f"npy/000000.{name}.npy", f"npy/000000.{name}_len.npy":
            check_pieces(f"{root}/batches/batch=all/{member}")
    check_pieces(f"{root}/batches/batch=all/npz/000000.npz")
    for i in 0, 5, 95:
        key = f"{order[i]:03d}"
        for name, a in SAMPLES[order[i]].items():
            same(load(root, f"samples/npy/{key}.{name}.npy"), np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")),
                 f"sample {key} {name}")
        equal([m for m in load(root, f"samples/npz/{key}.npz").files if m.endswith("_shape")], [], "shapes of a sample")


numbers = list(range(N))
shard(f"{SOURCE}/tar/x.tar", numbers)
shard(f"{SOURCE}/two/a.tar", numbers[:50])
shard(f"{SOURCE}/two/b.tar", numbers[50:])
for i, sample in enumerate(SAMPLES):
    write(f"{SOURCE}/files/{i:03d}.jpg", b"\xff\xd8\xff\xe0" + b"%d" % i)
    for field, a in sample.items():
        write(f"{SOURCE}/files/{i:03d}.{field}.npy", npy(a))
for turn in range(2):  # indexes are made, then kept
    with mounted(SOURCE, f"cache={PRIVATE}/cache"):
        check(path("tar/x.tar"), numbers)
        check(path("files"), numbers)
        check(path("two/all"), numbers)
        about = json.loads(content(path("files", "dataset.json")))
        equal(about["samples"], N, "samples")
equal("cannot be one array" in run("info", SOURCE), False, "info")
