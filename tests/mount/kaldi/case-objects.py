#!/usr/bin/python3
# slow: every object, against a model in Python
"""Every object that Kaldi tables hold, binary, text, both in one archive, packed with gzip: files
of samples and of batches, padded and ragged, against the tests' own model of the format. And the
files that Kaldi itself wrote, if SHARED_DATA is set: compressed matrices to the last bit."""

import glob
import gzip
import json
import os
import re
import shutil
import subprocess

import numpy as np

import kaldi_model
from kaldi_model import Table, check_table, letters, random_compressed, write, write_ark
from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, log_text, mounted, path,
                 run, text, write as write_file)

rng = np.random.default_rng(2024)
SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "kaldi")
REAL = ("matrix", "vector", "packed", "float", "double", "float-pairs", "posterior",
        "gauss-posterior")


def fresh(files):
    shutil.rmtree(SOURCE)
    for name, data in files.items():
        write_file(name, data)
    return files


# ---- values ----

def numbers(*shape, special=True):
    out = rng.normal(scale=10, size=shape).astype(np.float32)
    flat = out.reshape(-1)
    if special and flat.size > 5:
        flat[:5] = [-0.0, 1e-40, 3.4e38, np.inf, np.nan]
    return out


def whole(n, least=1, most=200):
    return rng.integers(least, most, n).astype(np.int32)


def value_of(type, n):
    """The n-th of some values of a type; lengths differ, some are 0."""
    size = [4, 1, 0, 9, 2, 30, 3][n % 7]
    if type == "matrix":
        return numbers(size, 5 if size else 0)
    if type == "vector":
        return numbers(size)
    if type == "packed":
        return numbers(size * (size + 1) // 2)
    if type == "int":
        return np.int32([5, 1, 2000, 0, 77, 123456, 8][n % 7])
    if type == "float":
        return np.float32([1.5, -0.1, 0, 3e38, 1e-40, -0.0, np.pi][n % 7])
    if type == "double":
        return np.float64([np.pi, -0.1, 0, 1e300, 1e-310, -0.0, 0.5][n % 7])
    if type == "bool":
        return np.bool_(n % 3 == 0)
    if type == "int-vector":
        return np.concatenate([whole(size), np.array([-5, 2000000000][:size], np.int32)])
    if type == "int-vectors":
        return [whole(k) for k in [3, 0, 1, 5][:size]]
    if type == "int-pairs":
        return whole(2 * size).reshape(-1, 2)
    if type == "float-pairs":
        return numbers(size, 2, special=False)
    if type == "posterior":
        return [(whole(k), numbers(k, special=False)) for k in [2, 0, 1, 4, 1][:size]]
    if type == "gauss-posterior":
        return [[(int(i), numbers(2 + i % 3, special=False)) for i in whole(k)]
                for k in [2, 0, 1][:size]]
    if type == "token":
        return [b"spk1", b"[", b"1.5", "größe".encode(), b"T", b"x;y", b"0"][n % 7]
    if type == "tokens":
        return [b"one two", b"", b"a  b\tc", "ein Füllwort".encode(), b"x", b"[ 1 2 ]",
                b"1 2 3"][n % 7]
    if type == "wave":
        channels = 2 if n % 2 else 1
        return 8000 + n, rng.integers(-32768, 32768, (3 * size + 1, channels)).astype(np.int16)
    raise AssertionError(type)


def values_of(type, n=7):
    return [(b"utt-%d.%s" % (i, b"x" * (i % 3)), value_of(type, i)) for i in range(n)]


def archive(type, values, stores):
    """An archive of objects in the given stores, in turn. Also checks that the model reads what it
    wrote."""
    entries = [(key, write(type, value, stores[i % len(stores)]))
               for i, (key, value) in enumerate(values)]
    data = write_ark(entries)
    objects, broken = kaldi_model.read_ark(data, type)
    equal(broken and broken.args, None, f"the model reads {type} {stores}")
    equal([o.key for o in objects], [key for key, _ in values], "keys that the model reads")
    for i, (o, (key, value)) in enumerate(zip(objects, values)):
        if "text" not in stores and isinstance(value, np.ndarray):
            equal(o.value.shape, value.shape, f"{key} of {type}")
            equal(np.array_equal(np.asarray(o.value, np.float64), np.asarray(value, np.float64),
                                 equal_nan=True), True, f"{key} of {type} {stores}")
    return data


# ---- possible readings of an archive ----

def sane(key):
    return re.fullmatch(rb"[^\0-\x20\x7f]+", key) is not None


def readings(data):
    found = set()
    for type in kaldi_model.TYPES:
        if type in kaldi_model.TEXT_ONLY:
            continue
        objects, broken = kaldi_model.read_ark(data, type)
        if not broken and all(sane(o.key) for o in objects):
            found.add(type)
    return found


def check_page(name, table):
    page = json.loads(text(path(name, "dataset.json")))
    equal((page["dataset"], page["format"], page["samples"]),
          (os.path.basename(name), "kaldi", len(table)), f"{name}: dataset.json")
    if table.type not in kaldi_model.TEXT_ONLY:
        fields = {f["name"]: f["descr"] for f in page["fields"]}
        for field in table.names():
            want = table.array(0, field).dtype
            equal(np.dtype(fields.get(field, "V1")), want, f"{name}: type of {field}")
    equal(set(table.encodings()) <= set(page["encodings"]), True,
          f"{name}: expected encodings {table.encodings()}, got {page['encodings']}")


def check_source(files, tables, *options):
    """A source of these files; tables: name of the dataset -> Table."""
    fresh(files)
    with mounted(SOURCE, *options):
        equal(sorted(os.listdir(MOUNTPOINT)), sorted([*tables, "README.txt", ".epochfs"]),
              f"the top of the mount with {options}")
        for name, table in tables.items():
            if os.path.exists(path(name, "ERROR.txt")):
                raise AssertionError(f"{name}: expected a dataset, got ERROR.txt: "
                                     f"{text(path(name, 'ERROR.txt'))}")
            check_page(name, table)
            check_table(table, path(name), batch=3)
            packed = f"{name}.gz" in files
            data = gzip.decompress(files[f"{name}.gz"]) if packed else files[name]
            equal(content(path(name, "source", name)), data, f"{name}: source/")
    run("info", "--check", *[word for o in options for word in ("-o", o)], SOURCE)


# ---- objects that state their type, or that fit only one type ----

def sparse_values():
    out = []
    for key, rows in (("s0", 4), ("s1", 1), ("s2", 12)):
        a = numbers(rows, 5, special=False)
        a[rng.random(a.shape) < .6] = 0
        out.append((key.encode(), a))
    return out


def matrices():
    """Each store of a matrix, alone and together."""
    values = values_of("matrix")
    out = {"matrix.fm.ark": archive("matrix", values, ["FM"]),
           "matrix.dm.ark": archive("matrix", values, ["DM"]),
           "matrix.sm.ark": archive("matrix", sparse_values(), ["SM"]),
           "matrix.sm8.ark": archive("matrix", sparse_values(), ["SM8"]),
           "matrix.fm-dm.ark": archive("matrix", values, ["FM", "DM"])}
    together = [(key, write("matrix", value, "FM")) for key, value in values]
    for kind, name in (("CM", "cm"), ("CM2", "cm-two"), ("CM3", "cm-three")):
        shapes = [(7, 5), (1, 5), (300, 5), (8, 5), (2, 5)]
        objects = [(b"%s-%d" % (kind.encode(), i),
                    write("matrix", random_compressed(kind, *shape, rng)))
                   for i, shape in enumerate(shapes)]
        if kind == "CM":  # As Kaldi writes an empty one: 4 bytes too many.
            objects.insert(2, (b"CM-empty", b"\0BCM \x20\x91\x25\xaa" + bytes(16)))
        out[f"matrix.{name}.ark"] = write_ark(objects)
        together += objects
    together += [(key, write("matrix", value, "SM")) for key, value in sparse_values()]
    lines = numbers(3, 5, special=False)
    together += [(b"text", write("matrix", lines, "text")),
                 (b"sparse-text", write("sparse", sparse_values()[0][1], "text"))]
    out["matrix.all.ark"] = write_ark(together)
    out["matrix.all8.ark"] = write_ark(
        [(key, b) for key, b in together if b"text" not in key] +
        [(b"double", write("matrix", numbers(4, 5).astype(np.float64) / 3, "DM"))])
    return out


def check_self_describing():
    files = matrices()
    for type in ("vector", "packed"):
        for i, stores in enumerate((["binary"], ["binary8"], ["binary", "binary8"])):
            files[f"{type}.{letters(i)}.ark"] = archive(type, values_of(type), stores)
    rows = [(key, row) for key, a in sparse_values() for row in a[:3]]
    for i, stores in enumerate((["SV"], ["FV", "SV"], ["SV8", "SV"])):
        files[f"vector.sparse-{letters(i)}.ark"] = archive(
            "vector", [(b"%s-%d" % (key, n), row) for n, (key, row) in enumerate(rows)], stores)
    files["gauss-posterior.ark"] = archive("gauss-posterior", values_of("gauss-posterior"),
                                           ["binary"])
    files["wave.ark"] = archive("wave", values_of("wave"), ["RIFF", "RIFX"])
    files["mono.ark"] = archive("wave", [v for v in values_of("wave") if v[1][1].shape[1] == 1],
                                ["RIFF"])
    files["double.ark"] = archive("double", values_of("double"), ["binary"])
    for type in ("bool", "int-vector", "int-vectors", "int-pairs", "posterior", "int"):
        files[f"{type}.ark"] = data = archive(type, values_of(type), ["binary"])
        want = {"int": {"int", "float", "double"}, "int-pairs": {"int-pairs", "float-pairs"}}
        equal(readings(data), want.get(type, {type}), f"readings of {type}")
    for name in list(files)[::3]:
        files[f"packed-{name}.gz"] = gzip.compress(files[name])
    tables = {}
    for name, data in files.items():
        data = gzip.decompress(data) if name.endswith(".gz") else data
        name = name.removesuffix(".gz")
        tables[name] = Table(data, name.removeprefix("packed-").split(".")[0].replace(
            "mono", "wave"))
    check_source(files, tables)


def check_text():
    """The most specific type of text; and of a binary object followed by text."""
    files = {"double.ark": archive("double", values_of("double"), ["text"])}
    files["matrix.ark"] = archive("matrix", values_of("matrix"), ["text"])
    files["matrix.mixed.ark"] = archive("matrix", values_of("matrix"), ["FM", "text"])
    files["matrix.text-first.ark"] = archive("matrix", values_of("matrix"), ["text", "FM"])
    files["vector.text-first.ark"] = archive("vector", values_of("vector"), ["text", "FV"])
    files["matrix.sparse.ark"] = write_ark([(key, write("sparse", value, "text"))
                                            for key, value in sparse_values()])
    files["vector.ark"] = archive("vector", values_of("vector"), ["text"])
    files["vector.sparse.ark"] = write_ark(
        [(b"%d" % i + b"x", write("sparse-vector", row, "text"))
         for i, row in enumerate(sparse_values()[0][1])])
    files["vector.mixed.ark"] = archive("vector", values_of("vector"), ["FV", "text"])
    for type in ("bool", "int", "int-vector", "int-vectors", "int-pairs", "float-pairs",
                 "posterior", "gauss-posterior", "token", "tokens"):
        files[f"{type}.ark"] = archive(type, values_of(type), ["text"])
    check_source(files, {name: Table(data, name.split(".")[0]) for name, data in files.items()})


# ---- types that the user gives ----

def check_typed():
    for type in kaldi_model.TYPES:
        values = values_of(type)
        stores = {"binary": ["binary"], "text": ["text"], "mixed": ["binary", "text"]}
        if type in REAL and type != "double":
            stores.update({"eights": ["binary8"], "fours-and-eights": ["binary", "binary8"]})
        if type == "double":
            stores.update({"fours": ["binary4"], "fours-and-eights": ["binary4", "binary"]})
        if type == "wave":
            stores = {"binary": ["RIFF"], "mixed": ["RIFF", "RIFX"]}
        files = {f"{name}.ark": archive(type, values, s) for name, s in stores.items()}
        # Text right after its key, or after a tab; no white space at ends of lines.
        if type not in ("wave", "gauss-posterior"):
            files["bare.ark"] = b"".join(key + b"\t" + write(type, value, "text").strip(b" ")
                                         .replace(b" \n", b"\n") for key, value in values)
        files["packed.ark.gz"] = gzip.compress(files["mixed.ark"])
        tables = {name.removesuffix(".gz"):
                  Table(gzip.decompress(data) if name.endswith(".gz") else data, type)
                  for name, data in files.items()}
        for name, table in tables.items():
            equal((table.broken, len(table)), (None, len(values)), f"{type}/{name}: the model")
        check_source(files, tables, f"kaldi_type={type}")


def check_ambiguous():
    """Binary integers against floats, and zeros, which all types begin with."""
    zero = b"\0B" + kaldi_model.int32(0)
    files = {"float.ark": archive("float", [(b"a", 1.5), (b"b", -0.1)], ["binary"]),
             "float-pairs.ark": archive("float-pairs", [(b"a", numbers(3, 2, special=False))],
                                        ["binary"]),
             "zero.ark": write_ark([(b"a", zero), (b"b", zero)]),
             "large-int.ark": archive("int", [(b"a", 1069547520)], ["binary"]),
             # One denormal number among others does not make them integers.
             "denormals.ark": archive("float", [(b"a", 1.5), (b"b", 1e-40)], ["binary"]),
             "negative.ark": archive("float", [(b"a", -1e-40), (b"b", 0)], ["binary"]),
             "denormal-pairs.ark": archive("float-pairs",
                                           [(b"a", np.float32([[1.5, 1e-40]]))], ["binary"])}
    good = archive("matrix", values_of("matrix"), ["FM"])
    fresh({**files, "good.ark": good})
    with mounted():
        for name in files:
            equal(os.listdir(path(name)), ["ERROR.txt"], name)
            contains(text(path(name, "ERROR.txt")), name, "kaldi_type=")
        check_table(Table(good, "matrix"), path("good.ark"))
    for name, data in files.items():
        contains(run("mount", f"{SOURCE}/{name}", MOUNTPOINT, code=2), name, "kaldi_type=")
        types = ["int", "float"] if name in ("zero.ark", "large-int.ark") else \
            ["float"] if name in ("denormals.ark", "negative.ark") else \
            ["float-pairs"] if name == "denormal-pairs.ark" else [name.removesuffix(".ark")]
        types += ["int-vector", "posterior", "int-pairs"] if name == "zero.ark" else []
        for type in types:
            with mounted(f"{SOURCE}/{name}", f"kaldi_type={type}"):
                check_table(Table(data, type), path(name))
    for wrong in ("kaldi_type=matrices", "kaldi_type=", "kaldi_type"):
        contains(run("mount", "-o", wrong, f"{SOURCE}/good.ark", MOUNTPOINT, code=1), "kaldi_type")


def check_small():
    """Archives so small that their numbers could be a key: only one type fits, and is chosen.
    Positive integers would be denormal floats: they are taken for integers."""
    f4 = np.float32
    values = {"posterior": [(np.int32([1]), f4([.5]))],
              "posterior-denormal": [(np.int32([1, 2]), f4([1e-40, 0]))],
              "posterior-2": [(np.int32([1]), f4([.5])), (np.int32([]), f4([])),
                              (np.int32([7]), f4([1]))],
              "gauss-posterior": [[(3, f4([.25]))]],
              "int-vectors": [np.int32([7, 8])], "int-vectors-2": [np.int32([]), np.int32([7])],
              "int-vector": np.int32([65]), "int-vector-2": np.int32([1, 2]),
              "int-vector-3": np.int32([1, 2, 3]), "int-pairs": np.int32([[2, 1]]),
              "int-pairs-2": np.int32([[1, -2], [8388608, 65]]),
              "int": np.int32(65), "int-2": np.int32(-7), "double": f4(.5), "bool": True}
    types = {name: name.rstrip("-23").removesuffix("-denormal") for name in values}
    files = fresh({f"{name}.ark": archive(types[name], [(b"a", value)], ["binary"])
                   for name, value in values.items()})
    with mounted():
        for name, data in files.items():
            if os.path.exists(path(name, "ERROR.txt")):
                raise AssertionError(f"{name}: {text(path(name, 'ERROR.txt'))}")
            check_table(Table(data, types[name.removesuffix(".ark")]), path(name))


def check_large():
    """Objects longer than a window, and a batch of many."""
    values = [(b"long", numbers(40000, 13)), (b"short", numbers(1, 13)),
              (b"wide", numbers(2, 13))] + [(b"n%04d" % i, numbers(i % 9 + 1, 13))
                                            for i in range(700)]
    files = {"large.ark": archive("matrix", values, ["FM", "text", "DM"]),
             "ali.ark": archive("int-vector", [(b"a", whole(300000)), (b"b", whole(2))],
                                ["binary"]),
             "cm.ark": write_ark([(b"%d-%d" % (i, n), write("matrix",
                                                            random_compressed(kind, n, 40, rng)))
                                  for i, kind in enumerate(("CM", "CM2", "CM3"))
                                  for n in (5000, 3)]),
             "ranges.ark": write_ark([(b"%d-%d" % (i, n),
                                       write("matrix", random_compressed(kind, 3, 20, rng)))
                                      for i, kind in enumerate(("CM", "CM2", "CM3"))
                                      for n in range(200)])}
    fresh(files)
    with mounted():
        for name, type in (("large.ark", "matrix"), ("ali.ark", "int-vector"),
                           ("cm.ark", "matrix"), ("ranges.ark", "matrix")):
            table = Table(files[name], type)
            n = len(table)
            kaldi_model.check_listing(table, path(name))
            for sample in {0, 1, 2 % n, n - 1}:
                kaldi_model.check_sample(table, path(name), sample)
            flat = ["npz", "ark", "tar"] if n > 700 else None  # padded, it would be 3 GB
            kaldi_model.check_batch(table, path(name, "batches/batch=all"), 0, list(range(n)), flat)
            for number in (2, 5) if n > 700 else ():
                samples = list(range(100 * number, 100 * number + 100))
                kaldi_model.check_batch(table, path(name, "batches/batch=100"), number, samples)


# ---- matrices of different width ----

def check_columns():
    """Such matrices cannot be stacked; samples and archives work."""
    values = [(b"a", numbers(3, 4)), (b"b", numbers(5, 2)), (b"c", numbers(0, 0)),
              (b"d", numbers(0, 0)), (b"e", numbers(2, 4)), (b"f", numbers(1, 4))]
    data = archive("matrix", values, ["FM"])
    fresh({"wide.ark": data})
    table = Table(data, "matrix")
    equal([kaldi_model.fits(table, s) for s in ([0, 1], [2, 3], [4, 5])], [False, True, True],
          "batches of the model")
    with mounted():
        check_table(table, path("wide.ark"))
    contains(log_text(), "wide.ark", "columns")


# ---- a file alone ----

def check_alone():
    data = archive("matrix", values_of("matrix"), ["FM"])
    fresh({"feats.ark": data, "other.ark.gz": gzip.compress(data)})
    for name in ("feats.ark", "other.ark.gz"):
        with mounted(f"{SOURCE}/{name}"):
            name = name.removesuffix(".gz")
            equal(sorted(os.listdir(MOUNTPOINT)), sorted([name, "README.txt", ".epochfs"]), name)
            check_table(Table(data, "matrix"), path(name))
            folder = path(name, "samples/ark")
            shown = {os.path.splitext(f)[1] for f in os.listdir(folder)}
            equal(shown, {".ark", ".scp"}, folder)


# ---- files that Kaldi wrote ----

TYPE_OF = {"fm": "matrix", "dm": "matrix", "general": "matrix", "cm_with_empty": "matrix",
           "fv": "vector", "dv": "vector", "ali": "int-vector", "ivv": "int-vectors",
           "ipv": "int-pairs", "fpv": "float-pairs", "post": "posterior",
           "gpost": "gauss-posterior", "int": "int", "float": "float", "double": "double",
           "bool": "bool", "token": "token", "tokenvec": "tokens", "wav": "wave",
           "feats": "matrix", "feats_ascii": "matrix", "ali_ascii": "int-vector", "6": "vector"}
# What no rule can tell from integers.
UNKNOWN = {"float.ark", "fpv.ark"}


def check_kaldi_written():
    shutil.rmtree(SOURCE)
    os.mkdir(SOURCE)
    files = {}
    for file in glob.glob(f"{SHARED}/*/*.ark") + glob.glob(f"{SHARED}/funcwj/asset/*.ark"):
        name = os.path.basename(file)
        if name == "ali.ark" and "vesis" in file:
            name = "ali_ascii.bin.ark"
        files[name] = content(file)
        write_file(name, files[name])
    with mounted():
        for name, data in files.items():
            if name in UNKNOWN:
                contains(text(path(name, "ERROR.txt")), "kaldi_type=")
                continue
            kind = name.split(".")[0]
            table = Table(data, "matrix" if kind.startswith("cm_") else
                          "double" if name == "float.txt.ark" else TYPE_OF[kind])
            check_table(table, path(name))
        check_expected("ark")
        for file in glob.glob(f"{SHARED}/kaldi-written/*.expected_fm.ark"):
            check_bit_exact(os.path.basename(file))
    for name in sorted(UNKNOWN):
        type = TYPE_OF[name.split(".")[0]]
        with mounted(f"{SOURCE}/{name}", f"kaldi_type={type}"):
            check_table(Table(files[name], type), path(name))


def check_bit_exact(name):
    want = Table(content(f"{SHARED}/kaldi-written/{name}"), "matrix")
    folder = path(name.replace(".expected_fm", ""), "samples/npy")
    equal(len(want) > 3, True, f"{name}: objects")
    for i, key in enumerate(want.keys):
        got = np.load(f"{folder}/{os.fsdecode(kaldi_model.encode(key))}.data.npy")
        kaldi_model.same_array(got, want.array(i, "data"), f"{name}: {key}")


def expected_lines():
    """Lines of EXPECTED.md: ark or scp, the file, number of objects, the key of the first, what
    Kaldi's reader printed of it."""
    with open(os.path.join(os.path.dirname(SHARED), "EXPECTED.md")) as f:
        found = re.findall(r"^\w+ (ark|scp):(\S+): n=(\d+) Close=1 key\[\d+\]=(.*)$", f.read(),
                           re.M)
    equal(len(found) > 25, True, "lines of EXPECTED.md")
    return found


def printed(shown, cut):
    """The numbers that the line shows whole."""
    shown = shown.rsplit(" ", 1)[0] if cut else shown
    shown = re.sub(r"^(type=\d )?\d+x\d+:|^dim \d+:|^n=\d+:", "", shown)
    return [float(v) for v in re.findall(r"-?[0-9.]+(?:e[+-]?\d+)?", shown)]


def check_expected(kind, where=lambda file: os.path.basename(file)):
    checked = 0
    for how, file, n, first in expected_lines():
        name = where(file)
        if how != kind or os.path.basename(file) in UNKNOWN or "wav" in file:
            continue
        key, _, shown = first.partition(" ")
        folder = path(name)
        page = json.loads(text(folder, "dataset.json"))
        equal(page["samples"], int(n), f"{name}: samples")
        if "'" in shown:
            tokens = " ".join(re.findall(r"'([^']*)'", shown))
            equal(text(folder, "samples/txt", f"{key}.txt"), f"{tokens}\n", f"{name}: {key}")
            continue
        got = np.load(f"{folder}/samples/npy/{key}.data.npy")
        dims = re.match(r"(?:type=\d )?(\d+)x(\d+):|dim (\d+):", shown)
        if dims:
            want = tuple(int(d) for d in dims.groups() if d)
            equal(got.shape, want, f"{name}: {key}: shape")
        want = np.array(printed(shown, len(first) >= 60), np.float64).astype(got.dtype)
        have = (got[:, :6] if got.ndim == 2 else got).reshape(-1)[:len(want)]  # 6 are printed
        if got.dtype == np.float64:
            equal(np.allclose(have, want, rtol=6e-9, atol=0), True, f"{name}: {have} {want}")
        else:
            equal(have.tolist(), want.tolist(), f"{name}: {key}: values")
        checked += 1
    equal(checked > 3, True, f"lines of EXPECTED.md about {kind}")


def check_expected_scp():
    """The scp files: their paths are relative to the folder that Kaldi ran in."""
    shutil.rmtree(SOURCE)
    shutil.copytree(SHARED, SOURCE)
    subprocess.run(["chmod", "-R", "u+rwX", SOURCE], check=True)
    os.chdir(SOURCE)
    skip = {f"kaldi-written/{name}.scp" for name in ("float", "fpv")}
    with mounted():
        check_expected_names(skip)
    os.chdir(PRIVATE)


def check_expected_names(skip):
    for how, file, n, first in expected_lines():
        if how == "scp" and file not in skip:
            if os.path.exists(path(file, "ERROR.txt")):
                raise AssertionError(f"{file}: {text(path(file, 'ERROR.txt'))}")
            equal(os.path.exists(path(os.path.splitext(file)[0] + ".ark")), False,
                  f"{file}: its archive is no dataset of its own")
    global UNKNOWN
    UNKNOWN = UNKNOWN | {os.path.basename(f) for f in skip}
    check_expected("scp", lambda file: file)
    wav = path("wavark/wav.scp/samples/npy")
    for key, shape in (("kaldi-test", (23001, 1)), ("stereo", (8000, 2)), ("mono0", (4000, 1))):
        got = np.load(f"{wav}/{key}.data.npy")
        equal((got.dtype, got.shape), (np.int16, shape), f"wav.scp: {key}")


check_self_describing()
check_text()
check_typed()
check_ambiguous()
check_small()
check_large()
check_columns()
check_alone()
if os.path.isdir(SHARED):
    check_kaldi_written()
    check_expected_scp()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
