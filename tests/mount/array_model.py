"""What the cases of arrays share: headers of .npy as numpy would not write them, and datasets compared
with the arrays that they were made from."""

import io
import json
import struct

import numpy as np

from lib import content, equal, path, text


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def header(descr, fortran, shape, data=b"", version=(1, 0)):
    """A .npy whose header has just these texts."""
    return raw_header(f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}", data, version)


def raw_header(words, data=b"", version=(1, 0)):
    words = words if isinstance(words, bytes) else words.encode()
    length = struct.pack("<H" if version[0] == 1 else "<I", len(words))
    return b"\x93NUMPY" + bytes(version) + length + words + data


def error(*name):
    return text(path(*name), "ERROR.txt")


def described(*name):
    return json.loads(text(path(*name), "dataset.json"))


def little(array):
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))


def check(at, fields, batch=7, seed=3):
    """The dataset at that folder of the mount has these fields, in every way of showing them."""
    n = len(next(iter(fields.values())))
    equal(described(at)["samples"], n, at)
    plan = path(at, f"batches/batch={batch},seed={seed}/epoch=1")
    seen = []
    for b in range((n + batch - 1) // batch):
        with np.load(f"{plan}/npz/{b:06d}.npz") as archive:
            index = archive["index"]
            seen += list(index)
            for name, want in fields.items():
                got = archive[name]
                equal(got.dtype, little(want[:0]).dtype, f"{at} {name}: type")
                equal(got.shape, (len(index), *want.shape[1:]), f"{at} {name}: shape")
                equal(got.tobytes(), little(want[index]).tobytes(), f"{at} {name}, batch {b}")
                equal(np.load(f"{plan}/npy/{b:06d}.{name}.npy").tobytes(), got.tobytes(), f"{at} {name}: npy")
                equal(content(f"{plan}/raw/{b:06d}.{name}.raw"), np.ascontiguousarray(want[index]).tobytes(),
                      f"{at} {name}: raw")
    equal(sorted(seen), list(range(n)), f"{at}: samples")
    for k in {0, n // 2, n - 1} if n else ():
        for name, want in fields.items():
            got = np.load(path(at, f"samples/npy/{k:06d}.{name}.npy"))
            equal((got.shape, got.tobytes()), (want.shape[1:], little(want[k:k + 1]).tobytes()), f"{at} {name} {k}")
