#!/usr/bin/python3
# needs: python3-sklearn python3-xgboost python3-scipy
"""epochfs.sklearn and epochfs.xgboost with the real libraries: dense arrays, and sparse rows without a copy."""

import os

import numpy as np

import epochfs
import tutorials
from lib import MOUNTPOINT, PRIVATE, SOURCE, contains, equal, small, start, stop

import scipy.sparse
import xgboost
from sklearn.linear_model import SGDClassifier

import epochfs.sklearn
import epochfs.xgboost

ROWS = 2000


def expect(kind, words, call):
    try:
        call()
    except kind as e:
        contains(str(e), words)
        return
    raise AssertionError(f"expected {kind.__name__} with {words}")


def dense(train, images, labels):
    seen = []
    for x, y in epochfs.sklearn.rows(train, "batch=16,seed=7", epoch=1, x="image"):
        equal((x.dtype, x.shape[1:], x.flags.owndata), (np.uint8, (30,), False), "rows of pictures, not copied")
        seen.append((x, y))
    order = np.concatenate([b["index"] for b in train.batches("batch=16,seed=7", epoch=1)])
    equal(np.concatenate([x for x, _ in seen]).tolist(), images[order].reshape(-1, 30).tolist(), "rows")
    equal(np.concatenate([y for _, y in seen]).tolist(), labels[order].tolist(), "labels")
    later = list(epochfs.sklearn.rows(train, "batch=16,seed=7", epoch=1, start=3, x="image"))
    equal(later[0][1].tolist(), seen[3][1].tolist(), "from batch 3 on")
    expect(KeyError, "x: expected one of image, label", lambda: next(epochfs.sklearn.rows(train, "batch=16")))


def sparse(rows):
    model = SGDClassifier(random_state=1)
    for epoch in range(3):
        for x, y in epochfs.sklearn.rows(rows, "batch=256,seed=7", epoch=epoch):
            equal((type(x), x.shape[1]), (scipy.sparse.csr_matrix, rows.info["num_col"]), "rows")
            model.partial_fit(x, y, classes=[0, 1])
    batch = rows.batches("batch=all").read(0)
    every = epochfs.csr(batch)
    equal(np.shares_memory(every.data, batch["data"]), True, "memory of the values")
    file = f"{rows.path}/batches/batch=all/npz/000000.npz"
    equal((every != scipy.sparse.load_npz(file)).nnz, 0, "differences from scipy's reader")
    equal(model.score(every, batch["label"]) > 0.9, True, "learned")
    one = epochfs.csr(rows[7])
    equal((one != every[7]).nnz, 0, "one row")
    expect(KeyError, "data: expected a batch of sparse rows, with all its fields, got label",
           lambda: epochfs.csr(rows.batches("batch=4", fields=["label"]).read(0)))
    expect(ValueError, "expected sparse rows, of encoding npz, got csc",
           lambda: epochfs.csr(rows.batches("batch=4", encoding="csc").read(0)))


def external(dataset, plan, x, want):
    """Trained from batches, XGBoost makes the trees that it makes from all at once."""
    seen = []

    class Counted(epochfs.xgboost.Batches):
        def next(self, input_data):
            seen.append(self._next)
            return super().next(input_data)

    batches = Counted(dataset, plan, x=x, cache_prefix=f"{PRIVATE}/pages")
    data = xgboost.DMatrix(batches)
    equal((data.num_row(), data.num_col()), want.shape, "rows and columns")
    equal(data.get_label().tolist(), dataset.batches("batch=all").read(0)["label"].tolist(), "labels")
    options = {"objective": "reg:squarederror", "tree_method": "hist", "max_bin": 16, "nthread": 1}
    all_at_once = xgboost.DMatrix(want, label=data.get_label())
    found = xgboost.train(options, data, 5).predict(all_at_once)
    equal(np.allclose(found, xgboost.train(options, all_at_once, 5).predict(all_at_once), atol=0.2), True, "predictions")
    equal(max(seen) > 2, True, "several batches")


def weighted():
    """Weights and queries also come: XGBoost takes one weight for each query, and whole queries only."""
    def ranked(name, lines, plan):
        file = f"{name}.txt" if lines else name
        if lines:
            with open(f"{SOURCE}/{file}", "w", encoding="ascii") as f:
                f.writelines(lines)
        daemon = start(f"{SOURCE}/{file}")
        try:
            rank = epochfs.open(MOUNTPOINT)[file.removesuffix(".npz")]
            data = xgboost.DMatrix(epochfs.xgboost.Batches(rank, plan, cache_prefix=f"{PRIVATE}/{name}"))
            model = xgboost.train(options, data, 3) if data.get_weight().size else None
            return data, model
        finally:
            stop(daemon)

    options = {"objective": "rank:pairwise", "tree_method": "hist", "nthread": 1}
    rng = np.random.default_rng(5)
    values, labels, weights = rng.random((40, 3)).round(3), rng.integers(0, 3, 40), [0.5, 2, 1, 4, 3, 1, 0.25, 2]
    rows = [f"qid:{i // 5} 1:{a} 2:{b} 3:{c}\n" for i, (a, b, c) in enumerate(values)]
    with open(f"{SOURCE}/side.txt.group", "w", encoding="ascii") as f:
        f.write("5\n" * 8)
    with open(f"{SOURCE}/side.txt.weight", "w", encoding="ascii") as f:
        f.writelines(f"{w}\n" for w in weights)
    want = xgboost.DMatrix(dense_of(values), label=labels, qid=np.arange(40) // 5, weight=weights)
    want = xgboost.train(options, want, 3).predict(xgboost.DMatrix(dense_of(values)))
    for plan in "batch=2,unit=qid", "batch=3,unit=qid", "batch=all,unit=qid":
        for name, lines in (("rank", [f"{y}:{weights[i // 5]} {row}" for i, (y, row) in enumerate(zip(labels, rows))]),
                            ("side", [f"{y} {row.partition(' ')[2]}" for y, row in zip(labels, rows)])):
            data, model = ranked(name, lines, plan)
            equal(data.get_weight().tolist(), weights, f"{name}, {plan}: weights")
            equal(data.get_uint_info("group_ptr").tolist(), list(range(0, 41, 5)), f"{name}, {plan}: queries")
            found = model.predict(xgboost.DMatrix(dense_of(values)))
            equal(np.allclose(found, want, atol=1e-5), True, f"{name}, {plan}: predictions")
    lines = [f"{y}:{1 + i % 2} {row}" for i, (y, row) in enumerate(zip(labels, rows))]
    expect(ValueError, "rows of query 0 have different weights", lambda: ranked("differ", lines, "batch=10,unit=qid"))
    expect(ValueError, "add unit=qid", lambda: ranked("cut", [f"{y} {row}" for y, row in zip(labels, rows)], "batch=10"))
    plain = [f"{y}:{weights[i // 5]} {row}" for i, (y, row) in enumerate(zip(labels, rows))]
    data, _ = ranked("shuffled", plain, "batch=3,seed=1,unit=qid")  # whole queries in another order, each with its weight
    equal(np.diff(data.get_uint_info("group_ptr")).tolist(), [5] * 8, "queries of an epoch")
    np.savez(f"{SOURCE}/drawn.npz", x=values, label=labels, qid=np.arange(40) // 5)
    drawn, _ = ranked("drawn.npz", (), "batch=8,draw=24:uniform,seed=1,unit=qid")  # one may follow itself
    equal(np.diff(drawn.get_uint_info("group_ptr")).tolist(), [5] * 24, "queries that are drawn")
    first = [weights.index(w) for w in data.get_weight().tolist() if weights.count(w) == 1]
    equal((sorted(data.get_weight().tolist()), first != sorted(first)), (sorted(weights), True), "weights of an epoch")


def dense_of(values):
    """As the dataset has them: column 0 is never set."""
    return np.column_stack([np.zeros(len(values)), values]).astype(np.float32)


def uneven():
    """Samples of different lengths are no rows of a matrix."""
    with open(f"{SOURCE}/lines.jsonl", "w", encoding="ascii") as f:
        f.writelines(f'{{"text": "{"a" * i}"}}\n' for i in range(4))
    daemon = start(f"{SOURCE}/lines.jsonl")
    lines = epochfs.open(MOUNTPOINT)["lines.jsonl"]
    words = "json: its shape differs from sample to sample, so a batch is no matrix"
    expect(ValueError, words, lambda: next(epochfs.sklearn.rows(lines, "batch=2", x="json", y="index")))
    expect(ValueError, words, lambda: epochfs.xgboost.Batches(lines, "batch=2", x="json", y="index"))
    stop(daemon)


def broken(train):
    """An error of the mount comes out of DMatrix, which would otherwise take what came so far for all."""
    batches = epochfs.xgboost.Batches(train, "batch=16", x="image", cache_prefix=f"{PRIVATE}/broken")

    def fail(number):
        raise epochfs.DeadMountError(107, "the daemon of this mount has died", train.path)

    batches._batches.read = fail
    expect(epochfs.DeadMountError, "has died", lambda: xgboost.DMatrix(batches))


def main():
    images, labels = small(100)
    daemon = start()
    train = epochfs.open(MOUNTPOINT)["train"]
    dense(train, images, labels)
    external(train, "batch=16", "image", images.reshape(100, 30).astype(np.float32))
    broken(train)
    stop(daemon)
    tutorials.write_rows("train.txt", ROWS)
    daemon = start(os.path.join(tutorials.HOME, "train.txt"))
    rows = epochfs.open(MOUNTPOINT)["train.txt"]
    sparse(rows)
    external(rows, "batch=300", "x", epochfs.csr(rows.batches("batch=all").read(0)))
    stop(daemon)
    weighted()
    uneven()


main()
