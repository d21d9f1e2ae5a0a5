"""Batches for XGBoost's external memory: data that do not fit into memory.

    data = xgboost.DMatrix(epochfs.xgboost.Batches(mount["train.txt"], "batch=100000", cache_prefix="/tmp/cache"))
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import xgboost

from ._batches import csr
from ._mount import Dataset
from .sklearn import check_numbers, is_sparse


class Batches(xgboost.DataIter):
    """A DataIter of the batches of a plan: matrices as in `epochfs.sklearn.rows()`, with their labels, and the fields
    `weight`, `qid` and `base_margin` where the dataset has them. Rows that have a qid come by whole queries, with one weight
    for each, as XGBoost's ranking takes them; so a plan that shuffles them raises ValueError.

    XGBoost makes several passes, and each one has the same batches in the same order: `epoch` is one epoch of the plan.
    cache_prefix: begins the names of the files in which XGBoost keeps its pages; a DMatrix needs it.
    Raises out of DMatrix what `Dataset.batches()` and `Batches.read()` of epochfs raise."""

    def __init__(self, dataset: Dataset, plan: str, *, epoch: int = 0, x: str = "x", y: str = "label",
                 cache_prefix: str | None = None) -> None:
        super().__init__(cache_prefix=cache_prefix)  # first: its __del__() needs it
        self._x, self._y = x, y
        self._sparse = is_sparse(dataset, x)
        self._also = [name for name in ("weight", "qid", "base_margin") if name in dataset.fields and name != y]
        check_numbers(dataset, x, y, *self._also)
        self._batches = dataset.batches(plan, epoch=epoch, fields=None if self._sparse else [x, y, *self._also])
        self._dataset = dataset
        self._next = 0
        self._held: dict[str, Any] | None = None  # rows of a query that may go on

    def next(self, input_data: Callable[..., Any]) -> int:
        """For XGBoost: one more batch, 1, or the end, 0."""
        rows = self._whole_queries() if "qid" in self._also else self._read()
        if rows is None:
            return 0
        input_data(**rows)
        return 1

    def reset(self) -> None:
        """For XGBoost: begin again."""
        self._next = 0
        self._held = None

    def _read(self) -> dict[str, Any] | None:
        """The next batch, as arguments of XGBoost; None: there is none."""
        if self._next == self._batches.count:
            return None
        batch = self._batches.read(self._next)
        self._next += 1
        x = csr(batch) if self._sparse else batch[self._x].reshape(len(batch[self._x]), -1)
        return {"data": x, "label": batch[self._y], **{name: batch[name] for name in self._also}}

    def _whole_queries(self) -> dict[str, Any] | None:
        """The next rows up to the end of a query, with one weight for each query, as XGBoost wants them: it takes a query that
        goes on in the next batch for two."""
        rows, self._held = self._held, None
        while (more := self._read()) is not None:
            rows = more if rows is None else {name: _joined(rows[name], more[name]) for name in rows}
            qid = rows["qid"]
            if (qid[1:] < qid[:-1]).any():
                raise ValueError(f"qid: XGBoost needs the rows of a query one after another, by rising numbers; take a plan without "
                                 f"seed=, in {self._dataset.path}")
            last = int(np.searchsorted(qid, qid[-1])) if len(qid) else 0
            if last and self._next < self._batches.count:
                self._held = {name: array[last:] for name, array in rows.items()}
                return self._of_queries({name: array[:last] for name, array in rows.items()})
        return None if rows is None else self._of_queries(rows)

    def _of_queries(self, rows: dict[str, Any]) -> dict[str, Any]:
        """The rows with one weight for each query."""
        if "weight" not in rows:
            return rows
        qid, weight = rows["qid"], rows["weight"]
        _, starts, query = np.unique(qid, return_index=True, return_inverse=True)
        differs = np.flatnonzero(weight != weight[starts][query])
        if differs.size:
            raise ValueError(f"weight: rows of query {qid[differs[0]]} have different weights, and XGBoost takes one for each query, "
                             f"in {self._dataset.path}")
        return {**rows, "weight": weight[starts]}


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, np.ndarray):
        return np.concatenate([one, other])
    import scipy.sparse

    return scipy.sparse.vstack([one, other], format="csr")
