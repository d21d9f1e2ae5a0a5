"""libsvm text, read in a plain way by docs/spec/tables.md, and the files that a mount must show of it.

    ds = Dataset([("a.txt", bytes), ...], index_base="asis", skip=False)
    ds.rows                     every row: its text, its place, its values, or an error
    check_sample, check_batch   compare the files of a mount with it
"""

import ctypes
import errno
import io
import os
import re
import zipfile

import numpy as np

from lib import content, equal, expect_error
from model import check_npy, same_array

INDEX_MAX = 2 ** 32 - 1
X_MAX = 10 ** 7  # Dense arrays with more columns are checked only in places.
B = rb"[ \t\v\f]*"
NUMBER = rb"[+-]?(?:[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN]|" \
         rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
END = rb"(?=[ \t\v\f#]|\Z)"

strtof_c = ctypes.CDLL(None).strtof
strtof_c.restype = ctypes.c_float
strtof_c.argtypes = [ctypes.c_char_p, ctypes.c_void_p]


def strtof(text):
    """The float32 that libc's strtof returns."""
    return np.float32(strtof_c(text, None))


class BadRow(Exception):
    """args: the first and the last column, from 1, that a message may name."""


class Row:
    def __init__(self, file, line, start, text):
        self.file, self.line, self.start, self.text = file, line, start, text
        self.error = None
        self.labels, self.weight, self.qid, self.values = [], None, None, None
        self.index, self.value = [], []


class Scanner:
    def __init__(self, text):
        self.text, self.at = text, 0

    def sees(self, pattern):
        return re.compile(pattern).match(self.text, self.at)

    def take(self, pattern):
        m = self.sees(pattern)
        if m:
            self.at = m.end()
        return m

    def need(self, pattern):
        m = self.take(pattern)
        if not m:
            raise self.bad(self.at)
        return m[0]

    def bad(self, at):
        """Any column in the word at that place will do."""
        first = re.search(rb"[^ \t\v\f]*\Z", self.text[:at]).start()
        last = re.compile(rb"[ \t\v\f]*[^ \t\v\f]*").match(self.text, at).end()
        return BadRow(first + 1, last + 1)


def read_row(row, index_base, weighted):
    """Fill in row; raises BadRow. If rows have weights, label:weight may follow white space."""
    s = Scanner(row.text)
    blanks = s.take(B)[0]
    if weighted or not blanks or not s.sees(rb"[0-9]+" + B + b":"):
        row.labels.append(strtof(s.need(NUMBER)))
        while s.take(b","):
            row.labels.append(strtof(s.need(NUMBER)))
        if s.take(B + b":" + B):
            row.weight = strtof(s.need(NUMBER))
        s.need(END)
        s.take(B)
        if s.take(b"qid:" + B):
            at = s.at
            row.qid = int(s.need(rb"[+-]?[0-9]+"))
            if not -2 ** 63 <= row.qid < 2 ** 63:
                raise s.bad(at)
            s.need(END)
    features = []
    with_value = None
    while s.take(B) and not s.sees(rb"#|\Z"):
        at = s.at
        index = int(s.need(rb"\+?[0-9]+"))
        if index > INDEX_MAX or (index_base == "1" and index == 0):
            raise s.bad(at)
        colon = s.take(B + b":" + B)
        value = strtof(s.need(NUMBER)) if colon else np.float32(1)
        s.need(END)
        if with_value not in (None, bool(colon)):
            raise s.bad(at)
        with_value = bool(colon)
        features.append((index, value))
    row.values = with_value
    features.sort(key=lambda f: f[0])  # Equal indexes keep their order.
    row.index = [f[0] for f in features]
    row.value = [f[1] for f in features]


def lines(data):
    """(number, first byte, text) of every line; the mark at the start belongs to no text."""
    for number, m in enumerate(re.finditer(rb"([^\r\n]*)(\r\n|\r|\n|\Z)", data), 1):
        if m[0]:
            text = m[1].removeprefix(b"\xef\xbb\xbf") if m.start() == 0 else m[1]
            yield number, m.start(), text


def read_file(name, data, index_base):
    rows, first = [], None
    for number, start, text in lines(data):
        if re.match(B + rb"(#|\Z)", text):
            continue
        row = Row(name, number, start, text)
        rows.append(row)
        try:
            read_row(row, index_base, first is not None and not first[0])
        except BadRow as bad:
            row.error = bad.args
            continue
        if first is None:
            first = columns(row)
    for row in rows:
        if first is not None and columns(row) != first:
            row.error = (1, row.error[1] if row.error else len(row.text) + 1)
    if any(row.values and not row.error for row in rows[:32]):  # then all rows have values
        for row in rows:
            if row.values is False and not row.error:
                row.error = (1, len(row.text) + 1)
    return rows


def columns(row):
    return row.weight is None, row.qid is None


class Dataset:
    def __init__(self, files, index_base="asis", skip=False):
        self.files = [(name, data) for name, data in files if data]
        self.rows = [row for name, data in self.files for row in read_file(name, data, index_base)]
        if skip:
            self.rows = [row for row in self.rows if not row.error]
        self.good = [row for row in self.rows if not row.error]
        self.shift = shift_of(self.good, index_base)
        self.features = max((row.index[-1] for row in self.good if row.index), default=-1) + 1
        self.features = max(self.features - self.shift, 0)
        self.width = max((len(row.labels) for row in self.good), default=1)
        self.fields = {"label": self.labels()}
        if any(row.weight is not None for row in self.good):
            self.fields["weight"] = self.column("weight", np.float32)
        if any(row.qid is not None for row in self.good):
            self.fields["qid"] = self.column("qid", np.int64)

    def labels(self):
        table = np.full((len(self.rows), max(self.width, 1)), np.nan, np.float32)
        for i, row in enumerate(self.rows):
            if not row.error:
                table[i, :len(row.labels)] = row.labels
        return table if self.width > 1 else table[:, 0]

    def column(self, name, dtype):
        """Bad rows have a 0, which no file shows."""
        return np.array([0 if row.error else getattr(row, name) for row in self.rows], dtype)

    def key(self, sample):
        return f"{sample:0{max(6, len(str(len(self.rows) - 1)))}d}"

    def csr(self, samples):
        rows = [self.rows[i] for i in samples]
        lengths = [len(row.index) for row in rows]
        return {"indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
                "indices": np.array([k - self.shift for row in rows for k in row.index], np.int64),
                "data": np.array([v for row in rows for v in row.value], np.float32),
                "shape": np.array([len(rows), self.features], np.int64)}

    def bad(self, samples):
        return any(self.rows[i].error for i in samples)

    def part(self, k, n):
        """The rows of part=KofN: the rule of dmlc's splitter, on the bytes of the files."""
        total = sum(len(data) for _, data in self.files)
        step = -(-total // n)
        begin, end = (self.cut(min(step * i, total)) for i in (k, k + 1))
        starts, place = {}, 0
        for name, data in self.files:
            starts[name] = place
            place += len(data)
        return [i for i, row in enumerate(self.rows)
                if begin <= starts[row.file] + row.start < end]

    def cut(self, x):
        place = 0
        for _, data in self.files:
            if x == place:
                return x
            if x < place + len(data):
                rest = re.compile(rb"[^\r\n]*[\r\n]*").match(data, x - place)
                return place + rest.end()
            place += len(data)
        return x


def shift_of(rows, index_base):
    if index_base == "auto":
        smallest = [row.index[0] for row in rows if row.index]
        return 1 if smallest and min(smallest) > 0 else 0
    return 1 if index_base == "1" else 0


# ---- the files of a mount ----

def read_npz(data, what):
    """Members by name, by zipfile and numpy's array reader alone."""
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        equal(z.testzip(), None, what)
        equal({i.compress_type for i in z.infolist()}, {zipfile.ZIP_STORED}, what)
        equal([n for n in z.namelist() if not n.endswith(".npy")], [], what)
        return {n[:-4]: np.lib.format.read_array(io.BytesIO(z.read(n))) for n in z.namelist()}


def index_type(ds):
    return np.int64 if ds.features > 2 ** 31 else np.int32


def check_csr(got, want, ds, what):
    """got: data, indices, indptr, shape of an npz."""
    same_array(got["data"], want["data"], f"{what}: data")
    equal(got["indices"].dtype, np.dtype(index_type(ds)), f"{what}: indices")
    equal(got["indices"].tolist(), want["indices"].tolist(), f"{what}: indices")
    equal(got["indptr"].dtype in (np.int32, index_type(ds)), True, f"{what}: indptr")
    equal(got["indptr"].tolist(), want["indptr"].tolist(), f"{what}: indptr")
    same_array(got["shape"], want["shape"], f"{what}: shape")


def check_npz(path, ds, samples, single):
    import scipy.sparse
    want = ds.csr(samples)
    data = content(path)
    got = read_npz(data, path)
    check_csr(got, want, ds, path)
    equal(bytes(got["format"].item()), b"csr", path)
    fields = dict(ds.fields)
    names = set(want) | {"format"} | set(fields) | (set() if single else {"index", "key"})
    equal(set(got), names, f"{path}: members")
    for name, array in fields.items():
        same_array(got[name], array[samples[0]] if single else array[samples], f"{path}: {name}")
    if not single:
        same_array(got["index"], np.array(samples, np.int64), f"{path}: index")
        keys = [ds.key(i).encode() for i in samples]
        equal(got["key"].tolist(), keys, f"{path}: key")
    matrix = scipy.sparse.load_npz(path)
    equal((matrix.format, matrix.dtype, matrix.shape),
          ("csr", np.float32, tuple(want["shape"].tolist())), path)
    for name in ("data", "indices", "indptr"):
        equal(getattr(matrix, name).tobytes(), got[name].astype(
            getattr(matrix, name).dtype).tobytes(), f"{path}: scipy's {name}")
    return matrix


def dense(want):
    """Zeros have no sign: sparse readers add to a 0. Repeated indexes add up in float32."""
    rows, columns = want["shape"]
    x = np.zeros((rows, columns), np.float32)
    row = np.repeat(np.arange(rows), np.diff(want["indptr"]))
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(x, (row, want["indices"]), want["data"])
    return x


def check_x(path, ds, samples, single):
    want = ds.csr(samples)
    if ds.features > X_MAX:
        return check_x_places(path, ds, want, single)
    got = np.load(path)
    x = dense(want)
    same_array(got + np.float32(0), x[0] if single else x, path)


def check_x_places(path, ds, want, single):
    """A dense array too large to read: its size, its header, and the places with values."""
    rows = np.repeat(np.arange(want["shape"][0]), np.diff(want["indptr"])).tolist()
    with open(path, "rb") as f:
        equal(np.lib.format.read_magic(f), (1, 0), path)
        header = np.lib.format.read_array_header_1_0(f)
        shape = (ds.features,) if single else tuple(want["shape"].tolist())
        equal(header, (shape, False, np.dtype("<f4")), path)
        start = f.tell()
        equal(os.fstat(f.fileno()).st_size, start + 4 * int(np.prod(shape)), path)
        places = dict(zip(zip(rows, want["indices"].tolist()), want["data"].tolist()))
        for (row, index), value in places.items():
            f.seek(start + 4 * (row * ds.features + index))
            equal(np.frombuffer(f.read(4), "<f4").tolist(), [value], f"{path}: {row}, {index}")
            if (row, index - 1) not in places and index:
                f.seek(start + 4 * (row * ds.features + index - 1))
                equal(f.read(4), bytes(4), f"{path}: before {row}, {index}")


def check_fields(folder, name, ds, samples, single):
    """npy: label, weight, qid, ... and x, of a batch index."""
    suffixes = [*ds.fields, "x"] + ([] if single else ["index"])
    for suffix in suffixes:
        file = f"{folder}/npy/{name}.{suffix}.npy"
        if suffix == "index":
            check_npy(content(file), np.array(samples, np.int64), file)
        elif ds.bad(samples):
            expect_error(errno.EIO, read_end, file)
        elif suffix == "x":
            check_x(file, ds, samples, single)
        else:
            array = ds.fields[suffix]
            check_npy(content(file), array[samples[0]] if single else array[samples], file)


def read_end(path):
    """All of a file; of a file too large its first and last bytes."""
    with open(path, "rb") as f:
        if os.fstat(f.fileno()).st_size < 4 * X_MAX:
            return f.read()
        f.read(256)
        f.seek(-1, os.SEEK_END)
        return f.read()


def check_svm(path, ds, samples, single):
    data = content(path)
    equal(len(data), os.stat(path).st_size, f"{path}: size")
    equal(data, b"".join(ds.rows[i].text + b"\n" for i in samples), path)


def check(ds, folder, name, samples, single):
    check_svm(f"{folder}/svm/{name}.svm", ds, samples, single)
    if ds.bad(samples):
        expect_error(errno.EIO, content, f"{folder}/npz/{name}.npz")
    else:
        check_npz(f"{folder}/npz/{name}.npz", ds, samples, single)
    check_fields(folder, name, ds, samples, single)


def check_sample(ds, folder, sample):
    check(ds, f"{folder}/samples", ds.key(sample), [sample], True)


def check_batch(ds, folder, number, samples):
    """folder: that of the plan or epoch."""
    check(ds, folder, f"{number:06d}", samples, False)
