#!/usr/bin/python3
# needs: python3-scipy
# plain: other programs read what the daemon gives
"""Readers of libsvm text get the same from a mount as from the file: scikit-learn, scipy, XGBoost
(also its workers, from parts) and svm-train; shuffles, and equal bytes in every mount."""

import collections
import hashlib
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np

import order_reference
import svm_model
from lib import (DEADLINE, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, mounted,
                 path, text, write)
from model import same_array

SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "libsvm")
ref = order_reference.load()
rng = random.Random(17)


def have(module):
    if importlib.util.find_spec(module):
        return True
    print(f"skipped: {module} is missing")
    return False


SKLEARN, XGBOOST = have("sklearn"), have("xgboost")


# ---- sources ----

def ones(n):
    """Like agaricus: a 1 for each trait."""
    for _ in range(n):
        traits = sorted(rng.sample(range(1, 127), rng.randint(18, 23)))
        yield f"{rng.randint(0, 1)} {' '.join(f'{i}:1' for i in traits)}"


def scaled(n):
    """Like heart_scale: two classes, values in -1..1, from index 1, a space at the end."""
    for _ in range(n):
        label = rng.choice([-1, 1])
        values = [f"{i}:{max(-1, min(1, rng.gauss(label * .3, .6))):.6g}" for i in range(1, 14)
                  if rng.random() < .95]
        yield f"{label:+d} {' '.join(values)} "


def ranked(n):
    """Like tensorflow_ranking's: queries, unsorted indexes."""
    for i in range(n):
        index = rng.sample(range(1, 137), 19)
        yield f"{rng.randint(0, 4)} qid:{1 + i // 7} " + " ".join(
            f"{k}:{rng.uniform(-1, 1):.6f}" for k in index)


def any_ends():
    """Lines of every length and end, empty ones, comments: cuts between parts are difficult."""
    data = b""
    for i in range(60):
        data += rng.choice([b"", b"", b"\n", b"\r\n\r\n", b"\r", b"# not a row\n"])
        data += b"%d %s" % (i, b" ".join(b"%d:1" % k for k in range(rng.choice([0, 1, 2, 9]))))
        data += rng.choice([b"\n", b"\r\n", b"\r", b"\n\n"])
    return data[:-1]


def lines(rows):
    return "".join(row + "\n" for row in rows).encode()


write("ones.txt", lines(ones(900)))
write("scaled", lines(scaled(270)))
write("rank/ranked.txt", lines(ranked(119)))
write("rank2/grouped.txt", lines(ones(100)))
write("rank2/grouped.txt.query", b"10\n20\n1\n0\n69\n")
write("rank2/grouped.txt.init", lines(f"{i / 3:.6f} {-i}" for i in range(100)))
for name in ("a", "b", "c", "d"):
    write(f"parts/{name}", any_ends() if name != "c" else b"")


def dataset(root, *names):
    """The model of one file or, as all, of several."""
    return svm_model.Dataset([(name, content(root, name)) for name in names])


def npz(folder, plan="batch=all", number=0):
    file = f"{folder}/batches/{plan}/npz/{number:06d}.npz"
    return svm_model.read_npz(content(file), file)


def svm_file(folder, plan="batch=all", number=0):
    return f"{folder}/batches/{plan}/svm/{number:06d}.svm"


# ---- one reader each ----

def check_all(folder, ds):
    """batch=all is the file; scipy reads it."""
    every = list(range(len(ds.rows)))
    svm_model.check_batch(ds, f"{folder}/batches/batch=all", 0, every)
    for sample in (0, len(every) // 2, len(every) - 1):
        svm_model.check_sample(ds, folder, sample)
    equal(json.loads(text(folder, "dataset.json"))["samples"], len(every), folder)


def sklearn_equal(folder, original, ds):
    """The file, its svm batch and the npz are equal to scikit-learn."""
    if not SKLEARN:
        return
    from sklearn.datasets import load_svmlight_file
    import scipy.sparse
    wanted = dict(n_features=ds.features, zero_based=True, query_id="qid" in ds.fields)
    x1, y1, *q1 = load_svmlight_file(original, **wanted)
    x2, y2, *q2 = load_svmlight_file(svm_file(folder), **wanted)
    for a, b in ((x1.data, x2.data), (x1.indices, x2.indices), (x1.indptr, x2.indptr), (y1, y2),
                 *zip(q1, q2)):
        equal(a.tobytes(), b.tobytes(), f"{folder}: scikit-learn")
    x3 = scipy.sparse.load_npz(f"{folder}/batches/batch=all/npz/000000.npz")
    equal(x3.shape, x1.shape, f"{folder}: shape")
    equal(abs(x3 - x1.astype(np.float32)).max() == 0, True, f"{folder}: values of scikit-learn")
    label = np.load(f"{folder}/batches/batch=all/npy/000000.label.npy")
    equal(label.tolist(), y1.astype(np.float32).tolist(), f"{folder}: labels of scikit-learn")
    x = np.load(f"{folder}/batches/batch=all/npy/000000.x.npy")
    equal(np.array_equal(x, x1.astype(np.float32).toarray()), True, f"{folder}: dense")


def xgboost_equal(folder, ds):
    """XGBoost reads the svm batch, with numbers one digit less exact."""
    if not XGBOOST:
        return
    import xgboost
    matrix = xgboost.DMatrix(svm_file(folder) + "?format=libsvm", silent=True)
    everything = list(range(len(ds.rows)))
    want = ds.csr(everything)
    equal((matrix.num_row(), matrix.num_col()), (len(ds.rows), ds.features), f"{folder}: XGBoost")
    equal(np.allclose(matrix.get_label(), ds.fields["label"], rtol=1e-6), True, f"{folder}: labels")
    if hasattr(matrix, "get_data"):
        got = matrix.get_data()
        equal(got.indptr.tolist(), want["indptr"].tolist(), f"{folder}: XGBoost's rows")
        equal(got.indices.tolist(), want["indices"].tolist(), f"{folder}: XGBoost's indices")
        equal(np.allclose(in_order(got.data, got.indices, got.indptr),
                          in_order(want["data"], want["indices"], want["indptr"]), rtol=1e-6),
              True, f"{folder}: XGBoost's values")


def in_order(data, indices, indptr):
    """XGBoost's sort does not keep the order of values that have the same index."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return data[np.lexsort((data, indices, rows))]


def svm_train_equal(folder, original, *options):
    """svm-train finds the same model, to the last byte."""
    if not shutil.which("svm-train"):
        print("skipped: svm-train is missing (package libsvm-tools)")
        return
    models = []
    for i, file in enumerate((original, svm_file(folder))):
        out = f"{PRIVATE}/model{i}"
        subprocess.run(["svm-train", "-q", *options, file, out], check=True, timeout=DEADLINE,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        models.append(content(out))
    contains(models[0].decode(), "total_sv")
    equal(models[1], models[0], f"{folder}: model of svm-train")


# ---- parts ----

def check_parts(folder, ds, counts):
    """Every part holds the rows of dmlc's byte rule; together they are the dataset."""
    for n in counts:
        seen = []
        for k in range(n):
            want = ds.part(k, n)
            plan = f"batch=all,part={k}of{n}" if n > 1 else "batch=all"
            got = np.load(f"{folder}/batches/{plan}/npy/000000.index.npy").tolist()
            equal(got, want, f"{folder}: {plan}")
            equal(content(svm_file(folder, plan)),
                  b"".join(ds.rows[i].text + b"\n" for i in want), f"{folder}: {plan}")
            seen += got
        equal(seen, list(range(len(ds.rows))), f"{folder}: {n} parts")
    k, n = 1, 3
    share = ds.part(k, n)
    plan = f"batch=16,part={k}of{n},rank=1of2,seed=5,shuffle=window:8"
    for number in range(ref.batch_count(len(share), plan.replace(f"part={k}of{n},", ""))):
        order = ref.batch_samples(len(share), plan.replace(f"part={k}of{n},", ""), 3, number)
        got = np.load(f"{folder}/batches/{plan}/epoch=3/npy/{number:06d}.index.npy").tolist()
        equal(got, [share[0] + i for i in order], f"{folder}: {plan}, batch {number}")


WORKER = """
import json, sys
import numpy, xgboost
from xgboost import collective
with collective.CommunicatorContext(**json.loads(sys.argv[1])):
    matrix = xgboost.DMatrix(sys.argv[2] + "?format=libsvm", silent=True)
    data = matrix.get_data()
    numpy.savez(f"{sys.argv[3]}.{collective.get_rank()}.npz", label=matrix.get_label(),
                data=data.data, indices=data.indices, indptr=data.indptr)
"""


def workers(original, n):
    """The rows that each of n XGBoost workers reads of a file; None if this XGBoost has no
    workers."""
    try:
        import xgboost
        from xgboost import collective
        from xgboost.tracker import RabitTracker
        tracker = RabitTracker(host_ip="127.0.0.1", n_workers=n)
        tracker.start(n)
        arguments = tracker.worker_envs()
        equal(hasattr(xgboost.DMatrix, "get_data") and hasattr(collective, "CommunicatorContext"),
              True, "XGBoost of this age")
    except (ImportError, AttributeError, TypeError, AssertionError) as e:
        print(f"skipped: workers of XGBoost: {e}")
        return None
    out = f"{PRIVATE}/worker"
    command = [sys.executable, "-c", WORKER, json.dumps(arguments), original, out]
    processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                 for _ in range(n)]
    for process in processes:
        equal(process.wait(DEADLINE), 0, "a worker of XGBoost")
    return [dict(np.load(f"{out}.{k}.npz")) for k in range(n)]


def check_workers(folder, original, n):
    """part=KofN equals what XGBoost's worker K of N reads from the file."""
    import xgboost
    for k, want in enumerate(workers(original, n) or []):
        matrix = xgboost.DMatrix(svm_file(folder, f"batch=all,part={k}of{n}") + "?format=libsvm", silent=True)
        data = matrix.get_data()
        got = {"label": matrix.get_label(), "data": data.data, "indices": data.indices,
               "indptr": data.indptr}
        for name in want:
            equal(got[name].tolist(), want[name].tolist(), f"{folder}: worker {k} of {n}: {name}")


# ---- shuffles ----

def check_shuffle(folder, ds):
    """The union of an epoch is the dataset, index says which rows, in the published order."""
    n = len(ds.rows)
    size = max(n // 7, 5)
    full = npz(folder)
    for plan, epoch in ((f"batch={size},seed=7", 0), (f"batch={size},seed=7", 1),
                        (f"batch={size},seed=9,shuffle=window:16", 2)):
        seen, seen_lines = [], []
        for number in range(ref.batch_count(n, plan)):
            got = npz(folder, f"{plan}/epoch={epoch}", number)
            index = got["index"].tolist()
            equal(index, ref.batch_samples(n, plan, epoch, number), f"{folder}: {plan}: {number}")
            svm = content(svm_file(folder, f"{plan}/epoch={epoch}", number))
            equal(svm, b"".join(ds.rows[i].text + b"\n" for i in index), f"{folder}: {plan}")
            svm_model.check_csr(got, ds.csr(index), ds, f"{folder}: {plan}: {number}")
            for name in ds.fields:
                same_array(got[name], full[name][index], f"{folder}: {plan}: {name}")
            seen += index
            seen_lines += svm.splitlines()
        equal(sorted(seen), list(range(n)), f"{folder}: {plan}: every row once")
        equal(collections.Counter(seen_lines), collections.Counter(r.text for r in ds.rows),
              f"{folder}: {plan}: every line once")
    svm_model.check_batch(ds, f"{folder}/batches/{plan}/epoch={epoch}", 1,
                          ref.batch_samples(n, plan, epoch, 1))


def sums(folders):
    """The bytes of many files of a mount."""
    found = {}
    for folder in folders:
        for plan in ("samples", "batches/batch=100", "batches/batch=64,seed=7/epoch=3",
                     "batches/batch=all,part=1of3,seed=2/epoch=0"):
            for enc in ("svm", "npz", "npy"):
                for name in sorted(os.listdir(path(folder, plan, enc)))[:30]:
                    file = os.path.join(folder, plan, enc, name)
                    found[file] = hashlib.sha256(content(path(file))).hexdigest()
    return found


# ---- mounts ----

def check_file(root, name, train=()):
    """All readers on one file; returns its model."""
    ds = dataset(root, name)
    check_all(path(name), ds)
    sklearn_equal(path(name), f"{root}/{name}", ds)
    xgboost_equal(path(name), ds)
    check_shuffle(path(name), ds)
    check_parts(path(name), ds, (1, 2, 3, 8))
    if train:
        svm_train_equal(path(name), f"{root}/{name}", *train)
    equal(content(path(name, "source", os.path.basename(name))), content(root, name), name)
    equal(content(svm_file(path(name))), content(root, name), f"{name}: the batch is the file")
    return ds


def check_generated():
    check_file(SOURCE, "ones.txt", ("-t", "0", "-c", "0.01"))
    check_file(SOURCE, "scaled", ("-c", "2"))
    both = dataset(SOURCE, "ones.txt", "scaled")
    check_all(path("all"), both)
    check_shuffle(path("all"), both)
    check_parts(path("all"), both, (1, 3))
    ranked = dataset(SOURCE, "rank/ranked.txt")
    check_all(path("rank/ranked.txt"), ranked)
    check_shuffle(path("rank/ranked.txt"), ranked)
    xgboost_equal(path("rank/ranked.txt"), ranked)
    grouped = dataset(SOURCE, "rank2/grouped.txt")
    grouped.fields["qid"] = np.repeat(np.arange(5), [10, 20, 1, 0, 69])
    grouped.fields["base_margin"] = np.array(
        [[svm_model.strtof(b"%.6f" % (i / 3)), -i] for i in range(100)], np.float32)
    check_all(path("rank2/grouped.txt"), grouped)
    check_shuffle(path("rank2/grouped.txt"), grouped)
    equal(sorted(set(os.listdir(path("rank2"))) - {"all"}), ["grouped.txt"],
          "side files are no datasets")
    for names in (["a"], ["b"], ["d"], ["a", "b", "c", "d"]):
        folder = path("parts", names[0] if len(names) == 1 else "all")
        ds = dataset(SOURCE, *[f"parts/{name}" for name in names])
        check_all(folder, ds)
        check_parts(folder, ds, (2, 3, 5, 16, 31, 200))
    if XGBOOST:
        check_workers(path("ones.txt"), f"{SOURCE}/ones.txt", 2)


def check_real():
    check_file(SHARED, "agaricus.txt.train")
    check_file(SHARED, "heart_scale", ("-c", "1"))
    check_all(path("all"), dataset(SHARED, "agaricus.txt.train", "heart_scale"))
    name = "rank/rank.test"
    ds = dataset(SHARED, name)
    sizes = np.array(content(SHARED, "rank/rank.test.query").split(), int)
    ds.fields["qid"] = np.repeat(np.arange(len(sizes)), sizes)
    check_all(path(name), ds)
    check_shuffle(path(name), ds)
    check_parts(path(name), ds, (4,))
    xgboost_equal(path(name), ds)
    name = "tfr/train.txt"  # indexes unsorted, some twice
    ds = dataset(SHARED, name)
    check_all(path(name), ds)
    check_shuffle(path(name), ds)
    check_parts(path(name), ds, (4,))
    xgboost_equal(path(name), ds)
    name = "sklearn/svmlight_classification.txt"  # comments on lines of their own: dmlc gives up
    ds = dataset(SHARED, name)
    check_all(path(name), ds)
    equal(len(ds.rows), 6, name)
    sklearn_equal(path(name), f"{SHARED}/{name}", ds)
    xgboost_equal(path(name), ds)
    check_parts(path(name), ds, (2, 3, 9))
    if XGBOOST:
        check_workers(path("agaricus.txt.train"), f"{SHARED}/agaricus.txt.train", 3)


DATASETS = ["ones.txt", "scaled", "all", "rank/ranked.txt", "rank2/grouped.txt", "parts/all"]
with mounted():
    check_generated()
    first = sums(DATASETS)
with mounted():  # with the index that the first mount has kept
    equal(sums(reversed(DATASETS)), first, "the same bytes in a second mount")
os.mkdir(f"{PRIVATE}/cache2")
with mounted(SOURCE, f"cache={PRIVATE}/cache2"):
    equal(sums(DATASETS), first, "the same bytes without the index")
if os.path.isdir(SHARED):
    with mounted(SHARED, log="log.real"):
        check_real()
else:
    print(f"skipped: {SHARED} is missing")
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
