#!/usr/bin/python3
# slow: every record, against a reader in Python
"""RecordIO, made here and real where ../shared/data has it: every record against a reader in Python,
as samples, and in batches in stored and in shuffled order; pictures of im2rec with their labels,
records that are cut where they have the magic number, opaque ones; from a folder and over HTTP."""

import hashlib
import io
import os
import random
import re
import struct
import sys
import tarfile

import numpy as np

import lib
from lib import CACHE, SOURCE, contains, equal, mounted, path, run, text, write
from recordio_model import MAGIC, ext_of, parse_picture, picture, read, record
from servers import Nginx, check_once

rng = random.Random(5)
JPG, PNG = b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n"


def content(*parts):
    return lib.content(path(*parts))


def array(*parts):
    return np.load(io.BytesIO(content(*parts)))


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


class File:
    """What a file of records must show."""

    def __init__(self, data, pictures, keys=None):
        self.payloads = [p for _, p in read(data)]
        self.parsed = [parse_picture(p) for p in self.payloads] if pictures else None
        n = range(len(self.payloads))
        self.keys = keys or ([str(p[1]) for p in self.parsed] if pictures else [f"{i:06}" for i in n])
        if pictures:
            self.lists = any(isinstance(p[0], list) for p in self.parsed)
            self.whole = not self.lists and all(float(p[0]).is_integer() and p[0] >= 0
                                                for p in self.parsed)
            self.exts = [ext_of(p[3]) for p in self.parsed]
            self.lengths = {len(p[0]) if isinstance(p[0], list) else 1 for p in self.parsed}

    def labels(self, i):
        want = self.parsed[i][0]
        want = [want] if self.lists and not isinstance(want, list) else want
        return np.array(want, np.float32)

    def tar(self, i):
        key = self.keys[i]
        if not self.parsed:
            return {f"{key}.record": self.payloads[i]}
        ret = {f"{key}.{self.exts[i]}": self.parsed[i][3]}
        if self.whole:
            ret[f"{key}.label.cls"] = b"%d" % self.parsed[i][0]
        return ret

    def check_tar(self, data, order, what):
        got = members(data)
        for i in order:
            for name, want in self.tar(i).items():
                equal(got.pop(name), want, f"{what}: {name}")
            if self.parsed:
                key = self.keys[i]
                np.testing.assert_array_equal(np.load(io.BytesIO(got.pop(f"{key}.id.npy"))),
                                              np.uint64(self.parsed[i][1]))
                if any(p[2] for p in self.parsed):
                    np.testing.assert_array_equal(np.load(io.BytesIO(got.pop(f"{key}.id2.npy"))),
                                                  np.uint64(self.parsed[i][2]))
                if not self.whole:
                    np.testing.assert_array_equal(
                        np.load(io.BytesIO(got.pop(f"{key}.label.npy"))), self.labels(i))
        equal(got, {}, f"{what}: members")

    def check_samples(self, ds):
        for i, key in enumerate(self.keys):
            if not self.parsed:
                equal(content(ds, "samples/raw", f"{key}.record"), self.payloads[i], f"{ds} {key}")
                continue
            equal(content(ds, "samples/raw", f"{key}.{self.exts[i]}"), self.parsed[i][3],
                  f"{ds} {key}")
            label = array(ds, "samples/npy", f"{key}.label.npy")
            equal((label.dtype, label.shape), (np.dtype("<f4"), self.labels(i).shape), "label")
            np.testing.assert_array_equal(label, self.labels(i))
            np.testing.assert_array_equal(array(ds, "samples/npy", f"{key}.id.npy"),
                                          np.uint64(self.parsed[i][1]))
            self.check_tar(content(ds, "samples/tar", f"{key}.tar"), [i], key)
        equal(len(os.listdir(path(ds, "samples/raw"))), len(self.keys), f"{ds}: listed")

    def check_batch(self, folder, batch, order):
        npz, what = np.load(io.BytesIO(content(folder, "npz", f"{batch}.npz"))), f"{folder}/{batch}"
        equal([k.decode() for k in npz["key"]], [self.keys[i] for i in order], what)
        for name in [n for n in npz.files if n.endswith("_offsets") and n != "label_offsets"]:
            stem, data, at = name[:-8], npz[name[:-8]].tobytes(), npz[name]
            for k, i in enumerate(order):
                want = self.payloads[i]
                if self.parsed:
                    want = self.parsed[i][3]
                    if stem not in ("image", f"image_{self.exts[i]}"):
                        want = b""
                equal(data[at[k]:at[k + 1]], want, f"{what}: {name} {i}")
        if self.parsed:
            got = npz["label"]
            want = [self.labels(i) for i in order]
            if self.lists and len(self.lengths) > 1:
                np.testing.assert_array_equal(got, np.concatenate(want))
                np.testing.assert_array_equal(np.diff(npz["label_offsets"]),
                                              [len(w) for w in want])
            else:
                np.testing.assert_array_equal(got, np.stack(want))
            np.testing.assert_array_equal(npz["id"], [self.parsed[i][1] for i in order])
        self.check_tar(content(folder, "tar", f"{batch}.tar"), order, what)

    def check(self, ds):
        n = len(self.keys)
        self.check_samples(ds)
        self.check_batch(f"{ds}/batches/batch=all", "000000", range(n))
        seeded = f"{ds}/batches/batch=5,seed=3/epoch=2"
        seen = []
        for b in range((n + 4) // 5):
            order = [int(i) for i in array(seeded, "npy", f"{b:06}.index.npy")]
            self.check_batch(seeded, f"{b:06}", order)
            seen += order
        equal(sorted(seen), list(range(n)), f"{ds}: an epoch")


def image(kind, n):
    return kind + rng.randbytes(n)


# A picture may have the magic number, at any place; so may the header before it.
plain = [picture(float(i % 3), 100 + i * 7, image(JPG, rng.randrange(3000))) for i in range(40)]
cut = [picture(i + 0.5, i, JPG + MAGIC * (i % 4) + b"ab" * (i % 3) + MAGIC * (i % 2) + b"end")
       for i in range(24)] + [picture(struct.unpack("<f", MAGIC)[0], 99, image(PNG, 100))]
lists = [picture([1.0, 2.0, i], i, image(JPG, 50)) for i in range(20)]
mixed = [picture([float(i)] * (i % 4) if i % 4 else float(i), i, image((JPG, PNG, b"GIF89a")[i % 3], i))
         for i in range(30)] + [picture(1.0, 1000, b"no picture")]
twice = [picture(1.0, i // 2, image(JPG, 20)) for i in range(20)]
high = [picture(1.0, i, image(JPG, 20), high=i) for i in range(20)]
opaque = [b"", b"a", MAGIC, MAGIC * 2, b"abc" + MAGIC, b"abcd" + MAGIC + b"x", b"x" * 100_000] + \
    [rng.randbytes(rng.randrange(90)) for _ in range(400)]
numbers = [f"{i:06}" for i in range(31)]
made = {
    "plain": (plain, True, None), "cut": (cut, True, None), "lists": (lists, True, None),
    "mixed": (mixed, True, None), "twice": (twice, True, numbers[:20]),
    "high": (high, True, numbers[:20]), "opaque": (opaque, False, None),
}
want = {}
for name, (payloads, pictures, keys) in made.items():
    data = b"".join(record(p, pad=b"\0" if name != "plain" else b"x") for p in payloads)
    equal([p for _, p in read(data)], payloads, "the model itself")
    write(f"{name}/{name}.rec", data)
    want[name] = File(data, pictures, keys)

# Two files as one: ids that are unique in both are keys, otherwise there are numbers.
write("pair/a.rec", b"".join(map(record, plain[:20])))
write("pair/b.rec", b"".join(map(record, plain[20:])))
write("same/a.rec", b"".join(map(record, twice[::2])))
write("same/b.rec", b"".join(map(record, twice[1::2])))

# Other files: an .idx that is right, or wrong in one way or another, changes nothing.
places = [p for p, _ in read(b"".join(map(record, plain)))]
right = [f"{100 + i * 7}\t{p}\n" for i, p in enumerate(places)]
beside = {
    "right": ("".join(right), ""), "shuffled": ("".join(right[::-1]), ""),
    "longer": ("".join(right) + f"9\t{places[-1] + 4}\n", "not all its places"),
    "shorter": ("".join(right[:-1]), "not all its places"),
    "other": ("".join(right[:5] + [f"9\t{places[5] + 4}\n"] + right[6:]), "not all its places"),
    "beyond": ("".join(right) + f"9\t{10 ** 9}\n", "line 41: expected a record at byte 1000000000"),
    "crlf": (right[0] + "".join(right[1:]).replace("\n", "\r\n"), "line 2: expected"),
    "space": (right[0] + right[1].replace("\t", " "), "line 2: expected"),
}
for name, (idx, _) in beside.items():
    write(f"idx/{name}.rec", b"".join(map(record, plain)))
    write(f"idx/{name}.idx", idx.encode())
write("idx/right.lst", b"100\t7.0\tnot/its.jpg\n")  # labels are those of the records

files = {n: os.path.getsize(os.path.join(SOURCE, f"{n}/{n}.rec")) for n in made}


def check_all():
    for name in made:
        want[name].check(f"{name}/{name}.rec")
    want["plain"].check("pair/all")
    equal(sorted(os.listdir(path("same/all/samples/raw"))), [f"{i:06}.jpg" for i in range(20)],
          "numbers, since ids repeat")


for again in ("made", "kept"):
    with mounted(SOURCE, f"cache={CACHE}"):
        check_all()
        for name in beside:
            want["plain"].check_samples(f"idx/{name}.rec")
info = run("info", SOURCE)
for name, (_, note) in beside.items():
    line = next((l for l in info.splitlines() if l.startswith("    note") and f"{name}.idx" in l), "")
    equal(note in line and bool(note) == bool(line), True, f"{name}: {line!r}")

# Over HTTP, through the stage: each byte once; the index of large records takes their headers only.
SMALL = ["plain", "cut", "opaque"]
http = os.path.join(SOURCE, "..", "http")
os.makedirs(http)
for name in SMALL:
    os.link(os.path.join(SOURCE, f"{name}/{name}.rec"), os.path.join(http, f"{name}.rec"))
with Nginx(http) as nginx:
    with mounted(nginx.url, f"cache={CACHE}.http", "plan=batch=5+seed=3", "block=4096"):
        for name in SMALL:
            want[name].check(f"{name}.rec")
    check_once(nginx.log(), {f"/{n}.rec": files[n] for n in SMALL}, "records")
    contains(run("stage", "-o", f"cache={CACHE}.http", nginx.url), "3 files", "complete and correct")

large = [picture(1.0, i, image(JPG, 200_000)) for i in range(40)]
for name, has_idx in (("hops", False), ("idx", True)):
    folder = os.path.join(SOURCE, "..", name)
    os.makedirs(folder)
    data = b"".join(map(record, large))
    with open(os.path.join(folder, "large.rec"), "wb") as f:
        f.write(data)
    if has_idx:
        with open(os.path.join(folder, "large.idx"), "w") as f:
            f.writelines(f"{i}\t{p}\n" for i, (p, _) in enumerate(read(data)))
    with Nginx(folder) as nginx:
        contains(run("info", "-o", f"cache={CACHE}.{name}", "-o", "block=4096", nginx.url), "40")
        got = sum(r.sent for r in nginx.log())
        equal(got < len(data) // 8, True, f"{name}: {got} bytes for the headers of {len(data)}")

# Real files.
shared = os.path.join(os.environ.get("SHARED_DATA", ""), "recordio")
if not os.path.isdir(shared):
    sys.exit(0)
expected = lib.content(os.path.join(shared, "..", "EXPECTED-collections.md")).decode()
expected = expected[expected.index("\n## RecordIO"):]
real = {"cars-detection/train": True, "faces/train": True, "glyphs/val": True, "dmlc/sample": False,
        "dmlc-written/magic": False}
with mounted(shared, f"cache={CACHE}.real"):
    for name, pictures in real.items():
        data = lib.content(os.path.join(shared, f"{name}.rec"))
        file = File(data, pictures)
        file.check(f"{name}.rec")
        block = expected[expected.index(f"\n{name}.rec: {len(data)} B, records {len(file.payloads)},"):]
        found = re.findall(r"^   record (\d+) at (\d+) len (\d+) sha (\w+)(?: flag (\d+) label (.*?) id (\d+))?",
                           block[:block.index(".rec: ", 40)], re.M)
        equal(len(found) >= 2, True, f"{name}: lines of the expected")
        for i, at, length, sha, _, label, number in found:
            place, payload = read(data)[int(i)]
            equal((place, len(payload), hashlib.sha256(payload).hexdigest()[:16]),
                  (int(at), int(length), sha), f"{name}: record {i}")
            if pictures:
                got = array(f"{name}.rec/samples/npy", f"{number}.label.npy").tolist()
                equal(np.allclose(got, eval(label), atol=1e-6), True, f"{name}: label {got} of {label}")
