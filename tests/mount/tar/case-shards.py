#!/usr/bin/python3
# needs: python3-pil
"""Shards that Python's tarfile made, in each of its forms, compared member by member; their batches
as WebDataset's own reader finds them; numbers and arrays with numpy."""

import gzip
import io
import json
import os
import shutil
import tarfile

import numpy as np
from PIL import Image

import tar_model
from lib import SOURCE, contains, content, equal, mounted, path, run, status, text, write
from servers import wait_until
from tar_model import Shards, npy, shard

rng = np.random.default_rng(41)
FORMS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def fresh():
    shutil.rmtree(SOURCE, ignore_errors=True)
    os.mkdir(SOURCE)


def array(*parts):
    return np.load(io.BytesIO(content(*parts)))


def picture():
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (*rng.integers(1, 40, 2), 3), dtype=np.uint8)).save(out, "JPEG")
    return out.getvalue()


def entries(start, n, long=""):
    """Members of n samples: some lack a caption."""
    found = []
    for i in range(start, start + n):
        key = f"{long}{i:06d}"
        found += [(f"{key}.jpg", picture()), (f"{key}.cls", b"%d\n" % (i % 10 - 3))]
        if i % 3:
            found.append((f"{key}.txt", b"caption " + b"x" * (i % 7)))
        found.append((f"{key}.json", json.dumps({"n": i}).encode()))
    return found


def check_forms():
    """Each form alone, with names that need its extension headers."""
    fresh()
    data = {form: shard(entries(0, 30, "" if form == "ustar" else "d" * 150 + "/ä"), FORMS[form])
            for form in FORMS}
    for form, bytes_ in data.items():
        write(f"{form}/a.tar", bytes_)
    with mounted():
        for form, bytes_ in data.items():
            ds = Shards(path(form, "a.tar"), bytes_)
            equal(len(ds.samples), 30, form)
            ds.check_listing()
            for i in (0, 1, 29):
                ds.check_sample(i)
            ds.check_plan("batch=7")
            ds.check_plan("batch=8,seed=5", 2)
            ds.check_plan("batch=8,part=1of3,seed=5", 1)


def check_shards():
    """Several, packed and not, are one dataset, `all`."""
    fresh()
    data = [shard(entries(100 * i, 20 + i), FORMS[form]) for i, form in enumerate(FORMS)]
    write("x-000000.tar", data[0])
    write("x-000001.tgz", gzip.compress(data[1], mtime=0))
    write("x-000002.tar.gz", gzip.compress(data[2], mtime=0))
    with mounted(SOURCE, "plan=batch=4+seed=7"):
        planned = lambda: [p["dataset"] for p in status()["plans"]]
        wait_until(lambda: "all" in planned(), "the plan of all is announced")
        equal(planned(), ["all"], "a job reads all shards: plans of each are not announced")
        equal(sorted(n for n in os.listdir(path()) if os.path.isdir(path(n)) and n != ".epochfs"),
              ["all", "x-000000.tar", "x-000001.tgz", "x-000002.tar"], "datasets")
        ds = Shards(path("all"), *data)
        equal(len(ds.samples), 63, "samples of all")
        ds.check_listing()
        for i in (0, 20, 62):
            ds.check_sample(i)
        ds.check_plan("batch=16,seed=9", 1)
        labels = np.array([int(fields["cls"]) for _, fields in ds.samples], np.int64)
        for batch in range(4):
            folder, numbers = ds.check_batch("batch=16,seed=9", batch)
            got = array(folder, "npy", f"{batch:06d}.cls.npy")
            equal((got.dtype, got.tolist()), (np.int64, labels[numbers].tolist()), "labels")
            equal(np.load(io.BytesIO(content(folder, "npz", f"{batch:06d}.npz")))["cls"].tolist(),
                  labels[numbers].tolist(), "labels in npz")
            lines = content(folder, "txt", f"{batch:06d}.json.txt").splitlines()
            equal(lines, [ds.samples[i][1]["json"] for i in numbers], "json as lines")
        equal(array(ds.folder, "samples/npy", f"{ds.names[5]}.cls.npy").item(), int(labels[5]),
              "a label")
        equal(content(ds.folder, "samples/txt", f"{ds.names[4]}.txt"),
              ds.samples[4][1]["txt"] + b"\n", "a text")
        page = json.loads(text(ds.folder, "dataset.json"))
        equal((page["format"], page["samples"]), ("tar", 63), "dataset.json")
    contains(run("info", SOURCE), "63", "jpg", "cls")
    run("info", "--check", SOURCE)


def check_arrays():
    """Arrays of one shape are stacked; of several lengths padded, and one after another in npz; those
    that are stored in another order or type are shown in C order and little-endian."""
    fresh()
    n = 23
    even = [rng.normal(size=(3, 4)).astype(np.float32) for _ in range(n)]
    ragged = [rng.integers(-99, 99, (int(rng.integers(0, 9)), 2)).astype(np.int16) for _ in range(n)]
    halves = [rng.normal(size=5).astype(np.float16) for _ in range(n)]
    scalars = [np.array(i, np.uint32) for i in range(n)]
    big = [rng.normal(size=(2, 5)).astype(">f8") for _ in range(n)]
    fortran = [np.asfortranarray(rng.integers(0, 1 << 40, (4, 3, 2)).astype(">i8" if i % 2 else "<i8"))
               for i in range(n)]
    types = [np.zeros(2, np.float32 if i % 2 else np.float64) for i in range(n)]
    fields = {"npy": even, "feats.npy": ragged, "half.npy": halves, "number.npy": scalars,
              "big.npy": big, "fortran.npy": fortran, "types.npy": types}
    data = shard([(f"{i:03d}.{ext}", npy(arrays[i])) for i in range(n)
                  for ext, arrays in fields.items()])
    write("a.tar", data)
    with mounted():
        ds = Shards(path("a.tar"), data)
        ds.check_listing()
        for i in (0, 7, 22):
            ds.check_sample(i)
            for ext, arrays in fields.items():
                if ext == "types.npy":
                    continue
                name = ext.rpartition(".")[0] or ext
                got = array(ds.folder, "samples/npy", f"{i:03d}.{name}.npy")
                want = arrays[i].astype(arrays[i].dtype.newbyteorder("<"))
                equal((got.dtype, got.shape, got.tolist()),
                      (want.dtype, want.shape, want.tolist()), f"{i} {name}")
        for batch in range(4):
            folder, numbers = ds.check_batch("batch=6,seed=2", batch)
            npz = np.load(io.BytesIO(content(folder, "npz", f"{batch:06d}.npz")))
            for name, arrays in (("npy", even), ("half", halves), ("number", scalars), ("big", big),
                                 ("fortran", fortran)):
                want = np.stack([arrays[i] for i in numbers])
                got = array(folder, "npy", f"{batch:06d}.{name}.npy")
                equal((got.dtype, got.tolist()), (want.dtype.newbyteorder("<"), want.tolist()), name)
                equal(npz[name].tolist(), want.tolist(), f"{name} in npz")
            lengths = [len(ragged[i]) for i in numbers]
            padded = array(folder, "npy", f"{batch:06d}.feats.npy")
            equal(array(folder, "npy", f"{batch:06d}.feats_len.npy").tolist(), lengths, "lengths")
            for row, i in zip(padded, numbers):
                equal(row[:len(ragged[i])].tolist(), ragged[i].tolist(), "padded")
            equal(npz["feats"].tolist(), np.concatenate([ragged[i] for i in numbers]).tolist(),
                  "ragged")
        equal(any("types" in name for name in os.listdir(ds.folder + "/batches/batch=6,seed=2/epoch=0/npy")),
              False, "arrays of two types")
    contains(run("info", SOURCE), "files .types.npy are shown as they are only")


def check_names():
    """Keys and extensions that no file name can have, or that repeat."""
    fresh()
    data = shard([("../../etc/x.txt", b"1"), ("/abs/y.txt", b"2"), ("./z.txt", b"3"),
                  ("__meta__/m.txt", b"no"), ("__k__.txt", b"4"), ("noext", b"no"),
                  (".hidden.txt", b"no"), ("a/b.c/d.txt", b"5"), ("a/b.c/d.Seg.PNG", b"6"),
                  ("link.txt", b"", tarfile.SYMTYPE), ("hard.txt", b"", tarfile.LNKTYPE),
                  ("folder.txt", b"", tarfile.DIRTYPE), ("a.txt", b"7"), ("b.txt", b"8"),
                  ("a.txt", b"9"), ("b.cls", b"10"), ("caf\udce9.txt", b"11"),
                  ("with space%.txt", b"12"), ("é.e e", b"13")], tarfile.GNU_FORMAT)
    write("names.tar", data)
    many = shard([(f"{i:05d}.{ext}", b"%d" % i) for i in range(2000)
                  for ext in (["jpg", f"x{i}"] if i < 1000 else ["jpg"])])
    write("many.tar", many)
    with mounted():
        ds = Shards(path("names.tar"), data)
        equal(len(ds.samples), 12, "samples")
        equal(os.path.isfile(f"{ds.folder}/samples/raw/%2E.%2F..%2Fetc%2Fx.txt"), True, "escaped")
        for i in range(len(ds.samples)):
            ds.check_sample(i)
        ds.check_plan("batch=5,seed=1", 3)
        equal(content(path("many.tar"), "samples/raw/01999.jpg"), b"1999", "one of many extensions")
    printed = run("info", SOURCE)
    contains(printed, "2 files without an extension", "2 links and devices", "repeat the key",
             "extensions are beyond the first 300")


def check_values():
    """Extensions that differ in the last part are fields of their own, also where each is a value."""
    fresh()
    write("s/s0.tar", shard([("a.x.cls", b"1"), ("b.x.cls", b"2")]))
    write("s/s1.tar", shard([("c.x.id", b"70001"), ("d.X.ID", b"70002")]))
    for name, order in (("one", ("x.cls", "x.id", "cls", "cls.cls")), ("two", ("cls.cls", "x.id", "cls", "x.cls"))):
        write(f"{name}/a.tar", shard([(f"{k}.{ext}", b"%d" % (10 * i + len(ext)))
                                      for i, k in enumerate("ab") for ext in order]))
    write("texts/a.tar", shard([("a.txt", b"1"), ("a.txt.txt", b"2"), ("a.t.txt", b"3"), ("a.a.b.json", b"{}"), ("a.a.c.json", b"[]")]))
    write("bytes/a.tar", shard([("a.png", b"p"), ("a.seg.png", b"s"), ("a.x", b"x"), ("a.x.cls", b"5"), ("a.x.npy", npy(np.int64([4])))]))
    with mounted():
        npz = np.load(io.BytesIO(content(path("s/all/batches/batch=all/npz/000000.npz"))))
        equal(npz["x.cls"].tolist() + npz["x.id"].tolist(), [1, 2, 70001, 70002], "x.cls and x.id of shards")
        equal(npz["x.cls_offsets"].tolist(), [0, 1, 2, 2, 2], "who has x.cls")
        equal("x" in npz, False, "x")
        equal(array(path("s/s0.tar/batches/batch=all/npy/000000.x.npy")).tolist(), [1, 2], "alone")
        for name in "one", "two":
            npz = np.load(io.BytesIO(content(path(f"{name}/a.tar/batches/batch=all/npz/000000.npz"))))
            equal({f: npz[f].tolist() for f in npz if f not in ("index", "key")},
                  {"x.cls": [5, 15], "x.id": [4, 14], "cls": [3, 13], "cls.cls": [7, 17]}, name)
        equal({f: content(path("texts/a.tar/samples/txt", f)) for f in os.listdir(path("texts/a.tar/samples/txt"))},
              {"a.txt": b"1\n", "a.txt.txt.txt": b"2\n", "a.t.txt": b"3\n", "a.a.b.json.txt": b"{}\n",
               "a.a.c.json.txt": b"[]\n"}, "texts")
        npz = np.load(io.BytesIO(content(path("bytes/a.tar/samples/npz/a.npz"))))
        equal({f: npz[f].tobytes() for f in ("png", "seg.png", "x")}, {"png": b"p", "seg.png": b"s", "x": b"x"}, "bytes")
        equal((int(npz["x.cls"]), npz["x_npy"].tolist()), (5, [4]), "values")


def check_members():
    """What stands between members of a sample ends it or not; two names of one file; archives in archives."""
    fresh()
    inner = shard([("in.txt", b"inner")])
    members = [("a.txt", b"1"), ("a.d/", b"", tarfile.DIRTYPE), ("noext", b"no"), ("link.jpg", b"", tarfile.SYMTYPE),
               ("__meta__/x.cls", b"9"), ("a.cls", b"2"), ("x.jpg", b"3"), ("./x.jpg", b"4"), ("./x.cls", b"5"),
               ("b.tar", inner), ("b.tgz", gzip.compress(inner, mtime=0)), ("b.txt.gz", b"not unpacked"), ("c.jpg", b"")]
    data = shard(members)
    write("members.tar", data)
    with mounted():
        raw = path("members.tar", "samples/raw")
        want = {"a.txt": b"1", "a.cls": b"2", "x.jpg": b"3", "x~2.jpg": b"4", "x~2.cls": b"5", "b.tar": inner,
                "b.tgz": gzip.compress(inner, mtime=0), "b.txt.gz": b"not unpacked", "c.jpg": b""}
        equal({name: content(raw, name) for name in os.listdir(raw)}, want, "files")
        ds = Shards(path("members.tar"), data)
        equal(len(ds.samples), 5, "samples")


def check_extensions():
    """10^5 extensions: the first 300 are fields, the others are ignored with a note."""
    fresh()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(100_000):
            tar.addfile(tarfile.TarInfo(f"{i % 1000:03}.jpg" if i < 1000 else f"k.{i}"))
    write("many.tar", archive.getvalue())
    contains(run("info", SOURCE), "extensions are beyond the first 300")


check_members()
check_extensions()
check_forms()
check_shards()
check_arrays()
check_values()
check_names()
