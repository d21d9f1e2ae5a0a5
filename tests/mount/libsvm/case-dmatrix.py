#!/usr/bin/python3
# needs: python3-scipy python3-xgboost
# plain: unit_format_libsvm_dmatrix reads such files with sanitizers
"""Files that XGBoost's save_binary() writes, against XGBoost itself and scipy: rows, fields, names, text, columns by value; hints
for XGBoost's URIs; weights of groups next to text."""

import json
import os
import sys
import warnings

import numpy as np
import scipy.sparse
import xgboost

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

warnings.filterwarnings("ignore")
chance = np.random.default_rng(1)
N, WIDTH = 700, 50
BATCH = "batches/batch=64,seed=3/epoch=1"


def matrix(**fields):
    x = scipy.sparse.random(N, WIDTH, 0.1, format="csr", dtype="f4", random_state=2)
    x.data[::7] = np.round(x.data[::7], 1)  # equal values
    return xgboost.DMatrix(x, **fields), x


def columns(batch):
    """(value, row) of each column, as csc_value sorts them."""
    return [sorted(zip(*[a[batch.indptr[c]:batch.indptr[c + 1]].tolist() for a in (batch.data, batch.indices)])) for c in range(WIDTH)]


sizes = np.array([100] * 6 + [1, 99])
label = chance.normal(size=N).astype("f4")
CASES = {
    "plain": {"label": label},
    "names": {"label": label, "weight": chance.random(N), "feature_names": [f"f {i}" for i in range(WIDTH)], "feature_types": ["q"] * WIDTH},
    "bounds": {"label_lower_bound": label, "label_upper_bound": label + 1},
    "group": {"label": label, "group": sizes, "weight": np.arange(8), "base_margin": chance.random((N, 3))},
}
made = {}
for name, fields in CASES.items():
    made[name], x = matrix(**fields)
    made[name].save_binary(os.path.join(SOURCE, f"{name}.buffer"), silent=True)

with mounted(SOURCE):
    for name, theirs in made.items():
        folder = f"{name}.buffer"
        about = json.loads(text(path(folder, "dataset.json")))
        equal([about[n] for n in ("format", "num_row", "num_col", "num_nonzero", "xgboost")],
              ["dmatrix", N, WIDTH, x.nnz, xgboost.__version__], name)
        equal((about.get("columns"), about.get("feature_types")), (theirs.feature_names, theirs.feature_types), name)
        whole = np.load(path(folder, "batches/batch=all/npz/000000.npz"))
        assert (scipy.sparse.load_npz(path(folder, "batches/batch=all/npz/000000.npz")) != x).nnz == 0, name
        for field in ("label", "weight", "base_margin", "label_lower_bound", "label_upper_bound"):
            found = theirs.get_float_info(field)
            if name == "group" and field == "weight":
                found = np.repeat(found, sizes)
            equal(field in whole.files, found.size > 0, f"{name} {field}")
            if found.size:
                assert np.array_equal(whole[field], found.reshape(whole[field].shape)), f"{name} {field}"
        if name == "group":
            equal(whole["qid"].tolist(), np.repeat(np.arange(8), sizes).tolist(), "qid")
        for b in range(0, 11, 5):
            one = scipy.sparse.load_npz(path(folder, BATCH, f"npz/{b:06d}.npz"))
            index = np.load(path(folder, BATCH, f"npz/{b:06d}.npz"))["index"]
            assert (one != x[index]).nnz == 0, f"{name} batch {b}"
            sorted_by_value = scipy.sparse.load_npz(path(folder, BATCH, f"csc_value/{b:06d}.npz"))
            want = columns(scipy.sparse.load_npz(path(folder, BATCH, f"csc/{b:06d}.npz")))
            equal(sorted_by_value.data.tolist(), [v for column in want for v, _ in column], "values")
            equal(sorted_by_value.indices.tolist(), [r for column in want for _, r in column], "rows, those of equal values ascending")
            assert not sorted_by_value.has_sorted_indices
        if name == "bounds":
            equal(os.path.isdir(path(folder, "batches/batch=all/svm")), False, "no text without labels")
            continue
        lines = path(folder, "batches/batch=all/svm/000000.svm")  # XGBoost reads the text again
        equal(os.path.getsize(lines), len(content(lines)), "size")
        again = xgboost.DMatrix(f"{lines}?format=libsvm")
        assert np.allclose(again.get_label(), label, 1e-6)  # XGBoost's parser of text is not exact
        equal((again.num_row(), again.num_nonmissing()), (N, x.nnz), name)
        if name == "names":
            assert np.allclose(again.get_weight(), theirs.get_weight(), 1e-6)
        if name == "group":
            equal(again.get_uint_info("group_ptr").tolist(), [0, *np.cumsum(sizes).tolist()], "groups of the text")

contains(run("info", os.path.join(SOURCE, "group.buffer")), f"matrix   {N} rows x {WIDTH} columns, {x.nnz} entries, 8 groups, weights\n")
for end in ("#cache", "?format=libsvm", "?format=libsvm#cache"):
    contains(run("info", os.path.join(SOURCE, "plain.buffer") + end, code=2), "expected the path alone", f"Give {SOURCE}/plain.buffer\n")
write("rank/rank.txt", "".join(f"1 qid:{q} 0:1\n" for q in (7, 7, 8, 7, 7, 7)).encode())
write("rank/rank.txt.weight", b"0.5\n2\n4\n")  # one of each run of a qid, as XGBoost has it
with mounted(os.path.join(SOURCE, "rank")):
    equal(np.load(path("rank.txt/batches/batch=all/npz/000000.npz"))["weight"].tolist(), [.5, .5, 2, 4, 4, 4], "weights of groups")
contains(run("info", os.path.join(SOURCE, "rank")), "6 rows x 1 columns, 6 entries, 3 groups, weights\n")
