#!/usr/bin/python3
# needs: python3-scipy
# plain: arithmetic, in many plans
"""part=KofN of libsvm text: dmlc's byte rule, against the rule on bytes and against XGBoost."""

import gzip
import multiprocessing
import os
import random
import re

import numpy as np
import scipy.sparse

import order_reference
from lib import SOURCE, content, equal, mounted, path, run, write

ref = order_reference.load()
rng = random.Random(25)
BOM = b"\xef\xbb\xbf"
FEATURES = 40


# ---- the rule, on bytes ----

def adjust(files, x):
    """A cut at byte x of the files in sequence, moved after the line that contains it."""
    start = 0
    for data in files:
        at = x - start
        if at == 0:
            return x
        if at < len(data):
            while at < len(data) and data[at] not in b"\r\n":
                at += 1
            while at < len(data) and data[at] in b"\r\n":
                at += 1
            return start + at
        start += len(data)
    return x


def rows_of(files):
    """Every row: where its line starts in the files in sequence, and its bytes."""
    found, start = [], 0
    for data in files:
        for match in re.finditer(rb"[^\r\n]+", data):
            line = match[0]
            if match.start() == 0 and line.startswith(BOM):
                line = line[len(BOM):]
            if not re.match(rb"[ \t\v\f]*(#|$)", line):
                found.append((start + match.start(), line))
        start += len(data)
    return found


def share(files, k, n):
    """The first row of part k of n, and the number of rows."""
    total = sum(map(len, files))
    step = -(-total // n)
    begin, end = (adjust(files, min(step * i, total)) for i in (k, k + 1))
    starts = [start for start, _ in rows_of(files)]
    return sum(s < begin for s in starts), sum(begin <= s < end for s in starts)


# ---- files ----

def line(i):
    return b"%d %d:%d" % (i, i % FEATURES, i + 1)


def joined(ends, first=0):
    """A row before each of the given line ends."""
    return b"".join(line(first + i) + end for i, end in enumerate(ends))


def wild(first):
    """Rows, white space, comments and every kind of line end, in any order."""
    out = BOM if rng.random() < 0.2 else b""
    for i in range(rng.randrange(2, 25)):
        out += rng.choice([b"", b"", b"\n", b"\r\n\r\n", b"\n\n\r\r", b" \t\n", b"# foo\r\n",
                           b"#\n"])
        blank, comment = rng.choice([b"", b"", b" "]), rng.choice([b"", b"", b" # foo bar"])
        out += line(first + i) + blank + comment
        out += rng.choice([b"\n", b"\n", b"\r\n", b"\r", b"\n\n\n", b"\r\n\r\n\r\n"])
    return out.rstrip(b"\r\n") if rng.random() < 0.3 else out


FILES = {
    "lf": joined([b"\n"] * 12),
    "four-bytes": b"100\n101\n102\n103\n",
    "one-row": line(3),
    "one-row-lf": line(3) + b"\n",
    "crlf": joined([b"\r\n"] * 12),
    "cr": joined([b"\r"] * 12),
    "crlf-runs": joined([b"\r\n" * (1 + i % 4) for i in range(12)]),
    "blank-runs": joined([b"\n" * (1 + i % 5) for i in range(12)]),
    "blank-first": b"\n\r\n\n\n" + joined([b"\n"] * 6),
    "blank-first-cr": b"\r\r\r" + joined([b"\n"] * 6),
    "blank-last": joined([b"\n"] * 6) + b"\n" * 40,
    "comments": b"# foo\n" + joined([b" # foo\n", b"\n# foo\n# foo\n", b"\n\n#\n", b"\n"] * 4),
    "comments-last": joined([b"\n"] * 3) + b"# foo bar\n" * 12,
    "blank-lines-with-blanks": joined([b"\n \t \n", b"\n\n  \r\n", b"\n"] * 4),
    "no-last-newline": joined([b"\n"] * 9) + line(9),
    "bom": BOM + joined([b"\n"] * 9),
    "bom-blank": BOM + b"\n" + joined([b"\n"] * 9),
    "uneven": line(0) + b" 5:1" * 100 + b"\n" + joined([b"\n"] * 20, 1),
    "long-last": joined([b"\n"] * 20) + line(20) + b" 5:1" * 100,
    "packed": joined([b"\n"] * 200),
}
for i in range(12):
    FILES[f"wild-{i:02d}"] = wild(i * 100)
# Found with dmlc itself: the rows of every part.
FOUND = {("four-bytes", 3): [2, 2, 0], ("four-bytes", 4): [2, 1, 1, 0],
         ("four-bytes", 16): [1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]}


def store():
    for name, data in FILES.items():
        if name == "packed":
            write("packed.gz", gzip.compress(data[:700]) + gzip.compress(data[700:]))
        else:
            write(name, data)


# ---- against the rule ----

def check_part(dataset, files, k, n):
    """The text and the numbers of a part; returns the numbers."""
    folder = path(dataset, f"batches/batch=all,part={k}of{n}" if n > 1 else "batches/batch=all")
    first, count = share(files, k, n)
    lines = [row for _, row in rows_of(files)][first:first + count]
    equal(content(folder, "svm/000000.svm"), b"".join(row + b"\n" for row in lines), folder)
    index = np.load(f"{folder}/npy/000000.index.npy").tolist()
    equal(index, list(range(first, first + count)), f"{folder}: index")
    return index


def check_parts(dataset, files):
    every = len(rows_of(files))
    total = sum(map(len, files))
    for n in (1, 2, 3, 4, 7, 16, every, every + 1):
        parts = [check_part(dataset, files, k, n) for k in range(n)]
        equal(sum(parts, []), list(range(every)), f"{dataset}: the union of {n} parts")
        if (dataset, n) in FOUND:
            equal([len(p) for p in parts], FOUND[dataset, n], f"{dataset} in {n} parts")
    for n in (total - 1, total, total + 1, 10 ** 6, 2 ** 40 + 1):
        some = {rng.randrange(min(n, total + 5)) for _ in range(5)}
        for k in sorted({0, 1, n - 1} | some):
            if k < n:
                check_part(dataset, files, k, n)


def check_empty_part(dataset, k, n, features):
    """A part without rows has one empty file with batch=all, and no batch of another size."""
    folder = path(dataset, f"batches/batch=all,part={k}of{n}")
    equal(os.stat(f"{folder}/svm/000000.svm").st_size, 0, "an empty part")
    x = scipy.sparse.load_npz(f"{folder}/npz/000000.npz")
    equal((x.shape, x.nnz, x.dtype), ((0, features), 0, np.float32), "an empty part: npz")
    equal(np.load(f"{folder}/npy/000000.x.npy").shape, (0, features), "an empty part: x")
    for tail in ("", ",tail=drop", ",tail=wrap"):
        equal(os.listdir(path(dataset, f"batches/batch=4,part={k}of{n}{tail}/svm")), [], tail)


def check_plan(dataset, files, k, n, plan, epoch):
    """Within a share everything is as in docs/spec/order.md. plan: the parameters after part=, with the
    batch before it."""
    batch, *others = plan.split(",")
    name = ",".join([batch, f"part={k}of{n}", *others])
    folder = path(dataset, "batches", name, *([f"epoch={epoch}"] if "seed=" in plan else []))
    first, count = share(files, k, n)
    lines = [row for _, row in rows_of(files)]
    batches = ref.batch_count(count, plan)
    equal(os.listdir(f"{folder}/svm"), [f"{i:06d}.svm" for i in range(batches)], name)
    for i in range(batches):
        want = [first + s for s in ref.batch_samples(count, plan, epoch, i)]
        equal(np.load(f"{folder}/npy/{i:06d}.index.npy").tolist(), want, name)
        equal(content(folder, f"svm/{i:06d}.svm"), b"".join(lines[s] + b"\n" for s in want), name)


def check_combinations(dataset, files, count):
    for _ in range(count):
        n = rng.choice([2, 3, 5, 30])
        words = [f"batch={rng.choice(['1', '3', '100', 'all'])}",
                 rng.choice(["", "rank=0of2", "rank=1of2", "rank=6of7"]),
                 rng.choice(["", "seed=7"])]
        if words[2]:
            words.append(rng.choice(["", "shuffle=window:1", "shuffle=window:4"]))
        words.append(rng.choice(["", "tail=drop", "tail=wrap"]))
        plan = ",".join(word for word in words if word)
        check_plan(dataset, files, rng.randrange(n), n, plan, rng.choice([0, 1, 2 ** 64 - 1]))


# ---- against XGBoost ----

def worker(uris, environment):
    """The rank of this process, and the rows that it reads from each uri."""
    import xgboost
    from xgboost import collective
    collective.init(**environment)
    rank, data = collective.get_rank(), [xgboost.DMatrix(uri) for uri in uris]
    collective.finalize()
    return rank, [(rows.get_label().tolist(), rows.num_nonmissing()) for rows in data]


def xgboost_parts(uris, n):
    """The rows that each of n workers of XGBoost reads from each uri: [uri][worker] = (labels,
    features). Each waits for the others; all have what this process has loaded."""
    from xgboost.tracker import RabitTracker
    tracker = RabitTracker(host_ip="127.0.0.1", n_workers=n)
    tracker.start(n)
    with multiprocessing.get_context("fork").Pool(n) as pool:
        found = dict(pool.starmap(worker, [(uris, tracker.worker_envs())] * n, 1))
    tracker.join()
    return [[found[k][u] for k in range(n)] for u in range(len(uris))]


def check_xgboost():
    """XGBoost's workers read the source files; each must get the rows of part=KofN of the mount."""
    try:
        import xgboost.tracker
    except ImportError:
        print("without the part that needs python3-xgboost")
        return
    if int(xgboost.__version__.split(".")[0]) >= 2:
        print(f"without the part that needs xgboost 1, which divides files among its workers; got {xgboost.__version__}")
        return
    singles = [name for name in FILES if name not in ("packed", "four-bytes")]
    lists = [("lf", "crlf-runs", "no-last-newline", "uneven"), ("comments", "bom", "blank-first")]
    uris = [f"{SOURCE}/{name}" for name in singles]
    uris += [";".join(f"{SOURCE}/{name}" for name in names) for names in lists]
    for n in (2, 3, 5):
        found = xgboost_parts(uris, n)
        with mounted():
            for name, parts in zip(singles, found):
                compare(path(name), parts, f"{name} in {n} parts")
        for uri, parts in zip(uris[len(singles):], found[len(singles):]):
            with mounted(uri):
                compare(path("all"), parts, f"{uri} in {n} parts")
    with mounted():  # in reverse: its workers read the mount
        uri = path("comments/source/comments")
        compare(path("comments"), xgboost_parts([uri], 2)[0], uri)
        whole = xgboost.DMatrix(path("uneven/batches/batch=all,part=1of2/svm/000000.svm"))
        part = np.load(path("uneven/batches/batch=all,part=1of2/npy/000000.label.npy"))
        equal(whole.get_label().tolist(), part.tolist(), "XGBoost reads a part as a file")


def compare(folder, parts, what):
    n = len(parts)
    for k, (labels, features) in enumerate(parts):
        with np.load(f"{folder}/batches/batch=all,part={k}of{n}/npz/000000.npz") as batch:
            equal(batch["label"].tolist(), labels, f"{what}: labels of worker {k}")
            equal(len(batch["data"]), features, f"{what}: features of worker {k}")


store()
with mounted():
    for name, data in FILES.items():
        check_parts(name, [data])
    check_combinations("lf", [FILES["lf"]], 60)
    check_combinations("blank-runs", [FILES["blank-runs"]], 60)
    check_empty_part("one-row", 1, 3, 4)
    check_empty_part("lf", 1, 1000, 12)
    # Rows without features may be a list of labels: such a file is no part of `all`.
    joined_files = [FILES[name] for name in sorted(FILES) if name != "four-bytes"]
    check_parts("all", joined_files)
    check_combinations("all", joined_files, 10)

write("empty-1", b"")
write("empty-2", b"")
run("info", "--check", f"{SOURCE}/lf")
for names in (("lf", "crlf"), ("uneven", "empty-1", "one-row", "no-last-newline", "empty-2", "bom"),
              ("empty-2", "blank-first", "one-row", "comments", "one-row-lf", "wild-01"),
              ("packed.gz", "no-last-newline", "long-last", "crlf-runs")):
    with mounted(";".join(f"{SOURCE}/{name}" for name in names)):
        of_list = [FILES[name.removesuffix(".gz")] for name in names if "empty" not in name]
        check_parts("all", of_list)
        check_combinations("all", of_list, 10)
os.unlink(f"{SOURCE}/empty-1")
os.unlink(f"{SOURCE}/empty-2")
check_xgboost()
