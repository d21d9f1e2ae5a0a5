"""The expected files of a dataset, made only with numpy, zipfile, tarfile and PIL."""

import ast
import io
import math
import os
import tarfile
import zipfile

import numpy as np

from lib import content, equal, idx_bytes, idx_parse

NUMPY_PADS = tuple(int(v) for v in np.__version__.split(".")[:2]) >= (1, 23)


def npy_bytes(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


class Dataset:
    """fields: name -> array of all samples, as numpy has them (native byte order)."""

    def __init__(self, folder, fields, classes=None):
        self.folder = folder
        self.fields = {n: a.astype(a.dtype.newbyteorder("=")) for n, a in fields.items()}
        fields = self.fields
        self.samples = len(next(iter(fields.values())))
        self.digits = max(6, len(str(self.samples - 1)))
        self.derived = {}
        image, label = fields.get("image"), fields.get("label")
        if image is not None and image.dtype == np.uint8:
            self.derived["image01"] = lambda i: image[i].astype(np.float32) / np.float32(255)
        if label is not None and is_integers(label) and len(label) and label.min() >= 0:
            width = classes or int(label.max()) + 1
            if width <= 65536:
                self.derived["label1h"] = lambda i: one_hot(label[i], width)

    def key(self, sample):
        return f"{sample:0{self.digits}d}"

    def pictures(self):
        return [n for n, a in self.fields.items()
                if a.dtype == np.uint8 and a.ndim == 3 and a.shape[1] * a.shape[2]]

    def encodings(self):
        return ["raw", "npy", "npz", "tar", "idx"] + (["png", "pgm"] if self.pictures() else [])

    def suffixes(self, enc, batch):
        if enc in ("npz", "tar"):
            return [f".{enc}"]
        if enc in ("png", "pgm"):
            return sorted([f".{n}.{enc}" for n in self.pictures()] +
                          [f".{n}.cls" for n, a in self.fields.items() if is_integers(a)])
        names = list(self.fields)
        if enc == "npy":
            names += list(self.derived) + (["index"] if batch else [])
        return sorted(f".{n}.{enc}" for n in names)


def is_integers(array):
    return array.ndim == 1 and array.dtype.kind in "iu"


def one_hot(labels, width):
    labels = np.asarray(labels)
    out = np.zeros(labels.shape + (width,), np.float32)
    np.put_along_axis(out, labels[..., None].astype(np.int64), 1, -1)
    return out


def same_array(got, want, what):
    """Equal to the last bit: -0 is not 0, a nan keeps its payload."""
    want = np.asarray(want)
    equal((got.dtype.newbyteorder("="), got.shape), (want.dtype, want.shape), what)
    equal(np.ascontiguousarray(got).astype(want.dtype, copy=False).tobytes(), want.tobytes(), what)


def check_npy(data, want, what):
    want = np.asarray(want)
    got = np.load(io.BytesIO(data))
    same_array(got, want, what)
    equal(got.dtype.byteorder in "=|<", True, f"{what}: little-endian")
    if NUMPY_PADS:
        equal(data, npy_bytes(np.ascontiguousarray(want) if want.ndim else want), what)


def check_npz(path, data, ds, index, single):
    want = {name: array[index] for name, array in ds.fields.items()}
    if not single:
        want["index"] = np.array(index, np.int64)
        want["key"] = np.array([ds.key(i).encode() for i in index], f"S{ds.digits}")
    with np.load(path) as z:
        equal(sorted(z.files), sorted(want), path)
        for name in z.files:
            same_array(z[name], want[name], f"{path}: {name}")
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        equal(z.testzip(), None, path)
        equal({i.compress_type for i in z.infolist()}, {zipfile.ZIP_STORED}, path)


def webdataset(data):
    """Samples of a tar as WebDataset reads them: a stream, keys up to the first dot."""
    current, key = None, None
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as tar:
        for member in tar:
            equal(member.isreg(), True, member.name)
            base, _, extension = member.name.partition(".")
            if base != key:
                if current:
                    yield key, current
                key, current = base, {}
            equal(extension in current, False, f"{member.name} twice")
            current[extension.lower()] = tar.extractfile(member).read()
    if current:
        yield key, current


def check_tar(path, data, ds, index):
    got = list(webdataset(data))
    equal([key for key, _ in got], [ds.key(i) for i in index], path)
    for (_, members), i in zip(got, index):
        want = {f"{n}.{'cls' if is_integers(a) else 'npy'}" for n, a in ds.fields.items()}
        equal(set(members), want, path)
        for name, array in ds.fields.items():
            if is_integers(array):
                equal(int(members[f"{name}.cls"]), int(array[i]), path)
            else:
                check_npy(members[f"{name}.npy"], array[i], f"{path}: {name}")
    equal(len(data) % 512, 0, path)
    equal(data[-1024:], bytes(1024), path)


def sheet(images, single):
    if single:
        return images
    n, height, width = images.shape
    columns = max(math.isqrt(n - 1) + 1 if n else 1, 1)
    rows = max(-(-n // columns), 1)
    out = np.zeros((rows * height, columns * width), np.uint8)
    for i, image in enumerate(images):
        y, x = divmod(i, columns)
        out[y * height:(y + 1) * height, x * width:(x + 1) * width] = image
    return out


def check_file(ds, path, enc, suffix, index, single):
    """Compare one file of samples index (a list; of one if single) with its expected content."""
    data = content(path)
    equal(len(data), os.stat(path).st_size, f"{path}: size")
    at = index[0] if single else index
    field = suffix.split(".")[1]
    if enc == "npz":
        check_npz(path, data, ds, at, single)
    elif enc == "tar":
        check_tar(path, data, ds, index)
    elif suffix.endswith(".cls"):
        want = [int(ds.fields[field][i]) for i in index]
        equal([int(data)] if single else [int(line) for line in data.splitlines()], want, path)
        equal(data.endswith(b"\n") or single or not index, True, path)
    elif enc in ("png", "pgm"):
        from PIL import Image  # only what shows pictures needs it
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            equal((image.mode, image.format), ("L", {"png": "PNG", "pgm": "PPM"}[enc]), path)
            same_array(np.asarray(image), sheet(ds.fields[field][at], single), path)
    elif enc == "npy" and field in ds.derived:
        check_npy(data, ds.derived[field](at), path)
    elif enc == "npy" and field == "index":
        check_npy(data, np.array(index, np.int64), path)
    elif enc == "npy":
        check_npy(data, ds.fields[field][at], path)
    elif enc == "idx":
        want = ds.fields[field][index]
        equal(data, idx_bytes(want), path)
        got = idx_parse(data)
        if not isinstance(got, tuple):
            same_array(got, want, path)
    elif enc == "raw":
        dtype = os.getxattr(path, "user.epochfs.dtype").decode()
        shape = ast.literal_eval(os.getxattr(path, "user.epochfs.shape").decode())
        want = np.asarray(ds.fields[field][at])
        equal(shape, want.shape, path)
        got = np.frombuffer(data, dtype)
        same_array(got.reshape(shape) if len(shape) <= 32 else got,
                   want if len(shape) <= 32 else want.ravel(), path)
        equal(data, want.astype(want.dtype.newbyteorder(">")).tobytes(), path)
    else:
        raise AssertionError(f"{path}: not a file that the model knows")


def check_sample(ds, sample, encodings=None):
    for enc in encodings or ds.encodings():
        for suffix in ds.suffixes(enc, False):
            file = f"{ds.folder}/samples/{enc}/{ds.key(sample)}{suffix}"
            check_file(ds, file, enc, suffix, [sample], True)


def check_batch(ds, folder, number, index, encodings=None):
    """folder: that of the plan or epoch."""
    for enc in encodings or ds.encodings():
        for suffix in ds.suffixes(enc, True):
            check_file(ds, f"{folder}/{enc}/{number:06d}{suffix}", enc, suffix, index, False)
