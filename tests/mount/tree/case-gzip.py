#!/usr/bin/python3
"""Packed source files: gzip of every kind and xz, also under names that lie."""

import gzip
import io
import lzma
import os
import zlib

import numpy as np

from lib import (FASHION, SOURCE, contains, content, equal, idx_bytes, mounted, path, run, text,
                 write)

rng = np.random.default_rng(4)
IMAGES = rng.integers(0, 256, (700, 30, 30), dtype=np.uint8)  # larger than any buffer
DATA = idx_bytes(IMAGES)
PACKED = gzip.compress(DATA, 6, mtime=0)
HALF = len(DATA) // 2


def member(data, name=None, level=6):
    out = io.BytesIO()
    with gzip.GzipFile(name or "", "wb", level, out, mtime=0) as f:
        f.write(data)
    return out.getvalue()


def fancy_header(data):
    """Extra field, name, comment and header CRC: all that RFC 1952 has."""
    head = b"\x1f\x8b\x08\x1e" + bytes(4) + b"\x00\x03" + b"\x04\x00abcd" + b"name\0" + b"comment\0"
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    raw = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = raw.compress(data) + raw.flush()
    return head + body + zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1:]


# Name of the file: (bytes, name of the dataset).
FINE = {
    "plain-name.gz": (PACKED, "plain-name"),
    "two-members.gz": (member(DATA[:HALF]) + member(DATA[HALF:]), "two-members"),
    "many-members.gz": (b"".join(member(DATA[i:i + 5000]) for i in range(0, len(DATA), 5000)),
                        "many-members"),
    "empty-members.gz": (member(b"") + PACKED + member(b"") + member(b""), "empty-members"),
    "zero-padding.gz": (PACKED + bytes(512 * 1024 + 7), "zero-padding"),
    "padding-between.gz": (member(DATA[:HALF]) + bytes(100) + member(DATA[HALF:]),
                           "padding-between"),
    "stored-name.gz": (member(DATA, "other-name"), "stored-name"),
    "fancy-header.gz": (fancy_header(DATA), "fancy-header"),
    "stored-blocks.gz": (member(DATA, level=0), "stored-blocks"),
    "no-suffix": (PACKED, "no-suffix"),
    "lying-suffix.gz": (DATA, "lying-suffix"),
    "other-suffix.bin": (PACKED, "other-suffix.bin"),
    "xz-suffix-gzip-content.xz": (PACKED, "xz-suffix-gzip-content"),
}
XZ = {
    "small.xz": (lzma.compress(DATA), "small"),
    "xz-no-suffix": (lzma.compress(DATA), "xz-no-suffix"),
    "two-streams.xz": (lzma.compress(DATA[:HALF]) + lzma.compress(DATA[HALF:]), "two-streams"),
}
# Name: (bytes, words of the message).
BAD = {
    "garbage-behind.gz": (PACKED + b"garbage", [f"byte {len(PACKED)}", "expected", "got 67"]),
    "truncated.gz": (PACKED[:len(PACKED) // 2], ["expected its end", f"byte {len(PACKED) // 2}"]),
    "truncated-in-crc.gz": (PACKED[:-6], ["expected its end", f"byte {len(PACKED) - 6}"]),
    "truncated-in-header.gz": (PACKED[:7], ["expected its end", "byte 7"]),
    "second-member-cut.gz": (PACKED + PACKED[:1000], ["expected its end"]),
    "bit-flip-early.gz": (flipped(PACKED, 400), ["gzip data near byte"]),
    "bit-flip-late.gz": (flipped(PACKED, len(PACKED) - 500), ["gzip data near byte"]),
    "wrong-crc.gz": (flipped(PACKED, len(PACKED) - 7), ["gzip data near byte", "incorrect data"]),
    "wrong-length.gz": (flipped(PACKED, len(PACKED) - 2), ["gzip data near byte",
                                                           "incorrect length"]),
    "unknown-method.gz": (b"\x1f\x8b\x07" + PACKED[3:], ["gzip data near byte"]),
    "empty-inside.gz": (member(b""), ["empty"]),
    "twice.gz": (member(PACKED), ["of no format", "begins with 1f 8b"]),
    "text-inside.gz": (member(b"hello"), ["of no format", "is text of no format"]),
    "short-inside.gz": (member(DATA[:-1]), ["byte 16", f"expected {IMAGES.size}",
                                            f"got {IMAGES.size - 1}"]),
}
XZ_BAD = {
    "truncated.xz": (lzma.compress(DATA)[:5000], ["truncated.xz"]),
    "bit-flip.xz": (flipped(lzma.compress(DATA), 3000), ["bit-flip.xz"]),
}

for name, (data, *_) in {**FINE, **BAD, **XZ, **XZ_BAD}.items():
    write(name, data)
# A pair, one of them packed.
write("half-images-idx3-ubyte.gz", PACKED)
write("half-labels-idx1-ubyte", idx_bytes(np.zeros(700, np.uint8)))

with mounted():
    with_xz = "got fd 37" not in "".join(
        text(path("small.xz/ERROR.txt")) for _ in [0] if os.path.exists(path("small.xz/ERROR.txt")))
    if with_xz:
        FINE.update(XZ)
        BAD.update(XZ_BAD)
    for name, (_, dataset) in FINE.items():
        sources = os.listdir(path(dataset, "source"))
        equal(sources, [dataset], f"source/ of {name}")
        equal(content(path(dataset, "source", sources[0])) == DATA, True, f"{name}: content")
        equal(content(path(dataset, "samples/raw/000699.image.raw")), IMAGES[699].tobytes(), name)
        packed = os.stat(os.path.join(SOURCE, name))
        shown = os.stat(path(dataset, "samples/raw/000001.image.raw"))
        equal(shown.st_mtime_ns, packed.st_mtime_ns, f"{name}: time of the packed file")
    for name, (_, words) in BAD.items():
        contains(text(path(name, "ERROR.txt")), name, *words)
    equal(len(os.listdir(path("half/source"))), 2, "a packed file pairs with a plain one")
contains(run("info", "--check", SOURCE, code=2), "truncated.gz")

if os.path.isdir(FASHION):  # files of that name, but without their suffix
    for name in os.listdir(FASHION):
        if name.startswith("t10k"):
            write(f"sub/{name[:-3]}", content(FASHION, name))
    with mounted():
        with gzip.open(f"{FASHION}/t10k-images-idx3-ubyte.gz") as f:
            want = f.read()
        got = content(path("sub/t10k/source/t10k-images-idx3-ubyte"))
        equal(got == want, True, "gzip under a name without .gz")
