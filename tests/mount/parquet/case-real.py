#!/usr/bin/python3
# needs: data:parquet
"""Files of parquet-testing, of DuckDB, of parquet-rs in the Hub's way, and of one fault each, against what other
readers found in them, where $SHARED_DATA has both."""

import base64
import errno
import hashlib
import io
import json
import math
import os

import numpy as np

from lib import content, contains, equal, expect_error, mounted, path, text

SHARED = os.environ.get("SHARED_DATA", "/nowhere")

# Rows or files that cannot be read, by decision or because no value is right, and what is said of them.
REFUSED = {"tables/types_brotli": "Brotli", "testing-refused/hadoop_lz4_compressed": "LZ4 of Hadoop",
           "testing-refused/PARQUET-1481": "a type from 0 to 7", "testing-refused/ARROW-RS-GH-6229-DICTHEADER": "",
           "written/no_columns": "no columns"}
EIO = {"pages/lists_v1_snappy", "testing/list_columns",  # nulls among integers of a list
       "testing/int96_from_spark",  # a time that int64 has not
       "written/bit_packed_levels_v1", "testing-refused/ARROW-GH-45185",
       "testing-refused/rle-dict-uncompressed-corrupt-checksum"}
IGNORED = {"event", "var"}  # VARIANT
NAMES = {"": "_", "a/b": "a%2Fb", "%": "%25", ".hidden": "%2Ehidden", "index": "index_int32", "key": "key_int32"}


def is_bytes(want):
    return isinstance(want, dict) and set(want) in ({"hex"}, {"sha256", "bytes"})


def number(v):
    return float(v) if isinstance(v, str) else v


def same(want, got):
    """Is what the mount has (of JSON, or of arrays as lists) the expected value?"""
    if is_bytes(want):
        got = base64.b64decode(got) if isinstance(got, str) else bytes(got)
        return got.hex() == want.get("hex") or hashlib.sha256(got).hexdigest() == want.get("sha256")
    if isinstance(got, dict) and isinstance(want, list):
        want = {k: v for k, v in want}
    if isinstance(want, dict):
        return want.keys() == got.keys() and all(same(want[k], got[k]) for k in want)
    if isinstance(want, list):
        return len(want) == len(got) and all(map(same, want, got))
    if want is None or (isinstance(want, str) and isinstance(got, str)):
        return want == got or (want is None and got != got)
    want = number(want)
    return want == got or (want != want and got != got) or (isinstance(want, float) and np.float32(want) == np.float32(got))


class Batch:
    """All samples of a dataset as one batch."""

    def __init__(self, at, n):
        self.npz = dict(np.load(io.BytesIO(content(path(at, f"batches/batch={n}/npz/000000.npz")))))

    def has(self, field):
        return field in self.npz

    def value(self, field, i):
        """None: a hole, or an empty value; bytes; a value of JSON."""
        data = self.npz[field]
        if field + "_offsets" in self.npz:
            a, b = self.npz[field + "_offsets"][i:i + 2]
            return data[a:b]
        if data.dtype.kind == "S":
            return data[i]
        return data[i].tolist()

    def joined(self, field, i):
        """A list of bytes."""
        at, out, data = 0, [], self.value(field, i)
        for size in self.value(field + "_sizes", i):
            out.append(bytes(data[at:at + size]))
            at += size
        return out

    def column(self, field, dtype):
        """(values with 0 for holes, 1 for each that is none)"""
        if field + "_offsets" not in self.npz:
            return self.npz[field].astype(dtype), None
        lengths = np.diff(self.npz[field + "_offsets"])
        out = np.zeros(len(lengths), dtype)
        out[lengths > 0] = self.npz[field]
        return out, lengths.astype(np.uint8)


def fits(want, batch, field, i):
    if batch.has(field + "_sizes"):
        pieces = [v["bytes"] if isinstance(v, dict) and "path" in v else v for v in want or []]
        got = batch.joined(field, i)
        return len(got) == len(pieces) and all(not g if w is None else same(w, g) for w, g in zip(pieces, got))
    got = batch.value(field, i)
    if isinstance(want, dict) and set(want) == {"bytes", "path"}:
        want = want["bytes"]
    if want is None:
        return got == -1 or got != got if isinstance(got, (int, float)) else len(got) == 0
    if isinstance(got, bytes) and isinstance(want, str):
        return got.decode() == want
    if isinstance(got, bytes):
        return same(want, got if is_bytes(want) else json.loads(got))
    if isinstance(got, np.ndarray) and not isinstance(want, (list, dict)):
        return len(got) == 1 and same(want, got[0].item())
    return same(want, got.tolist() if isinstance(got, np.ndarray) and isinstance(want, list) else got)


def check_column(name, column, batch, n):
    field = NAMES.get(column["name"], column["name"])
    if column.get("group") == "struct" and not batch.has(field):
        for i, row in enumerate(column["values"]):
            for member, value in (row or {}).items():
                if batch.has(f"{field}.{member}"):
                    equal(fits(value, batch, f"{field}.{member}", i), True, f"{name}: {field}.{member} of {i}")
        return
    equal(batch.has(field), True, f"{name} has {field}")
    for i, value in [*enumerate(column.get("values", column.get("first", []))),
                     *enumerate(column.get("last", []), n - len(column.get("last", [])))]:
        equal(fits(value, batch, field, i), True, f"{name}: {field} of {i}: expected {value}")
    if "sha256_le" in column and not (column["nulls"] and (column["dtype"][0] == "f" or field == "label")):
        values, valid = batch.column(field, np.dtype(column["dtype"]))
        equal(hashlib.sha256(values.tobytes()).hexdigest(), column["sha256_le"], f"{name}: {field}")
        if column["nulls"]:
            equal(hashlib.sha256(valid.tobytes()).hexdigest(), column["sha256_valid"], f"{name}: nulls of {field}")


def check_file(entry):
    name = entry["file"].removeprefix("parquet/").removesuffix(".parquet")
    at = path(f"{name}.parquet")
    if name in REFUSED:
        contains(text(at, "ERROR.txt"), REFUSED[name])
        return
    about = json.loads(text(at, "dataset.json"))
    n = entry.get("rows", about["samples"])
    equal(about["samples"], n, name)
    if name in EIO:
        expect_error(errno.EIO, Batch, at, n)
    elif n and "columns" in entry:
        batch = Batch(at, n)
        for column in entry["columns"]:
            if column["name"] not in IGNORED:
                check_column(name, column, batch, n)


def check_bad():
    """The table of files with one fault: the last cell is what is wanted."""
    for line in text(SHARED, "EXPECTED-hub.md").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 7 or not os.path.exists(f"{SHARED}/parquet/bad/{cells[1]}.parquet"):
            continue
        at, want = path(f"bad/{cells[1]}.parquet"), cells[5]
        if want.startswith(("file", "not recognised")):
            contains(text(at, "ERROR.txt"), cells[1])
            continue
        results = set()
        for i in range(json.loads(text(at, "dataset.json"))["samples"]):
            try:
                results.add(len(content(at, f"samples/npz/{i:06d}.npz")) > 0)
            except OSError as e:
                results.add(e.errno)
        equal(errno.EIO in results, want.startswith("EIO"), f"{cells[1]}: {want}: {results}") \
            if not want.startswith("OK or") else None


with mounted(f"{SHARED}/parquet"):
    with open(f"{SHARED}/hub-expected/parquet.json", encoding="utf-8") as f:
        for entry in json.load(f):
            check_file(entry)
    check_bad()
    equal(math.isnan(Batch(path("hf-images/data/test-00000-of-00001.parquet"), 6).npz["weight"][0]), True)
