#!/usr/bin/python3
"""Files of each format, by a writer that is not ours, read back by the library: tests/histories formats, and
tests/mount/library/case-formats.py.

A writer makes a source of random shapes, types, options and names, and says what its samples are. They are read in the stored
order and in a shuffled one, as batches and one by one, and compared in value, shape and type.
"""

import bz2
import csv
import gzip
import io
import json
import os
import shutil
import struct
import sys
import tarfile
import tempfile
import warnings
import zipfile

import hypothesis
import hypothesis.configuration
import numpy as np
from hypothesis import strategies as st

from lib import PRIVATE
from page_blocks import ROOT

hypothesis.configuration.set_hypothesis_home_dir(f"{PRIVATE}/hypothesis")
sys.path.insert(0, f"{ROOT}/python")
import epochfs  # noqa: E402
import mds_model  # noqa: E402
import mindrecord_model  # noqa: E402
import parquet_model as pq  # noqa: E402
from tfrecord_model import frame  # noqa: E402

NUMBERS = ("u1", "i1", "<u2", "<i2", ">i2", "<u4", "<i4", ">u4", "<i8", ">i8", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8")
NAMES = ("x", "a b", "x.y", "-x", "ünï", "x,y", "100%", "a=b+c", "x'y", "_", "X", "épochs")
WRITERS = {}


def writer(function):
    """function(draw, rng): the files of a source, what its samples are, and options. A field has a list of arrays, one for each
    sample; a text is bytes, and a null None; of sparse rows each is a tuple of columns and values."""
    WRITERS[function.__name__] = function
    return function


def some(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)


def count(draw):
    return draw(st.sampled_from((1, 2, 3, 7, 20)))


def shape_of(draw, most=3):
    return tuple(draw(st.lists(st.integers(1, 4), max_size=most)))


def native(array):
    return list(array.astype(array.dtype.newbyteorder("=")))


def named(want):
    """An array that is alone has no name."""
    return want if len(want) > 1 else {"data": next(iter(want.values()))}


def npy_bytes(draw, array):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array, order=draw(st.sampled_from("CF"))),
                              version=draw(st.sampled_from((None, (1, 0), (2, 0), (3, 0)))))
    return out.getvalue()


@writer
def npy(draw, rng):
    array = some(rng, draw(st.sampled_from(NUMBERS)), (count(draw), *shape_of(draw)))
    return {f"{draw(st.sampled_from(NAMES))}.npy": npy_bytes(draw, array)}, {"data": native(array)}, {}


@writer
def npz(draw, rng):
    n, out = count(draw), io.BytesIO()
    arrays = {name: some(rng, draw(st.sampled_from(NUMBERS)), (n, *shape_of(draw)))
              for name in draw(st.lists(st.sampled_from(("a", "b", "image", "weights", "Z")), min_size=1, unique=True))}
    (np.savez_compressed if draw(st.booleans()) else np.savez)(out, **arrays)
    return {f"{draw(st.sampled_from(NAMES))}.npz": out.getvalue()}, named({name: native(a) for name, a in arrays.items()}), {}


@writer
def safetensors(draw, rng):
    n, types = count(draw), {"F32": "<f4", "F64": "<f8", "I64": "<i8", "U8": "u1", "I16": "<i2", "F16": "<f2"}
    head, body, want = {}, b"", {}
    for name in draw(st.lists(st.sampled_from(("a", "b", "layer.weight", "q")), min_size=1, unique=True)):
        word = draw(st.sampled_from(sorted(types)))
        array = some(rng, types[word], (n, *shape_of(draw)))
        head[name] = {"dtype": word, "shape": list(array.shape), "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
        want[name] = native(array)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return {"t.safetensors": struct.pack("<Q", len(text)) + text + body}, named(want), {}


@writer
def idx(draw, rng):
    codes = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    code = draw(st.sampled_from(sorted(codes)))
    array = some(rng, codes[code], (count(draw), *(draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 3))))))
    data = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape) + array.tobytes()
    packed = draw(st.booleans())
    return {"train-images-idx-ubyte" + ".gz" * packed: gzip.compress(data) if packed else data}, {"image": native(array)}, {}


@writer
def cifar(draw, rng):
    n = count(draw)
    labels, pixels = rng.integers(0, 10, (n, 1), np.uint8), rng.integers(0, 256, (n, 3, 32, 32), np.uint8)
    data = np.concatenate([labels, pixels.reshape(n, -1)], 1).tobytes()
    return {"data_batch_1.bin": data}, {"image": list(pixels.transpose(0, 2, 3, 1)), "label": list(labels[:, 0])}, {}


@writer
def csv_table(draw, rng):
    n, width, delimiter = count(draw) + 1, draw(st.integers(1, 5)), draw(st.sampled_from((",", ";", "\t")))
    cells = np.round(rng.normal(size=(n, width)) * draw(st.sampled_from((1, 1000))), 4).astype(np.float32)
    labels, out = rng.integers(0, 4, n), io.StringIO()
    table = csv.writer(out, delimiter=delimiter, lineterminator=draw(st.sampled_from(("\n", "\r\n"))),
                       quoting=draw(st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))))
    table.writerow([*(f"c {i}{delimiter if i == 1 else ''}" for i in range(width)), "label"])
    table.writerows([*map(repr, map(float, row)), int(label)] for row, label in zip(cells, labels))
    return {"t.tsv" if delimiter == "\t" else "t.csv": out.getvalue().encode()}, {"x": list(cells), "label": list(labels.astype(np.float32))}, {}


JSON = st.recursive(st.none() | st.booleans() | st.integers(-1 << 53, 1 << 53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6)


@writer
def jsonl(draw, rng):
    lines = [json.dumps(draw(st.dictionaries(st.sampled_from(("a", "text", "ü")), JSON, min_size=1)), ensure_ascii=draw(st.booleans())).encode()
             for _ in range(count(draw))]
    return {"t.jsonl": b"\n".join(lines) + b"\n" * draw(st.booleans())}, {"json": [np.frombuffer(line, np.uint8) for line in lines]}, {}


def texts(draw, rng, n):
    return [rng.bytes(draw(st.sampled_from((0, 1, 13, 511, 512, 513)))) for _ in range(n)]


@writer
def tar(draw, rng):
    n, out = count(draw), io.BytesIO()
    bodies, classes, arrays = texts(draw, rng, n), rng.integers(-5, 1000, n), some(rng, draw(st.sampled_from(NUMBERS)), (n, *shape_of(draw)))
    deep = draw(st.sampled_from(("", "d/", "é/" * 40)))
    with tarfile.open(fileobj=out, mode="w", format=draw(st.sampled_from((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)))) as archive:
        for i in range(n):
            for ext, data in (("bin", bodies[i]), ("cls", b"%d" % classes[i]), ("npy", npy_bytes(draw, arrays[i]))):
                member = tarfile.TarInfo(f"{deep}{i:04d}.{ext}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return {"s.tar": out.getvalue()}, {"bin": [np.frombuffer(b, np.uint8) for b in bodies], "cls": list(classes), "npy": native(arrays)}, {}


@writer
def zip_archive(draw, rng):
    files, out, names = {}, io.BytesIO(), sorted(draw(st.sets(st.sampled_from(("cat", "dog", "ünï", "a b")), min_size=2)))
    for name in names:
        for i, data in enumerate(texts(draw, rng, draw(st.integers(1, 4)))):
            files[f"{name}/{i}.txt"] = bytes(97 + b % 26 for b in data)
    with zipfile.ZipFile(out, "w", draw(st.sampled_from((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    ordered = sorted(files, key=os.fsencode)
    classes = sorted(names, key=os.fsencode)
    return ({"z.zip": out.getvalue()}, {"txt": [np.frombuffer(files[name], np.uint8) for name in ordered],
                                        "label": [np.int64(classes.index(name.split("/")[0])) for name in ordered]}, {})


@writer
def pictures(draw, rng):
    from PIL import Image
    n, height, width, grey = count(draw), draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.booleans())
    files, want = {}, {"image": [], "label": []}
    for i in range(n):
        pixels, out = rng.integers(0, 256, (height, width) if grey else (height, width, 3), np.uint8), io.BytesIO()
        Image.fromarray(pixels).save(out, "png", optimize=draw(st.booleans()))
        label = i * 2 // max(n, 2)
        files[f"{'ab'[label]}/{i:03d}.png"] = out.getvalue()
        want["image"].append(np.repeat(pixels[..., None], 3, 2) if grey else pixels)
        want["label"].append(np.int64(label))
    hypothesis.assume(n > 1)
    return files, want, {"image_size": f"{height}x{width}"}


@writer
def sounds(draw, rng):
    import soundfile
    rate, channels, files, want = draw(st.sampled_from((8000, 16000))), draw(st.integers(1, 2)), {}, {"audio": []}
    form = draw(st.sampled_from(("WAV", "FLAC")))
    for i in range(max(count(draw), 2)):
        samples, out = rng.integers(-30000, 30000, (draw(st.integers(1, 300)), channels)).astype(np.int16), io.BytesIO()
        soundfile.write(out, samples, rate, format=form, subtype="PCM_16")
        files[f"{'ab'[i % 2]}/{i:03d}.{form.lower()}"] = out.getvalue()
    for name in sorted(files):
        back, _ = soundfile.read(io.BytesIO(files[name]), dtype="float32", always_2d=True)
        want["audio"].append(back[:, 0] if channels == 1 else ((back[:, 0] + back[:, 1]) / np.float32(2)).astype(np.float32))
    return files, want, {"audio": f"{rate}:mono"}


@writer
def tfrecord(draw, rng):
    records = texts(draw, rng, count(draw))
    return {"t.tfrecord": b"".join(map(frame, records))}, {"record": [np.frombuffer(r, np.uint8) for r in records]}, {}


@writer
def recordio(draw, rng):
    records = [r + struct.pack("<I", 0xced7230a) * draw(st.integers(0, 1)) for r in texts(draw, rng, count(draw))]
    data, magic = b"", struct.pack("<I", 0xced7230a)
    for body in records:  # a record that has the magic number at a multiple of 4 is cut there
        cuts = [at for at in range(0, len(body) - 3, 4) if body[at:at + 4] == magic]
        parts = [body[a:b] for a, b in zip([0, *(at + 4 for at in cuts)], [*cuts, len(body)])]
        for i, part in enumerate(parts):
            kind = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
            data += magic + struct.pack("<I", kind << 29 | len(part)) + part + bytes(-len(part) % 4)
    return {"t.rec": data}, {"record": [np.frombuffer(r, np.uint8) for r in records]}, {}


@writer
def tokens(draw, rng):
    dtype, window = draw(st.sampled_from(("u2", "u4"))), draw(st.integers(1, 9))
    n = draw(st.integers(window + 1, 200))
    stream = rng.integers(0, 60000, n).astype("<" + dtype)
    return ({"train.bin": stream.tobytes()}, {"tokens": [stream[i:i + window + 1] for i in range(0, n - window, window)]},
            {"token_dtype": {"u2": "uint16", "u4": "uint32"}[dtype], "seq_len": window})


@writer
def kaldi(draw, rng):
    n, dtype, width = count(draw), draw(st.sampled_from(("<f4", "<f8"))), draw(st.integers(1, 5))
    arrays = [some(rng, dtype, (draw(st.integers(1, 6)), width)) for _ in range(n)]
    data = b"".join(b"utt-%03d \0B%cM \4%s\4%s" % (i, b"FD"[dtype == "<f8"], struct.pack("<i", len(a)), struct.pack("<i", width)) + a.tobytes()
                    for i, a in enumerate(arrays))
    return {"f.ark": data}, {"data": arrays}, {}


WORDS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=8).map(str.encode)


def pick(rng, values):
    return values[rng.integers(len(values))]


def fields_of(rng, kinds):
    """Names of fields in the order of their bytes, and the kind of each. By rng, for Hypothesis prefers few and like ones."""
    names = rng.permutation(NAMES)[:rng.integers(1, 7)]
    return {name: pick(rng, kinds) for name in sorted(map(str, names), key=str.encode)}


def shown(want):
    """With the names of fields that the mount has."""
    return {name.replace("%", "%25"): values for name, values in want.items()}


def letters(rng, size):
    """Bytes that begin like no picture."""
    return rng.integers(97, 123, size, np.uint8)


@writer
def mds(draw, rng):
    n = pick(rng, (1, 2, 3, 7, 20))
    names, encodings, sizes, columns, want = [], [], [], [], {}
    for name, kind in fields_of(rng, ("int", "number", "str", "bytes", "ndarray", "ndarray:type", "ndarray:type:shape", "pil")).items():
        dtype, shape, grey, size = np.dtype(pick(rng, list(mds_model.ARRAYS))), tuple(rng.integers(1, 5, rng.integers(1, 4))), rng.random() < 0.5, None
        if kind == "str":
            values = stored = [draw(WORDS) for _ in range(n)]
        elif kind == "bytes":
            values = [letters(rng, rng.integers(0, 10)) for _ in range(n)]
            stored = [v.tobytes() for v in values]
        elif kind == "pil":
            values = [rng.integers(0, 256, (*rng.integers(1, 5, 2), 3)[:3 - grey], np.uint8) for _ in range(n)]
            stored = [mds_model.pil(v) for v in values]
        elif kind in ("ndarray", "ndarray:type"):
            width = int(rng.integers(0, 4))
            values = [some(rng, dtype, tuple(rng.integers(1, 4, len(shape))) if grey else shape) for _ in range(n)]
            stored = [mds_model.array(v, width, kind == "ndarray") for v in values]
            kind = kind.replace("type", dtype.name)
        else:
            dtype, shape = np.dtype("i8") if kind == "int" else dtype, shape if ":" in kind else ()
            values = list(some(rng, dtype, (n, *shape)))
            stored, size = [v.tobytes() for v in values], len(values[0].tobytes())
            kind = {"int": "int", "number": dtype.name}.get(kind, f"ndarray:{dtype.name}:{','.join(map(str, shape))}")
        names, encodings, sizes, columns = [*names, name], [*encodings, kind], [*sizes, size], [*columns, stored]
        want[name] = values
    rows, cut, files, entries = [mds_model.sample(sizes, row) for row in zip(*columns)], int(rng.integers(0, n + 1)), {}, []
    for i, part in enumerate(p for p in (rows[:cut], rows[cut:]) if p):
        raw, name, packing = mds_model.shard(part), f"shard.{i:05d}.mds", draw(st.sampled_from((None, "gz", "bz2")))
        packed = packing and {"gz": gzip, "bz2": bz2}[packing].compress(raw)
        files[f"{name}.{packing}" if packed else name] = packed or raw
        entries.append(mds_model.entry((names, encodings, sizes), name, raw, len(part), packed, packing))
    return {"index.json": mds_model.index(*entries), **files}, shown(want), {}


@writer
def mindrecord(draw, rng):
    n, schema, want = pick(rng, (1, 2, 3, 7, 20)), {}, {}
    for name, kind in fields_of(rng, ("bytes", "string", *mindrecord_model.DTYPES)).items():
        schema[name], shape = {"type": kind}, pick(rng, ((), (2,), (-1,), (2, 3), (-1, 2), (2, -1)))
        if kind == "string":
            want[name] = [draw(WORDS) for _ in range(n)]
        elif kind == "bytes":
            want[name] = [letters(rng, rng.integers(0, 301)) for _ in range(n)]
        else:
            want[name] = [some(rng, mindrecord_model.DTYPES[kind], [int(rng.integers(0, 4)) if s < 0 else s for s in shape]) for _ in range(n)]
            schema[name].update({"shape": list(shape)} if shape else {})
    rows = [{name: value.tobytes() if schema[name]["type"] == "bytes" else value if isinstance(value, bytes) or value.ndim else value.item()
             for name, value in zip(want, row)} for row in zip(*want.values())]
    return {"x.mindrecord": mindrecord_model.make(
        schema, rows, version=draw(st.sampled_from(("2.0", "3.0"))), header_size=draw(st.sampled_from((16384, 65536))),
        page_size=draw(st.sampled_from((32768, 65536))), rows_of_page=draw(st.sampled_from((None, 1, 3))))}, shown(want), {}


PARQUET = {"bool": (pq.BOOLEAN, {}), "float32": (pq.FLOAT, {}), "float64": (pq.DOUBLE, {}), "int32": (pq.INT32, {}), "int64": (pq.INT64, {}),
           **{f"{sign}int{8 << i}": (pq.INT64 if i == 3 else pq.INT32, {"converted": first + i})
              for sign, first in (("u", 11), ("", 15)) for i in range(4)}}


@writer
def parquet(draw, rng):
    n, nodes, want, columns = pick(rng, (1, 2, 3, 7, 20)), [], {}, {}
    for name, kind in fields_of(rng, ("text", "bytes", "fixed", "list", *PARQUET)).items():
        is_optional = rng.random() < 0.5
        nulls = rng.random(n) < pick(rng, (0, 0.3, 0.3, 1)) if is_optional else np.zeros(n, bool)
        dtype = pick(rng, list(PARQUET)) if kind == "list" else kind
        physical, options = PARQUET.get(dtype, (pq.BYTES, {"converted": 0} if kind == "text" else {}))

        def numbers(shape):
            return rng.integers(0, 2, shape).astype(bool) if dtype == "bool" else some(rng, dtype, shape)

        if kind in ("text", "bytes"):
            values = [draw(WORDS) if kind == "text" else letters(rng, rng.integers(0, 10)) for _ in range(n)]
            stored = [bytes(v) for v in values]
        elif kind == "fixed":
            physical, options = pq.FIXED, {"length": int(rng.integers(1, 10))}
            values = list(rng.integers(0, 256, (n, options["length"]), np.uint8))
            stored = [v.tobytes() for v in values]
        elif kind == "list":
            values = [numbers(int(rng.integers(0, 5))) for _ in range(n)]
            stored = [{"list": [{"element": signed(v, physical)} for v in value]} for value in values]
            physical, options = [("list", "repeated", [("element", "required", physical, options)])], {"converted": 3}
        else:
            values = list(numbers(n))
            stored = [signed(v, physical) for v in values]
        nodes.append((name, "optional" if is_optional else "required", physical, options))
        columns[name] = [None if is_null else value for value, is_null in zip(stored, nulls)]
        absent = np.dtype(dtype).type(np.nan) if kind.startswith("float") else None
        want[name] = [absent if is_null else value for value, is_null in zip(values, nulls)]
    cut = int(rng.integers(0, n + 1))
    return {"x.parquet": pq.make(
        nodes, [dict(zip(columns, row)) for row in zip(*columns.values())], groups=[cut, n - cut], codec=draw(st.sampled_from((0, 1, 2))),
        v2=draw(st.booleans()), page_rows=draw(st.integers(1, 9)), dictionary=draw(st.booleans()), crc=draw(st.booleans()),
        nulls=draw(st.booleans()))}, shown(want), {}


def signed(value, physical):
    """What a column of that type stores of a number."""
    bits = {pq.INT32: 32, pq.INT64: 64}.get(physical, 0)
    return value.item() if not bits else (value.item() + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


# Large libraries come last: a load starts a child, which takes as long as this process is large.

def sparse(draw, rng):
    import scipy.sparse
    n, width = count(draw), draw(st.integers(1, 40))
    matrix = scipy.sparse.random(n, width, draw(st.sampled_from((0.1, 0.5, 1.0))), "csr", np.float32, random_state=int(rng.integers(1 << 30)))
    matrix.sort_indices()
    return matrix, np.round(rng.normal(size=n), 3).astype(np.float32)


def rows_of(matrix):
    return [(matrix.indices[a:b].astype(np.int64), matrix.data[a:b].astype(np.float32)) for a, b in zip(matrix.indptr, matrix.indptr[1:])]


@writer
def svmlight(draw, rng):
    from sklearn.datasets import dump_svmlight_file
    matrix, labels = sparse(draw, rng)
    out, zero, queries = io.BytesIO(), draw(st.booleans()), draw(st.booleans())
    qid = np.sort(rng.integers(0, 5, len(labels)))
    dump_svmlight_file(matrix, labels, out, zero_based=zero, query_id=qid if queries else None,
                       comment=draw(st.sampled_from((None, "a comment\nof two lines"))))
    want = {"x": rows_of(matrix), "label": list(labels)}
    if queries:
        want["qid"] = list(qid)
    return {f"{draw(st.sampled_from(NAMES))}.svm": out.getvalue()}, want, {"index_base": "asis" if zero else 1}


@writer
def libfm(draw, rng):
    matrix, labels = sparse(draw, rng)
    rows = rows_of(matrix)
    lines = [" ".join([repr(float(label)), *(f"{c % 3}:{c}:{float(v)!r}" for c, v in zip(*row))]) for label, row in zip(labels, rows)]
    hypothesis.assume(all(len(row[0]) for row in rows))
    return {"t.libfm": "".join(line + "\n" for line in lines).encode()}, {"x": rows, "label": list(labels)}, {"format": "libfm"}


@writer
def dmatrix(draw, rng):
    import xgboost
    matrix, labels = sparse(draw, rng)
    with tempfile.NamedTemporaryFile(suffix=".buffer") as file:
        xgboost.DMatrix(matrix, label=labels).save_binary(file.name, silent=True)
        data = file.read()
    return {"train.buffer": data}, {"x": rows_of(matrix), "label": list(labels)}, {}


# ---- reading ----

def samples_of(arrays, name, is_batch):
    """The samples of a field of a batch, or of one sample."""
    if name == "x" and "indptr" in arrays:
        return [(arrays["indices"][a:b].astype(np.int64), arrays["data"][a:b]) for a, b in zip(arrays["indptr"], arrays["indptr"][1:])]
    array, offsets, shapes = arrays[name], arrays.get(f"{name}_offsets"), arrays.get(f"{name}_shape")
    if not is_batch:
        return [array]
    parts = list(array) if offsets is None else [array[a:b] for a, b in zip(offsets, offsets[1:])]
    return parts if shapes is None else [part.reshape(shape) for part, shape in zip(parts, shapes)]


def same(found, want, what):
    if want is None:
        assert not np.size(found) or found == b"", f"{what}: expected a null, got {found}"
        return
    if isinstance(want, bytes):
        assert np.asarray(found).item() == want, f"{what}: expected {want}, got {found}"
        return
    if isinstance(want, tuple):
        assert isinstance(found, tuple) and all(np.array_equal(f, w) for f, w in zip(found, want)), f"{what}: expected {want}, got {found}"
        return
    want, found = np.asarray(want), np.asarray(found)
    assert found.shape == want.shape, f"{what}: expected the shape {want.shape}, got {found.shape}"
    assert found.dtype == want.dtype, f"{what}: expected {want.dtype}, got {found.dtype}"
    assert found.tobytes() == want.tobytes(), f"{what}: expected {want!r:.300}, got {found!r:.300}"


def check(data, want, size):
    assert len(list(data)) == 1, f"datasets: {list(data)}"
    dataset, n = data[next(iter(data))], len(next(iter(want.values())))
    assert len(dataset) == n, f"expected {n} samples, got {len(dataset)}"
    for plan in (f"batch={size}", f"batch={size},seed=3"):
        seen = []
        for arrays in dataset.batches(plan):
            index = arrays["index"].tolist()
            for name, values in want.items():
                found = samples_of(arrays, name, True)
                assert len(found) == len(index), f"{name} of {plan}: {len(found)} of {len(index)}"
                has_nulls = any(v is None for v in values)
                for i, value in zip(index, found):
                    if has_nulls and np.ndim(values[i]) == 0 and np.shape(value) == (1,):
                        value = value[0]  # numbers with nulls are ragged
                    same(value, values[i], f"{name} of sample {i} of {plan}")
            seen += index
        assert sorted(seen) == list(range(n)) and ("seed" in plan or seen == list(range(n))), f"order of {plan}: {seen}"
    for i in {0, n - 1}:
        arrays = dataset[i]
        for name, values in want.items():
            if values[i] is None:
                assert name not in arrays, f"{name} of sample {i} alone: expected a null, got {arrays[name]}"
            else:
                same(samples_of(arrays, name, False)[0], values[i], f"{name} of sample {i} alone")


def check_one(function, data):
    draw = data.draw
    files, want, options = function(draw, np.random.default_rng(draw(st.integers(0, 1 << 32))))
    source, size = tempfile.mkdtemp(dir=PRIVATE), draw(st.integers(1, 5))
    try:
        for name, body in files.items():
            path = os.path.join(source, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(body)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with epochfs.load(source, cache_dir=f"{source}.cache", **options) as loaded:
                check(loaded, want, size)
    except Exception:
        print(f"{function.__name__}, {options}, {({name: body[:500] for name, body in files.items()})}", flush=True)
        raise
    finally:
        shutil.rmtree(source)
        shutil.rmtree(f"{source}.cache", ignore_errors=True)


def test_of(function, examples, seed):
    def test(data):
        check_one(function, data)

    test = hypothesis.settings(max_examples=examples, deadline=None, database=None, derandomize=seed is None,
                               suppress_health_check=list(hypothesis.HealthCheck))(hypothesis.given(st.data())(test))
    return test if seed is None else hypothesis.seed(seed)(test)


def main(examples, seed=None):
    for name, function in WRITERS.items():
        print(name, flush=True)
        test_of(function, examples, seed)()
    print(f"{len(WRITERS)} formats, {examples} examples of each")


if __name__ == "__main__":
    main(int(os.environ["HISTORIES"]), int(os.environ["HISTORIES_SEED"]))
