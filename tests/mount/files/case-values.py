#!/usr/bin/python3
"""Files next to pictures that are values: .npy as arrays, .cls, .index and .id as integers, in one folder and in
class folders; locally, over HTTP, with a kept index. What cannot be a value is shown as it is, and says why;
an object that the server refuses fails its sample alone."""

import errno
import io
import json
import os
import tarfile

import numpy as np

from fake_s3 import FakeS3
from lib import (PRIVATE, SOURCE, contains, content, equal, expect_error, mounted, path, run, stop, text, write)
from servers import Nginx, place, start_at

rng = np.random.default_rng(5)
N = 90
PLAN = "batches/batch=32,seed=4/epoch=0"


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def with_long_head(array):
    """The same in version 2, with a header of 1,000 bytes."""
    head = str(np.lib.format.header_data_from_array_1_0(array)).ljust(987).encode() + b"\n"
    return b"\x93NUMPY\2\0" + len(head).to_bytes(4, "little") + head + array.tobytes("A")


class Sample:
    def __init__(self, i):
        self.key = f"{i:03d}"
        self.cls, self.id = int(rng.integers(-9, 9)), int(rng.integers(1 << 40))
        self.emb = rng.normal(size=(4, 5)).astype([">f4", "<f4"][i % 2])
        self.boxes = rng.integers(-99, 99, (int(rng.integers(0, 7)), 4)).astype(np.int16)
        if i % 3 == 0:
            self.boxes = np.asfortranarray(self.boxes)
        self.rare = rng.normal(size=3) if i % 4 == 0 else None

    def files(self):
        files = {"jpg": b"picture " + self.key.encode() * 9, "cls": b"%d\n" % self.cls, "ID": b" %d" % self.id,
                 "emb.npy": npy(self.emb), "boxes.npy": with_long_head(self.boxes),
                 "note.txt": b"about " + self.key.encode()}
        if self.rare is not None:
            files["rare.npy"] = npy(self.rare)
        return files


samples = [Sample(i) for i in range(N)]
DATA = {f"{s.key}.{ext}": data for s in samples for ext, data in s.files().items()}


def load(*parts):
    return np.load(io.BytesIO(content(*parts)))


def same(got, want, what):
    equal((got.dtype, got.shape), (want.dtype.newbyteorder("<"), want.shape), f"{what}: form")
    equal(np.array_equal(got, want), True, what)


def check_sample(root, s):
    same(load(root, f"samples/npy/{s.key}.emb.npy"), s.emb, "emb")
    same(load(root, f"samples/npy/{s.key}.boxes.npy"), s.boxes, "boxes")
    same(load(root, f"samples/npy/{s.key}.cls.npy"), np.array(s.cls), "cls")
    with load(root, f"samples/npz/{s.key}.npz") as npz:
        same(npz["emb"], s.emb, "npz emb")
        equal(int(npz["id"]), s.id, "npz id")
        equal("rare" in npz, s.rare is not None, "a sample has what it has")
    equal(content(root, f"samples/raw/{s.key}.emb.npy"), s.files()["emb.npy"], "raw")
    if s.rare is None:
        expect_error(errno.ENOENT, content, root, f"samples/npy/{s.key}.rare.npy")


def check_batch(root, i):
    with load(root, f"{PLAN}/npz/{i:06}.npz") as npz:
        chosen = [samples[k] for k in npz["index"]]
        same(npz["emb"], np.stack([s.emb.astype("<f4") for s in chosen]), "emb of a batch")
        same(npz["cls"], np.array([s.cls for s in chosen]), "cls of a batch")
        same(npz["boxes"], np.concatenate([s.boxes for s in chosen]), "boxes of a batch")
        equal(npz["boxes_offsets"].tolist(), [0, *np.cumsum([len(s.boxes) for s in chosen])], "offsets")
        same(npz["rare"], np.concatenate([[], *(s.rare for s in chosen if s.rare is not None)]), "rare")
    padded = load(root, f"{PLAN}/npy/{i:06}.boxes.npy")
    lengths = load(root, f"{PLAN}/npy/{i:06}.boxes_len.npy")
    for k, s in enumerate(chosen):
        same(padded[k][:lengths[k]], s.boxes, "padded")
        equal(int(np.abs(padded[k][lengths[k]:]).sum()), 0, "padding")
    with tarfile.open(fileobj=io.BytesIO(content(root, f"{PLAN}/tar/{i:06}.tar"))) as tar:
        for member in tar:
            key, _, ext = member.name.partition(".")
            if ext in ("index", "__key__"):
                continue
            files = {e.lower(): data for e, data in samples[int(key)].files().items()}
            equal(tar.extractfile(member).read(), files[ext], member.name)


def check_all(root):
    for s in samples[:9]:
        check_sample(root, s)
    for i in range(-(-N // 32)):
        check_batch(root, i)


# One folder, here.
for file, data in DATA.items():
    write(f"{SOURCE}/{file}", data)
with mounted():
    check_all(path("all"))
    equal(text(path("all"), "samples/txt/004.note.txt").rstrip("\n"), "about 004", "txt")

# Over HTTP, staged and not; the kept index needs no value again.
WWW = f"{PRIVATE}/www"
for file, data in DATA.items():
    place(WWW, f"set/{file}", data)
with Nginx(WWW) as server:
    for options in ("stage=off",), ("stage=auto",):
        cache = f"{PRIVATE}/cache-{options[0][6:]}"
        daemon = start_at("far", f"{server.url}/set/", f"cache={cache}", *options)
        check_all(f"{daemon.at}/all")
        stop(daemon)
    server.forget()
    daemon = start_at("far", f"{server.url}/set/", f"cache={PRIVATE}/cache-off", "stage=off")
    equal(load(f"{daemon.at}/all/samples/npy/007.cls.npy").item(), samples[7].cls, "of the kept index")
    equal([r.path for r in server.log() if r.path.endswith(".npy")], [], "values that were read again")
    stop(daemon)

# Class folders: the class is `label`, a member label.cls has its name in full.
for i, s in enumerate(samples[:20]):
    write(f"{SOURCE}/train/{'ab'[i % 2]}/{s.key}.jpg", b"jpg" + s.key.encode())
    write(f"{SOURCE}/train/{'ab'[i % 2]}/{s.key}.emb.npy", npy(s.emb))
    write(f"{SOURCE}/train/{'ab'[i % 2]}/{s.key}.label.cls", b"%d" % (100 + i))
    write(f"{SOURCE}/train/{'ab'[i % 2]}/{s.key}.label", b"bytes" + s.key.encode())
with mounted(f"{SOURCE}/train"):
    with load(path("all"), "batches/batch=20/npz/000000.npz") as npz:
        order = [int(k) for k in npz["key"]]
        equal(npz["label"].tolist(), [k % 2 for k in order], "label")
        equal(npz["label.cls"].tolist(), [100 + k for k in order], "label.cls")
        same(npz["emb"], np.stack([samples[k].emb.astype("<f4") for k in order]), "emb")
        equal(npz["label_file"].tobytes(), b"".join(b"bytes" + samples[k].key.encode() for k in order), "x.label")
        equal(npz["label_file_offsets"].tolist(), [8 * k for k in range(21)], "x.label, offsets")
    same(load(path("all"), "samples/npy/003.label.npy"), np.array(1), "the class of a sample")
    equal(content(path("all"), "samples/raw/003.label"), b"bytes003", "raw has its name")
    names = tarfile.open(path("all", "batches/batch=20/tar/000000.tar")).getnames()
    equal(len(names), len(set(names)), "names in tar")
    equal({"003.label", "003.label.cls"} <= set(names), True, "members in tar")

# What is no value: shown as it is, with the reason.
bad = f"{SOURCE}/bad"
for i in range(6):
    write(f"{bad}/{i}.jpg", b"jpg")
    write(f"{bad}/{i}.cls", b"cat" if i == 4 else b"1")
    write(f"{bad}/{i}.id", b"9" * 40 if i == 2 else b"1")
    write(f"{bad}/{i}.objects.npy", npy(np.array([{}, 1], dtype=object)) if i == 1 else npy(np.zeros(2)))
    write(f"{bad}/{i}.cut.npy", npy(np.zeros(200))[:300 if i == 3 else None])
    write(f"{bad}/{i}.type.npy", npy(np.zeros(2, np.int8 if i else np.int16)))
    write(f"{bad}/{i}.axes.npy", npy(np.zeros((2, 2) if i else 2)))
    write(f"{bad}/{i}.none.npy", b"")
    write(f"{bad}/{i}.good.npy", npy(np.full(2, i)))
for turn in range(2):
    with mounted(bad, f"cache={PRIVATE}/cache-bad"):
        same(load(path("all"), "batches/batch=6/npz/000000.npz")["good"],
             np.repeat(np.arange(6), 2).reshape(6, 2), "the good field")
        equal(content(path("all"), "samples/raw/4.cls"), b"cat", "raw")
        for i in range(6):
            equal(load(path("all"), f"samples/npz/{i}.npz")["cls"].dtype, np.uint8, "cls as bytes")
info = run("info", bad)
for file, why in (("4.cls", "a decimal integer"), ("2.id", "a decimal integer"), ("1.objects.npy", "expected"),
                  ("3.cut.npy", "expected"), ("1.type.npy", "type"), ("1.axes.npy", "axes"), ("0.none.npy", "header")):
    contains([line for line in info.splitlines() if file in line][0], why, "shown as they are only")

# An object that is refused: its sample has no value, the others have theirs; then it is allowed.
objects = {f"set/{i}.{ext}": data for i in range(8)
           for ext, data in (("jpg", b"picture"), ("emb.npy", npy(np.full(3, i))), ("cls", b"%d" % i))}
with FakeS3(objects) as s3:
    os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
    s3.forbidden = {"set/5.emb.npy", "set/6.cls"}
    options = ("anonymous", f"cache={PRIVATE}/cache-s3,stage=off")
    daemon = start_at("refused", "s3://data/set/", *options)
    for i in range(8):
        if i in (5, 6):
            for field in "emb", "cls":
                expect_error((errno.EACCES, errno.EIO), content, daemon.at, f"all/samples/npy/{i}.{field}.npy")
        else:
            equal(load(daemon.at, f"all/samples/npy/{i}.emb.npy").tolist(), [i] * 3, "emb")
            equal(load(daemon.at, f"all/samples/npy/{i}.cls.npy").item(), i, "cls")
        equal(content(daemon.at, f"all/samples/raw/{i}.jpg"), b"picture", "jpg")
    stop(daemon)
    s3.forbidden = set()
    daemon = start_at("refused", "s3://data/set/", *options)
    equal(load(daemon.at, "all/samples/npy/5.emb.npy").tolist(), [5] * 3, "allowed, in a new mount")
    stop(daemon)

# A kept index depends on how the boxes are read, which a recipe says.
BOX = b"<annotation><object><name>a</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>6</ymax></bndbox></object></annotation>"
for i in range(3):
    write(f"boxes/{i}.jpg", b"picture")
    write(f"boxes/{i}.cls", b"%d" % i)
    write(f"boxes/{i}.xml", BOX)
RECIPE = {"pictures": "*.jpg", "with": {"xml": "{stem}.xml", "cls": "{stem}.cls"}}
for name in "boxes", "plain", "boxes":
    with open(f"{PRIVATE}/{name}.json", "w", encoding="ascii") as f:
        json.dump({"datasets": {"all": RECIPE | ({"boxes": {"voc": "{stem}.xml"}} if name == "boxes" else {})}}, f)
    with mounted(f"{SOURCE}/boxes", f"layout={PRIVATE}/{name}.json", f"cache_dir={PRIVATE}/cache-boxes"):
        about = json.loads(text(path("all/dataset.json")))
        equal((about["notes"], "box_format" in about), ([], name == "boxes"), name)
