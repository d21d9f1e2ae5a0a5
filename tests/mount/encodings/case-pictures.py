#!/usr/bin/python3
# needs: python3-pil
"""-o picture=HxW: pictures of records as arrays of one size, in samples and batches, as PIL makes
them; records without a picture, pictures of two kinds in one dataset, a field that is called image
already; pictures that cannot be decoded, with an error or with bad_rows=zero."""

import errno
import io
import json
import os
import struct
import sys

if not os.environ.get("EPOCHFS_RECORDS"):
    sys.exit(77)
os.environ["EPOCHFS"] = os.environ["EPOCHFS_RECORDS"]

import numpy as np
from PIL import Image

import lib
from lib import SOURCE, contains, equal, expect_error, mounted, path, run, start, stop, write
from servers import Nginx, check_counters, check_once, files_below, sha256sums, wait_staged

H, W = 24, 40
rng = np.random.default_rng(5)


def content(*parts):
    return lib.content(path(*parts))


def load(*parts):
    return np.load(io.BytesIO(content(*parts)))


def file_of(records):
    """records: (key, {(kind, name): value}); see tests/support/learned_format.c."""
    data = b"TESTLRN1"
    for key, fields in records:
        data += struct.pack("<HH", len(key), len(fields)) + key.encode()
        for (kind, name), body in fields.items():
            data += struct.pack("<BBI", len(name), ord(kind), len(body)) + name.encode() + body
    return data


def picture(width, height, kind, mode="RGB"):
    small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    out = io.BytesIO()
    small.resize((width, height), Image.BICUBIC).convert(mode).save(out, kind)
    return out.getvalue()


def model(data):
    """Where libjpeg does not make it smaller first, no value differs by more than 1."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    w, h = image.size
    scaled = (H * w // h, H) if H * w >= W * h else (W, W * h // w)
    left, top = round((scaled[0] - W) / 2), round((scaled[1] - H) / 2)
    return np.asarray(image.resize(scaled, Image.BILINEAR).crop((left, top, left + W, top + H)))


def near(got, want, what):
    equal((got.dtype, got.shape), (want.dtype, want.shape), f"{what}: form")
    most = np.abs(got.astype(int) - want).max(initial=0)
    if most > 1:
        raise AssertionError(f"{what}: differs by up to {most}")


def number(i):
    return np.array(i, np.int64).tobytes()


all_records = [(f"k{i:03}", {("i", "label"): number(i % 7),
                             ("b", "photo.jpg"): picture(41 + i % 30, 25 + i % 20, "JPEG",
                                                         "L" if i % 5 == 0 else "RGB")})
               for i in range(150)]
GOOD = {key: model(fields["b", "photo.jpg"]) for key, fields in all_records}


def check_batches():
    for plan, batch in (("batch=64", 3), ("batch=50,seed=9/epoch=2", 3)):
        for i in range(batch):
            index = load(f"good.lrn/batches/{plan}/npy/{i:06}.index.npy")
            want = np.stack([GOOD[all_records[n][0]] for n in index])
            near(load(f"good.lrn/batches/{plan}/npy/{i:06}.image.npy"), want, f"{plan} {i}, npy")
            npz = load(f"good.lrn/batches/{plan}/npz/{i:06}.npz")
            near(npz["image"], want, f"{plan} {i}, npz")
            equal(npz["label"].tolist(), [n % 7 for n in index], "labels")
            equal(sorted(npz.files), ["image", "index", "key", "label", "photo", "photo_offsets"],
                  "members")
    # Pieces of any size: the same bytes.
    whole = content("good.lrn/batches/batch=64/npy/000001.image.npy")
    with open(path("good.lrn/batches/batch=64/npy/000001.image.npy"), "rb", buffering=0) as f:
        for off in (0, 127, 5000, 2881, len(whole) - 7, 64 * H * W):
            equal(os.pread(f.fileno(), 3001, off), whole[off:off + 3001], f"piece at {off}")


def check_samples():
    for key in list(GOOD)[::29]:
        near(load(f"good.lrn/samples/npy/{key}.image.npy"), GOOD[key], key)
        near(load(f"good.lrn/samples/npz/{key}.npz")["image"], GOOD[key], key)
    about = json.loads(content("good.lrn/dataset.json"))
    equal((about["picture"]["height"], about["picture"]["width"]), (H, W), "dataset.json")
    contains(about["picture"]["decoders"], "libjpeg-turbo ", "libpng ", "scaling ")
    field = next(f for f in about["fields"] if f["name"] == "image")
    equal((field["dtype"], field["shape"]), ("uint8", [H, W, 3]), "dataset.json")


# Records with a JPEG, with a PNG, with both, with none.
mixed = [(f"m{i}", ({("b", "photo.jpg"): picture(50, 30, "JPEG")} if i % 4 in (0, 2) else {}) |
          ({("b", "drawing.png"): picture(60, 60, "PNG", "P")} if i % 4 in (1, 2) else {}))
         for i in range(8)]


def pictures_of(records, order):
    """The first that a record has, in the order of names."""
    return [next((model(f["b", n]) for n in order if ("b", n) in f), None) for _, f in records]


def check_holes():
    want = pictures_of(mixed, ("drawing.png", "photo.jpg"))
    rows = [np.zeros((0, W, 3), np.uint8) if w is None else w for w in want]
    lengths = [len(r) for r in rows]
    npz = load("mixed.lrn/batches/batch=8/npz/000000.npz")
    near(npz["image"], np.concatenate(rows), "ragged")
    equal(npz["image_offsets"].tolist(), [0] + np.cumsum(lengths).tolist(), "offsets")
    padded = np.zeros((8, H, W, 3), np.uint8)
    for i, r in enumerate(rows):
        padded[i, :len(r)] = r
    near(load("mixed.lrn/batches/batch=8/npy/000000.image.npy"), padded, "padded")
    equal(load("mixed.lrn/batches/batch=8/npy/000000.image_len.npy").tolist(), lengths, "lengths")
    near(load("mixed.lrn/samples/npy/m2.image.npy"), want[2], "a sample")
    equal(os.path.exists(path("mixed.lrn/samples/npy/m3.image.npy")), False, "a hole")
    # Where each record has one or the other, they are stacked.
    want = np.stack(pictures_of(mixed[:3], ("drawing.png", "photo.jpg")))
    near(load("either.lrn/batches/batch=3/npz/000000.npz")["image"], want, "no holes")


def check_names():
    npz = load("taken.lrn/batches/batch=2/npz/000000.npz")
    equal(sorted(npz.files), ["image", "image_array", "image_offsets", "index", "key"], "members")
    near(npz["image_array"], np.stack([model(f["b", "image.jpg"]) for _, f in taken]), "array")
    equal("image" in load("none.lrn/batches/batch=1/npz/000000.npz").files, False, "no pictures")


cut = picture(50, 30, "JPEG")[:-20]
bad = [all_records[0], ("cut", {("b", "photo.jpg"): cut, ("i", "label"): number(1)}), all_records[2],
       ("text", {("b", "photo.jpg"): b"no picture", ("i", "label"): number(2)}), all_records[4],
       ("empty", {("b", "photo.jpg"): b"", ("i", "label"): number(3)})]
taken = [(f"t{i}", {("b", "image.jpg"): picture(41, 30, "JPEG")}) for i in range(2)]
NAMED = {"cut": "bad.lrn: record 1 (cut): JPEG: expected an end marker",
         "text": "bad.lrn: record 3 (text): expected a JPEG, PNG or WebP picture, got bytes 6e 6f 20 70",
         "empty": "bad.lrn: record 5 (empty): expected a JPEG, PNG or WebP picture, got no bytes"}


def check_bad(zeroes):
    for key in NAMED:
        expect_error(errno.EIO, content, f"bad.lrn/samples/npy/{key}.image.npy")
        expect_error(errno.EIO, content, f"bad.lrn/samples/npz/{key}.npz")
        content(f"bad.lrn/samples/raw/{key}.photo.jpg")
    near(load("bad.lrn/samples/npy/k002.image.npy"), GOOD["k002"], "a good one beside")
    good = load("bad.lrn/batches/batch=1/npy/000002.image.npy")
    near(good, GOOD["k002"][None], "a good batch")
    if not zeroes:
        expect_error(errno.EIO, content, "bad.lrn/batches/batch=6/npy/000000.image.npy")
        expect_error(errno.EIO, content, "bad.lrn/batches/batch=6/npz/000000.npz")
        equal(os.path.exists(path("bad.lrn/batches/batch=6/npy/000000.image_ok.npy")), False, "ok")
        return
    want = np.stack([GOOD.get(key, np.zeros((H, W, 3), np.uint8)) for key, _ in bad])
    ok = [key in GOOD for key, _ in bad]
    near(load("bad.lrn/batches/batch=6/npy/000000.image.npy"), want, "zeros")
    got = load("bad.lrn/batches/batch=6/npy/000000.image_ok.npy")
    equal((got.dtype, got.tolist()), (np.dtype(bool), ok), "ok")
    npz = load("bad.lrn/batches/batch=6,seed=4/epoch=0/npz/000000.npz")
    near(npz["image"], want[npz["index"]], "zeros, shuffled")
    equal(npz["image_ok"].tolist(), [ok[i] for i in npz["index"]], "ok, shuffled")
    equal(load("good.lrn/batches/batch=all/npy/000000.image_ok.npy").all(), True, "all are good")


write("good.lrn", file_of(all_records))
write("mixed.lrn", file_of(mixed))
write("either.lrn", file_of(mixed[:3]))
write("taken.lrn", file_of(taken))
write("none.lrn", file_of([("n", {("b", "a.bin"): b"12", ("i", "label"): number(1)})]))
write("bad.lrn", file_of(bad))

with mounted(SOURCE, f"picture={H}x{W}"):
    check_batches()
    check_samples()
    check_holes()
    check_names()
    check_bad(zeroes=False)
    contains(lib.log_text(), *NAMED.values())
    cure = ". epochfs info --check lists all such pictures; with -o on_error=zero they are zeros in batches"
    equal(lib.status()["last_read_error"].endswith(cure), True, "what to do")
    equal(lib.status()["pictures"]["zeroed"], 0, "pictures of zeros")
with mounted(SOURCE, f"picture={H}x{W}", "bad_rows=zero", log="log.zero"):
    near(load("good.lrn/batches/batch=64/npy/000000.image.npy"),
         np.stack([GOOD[k] for k, _ in all_records[:64]]), "with zero")
    check_holes()
    equal((lib.status()["pictures"]["zeroed"], "pictures of zeros" in lib.log_text("log.zero")), (0, False), "before")
    check_bad(zeroes=True)
    zeroed = lib.status()["pictures"]["zeroed"]
    equal(zeroed >= 2 * len(NAMED), True, f"pictures of zeros: {zeroed}")
    contains(run("status", path()), f"{zeroed} times a picture of zeros")
    contains(lib.text(path(".epochfs/metrics")), f"epochfs_pictures_zeroed_total {zeroed}\n")
    equal(lib.log_text("log.zero").count("batches have pictures of zeros"), 1, "said once")
for words in (["-o", f"picture={H}x{W},bad_rows=skip"], ["-o", "bad_rows=skip", "-o", f"picture={H}x{W}"]):
    contains(run("info", *words, SOURCE, code=1), "samples cannot be skipped", "Use on_error=zero")
report = run("info", "--check", "-o", f"picture={H}x{W},bad_rows=zero", SOURCE, code=2)
contains(report, *NAMED.values())
with mounted(SOURCE, log="log.without"):
    equal(os.path.exists(path("good.lrn/samples/npy/k000.image.npy")), False, "without the option")
for wrong in ("picture=", "picture=224", "picture=0x4", "picture=4x4097", "picture=4x4x3"):
    contains(run("info", "-o", wrong, SOURCE, code=1), "picture=", "224x224")

# From a web server: what is missing of a batch is fetched for it, and each byte once.
sha256sums(SOURCE)
sizes = {f"/{os.path.relpath(file, SOURCE)}": st.st_size for file, st in files_below(SOURCE)
         if not file.endswith("SHA256SUMS")}
with Nginx(SOURCE) as server:
    daemon = start(f"{server.url}/", f"picture={H}x{W}", log="log.http")
    check_batches()
    check_samples()
    check_holes()
    numbers = wait_staged(daemon)
    requests = server.log()
    check_counters(requests, "pictures", numbers)
    check_once(requests, sizes, "pictures")
    stop(daemon)
