#!/usr/bin/python3
"""Readers of libsvm text and of its batches. Each prints one line:

    libsvm_readers.py xgboost FILE            microseconds rows columns features
    libsvm_readers.py sklearn FILE            microseconds rows columns features
    libsvm_readers.py plain EPOCH COUNT       microseconds files bytes

The time is that of the load alone, in a process that has imported everything. plain opens, reads to
the end and closes EPOCH/npz/000000.npz to COUNT - 1 in this order, into one buffer.

    libsvm_readers.py check FILE EPOCH COUNT  rows columns features

reads the batches EPOCH/npz/000000.npz to COUNT - 1 and adds them up. The indexes of all batches
must contain each row once; the first, the last and some more batches must equal what scikit-learn
reads from their lines of FILE.
"""

import io
import os
import sys
import time


def load_xgboost(path):
    import xgboost

    start = time.perf_counter()
    matrix = xgboost.DMatrix(path + "?format=libsvm")
    end = time.perf_counter()
    return end - start, matrix.num_row(), matrix.num_col(), matrix.num_nonmissing()


def load_sklearn(path):
    import numpy
    from sklearn.datasets import load_svmlight_file

    start = time.perf_counter()
    x, _ = load_svmlight_file(path, dtype=numpy.float32, zero_based=True)
    end = time.perf_counter()
    return end - start, *x.shape, x.nnz


def read_plain(epoch, count):
    buffer = memoryview(bytearray(b"x" * (4 << 20)))
    total = 0
    os.chdir(f"{epoch}/npz")
    start = time.perf_counter()
    for i in range(int(count)):
        fd = os.open(f"{i:06d}.npz", os.O_RDONLY)
        while n := os.readv(fd, (buffer,)):
            total += n
        os.close(fd)
    end = time.perf_counter()
    return end - start, count, total


def check_batch(name, lines, x, label):
    import numpy
    from sklearn.datasets import load_svmlight_file

    text = io.BytesIO(b"".join(lines))
    want, want_label = load_svmlight_file(
        text, n_features=x.shape[1], dtype=numpy.float32, zero_based=True
    )
    for what, a, b in (
        ("label", label, want_label.astype(numpy.float32)),
        ("indptr", x.indptr, want.indptr),
        ("indices", x.indices, want.indices),
        ("data", x.data, want.data),
    ):
        if a.dtype.newbyteorder("=") != (numpy.int32 if what[:3] == "ind" else numpy.float32):
            sys.exit(f"{name}: {what} has type {a.dtype}")
        if not numpy.array_equal(a, b):
            sys.exit(f"{name}: {what} is not what scikit-learn reads")


def check(path, epoch, count):
    import numpy
    import scipy.sparse

    text = numpy.memmap(path, mode="r")
    ends = numpy.flatnonzero(text == ord("\n")) + 1
    starts = numpy.concatenate(([0], ends[:-1]))
    indexes, features, shapes = [], 0, set()
    picked = {0, count // 3, count // 2, count - 1}
    for i in range(count):
        name = f"{epoch}/npz/{i:06d}.npz"
        x = scipy.sparse.load_npz(name)
        with numpy.load(name) as arrays:
            index, label = arrays["index"], arrays["label"]
        indexes.append(index)
        features += x.nnz
        shapes.add(x.shape[1])
        if x.shape[0] != len(index) or len(label) != len(index):
            sys.exit(f"{name}: {x.shape[0]} rows, {len(index)} indexes, {len(label)} labels")
        if i in picked:
            check_batch(name, (text[starts[k] : ends[k]].tobytes() for k in index), x, label)
    indexes = numpy.concatenate(indexes)
    if not numpy.array_equal(numpy.sort(indexes), numpy.arange(len(starts))):
        sys.exit(f"{epoch}: the {len(indexes)} indexes are not those of {len(starts)} rows")
    if len(shapes) != 1:
        sys.exit(f"{epoch}: batches have {sorted(shapes)} columns")
    return len(indexes), shapes.pop(), features


def main(command, *arguments):
    if command == "check":
        path, epoch, count = arguments
        print(*check(path, epoch, int(count)))
    else:
        commands = {"xgboost": load_xgboost, "sklearn": load_sklearn, "plain": read_plain}
        seconds, *rest = commands[command](*arguments)
        print(round(seconds * 1e6), *rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
