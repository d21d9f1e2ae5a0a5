#!/usr/bin/python3
# needs: data:tfrecord
"""Real TFRecord files: each value of each record against a reader in Python, and the first and last
record against the checksums that were noted when the files were found."""

import gzip
import hashlib
import io
import os
import re
import zlib

import numpy as np

import lib
import tfrecord_model as tf
from lib import CACHE, equal, mounted, path

DATA = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "tfrecord")

FEW = 40  # samples that are also opened one by one


def content(*parts):
    return lib.content(path(*parts))


def unpacked(data):
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    return zlib.decompress(data) if data[:1] == b"x" and int.from_bytes(data[:2], "big") % 31 == 0 else data


def expected():
    """{file: [(record, bytes, start of the SHA-256)]}"""
    with open(os.path.join(os.path.dirname(DATA), "EXPECTED-collections.md")) as f:
        text = f.read()
    text = text[text.index("## TFRecord"):text.index("## RecordIO")]
    found = {}
    for line in text.splitlines():
        if m := re.match(r"(\S+): \d+ B, \w+, unpacked \d+, records (\d+)", line):
            name, total = m[1], int(m[2])
            found[name] = [total]
        elif m := re.match(r"\s+record (\d+) at \d+, (\d+) B, sha (\w+)", line):
            found[name].append((int(m[1]), int(m[2]), m[3]))
    return found


def per_sample(npz, name, n):
    """A feature of a batch of all as the values of each sample."""
    array = npz[name]
    if f"{name}_offsets" not in npz.files:
        return [np.atleast_1d(array[i]).tolist() for i in range(n)]
    at = npz[f"{name}_offsets"]
    return [array[at[i]:at[i + 1]].tolist() for i in range(n)]


def check_values(npz, records, file):
    """Every feature of every record; returns their names."""
    n, names = len(records), set()
    parsed = [tf.read_example(r) for r in records]
    for which, is_list in ((0, False), (1, True)):
        features = sorted({name for p in parsed for name in p[which]})
        for feature in features:
            steps = [p[which].get(feature, []) if is_list else [p[which].get(feature, (None, []))] for p in parsed]
            kinds = {kind for s in steps for kind, _ in s if kind}
            if not kinds:
                continue
            equal(len(kinds), 1, f"{file}: kinds of {feature}")
            kind, name = kinds.pop(), feature.decode().replace("/", "%2F")
            names.add(name)
            flat = [[v for _, values in s for v in values] for s in steps]
            got = per_sample(npz, name, n)
            if kind == "bytes":
                equal([bytes(g) for g in got], [b"".join(v) for v in flat], f"{file}: {feature}")
                if is_list or any(len(v) > 1 for v in flat):
                    names.add(f"{name}_sizes")
                    equal(per_sample(npz, f"{name}_sizes", n), [[len(x) for x in v] for v in flat], f"{file}: {feature}")
            else:
                equal(got, flat, f"{file}: {feature}")
            if is_list:
                names.add(f"{name}_steps")
                equal(per_sample(npz, f"{name}_steps", n), [[len(v) for _, v in s] for s in steps], f"{file}: {feature}")
    return names


BROKEN = ("made/bad_", "made/truncated", "made/empty.", "made/wire_forms")
EXPECTED = expected()
equal(len(EXPECTED) > 20, True, "files that were noted")
checked = 0
with mounted(DATA, f"cache={CACHE}"):
    for file, (total, *noted) in EXPECTED.items():
        with open(os.path.join(DATA, file), "rb") as f:
            packed = f.read()
        ds = re.sub(r"\.gz$", "", file)
        if total == 0 and not file.startswith("made/bad_data"):
            equal(os.path.exists(path(ds, "samples/raw/000000.record")), False, file)
            continue
        if file.startswith(BROKEN):
            for i, size, sha in noted:
                record = content(ds, f"samples/raw/{i:06}.record")
                equal((len(record), hashlib.sha256(record).hexdigest()[:16]), (size, sha), f"{file}: record {i}")
            continue
        records = tf.records(unpacked(packed), check=len(packed) < 100000)
        equal(len(records), total, f"{file}: records")
        for i, size, sha in noted:
            record = content(ds, f"samples/raw/{i:06}.record")
            equal((len(record), hashlib.sha256(record).hexdigest()[:16]), (size, sha), f"{file}: record {i}")
        for i in range(0, total, max(1, total // FEW)):
            equal(content(ds, f"samples/raw/{i:06}.record"), records[i], f"{file}: record {i}")
        npz = np.load(io.BytesIO(content(ds, "batches/batch=all/npz/000000.npz")))
        if file.startswith(("grain/", "ranking/")):
            equal(sorted(npz.files), ["index", "key", "record", "record_offsets"], file)
            equal(npz["record"].tobytes(), b"".join(records), file)
        else:
            names = check_values(npz, records, file)
            equal({n for n in npz.files if not n.endswith("_offsets")} - {"index", "key"}, names or {"record"},
                  f"{file}: fields")
        checked += 1
    equal(checked >= 17, True, f"files compared: {checked}")
    forms = "made/wire_forms.tfrecord/samples/npy"
    with open(os.path.join(DATA, "made/wire_forms.tfrecord"), "rb") as f:
        parsed = [tf.read_example(r)[0] for r in tf.records(f.read())]
    for i, fields in enumerate(parsed):
        kind, values = fields.get(b"i", (None, None))
        name = f"{forms}/{i:06}.i.npy"
        if kind == "float":
            lib.expect_error(lib.errno.EIO, content, name)
        else:
            equal(np.load(io.BytesIO(content(name))).tolist() if os.path.exists(path(name)) else None, values, name)
    picture = "mindspore/test_tf_file_3_images/train-0000-of-0001.data/samples/raw/000000.image.jpg"
    equal(content(picture)[:3], b"\xff\xd8\xff", "a JPEG")
    equal(content(picture)[-2:], b"\xff\xd9", "all of it")
