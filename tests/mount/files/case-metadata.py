#!/usr/bin/python3
"""Tables of metadata next to pictures (F-15, F-16, F-17): a row is a sample; its columns are fields; files that are
not there, or not below the folder; tables that are wrong; CSV as RFC 4180 has it."""

import csv
import errno
import io
import json
import os
import tarfile

import numpy as np

from lib import SOURCE, contains, content, equal, expect_error, mounted, path, run, text, write

NAMES = [f"{i:03d}.{'png' if i % 3 == 2 else 'jpg'}" for i in range(20)]


def data(name):
    return name.encode() * 50


def rows():
    for i, name in enumerate(NAMES):
        yield {"file_name": name, "caption": f'picture "{i}",\nof a caf\u00e9 ' + "x" * i, "label": i % 4 - 1,
               "score": i if i % 2 else i + 0.25, "mask_file_name": f"masks/{i:03d}.png"}


def make(root):
    for name in NAMES:
        write(f"{root}/{name}", data(name))
        write(f"{root}/masks/{name[:3]}.png", b"mask" + data(name))
    write(f"{root}/loose.jpg", b"in no row")


def write_json(root, all_rows):
    write(f"{root}/metadata.jsonl", "".join(json.dumps(r) + "\n" for r in all_rows).encode())


def write_csv(root, all_rows, **options):
    out = io.StringIO()
    table = csv.DictWriter(out, ["file_name", "caption", "label", "score", "mask_file_name"], **options)
    table.writeheader()
    table.writerows(all_rows)
    write(f"{root}/metadata.csv", out.getvalue().encode())


def check(name):
    about = json.loads(text(path(name, "dataset.json")))
    equal((about["samples"], about["layout"], about["files_without_row"]), (20, "metadata", 1), name)
    if "classes" in about:
        raise AssertionError("labels come from the table, not from folders")
    want = {n: data(n) for n in NAMES} | {f"{n[:3]}.mask.png": b"mask" + data(n) for n in NAMES}
    equal(sorted(os.listdir(path(name, "samples/raw"))), sorted(want), "names")
    for file, bytes_ in want.items():
        equal(content(path(name, "samples/raw", file)), bytes_, file)
    equal(os.getxattr(path(name, "samples/raw/004.mask.png"), "user.epochfs.source").decode(),
          f"{name}/masks/004.png:0+{len(want['004.mask.png'])}", "source")
    batch = np.load(path(name, "batches/batch=all/npz/000000.npz"))
    all_rows = list(rows())
    equal((batch["label"].dtype.str, batch["label"].tolist()), ("<i8", [r["label"] for r in all_rows]), "label")
    equal((batch["score"].dtype.str, batch["score"].tolist()), ("<f8", [r["score"] for r in all_rows]), "score")
    equal([c.decode() for c in batch["caption"].tolist()] if batch["caption"].dtype.kind == "S"
          else batch["caption"].tolist(), [r["caption"] for r in all_rows], "caption")
    for i in (0, 7, 19):
        equal(content(path(name, f"samples/txt/{i:03d}.caption.txt")), all_rows[i]["caption"].encode() + b"\n", "caption")
        equal(np.load(path(name, f"samples/npy/{i:03d}.label.npy")).tolist(), all_rows[i]["label"], "label.npy")
    shuffled = np.load(path(name, "batches/batch=8,seed=3/epoch=0/npz/000001.npz"))
    with tarfile.open(path(name, "batches/batch=8,seed=3/epoch=0/tar/000001.tar")) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}
    for k, i in enumerate(shuffled["index"].tolist()):
        equal(int(shuffled["label"][k]), all_rows[i]["label"], "label, shuffled")
        contains(" ".join(members), f"{i:03d}.mask.png")


def refused(what, file, bytes_, *words):
    root = f"bad-{what}"
    for i in range(3):
        write(f"{root}/set/{i}.jpg", b"jpg")
    write(f"{root}/set/{file}", bytes_)
    found = run("info", f"{SOURCE}/{root}", code=2)
    contains(found, *words)


make("json/set")
write_json("json/set", rows())
make("csv/set")
write_csv("csv/set", rows())
make("mac/set")
write("mac/set/metadata.csv", b"\xef\xbb\xbf" + b"file_name,code,n\n001.jpg,007,1\n\n004.jpg,8.5,\n" + b"000.jpg,,2")
for where in ("json", "csv"):
    for _ in range(2):  # the index is made, then kept
        with mounted(f"{SOURCE}/{where}"):
            check("set")
with mounted(f"{SOURCE}/mac"):
    batch = np.load(path("set/batches/batch=all/npz/000000.npz"))
    equal(batch["n"].tolist(), [1, 2], "holes")
    equal(sorted(os.listdir(path("set/samples/txt"))), ["001.code.txt", "004.code.txt"], "zeros in front are text")
    equal(content(path("set/samples/txt/001.code.txt")), b"007\n", "text")

# Rows whose file is missing, or elsewhere.
make("missing/set")
outside = ["gone.jpg", "/etc/passwd", "../set/000.jpg", "masks/../../set/000.jpg", "https://x/000.jpg"]
write_json("missing/set", list(rows()) + [{"file_name": name, "label": 9} for name in outside])
with mounted(f"{SOURCE}/missing"):
    about = json.loads(text(path("set/dataset.json")))
    equal((about["samples"], about["rows_without_file"], about["rows_refused"]), (25, 1, 4), "counts")
    expect_error((errno.EIO, errno.ENOENT, errno.EBADMSG), content, path("set/samples/raw/gone.jpg"))
    equal(content(path("set/samples/raw/000.jpg")), data("000.jpg"), "others")
    equal(np.load(path("set/samples/npy/gone.label.npy")).tolist(), 9, "its label")
contains(run("info", "--check", f"{SOURCE}/missing", code=2), ": set/metadata.jsonl: row 20 (gone)", "there is no such file",
         "expected a path below")

# Tables that are wrong.
refused("json", "metadata.jsonl", b'{"file_name": "0.jpg"}\n{"file_name": \n', "set/metadata.jsonl, line 2: no JSON at column ")
refused("list", "metadata.jsonl", b'[1]\n', "metadata.jsonl, line 1", "expected a JSON object")
refused("long", "metadata.jsonl", b'{"file_name": "' + b"x" * (1 << 20) + b'"}\n', "line 1: expected at most 1048576 bytes")
refused("names", "metadata.jsonl", b'{"name": "0.jpg"}\n', "set/metadata.jsonl: expected a column file_name")
refused("gone", "metadata.jsonl", b'{"file_name": "a.jpg"}\n{"file_name": "../b.jpg"}\n', "set/metadata.jsonl: expected",
        "a row whose file exists, got none in 2 rows")
refused("fields", "metadata.csv", b"file_name,a\n0.jpg,1\n1.jpg\n", "metadata.csv, line 3: expected 2 fields", "got 1")
refused("quote", "metadata.csv", b'file_name,a\n0.jpg,"1\n', "line 2", "a quote that does not end")
refused("after", "metadata.csv", b'file_name,a\n0.jpg,"1"x\n', "expected a comma after a quote, got 'x'")
refused("twice", "metadata.csv", b"file_name,a,a\n0.jpg,1,2\n", "column 3: expected a name that no other has")
write("bad-both/set/metadata.csv", b"file_name\n0.jpg\n")
refused("both", "metadata.jsonl", b'{"file_name": "0.jpg"}\n', "metadata.jsonl and metadata.csv")
