"""The samples of a batch, read from its .npz as any program would: which they are, and a digest of what each one holds.

A sample's digest is a chain over the members of the batch, in their
order in the archive, which begins with 32 zero bytes; of no bytes nothing is added:

    digest = SHA-256(digest before | name of the member | 0 | number of bytes | bytes)

So it does not depend on the neighbours of the sample, nor on how wide they make a column of text.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Collection

import numpy as np

from ._read import read_npz

MOUNT, AUDIT = 3, 5  # exit codes of epochfs
LENGTH_MOST = 2 ** 32 - 1


class Failed(Exception):
    """The audit ends with an exit code and a sentence."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def bad(text: str) -> Failed:
    """The files are not what a mount writes."""
    return Failed(AUDIT, text)


def failed(error: OSError, path: str) -> Failed:
    """A file cannot be read."""
    return Failed(MOUNT, f"{path}: {error.strerror}")


def column(arrays: dict[str, np.ndarray], name: str, n: int, path: str) -> np.ndarray:
    """One number for each of n."""
    array = arrays[name]
    if array.dtype.kind not in "biuf" or array.dtype.str[0] == ">" or array.shape != (n,):
        raise bad(f"{path}: {name}: expected one little-endian number for each of {n}")
    return array


def is_frame(names: Collection[str], name: str) -> bool:
    """Does a member say something of the whole batch, or where samples begin, and their shapes?"""
    def _describes(suffix: str, other: str) -> bool:
        start = name[:-len(suffix)]
        return name.endswith(suffix) and start in names and start + other in names

    return (name in ("index", "source") or ("indptr" in names and name in ("indptr", "format", "shape"))
            or _describes("_offsets", "") or _describes("_shape", "_offsets"))


def bounds_of(arrays: dict[str, np.ndarray], name: str, n: int, path: str) -> np.ndarray:
    """Where the samples of a member begin, in bytes, and where the last one ends: [n + 1]."""
    array = arrays[name]
    other = f"{name}_offsets" if f"{name}_offsets" in arrays else "indptr" if name in ("data", "indices") else ""
    if other not in arrays:
        is_text = array.dtype.kind in "SU"
        if not (is_text or array.shape[:1] == (n,)) or array.nbytes % n:
            raise bad(f"{path}: {name}: expected an array whose first axis has {n} samples")
        return np.arange(n + 1) * (array.nbytes // n)
    bounds = column(arrays, other, n + 1, path)
    if bounds[0] or (bounds[1:] < bounds[:-1]).any():
        raise bad(f"{path}: {other}: expected offsets that grow from 0")
    last = int(bounds[n])
    each = array.nbytes // last if last else 0
    if array.nbytes != each * last:
        raise bad(f"{path}: {name}: expected {last} elements, as its offsets say")
    return bounds.astype(np.int64) * each


def longest_of(arrays: dict[str, np.ndarray], how: str) -> int:
    """The length of the longest sample, counted as batch=HOW:N says; 0: not known."""
    n = len(arrays["index"])
    words = [f"{name}_offsets" for name in ("feats", "data") if how == "frames"]
    words += ["indptr"] if how == "rows" else []
    words += ["indices_offsets" if how == "rows" else f"{how}_offsets", how]
    for name in words:
        are_bounds = name == "indptr" or (name.endswith("_offsets") and name != how)
        array = arrays.get(name)
        # Offsets count elements where arrays differ in several axes.
        if array is None or array.dtype.kind not in "biuf" or array.shape != (n + are_bounds,) or \
                (are_bounds and f"{name[:-len('_offsets')]}_shape" in arrays):
            continue
        lengths = np.diff(array.astype(float)) if are_bounds else array.astype(float)
        return int(np.clip(np.nan_to_num(lengths), 1, LENGTH_MOST).max(initial=0))  # as in an index of lengths
    return 0


class Batch:
    """What a batch has of its samples, of the file of a mount, which is not trusted. With a plan of unit=FIELD its units take the
    place of samples: each has the number of its first sample, and the digest of what all have."""

    def __init__(self, path: str, field: str | None, members: Collection[str] | None, unit: str) -> None:
        arrays = self.arrays = read_npz(path)
        offsets = "unit_offsets" if "unit_offsets" in arrays else f"{unit}_offsets"
        starts = arrays.pop(offsets, np.empty(0)) if unit else None
        index = arrays.get("index")
        if index is None:
            raise bad(f"{path}: expected a member index.npy, got none")
        if index.dtype != np.dtype("<i8") or index.ndim != 1:
            raise bad(f"{path}: index.npy: expected int64 numbers along one axis")
        n = self.n = len(index)
        self.number = index.view(np.uint64)
        self.source = column(arrays, "source", n, path).astype(np.int64) if "source" in arrays and n else np.zeros(n, np.int64)
        if field is not None and n and field not in arrays:
            raise Failed(MOUNT, f"{path}: expected a member {field}.npy, got none")
        self.value = column(arrays, field, n, path).astype(float) if field is not None and n else np.zeros(n)
        self.digest = [bytes(32)] * n
        for name in arrays if n else ():
            if not is_frame(arrays, name) and (members is None or name in members):
                self._add(name, path)
        self.longest = 0  # unit
        if starts is not None:
            self._join(starts, arrays.get(unit), f"{path}: {offsets}")

    def _join(self, starts: np.ndarray, of_sample: np.ndarray | None, where: str) -> None:
        """Make units of the samples."""
        if starts.dtype != np.dtype("<i8") or starts.ndim != 1 or starts[:1].tolist() != [0] or starts[-1] != self.n or \
                (np.diff(starts) <= 0).any():
            raise bad(f"{where}: expected where units begin, from 0 to {self.n}")
        first, numbers = starts[:-1], self.number.tolist()
        if of_sample is None or len(of_sample) != self.n:
            raise bad(f"{where}: expected a value of each sample that makes it one of a unit")
        same = of_sample[1:] == of_sample[:-1]
        inside = np.ones(max(self.n - 1, 0), bool)
        inside[first[1:] - 1] = False
        if not same[inside].all() or (same & ~inside & (np.diff(self.number) == 1)).any():
            raise bad(f"{where}: expected units that are whole runs of a value")
        self.digest = [hashlib.sha256(b"".join(numbers[i].to_bytes(8, "little") + self.digest[i] for i in range(a, b))).digest()
                       for a, b in zip(starts.tolist(), starts[1:].tolist())]
        self.n, self.number, self.value, self.source = len(first), self.number[first], self.value[first], self.source[first]
        self.longest = int(np.diff(starts).max(initial=0))

    def digests(self) -> np.ndarray:
        """Those of all samples: [n, 32]."""
        return np.frombuffer(b"".join(self.digest), np.uint8).reshape(-1, 32)

    def _add(self, name: str, path: str) -> None:
        """Continue the digests of all samples with what a member has of them."""
        array, sha256 = self.arrays[name], hashlib.sha256
        bounds = bounds_of(self.arrays, name, self.n, path).tolist()
        data = array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")
        head, is_text = os.fsencode(name) + b"\0", array.dtype.kind in "SU"
        for i in range(self.n):
            piece: Any = data[bounds[i]:bounds[i + 1]]
            if is_text:
                piece = bytes(piece).rstrip(b"\0")
            if len(piece):
                state = sha256(self.digest[i] + head + len(piece).to_bytes(8, "little"))
                state.update(piece)
                self.digest[i] = state.digest()
