"""Kaldi tables written and read in a plain way, and the files that a mount must show of them.

    fm, fv, ints, wave_bytes, ...   bytes of objects;  archive(), script(): of tables
    read_object, read_ark           an independent reader, for what the mount writes
    Dataset(folder, keys, fields)   fields: name -> [Item or BAD], one per sample
    check_sample, check_batch       compare the files of a mount with it
"""

import collections
import errno
import io
import json
import os
import re
import struct
import tarfile
import zipfile

import numpy as np

from lib import content, equal, expect_error, log_text, text, write
from model import check_npy as npy_file, same_array, webdataset

SHARED_KALDI = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "kaldi")
BAD_PAGE = 65536  # bytes in an archive where an object cannot be read
BAD = "bad"  # instead of an Item: its files give EIO
f4, f8, i4 = np.float32, np.float64, np.int32
PLAIN = ("matrix", "vector", "ints", "scalar")  # kinds that are arrays without conversion

# kind: one of PLAIN, wave, text. value: an array, a Wave, bytes. raw: as it is stored, or None.
Item = collections.namedtuple("Item", "kind value raw", defaults=[None])
Wave = collections.namedtuple("Wave", "samples rate")  # samples: int16 [n, channels]


# ---- binary objects ----

def fm(a):
    """A matrix: FM of float32, DM of float64."""
    a = np.asarray(a)
    tag = {f4: b"FM ", f8: b"DM "}[a.dtype.type]
    return b"\0B" + tag + struct.pack("<bibi", 4, a.shape[0], 4, a.shape[1]) + a.tobytes()


def fv(a):
    a = np.asarray(a)
    tag = {f4: b"FV ", f8: b"DV "}[a.dtype.type]
    return b"\0B" + tag + struct.pack("<bi", 4, len(a)) + a.tobytes()


def ints(a):
    return b"\0B" + struct.pack("<bi", 4, len(a)) + b"".join(struct.pack("<bi", 4, v) for v in a)


def cm(rng, rows, columns, kind="CM"):
    """A compressed matrix of any content."""
    head = struct.pack("<ffii", rng.uniform(-20, 0), rng.uniform(0.5, 30), rows, columns)
    out = b"\0B" + kind.encode() + b" " + head
    if kind == "CM":
        out += np.sort(rng.integers(0, 65536, (columns, 4)), axis=1).astype("<u2").tobytes()
    size = rows * columns * (2 if kind == "CM2" else 1)
    return out + rng.integers(0, 256, size, dtype=np.uint8).tobytes()


def decompress(data, at, kind):
    """The float32 matrix of CM, CM2, CM3, bit for bit as in Kaldi; and where it ends."""
    least, span, rows, columns = struct.unpack_from("<ffii", data, at)
    least, span = f4(least), f4(span)
    at += 16
    if kind != b"CM":
        dtype, size = {b"CM2": ("<u2", 2), b"CM3": ("u1", 1)}[kind]
        step = f4(float(span) * (1 / (65535.0 if size == 2 else 255.0)))
        values = np.frombuffer(data, dtype, rows * columns, at).reshape(rows, columns)
        return least + values.astype(f4) * step, at + rows * columns * size
    quarters = np.frombuffer(data, "<u2", 4 * columns, at).reshape(columns, 4)
    at += 8 * columns
    step = span * f4(1.52590218966964e-05)
    p0, p25, p75, p100 = (least + step * quarters.astype(f4)).T
    v = np.frombuffer(data, "u1", rows * columns, at).reshape(columns, rows).T

    def between(low, high, over, parts):
        rise = ((high - low) * over.astype(f4)).astype(f8)
        return (low.astype(f8) + rise * (1 / parts)).astype(f4)

    out = np.where(v <= 64, between(p0, p25, v.astype(i4), 64.0),
                   np.where(v <= 192, between(p25, p75, v.astype(i4) - 64, 128.0),
                            between(p75, p100, v.astype(i4) - 192, 63.0)))
    return out, at + rows * columns


# ---- text objects ----

def text_number(v):
    return b"%.7g" % v


def text_matrix(a):
    rows = [b"\n  " + b"".join(text_number(v) + b" " for v in row) for row in a]
    return b" [" + b"".join(rows) + (b"]\n" if rows else b" ]\n")


def text_vector(a):
    return b" [ " + b"".join(text_number(v) + b" " for v in a) + b"]\n"


def text_ints(a):
    return b"".join(b"%d " % v for v in a) + b"\n"


# ---- waves ----

def wave_bytes(wave, before=b"", after=b""):
    """As Kaldi writes it, if before and after are empty."""
    n, channels = wave.samples.shape
    data = wave.samples.astype("<i2").tobytes()
    size = 36 + len(before) + len(data) + len(after)
    return b"RIFF" + struct.pack("<I", size) + b"WAVEfmt " + struct.pack(
        "<IHHIIHH", 16, 1, channels, wave.rate, wave.rate * 2 * channels, 2 * channels, 16) + \
        before + b"data" + struct.pack("<I", len(data)) + data + after


def read_wave(data, at=0):
    """The wave at that byte, and the byte after it where Kaldi stops. Some sizes mean: to the
    end."""
    equal((data[at:at + 4], data[at + 8:at + 12]), (b"RIFF", b"WAVE"), "the start of a wave")
    at += 12
    form = None
    while True:
        tag, size = data[at:at + 4], struct.unpack_from("<I", data, at + 4)[0]
        at += 8
        if tag == b"fmt ":
            form = struct.unpack_from("<HHIIHH", data, at)
        if tag == b"data":
            break
        at += size
    if size in (0, 0xFFFFFFFF, 0x7FFFF000):
        size = len(data) - at
    kind, channels, rate, byte_rate, align, bits = form
    equal((kind, bits, align, byte_rate), (1, 16, 2 * channels, 2 * channels * rate),
          "a wave's form")
    samples = np.frombuffer(data, "<i2", size // align * channels, at).reshape(-1, channels)
    return Wave(samples.astype(np.int16), rate), at + size // align * align


def tone(rng, n, channels=1, rate=16000):
    return Wave(rng.integers(-32768, 32768, (n, channels), dtype=np.int16), rate)


# ---- archives and scripts ----

def archive(items):
    """The bytes of an archive, and where the object of each key is. items: (key, object)."""
    parts, at, size = [], [], 0
    for key, data in items:
        parts += [key.encode() + b" ", data]
        at.append(size + len(parts[-2]))
        size = at[-1] + len(data)
    return b"".join(parts), at


def table(name, items, ark=None):
    """Write name.ark and name.scp; returns the lines of the scp."""
    data, at = archive(items)
    write(f"{name}.ark", data)
    ark = ark or os.path.basename(name) + ".ark"
    lines = [f"{key} {ark}:{start}" for (key, _), start in zip(items, at)]
    script(f"{name}.scp", lines)
    return lines


def script(name, lines):
    write(name, "".join(line + "\n" for line in lines).encode())


# ---- reading ----

def read_text_object(data, at, kind):
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end + 1
    if kind == "ints":
        values = np.array([int(v) for v in data[at:end].split()], i4)
    elif kind == "text":
        return Item("text", data[at:end].strip(), data[at:end]), end
    elif kind == "scalar":
        values = np.array(float(data[at:end]))
    else:
        close = data.index(b"]", at)
        body = data[at:close].strip()
        equal(body[:1], b"[", "a text object")
        rows = [row.split() for row in re.split(rb"[\n;]", body[1:]) if row.strip()]
        values = np.array([[float(v) for v in row] for row in rows], f4)
        columns = len(rows[0]) if rows else 0
        values = values.reshape((len(rows), columns) if kind == "matrix" else len(rows) * columns)
        end = close + 1 + (data[close + 1:close + 2] == b"\n")
    return Item(kind, values, data[at:end]), end


def read_sparse(data, at):
    rows = struct.unpack_from("<bi", data, at)[1]
    at += 5
    out = []
    for _ in range(rows):
        equal(data[at:at + 3], b"SV ", "a row of a sparse matrix")
        _, columns, _, n = struct.unpack_from("<bibi", data, at + 3)
        at += 13
        row = np.zeros(columns, f4)
        for _ in range(n):
            _, index, _, row[index] = struct.unpack_from("<bibf", data, at)
            at += 10
        out.append(row)
    return np.array(out, f4), at


def read_binary_object(data, at, kind):
    start, at = at, at + 2
    if kind == "ints":
        equal(data[at], 4, "size of a count")
        n = struct.unpack_from("<i", data, at + 1)[0]
        at += 5
        values = np.frombuffer(data, [("size", "u1"), ("v", "<i4")], n, at)
        equal(set(values["size"].tolist()) - {4}, set(), "sizes of integers")
        return Item(kind, values["v"].astype(i4), data[start:at + 5 * n]), at + 5 * n
    tag = data[at:data.index(b" ", at)]
    at += len(tag) + 1
    if tag in (b"CM", b"CM2", b"CM3"):
        values, end = decompress(data, at, tag)
        return Item("matrix", values, data[start:end]), end
    if tag == b"SM":
        values, end = read_sparse(data, at)
        return Item("matrix", values, data[start:end]), end
    dims = [struct.unpack_from("<bi", data, at)]
    if tag in (b"FM", b"DM"):
        dims.append(struct.unpack_from("<bi", data, at + 5))
    equal([size for size, _ in dims], [4] * len(dims), f"sizes of the counts of {tag!r}")
    at += 5 * len(dims)
    dtype = {b"F": f4, b"D": f8}[tag[:1]]
    shape = [n for _, n in dims]
    equal(len(shape), {b"M": 2, b"V": 1}[tag[1:]], f"kind of {tag!r}")
    n = int(np.prod(shape))
    values = np.frombuffer(data, dtype, n, at).reshape(shape)
    end = at + n * dtype().itemsize
    return Item("matrix" if len(shape) == 2 else "vector", values, data[start:end]), end


def read_object(data, at, kind):
    """The object there, and where it ends."""
    if kind == "wave":
        wave, end = read_wave(data, at)
        return Item("wave", wave, data[at:end]), end
    if data[at:at + 2] == b"\0B":
        return read_binary_object(data, at, kind)
    return read_text_object(data, at, kind)


def read_ark(data, kind):
    """(key, byte of the object, Item), read from front to back as Kaldi does."""
    at, out = 0, []
    while data[at:].lstrip(b" \t\n\v\f\r"):
        at = re.compile(rb"[ \t\n\v\f\r]*").match(data, at).end()
        m = re.compile(rb"[^ \t\n\v\f\r]+").match(data, at)
        key, at = m[0], m.end()
        if data[at:at + 1] in (b" ", b"\t"):
            at += 1
        item, end = read_object(data, at, kind)
        out.append((key.decode(errors="surrogateescape"), at, item))
        equal(end > at, True, f"an object at byte {at}")
        at = end
    return out


def items_of(data, kind):
    """(keys, items) of an archive."""
    found = read_ark(data, kind)
    return [key for key, _, _ in found], [item for _, _, item in found]


# ---- the files of a mount ----

def name_of(key, dots=False):
    """The key as the beginning of file names: / % NUL, a dot in front, in tar every dot escaped."""
    return os.fsdecode(b"".join(
        b"%%%02X" % b if b in b"/%\0" or (b == ord(".") and (dots or i == 0)) else bytes([b])
        for i, b in enumerate(as_bytes(key))))


def as_bytes(key):
    return key if isinstance(key, bytes) else key.encode(errors="surrogateescape")


SHOWN = {"matrix": ["raw", "npy", "npz", "tar", "ark"],
         "vector": ["raw", "npy", "npz", "tar", "ark"],
         "ints": ["raw", "npy", "npz", "tar", "ark"],
         "wave": ["raw", "npy", "npz", "tar", "ark", "wav"],
         "text": ["npz", "tar", "txt"], "scalar": ["npy", "npz"]}


class Dataset:
    """folder: of the dataset in the mount. fields: name -> [Item or BAD], one for each key; a
    single table has one field, `data`."""

    def __init__(self, folder, keys, fields):
        self.folder, self.keys, self.fields = folder, list(keys), dict(fields)
        self.alone = list(fields) == ["data"]
        self.kinds = {}
        for name, items in fields.items():
            equal(len(items), len(self.keys), f"{folder}: the test's own items of {name}")

    def kind(self, field):
        if field not in self.kinds:
            self.kinds[field] = self.find_kind(field)
        return self.kinds[field]

    def find_kind(self, field):
        kinds = {item.kind for item in self.fields[field] if item != BAD}
        equal(len(kinds) < 2, True, f"{self.folder}: the test's own kinds of {field}: {kinds}")
        return kinds.pop() if kinds else "matrix"

    def bad(self, index, field=None):
        fields = [field] if field else self.fields
        return any(self.fields[f][i] == BAD for f in fields for i in index)

    def array(self, field, i):
        """Audio: samples; if any of the table has several, then channels."""
        item = self.fields[field][i]
        if item.kind == "wave":
            channels = {x.value.samples.shape[1] for x in self.fields[field] if x != BAD}
            return item.value.samples[:, 0] if channels == {1} else item.value.samples
        return np.array(item.value, "S") if item.kind == "text" else np.asarray(item.value)

    def is_one_array(self, field, index):
        """Do the samples have the same columns? Only then a batch has an array."""
        arrays = [self.array(field, i) for i in index if not self.bad([i], field)]
        return not arrays or not arrays[0].ndim or len({a.shape[1:] for a in arrays if len(a)}) < 2

    def encodings(self):
        return sorted({enc for f in self.fields for enc in SHOWN[self.kind(f)]})

    def file(self, folder, enc, base, field):
        """Arrays always name their field; the other files of one field do unless there is only
        one; audio has no name of its own."""
        full = f"{folder}/{enc}/{base}"
        ext = {"npy": "npy", "raw": "raw"}.get(enc)
        if ext:
            return f"{full}.{field}.{ext}"
        if self.alone or (enc == "wav" and field == "wav"):
            return f"{full}.{enc}"
        return f"{full}.{field}.{enc}"


def page(ds_or_folder):
    """dataset.json"""
    return json.loads(text(getattr(ds_or_folder, "folder", ds_or_folder), "dataset.json"))


def expect_eio(file, listed=True):
    """Its size and its bytes give EIO, but it is listed (listed None: perhaps)."""
    expect_error(errno.EIO, os.stat, file)
    expect_error(errno.EIO, content, file)
    if listed is not None:
        found = os.path.basename(file) in os.listdir(os.path.dirname(file))
        equal(found, listed, f"{file}: listed")


def expect_no_array(ds, file, index, fields):
    """A file of arrays that cannot be made: if shapes differ it is not listed, if a sample is bad
    it is; with both, whichever comes first decides."""
    fits = all(ds.is_one_array(field, index) for field in fields)
    bad = any(ds.bad(index, field) for field in fields)
    expect_eio(file, None if bad and not fits else fits)


def whole(file):
    data = content(file)
    equal(len(data), os.stat(file).st_size, f"{file}: size")
    return data


def check_array_file(file, want):
    npy_file(whole(file), want, file)


def check_raw(file, item):
    data = whole(file)
    if item.raw is not None:
        equal(data, item.raw, file)
    got, end = read_object(data, 0, item.kind)
    if item.kind != "wave":  # for a .wav file it is everything, including bytes after the audio
        equal(end, len(data), f"{file}: the object is all there is")
    same_item(got, item, file)


def same_item(got, want, what):
    equal(got.kind, want.kind, what)
    if want.kind == "text":
        equal(got.value, want.value, what)
    elif want.kind == "wave":
        equal(got.value.rate, want.value.rate, f"{what}: samples a second")
        same_array(got.value.samples, want.value.samples, what)
    else:
        same_array(got.value, want.value, what)


def read_npz(file):
    """Members by name, by zipfile and numpy's array reader alone."""
    with zipfile.ZipFile(io.BytesIO(whole(file))) as z:
        equal(z.testzip(), None, file)
        equal({i.compress_type for i in z.infolist()}, {zipfile.ZIP_STORED}, file)
        return {n.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(z.read(n)))
                for n in z.namelist()}


def expect_members(got, want, what):
    """The known members exist and are right; fields unknown to the test may exist."""
    equal(set(want) - set(got), set(), f"{what}: members that are missing of {sorted(got)}")
    for name, array in want.items():
        same_array(got[name], array, f"{what}: {name}")


def padded(arrays):
    """[B, longest, ...], with zeros after each end; and the lengths."""
    rest = [max(a.shape[k] for a in arrays) for k in range(arrays[0].ndim)]
    out = np.zeros([len(arrays), *rest], arrays[0].dtype)
    for row, a in zip(out, arrays):
        row[tuple(slice(n) for n in a.shape)] = a
    return out, np.array([len(a) for a in arrays], np.int64)


def ragged(arrays):
    """The arrays in sequence, and where each begins."""
    rest = [max(a.shape[k] for a in arrays) for k in range(1, arrays[0].ndim)]
    parts = [a.reshape([len(a), *rest]) if len(a) == 0 else a for a in arrays]
    return np.concatenate(parts), np.cumsum([0] + [len(a) for a in arrays]).astype(np.int64)


def check_npy(ds, folder, base, field, index, single):
    kind = ds.kind(field)
    file = ds.file(folder, "npy", base, field)
    if ds.bad(index, field) or not ds.is_one_array(field, index):
        return expect_no_array(ds, file, index, [field])
    arrays = [ds.array(field, i) for i in index]
    if kind == "wave":
        rates = [i4(ds.fields[field][i].value.rate) for i in index]
        check_array_file(f"{folder}/npy/{base}.{field}_rate.npy",
                         rates[0] if single else np.array(rates, i4))
    if single:
        return check_array_file(file, arrays[0])
    if kind == "scalar":
        return check_array_file(file, np.array(arrays))
    values, lengths = padded(arrays)
    check_array_file(file, values)
    return check_array_file(f"{folder}/npy/{base}.{field}_len.npy", lengths)


def check_npz(ds, folder, base, index, single):
    file = f"{folder}/npz/{base}.npz"
    if ds.bad(index) or not all(ds.is_one_array(field, index) for field in ds.fields):
        return expect_no_array(ds, file, index, ds.fields)
    want = {}
    for field in ds.fields:
        if ds.kind(field) == "wave":
            rates = np.array([ds.fields[field][i].value.rate for i in index], i4)
            want[f"{field}_rate"] = rates[0] if single else rates
        arrays = [ds.array(field, i) for i in index]
        if single:
            want[field] = arrays[0]
        elif ds.kind(field) in ("text", "scalar"):
            want[field] = np.array(arrays)
        else:
            want[field], want[f"{field}_offsets"] = ragged(arrays)
    if not single:
        want["index"] = np.array(index, np.int64)
        want["key"] = np.array([as_bytes(ds.keys[i]) for i in index], "S")
    got = read_npz(file)
    equal(set(got) - set(want) <= ({"index", "key"} if ds.alone else set(got)), True,
          f"{file}: members {sorted(got)}")
    return expect_members(got, want, file)


def check_tar(ds, folder, base, index):
    file = f"{folder}/tar/{base}.tar"
    if ds.bad(index):
        return expect_eio(file)
    data = whole(file)
    found = list(webdataset(data))
    equal([key for key, _ in found], [name_of(ds.keys[i], dots=True) for i in index], file)
    for (_, members), i in zip(found, index):
        for field in ds.fields:
            check_member(ds, field, i, members, f"{file}: {ds.keys[i]}")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return equal(len(tar.getnames()), sum(len(m) for _, m in found), file)


def check_member(ds, field, i, members, what):
    item = ds.fields[field][i]
    ext = {"wave": "wav", "text": "txt"}.get(item.kind, "npy")
    names = [n for n in (f"{field}.{ext}", ext, f"{field}.cls") if n in members]
    if item.kind == "scalar" and not names:
        return
    equal(len(names), 1, f"{what}: members {sorted(members)}, one of them with {field}")
    data, what = members[names[0]], f"{what}: {names[0]}"
    if names[0].endswith("cls"):
        equal(int(data), int(item.value), what)
    elif ext == "npy":
        same_array(np.load(io.BytesIO(data)), ds.array(field, i), what)
    elif ext == "txt":
        equal(data.rstrip(b"\n"), item.value, what)
    else:
        check_wave(data, item.value, what)


def check_wave(data, wave, what):
    """A file as Kaldi would write it."""
    got, end = read_wave(data)
    equal(end, len(data), f"{what}: nothing behind the audio")
    same_item(Item("wave", got), Item("wave", wave), what)
    equal(data, wave_bytes(wave), what)


def script_lines(file):
    """(key, path, offset) of an scp that the mount wrote."""
    found = []
    lines = whole(file).decode(errors="surrogateescape").split("\n")
    equal(lines.pop(), "", f"{file}: the last line has an end")
    for line in lines:
        m = re.fullmatch(r"(\S+) (.*):(\d+)", line, re.ASCII)
        equal(bool(m), True, f"{file}: key, path and offset in {line!r}")
        found.append((m[1], m[2], int(m[3])))
    return found


def check_ark(ds, folder, base, field, index):
    """The archive, and its scp, whose offsets lead to the objects."""
    file = ds.file(folder, "ark", base, field)
    scp = file.removesuffix("ark") + "scp"
    if ds.bad(index, field):
        return check_bad_ark(ds, file, scp, field, index)
    want = [ds.fields[field][i] for i in index]
    keys = [ds.keys[i] for i in index]
    data = whole(file)
    found = read_ark(data, ds.kind(field))
    equal([key for key, _, _ in found], keys, f"{file}: keys")
    lines = script_lines(scp)
    equal(lines, [(key, file, at) for key, at, _ in found], scp)
    for (key, at, got), item in zip(found, want):
        same_item(got, item, f"{file}: {key}")
        if item.raw is not None and item.raw[:2] == b"\0B":
            equal(got.raw, item.raw, f"{file}: bytes of {key}")
    with open(lines[0][1] if lines else file, "rb") as f:  # as a reader of the scp would
        for (key, _, at), item in zip(lines, want):
            f.seek(at)
            got, _ = read_object(f.read(), 0, item.kind)
            same_item(got, item, f"{scp}: {key} at {at}")
    return None


def read_until_error(file, size=1 << 20):
    """The bytes of an archive with a bad entry before its error, read in steps of size."""
    data, fd = [], os.open(file, os.O_RDONLY)
    try:
        while True:
            data.append(os.read(fd, size))
            equal(data[-1] != b"", True, f"{file}: an error, not an end after "
                                         f"{sum(map(len, data))} bytes")
    except OSError as e:
        equal(e.errno, errno.EIO, f"{file}: {e}")
    finally:
        os.close(fd)
    return b"".join(data)


def check_bad_ark(ds, file, scp, field, index):
    """A batch's archive has all objects that can be read; in the place of one that cannot, it has
    newlines to the end of a page, and a page that fails. A single sample's archive has no bytes."""
    if "/samples/" in file:
        expect_eio(file)
        return expect_eio(scp)
    items, at, first, want = [ds.fields[field][i] for i in index], 0, None, []
    for i, item in zip(index, items):
        key = as_bytes(ds.keys[i]) + b" "
        at += -at % BAD_PAGE if item == BAD else len(key)
        first = at if item == BAD and first is None else first
        want.append((ds.keys[i], file, at))
        at += BAD_PAGE if item == BAD else len(item.raw)
    equal(script_lines(scp), want, scp)
    equal(os.stat(file).st_size, at, f"{file}: size")
    data = read_until_error(file)
    equal(len(data), first, f"{file}: bytes before the first bad object")
    n = items.index(BAD)
    equal([(key, at) for key, at, _ in read_ark(data, ds.kind(field))],
          [(key, at) for key, _, at in want[:n]], f"{file}: what is before the first bad object")
    for (_, _, at), item in zip(want, items):
        with open(file, "rb") as f:
            f.seek(at)
            if item == BAD:
                expect_error(errno.EIO, f.read, 1)
            else:
                equal(f.read(len(item.raw)) == item.raw, True, f"{file}: the object at {at}")
    return None


def check_txt(ds, folder, base, field, index):
    file = ds.file(folder, "txt", base, field)
    want = b"".join(ds.fields[field][i].value + b"\n" for i in index)
    equal(whole(file), want, file)


def check_sample(ds, i, encodings=None):
    folder, base = f"{ds.folder}/samples", name_of(ds.keys[i])
    encodings = encodings or ds.encodings()
    for field, items in ds.fields.items():
        for enc in sorted({*SHOWN[ds.kind(field)]} & {*encodings} - {"npz", "tar"}):
            file = ds.file(folder, enc, base, field)
            if enc == "npy":
                check_npy(ds, folder, base, field, [i], True)
            elif enc == "ark":
                check_ark(ds, folder, base, field, [i])
            elif items[i] == BAD:
                if (enc, field) != ("raw", "wav"):  # an audio file that Kaldi cannot read is shown as it is
                    expect_eio(file)
            elif enc == "raw":
                check_raw(file, items[i])
            elif enc == "wav":
                check_wave(whole(file), items[i].value, file)
            else:
                check_txt(ds, folder, base, field, [i])
    if "npz" in encodings:
        check_npz(ds, folder, base, [i], True)
    if "tar" in encodings:
        check_tar(ds, folder, base, [i])


def check_batch(ds, folder, number, index, encodings=None):
    """folder: that of the plan or epoch."""
    base = f"{number:06d}"
    encodings = encodings or ds.encodings()
    for field in ds.fields:
        shown = {*SHOWN[ds.kind(field)]} & {*encodings}
        if "npy" in shown:
            check_npy(ds, folder, base, field, index, False)
        if "ark" in shown:
            check_ark(ds, folder, base, field, index)
        if "txt" in shown:
            check_txt(ds, folder, base, field, index)
    if "npy" in encodings:
        keys = b"".join(as_bytes(ds.keys[i]) + b"\n" for i in index)
        equal(whole(f"{folder}/npy/{base}.key.txt"), keys, f"{folder}: keys of batch {number}")
        check_array_file(f"{folder}/npy/{base}.index.npy", np.array(index, np.int64))
    if "npz" in encodings:
        check_npz(ds, folder, base, index, False)
    if "tar" in encodings:
        check_tar(ds, folder, base, index)


def check_names(ds):
    """The samples in the listings, and their names in dataset.json."""
    want, found = [f"{name_of(key)}.npz" for key in ds.keys], page(ds)
    listed = os.listdir(f"{ds.folder}/samples/npz") if "samples" in found else []
    equal((sorted({*want} - {*listed}), sorted({*listed} - {*want}), len(listed)),
          ([], [], len(want)),
          f"{ds.folder}: samples missing, too many, their number; {found.get('error', '')}")
    equal((found["format"], found["samples"]), ("kaldi", len(ds.keys)),
          f"{ds.folder}: dataset.json")
    names = {f["name"] for f in found["fields"]}
    equal(set(ds.fields) - names, set(), f"{ds.folder}: fields that are missing of {sorted(names)}")


def check(ds, encodings=None, samples=None):
    """Names, all samples (or those), and where none is bad a batch of all."""
    check_names(ds)
    every = list(range(len(ds.keys)))
    for i in every if samples is None else samples:
        check_sample(ds, i, encodings)
    if every and not ds.bad(every):
        check_batch(ds, f"{ds.folder}/batches/batch=all", 0, every, encodings)


def check_error(folder, *words):
    """No dataset, but a folder with the reason."""
    equal(os.listdir(folder), ["ERROR.txt"], folder)
    message = text(folder, "ERROR.txt")
    for word in words:
        equal(word in message, True, f"{folder}/ERROR.txt: expected {word!r} in {message!r}")


# ---- data directories ----

def real(word):
    """A number as Kaldi reads it in segments, or None."""
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", word):
        return float(word) if abs(float(word)) != float("inf") else None
    return float(word) if re.fullmatch(r"[+-]?(inf|infinity|nan)", word.lower()) else None


def extract_segment(words, waves):
    """The result of extract-segments for a line: (utterance, Wave), (utterance, BAD) if it aborts,
    None if it skips the line. waves: recording -> Wave or BAD."""
    if len(words) not in (4, 5):
        return None
    utterance, recording, start, end = words[0], words[1], real(words[2]), real(words[3])
    if start is None or end is None:
        return None
    if start < 0 or (end != -1 and end <= 0) or (start >= end and end > 0):
        return None
    channel = -1
    if len(words) == 5:
        if not re.fullmatch(r"[+-]?[0-9]+", words[4]) or not 0 <= int(words[4]) < 2 ** 31:
            return None
        channel = int(words[4])
    if recording not in waves:
        return None
    if waves[recording] == BAD:
        return utterance, BAD
    samples, rate = waves[recording].samples, f4(waves[recording].rate)
    length = f4(len(samples)) / rate
    # float() so that all versions of numpy compare doubles
    if start > float(length) or end > float(length + f4(0.5)):
        return None
    if end < 0 or end > float(length):
        end = float(length)
    if end - start < float(f4(0.1)):
        return None
    if channel == -1 and samples.shape[1] > 1:
        return utterance, BAD
    if channel >= samples.shape[1]:
        return None
    first, last = int(start * float(rate) + 0.5), int(end * float(rate) + 0.5)
    last, channel = min(last, len(samples)), max(channel, 0)
    if last <= first:  # Kaldi aborts
        return None
    return utterance, Wave(samples[first:last, channel:channel + 1], waves[recording].rate)


def extract_segments(lines, waves):
    """utterance -> Wave or BAD, of those that are not skipped."""
    found = (extract_segment(re.findall(r"[^ \t\r]+", line), waves) for line in lines)
    return dict(pair for pair in found if pair)


def number_item(dtype):
    return lambda word: Item("scalar", dtype(word))


def text_item(word):
    return Item("text", as_bytes(word))


BY_SPEAKER = {"cmvn", "spk2gender"}
TEXT_TABLES = {"text": text_item, "utt2spk": text_item, "spk2gender": text_item,
               "utt2lang": text_item, "utt2uniq": text_item, "reco2file_and_channel": text_item,
               "utt2dur": number_item(f8), "reco2dur": number_item(f8),
               "utt2num_frames": number_item(i4)}


def text_table(data, make):
    """key -> Item of a table of lines."""
    lines = [line.split(None, 1) for line in data.decode().split("\n") if line.strip()]
    return {line[0]: make(line[1].strip() if len(line) > 1 else "") for line in lines}


def join(base, tables, speaker=None, recording=None):
    """The utterances of base that every table has, and their items. tables: name -> key -> Item;
    speaker, recording: of an utterance, for tables keyed by them. Also returns which keys each
    table lacks."""
    def key_of(name, utterance):
        if name in BY_SPEAKER and speaker is not None:
            return speaker.get(utterance)
        if name.startswith("reco2") and recording is not None:
            return recording.get(utterance)
        return utterance

    missing = {name: [u for u in base if key_of(name, u) not in items]
               for name, items in tables.items()}
    left_out = set().union(*missing.values()) if missing else set()
    keys = [u for u in base if u not in left_out]
    fields = {name: [items[key_of(name, u)] for u in keys] for name, items in tables.items()}
    return keys, fields, {name: found for name, found in missing.items() if found}


class Folder:
    """A data directory: tables as name -> key -> Item, which write() writes."""

    def __init__(self, rng, name, utterances, speakers, dim=5, rate=8000):
        self.name, self.rng = name, rng
        self.utterances = [f"s{i % speakers}-u{i:03d}" for i in range(utterances)]
        self.utterances.sort()
        self.speaker = {u: u.split("-")[0] for u in self.utterances}
        self.speakers = sorted(set(self.speaker.values()))
        self.extra_lines = {}
        frames = {u: int(rng.integers(1, 30)) for u in self.utterances}
        words = "KALDI TABLES ARE JOINED BY UTTERANCE \u00dcBER  ALLES".split(" ")

        def binary(kind, make, array):
            return Item(kind, array, make(array))

        def wave():
            audio = tone(rng, int(rng.integers(50, 400)), 1, rate)
            return Item("wave", audio, wave_bytes(audio))

        def said():
            return text_item(" ".join(rng.choice(words, int(rng.integers(1, 9)))).strip() or "A")

        self.tables = {
            "feats": {u: binary("matrix", fm, rng.normal(size=(frames[u], dim)).astype(f4))
                      for u in self.utterances},
            "cmvn": {s: binary("matrix", fm, rng.normal(size=(2, dim + 1))) for s in self.speakers},
            "vad": {u: binary("vector", fv, rng.integers(0, 2, frames[u]).astype(f4))
                    for u in self.utterances},
            "wav": {u: wave() for u in self.utterances},
            "text": {u: text_item(" ".join(rng.choice(words,
                                                      int(rng.integers(1, 9)))).strip() or "A")
                     for u in self.utterances},
            "utt2spk": {u: text_item(self.speaker[u]) for u in self.utterances},
            "spk2gender": {s: text_item("mf"[i % 2]) for i, s in enumerate(self.speakers)},
            "utt2dur": {u: number_item(f8)(f"{frames[u] / 100 + 0.015:.7g}")
                        for u in self.utterances},
            "utt2num_frames": {u: number_item(i4)(frames[u]) for u in self.utterances},
            "utt2lang": {u: text_item("de" if frames[u] % 2 else "en") for u in self.utterances},
            "utt2uniq": {u: text_item(u[3:]) for u in self.utterances},
            "reco2dur": {u: number_item(f8)(repr(frames[u] / 97)) for u in self.utterances},
            "reco2file_and_channel": {u: text_item(f"file-{u[:2]} A") for u in self.utterances},
        }

    def keep(self, *names):
        self.tables = {name: self.tables[name] for name in names}
        return self

    def lines_of(self, name):
        """Lines of a table of text; of an scp with the archive or the waves that it names."""
        items = self.tables[name]
        if name == "wav":
            for key, item in items.items():
                write(f"{self.name}/audio/{key}.wav", item.raw)
            return [f"{key} audio/{key}.wav" for key in items]
        if name in TEXT_TABLES:
            return [f"{key} {item.value.decode() if item.kind == 'text' else item.value!s}"
                    for key, item in items.items()]
        data, at = archive([(key, item.raw) for key, item in items.items()])
        write(f"{self.name}/{name}.ark", data)
        return [f"{key} {name}.ark:{start}" for key, start in zip(items, at)]

    def write(self):
        for name in self.tables:
            script(self.file(name), self.lines_of(name) + self.extra_lines.get(name, []))
        if "utt2spk" in self.tables:
            script(f"{self.name}/spk2utt", [f"{s} " + " ".join(
                u for u in self.utterances if self.speaker[u] == s) for s in self.speakers])
        return self

    def file(self, name):
        return f"{self.name}/{name}" + ("" if name in TEXT_TABLES else ".scp")

    def dataset(self, at, base=None):
        """The expected dataset, and the missing keys."""
        base = base or next(list(self.tables[name]) for name in
                            ("utt2spk", "feats", "wav", "text") if name in self.tables)
        speaker = {u: i.value.decode() for u, i in self.tables["utt2spk"].items()} \
            if "utt2spk" in self.tables else None
        keys, fields, missing = join(base, self.tables, speaker)
        return Dataset(at, keys, fields), missing


# ---- messages ----

def names_line(messages, file, line):
    """Do the messages name that line of the file?"""
    return bool(re.search(rf"{re.escape(file)}(:|: line |, line | line ){line}\b", messages))


def expect_told(ds_folder, file, line, log="log"):
    """A message about that line is in dataset.json, or in the log. file: relative to SOURCE, as in
    the log."""
    own = text(ds_folder, "dataset.json")
    equal(names_line(own, os.path.basename(file), line) or names_line(log_text(log), file, line),
          True, f"{file}:{line} in the log or in {own!r:.3000}; named")
