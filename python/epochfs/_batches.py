"""The batches of one epoch, and the arrays of a sparse one."""

from __future__ import annotations

import errno
import operator
import os
import re
from typing import TYPE_CHECKING, Any, Collection, Iterator

import numpy as np

from . import _plan
from .errors import DeadMountError, Error, PlanError, explain
from ._read import Allocate, read_npy, read_npz

if TYPE_CHECKING:
    from ._mount import Dataset

NUMBERS = ("index", "source", "key")  # which samples a batch has: derived, but also in archives; only mixes have source
OF_ARCHIVES = ("npz", "csc", "csc_value")  # encodings with all arrays of a batch in one file
PARTS = ("_offsets", "_shape", "_len")  # names of arrays that go with a field whose samples differ in shape
NAME = re.compile(r"([0-9]+)\.(?:(.+)\.npy|npz)")


class Batches:
    """The batches of a plan in one epoch, from number `start` on: `Dataset.batches()` makes it.

    Iterate over it as often as you like; `len()` is the number of batches that come. Each batch is a dict of arrays with their
    own memory. An epoch that ends early raises: see `read()`.
    """

    def __init__(self, dataset: Dataset, plan: str, epoch: int = 0, start: int = 0,
                 fields: Collection[str] | None = None, encoding: str = "npz", memory: Allocate = np.empty) -> None:
        self.fields = names_of(fields)
        for name in self.fields or ():
            if encoding == "npz" and name not in NUMBERS and name in dataset.fields and dataset.fields[name].derived:
                raise KeyError(f"{name}: a derived field, which encoding='npy' has")
        if encoding not in ("npy",) + OF_ARCHIVES:
            raise ValueError(f"encoding: expected npz, npy, csc or csc_value, got {encoding!r}")
        self.dataset = dataset
        self.plan = plan
        self.epoch = _plan.number("epoch", epoch, _plan.EPOCH_MAX)
        self.encoding = encoding
        self._parts = tuple(name + part for name in self.fields or () for part in PARTS if name + part not in dataset.fields)
        self._memory = memory
        self._folder = os.path.join(dataset.path, "batches", _plan.folder(plan, epoch), encoding)
        self._listed: tuple[int, int, tuple[str, ...]] | None = None
        self.start = _plan.number("start", start, self.count)

    def __repr__(self) -> str:
        return f"<epochfs.Batches {self._folder} from {self.start}>"

    @property
    def count(self) -> int:
        """Batches of the whole epoch."""
        return self._list()[0]

    def __len__(self) -> int:
        return self.count - self.start

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        for k in range(self.start, self.count):
            yield self.read(k)

    def read(self, k: int) -> dict[str, np.ndarray]:
        """Batch k of the epoch, 0 <= k < count, as arrays by their names.

        npz: each field has the shape (samples, *shape of the field). `index` (samples,) int64 and `key` (samples,) bytes say
        which samples they are. If samples differ in shape, they follow one another, with `<field>_offsets`. If they differ along
        several axes, they are flat, with `<field>_shape`.
        Rows of libsvm text are `data`, `indices`, `indptr` and `shape`: see `csr()`.
        npy: as npz, but fields of different lengths are padded, with `<field>_len`, and sparse rows are dense.

        If fields is given, the batch has only these, with their `<field>_offsets`, `_shape` or `_len`.

        Raises IndexError, DeadMountError, StaleSourceError, BadBatchError, KeyError for a missing field, and Error with the
        mount's reason for what the mount cannot read.
        """
        count, width, names = self._list()
        k = operator.index(k)
        if not 0 <= k < count:
            raise IndexError(f"batch {k} of {count}")
        stem = os.path.join(self._folder, f"{k:0{width}d}")
        if self.encoding in OF_ARCHIVES:
            return self.dataset.mount.read(read_npz, f"{stem}.npz", self.fields, self._memory, self._parts)
        return {name: self.dataset.mount.read(read_npy, f"{stem}.{name}.npy", self._memory) for name in names}

    def _list(self) -> tuple[int, int, tuple[str, ...]]:
        """The number of batches, digits of their names, and the fields of npy to read."""
        if self._listed is None:
            last, width, files = self._scan()
            self._look_behind(last, width)
            if last < 0:
                raise PlanError(None, f"the plan {self.plan!r} has no batches, or none in {self.encoding}", self._folder)
            wanted = files if self.fields is None else (*self.fields, *(name for name in self._parts if name in files))
            names = [""] if self.encoding in OF_ARCHIVES else wanted
            for name in names:
                if name not in files:
                    raise KeyError(f"{name}: expected one of {', '.join(files)}, in {self._folder}")
                if files.get(name, 0) != last + 1:
                    raise self._refused(Error(None, f"has {files[name]} batches, and {last} is the last", self._folder))
            self._listed = last + 1, width, tuple(names)
        return self._listed

    def _scan(self) -> tuple[int, int, dict[str, int]]:
        """The number of the last batch of the folder's listing, digits of the names, and how many files each field has."""
        last, width = -1, 6
        files: dict[str, int] = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    match = NAME.fullmatch(entry.name)
                    if match:
                        last, width = max(last, int(match[1])), len(match[1])
                        files[match[2] or ""] = files.get(match[2] or "", 0) + 1
        except OSError as e:
            error = explain(e, self.dataset.mount.path, self._folder)
            raise (self._refused(error) if type(error) is Error else error) from e
        return last, width, files

    def _look_behind(self, last: int, width: int) -> None:
        """The listing omits a batch whose samples cannot be one array, such as the last one: looking at it raises the reason."""
        name = os.path.join(self._folder, f"{last + 1:0{width}d}.npz")
        try:
            if self.encoding in OF_ARCHIVES:
                os.stat(name)
        except OSError as e:
            if e.errno != errno.ENOENT:
                raise explain(e, self.dataset.mount.path, name) from e

    def _refused(self, error: Error) -> Error:
        """The mount's reason why a plan, an epoch or a batch does not exist: the reason for this name, or for the last rejected one."""
        folder = os.path.join(self.dataset.path, "batches")
        for name in _plan.folder(self.plan, self.epoch).split("/"):
            try:
                why = os.getxattr(folder, f"user.epochfs.why.{name}").decode(errors="replace")
                return PlanError(error.errno, f"the plan {self.plan!r} does not open: {why}", self._folder)
            except OSError:
                folder = os.path.join(folder, name)
        try:
            now = self.dataset.mount.status()
        except DeadMountError as e:
            return e
        except Error:
            return error
        refused, _, reason = str(now.get("last_refused_name", "")).partition(": ")
        refused = os.path.join(self.dataset.mount.path, refused) + "/"
        if reason and (f"{self._folder}/".startswith(refused) or refused.startswith(f"{self._folder}/")):
            return PlanError(error.errno, f"the plan {self.plan!r} does not open: {reason}", self._folder)
        if error.errno == errno.ENOENT and os.path.isdir(os.path.dirname(self._folder)):
            return Error(error.errno, f"the dataset has no batches in {self.encoding}", self._folder)
        return error


def names_of(fields: Collection[str] | None) -> tuple[str, ...] | None:
    """The option fields, checked."""
    if fields is None:
        return None
    found = () if isinstance(fields, (str, bytes)) else tuple(fields)
    if isinstance(fields, (str, bytes)) or not all(isinstance(name, str) for name in found):
        raise TypeError(f"fields: expected a list of names, got {fields!r}")
    return found


def csr(batch: dict[str, np.ndarray]) -> Any:
    """The rows of a sparse batch (libsvm, LibFM) as a scipy.sparse.csr_matrix, (samples, features), without a copy.

    Raises KeyError if the batch has no sparse rows, ValueError if it has columns (of encoding csc), and ImportError without
    scipy."""
    import scipy.sparse

    for name in ("data", "indices", "indptr", "format", "shape"):
        if name not in batch:
            raise KeyError(f"{name}: expected a batch of sparse rows, with all its fields, got {', '.join(batch)}")
    if batch["format"] != b"csr":
        raise ValueError(f"expected sparse rows, of encoding npz, got {batch['format'].item().decode()}; scipy.sparse.csc_matrix "
                         f"takes the same arrays")
    shape = tuple(int(n) for n in batch["shape"])
    return scipy.sparse.csr_matrix((batch["data"], batch["indices"], batch["indptr"]), shape=shape, copy=False)
