"""Batches for scikit-learn's partial_fit, and for other programs that need rows and labels.

    for x, y in epochfs.sklearn.rows(mount["train"], "batch=1000,seed=7", epoch=0, x="image"):
        model.partial_fit(x, y, classes=range(10))
"""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ._batches import csr
from ._mount import Dataset


def rows(dataset: Dataset, plan: str, *, epoch: int = 0, start: int = 0, x: str = "x",
         y: str = "label") -> Iterator[tuple[Any, np.ndarray]]:
    """The batches of a plan as (X, y), beginning at batch number start of the epoch.

    X: the field x as a matrix, (samples, numbers per sample), without a copy. For libsvm and LibFM text, X has the rows as
    scipy.sparse.csr_matrix, (samples, features). y: the field y, (samples,) or (samples, columns).
    Raises KeyError for missing fields, ValueError for a field whose shape differs from sample to sample, and what
    `Dataset.batches()` and `Batches.read()` raise."""
    sparse = is_sparse(dataset, x)
    check_numbers(dataset, x, y)
    for batch in dataset.batches(plan, epoch=epoch, start=start, fields=None if sparse else [x, y]):
        yield (csr(batch) if sparse else batch[x].reshape(len(batch[x]), -1)), batch[y]


def check_numbers(dataset: Dataset, *names: str) -> None:
    """Raises ValueError for a field that has the bits of a type that numpy lacks."""
    for name in names:
        stored_as = dataset.fields[name].stored_as if name in dataset.fields else None
        if stored_as:
            raise ValueError(f"{name}: holds {stored_as}, of which numpy has no type, in {dataset.path}; "
                             f"convert it to float32{', or read it with epochfs.torch' * (stored_as == 'BF16')}")


def is_sparse(dataset: Dataset, x: str) -> bool:
    """Is the field x derived from sparse rows, which npz files store? Raises ValueError if samples are not rows."""
    if x in dataset.fields and None in dataset.fields[x].shape:
        raise ValueError(f"{x}: its shape differs from sample to sample, so a batch is no matrix, in {dataset.path}")
    return x == "x" and "nonzeros" in dataset.info
