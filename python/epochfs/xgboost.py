"""Batches for XGBoost's external memory, for data that do not fit into memory.

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
    """A DataIter of the batches of a plan. It gives matrices and labels as `epochfs.sklearn.rows()` does, and the fields
    `weight`, `qid` and `base_margin` where the dataset has them.

    Rows with a qid need a plan with `unit=qid`, whose batches have whole queries, in any order. XGBoost gets their sizes, and
    one weight per query. Another plan raises ValueError.

    XGBoost makes several passes. All have the same batches in the same order: those of the epoch `epoch`.
    cache_prefix: the beginning of the names of XGBoost's page files; a DMatrix needs it.
    Raises out of DMatrix what `Dataset.batches()` and `Batches.read()` of epochfs raise."""

    def __init__(self, dataset: Dataset, plan: str, *, epoch: int = 0, x: str = "x", y: str = "label",
                 cache_prefix: str | None = None) -> None:
        super().__init__(cache_prefix=cache_prefix)  # first: its __del__() needs it
        self._x, self._y = x, y
        self._sparse = is_sparse(dataset, x)
        self._also = [name for name in ("weight", "qid", "base_margin") if name in dataset.fields and name != y]
        check_numbers(dataset, x, y, *self._also)
        if "qid" in self._also and "unit=qid" not in plan.split(","):
            raise ValueError(f"qid: XGBoost needs whole queries, which a batch of {plan!r} may cut; add unit=qid, in {dataset.path}")
        fields = [x, y, *self._also, *(["index"] if "qid" in self._also else [])]
        self._batches = dataset.batches(plan, epoch=epoch, fields=None if self._sparse else fields)
        self._dataset = dataset
        self._next = 0

    def next(self, input_data: Callable[..., Any]) -> int:
        """For XGBoost: one more batch, 1, or the end, 0."""
        if self._next == self._batches.count:
            return 0
        batch = self._batches.read(self._next)
        self._next += 1
        x = csr(batch) if self._sparse else batch[self._x].reshape(len(batch[self._x]), -1)
        rows = {"data": x, "label": batch[self._y], **{name: batch[name] for name in self._also}}
        input_data(**(self._of_queries(rows, batch) if "qid" in rows else rows))
        return 1

    def reset(self) -> None:
        """For XGBoost: begin again."""
        self._next = 0

    def _of_queries(self, rows: dict[str, Any], batch: Any) -> dict[str, Any]:
        """The rows with the sizes of their queries, and one weight for each."""
        qid = rows.pop("qid")
        if "qid_offsets" in batch:
            starts = batch["qid_offsets"]
        else:
            begins = np.ones(len(qid) + 1, bool)  # of a query, and the end; draw= may select a query twice, so neighbours may have the same qid
            begins[1:-1] = (qid[1:] != qid[:-1]) | (np.diff(batch["index"]) != 1)
            starts = np.flatnonzero(begins)
        sizes, starts = np.diff(starts), starts[:-1]
        rows["group"] = sizes
        if "weight" in rows:
            weight = rows["weight"]
            differs = np.flatnonzero(weight != np.repeat(weight[starts], sizes))
            if differs.size:
                raise ValueError(f"weight: rows of query {qid[differs[0]]} have different weights, and XGBoost takes one for each query, "
                                 f"in {self._dataset.path}")
            rows["weight"] = weight[starts]
        return rows
