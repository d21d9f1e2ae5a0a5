#!/usr/bin/python3
# needs: python3-pil
"""What `info --check` finds in a folder of pictures (F-10, F-12): a picture without a byte, a text called .jpg, one
that is cut short, and a PNG under .jpg. All of them are served as they are, and only the first three are no picture:
an array of them, or a png, is an error of that sample alone."""

import errno
import io
import json
import os

import numpy as np
from PIL import Image

from lib import CACHE, SOURCE, contains, content, equal, expect_error, mounted, path, run, write


def encoded(kind, seed, size=(24, 16)):
    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


whole = {f"{'ab'[i % 2]}/{i}.jpg": encoded("JPEG", i) for i in range(6)}
bad = {"a/empty.jpg": b"", "a/text.jpg": b"not a picture\n", "b/cut.jpg": encoded("JPEG", 9)[:400]}
other = {"b/png.jpg": encoded("PNG", 7)}
for name, data in (whole | bad | other).items():
    write(f"{SOURCE}/set/{name}", data)

for options in (), ("-o", "picture=8x8"):
    found = [line for line in run("info", "--check", *options, SOURCE, code=2).splitlines() if ": set/" in line]
    for name, words in (("a/empty.jpg", "got no bytes"), ("a/text.jpg", "got bytes 6e 6f 74"),
                        ("b/cut.jpg", "cut short"),
                        ("b/png.jpg", "expected JPEG, as the extension .jpg says, got a PNG")):
        equal(len([line for line in found if f"set/{name} (" in line and words in line]), 1, f"{name}: {found}")
    equal(len(found), 4, f"and nothing else: {found}")

equal(os.path.isdir(f"{CACHE}/rows"), False, "an index of names alone is not kept")
with mounted():
    for name, data in (whole | bad | other).items():
        equal(content(path("set/samples/raw", os.path.basename(name))), data, name)
with mounted(SOURCE, "picture=8x8"):
    at = path("set/samples/npy")
    for name in whole | other:
        key = os.path.basename(name)[:-4]
        equal(np.load(io.BytesIO(content(at, f"{key}.image.npy"))).shape, (8, 8, 3), name)
    for name in bad:
        key = os.path.basename(name)[:-4]
        expect_error(errno.EIO, content, at, f"{key}.image.npy")
        equal(np.load(io.BytesIO(content(at, f"{key}.label.npy"))).item(), "ab".index(name[0]), "its label")
    equal(json.loads(content(path("set/dataset.json")))["samples"], 10, "none is left out")

# Only whole ones: nothing to say.
for name in bad | other:
    os.unlink(f"{SOURCE}/set/{name}")
equal([line for line in run("info", "--check", SOURCE).splitlines() if ": set/" in line], [], "whole pictures")
contains(run("info", "--check", SOURCE), "samples  6")

# The file also has its path where a table or a manifest names it.
write(f"{SOURCE}/set/b/cut.jpg", bad["b/cut.jpg"])
write(f"{SOURCE}/set/metadata.csv", b"file_name,n\nb/cut.jpg,1\n")
contains(run("info", "--check", SOURCE, code=2), ": set/b/cut.jpg (", "cut short")
os.unlink(f"{SOURCE}/set/metadata.csv")
write(f"{SOURCE}/set/list.manifest", b'{"source": "b/cut.jpg", "usage": "train", "annotation": [{"name": "x"}]}\n')
contains(run("info", "--check", SOURCE, code=2), ": set/b/cut.jpg (", "cut short")
# Lines without a file: an error each; if there are no others, of the dataset.
with open(f"{SOURCE}/set/list.manifest", "ab") as f:
    f.write(b'{"source": "b/gone.jpg", "usage": "train", "annotation": [{"name": "x"}]}\n')
contains(run("info", "--check", SOURCE, code=2), ": set/list.manifest: row 1 (b/gone): expected a file of SOURCE")
write(f"{SOURCE}/set/list.manifest", b'{"source": "b/gone.jpg", "usage": "train", "annotation": [{"name": "x"}]}\n')
contains(run("info", "--check", SOURCE, code=2), "usable: set/list.manifest, usage train: expected a line whose file is in SOURCE, got none in 1")

# A file that is too large for a picture is named as well.
os.unlink(f"{SOURCE}/set/list.manifest")
os.truncate(write(f"{SOURCE}/set/b/large.jpg", b""), (1 << 28) + 1)
contains(run("info", "--check", SOURCE, code=2), ": set/b/large.jpg (large): expected a picture of at most 268435456 bytes, got 268435457")
