#!/usr/bin/python3
# needs: python3-pil
"""Files of unsupported kinds are named by their kind, in ERROR.txt and on the terminal; also a
login page in the place of data."""

import io
import json
import os
import pickle
import sqlite3
import struct
import zipfile

import numpy as np
from PIL import Image

from lib import PRIVATE, SOURCE, contains, equal, idx_bytes, mounted, path, run, text, write
from servers import Nginx, place


def made(save):
    out = io.BytesIO()
    save(out)
    return out.getvalue()


def zipped(name):
    def save(out):
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(name, b"abc")
    return save


def sqlite():
    file = f"{PRIVATE}/db"
    with sqlite3.connect(file) as db:
        db.execute("create table samples (x)")
    with open(file, "rb") as f:
        return f.read()


ARRAY = np.arange(12.0).reshape(3, 4)
PICTURE = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
KINDS = {
    "a.jpg": ("a JPEG picture", made(lambda out: PICTURE.save(out, "jpeg"))),
    "a.png": ("a PNG picture", made(lambda out: PICTURE.save(out, "png"))),
    "a.arrow": ("Arrow", b"ARROW1\0\0\xff\xff\xff\xff" + bytes(100)),
    "a.h5": ("HDF5", b"\x89HDF\r\n\x1a\n" + bytes(100)),
    "a.pt": ("a PyTorch file", made(zipped("model/data.pkl"))),
    "a.csv": ("CSV that is not of numbers", b"name,city\nann,york\nbob,bonn\neve,rome\n"),
    "a.json": ("JSON", json.dumps({"samples": [{"x": 1}, {"x": 2}]}, indent=1).encode()),
    "a.sqlite": ("SQLite", sqlite()),
    "data.mdb": ("LMDB", bytes(10) + b"\x08" + bytes(5) + struct.pack("<II", 0xbeefc0de, 1) + bytes(4072)),
    "a.pdf": ("PDF", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
    "a.html": ("a web page (HTML)", b"<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>"),
    "a.pickle": ("a pickle of Python", pickle.dumps({"data": ARRAY})),
    # They begin with zeros, as IDX files do.
    "a.mp4": ("MP4 or QuickTime video", b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41" + bytes(100)),
    "a.mov": ("MP4 or QuickTime video", b"\0\0\0\x14ftypqt  \0\0\0\0qt  " + bytes(100)),
    "a.heic": ("a HEIC or AVIF picture", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(100)),
    "a.avif": ("a HEIC or AVIF picture", b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf" + bytes(100)),
    "a.dcm": ("a DICOM picture", bytes(128) + b"DICM\2\0\0\0UL\4\0" + bytes(100)),
    "a.mpg": ("MPEG video", b"\0\0\1\xba\x44\0\4\0\4\1" + bytes(100)),
    "a.mkv": ("Matroska or WebM video", b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81" + bytes(100)),
    "user.h5": ("HDF5", bytes(512) + b"\x89HDF\r\n\x1a\n" + bytes(100)),
}
READS = ", which epochfs does not read"

for name, (_, data) in KINDS.items():
    write(name, data)
write("good", idx_bytes(np.arange(5, dtype=np.uint8)))
with mounted():
    for name, (kind, _) in KINDS.items():
        equal(os.listdir(path(name)), ["ERROR.txt"], name)
        message = text(path(name, "ERROR.txt"))
        contains(message, f"{name}: is {kind}", READS)
        equal(len(message) < 340, True, f"short: {message!r}")
        equal(message.count("\n"), 1, f"one line: {message!r}")
for name, (kind, _) in KINDS.items():
    contains(run("info", f"{SOURCE}/{name}", code=2), f"{name}: is {kind}", READS)

# A login page in place of data.
www = f"{PRIVATE}/www"
place(www, "train-images-idx3-ubyte", KINDS["a.html"][1])
with Nginx(www) as server:
    contains(run("info", "-o", f"cache={PRIVATE}/cache", f"{server.url}/train-images-idx3-ubyte", code=2),
             "train-images-idx3-ubyte: is a web page (HTML), as servers send it where one has to log in", READS)
