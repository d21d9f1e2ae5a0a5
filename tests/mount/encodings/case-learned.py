#!/usr/bin/python3
"""A format whose files learn their columns while they are prepared (tests/support/learned_format.c):
each record has what it likes. A field that a record lacks is no file of its sample and no member of
its npz and tar, and has length 0 in batches. A dataset of several files has the columns of all;
columns of one name and differing kinds have names that say so. Everything is compared with a model
in numpy, as made and as kept in the cache."""

import errno
import io
import os
import struct
import sys
import tarfile

if not os.environ.get("EPOCHFS_RECORDS"):
    sys.exit(77)
os.environ["EPOCHFS"] = os.environ["EPOCHFS_RECORDS"]

import numpy as np

import lib
from lib import CACHE, SOURCE, contains, equal, expect_error, mounted, path, run, write

rng = np.random.default_rng(23)


def content(*parts):
    return lib.content(path(*parts))


def payload(kind, value):
    if kind in "ihm":
        return value.tobytes()
    return {"x": lambda v: bytes(255 - b for b in v), "d": lambda v: str(v).encode()}.get(
        kind, lambda v: v)(value)


def file_of(records):
    """records: (key, {(kind, name): value})."""
    data = b"TESTLRN1"
    for key, fields in records:
        data += struct.pack("<HH", len(key), len(fields)) + key
        for (kind, name), value in fields.items():
            body = payload(kind, value)
            data += struct.pack("<BBI", len(name), ord(kind), len(body)) + name.encode() + body
    return data


def shorts(*shape):
    return rng.integers(-99, 99, shape).astype(np.int16)


def one(key, i):
    """A record of the file one.lrn: contents of every kind; some are always there, some seldom."""
    fields = {("i", "id"): np.array(i * 7 - 3, np.int64), ("h", "even"): shorts(3),
              ("b", "image.jpg"): rng.bytes(int(rng.integers(0, 500)))}
    if i % 3:
        fields["i", "seldom"] = np.array(i, np.int64)
    if i % 5 == 0:
        fields["m", "boxes"] = shorts(i % 4, 2)
    if i >= 150:  # learned in the second group of rows
        fields["x", "mask.png"] = rng.bytes(40)
    if i % 2:
        fields["t", "words"] = b"w" * (i % 9)
    if i % 7:
        fields["d", "cls"] = i * 1000 - 5
        fields["h", "fixed"] = shorts(2)
    return key, fields


def array(*parts):
    return np.load(io.BytesIO(content(*parts)))


def same(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), f"{what}: form")
    equal(got.tolist(), want.tolist(), what)


NUMBERS = "ihmd"


def value_of(kind, value):
    return np.array(value, np.int64) if kind == "d" else value


def names_of(fields):
    """What a sample shows: {folder: names}."""
    ret = {"raw": set(), "npy": set(), "txt": set()}
    for kind, name in fields:
        if kind in NUMBERS:
            ret["npy"].add(f".{name}.npy")
        elif kind == "t":
            ret["txt"].add(f".{name}.txt")
        else:
            ret["raw"].add(f".{name}")
    return ret


def check_tar(data, records, what, names=lambda kind, name: name):
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            found[member.name] = tar.extractfile(member).read()
    for key, fields in records:
        for (kind, name), value in fields.items():
            stem = f"{key}.{names(kind, name)}"
            if kind in NUMBERS:
                same(np.load(io.BytesIO(found.pop(f"{stem}.npy"))), value_of(kind, value), what)
            elif kind == "t":
                equal(found.pop(f"{stem}.txt"), value + b"\n", what)
            else:
                equal(found.pop(stem), value, what)
    equal(found, {}, f"{what}: members")


def check_sample(ds, key, fields):
    for folder, names in names_of(fields).items():
        got = {n[len(key):] for n in os.listdir(path(ds, "samples", folder))
               if n.startswith(key + ".")}
        equal(got, names, f"{ds} {key}: {folder}")
    npz = np.load(io.BytesIO(content(ds, "samples/npz", f"{key}.npz")))
    members = set()
    for (kind, name), value in fields.items():
        stem = name.split(".")[0]
        members.add(stem)
        if kind in NUMBERS:
            same(array(ds, "samples/npy", f"{key}.{name}.npy"), value_of(kind, value), key)
            same(npz[stem], value_of(kind, value), key)
        elif kind == "t":
            equal(content(ds, "samples/txt", f"{key}.{name}.txt"), value + b"\n", key)
            equal(npz[stem].item(), value, key)
        else:
            equal(content(ds, "samples/raw", f"{key}.{name}"), value, key)
            equal(npz[stem].tobytes(), value, key)
    equal(set(npz.files) - {"index", "key"}, members, f"{key}: members of npz")
    check_tar(content(ds, "samples/tar", f"{key}.tar"), [(key, fields)], key)


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def check_batch(folder, batch, records, columns):
    """columns: {name: (kind, stacked, shape behind the first axis)}, the union."""
    npz, what = np.load(io.BytesIO(content(folder, "npz", f"{batch}.npz"))), f"{folder}/{batch}"
    members = {"index", "key"}
    for (kind, name), (stacked, tail) in columns.items():
        stem = name.split(".")[0]
        values = [value_of(kind, f[kind, name]) if (kind, name) in f else None for _, f in records]
        members |= {stem} if stacked or kind == "t" else {stem, f"{stem}_offsets"}
        if kind == "t":
            equal(npz[stem].tolist(), [v or b"" for v in values], what)
            equal(content(folder, "txt", f"{batch}.{name}.txt"),
                  b"".join((v or b"") + b"\n" for v in values), what)
        elif kind not in NUMBERS:
            equal(npz[stem].tobytes(), b"".join(v or b"" for v in values), what)
            same(npz[f"{stem}_offsets"], offsets([len(v or b"") for v in values]), what)
        elif stacked:
            same(npz[stem], np.stack(values), what)
            same(array(folder, "npy", f"{batch}.{name}.npy"), np.stack(values), what)
        else:
            dtype = np.int64 if kind in "id" else np.int16
            rows = [np.zeros((0,) + tail, dtype) if v is None else v.reshape((-1,) + tail)
                    for v in values]
            lengths = np.array([len(r) for r in rows], np.int64)
            padded = np.zeros((len(rows), max(lengths)) + tail, dtype)
            for i, r in enumerate(rows):
                padded[i, :len(r)] = r
            same(npz[stem], np.concatenate(rows), f"{what} {stem}")
            same(npz[f"{stem}_offsets"], offsets(lengths), f"{what} {stem}")
            same(array(folder, "npy", f"{batch}.{name}.npy"), padded, f"{what} {stem}")
            same(array(folder, "npy", f"{batch}.{name}_len.npy"), lengths, f"{what} {stem}")
    equal(set(npz.files), members, f"{what}: members")
    check_tar(content(folder, "tar", f"{batch}.tar"), records, what)


ONE = {("i", "id"): (True, ()), ("h", "even"): (True, ()), ("b", "image.jpg"): (False, ()),
       ("i", "seldom"): (False, ()), ("m", "boxes"): (False, (2,)), ("x", "mask.png"): (False, ()),
       ("t", "words"): (False, ()), ("d", "cls"): (False, ()), ("h", "fixed"): (False, ())}
one_records = [one(f"a{i:03}", i) for i in range(300)]


def check_one():
    for key, fields in one_records[::37] + one_records[149:152]:
        check_sample("one.lrn", key, fields)
    for missing in ("npy/a000.seldom.npy", "raw/a000.mask.png", "txt/a000.words.txt"):
        equal(os.path.exists(path("one.lrn/samples", missing)), False, missing)
    for i in range(0, 300, 64):
        check_batch("one.lrn/batches/batch=64", f"{i // 64:06}", one_records[i:i + 64], ONE)
    seeded = "one.lrn/batches/batch=50,seed=2/epoch=3"
    for b in range(6):
        order = array(seeded, "npy", f"{b:06}.index.npy")
        check_batch(seeded, f"{b:06}", [one_records[n] for n in order], ONE)


# Kinds that differ between files: each is shown, under a name that says which it is.
two_records = [("b0", {("i", "label"): np.array(5, np.int64), ("h", "points"): shorts(4),
                       ("b", "picture.jpg"): b"jpg", ("i", "key"): np.array(1, np.int64)}),
               ("b1", {("i", "label"): np.array(6, np.int64), ("h", "points"): shorts(4),
                       ("b", "picture.jpg"): b"jp", ("i", "key"): np.array(2, np.int64)})]
three_records = [("c0", {("t", "label"): b"cat", ("h", "points"): shorts(2),
                         ("b", "picture.png"): b"png", ("m", "more"): shorts(1, 2)})]


def check_union():
    records = [(k, f) for k, f in three_records + two_records]
    npz = np.load(io.BytesIO(content("kinds/all/batches/batch=8/npz/000000.npz")))
    equal(sorted(npz.files), sorted(["index", "key", "key_int64", "key_int64_offsets", "label_int64",
                                     "label_int64_offsets", "label_text", "more", "more_offsets",
                                     "picture_jpg", "picture_jpg_offsets", "picture_png",
                                     "picture_png_offsets", "points", "points_offsets"]), "union")
    same(npz["label_int64"], np.array([5, 6]), "numbers")
    equal(npz["label_text"].tolist(), [b"cat", b"", b""], "texts")
    equal(npz["picture_jpg"].tobytes(), b"jpgjp", "jpg")
    same(npz["picture_png_offsets"], np.array([0, 3, 3, 3]), "png")
    same(npz["points"], np.concatenate([f["h", "points"] for _, f in records]), "points")
    same(npz["points_offsets"], np.array([0, 2, 6, 10]), "points")
    equal(npz["key"].tolist(), [b"c0", b"b0", b"b1"], "keys")
    equal(sorted(n for n in os.listdir(path("kinds/all/samples/npy")) if n.startswith("c0")),
          ["c0.more.npy", "c0.points.npy"], "files of a sample")
    # Alone, a file has its own names.
    npz = np.load(io.BytesIO(content("kinds/three.lrn/samples/npz/c0.npz")))
    equal(sorted(npz.files), ["label", "more", "picture", "points"], "alone")
    same(array("kinds/two.lrn/batches/batch=2/npy/000000.points.npy"),
         np.stack([f["h", "points"] for _, f in two_records]), "stacked where all are alike")
    equal(sorted(os.listdir(path("kinds/two.lrn/samples"))), ["npy", "npz", "raw", "tar", "tfrecord"],
          "no folder without files")


MANY = 700


def check_many():
    """More columns than an index has, and more than a folder shows."""
    note = run("info", SOURCE)
    contains(note, "more than 511 fields; left out from 'f511' on")
    contains(note, "449 of 511 fields have no file of their own in some folders")
    names = os.listdir(path("many/many.lrn/samples/npy"))
    equal(len([n for n in names if n.startswith("k.")]), 64, "files of a sample")
    npz = np.load(io.BytesIO(content("many/many.lrn/samples/npz/k.npz")))
    equal(len(npz.files), 511, "members")
    for i in (0, 77, 510):
        same(npz[f"f{i}"], np.array(i, np.int64), f"member {i}")


def check_rare():
    """Columns that few records have never take the place of one that all have."""
    names = os.listdir(path("rare/rare.lrn/samples/raw"))
    equal(len([n for n in names if n.endswith(".z.bin")]), 200, "files of what all have")
    equal(len(names), 200 + 63, "files")
    contains(run("info", f"{SOURCE}/rare"), "137 of 201 fields have no file of their own", "the first is 'a063'")


def check_numbers():
    """Keys that repeat in another file: the dataset of all has numbers."""
    equal(sorted(os.listdir(path("numbers/all/samples/npz"))), ["000000.npz", "000001.npz"], "numbers")
    equal(os.listdir(path("numbers/x.lrn/samples/npz")), ["k.npz"], "keys of one")
    npz = np.load(io.BytesIO(content("numbers/all/batches/batch=2/npz/000000.npz")))
    equal(npz["key"].tolist(), [b"000000", b"000001"], "the keys of a batch")


def check_very_many():
    """Above 64 files only `all` is listed, but each opens by its name."""
    equal(os.listdir(path("shards")), ["all"], "listed")
    same(array("shards/s069.lrn/samples/npy/s069.n.npy"), np.array(69, np.int64), "unlisted")
    same(array("shards/all/batches/batch=all/npy/000000.n.npy"), np.arange(70), "all")


def check_bad():
    """Text that is no number fails its own field only."""
    for name in ("bad/bad.lrn/samples/npy/w.v.npy", "bad/bad.lrn/batches/batch=2/npy/000000.v.npy"):
        expect_error(errno.EIO, content, name)
    same(array("bad/bad.lrn/samples/npy/v.v.npy"), np.array(12, np.int64), "the good one")


write("one.lrn", file_of([(k.encode(), f) for k, f in one_records]))
write("kinds/two.lrn", file_of([(k.encode(), f) for k, f in two_records]))
write("kinds/three.lrn", file_of([(k.encode(), f) for k, f in three_records]))
write("rare/rare.lrn", file_of([(b"k%03d" % i, {("b", "z.bin"): b"all", ("b", f"a{i:03d}.bin"): b"rare"})
                                for i in range(200)]))
write("many/many.lrn",
      file_of([(b"k", {("i", f"f{i}"): np.array(i, np.int64) for i in range(MANY)})]))
for name in "xy":
    write(f"numbers/{name}.lrn", file_of([(b"k", {("i", "n"): np.array(1, np.int64)})]))
for i in range(70):
    write(f"shards/s{i:03}.lrn", file_of([(b"s%03d" % i, {("i", "n"): np.array(i, np.int64)})]))
write("bad/bad.lrn", file_of([(b"v", {("d", "v"): 12}), (b"w", {("d", "v"): "12x"})]))

for made in ("made", "kept"):
    with mounted(SOURCE, f"cache={CACHE}"):
        check_one()
        check_union()
        check_many()
        check_rare()
        check_numbers()
        check_very_many()
        check_bad()
