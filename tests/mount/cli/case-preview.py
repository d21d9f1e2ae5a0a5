#!/usr/bin/python3
# needs: python3-pil
"""preview.png: a sheet of the first pictures in stored order, no larger than a screen, the same in
every mount; a remote source sends only the bytes of these pictures."""

import io
import os

import numpy as np
from PIL import Image

from lib import SOURCE, content, equal, idx_bytes, mounted, path, status, write
from servers import MiB, Nginx

rng = np.random.default_rng(5)


def store(name, n, height, width):
    pictures = rng.integers(0, 256, (n, height, width), dtype=np.uint8)
    write(name, idx_bytes(pictures))
    return pictures


def sheet(pictures):
    """The sheet of the pictures, in rows: as many columns as rows, or one more."""
    n, height, width = pictures.shape
    columns = int(np.ceil(np.sqrt(n)))
    rows = -(-n // columns)
    cells = np.zeros((rows * columns, height, width), np.uint8)
    cells[:n] = pictures
    cells = cells.reshape(rows, columns, height, width).swapaxes(1, 2)
    return cells.reshape(rows * height, columns * width)


def check(dataset, want):
    size = os.stat(path(dataset, "preview.png")).st_size
    data = content(path(dataset, "preview.png"))
    equal(len(data), size, f"{dataset}: the size that was told before")
    image = Image.open(io.BytesIO(data))
    equal((image.format, image.mode), ("PNG", "L"), dataset)
    equal(np.array_equal(np.asarray(image), sheet(want)), True, f"{dataset}: {image.size}")
    return data


SETS = {"few": store("few", 7, 28, 28), "one": store("one", 1, 3, 2),
        "many": store("many", 500, 28, 28), "tall": store("tall", 30, 300, 100),
        "wide": store("wide", 3, 2, 4096), "huge": store("huge", 2, 1, 4097)}
SHOWN = {"few": 7, "one": 1, "many": 100, "tall": 9, "wide": 1}

with mounted():
    first = {name: check(name, SETS[name][:n]) for name, n in SHOWN.items()}
    equal(os.path.exists(path("huge", "preview.png")), False, "a sheet of a picture that is too large")
with mounted(SOURCE, "transpose"):
    for name, n in SHOWN.items():
        check(name, SETS[name][:n].swapaxes(1, 2))

large = store("large/pictures", 16384, 64, 64)
with Nginx(SOURCE) as server, mounted(f"{server.url}/", "stage=off"):
    for name, data in first.items():
        equal(content(path(name, "preview.png")) == data, True, f"{name}: of a remote source")
    check("large/pictures", large[:100])
    fetched = sum(status()["remote"][why] for why in ("demand_bytes", "background_bytes"))
    equal(fetched < 8 * MiB, True, f"{fetched} bytes fetched, of {large.nbytes}")
