#!/usr/bin/python3
"""RecordIO that is not as it should be: what is good before a fault is served, and the file says what
is omitted; a record whose headers lie fails alone; a file whose first record is bad is ERROR.txt."""

import errno
import gzip
import io
import os
import struct

import numpy as np

import lib
from lib import CACHE, SOURCE, contains, equal, expect_error, mounted, path, run, text, write
from recordio_model import MAGIC, part, picture, record

JPG = b"\xff\xd8\xff\xe0picture"
good = record(b"first") + record(b"second.")


def content(*parts):
    return lib.content(path(*parts))


# name: (what follows two good records, what the file says of it)
tails = {
    "middle": (part(2, b"xxxx") + record(b"later"), "byte 32: expected the start of a record, got a further part"),
    "last": (part(3, b"xxxx"), "byte 32: expected the start of a record, got a further part"),
    "complete": (part(1, b"abcd") + part(0, b"yyyy"), "byte 44: expected a further part of a record, got the start"),
    "again": (part(1, b"abcd") + part(1, b"yyyy"), "byte 44: expected a further part of a record, got the start"),
    "unterminated": (part(1, b"abcd"), "byte 44: expected the header of a part, got 0 bytes"),
    "unended": (part(1, b"abcd") + part(2, b"abcd"), "byte 56: expected the header of a part, got 0 bytes"),
    "stray1": (b"x", "byte 32: expected the header of a part, got 1 bytes"),
    "stray7": (b"\0" * 7, "byte 32: expected the header of a part, got 7 bytes"),
    "zeros": (b"\0" * 8, "byte 32: expected the magic number 0a 23 d7 ce, got 00 00 00 00"),
    "garbage": (b"garbage at the end", "byte 32: expected the magic number 0a 23 d7 ce, got 67 61 72 62"),
    "truncated": (part(0, b"x" * 100)[:60], "byte 32: expected 108 bytes, got 60"),
    "unpadded": (part(0, b"x" * 5)[:13], "byte 32: expected 16 bytes, got 13"),
    "flag4": (part(4, b"abcd"), "byte 32: expected flags from 0 to 3, got 4"),
    "flag7": (part(7, b"abcd"), "byte 32: expected flags from 0 to 3, got 7"),
    "huge": (MAGIC + b"\xff\xff\xff\x1f" + b"abcd", "byte 32: expected 536870920 bytes, got 12"),
    "uneven": (part(1, b"abc") + part(3, b"d"), "byte 32: expected a part whose length is a multiple of 4"),
}
# name: (the file, what its ERROR.txt says)
errors = {
    "first": (part(2, b"abcd") + good, "byte 0: expected the start of a record, got a further part"),
    "flags": (part(5, b"abcd") + good, "byte 0: expected flags from 0 to 3, got 5"),
    "short": (MAGIC + b"ab", "expected the header of a part (8 bytes), got 6 bytes"),
    "cut": (part(0, b"x" * 100)[:60], "byte 0: expected 108 bytes, got 60"),
    "big": (MAGIC[::-1] + struct.pack(">I", 4) + b"abcd", "big-endian order, which is not supported"),
    "other": (b"\1\2\3\4" + b"chunk of another format" * 9, "of no format"),
}
pictures = b"".join(record(picture(float(i), i, JPG + b"%d" % i)) for i in range(16))
lying = {
    "labels": picture([1.0], 16, JPG)[:20] + b"\0\0\0\0",  # 1 label, and no place for it
    "tiny": b"tiny",
}


def write_all():
    for name, (tail, _) in tails.items():
        write(f"tails/{name}/{name}.rec", good + tail)
    for name, (data, _) in errors.items():
        write(f"errors/{name}.rec", data)
    for name, payload in lying.items():
        write(f"lying/{name}.rec", pictures + record(payload) + record(picture(17.0, 17, JPG)))
    write("pads/pads.rec", part(0, b"a", b"\xff") + part(0, b"bcdef", b"\xff"))
    write("tiny/tiny.rec", record(b"tiny") + pictures)
    write("changed/changed.rec", good + good)
    write("empty/empty.rec", b"")
    write("empty/beside.rec", record(b""))
    write("cut/cut.rec", good)  # between two records, which only its index tells
    write("cut/cut.idx", b"0\t0\n1\t16\n2\t%d\n" % len(good))
    write("packed/packed.rec.gz", gzip.compress(good))
    write("nan/nan.rec", record(picture(float("nan"), 1, JPG)) + record(picture(3e38, 2, JPG)) +
          record(picture(-1.0, 3, JPG)))


def check_tails():
    for name, (_, note) in tails.items():
        ds = f"tails/{name}/{name}.rec"
        equal(sorted(os.listdir(path(ds, "samples/raw"))), ["000000.record", "000001.record"], name)
        equal(content(ds, "samples/raw/000001.record"), b"second.", name)
        equal(np.load(path(ds, "batches/batch=2/npz/000000.npz"))["record"].tobytes(),
              b"firstsecond.", name)
        contains(run("info", "--check", os.path.join(SOURCE, ds[:ds.rindex("/")]), code=2), note)
        contains(info, f"note     {ds.rpartition('/')[0]}/{name}.rec: {note}", "the rest is ignored")


def check_errors():
    for name, (_, reason) in errors.items():
        contains(text(path("errors", f"{name}.rec", "ERROR.txt")), f"{name}.rec", reason)


def check_lying():
    for name in lying:
        ds, key = f"lying/{name}.rec", "16" if name == "labels" else "0~2"
        keys = [n for n in os.listdir(path(ds, "samples/raw"))]
        equal(len(keys), 18, f"{name}: the record stays, so that its loss is seen")
        numbers = name == "tiny"  # without a header it has id 0, as the first has
        bad, last = ("000016", "000017") if numbers else ("16", "17")
        expect_error(errno.EIO, content, ds, f"samples/raw/{bad}.jpg")
        expect_error(errno.EIO, content, ds, f"samples/npy/{bad}.label.npy")
        expect_error(errno.EIO, content, ds, "batches/batch=all/npy/000000.label.npy")
        equal(content(ds, f"samples/raw/{last}.jpg"), JPG, name)
        if name == "labels":
            equal(np.load(path(ds, f"samples/npy/{bad}.id.npy")), 16, "what is there is shown")
        else:
            expect_error(errno.EIO, content, ds, f"samples/npy/{bad}.id.npy")
        check = run("info", "--check", os.path.join(SOURCE, "lying", f"{name}.rec"), code=2)
        contains(check, {"labels": "expected 1 labels, got a record of 24 bytes",
                         "tiny": "expected a picture behind 24 bytes, got a record of 4 bytes"}[name])


def check_others():
    contains(info, f"note     cut/cut.idx: line 3: expected a record at byte {len(good)}, got a file of {len(good)} bytes, which may be cut short")
    equal(content("pads/pads.rec/samples/raw/000001.record"), b"bcdef", "padding that is not zero")
    equal(content("tiny/tiny.rec/samples/raw/000000.record"), b"tiny", "one of the first is no picture")
    equal(content("empty/beside.rec/samples/raw/000000.record"), b"", "an empty record")
    contains(text(path("empty/empty.rec/ERROR.txt")), "empty.rec")
    equal(content("packed/packed.rec/samples/raw/000001.record"), b"second.", "unpacked")
    labels = np.load(path("nan/nan.rec/batches/batch=3/npy/000000.label.npy"))
    np.testing.assert_array_equal(labels, np.array([np.nan, 3e38, -1], np.float32))
    equal(os.path.exists(path("nan/nan.rec/samples/npy/1.label.npy")), True, "a file of its own")


write_all()
info = run("info", "-o", f"cache={CACHE}", SOURCE)
with mounted(SOURCE, f"cache={CACHE}"):
    check_tails()
    check_errors()
    check_lying()
    check_others()
with mounted():  # without a cache, a file that changes under a reader
    os.listdir(path("changed/changed.rec/samples/raw"))
    with open(os.path.join(SOURCE, "changed/changed.rec"), "r+b") as f:
        f.truncate(40)
    expect_error(errno.ESTALE, content, "changed/changed.rec/samples/raw/000000.record")
