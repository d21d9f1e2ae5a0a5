#!/usr/bin/python3
# needs: python3-pil
"""preview.png of encoded pictures, with and without picture=: a sheet of thumbnails in colours, each
where its sample is, a crossed box for one that cannot be decoded; and the pictures that `epochfs info
--check` reports, in folders, tar, RecordIO, TFRecord and on a web server."""

import io
import json
import os
import struct
import tarfile

import numpy as np
from PIL import Image

import mindrecord_model
import tfrecord_model
from lib import SOURCE, contains, content, equal, mounted, path, run, write
from servers import Nginx

SIDE = 64
CROSS = (224, 64, 64)
COLOURS = [(250, 10, 10), (10, 250, 10), (10, 10, 250), (250, 250, 10), (10, 250, 250)]


def picture(colour, kind="JPEG", size=(100, 80)):
    out = io.BytesIO()
    noise = np.random.default_rng(1).integers(0, 6, (size[1], size[0], 3))
    pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(out, kind, **({"quality": 95} if kind == "JPEG" else {}))
    return out.getvalue()


GOOD = [picture(c) for c in COLOURS]
CUT, TEXT, PNG = GOOD[0][:-300], b"Hello, this is no picture\n" * 9, picture(COLOURS[2], "PNG")
#: samples of a set: (key, bytes); those that are bad, and what is said of them
SAMPLES = [("a", GOOD[0]), ("b", CUT), ("c", GOOD[1]), ("d", PNG), ("e", GOOD[4])]
REPORTS = {"b": "cut short", "d": "expected JPEG, as the extension .jpg says, got a PNG picture"}


def make_tar(name, samples):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for key, data in samples:
            member = tarfile.TarInfo(f"{key}.jpg")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    write(name, out.getvalue())


def make_recordio(name, samples):
    out = b""
    for i, (_, data) in enumerate(samples):
        record = struct.pack("<IfQQ", 0, float(i), i, 0) + data
        out += struct.pack("<II", 0xced7230a, len(record)) + record + bytes(-len(record) % 4)
    write(name, out)


def cells(dataset, n):
    data = content(path(dataset, "preview.png"))
    equal(len(data), os.stat(path(dataset, "preview.png")).st_size, f"{dataset}: size")
    image = Image.open(io.BytesIO(data))
    equal((image.format, image.mode), ("PNG", "RGB"), dataset)
    columns = int(np.ceil(np.sqrt(n)))
    rows = -(-n // columns)
    equal(image.size, (columns * SIDE, rows * SIDE), f"{dataset}: size of the sheet")
    pixels = np.asarray(image).reshape(rows, SIDE, columns, SIDE, 3).swapaxes(1, 2)
    return pixels.reshape(rows * columns, SIDE, SIDE, 3)


def check_colour(cell, colour, what):
    off = np.abs(cell.astype(int) - np.array(colour)).max(axis=(0, 1))
    equal((off < 24).all(), True, f"{what}: {cell[5, 9]} for {colour}")


def is_crossed(cell):
    at = [cell[y, x].tolist() == list(CROSS) for y, x in ((0, 30), (30, 0), (63, 9), (9, 63), (20, 20), (20, 43))]
    equal(cell[20, 32].tolist() != list(CROSS), True, "between the lines")
    return all(at)


def check_sheet(dataset, want):
    """want: a colour for each sample, or None for a box."""
    found = cells(dataset, len(want))
    for i, colour in enumerate(want):
        if colour is None:
            equal(is_crossed(found[i]), True, f"{dataset}: sample {i} is a box: {found[i][:3, :3].tolist()}")
        else:
            check_colour(found[i], colour, f"{dataset}: sample {i}")
    equal(found[len(want):].any(), False, f"{dataset}: empty cells")


for folder, at in (("cat", (0, 2)), ("dog", (2, 5))):
    for key, data in SAMPLES[slice(*at)]:
        write(f"folder/{folder}/{key}.jpg", data)
make_tar("shards/set.tar", SAMPLES)
make_recordio("records/set.rec", [(k, d) for k, d in SAMPLES if k != "d"])
make_tar("texts/set.tar", [("x", TEXT)])
JPEGS = [data for key, data in SAMPLES if key != "d"]
examples = [tfrecord_model.example(picture=tfrecord_model.strings(data)) for data in JPEGS]
write("examples/set.tfrecord", b"".join(map(tfrecord_model.frame, examples)))
rows = [{"picture": data} for data in JPEGS]
write("rows/set.mindrecord", mindrecord_model.make({"picture": {"type": "bytes"}}, rows))
# The same order of samples in each set: a b c d e.
WANT = [COLOURS[0], None, COLOURS[1], COLOURS[2], COLOURS[4]]
DATASETS = {"folder": WANT, "shards/set.tar": WANT, "texts/set.tar": [None],
            **{name: WANT[:3] + WANT[4:] for name in ("records/set.rec", "examples/set.tfrecord", "rows/set.mindrecord")}}


def names(about):
    return {d["dataset"] for d in about["datasets"]}


known = names(json.loads(run("info", "--json", SOURCE)))
for options in ((), ("picture=16x24",), ("picture=16x24,bad_rows=zero",)):
    with mounted(SOURCE, *options):
        for dataset, want in DATASETS.items():
            name = next(n for n in known if n in (dataset, dataset.rsplit(".", 1)[0]))
            check_sheet(name, want)

found = run("info", "--check", SOURCE, code=2)
for key, why in REPORTS.items():
    contains(found, f"({key}): ", why)
equal(found.count(REPORTS["d"]), 2, "folder and tar have the PNG that is called .jpg")
equal(found.count("cut short"), 5, "each set has the picture that is cut short")
contains(found, "(x): expected a JPEG, PNG or WebP picture, got bytes 48 65 6c 6c")
with Nginx(SOURCE) as server, mounted(f"{server.url}/folder/", "stage=off"):
    check_sheet("all" if os.path.exists(path("all")) else "folder", WANT)
