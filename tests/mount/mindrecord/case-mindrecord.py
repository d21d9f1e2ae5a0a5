#!/usr/bin/python3
# slow: every value, against a reader in Python
"""MindRecord, made here and real where ../shared/data has it: every value against a reader in Python,
as samples, and in batches in stored and in shuffled order; shards as one dataset; decoded pictures."""

import glob
import io
import os
import random
import tarfile

import numpy as np

import lib
from lib import CACHE, SOURCE, contains, equal, mounted, path, run, text, write
from mindrecord_model import DTYPES, make, read

SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "mindrecord")
rng = random.Random(11)
STARTS = {b"\xff\xd8\xff": "jpg", b"\x89PNG\r\n\x1a\n": "png", b"GIF8": "gif", b"II*\0": "tiff",
          b"BM": "bmp", b"\x93NUMPY": "npy"}


def content(*parts):
    return lib.content(path(*parts))


def ext_of(data):
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((ext for start, ext in STARTS.items() if data.startswith(start)), "bin")


class Set:
    """What files of rows, in order, must show."""

    def __init__(self, *files):
        headers, rows = zip(*map(read, files))
        self.schema = headers[0]["schema"][0]["schema"]
        self.rows = [row for some in rows for row in some]
        self.keys = [f"{i:06}" for i in range(len(self.rows))]
        of = lambda *types: [k for k, s in self.schema.items() if s["type"] in types]
        self.bytes, self.text = of("bytes"), of("string")
        self.numbers = of(*DTYPES)
        self.kinds = {k: {ext_of(row[k]) for row in self.rows} for k in self.bytes}
        self.shapes = {k: {row[k].shape for row in self.rows} for k in self.numbers}

    def file(self, i, name):
        ext = ext_of(self.rows[i][name])
        return f"{self.keys[i]}.{ext}" if len(self.bytes) == 1 else f"{self.keys[i]}.{name}.{ext}"

    def same(self, got, want, what):
        equal((got.dtype, got.shape), (want.dtype, want.shape), what)
        equal(got.tobytes(), want.tobytes(), what)

    def check_tar(self, data, order, what):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            got = {m.name: tar.extractfile(m).read() for m in tar}
        for i in order:
            for name in self.bytes:
                equal(got.pop(self.file(i, name)), self.rows[i][name], f"{what}: {name} {i}")
            for name in self.text:
                equal(got.pop(f"{self.keys[i]}.{name}.txt"), self.rows[i][name] + b"\n", f"{what}: {name} {i}")
            for name in self.numbers:
                self.same(np.load(io.BytesIO(got.pop(f"{self.keys[i]}.{name}.npy"))), self.rows[i][name],
                          f"{what}: {name} {i}")
        equal(got, {}, f"{what}: members")

    def check_samples(self, ds):
        folders = {"raw": [], "npy": [], "txt": []}
        for i, key in enumerate(self.keys):
            row, npz = self.rows[i], np.load(io.BytesIO(content(ds, "samples/npz", f"{key}.npz")))
            for name in self.bytes:
                equal(content(ds, "samples/raw", self.file(i, name)), row[name], f"{ds} {key} {name}")
                member = name if len(self.kinds[name]) == 1 else f"{name}_{ext_of(row[name])}"
                equal(npz[member].tobytes(), row[name], f"{ds} {key} {name} in npz")
                folders["raw"].append(self.file(i, name))
            for name in self.text:
                equal(content(ds, "samples/txt", f"{key}.{name}.txt"), row[name] + b"\n",
                      f"{ds} {key} {name}")
                equal(npz[name].tobytes().rstrip(b"\0"), row[name].rstrip(b"\0"), f"{ds} {key} {name} in npz")
                folders["txt"].append(f"{key}.{name}.txt")
            for name in self.numbers:
                self.same(np.load(io.BytesIO(content(ds, "samples/npy", f"{key}.{name}.npy"))), row[name],
                          f"{ds} {key} {name}")
                self.same(npz[name], row[name], f"{ds} {key} {name} in npz")
                folders["npy"].append(f"{key}.{name}.npy")
            self.check_tar(content(ds, "samples/tar", f"{key}.tar"), [i], f"{ds} {key}")
        for folder, names in folders.items():
            got = os.listdir(path(ds, "samples", folder)) if names else []
            equal(sorted(got), sorted(names), f"{ds}: listed in {folder}")

    def check_array(self, get, name, order, what):
        """An array of a batch of npz: stacked, or one after another."""
        want = [self.rows[i][name] for i in order]
        if len(self.shapes[name]) == 1:
            self.same(get(name), np.stack(want), what)
            return
        got, at = get(name), get(f"{name}_offsets")
        for k, one in enumerate(want):
            equal(got[at[k]:at[k + 1]].tobytes(), one.tobytes(), f"{what} {k}")

    def check_batch(self, folder, batch, order):
        npz, what = np.load(io.BytesIO(content(folder, "npz", f"{batch}.npz"))), f"{folder}/{batch}"
        equal([k.decode() for k in npz["key"]], [self.keys[i] for i in order], what)
        for name in self.numbers:
            can_be = len({s[1:] for s in self.shapes[name]}) == 1  # else its other axes differ
            if can_be or len({self.rows[i][name].shape[1:] for i in order}) == 1:
                self.check_array(npz.__getitem__, name, order, f"{what} {name}")
        for name in self.bytes:
            for kind in self.kinds[name]:
                member = name if len(self.kinds[name]) == 1 else f"{name}_{kind}"
                data, at = npz[member].tobytes(), npz[f"{member}_offsets"]
                for k, i in enumerate(order):
                    one = self.rows[i][name] if ext_of(self.rows[i][name]) == kind else b""
                    equal(data[at[k]:at[k + 1]], one, f"{what} {member} {i}")
        for name in self.text:
            equal([s.rstrip(b"\0") for s in npz[name].tolist()],
                  [self.rows[i][name].rstrip(b"\0") for i in order], f"{what} {name}")
            equal(content(folder, "txt", f"{batch}.{name}.txt"),
                  b"".join(self.rows[i][name] + b"\n" for i in order), f"{what} {name}.txt")
        for name in self.numbers:
            want = [self.rows[i][name] for i in order]
            if len({w.shape for w in want}) > 1 and len({w.shape[1:] for w in want}) > 1:
                continue
            got = np.load(io.BytesIO(content(folder, "npy", f"{batch}.{name}.npy")))
            if len(self.shapes[name]) == 1:
                self.same(got, np.stack(want), f"{what} {name}.npy")
                continue
            lengths = np.load(io.BytesIO(content(folder, "npy", f"{batch}.{name}_len.npy")))
            for k, one in enumerate(want):
                equal((int(lengths[k]), got[k, :len(one)].tobytes()), (len(one), one.tobytes()),
                      f"{what} {name}.npy {k}")
                equal(got[k, len(one):].any(), np.False_, "padding")
        self.check_tar(content(folder, "tar", f"{batch}.tar"), order, what)

    def check(self, ds):
        n = len(self.keys)
        self.check_samples(ds)
        self.check_batch(f"{ds}/batches/batch=all", "000000", range(n))
        seeded, seen = f"{ds}/batches/batch=7,seed=3/epoch=2", []
        for b in range((n + 6) // 7):
            order = [int(i) for i in
                     np.load(io.BytesIO(content(seeded, "npy", f"{b:06}.index.npy")))]
            self.check_batch(seeded, f"{b:06}", order)
            seen += order
        equal(sorted(seen), list(range(n)), f"{ds}: an epoch")


def row_of(i):
    """A row of every type; sizes of some differ."""
    start = rng.choice([b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"no picture"])
    return {"image": start + rng.randbytes(rng.randrange(300)), "file name.jpg": f'im "q" \'{i}\' é',
            "label": i - 20, "big": rng.randrange(-2 ** 63, 2 ** 63), "small": rng.uniform(-1, 1),
            "wide": rng.uniform(-1e300, 1e300),
            "box": np.array([[rng.randrange(-2 ** 31, 2 ** 31) for _ in range(2)] for _ in range(3)]),
            "ids": np.array([rng.randrange(-2 ** rng.choice([7, 15, 31, 63]), 127)
                             for _ in range(rng.randrange(9))], np.int64),
            "points": np.array([rng.random() for _ in range(2 * rng.randrange(4))]).reshape(-1, 2),
            "same": np.arange(5) * 0.5}


schema = {"image": {"type": "bytes"}, "file name.jpg": {"type": "string"}, "label": {"type": "int32"},
          "big": {"type": "int64"}, "small": {"type": "float32"}, "wide": {"type": "float64"},
          "box": {"type": "int32", "shape": [3, 2]}, "ids": {"type": "int64", "shape": [-1]},
          "points": {"type": "float64", "shape": [-1, 2]}, "same": {"type": "float32", "shape": [-1]}}
rows = [row_of(i) for i in range(60)]
names = [f"s.mindrecord{i}" for i in range(4)]
made = {
    "pages": [make(schema, rows, rows_of_page=7)],
    "old": [make(schema, rows, version="2.0", rows_of_page=7)],
    "bytes": [make({"a": {"type": "bytes"}, "b": {"type": "bytes"}},
                   [{"a": b"\xff\xd8\xff%d" % i, "b": b"%d" % i * 9} for i in range(20)])],
    "onlyblob": [make({"data": {"type": "bytes"}}, [{"data": rng.randbytes(i * 400)} for i in range(40)])],
    "onlyraw": [make({"t": {"type": "string"}, "n": {"type": "int64"}},
                     [{"t": "x" * i, "n": i} for i in range(150)], rows_of_page=50)],
    "oneint": [make({"n": {"type": "int32", "shape": [-1]}},
                    [{"n": np.arange(i * 50) * 77} for i in range(12)])],
    "shards": [make(schema, rows[i * 15:i * 15 + 15], shard=i, addresses=names) for i in range(4)],
}
sets = {}
for name, files in made.items():
    if len(files) == 1:
        write(f"{name}/made.mindrecord", files[0])
        sets[f"{name}/made.mindrecord"] = Set(*files)
        continue
    for i, data in enumerate(files):
        write(f"{name}/{names[i]}", data)
        sets[f"{name}/{names[i]}"] = Set(data)
    sets[f"{name}/all"] = Set(*files)
equal(len(sets["pages/made.mindrecord"].rows), 60, "the model itself")
equal(sets["pages/made.mindrecord"].rows[5]["ids"].tolist(), rows[5]["ids"].tolist(), "the model itself")

for again in range(2):  # the second mount takes the kept indexes
    with mounted(SOURCE, f"cache={CACHE}"):
        for ds, want in sets.items():
            want.check(ds)

# Real files. Among all files of a folder, shards are in the order of their names.
if os.path.isdir(SHARED):
    real = {}
    for folder in sorted({os.path.dirname(f) for f in glob.glob(f"{SHARED}/**/*.db", recursive=True)}):
        files = [f[:-3] for f in sorted(glob.glob(f"{folder}/*.db"))]
        if folder.endswith("legacy"):
            continue
        data = [lib.content(f) for f in files]
        for file, one in zip(files, data):
            real[os.path.relpath(file, SHARED)] = Set(one)
        if len(files) > 1:
            real[os.path.relpath(os.path.join(folder, "all"), SHARED)] = Set(*data)
    equal(sum(len(s.rows) for ds, s in real.items() if not ds.endswith("/all")), 16 + 5 + 153 + 233)
    with mounted(SHARED):
        for ds, want in real.items():
            want.check(ds)
        for folder in os.listdir(SHARED):
            equal([n for n in os.listdir(path(folder)) if n.endswith(".db")], [], folder)
        names = {s.decode() for s in np.load(io.BytesIO(content("ms-written/mix4/all/batches/batch=all/npz/000000.npz")))["file_name"]}
        equal(names, {f"im \"q\" '{k}' é.jpg" for k in range(200)})
        for i in range(5):
            contains(text(path(f"aclImdb-legacy/aclImdb.mindrecord0{i}/ERROR.txt")),
                     "pre-release MindRecord schema type 'array'")
    with mounted(SHARED, "picture=32x24"):
        npz = np.load(io.BytesIO(content("twobytes/twobytes.mindrecord/batches/batch=5,seed=1/epoch=0/npz/000000.npz")))
        equal(npz["image"].shape, (5, 32, 24, 3))
