"""Kaldi tables written and read in a plain way, after Kaldi's own source (util/kaldi-holder-inl.h,
util/kaldi-table-inl.h, matrix/*.cc, hmm/posterior.cc, feat/wave-reader.cc), and the files that a
mount must show of them. Where Kaldi ends with an assertion, this model has an error.

    write(type, value, store)    the bytes of an object; store: "FM", "CM2", "text", ...
    write_ark(entries)           an archive of (key, bytes of an object)
    read_ark(data, type)         its objects, and where it breaks off
    Table(data, type)            a dataset: the names of its samples, and their arrays
    check_sample, check_batch    compare the files of a mount with it

Values: matrix, vector, packed, int-vector: an array; int, float, double, bool: a scalar;
int-vectors: a list of arrays; int-pairs, float-pairs: an array [n, 2]; posterior: a list of
(indexes, values); gauss-posterior: a list of lists of (index, vector); token, tokens: bytes; wave:
(samples per second, int16 [samples, channels]).
"""

import ctypes
import errno
import io
import json
import os
import re
import struct
import tarfile
import zipfile

import numpy as np

from lib import contains, content, equal, expect_error, path, text
from model import check_npy, same_array

SPACE = b" \t\n\v\f\r"
TYPES = ["matrix", "vector", "packed", "int", "float", "double", "bool", "int-vector",
         "int-vectors", "int-pairs", "float-pairs", "posterior", "gauss-posterior", "token",
         "tokens", "wave"]
TEXT_ONLY = ("token", "tokens")
INT32 = range(-2 ** 31, 2 ** 31)

libc = ctypes.CDLL(None)
libc.strtof.restype = ctypes.c_float
libc.strtof.argtypes = [ctypes.c_char_p, ctypes.c_void_p]


def to_real(text, dtype):
    """The nearest float32 or float64."""
    return np.float32(libc.strtof(text, None)) if dtype == np.float32 else np.float64(text.decode())


# ---- objects as bytes ----

def int32(*values):
    return b"".join(b"\4" + struct.pack("<i", v) for v in values)


def real(value, dtype):
    with np.errstate(over="ignore"):
        data = np.asarray(value, dtype).tobytes()
    return bytes([len(data)]) + data


def g(value):
    """As C++ prints with precision 7."""
    return b"%.7g" % float(value)


def dtype_of(store):
    """The element type of a store of real numbers."""
    return np.dtype("<f8") if store.startswith("D") or store.endswith("8") else np.dtype("<f4")


def write(type, value, store="binary"):
    """store: binary, binary8 (reals of 8 bytes), text; of a matrix also FM, DM, SM, SM8 (a
    Compressed has its own); of a vector FV, DV, SV, SV8; of packed FP, DP; of a wave RIFF, RIFX."""
    if type == "wave":
        return wave_bytes(value[1], value[0], big=store == "RIFX")
    if type in TEXT_ONLY:
        return value + b"\n"
    if store == "text":
        return write_text(type, value)
    return b"\0B" + write_binary(type, value, store)


def write_binary(type, value, store):
    if store in ("binary", "binary8") and type in ("matrix", "vector", "packed"):
        store = ("D" if store == "binary8" else "F") + type[0].upper()
    dtype = dtype_of(store)
    if isinstance(value, Compressed):
        return value.bytes()
    if store.startswith("SV"):
        return sparse_row(value, dtype)
    if store.startswith("SM"):
        return b"SM " + int32(len(value)) + b"".join(sparse_row(row, dtype) for row in value)
    if type in ("matrix", "vector", "packed"):
        value = np.asarray(value)
        dims = value.shape if type != "packed" else (triangle(len(value)),)
        return store.encode() + b" " + int32(*dims) + value.astype(dtype).tobytes()
    if type == "bool":
        return b"T" if value else b"F"
    if type == "int":
        return int32(int(value))
    if type == "float":
        return real(value, dtype)
    if type == "double":
        return real(value, "<f4" if store == "binary4" else "<f8")
    if type == "int-vector":
        return int32(len(value), *map(int, value))
    if type == "int-vectors":
        return int32(len(value)) + b"".join(int32(len(v), *map(int, v)) for v in value)
    if type == "int-pairs":
        return int32(len(value), *map(int, np.ravel(value)))
    if type == "float-pairs":
        return int32(len(value)) + b"".join(real(v, dtype) for v in np.ravel(value))
    if type == "posterior":
        return int32(len(value)) + b"".join(
            int32(len(i)) + b"".join(int32(int(a)) + real(b, dtype) for a, b in zip(i, v))
            for i, v in value)
    if type == "gauss-posterior":
        return int32(len(value)) + b"".join(
            int32(len(frame)) + b"".join(int32(int(i)) + write_binary("vector", v, store)
                                         for i, v in frame) for frame in value)
    raise AssertionError(f"type {type}")


def sparse_row(row, dtype):
    """A row, given as an array, or as its length and pairs (index, value)."""
    if isinstance(row, tuple):
        dim, pairs = row
    else:
        dim, pairs = len(row), [(i, v) for i, v in enumerate(row) if v]
    return b"SV " + int32(dim, len(pairs)) + b"".join(int32(i) + real(v, dtype) for i, v in pairs)


def triangle(values):
    """n of n (n + 1) / 2."""
    n = 0
    while n * (n + 1) // 2 < values:
        n += 1
    equal(n * (n + 1) // 2, values, "values of a packed matrix")
    return n


def row_text(values, form=g):
    return b"".join(form(v) + b" " for v in values)


def sparse_text(row):
    return b"dim=%d [ " % len(row) + \
        b"".join(b"%d %s " % (i, g(v)) for i, v in enumerate(row) if v) + b"] "


def write_text(type, value):
    if type == "matrix":
        if len(value) == 0:
            return b" [ ]\n"
        return b" [" + b"".join(b"\n  " + row_text(row) for row in value) + b"]\n"
    if type == "packed":
        rows = [value[i * (i + 1) // 2:(i + 1) * (i + 2) // 2]
                for i in range(triangle(len(value)))]
        return b" [\n" + b"\n".join(row_text(row) for row in rows) + b"]\n"
    if type == "sparse":
        return b"rows=%d " % len(value) + b"".join(map(sparse_text, value)) + b"\n"
    if type == "sparse-vector":
        return sparse_text(value) + b"\n"
    whole = lambda v: b"%d" % v
    if type == "vector":
        return b" [ " + row_text(value) + b"]\n"
    if type == "bool":
        return (b"T" if value else b"F") + b" \n"
    if type == "int":
        return b"%d \n" % value
    if type in ("float", "double"):
        return g(value) + b" \n"
    if type == "int-vector":
        return row_text(value, whole) + b"\n"
    if type == "int-vectors":
        return b"".join(row_text(v, whole) + b"; " for v in value) + b"\n"
    if type in ("int-pairs", "float-pairs"):
        return b"; ".join(row_text(v, whole if type[0] == "i" else g) for v in value) + b"\n"
    if type == "posterior":
        return b"".join(b"[ " + b"".join(b"%d %s " % (a, g(b)) for a, b in zip(i, v)) + b"] "
                        for i, v in value) + b"\n"
    if type == "gauss-posterior":
        return b"%d " % len(value) + b"".join(
            b"%d " % len(frame) + b"".join(b"%d " % i + write_text("vector", v) for i, v in frame)
            for frame in value) + b"\n"
    raise AssertionError(f"type {type}")


class Compressed:
    """A compressed matrix. kind: CM (percentiles: u2 [columns, 4], data: u1 [columns, rows]), CM2
    (data: u2 [rows, columns]), CM3 (u1)."""

    def __init__(self, kind, least, width, data, percentiles=None, dims=None):
        self.kind, self.data, self.percentiles = kind, np.asarray(data), percentiles
        self.least, self.width = np.float32(least), np.float32(width)
        self.dims = dims or (self.data.shape[::-1] if kind == "CM" else self.data.shape)

    def bytes(self):
        head = struct.pack("<ffii", self.least, self.width, *self.dims)
        columns = b"" if self.percentiles is None else \
            np.asarray(self.percentiles, "<u2").tobytes()
        data = self.data.astype("<u2" if self.kind == "CM2" else "u1").tobytes()
        return self.kind.encode() + b" " + head + columns + data


def random_compressed(kind, rows, columns, rng):
    least, width = rng.normal(scale=10), rng.uniform(1e-3, 100)
    top = 65536 if kind == "CM2" else 256
    if kind == "CM":
        percentiles = np.sort(rng.integers(0, 65536, (columns, 4)), 1)
        percentiles[::5] = rng.integers(0, 65536, percentiles[::5].shape)
        return Compressed(kind, least, width, rng.integers(0, 256, (columns, rows)), percentiles)
    return Compressed(kind, least, width, rng.integers(0, top, (rows, columns)))


def decompress(kind, least, width, data, percentiles):
    """Kaldi's float32 arithmetic, one step at a time."""
    f4, f8 = np.float32, np.float64
    least, width = f4(least), f4(width)
    with np.errstate(all="ignore"):
        if kind != "CM":
            step = f4(f8(width) * (1.0 / (65535.0 if kind == "CM2" else 255.0)))
            return least + data.astype(f4) * step
        p = least + (width * f4(1.52590218966964e-05)) * percentiles.astype(f4)
        p0, p25, p75, p100 = (p[:, i:i + 1] for i in range(4))
        v = data.astype(f4)
        low = (p0.astype(f8) + ((p25 - p0) * v).astype(f8) * (1 / 64.0)).astype(f4)
        middle = (p25.astype(f8) + ((p75 - p25) * (v - f4(64))).astype(f8) * (1 / 128.0)).astype(f4)
        high = (p75.astype(f8) + ((p100 - p75) * (v - f4(192))).astype(f8) * (1 / 63.0)).astype(f4)
        return np.where(data <= 64, low, np.where(data <= 192, middle, high)).T


def wave_bytes(samples, rate, big=False):
    """The file that Kaldi's writer makes from int16 [samples, channels]; big: RIFX."""
    samples = np.asarray(samples, np.int16)
    samples = samples.reshape(len(samples), -1)
    e = ">" if big else "<"
    channels = samples.shape[1]
    data = samples.astype(f"{e}i2").tobytes()
    return (b"RIFX" if big else b"RIFF") + struct.pack(f"{e}I", 36 + len(data)) + b"WAVEfmt " + \
        struct.pack(f"{e}IHHIIHH", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16) + \
        b"data" + struct.pack(f"{e}I", len(data)) + data


def letters(n):
    """A number as letters: tables whose names differ by a number only are also one set."""
    return "".join("abcdefghij"[int(d)] for d in f"{n:03d}")


def write_ark(entries, offsets=None):
    """entries: (key, bytes of the object). offsets: a list that gets the start of each object."""
    out = b""
    for key, data in entries:
        out += key + b" "
        if offsets is not None:
            offsets.append(len(out))
        out += data
    return out


# ---- objects read ----

class Broken(Exception):
    """args: byte, what is wrong. key: of the object, None if the key itself is wrong. start: of the
    key."""
    key, start = None, None


class Stream:
    """The behaviour of std::istream on bytes."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def peek(self):
        return self.data[self.at:self.at + 1]

    def get(self):
        c = self.peek()
        self.at += len(c)
        return c

    def read(self, n):
        if n < 0 or n > len(self.data) - self.at:
            raise Broken(self.at, f"expected {n} bytes, got {len(self.data) - self.at}")
        self.at += n
        return self.data[self.at - n:self.at]

    def take(self, pattern):
        m = re.compile(pattern, re.S).match(self.data, self.at)
        self.at = m.end()
        return m[0]

    def skip_space(self):
        self.take(rb"[ \t\n\v\f\r]*")

    def word(self):
        self.skip_space()
        found = self.take(rb"[^ \t\n\v\f\r]*")
        if not found:
            raise Broken(self.at, "expected a word, got the end")
        return found

    def need(self, token):
        at = self.at
        if self.word() != token:
            raise Broken(at, f"expected {token}")
        self.get()

    def line(self):
        """getline(): fails at the end of the file."""
        if self.at == len(self.data):
            raise Broken(self.at, "expected a line, got the end")
        found = self.take(rb"[^\n]*")
        self.get()
        return found

    # Numbers in binary.

    def int32(self):
        at = self.at
        if self.read(1) != b"\4":
            raise Broken(at, "expected 04, an integer of 4 bytes")
        return struct.unpack("<i", self.read(4))[0]

    def count(self, most=2 ** 31):
        at = self.at
        n = self.int32()
        if n < 0 or n > most:
            raise Broken(at, f"expected a count, got {n}")
        return n

    def real(self):
        at = self.at
        size = self.read(1)
        if size not in (b"\4", b"\x08"):
            raise Broken(at, "expected 04 or 08, a real number")
        return np.frombuffer(self.read(size[0]), f"<f{size[0]}")[0]

    # Numbers in text: what num_get accepts, and how it fails.

    def text_int(self):
        self.skip_space()
        at = self.at
        found = self.take(rb"[+-]?[0-9]*")
        if not re.search(rb"[0-9]", found) or int(found) not in INT32:
            raise Broken(at, f"expected an integer, got {found}")
        return int(found)

    def text_real(self, dtype):
        self.skip_space()
        at = self.at
        found = self.take(rb"[+-]?[0-9]*(?:\.[0-9]*)?")
        if re.search(rb"[0-9]", found):
            found += self.take(rb"(?:[eE][+-]?[0-9]*)?")
        if not re.fullmatch(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", found):
            raise Broken(at, f"expected a number, got {found}")
        value = to_real(found, dtype)
        if np.isinf(value):
            raise Broken(at, f"expected a number, got {found}")
        return value

    def after_bracket(self):
        if self.peek() == b"\r":
            self.get()
            self.get()
        elif self.peek() == b"\n":
            self.get()


class Object:
    """loose: Kaldi leaves the end of the line after the object in the stream."""

    def __init__(self, key, start, end, value, loose=False):
        self.key, self.start, self.end, self.value, self.loose = key, start, end, value, loose


def read_object(s, type, dtype=np.float32, skip_nul=True):
    """The value of the object at s.at; raises Broken. Text: real numbers are of dtype. skip_nul:
    count 4 NULs after an empty CM as part of it, unlike Kaldi."""
    if type == "wave":
        return read_wave(s)
    if type == "token":
        word = s.word()
        s.take(rb"[ \t\v\f\r]*")
        if s.get() != b"\n":
            raise Broken(s.at, "expected a line's end behind the token")
        return word
    if type == "tokens":
        return s.line().strip(SPACE)
    if s.peek() == b"\0":
        if s.data[s.at:s.at + 2] != b"\0B":
            raise Broken(s.at, "expected 00 B")
        s.at += 2
        return read_binary(s, type, skip_nul)
    return read_text(s, type, dtype)


def read_binary(s, type, skip_nul=True):
    if type in ("matrix", "vector", "packed"):
        return read_real_array(s, type, skip_nul)
    if type == "bool":
        at = s.at
        found = s.read(1)
        if found not in (b"T", b"F"):
            raise Broken(at, "expected T or F")
        return np.bool_(found == b"T")
    if type == "int":
        return np.int32(s.int32())
    if type in ("float", "double"):
        return s.real()
    n = s.count(10000000 if type == "posterior" else 2 ** 31)
    if n > len(s.data):
        raise Broken(s.at, f"expected {n} elements, got the end")
    if type == "int-vector":
        return ints([s.int32() for _ in range(n)])
    if type == "int-vectors":
        return [ints([s.int32() for _ in range(s.count())]) for _ in range(n)]
    if type == "int-pairs":
        return ints([s.int32() for _ in range(2 * n)]).reshape(n, 2)
    if type == "float-pairs":
        return reals([s.real() for _ in range(2 * n)]).reshape(n, 2)
    if type == "posterior":
        frames = [[(s.int32(), s.real()) for _ in range(s.count())] for _ in range(n)]
        return [(ints([a for a, _ in f]), reals([b for _, b in f])) for f in frames]
    if type == "gauss-posterior":
        return [[(s.int32(), read_real_array(s, "vector")) for _ in range(s.count())]
                for _ in range(n)]
    raise AssertionError(f"type {type}")


def ints(values):
    return np.array(values, np.int32)


def reals(values):
    """float64 if one of them is."""
    return np.array(values, np.result_type(np.float32, *[v.dtype for v in values]))


def read_real_array(s, type, skip_nul=True):
    at = s.at
    token = s.take(rb"[^ \t\n\v\f\r]{0,8}").decode("latin-1")
    stores = {"matrix": ("FM", "DM", "CM", "CM2", "CM3", "SM"), "vector": ("FV", "DV", "SV"),
              "packed": ("FP", "DP")}[type]
    if token not in stores or s.get() not in (b" ", b"\t"):
        raise Broken(at, f"expected one of {stores}, got {token!r}")
    if token == "SM":
        return read_sparse(s)
    if token == "SV":
        return dense([read_sparse_row(s)], at)[0]
    if token.startswith("CM"):
        return read_compressed(s, token, skip_nul)
    at = s.at
    dims = [s.count() for _ in range(2 if type == "matrix" else 1)]
    if type == "matrix" and (dims[0] == 0) != (dims[1] == 0):
        raise Broken(at, f"expected both dimensions 0 or none, got {dims}")
    n = dims[0] * (dims[0] + 1) // 2 if type == "packed" else int(np.prod(dims, dtype=object))
    data = np.frombuffer(s.read(n * dtype_of(token).itemsize), dtype_of(token))
    return data.reshape(dims) if type == "matrix" else data


def read_compressed(s, kind, skip_nul):
    at = s.at
    least, width, rows, columns = struct.unpack("<ffii", s.read(16))
    if rows < 0 or columns < 0 or (rows == 0 and columns != 0):
        raise Broken(at + 8, f"expected a number of rows and columns, got {rows}, {columns}")
    if columns == 0:
        if skip_nul and s.data[s.at:s.at + 4] == bytes(4):
            s.at += 4
        return np.zeros((0, 0), np.float32)
    if kind == "CM":
        percentiles = np.frombuffer(s.read(8 * columns), "<u2").reshape(columns, 4)
        data = np.frombuffer(s.read(rows * columns), "u1").reshape(columns, rows)
        return decompress(kind, least, width, data, percentiles)
    size = 2 if kind == "CM2" else 1
    data = np.frombuffer(s.read(rows * columns * size), f"<u{size}").reshape(rows, columns)
    return decompress(kind, least, width, data, None)


def read_sparse(s):
    at = s.at
    rows = []
    for _ in range(s.count(9999999)):
        s.need(b"SV")
        rows.append(read_sparse_row(s))
    return sparse_matrix(rows, at)


def read_sparse_row(s):
    dim = s.count()
    return dim, [(s.int32(), s.real()) for _ in range(s.count(dim))]


def sparse_matrix(rows, at):
    """Kaldi cannot make a matrix from rows without elements."""
    if rows and rows[0][0] == 0:
        raise Broken(at, f"expected rows of elements, got {len(rows)} of none")
    return dense(rows, at)


def dense(rows, at):
    dims = {dim for dim, _ in rows}
    if len(dims) > 1:
        raise Broken(at, f"expected rows of one length, got {dims}")
    values = [v for _, pairs in rows for _, v in pairs]
    out = np.zeros((len(rows), dims.pop() if dims else 0),
                   np.result_type(np.float32, *[v.dtype for v in values]))
    for row, (dim, pairs) in zip(out, rows):
        last = -1
        for index, value in pairs:
            if not last < index < dim:
                raise Broken(at, f"expected indexes that grow up to {dim}, got {index}")
            row[index] = value
            last = index
    return out


def read_text(s, type, dtype):
    if type == "matrix":
        s.skip_space()
        return read_text_sparse(s, dtype) if s.peek() == b"r" else read_text_matrix(s, dtype)
    if type == "packed":
        values = np.concatenate([np.zeros(0, dtype), *read_text_rows(s, dtype, False)])
        n = int(np.sqrt(2 * len(values)))
        if n * (n + 1) // 2 != len(values):
            raise Broken(s.at, f"expected n (n + 1) / 2 values, got {len(values)}")
        return values
    if type == "vector":
        s.skip_space()
        return dense([read_text_sparse_row(s, dtype)], s.at)[0].astype(dtype) \
            if s.peek() == b"d" else read_text_vector(s, dtype)
    if type in ("int", "float", "double", "bool"):
        return read_text_scalar(s, type, dtype)
    if type == "int-vector":
        line = Stream(s.line())
        out = []
        line.skip_space()
        while line.peek():
            out.append(line.text_int())
            line.skip_space()
        return ints(out)
    if type == "posterior":
        return read_text_posterior(Stream(s.line()), dtype)
    if type == "gauss-posterior":
        frames = []
        for _ in range(text_count(s)):
            frames.append([(s.text_int(), read_text_vector(s, dtype))
                           for _ in range(text_count(s))])
        return frames
    return read_text_lists(s, type, dtype)


def text_count(s):
    at = s.at
    n = s.text_int()
    if n < 0:
        raise Broken(at, f"expected a count, got {n}")
    return n


def special(s):
    """inf, nan: a whole word."""
    at = s.at
    word = s.word().lower()
    if word not in (b"inf", b"infinity", b"nan"):
        raise Broken(at, f"expected a number, got {word}")
    return float(word)


def read_text_rows(s, dtype, tolerant=True):
    """The rows between brackets, without empty ones."""
    at = s.at
    word = s.word()
    if word == b"[]" and tolerant:
        return []
    if word != b"[":
        raise Broken(at, f"expected [, got {word}")
    rows = [[]]
    while True:
        c = s.peek()
        if not c:
            raise Broken(s.at, "expected ], got the end")
        if c == b"]":
            s.get()
            s.after_bracket()
            return [np.array(row, dtype) for row in rows if row]
        if c == b"\n" or (c == b";" and tolerant):
            s.get()
            rows.append([])
        elif c in b"0123456789-":
            rows[-1].append(s.text_real(dtype))
        elif c in SPACE:
            s.get()
        else:
            rows[-1].append(special(s))


def read_text_matrix(s, dtype):
    rows = read_text_rows(s, dtype)
    if len({len(row) for row in rows}) > 1:
        raise Broken(s.at, "expected rows of one length")
    return np.array(rows, dtype) if rows else np.zeros((0, 0), dtype)


def read_text_vector(s, dtype):
    at = s.at
    word = s.word()
    if word == b"[]":
        return np.zeros(0, dtype)
    if word != b"[":
        raise Broken(at, f"expected [, got {word}")
    out = []
    while True:
        c = s.peek()
        if not c or c in b"\r\n":
            raise Broken(s.at, f"expected ], got {c}")
        if c == b"]":
            s.get()
            s.after_bracket()
            return np.array(out, dtype)
        if c in b"0123456789-":
            out.append(s.text_real(dtype))
            if not s.peek() or s.peek() not in SPACE + b"]":
                raise Broken(s.at, "expected a blank behind a number")
        elif c in b" \t":
            s.get()
        else:
            out.append(special(s))


def read_text_sparse(s, dtype):
    at = s.at
    found = re.match(rb"rows=([+-]?[0-9]+)", s.word())
    if not found or int(found[1]) not in INT32 or int(found[1]) < 0:
        raise Broken(at, "expected rows=")
    rows = [read_text_sparse_row(s, dtype) for _ in range(int(found[1]))]
    return sparse_matrix(rows, at).astype(dtype)


def read_text_sparse_row(s, dtype):
    at = s.at
    dim = re.match(rb"dim=([+-]?[0-9]+)", s.word())
    if not dim or int(dim[1]) not in INT32 or int(dim[1]) < 0 or s.word() != b"[":
        raise Broken(at, "expected dim= and [")
    pairs = []
    s.skip_space()
    while s.peek() != b"]":
        pairs.append((s.text_int(), s.text_real(dtype)))
        s.skip_space()
    s.get()
    return int(dim[1]), pairs


def read_text_scalar(s, type, dtype):
    s.take(rb"[ \t\v\f\r]*")
    at = s.at
    if s.peek() == b"\n":
        raise Broken(at, "expected a value, got a line's end")
    if type == "int":
        value = np.int32(s.text_int())
    elif type == "bool":
        if s.peek() not in (b"T", b"F"):
            raise Broken(at, "expected T or F")
        value = np.bool_(s.get() == b"T")
    else:
        value = s.text_real(np.float64 if type == "double" else dtype)
    s.take(rb"[ \t\v\f\r]*")
    if s.get() != b"\n":
        raise Broken(s.at, "expected a line's end")
    return value


def read_text_posterior(line, dtype):
    frames = []
    line.skip_space()
    while line.peek():
        at = line.at
        if line.word() != b"[":
            raise Broken(at, "expected [")
        index, value = [], []
        line.skip_space()
        while line.peek() != b"]":
            index.append(line.text_int())
            value.append(line.text_real(dtype))
            line.skip_space()
        line.get()
        line.skip_space()
        frames.append((ints(index), np.array(value, dtype)))
    return frames


def read_text_lists(s, type, dtype):
    """; ends a list of int-vectors, and separates pairs."""
    one = s.text_int if type != "float-pairs" else lambda: s.text_real(dtype)
    lists, now = [], []
    while True:
        c = s.peek()
        if not c:
            raise Broken(s.at, "expected a line's end, got the end")
        if type != "int-vectors" and c in b";\n" and len(now) != 2 and (now or lists or c == b";"):
            raise Broken(s.at, f"expected a pair, got {len(now)} numbers")
        if c == b"\n":
            s.get()
            if type == "int-vectors":
                if now:
                    raise Broken(s.at, "expected ; before the line's end")
                return [ints(v) for v in lists]
            lists += [now] if now else []
            return np.array(lists, np.int32 if type == "int-pairs" else dtype).reshape(-1, 2)
        if c in SPACE:
            s.get()
        elif c == b";":
            s.get()
            lists.append(now)
            now = []
        else:
            now.append(one())


def read_wave(s):
    tag = s.read(4)
    if tag not in (b"RIFF", b"RIFX"):
        raise Broken(s.at, f"expected RIFF or RIFX, got {tag}")
    e = "<" if tag == b"RIFF" else ">"
    number = lambda: struct.unpack(f"{e}I", s.read(4))[0]
    riff = number()
    if s.read(4) != b"WAVE":
        raise Broken(s.at, "expected WAVE")
    while s.read(4) != b"fmt ":
        s.read(number())
    at, size = s.at, number()
    form, channels, rate, bytes_rate, align, bits = struct.unpack(f"{e}HHIIHH", s.read(16))
    used = 16
    if form == 0xfffe:
        extra, _, _, *guid = struct.unpack(f"{e}HHI4I", s.read(24))
        used = 40
        if size < 40 or extra < 22 or guid != [1, 0x00100000, 0xAA000080, 0x719B3800]:
            raise Broken(at, f"expected PCM, got {guid}")
    elif form != 1 or size < 16:
        raise Broken(at, f"expected format 1, got {form}")
    if size > used:
        s.read(size - used)
    if channels == 0 or bits != 16 or align != channels * 2 or \
            bytes_rate != rate * bits % 2 ** 32 // 8 * channels % 2 ** 32:
        raise Broken(at, "expected 16 bits")
    while s.read(4) != b"data":
        s.read(number())
    size = number()
    left = len(s.data) - s.at
    to_end = riff in (0, 2 ** 32 - 1) or size in (0, 2 ** 32 - 1, 0x7ffff000)
    size = left if to_end else min(size // align * align, left)
    if size == 0:
        raise Broken(s.at, "expected data, got none")
    data = s.read(size)[:size // align * align]
    if not data:
        raise Broken(s.at, "expected a sample, got less")
    return rate, np.frombuffer(data, f"{e}i2").astype(np.int16).reshape(-1, channels)


def read_ark(data, type, dtype=np.float32, skip_nul=True, skip_mark=True):
    """The good objects of an archive, and the Broken that ends it or None. skip_mark: a byte order
    mark at the start is no part of the first key, unlike in Kaldi."""
    s = Stream(data)
    objects = []
    if skip_mark:
        s.take(rb"(\xef\xbb\xbf)?")
    while True:
        s.skip_space()
        key_at = s.at
        key = s.take(rb"[^ \t\n\v\f\r]*")
        if s.at == len(data):
            return objects, None
        bad = None
        if s.peek() not in (b" ", b"\t", b"\n"):
            bad = Broken(s.at, "expected a blank behind the key")
            key = None
        elif s.peek() != b"\n":
            s.get()
        start = s.at
        if not bad:
            try:
                value = read_object(s, type, dtype, skip_nul)
            except Broken as b:
                bad = b
        if bad:
            bad.key, bad.start = key, key_at
            return objects, bad
        loose = data[start:start + 1] != b"\0" and type != "wave" and data[s.at - 1:s.at] != b"\n"
        objects.append(Object(key, start, s.at, value, loose))


# ---- the files of a mount ----

def encode(key):
    """The key, escaped as in names of files."""
    out = re.sub(rb"[%/\0]", lambda m: b"%%%02X" % m[0][0], key)
    return b"%2E" + out[1:] if out.startswith(b".") else out


def unique(keys):
    """Repeated keys get new names, which no other key has."""
    taken, names = set(keys), []
    seen = set()
    for key in keys:
        name = key
        if key in seen:
            n = 2
            while b"%s~%d" % (key, n) in taken:
                n += 1
            name = b"%s~%d" % (key, n)
            taken.add(name)
        seen.add(key)
        names.append(name)
    return names


def is_double(value):
    if isinstance(value, (list, tuple)):
        return any(is_double(v) for v in value)
    return getattr(value, "dtype", None) == np.float64


def as_arrays(type, value, dtype):
    """Suffix of the field's name -> array."""
    cat = lambda arrays, dt: np.concatenate([np.zeros(0, dt), *arrays]).astype(dt)
    if type in ("matrix", "vector", "packed", "float", "double", "float-pairs"):
        return {"": np.asarray(value).astype(dtype)}
    if type in ("int", "bool", "int-vector", "int-pairs"):
        return {"": np.asarray(value)}
    if type == "int-vectors":
        return {"": cat(value, np.int32), "_counts": ints([len(v) for v in value])}
    if type == "posterior":
        return {"": cat([v for _, v in value], dtype),
                "_index": cat([i for i, _ in value], np.int32),
                "_counts": ints([len(i) for i, _ in value])}
    if type == "gauss-posterior":
        entries = [e for frame in value for e in frame]
        return {"": cat([v for _, v in entries], dtype), "_index": ints([i for i, _ in entries]),
                "_dims": ints([len(v) for _, v in entries]),
                "_counts": ints([len(frame) for frame in value])}
    return {}


def wave_arrays(objects):
    """One axis where all are mono."""
    mono = all(o.value[1].shape[1] == 1 for o in objects)
    return [{"": o.value[1][:, 0] if mono else o.value[1],
             "_rate": np.uint32(o.value[0]).astype(np.int32)} for o in objects]


class Table:
    """A dataset of one archive. permissive: kaldi=p."""

    def __init__(self, data, type, permissive=False, field="data"):
        self.data, self.type, self.field = data, type, field
        self.objects, self.broken = read_ark(data, type)
        objects = self.objects  # text as precise as the table
        if self.dtype() == np.float64:
            objects = read_ark(data, type, np.float64)[0]
        self.arrays = [as_arrays(type, o.value, self.dtype()) for o in objects]
        if type == "wave":
            self.arrays = wave_arrays(self.objects)
        keys = [o.key for o in self.objects]
        if self.broken and self.broken.key is not None and not permissive:
            keys.append(self.broken.key)
        self.keys = unique(keys)

    def dtype(self):
        """The type of real numbers. Text has no precision of its own, except scalars."""
        if self.type == "double" or any(is_double(o.value) for o in self.objects):
            return np.float64
        return np.float32

    def __len__(self):
        return len(self.keys)

    def names(self):
        """The names of the arrays: data, data_counts, ..."""
        return [self.field + suffix for suffix in self.arrays[0]]

    def array(self, sample, name):
        return self.arrays[sample][name[len(self.field):]]

    def raw(self, sample):
        return self.data[self.objects[sample].start:self.objects[sample].end]

    def is_bad(self, sample):
        return sample >= len(self.objects)

    def encodings(self):
        if self.type in TEXT_ONLY:
            return ["raw", "ark", "tar", "txt"]
        return ["raw", "npy", "npz", "ark", "tar"] + (["wav"] if self.type == "wave" else [])

    def only(self, encodings):
        """Those of the encodings that the table has; None: all."""
        return [e for e in self.encodings() if encodings is None or e in encodings]

    def suffixes(self, enc, single):
        """The suffixes after the key or the number of the batch."""
        if enc == "raw":
            return [f".{self.field}.raw"]
        if enc == "npy":
            out = [f".{name}.npy" for name in self.names()]
            if not single:
                out += [f".{n}_len.npy" for n in self.names() if self.array(0, n).ndim]
                out += [".index.npy", ".key.txt"]
            return sorted(out)
        return [".ark", ".scp"] if enc == "ark" else [f".{enc}"]


def same_value(got, want, what):
    """Values of read_object()."""
    if isinstance(want, (list, tuple)):
        equal(len(got), len(want), what)
        for a, b in zip(got, want):
            same_value(a, b, what)
    elif isinstance(want, (bytes, int)):
        equal(got, want, what)
    else:
        same_array(np.asarray(got), np.asarray(want), what)


def check_raw(file, table, sample):
    data = content(file)
    want = table.raw(sample)
    o = table.objects[sample]
    equal(len(data), os.stat(file).st_size, f"{file}: size")
    if o.loose or want.endswith(bytes(4)):  # what ends the line, 4 NULs: in or not
        equal(data.rstrip(SPACE + b"\0"), want.rstrip(SPACE + b"\0"), file)
        equal(table.data[o.start:o.start + len(data)], data, f"{file}: as stored")
    else:
        equal(data, want, file)


def check_ark(file, scp, table, samples):
    """Check the archive by Kaldi's rules to the byte, and the offsets of the scp with the file that
    it names."""
    data = content(file)
    equal(len(data), os.stat(file).st_size, f"{file}: size")
    objects, broken = read_ark(data, table.type, skip_nul=False, skip_mark=False)
    equal(broken and broken.args, None, f"{file}: breaks")
    equal([o.key for o in objects], [table.keys[i] for i in samples], f"{file}: keys")
    for o, i in zip(objects, samples):
        same_value(o.value, table.objects[i].value, f"{file}: {o.key}")
    if not any(table.objects[i].loose or table.raw(i).endswith(bytes(4)) or
               table.type == "wave" for i in samples):
        equal(data, b"".join(table.keys[i] + b" " + table.raw(i) for i in samples),
              f"{file}: bytes")
    text = content(scp)
    equal(len(text), os.stat(scp).st_size, f"{scp}: size")
    equal(text.endswith(b"\n"), True, f"{scp}: a last line's end")
    lines = text[:-1].split(b"\n")
    equal(len(lines), len(samples), f"{scp}: lines")
    for line, o, i in zip(lines, objects, samples):
        key, _, place = line.partition(b" ")
        where, _, offset = place.rpartition(b":")
        equal((key, where, offset), (table.keys[i], os.fsencode(file), b"%d" % o.start),
              f"{scp}: a line")
    with open(where, "rb") as f:
        f.seek(int(offset))
        same_value(read_object(Stream(f.read()), table.type, skip_nul=False),
                   table.objects[samples[-1]].value, f"{scp}: the last object")


def read_npz(data, what):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        equal(z.testzip(), None, what)
        equal({i.compress_type for i in z.infolist()}, {zipfile.ZIP_STORED}, what)
        equal([n for n in z.namelist() if not n.endswith(".npy")], [], what)
        return {n[:-4]: np.lib.format.read_array(io.BytesIO(z.read(n))) for n in z.namelist()}


def tails(table, name, samples):
    """The axes but the first of the arrays that have a row."""
    arrays = [table.array(i, name) for i in samples]
    return {a.shape[1:] for a in arrays if a.ndim and len(a)}


def fits(table, samples):
    """Do the arrays of the samples fit into one? Matrices of different widths do not."""
    return all(len(tails(table, name, samples)) < 2 for name in table.names())


def empty(table, name):
    """No rows, as wide as all in the table."""
    array = table.array(0, name)
    found = tails(table, name, range(len(table.arrays))) or {array.shape[1:]}
    tail = found.pop() if len(found) == 1 else (0,) * (array.ndim - 1)
    return np.zeros((0, *tail), array.dtype)


def ragged(table, name, samples):
    """All rows of the samples, one after another, and where each sample begins."""
    arrays = [table.array(i, name) for i in samples]
    rows = [a for a in arrays if len(a)]
    joined = np.concatenate(rows) if rows else empty(table, name)
    return joined, np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)


def padded(table, name, samples):
    arrays = [table.array(i, name) for i in samples]
    lens = np.array([len(a) for a in arrays], np.int64)
    like = next((a for a in arrays if len(a)), empty(table, name))
    out = np.zeros((len(arrays), lens.max(), *like.shape[1:]), like.dtype)
    for row, a in zip(out, arrays):
        if len(a):
            row[:len(a)] = a
    return out, lens


def check_npz(file, table, samples, single):
    if not single and not fits(table, samples):
        expect_error(errno.EIO, content, file)
        return
    data = content(file)
    equal(len(data), os.stat(file).st_size, f"{file}: size")
    got = read_npz(data, file)
    want = {}
    for name in table.names():
        if single or table.array(0, name).ndim == 0:
            arrays = [table.array(i, name) for i in samples]
            want[name] = arrays[0] if single else np.array(arrays)
        else:
            want[name], want[f"{name}_offsets"] = ragged(table, name, samples)
    if not single:
        want["index"] = np.array(samples, np.int64)
    equal(sorted(set(got) - {"key"}), sorted(want), f"{file}: members")
    for name, array in want.items():
        same_array(got[name], array, f"{file}: {name}")
    if not single:
        equal(got["key"].dtype.kind, "S", f"{file}: key")
        equal(got["key"].tolist(), [table.keys[i].rstrip(b"\0") for i in samples], f"{file}: key")
    with np.load(io.BytesIO(data)) as z:
        equal(sorted(z.files), sorted(got), f"{file}: members")


def check_npy_batch(folder, number, table, samples):
    at = lambda suffix: folder + b"/npy/" + number + suffix.encode()
    for name in table.names():
        if table.array(0, name).ndim == 0:
            want = np.array([table.array(i, name) for i in samples])
        elif len(tails(table, name, samples)) > 1:
            expect_error(errno.EIO, content, at(f".{name}.npy"))
            continue
        else:
            want, lens = padded(table, name, samples)
            check_npy(content(at(f".{name}_len.npy")), lens, at(f".{name}_len.npy"))
        check_npy(content(at(f".{name}.npy")), want, at(f".{name}.npy"))
    check_numbers(folder, number, table, samples)


def check_numbers(folder, number, table, samples):
    at = lambda suffix: folder + b"/npy/" + number + suffix
    check_npy(content(at(b".index.npy")), np.array(samples, np.int64), at(b".index.npy"))
    equal(content(at(b".key.txt")), b"".join(table.keys[i] + b"\n" for i in samples),
          at(b".key.txt"))


def webdataset(data):
    """Samples of a tar as WebDataset reads them (tariterators.py): a stream; the key is the name up
    to the first dot of its last part, what follows is the extension, in small letters; neighbours
    of one key are a sample; `__x__` are skipped."""
    current, key = None, None
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*", encoding="utf-8",
                      errors="surrogateescape") as tar:
        for member in tar:
            if not member.isreg():
                continue
            name = os.fsencode(member.name)
            folder, _, base = name.rpartition(b"/")
            if re.match(rb"__[^/]*__($|/)", name):
                continue
            prefix, dot, extension = base.partition(b".")
            if not dot:
                continue
            prefix = folder + b"/" + prefix if folder else prefix
            if prefix != key:
                if current:
                    yield key, current
                key, current = prefix, {}
            extension = extension.lower()
            equal(extension in current, False, f"{name} twice")
            current[extension] = tar.extractfile(member).read()
    if current:
        yield key, current


def tar_members(table, sample):
    """extension -> the value that check_tar() compares."""
    if table.type in TEXT_ONLY:
        return {b"txt": table.objects[sample].value + b"\n"}
    if table.type == "wave":
        rate, samples = table.objects[sample].value
        return {b"wav": wave_bytes(samples, rate)}
    return {f"{n}.npy".encode(): table.array(sample, n) for n in table.names()}


def check_tar(file, table, samples):
    data = content(file)
    equal(len(data), os.stat(file).st_size, f"{file}: size")
    got = list(webdataset(data))
    equal([key for key, _ in got], [encode(table.keys[i]).replace(b".", b"%2E") for i in samples],
          f"{file}: keys of WebDataset")
    for (key, members), i in zip(got, samples):
        want = tar_members(table, i)
        equal(sorted(members), sorted(want), f"{file}: members of {key}")
        for name, value in want.items():
            if name.endswith(b"npy"):
                check_npy(members[name], value, f"{file}: {key} {name}")
            else:
                equal(members[name], value, f"{file}: {key} {name}")
    equal(len(data) % 512, 0, f"{file}: blocks")
    equal(data[-1024:], bytes(1024), f"{file}: two blocks of zeros at the end")


def check(table, folder, name, samples, single, encodings=None):
    """All files of a sample or a batch. folder, name: bytes."""
    for enc in table.only(encodings):
        at = lambda suffix: folder + b"/" + enc.encode() + b"/" + name + suffix.encode()
        if enc == "raw" and single:
            check_raw(at(f".{table.field}.raw"), table, samples[0])
        elif enc == "ark":
            check_ark(at(".ark"), at(".scp"), table, samples)
        elif enc == "npz":
            check_npz(at(".npz"), table, samples, single)
        elif enc == "npy" and single:
            for suffix in table.suffixes(enc, True):
                file = at(suffix)
                equal(len(content(file)), os.stat(file).st_size, f"{file}: size")
                check_npy(content(file), table.array(samples[0], suffix[1:-4]), file)
        elif enc == "npy":
            check_npy_batch(folder, name, table, samples)
        elif enc == "tar":
            check_tar(at(".tar"), table, samples)
        elif enc == "wav" and single:
            rate, data = table.objects[samples[0]].value
            equal(content(at(".wav")), wave_bytes(data, rate), at(".wav"))
        elif enc == "txt":
            equal(content(at(".txt")), b"".join(table.objects[i].value + b"\n" for i in samples),
                  at(".txt"))


def check_bad_sample(table, folder, sample):
    """No file of it can be read; it has a size only if all samples have the same."""
    scalar = all(table.array(0, name).ndim == 0 for name in table.names())
    for enc in table.encodings():
        for suffix in table.suffixes(enc, True):
            file = folder + b"/samples/" + enc.encode() + b"/" + encode(table.keys[sample]) + \
                suffix.encode()
            name = suffix[1:-4]
            alike = enc == "npy" and table.array(0, name).ndim == 0 or \
                enc in ("npz", "tar") and scalar and table.names()
            if not alike:
                expect_error(errno.EIO, os.stat, file)
            expect_error(errno.EIO, content, file)


def check_sample(table, folder, sample, encodings=None):
    """folder: that of the dataset."""
    folder = os.fsencode(folder)
    if table.is_bad(sample):
        check_bad_sample(table, folder, sample)
    else:
        check(table, folder + b"/samples", encode(table.keys[sample]), [sample], True, encodings)


def check_batch(table, folder, number, samples, encodings=None):
    """folder: that of the plan or epoch."""
    folder, name = os.fsencode(folder), b"%06d" % number
    if not any(table.is_bad(i) for i in samples):
        check(table, folder, name, samples, False, encodings)
        return
    for enc in set(table.only(encodings)) - {"raw", "wav"}:
        for suffix in table.suffixes(enc, False):
            if suffix not in (".index.npy", ".key.txt", ".scp"):
                expect_error(errno.EIO, content,
                             folder + b"/" + enc.encode() + b"/" + name + suffix.encode())


def check_listing(table, folder, encodings=None):
    """Each name of samples/ is listed, and no other."""
    folder = os.fsencode(folder)
    for enc in table.only(encodings):
        want = sorted(encode(key) + suffix.encode() for key in table.keys
                      for suffix in table.suffixes(enc, True))
        equal(sorted(os.listdir(folder + b"/samples/" + enc.encode())), want,
              f"{folder}: names in samples/{enc}")


def check_table(table, folder, batch=2, seed=5, encodings=None):
    """All samples; a batch of all, short ones, shuffled ones. None of it may be missing."""
    folder = os.fsdecode(folder)
    n = len(table)
    equal(n > 0, True, f"{folder}: samples")
    check_listing(table, folder, encodings)
    for sample in range(n):
        check_sample(table, folder, sample, encodings)
    check_batch(table, f"{folder}/batches/batch=all", 0, list(range(n)), encodings)
    for number in range(-(-n // batch)):
        samples = list(range(n))[number * batch:(number + 1) * batch]
        check_batch(table, f"{folder}/batches/batch={batch}", number, samples, encodings)
    if table.type in TEXT_ONLY:
        return
    seen = []
    plan = f"{folder}/batches/batch={batch},seed={seed}/epoch=1"
    for number in range(-(-n // batch)):
        samples = np.load(f"{plan}/npy/{number:06d}.index.npy").tolist()
        check_batch(table, plan, number, samples, encodings)
        seen += samples
    equal(sorted(seen), list(range(n)), f"{folder}: samples of an epoch")


def check_error_page(name, *words):
    """A file that cannot be used: only ERROR.txt, of one line, with the place."""
    found = os.listdir(path(name))
    equal(found, ["ERROR.txt"], f"{name}: a file that cannot be used")
    message = text(path(name, "ERROR.txt"))
    contains(message, os.path.basename(name), *words)
    equal((message.count("\n"), message[-1:]), (1, "\n"), f"{name}: one line: {message!r}")
    return message


def check_archive(name, data, type, permissive=False, encodings=None, full=True):
    """Check the files of a mount for an archive of that name, good or not. encodings: the ones to
    check; full: check batches too. Returns the Table."""
    table = Table(data, type, permissive)
    if not table.objects:
        message = check_error_page(name)
        if table.broken:
            check_place(message, table, f"{name}: ERROR.txt")
        return table
    if os.path.exists(path(name, "ERROR.txt")):
        raise AssertionError(f"{name}: expected {len(table)} samples, found: "
                             f"{text(path(name, 'ERROR.txt'))}")
    page = json.loads(text(path(name, "dataset.json")))
    equal((page["format"], page["samples"]), ("kaldi", len(table)), f"{name}: dataset.json")
    if table.broken:
        note = "\n".join(page["notes"])
        contains(note, os.path.basename(name))
        check_place(note, table, f"{name}: note")
    if full:
        check_listing(table, path(name), encodings)
    for sample in range(len(table)):
        check_sample(table, path(name), sample, encodings)
    if full:
        n = len(table)
        check_batch(table, path(name, "batches/batch=all"), 0, list(range(n)), encodings)
        for number in range(-(-n // 2)):
            check_batch(table, path(name, "batches/batch=2"), number,
                        list(range(n))[number * 2:number * 2 + 2], encodings)
    return table


def check_place(message, table, what):
    """A message names a byte in the object that is broken."""
    places = [int(n) for n in re.findall(r"byte (\d+)", message)]
    first = table.broken.start
    equal([n for n in places if first <= n <= len(table.data)] != [], True,
          f"{what}: expected `byte N`, N from {first} to {len(table.data)}, found: {message}")
