#!/usr/bin/python3
# needs: python3-scipy
"""Files of libsvm text: alone, joined, in lists, packed, with side files, next to other files, with
bad rows; and info, dataset.json, attributes and README.txt about them."""

import errno
import gzip
import json
import lzma
import os
import re
import subprocess
import sys

import numpy as np

import model
import svm_model
from lib import (LOG, MOUNTPOINT, SOURCE, contains, content, equal, expect_error, log_text, mounted,
                 path, run, small, text, write)

rng = np.random.default_rng(12)


def rows(n, columns="", features=20, base=0, end=b"\n"):
    """Text of n rows; letters in columns: w weights, q qids, l lists of labels."""
    out = []
    for i in range(n):
        label = b"%d,%g" % (i, i / 4) if "l" in columns and i % 2 else b"%g" % (i - 2.5)
        weight = b":%g" % rng.uniform(0, 4) if "w" in columns else b""
        qid = b" qid:%d" % (i // 3) if "q" in columns else b""
        index = np.sort(rng.choice(features, rng.integers(0, 6), replace=False)) + base
        pairs = b"".join(b" %d:%.7g" % (k, v) for k, v in zip(index, rng.normal(size=len(index))))
        out.append(label + weight + qid + pairs)
    return end.join(out) + end


def fresh(files):
    """A source of only these files."""
    subprocess.run(["rm", "-rf", SOURCE], check=True)
    for name, data in files.items():
        write(name, data)
    return files


def names_of(*folder):
    return sorted(os.listdir(path(*folder)))


def check(dataset, ds, samples=None):
    """Some samples, a batch of all and a shuffled one."""
    folder = path(dataset)
    n = len(ds.rows)
    equal(len(os.listdir(f"{folder}/samples/svm")), n, f"{dataset}: samples")
    for sample in samples or sorted({0, n // 2, n - 1}):
        svm_model.check_sample(ds, folder, sample)
    svm_model.check_batch(ds, f"{folder}/batches/batch=all", 0, list(range(n)))
    shuffled = f"{folder}/batches/batch=4,seed=3/epoch=1"
    for i in range(min(2, -(-n // 4))):
        index = np.load(f"{shuffled}/npy/{i:06d}.index.npy").tolist()
        svm_model.check_batch(ds, shuffled, i, index)


def check_page(page, name, ds, sources):
    equal((page["dataset"], page["format"], page["samples"], page["order_version"]),
          (name, "libsvm", len(ds.rows), 1), f"{name}: dataset.json")
    want = {"label": ("<f4", list(ds.fields["label"].shape[1:]), False),
            "x": ("<f4", [ds.features], True), "index": ("<i8", [], True)}
    for field, array in ds.fields.items():
        want[field] = (array.dtype.newbyteorder("<").str, list(array.shape[1:]), False)
    found = {f["name"]: (f["descr"], f["shape"], f["derived"]) for f in page["fields"]}
    equal({field: found.get(field) for field in want}, want, f"{name}: fields")
    equal(sorted(page["encodings"]), ["npy", "npz", "svm", "tfrecord"], f"{name}: encodings")
    equal([s["file"] for s in page["sources"]], sources, f"{name}: sources")


# ---- folders ----

def check_folders():
    files = fresh({"b.txt": rows(7, features=33), "a.svm": rows(12), "c": rows(1),
                   "sub/x.txt": rows(5, "wq"), "sub/y.txt": rows(4, "wq"), "sub/z.txt": b"",
                   "alone/only.txt": rows(3, "l"), "alone/deep/1": rows(2),
                   "alone/deep/2": rows(2)})
    top = ["a.svm", "b.txt", "c"]
    with mounted():
        equal(names_of(), sorted([*top, "all", "sub", "alone", "README.txt", ".epochfs"]), "top")
        equal([n for n in names_of("sub") if n != "z.txt"], ["all", "x.txt", "y.txt"], "sub")
        equal(names_of("alone"), ["deep", "only.txt"], "a folder of one file has no dataset `all`")
        equal(names_of("alone/deep"), ["1", "2", "all"], "alone/deep")
        for name in [*top, "sub/x.txt", "sub/y.txt", "alone/only.txt", "alone/deep/2"]:
            ds = svm_model.Dataset([(name, files[name])])
            check(name, ds)
            check_page(json.loads(text(path(name, "dataset.json"))), os.path.basename(name), ds,
                       [name])
            equal(names_of(name, "source"), [os.path.basename(name)], f"{name}: source/")
            equal(content(path(name, "source", os.path.basename(name))), files[name], name)
        for folder, names in (("", top), ("sub/", ["sub/x.txt", "sub/y.txt"])):
            ds = svm_model.Dataset([(name, files[name]) for name in names])
            check(f"{folder}all", ds, range(len(ds.rows)))
            check_page(json.loads(text(path(f"{folder}all/dataset.json"))), "all", ds, names)
            equal(names_of(f"{folder}all/source"), sorted(map(os.path.basename, names)), "source/")
        found = np.load(path("all/samples/npy/000019.x.npy"))
        equal(found.shape, (33,), "x of `all` has the features of all files")
        check_readme()
        check_xattrs("b.txt", files["b.txt"])
    found = json.loads(run("info", "--json", SOURCE))
    equal({d["dataset"] for d in found["datasets"]} >=
          {*top, "all", "sub/all", "alone/only.txt", "alone/deep/all"}, True, "info --json")
    contains(run("info", SOURCE), "a.svm", "libsvm", "sub/all", "samples  9", "weight", "qid")


def check_readme():
    """The Python of README.txt works."""
    readme = text(path("README.txt"))
    contains(readme, "all/", "sub/x.txt/", "20 samples")
    lines = re.search(r"^  import .*?(?=^\s*$)", readme, re.M | re.S)[0]
    subprocess.run([sys.executable, "-c", re.sub("^  ", "", lines, flags=re.M)], check=True)
    for word in re.findall(r"/\S+", readme):
        word = word.strip("',;.()")
        if word.startswith(MOUNTPOINT):
            os.stat(word)
    shell = re.findall(r"^  ((?:cd|ls|cat) .*?)(?:  .*)?$", readme, re.M)
    out = subprocess.run(["bash", "-euc", "\n".join(shell)], stdout=subprocess.PIPE, check=True)
    contains(out.stdout.decode(), "dataset.json", '"format": "libsvm"')


def attributes(file):
    return {n.removeprefix("user.epochfs."): os.getxattr(file, n).decode()
            for n in os.listxattr(file)}


def check_xattrs(name, data):
    found = attributes(path(name, "samples/svm/000004.svm"))
    equal((found["key"], found["index"]), ("000004", "4"), "attributes of a sample")
    start, length = map(int, re.fullmatch(rf"{name}:(\d+)\+(\d+)", found["source"]).groups())
    equal(data[start:start + length].rstrip(b"\n"), data.splitlines()[4], "where a sample stands")
    found = attributes(path("all/batches/batch=all/npz/000000.npz"))
    equal((found["index"], found["source"]), (",".join(map(str, range(20))), "a.svm,b.txt,c"),
          "attributes of a batch")
    found = attributes(path(name, "batches/batch=3/npy/000001.x.npy"))
    equal((found["index"], found["dtype"], found["shape"]), ("3,4,5", "<f4", "(3, 33)"), "of x")


def check_taken():
    """A file named `all`: both datasets exist."""
    files = fresh({"all": rows(3), "other": rows(4)})
    with mounted():
        found = {n: len(os.listdir(path(n, "samples/svm"))) for n in names_of()
                 if n.startswith("all")}
        equal((sorted(found), sorted(found.values())), (["all", "all~2"], [3, 7]), "the name `all`")
        check("other", svm_model.Dataset([("other", files["other"])]))


def check_columns():
    """Columns that differ: no `all`, but everything else."""
    for columns, word in (("w", "weight"), ("q", "qid")):
        files = fresh({"a.txt": rows(5), "b.txt": rows(5), "odd.txt": rows(5, columns)})
        with mounted():
            equal(names_of("all"), ["ERROR.txt"], "files with other columns are not joined")
            contains(text(path("all/ERROR.txt")), "odd.txt", word)
            for name, data in files.items():
                check(name, svm_model.Dataset([(name, data)]))
        contains(run("info", SOURCE), "odd.txt", word)


# ---- lists ----

def list_of(*elements):
    return ";".join(e if e.startswith("/") else f"{SOURCE}/{e}" for e in elements)


def check_list(source, files, names, **kwargs):
    """The files of the list in that order, each a dataset, and `all`."""
    want = [name for name in names if files[name]]
    with mounted(source, **kwargs):
        ds = svm_model.Dataset([(name, files[name]) for name in want])
        equal(len(os.listdir(path("all/samples/svm"))), len(ds.rows), source)
        check("all", ds)
        page = json.loads(text(path("all/dataset.json")))
        equal([re.sub(r"\.(gz|xz)$", "", os.path.basename(s["file"])) for s in page["sources"]],
              [os.path.basename(name) for name in want], source)
        each = sorted(os.path.relpath(f, MOUNTPOINT) for f, folders, _ in os.walk(MOUNTPOINT)
                      if "samples" in folders)
        equal(len(each), len(want) + 1, f"{source}: {each}")
        for name in want:
            [found] = [f for f in each if os.path.basename(f) == os.path.basename(name)]
            check(found, svm_model.Dataset([(name, files[name])]))


def check_lists():
    files = fresh({"b.txt": rows(4), "a.txt": rows(5), "c;d.txt": rows(3), "none.txt": b"",
                   "e[1].txt": rows(2), "e1.txt": rows(6),
                   **{f"more/part-{i}": rows(i % 3 + 1) for i in range(12)},
                   "more/other": rows(2), "more/deeper/q": rows(2)})
    numbers = sorted(f"more/part-{i}" for i in range(12))
    for elements, names in (
            (["b.txt", "a.txt"], ["b.txt", "a.txt"]),
            (["b.txt", "none.txt", "a.txt"], ["b.txt", "a.txt"]),
            (["b.txt", "more/part-.*"], ["b.txt", *numbers]),
            (["more/part-[3-5]", "a.txt"], ["more/part-3", "more/part-4", "more/part-5", "a.txt"]),
            (["more/part-1", "more/part-0"], ["more/part-1", "more/part-0"]),
            (["more/(other|part-1)", "a.txt"], ["more/other", "more/part-1", "a.txt"]),
            (["a.txt", "more"], ["a.txt", "more/other", *numbers]),
            (["a.txt", "more/"], ["a.txt", "more/other", *numbers]),
            (["e[1].txt", "a.txt"], ["e[1].txt", "a.txt"]),
            (["e[0-9].txt", "a.txt"], ["e1.txt", "a.txt"])):
        check_list(list_of(*elements), files, names)
    odd = f"{SOURCE}/c;d.txt"  # a file with that name is no list
    with mounted(odd):
        check("c;d.txt", svm_model.Dataset([("c;d.txt", files["c;d.txt"])]))
    with mounted():
        check("c;d.txt", svm_model.Dataset([("c;d.txt", files["c;d.txt"])]))
    os.chdir(SOURCE)
    check_list("b.txt;more/part-1;a.txt", files, ["b.txt", "more/part-1", "a.txt"])
    run("mount", "b.txt;more/part-1", MOUNTPOINT)  # in the background it has left the folder
    check("all", svm_model.Dataset([(name, files[name]) for name in ("b.txt", "more/part-1")]))
    run("umount", MOUNTPOINT)
    os.chdir("/")
    check_same_names()
    for elements, words in ((["a.txt", "missing.txt"], ["missing.txt"]),
                            (["a.txt", "more/nothing-.*"], ["nothing-"]),
                            (["a.txt", "more/part-["], ["part-["]),
                            (["missing/x", "a.txt"], ["missing"])):
        message = run("mount", list_of(*elements), MOUNTPOINT, code=2)
        contains(message, *words)
        equal(message.count("\n"), 1, f"one message: {message!r}")


def check_same_names():
    """Files of the same name from two folders, and a file twice."""
    files = {name: rows(3) for name in ("x/data", "y/data")}
    for name, data in files.items():
        write(name, data)
    for names in (["x/data", "y/data"], ["y/data", "x/data"], ["x/data", "y/data", "x/data"]):
        with mounted(list_of(*names)):
            check("all", svm_model.Dataset([(f"{i}", files[n]) for i, n in enumerate(names)]))
            found = {n: content(path(n, "samples/svm/000001.svm")) for n in names_of()
                     if n.startswith("data")}
            equal(sorted(found.values()),
                  sorted(files[n].splitlines(keepends=True)[1] for n in names), f"{found}")
            kept = [content(path("all/source", n)) for n in names_of("all/source")]
            equal(sorted(set(kept)), sorted(files.values()), "source/ of `all`")


# ---- packed ----

def check_packed():
    plain = {"a.txt": rows(6), "b.txt": rows(60), "c.txt": rows(5)}
    fresh({"a.txt.gz": gzip.compress(plain["a.txt"]), "b.txt.xz": lzma.compress(plain["b.txt"]),
           "c.txt": plain["c.txt"]})
    with mounted():
        equal(names_of(), sorted([*plain, "all", "README.txt", ".epochfs"]), "names without .gz")
        for name, data in plain.items():
            check(name, svm_model.Dataset([(name, data)]))
            equal(content(path(name, "source", name)), data, f"{name}: unpacked")
        check("all", svm_model.Dataset(list(plain.items())))
    run("info", "--check", SOURCE)
    check_list(list_of("c.txt", "b.txt.xz", "a.txt.gz"), plain, ["c.txt", "b.txt", "a.txt"])


# ---- side files ----

def numbers(array, end=b"\n"):
    return b"".join(b" ".join(b"%.9g" % v for v in np.atleast_1d(row)) + end for row in array)


def f4(*shape):
    return rng.normal(size=shape).astype(np.float32)


def check_side(files, name, fields, data=None):
    """The dataset of the file name, the only one, with these fields besides its labels. data: the
    file's content, if it is packed."""
    fresh(files)
    with mounted():
        equal(names_of(), sorted([name, "README.txt", ".epochfs"]), f"{sorted(files)}: the top")
        ds = svm_model.Dataset([(name, data or files[name])])
        ds.fields = {"label": ds.fields["label"], **fields}
        check(name, ds)
        page = json.loads(text(path(name, "dataset.json")))
        equal(sorted(s["file"] for s in page["sources"]), sorted(files), "sources")
        check_page(page, name, ds, [s["file"] for s in page["sources"]])
    run("info", "--check", SOURCE)
    if name in files:  # Side files are found next to a single file too.
        for source in (f"{SOURCE}/{name}", f"{SOURCE}/{name};"):
            with mounted(source):
                check(name, ds)


def check_side_files():
    n = 11
    data = rows(n)
    groups = np.array([3, 1, 0, 5, 2])
    qid = np.repeat(np.arange(5), groups).astype(np.int64)
    weight, margin, per_group = f4(n), f4(n), f4(5)
    check_side({"t": data, "t.weight": numbers(weight)}, "t", {"weight": weight})
    check_side({"t": data, "t.weight": numbers(weight, b" ")}, "t", {"weight": weight})
    check_side({"t": data, "t.weight": numbers(weight, b"\r\n").strip()}, "t", {"weight": weight})
    for suffix in ("group", "query"):
        check_side({"t": data, f"t.{suffix}": numbers(groups)}, "t", {"qid": qid})
    for suffix in ("base_margin", "init"):
        check_side({"t": data, f"t.{suffix}": numbers(margin)}, "t", {"base_margin": margin})
        wide = f4(n, 3)
        check_side({"t": data, f"t.{suffix}": numbers(wide)}, "t", {"base_margin": wide})
    check_side({"t": data, "t.group": numbers(groups), "t.weight": numbers(per_group),
                "t.base_margin": numbers(margin)}, "t",
               {"qid": qid, "weight": per_group[qid], "base_margin": margin})
    # They override the columns of the rows.
    check_side({"t": rows(n, "wq"), "t.group": numbers(groups), "t.weight": numbers(per_group)},
               "t", {"qid": qid, "weight": per_group[qid]})


    packed = {"t.gz": gzip.compress(data), "t.weight": numbers(weight),
              "t.query.gz": gzip.compress(numbers(groups))}
    check_side(packed, "t", {"weight": weight, "qid": qid}, data)


def check_joined_side_files():
    """Fields of joined files: groups stay groups, K must be the same."""
    data = [rows(5), rows(4)]
    margin = [f4(5, 2), f4(4, 2)]
    fresh({"a": data[0], "a.group": b"5\n", "a.init": numbers(margin[0]),
           "b": data[1], "b.group": b"1 3\n", "b.init": numbers(margin[1])})
    with mounted():
        qid = np.load(path("all/batches/batch=all/npy/000000.qid.npy"))
        equal(np.flatnonzero(np.diff(qid)).tolist(), [4, 5], f"ends of groups in {qid}")
        ds = svm_model.Dataset([("a", data[0]), ("b", data[1])])
        ds.fields = {"label": ds.fields["label"], "qid": qid, "base_margin": np.vstack(margin)}
        check("all", ds)
    for wide, narrow in (("a", "b"), ("b", "a")):
        fresh({"a": rows(5), "b": rows(5), f"{wide}.init": numbers(f4(5, 40)),
               f"{narrow}.init": numbers(f4(5, 2))})
        with mounted():
            folder = path("all/batches/batch=all/npy")
            expect_error(errno.EIO, content, folder, "000000.base_margin.npy")
            equal(len(np.load(f"{folder}/000000.label.npy")), 10, "labels")
    fresh({"a": rows(5), "b": rows(5), "a.weight": numbers(f4(5))})
    with mounted():
        contains(text(path("all/ERROR.txt")), "a", "b", "weight")
        np.load(path("a/batches/batch=all/npz/000000.npz"))["weight"]


def check_side_errors():
    """A side file that does not fit: its fields fail, with the reason; the rest works."""
    n = 11
    good = b"1\n" * n
    for suffix, bad, field in (
            ("weight", b"1\n" * (n - 1), "weight"), ("weight", b"1\n" * (n + 1), "weight"),
            ("weight", b"", "weight"), ("weight", b"1\n" * (n - 1) + b"one\n", "weight"),
            ("group", b"5\n5\n", "qid"), ("group", b"6\n6\n", "qid"), ("query", b"-1\n12\n", "qid"),
            ("group", b"5.5\n5.5\n", "qid"), ("group", b"99999999999999999999\n", "qid"),
            ("init", good + b"1\n", "base_margin"), ("base_margin", b"1\n" * 5, "base_margin")):
        files = fresh({"t": rows(n), f"t.{suffix}": bad, "other": rows(4)})
        open(LOG, "w").close()
        with mounted():
            for file in ("samples/npy/000003", "batches/batch=4/npy/000000"):
                expect_error(errno.EIO, content, path("t", f"{file}.{field}.npy"))
            ds = svm_model.Dataset([("t", files["t"])])
            for sample in (0, n - 1):
                key = ds.key(sample)
                svm_model.check_svm(path("t/samples/svm", f"{key}.svm"), ds, [sample], True)
                svm_model.check_fields(path("t/samples"), key, ds, [sample], True)
            folder = path("t/batches/batch=4,seed=1/epoch=0")
            index = np.load(f"{folder}/npy/000001.index.npy").tolist()
            svm_model.check_svm(f"{folder}/svm/000001.svm", ds, index, False)
            svm_model.check_fields(folder, "000001", ds, index, False)
            check("other", svm_model.Dataset([("other", files["other"])]))
        contains(log_text(), f"t.{suffix}")
        contains(run("info", "--check", SOURCE, code=2), f"t.{suffix}")


# ---- other files, and bad rows ----

def check_mixed():
    """A folder with IDX files, libsvm files, and other text."""
    good = {"train.txt": rows(9), "test.txt": rows(5)}
    bad = {"README": b"# The data\n\nThis folder holds the data of our paper.\n",
           "table.csv": b"id,label,colour\n1,2,red\n2,3,blue\n", "table.tsv": b"a\tb\n1\tred\n",
           "meta.json": b'{"rows": 14,\n "files": ["train.txt", "test.txt"]}\n',
           "page.html": b"<html><body>1 2:3</body></html>\n",
           "script.py": b"import sys\nprint(1)\n",
           "binary": bytes(range(1, 256)) * 20, "comments": b"# only\n\n# comments\n",
           "blank": b"\n\n \n\t\n", "version": b"version 1.2.3\n"}
    fresh({**good, **bad, "nothing.txt": b""})
    images, labels = small(8)
    with mounted():
        for name in bad:
            equal(os.path.exists(path(name, "samples")), False, f"{name} is no dataset")
        for name in set(bad) - {"comments", "blank"}:
            equal(names_of(name), ["ERROR.txt"], name)
            message = text(path(name, "ERROR.txt"))
            contains(message, name)
            equal((message.count("\n"), message[-1]), (1, "\n"), f"one line: {message!r}")
        ds = model.Dataset(path("train"), {"image": images, "label": labels})
        model.check_sample(ds, 7)
        for name, data in good.items():
            check(name, svm_model.Dataset([(name, data)]))
        check("all", svm_model.Dataset([(name, good[name]) for name in sorted(good)]))
    for name in bad:
        run("mount", f"{SOURCE}/{name}", MOUNTPOINT, code=2)
    run("mount", f"{SOURCE}/nothing.txt", MOUNTPOINT, code=2)


def check_first_lines():
    """Files with first rows that come late, or are long, or few."""
    pairs = b"".join(b" %d:1" % i for i in range(20000))
    files = fresh({"comments": b"# foo bar 1:2\n" * 100 + rows(3),
                   "blanks": b"\r\n" * 100 + rows(3), "long": b"1" + pairs + b"\n" + rows(2),
                   "one": b"1 2:3", "label": b"7\n-1\n",
                   "first-bad": b"1 0:\n" + rows(20, "wq"), "no-values": b"1 2 3\n2 5 6 7\n",
                   "lists": b"1,2 3:1\n 4:1\n2 5:1\n", "features": b" 1:2 3:4\n 1:5\n"})
    with mounted():
        for name, data in files.items():
            ds = svm_model.Dataset([(name, data)])
            n = len(ds.rows)
            for sample in range(min(3, n)):
                svm_model.check_sample(ds, path(name), sample)
            svm_model.check_batch(ds, path(name, "batches/batch=all"), 0, list(range(n)))
            equal("weight" in ds.fields, name == "first-bad", f"{name}: the first good row decides")


def bad_places(*arguments, code):
    """The file:line:column of the lines of info --check."""
    return re.findall(r"([\w.]+):(\d+):(\d+)", run("info", "--check", *arguments, code=code))


def check_bad_rows():
    good = rows(3000, end=b"\r\n").splitlines(keepends=True)
    lines = list(good)
    want = []
    for line, row, column in ((0, b"1 0:\n", None), (1, b"1 0:1 x\n", 7), (100, b"x 0:1\n", 1),
                              (1500, b"1 0:1 4294967296:1\n", 7), (1501, b"# fine\n", None),
                              (2999, b"1 0:1 1:1 -1:2", 11)):
        lines[line] = row
        if not row.startswith(b"#"):
            want.append((line + 1, column))
    files = fresh({"bad.txt": b"".join(lines), "good.txt": b"".join(good)})
    found = [p for p in bad_places(SOURCE, code=2) if p[0] == "bad.txt"]
    places = sorted({(int(line), int(column)) for _, line, column in found})
    equal([p[0] for p in places], [w[0] for w in want], "lines of bad rows, each once")
    for (line, column), (_, wanted) in zip(places, want):
        equal(column, column if wanted is None else wanted, f"column of the bad row in line {line}")
    equal({name for name, _, _ in bad_places(SOURCE, code=2)}, {"bad.txt"}, "files with bad rows")
    run("info", "--check", f"{SOURCE}/good.txt")
    run("info", SOURCE)  # without --check it does not matter
    equal(bad_places("-o", "bad_rows=skip", f"{SOURCE}/good.txt", code=0), [], "a good file")
    with mounted():
        ds = svm_model.Dataset([("bad.txt", files["bad.txt"])])
        equal(len(ds.good), len(ds.rows) - len(want), "the model finds the same bad rows")
        for sample in (0, 1, 2, 99, 100, 1499, 1500, 1501, 2998):
            svm_model.check_sample(ds, path("bad.txt"), sample)
        svm_model.check_batch(ds, path("bad.txt/batches/batch=5"), 3, list(range(15, 20)))
        svm_model.check_batch(ds, path("bad.txt/batches/batch=5"), 300, list(range(1500, 1505)))
        both = svm_model.Dataset([(name, files[name]) for name in sorted(files)])
        svm_model.check_sample(both, path("all"), len(ds.rows) - 1)
        svm_model.check_sample(both, path("all"), len(ds.rows))
    contains(log_text(), "bad.txt:1:")
    with mounted(SOURCE, "bad_rows=skip"):
        check("bad.txt", svm_model.Dataset([("bad.txt", files["bad.txt"])], skip=True))
        check("all", svm_model.Dataset([(n, files[n]) for n in sorted(files)], skip=True), [2994])


# ---- options ----

def check_options():
    files = fresh({"one.txt": rows(6, base=1), "zero.txt": b"1 0:1\n" + rows(5)})
    for option, word in (("index_base=2", "index_base"), ("index_base=", "index_base"),
                         ("index_base", "index_base"), ("index_base=AUTO", "auto"),
                         ("bad_rows=", "bad_rows"), ("bad_rows=drop", "skip"),
                         ("bad_rows", "bad_rows"), ("index_bas=1", "is it 'index_base'?"),
                         ("bad_row=skip", "is it 'on_error'?")):
        for command in (("mount", SOURCE, MOUNTPOINT), ("info", SOURCE)):
            message = run(command[0], "-o", option, *command[1:], code=1)
            contains(message, word)
            equal(message.count("\n"), 1, f"one message: {message!r}")
    contains(run("mount", "--help", "all"), "index_base=", "on_error=")
    for base in ("asis", "1", "auto"):
        with mounted(SOURCE, f"index_base={base}"):
            for name, data in files.items():
                check(name, svm_model.Dataset([(name, data)], base))
            names = sorted(files)
            check("all", svm_model.Dataset([(name, files[name]) for name in names], base))
    equal(len(bad_places("-o", "index_base=1", f"{SOURCE}/zero.txt", code=2)) > 0, True,
          "index 0 with index_base=1 is a bad row")


check_folders()
check_taken()
check_columns()
check_lists()
check_packed()
check_side_files()
check_joined_side_files()
check_side_errors()
check_mixed()
check_first_lines()
check_bad_rows()
check_options()
