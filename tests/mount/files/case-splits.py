#!/usr/bin/python3
"""Tables of metadata in several formats, or with columns that differ (F-17). Two tables in one folder are refused
with both names; parts of a dataset whose columns differ are datasets all the same, and `info` and the log say what
differs, with both names, once."""

import json
import os

from lib import MOUNTPOINT, SOURCE, contains, content, equal, mounted, path, run, write


def part(root, name, rows, pictures=3):
    for i in range(pictures):
        write(f"{root}/{name}/{i}.jpg", b"\xff\xd8\xff\xe0" + b"%d" % i)
    write(f"{root}/{name}/metadata.jsonl", "".join(
        json.dumps({"file_name": f"{i}.jpg"} | {k: v for k, v in rows(i).items() if v is not None}) + "\n"
        for i in range(pictures)).encode())


def notes(root, words):
    """Lines of `info` with those words: each is a note of both parts."""
    lines = sorted(line.strip() for line in run("info", f"{SOURCE}/{root}").splitlines() if words in line)
    equal(lines[::2], lines[1::2], f"{root}: both parts have the note")
    return lines[::2]


def differing(root):
    return notes(root, "fields of")


# Two formats in one folder.
for other, data in ("metadata.csv", b"file_name\n0.jpg\n"), ("metadata.parquet", b"PAR1"):
    root = f"two-{other}"
    part(f"{SOURCE}/{root}", "train", lambda i: {"label": i})
    write(f"{SOURCE}/{root}/train/{other}", data)
    part(f"{SOURCE}/{root}", "val", lambda i: {"label": i})
    found = run("info", f"{SOURCE}/{root}")
    contains(found, f"train: expected one table of metadata, got metadata.jsonl and {other}")
    with mounted(f"{SOURCE}/{root}"):
        contains(content(path("train/dataset.json") if os.path.exists(path("train/dataset.json"))
                         else path("train/ERROR.txt")).decode(), "metadata.jsonl", other)
        equal(json.loads(content(path("val/dataset.json")))["samples"], 3, "the other part goes on")
part(f"{SOURCE}/parquet", "train", lambda i: {})
os.rename(f"{SOURCE}/parquet/train/metadata.jsonl", f"{SOURCE}/parquet/train/metadata.parquet")
contains(run("info", f"{SOURCE}/parquet", code=2), "metadata.parquet: expected metadata.jsonl or metadata.csv")

# Columns that differ.
root = "columns"
part(f"{SOURCE}/{root}", "train", lambda i: {"label": i, "score": i / 4, "text": "x"})
part(f"{SOURCE}/{root}", "val", lambda i: {"label": f"class {i}", "score": i / 4, "more": 1})
part(f"{SOURCE}/{root}", "Test", lambda i: {"label": 2 * i, "score": i / 8, "text": "y"})
part(f"{SOURCE}/{root}", "extra", lambda i: {"label": True})  # no part of it
equal(differing(root), ["note     the fields of Test and val differ: 'label' is int64 in Test and bytes in val, 'text' is in "
                        "Test only, 'more' is in val only",
                        "note     the fields of train and val differ: 'label' is int64 in train and bytes in val, 'text' is in "
                        "train only, 'more' is in val only"], "what differs")
with mounted(f"{SOURCE}/{root}") :
    equal(sorted(f for f in os.listdir(MOUNTPOINT) if f not in (".epochfs", "README.txt")),
          ["Test", "extra", "train", "val"], "all are there")
    equal(content(path("val/samples/txt/1.label.txt")), b"class 1\n", "val")

# Parts that are alike, though their pictures are not: nothing to say. Many differences: some of them.
part(f"{SOURCE}/alike", "train", lambda i: {"label": i})
part(f"{SOURCE}/alike", "val", lambda i: {"label": i})
os.rename(f"{SOURCE}/alike/val/0.jpg", f"{SOURCE}/alike/val/0.png")
write(f"{SOURCE}/alike/val/metadata.jsonl", content(f"{SOURCE}/alike/val/metadata.jsonl").replace(b"0.jpg", b"0.png"))
equal(differing("alike"), [], "pictures of another kind")
part(f"{SOURCE}/many", "train", lambda i: {f"c{k}": k for k in range(9)})
part(f"{SOURCE}/many", "val", lambda i: {})
contains(differing("many")[0], "'c3' is in train only, and 5 others")
# The same of other formats.
write(f"{SOURCE}/csv/train.csv", b"a,b,label\n" + b"1,2,3\n" * 4)
write(f"{SOURCE}/csv/test.csv", b"a,b\n" + b"1,2\n" * 4)
contains(differing("csv")[0], "the fields of test.csv and train.csv differ")

# A number that is another class in the other part; a part that lacks the last classes has the same numbers.
for name in ("train/ant", "train/bee", "train/cat", "val/ant", "val/cat", "test/ant", "test/bee"):
    write(f"{SOURCE}/classes/{name}/{name.replace('/', '-')}.jpg", name.encode())
equal(notes("classes", "classes of"),
      ["note     the classes of test and val differ: label 1 is 'bee' in test and 'cat' in val",
       "note     the classes of train and val differ: label 1 is 'bee' in train and 'cat' in val"], "classes")
with mounted(f"{SOURCE}/classes"):
    for name, n in ("train", 1), ("test", 1), ("val", 2):
        equal(len(json.loads(content(path(f"{name}/dataset.json")))["notes"]), n, f"notes of {name}")

# Folds, and other parts with a number. Directories with other names are no parts of one dataset.
for first, second, differ in (("fold0", "fold1", True), ("split1", "split2", True), ("1", "2", True), ("set_9_a", "set_10_a", True),
                              ("cats", "dogs", False), ("a1", "b2", False)):
    for name in (f"{first}/a", f"{first}/b", f"{second}/b", f"{second}/c"):
        write(f"{SOURCE}/{first}-{second}/{name}/{name.replace('/', '-')}.jpg", name.encode())
    found = json.loads(run("info", "--json", f"{SOURCE}/{first}-{second}"))["datasets"]
    one, two = sorted((first, second))
    equal([d["notes"] for d in found],
          [[f"the classes of {one} and {two} differ: label 0 is '{'a' if one == first else 'b'}' in {one} and '{'b' if one == first else 'a'}' in {two}"]
           if differ else []] * 2, first)
