#!/usr/bin/python3
"""TFRecord shards against a model: files written by Python, read back as samples and as batches in
any order; what is wrong with a file or a record, row by row; and all again from the kept index."""

import errno
import gzip
import io
import os
import tarfile
import zlib

import numpy as np

import lib
import tfrecord_model as tf
from lib import CACHE, SOURCE, contains, equal, expect_error, mounted, path, run, write

rng = np.random.default_rng(31)
JPEG = b"\xff\xd8\xff\xe0"


def content(*parts):
    return lib.content(path(*parts))


def array(*parts):
    return np.load(io.BytesIO(content(*parts)))


def same(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), f"{what}: form")
    equal(got.tobytes(), want.tobytes(), what)


# ---- a set of shards ----

def one(i):
    """A record: what is always there, what differs in length, what is seldom there."""
    fields = {"label": ("int64", [i * 3 - 50]), "box": ("float", rng.random(4).astype("f4").tolist()),
              "image/encoded": ("bytes", [JPEG + rng.bytes(int(rng.integers(0, 3000)))]),
              "tokens": ("int64", rng.integers(-2**62, 2**62, int(rng.integers(0, 9))).tolist()),
              "line": ("bytes", [f"línea {i}".encode() * (i % 4)]),
              "words": ("bytes", [b"w%d" % k * k for k in range(i % 4)]),
              "two": ("bytes", [b"a" * (i % 5), b"b"]),
              "score": ("float", [0.5 * i] if i % 3 else []),
              "index": ("int64", [i])}
    if i % 5 == 0:
        fields["seldom"] = ("int64", [i, i])
    names = list(fields)
    rng.shuffle(names)  # the order in a message says nothing
    return {name: fields[name] for name in names}


def message(fields):
    make = {"int64": tf.integers, "float": tf.floats, "bytes": tf.strings}
    return tf.example(**{name: make[kind](*values) for name, (kind, values) in fields.items()})


N = 300
MODEL = [one(i) for i in range(N)]
MESSAGES = [message(fields) for fields in MODEL]
CUTS = [0, 100, 130, 130, 250, N]  # of five shards, of which the third is empty; a sixth is not here
for shard, (first, end) in enumerate(zip(CUTS, CUTS[1:])):
    data = b"".join(map(tf.frame, MESSAGES[first:end]))
    pack = (lambda d: d, gzip.compress, lambda d: d, lambda d: zlib.compress(d) if d else d, lambda d: d)[shard]
    write(f"set/train.tfrecord-{shard:05}-of-00006" + (".gz" if shard == 1 else ""), pack(data))
for shard in range(2):
    write(f"set/val.tfrecord-{shard:05}-of-00002", b"".join(map(tf.frame, MESSAGES[shard::20])))
TRAIN = "set/train.tfrecord"

COLUMNS = {"label": ("int64", "scalar"), "box": ("float", 4), "image%2Fencoded": ("bytes", "jpg"),
           "tokens": ("int64", None), "line": ("bytes", "txt"), "words": ("bytes", "bin"),
           "two": ("bytes", "bin"), "score": ("float", None), "seldom": ("int64", None),
           "index_int64": ("int64", "scalar")}
SEVERAL = ("words", "two")
DTYPES = {"int64": np.dtype("i8"), "float": np.dtype("f4"), "sizes": np.dtype("i8")}


def value(fields, name, part=None):
    """What epochfs shows of a feature; None: a hole."""
    name = name.replace("%2F", "/").replace("_int64", "")
    if name not in fields:
        return None
    kind, values = fields[name]
    if part == "sizes":
        return np.array([len(v) for v in values], "i8")
    return b"".join(values) if kind == "bytes" else np.array(values, DTYPES[kind])


def parts():
    """(name, kind, form, part) of each array."""
    for name, (kind, form) in COLUMNS.items():
        yield name, kind, form, None
        if name in SEVERAL:
            yield f"{name}_sizes", "sizes", 2 if name == "two" else None, "sizes"


def feature_of(name):
    return name.replace("_sizes", "")


def check_sample(ds, key, fields, data):
    equal(content(ds, "samples/raw", f"{key}.record"), data, f"{key}: record")
    npz = np.load(io.BytesIO(content(ds, "samples/npz", f"{key}.npz")))
    for name, kind, form, part in parts():
        want, what = value(fields, feature_of(name), part), f"{ds} {key} {name}"
        if want is None:
            equal(name in npz.files, False, what)
            equal(os.path.exists(path(ds, "samples/npy", f"{key}.{name}.npy")), False, what)
        elif kind == "bytes":
            equal(content(ds, "samples/raw", f"{key}.{name}.{form}"), want, what)
            equal(npz[name].tobytes(), want, what)
            if form == "txt":
                equal(content(ds, "samples/txt", f"{key}.{name}.txt"), want + b"\n", what)
        else:
            want = want.reshape(()) if form == "scalar" else want
            same(array(ds, "samples/npy", f"{key}.{name}.npy"), want, what)
            same(npz[name], want, what)


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype("i8")


def check_batch(folder, batch, rows):
    npz = np.load(io.BytesIO(content(folder, "npz", f"{batch}.npz")))
    equal("record" in npz.files, False, "a record is no member beside its features")
    same(npz["index"], np.array(rows, "i8"), "index")
    for name, kind, form, part in parts():
        values, what = [value(MODEL[i], feature_of(name), part) for i in rows], f"{folder} {batch} {name}"
        if kind == "bytes":
            values = [v or b"" for v in values]
            equal(npz[name].tobytes(), b"".join(values), what)
            same(npz[f"{name}_offsets"], offsets([len(v) for v in values]), what)
        elif form is not None:
            want = np.concatenate(values).reshape((len(rows), 4) if form == 4 else
                                                  (len(rows), 2) if form == 2 else (len(rows),))
            same(npz[name], want, what)
            same(array(folder, "npy", f"{batch}.{name}.npy"), want, what)
        else:
            values = [np.zeros(0, DTYPES[kind]) if v is None else v for v in values]
            same(npz[name], np.concatenate(values), what)
            same(npz[f"{name}_offsets"], offsets([len(v) for v in values]), what)
            padded = array(folder, "npy", f"{batch}.{name}.npy")
            lengths = array(folder, "npy", f"{batch}.{name}_len.npy")
            same(lengths, np.array([len(v) for v in values], "i8"), what)
            for row, want in zip(padded, values):
                same(row[:len(want)], want, what)
    with tarfile.open(fileobj=io.BytesIO(content(folder, "tar", f"{batch}.tar"))) as tar:
        for i in rows[::7]:
            member = tar.extractfile(f"{i:06}.image%2Fencoded.jpg").read()
            equal(member, value(MODEL[i], "image%2Fencoded"), f"{batch}: tar")


def check_set():
    equal(sorted(n for n in os.listdir(path("set")) if "-of-" not in n),
          ["all", "train.tfrecord", "val.tfrecord"], "datasets")
    for i in (0, 5, 99, 100, 129, 130, 249, 250, N - 1):
        check_sample(TRAIN, f"{i:06}", MODEL[i], MESSAGES[i])
    check_sample("set/train.tfrecord-00003-of-00006", "000007", MODEL[137], MESSAGES[137])
    for batch in range(0, N, 64):
        check_batch(f"{TRAIN}/batches/batch=64", f"{batch // 64:06}", list(range(batch, min(N, batch + 64))))
    folder = f"{TRAIN}/batches/batch=50,seed=7/epoch=2"
    seen = []
    for batch in range(6):
        rows = array(folder, "npy", f"{batch:06}.index.npy").tolist()
        check_batch(folder, f"{batch:06}", rows)
        seen += rows
    equal(sorted(seen), list(range(N)), "an epoch")
    equal(seen == sorted(seen), False, "the epoch is shuffled")
    equal(array("set/val.tfrecord/batches/batch=all/npy/000000.label.npy").tolist(),
          [MODEL[i]["label"][1][0] for i in [*range(0, N, 20), *range(1, N, 20)]], "the other set")
    contains(run("info", path_of("set")), "missing  train.tfrecord-00005-of-00006: no such file")


def path_of(name):
    return os.path.join(SOURCE, name)


# ---- one file each ----

def single(name, data):
    write(f"rows/{name}/{name}", data)
    return f"rows/{name}"


def spoilt(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


FRAMES = [tf.frame(m) for m in MESSAGES[:4]]
WHOLE = b"".join(FRAMES)
SECOND, THIRD = len(FRAMES[0]), len(FRAMES[0] + FRAMES[1])
ENDS = {  # name: (data, records, what the note says)
    "length_checksum": (spoilt(WHOLE, THIRD + 9), 2, f"byte {THIRD}: expected a record's length that matches"),
    "length": (spoilt(WHOLE, THIRD + 1), 2, f"byte {THIRD}: expected a record's length that matches"),
    "head_cut": (WHOLE[:THIRD + 11], 2, f"byte {THIRD}: expected the 12 bytes that begin a record"),
    "one_byte_more": (WHOLE + b"x", 4, f"byte {len(WHOLE)}: expected the 12 bytes that begin a record"),
    "data_cut": (WHOLE[:-1], 3, "expected the data of a record, got the end of the file; only the 3 records"),
    "length_huge": (WHOLE[:THIRD] + b"\xff" * 7 + b"\x7f" + tf.masked(b"\xff" * 7 + b"\x7f").to_bytes(4, "little")
                    + WHOLE, 2, f"byte {THIRD}: expected the data of a record"),
    "length_wraps": (WHOLE[:THIRD] + b"\xf0" + b"\xff" * 7 + tf.masked(b"\xf0" + b"\xff" * 7).to_bytes(4, "little")
                     + WHOLE, 2, f"byte {THIRD}: expected the data of a record"),
}
for name, (data, _, _) in ENDS.items():
    single(name, data)


def check_ends():
    for name, (_, records, note) in ENDS.items():
        ds = f"rows/{name}/{name}"
        equal(len([n for n in os.listdir(path(ds, "samples/raw")) if n.endswith(".record")]), records, name)
        for i in range(records):
            check_sample(ds, f"{i:06}", MODEL[i], MESSAGES[i]) if records == 4 else equal(
                content(ds, "samples/raw", f"{i:06}.record"), MESSAGES[i], name)
        contains(run("info", path_of(ds)), note)
        contains(run("info", "--check", path_of(ds), code=2), note)


single("bad_data", b"".join([FRAMES[0], spoilt(FRAMES[1], 40), FRAMES[2], FRAMES[3][:-1] + b"?"]))


def check_bad_data():
    """EIO of that sample, and of the batches that have it."""
    ds = "rows/bad_data/bad_data"
    for i in (0, 2):
        equal(content(ds, "samples/raw", f"{i:06}.record"), MESSAGES[i], "a good one")
        equal(array(ds, "samples/npy", f"{i:06}.label.npy").item(), MODEL[i]["label"][1][0], "a good one")
    for i in (1, 3):
        for name in (f"raw/{i:06}.record", f"npy/{i:06}.label.npy", f"npz/{i:06}.npz"):
            expect_error(errno.EIO, content, f"{ds}/samples/{name}")
    expect_error(errno.EIO, content, f"{ds}/batches/batch=2/npz/000000.npz")
    contains(run("info", path_of(ds)), f"cannot be read: 2, the first at byte {SECOND}")
    contains(run("info", "--check", path_of(ds), code=2), "record 1, at byte",
             "expected data that match their checksum")


BAD = tf.field(1, tf.field(1, tf.field(1, b"label") + tf.field(2, tf.field(3, tf.field(1, b"\xff" * 10 + b"\1")))))
KINDS = [tf.example(x=tf.integers(1)), tf.example(x=tf.integers(2)), tf.example(x=tf.floats(3.0)),
         tf.example(x=b""), tf.example(x=tf.integers(4)), b"", BAD, BAD[:-3]]
single("kinds", b"".join(map(tf.frame, KINDS)))


def check_kinds():
    """A record whose feature is of another kind, or that is no message, lacks that field alone."""
    ds = "rows/kinds/kinds"
    for i, want in ((0, [1]), (1, [2]), (3, []), (4, [4])):
        equal(array(ds, "samples/npy", f"{i:06}.x.npy").tolist(), want, f"x of {i}")
    for i in (2, 6, 7):
        expect_error(errno.EIO, content, f"{ds}/samples/npy/{i:06}.x.npy")
    expect_error(errno.ENOENT, content, f"{ds}/samples/npy/000005.x.npy")
    for i, data in enumerate(KINDS):
        equal(content(ds, "samples/raw", f"{i:06}.record"), data, f"record {i}")
    contains(run("info", path_of(ds)), "no tf.train.Example: 2")
    contains(run("cat", path_of("rows/kinds"), "kinds/samples/npy/000002.x.npy", code=2),
             "record 2, at byte", "of the kind that it has in most records, got another kind")
    contains(run("info", "--check", path_of(ds), code=2), "record 2, at byte", "of the kind that it has in most records",
             "record 6, at byte", "expected a tf.train.Example, got other data")


TWICE = [tf.example(i=tf.integers(7, 7)) + tf.field(1, tf.features({"i": tf.integers(8, 9)}) + tf.features({"i": tf.integers(k)}))
         for k in (1, 2)]
single("twice", b"".join(map(tf.frame, TWICE)))


def check_twice():
    """If features have the same name, the last one counts."""
    equal(array("rows/twice/twice/batches/batch=2/npy/000000.i.npy").tolist(), [1, 2], "i")


OPAQUE = [b"1", b"", b"some text", rng.bytes(3000), b"\x0a\x00"]
single("opaque", b"".join(map(tf.frame, OPAQUE)))
OTHERS = [tf.example(i=tf.integers(1)), b"1", b"2"]
single("mostly_others", b"".join(map(tf.frame, OTHERS)))
LISTS = tf.field(1, tf.example(i=tf.integers(1))) + tf.field(2, tf.example(q=tf.strings(b"x")))
single("with_context", tf.frame(LISTS) * 3)
single("empty.tfrecord", b"")
single("empty_record", tf.frame(b""))


def check_opaque():
    for name, data in (("opaque", OPAQUE), ("mostly_others", OTHERS), ("with_context", [LISTS] * 3), ("empty_record", [b""])):
        ds = f"rows/{name}/{name}"
        equal(sorted(os.listdir(path(ds, "samples/raw"))), [f"{i:06}.record" for i in range(len(data))], name)
        equal([content(ds, "samples/raw", f"{i:06}.record") for i in range(len(data))], data, name)
        npz = np.load(io.BytesIO(content(ds, "batches/batch=all/npz/000000.npz")))
        equal(sorted(npz.files), ["index", "key", "record", "record_offsets"], name)
        equal(npz["record"].tobytes(), b"".join(data), name)


STEPS = [tf.integers(1, 2), b"", tf.integers(3)]
SEQUENCES = [tf.sequence({"c": tf.integers(7)}, {"i": STEPS, "b": [tf.strings(b"x", b"yz"), tf.strings(b"w")]}),
             tf.sequence({"c": tf.integers(8)}, {"i": STEPS[2:], "b": []})]
single("sequence", b"".join(map(tf.frame, SEQUENCES)))


def check_sequence():
    npz = np.load(io.BytesIO(content("rows/sequence/sequence/batches/batch=all/npz/000000.npz")))
    want = {"c": [7, 8], "i": [1, 2, 3, 3], "i_offsets": [0, 3, 4], "i_steps": [2, 0, 1, 1],
            "i_steps_offsets": [0, 3, 4], "b_offsets": [0, 4, 4], "b_sizes": [1, 2, 1],
            "b_sizes_offsets": [0, 3, 3], "b_steps": [2, 1], "b_steps_offsets": [0, 2, 2]}
    equal({name: npz[name].tolist() for name in want}, want, "feature lists")
    equal(npz["b"].tobytes(), b"xyzw", "their byte strings")


CLASH = tf.example(words=tf.strings(b"a", b"bc"), words_sizes=tf.integers(5), record=tf.integers(6),
                   key=tf.integers(7), **{"a" * 60: tf.integers(1), "a" * 60 + "b": tf.integers(2),
                                          ".x/\xe9": tf.integers(3), "": tf.integers(4)})
single("names", tf.frame(CLASH))


def check_names():
    npz = np.load(io.BytesIO(content("rows/names/names/samples/npz/000000.npz")))
    found = {name: npz[name].tolist() for name in npz.files}
    equal({k: v for k, v in found.items() if not k.startswith("a")},
          {"words": [97, 98, 99], "words_sizes": [1, 2], "words_sizes_": 5, "record_": 6, "key_int64": 7,
           "%2Ex%2Fé": 3, "_": 4}, "names")
    equal(sorted(v for k, v in found.items() if k.startswith("aaa")), [1, 2], "long names")


WIDE = [tf.example(i=tf.integers(n)) for n in range(3)] + [tf.example(i=tf.integers(3), **{f"k{k}": b"" for k in range(100_000)})]
single("wide", b"".join(map(tf.frame, WIDE)))
single("many", b"".join(tf.frame(tf.example(**{f"k{r}x{k}": tf.integers(k) for k in range(1000)})) for r in range(100)))


def check_wide():
    """10^5 features in a record: it is shown as a record only; in a file: those beyond 1,024 are omitted."""
    ds = "rows/wide/wide"
    for i, data in enumerate(WIDE):
        equal(content(ds, "samples/raw", f"{i:06}.record"), data, f"record {i}")
    equal(array(ds, "samples/npy/000002.i.npy").tolist(), 2, "i of a narrow one")
    expect_error(errno.EIO, content, f"{ds}/samples/npy/000003.i.npy")
    contains(run("info", "--check", path_of(ds), code=2), "record 3, at byte")
    contains(run("info", path_of("rows/many/many")), "features beyond the first 1024 are ignored")


single("text.tfrecord", b"this is no TFRecord file, whatever it is called\n")
single("lfs.tfrecord", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")


def check_strangers():
    for name in ("text.tfrecord", "lfs.tfrecord"):
        equal(os.listdir(path("rows", name, name)), ["ERROR.txt"], name)


CHECKS = (check_set, check_ends, check_bad_data, check_kinds, check_twice, check_opaque, check_sequence, check_names,
          check_wide, check_strangers)
for made in ("made", "kept"):
    with mounted(SOURCE, f"cache={CACHE}"):
        for check in CHECKS:
            print(made, check.__name__)
            check()
