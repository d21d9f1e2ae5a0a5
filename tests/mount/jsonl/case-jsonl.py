#!/usr/bin/python3
"""JSON lines, against Python reading the files: every line byte for byte, as samples and as shuffled batches."""

import glob
import gzip
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402

REAL = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "jsonl")


def lines_of(data):
    """The samples of a file: lines with more than spaces, without LF or CR LF. CR, U+2028 and others are data."""
    data = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
    lines = [line[:-1] if line.endswith(b"\r") else line for line in data.split(b"\n")]
    return [line for line in lines if line.strip(b" \t\r")]


def compare(dataset, lines):
    equal(json.loads(text(path(dataset, "dataset.json")))["samples"], len(lines), f"samples of {dataset}")
    for k in {0, len(lines) // 2, len(lines) - 1}:
        equal(content(path(dataset, f"samples/raw/{k:06d}.json")), lines[k], f"{dataset}: line {k}")
        equal(content(path(dataset, f"samples/txt/{k:06d}.txt")), lines[k] + b"\n", f"{dataset}: text of line {k}")
    epoch, seen = path(dataset, "batches/batch=7,seed=3/epoch=2"), []
    for b in range(-(-len(lines) // 7)):
        batch = np.load(f"{epoch}/npz/{b:06d}.npz")
        index = batch["index"].tolist()
        seen += index
        want = b"".join(lines[k] + b"\n" for k in index)
        equal(content(f"{epoch}/jsonl/{b:06d}.jsonl"), want, f"{dataset}: batch {b}")
        equal(content(f"{epoch}/txt/{b:06d}.txt"), want, f"{dataset}: text of batch {b}")
        at = batch["json_offsets"]
        equal([batch["json"][at[i]:at[i + 1]].tobytes() for i in range(len(index))], [lines[k] for k in index], "npz")
    equal(sorted(seen), list(range(len(lines))), f"each line of {dataset} once")


made = {
    "last.jsonl": b'{"a":1}\n{"b":2}',  # J-1
    "blank.jsonl": b'\n \n{"a":1}\n\n\t\r\n{"b":2}\n \n',  # J-2
    "crlf.jsonl": b'{"a":1}\r\n{"b":"x\ry"}\r\n',  # J-3
    "bom.jsonl": b'\xef\xbb\xbf{"a":1}\n{"b":2}\n',  # J-4
    "separators.ndjson": '{"a":"x\u2028y\u0085z\x0b\x0c"}\n{"b":2}\n'.encode(),  # J-5
    "none.jsonl": b'{"a":1}\nthis is no JSON\n[1, 2]\n{"a":NaN}\n{"c":"\xff\x00"}\n',  # J-7, J-8
    "rows.json": b'{"a":1}\n{"b":2}\n',  # J-12
    "long.jsonl": b'{"a":"' + b"x" * 3_000_000 + b'"}\n{"b":"' + b'\\"}{' * 50_000 + b'"}\n',  # J-9
    "packed.jsonl": b'{"a":1}\n{"b":2}\n{"c":3}\n',
}
for name, data in made.items():
    if name == "packed.jsonl":
        write(f"made/{name}.gz", gzip.compress(data))
    else:
        write(f"made/{name}", data)
rows = [[b'{"shard": %d, "row": %d}' % (s, i) for i in range(5 + s)] for s in range(12)]
for s, lines in enumerate(rows):
    write(f"shards/train-{s:05d}-of-00012.jsonl", b"\n".join(lines) + b"\n")  # J-11
write("shards/other.jsonl", b'{"x": 1}\n')

with mounted():
    for name, data in made.items():
        compare(f"made/{name}", lines_of(data))
    compare("shards/train.jsonl", sum(rows, []))
    compare("shards/all", [b'{"x": 1}', *sum(rows, [])])

if os.path.isdir(REAL):
    with mounted(REAL):
        everything = []
        for file in sorted(glob.glob(f"{REAL}/*")):
            with (gzip.open if file.endswith(".gz") else open)(file, "rb") as f:
                lines = lines_of(f.read())
            compare(os.path.basename(file).removesuffix(".gz"), lines)
            everything += lines
        compare("all", everything)

# part=KofN: dmlc's rule: a line that has the cut, or begins there, is before it
data = b"".join(b'{"i": %d, "pad": "%s"}\n' % (i, b"p" * (i * 37 % 91)) for i in range(200))
write("parts/x.jsonl", data)
begins = [0]
for line in data.split(b"\n")[:-1]:
    begins.append(begins[-1] + len(line) + 1)
with mounted(os.path.join(SOURCE, "parts")):
    for parts in (1, 2, 3, 7, 200):
        step, found = -(-len(data) // parts), []
        for k in range(parts):
            low, high = min(k * step, len(data)), min((k + 1) * step, len(data))
            want = [i for i in range(200) if (begins[i] > low or k == 0) and begins[i] <= high]
            plan = path("x.jsonl/batches", f"batch=all,part={k}of{parts}")
            got = np.load(f"{plan}/npy/000000.index.npy").tolist() if os.path.isdir(f"{plan}/npy") and \
                os.listdir(f"{plan}/npy") else []
            found += got
            equal(got, want, f"part {k} of {parts}")
        equal(found, list(range(200)), f"all {parts} parts")

# What is no JSON lines
for name, bad in (("pretty.jsonl", b'{\n  "a": 1\n}\n'), ("array.json", b'[\n{"a": 1},\n{"b": 2}\n]\n'),  # J-6
                  ("config.json", b'{"name": "a description", "files": [1, 2]}\n')):
    write(f"bad/{name}", bad)
write("bad/good.jsonl", b'{"a":1}\n')
with mounted(os.path.join(SOURCE, "bad")):
    for name in ("pretty.jsonl", "array.json", "config.json"):
        contains(text(path(name, "ERROR.txt")), "JSON")
    compare("good.jsonl", [b'{"a":1}'])

# --check says which line is none
contains(run("info", "--check", os.path.join(SOURCE, "made/none.jsonl"), code=2),
         "none.jsonl: line 2 at byte 8: expected an object of JSON")
run("info", "--check", os.path.join(SOURCE, "made/blank.jsonl"))
