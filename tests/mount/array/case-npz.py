#!/usr/bin/python3
"""Arrays of .npz files, against numpy: stored and deflated members, 64-bit records, and archives that are
refused or read in part. Each check names its row of the table of cases."""

import io
import json
import os
import struct
import warnings
import zipfile
import zlib

import numpy as np

from array_model import check, described, error, npy
from lib import CACHE, SOURCE, contains, equal, mounted, path, run, text, write

warnings.simplefilter("ignore", UserWarning)  # zipfile's, of two members of one name
RNG = np.random.default_rng(6)
SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "arrays/npz")


def numbers(dtype, *shape):
    return RNG.integers(0, 100, shape).astype(dtype)


X, Y = numbers("u1", 40, 9, 8), numbers("<i4", 40)


def saved(save=np.savez, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


def zipped(*members, method=zipfile.ZIP_STORED, comment=b""):
    """An archive of (name, bytes)."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
        archive.comment = comment
    return out.getvalue()


class Pipe(io.BytesIO):
    """zipfile writes data descriptors to what cannot seek."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError


def patched(data, *changes):
    """Bytes with others at places from the end (negative) or from the start of the directory's magic."""
    data = bytearray(data)
    for at, new in changes:
        data[at:at + len(new)] = new
    return bytes(data)


def zip64(name, content):
    """An archive whose sizes, offset and count are all in 64-bit records."""
    ones, crc = 0xffffffff, zlib.crc32(content)
    extra = struct.pack("<HHQQ", 1, 16, len(content), len(content))
    local = struct.pack("<IHHHHHIIIHH", 0x04034b50, 45, 0, 0, 0, 33, crc, ones, ones, len(name), len(extra))
    local += name + extra + content
    extra = struct.pack("<HHH", 7, 2, 5) + struct.pack("<HHQQQ", 1, 24, len(content), len(content), 0)
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 45, 45, 0, 0, 0, 33, crc, ones, ones, len(name), len(extra),
                        0, 0, 0, 0, ones) + name + extra
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, 1, 1, len(entry), len(local))
    locator = struct.pack("<IIQI", 0x07064b50, 0, len(local) + len(entry), 1)
    end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0xffff, 0xffff, ones, ones, 0)
    return local + entry + end64 + locator + end


XY = {"x": X, "y": Y}
GOOD = {  # folder -> (file, fields of its one dataset)
    "A-30 by its first member": (zipped(("x.npy", npy(X)), ("y.npy", npy(Y))), XY),
    "A-31": (saved(x=X, y=Y), XY),
    "A-32": (saved(np.savez_compressed, x=X, y=Y), XY),
    "A-35": (zip64(b"x.npy", npy(X)), {"data": X}),
    "A-39 no suffix": (zipped(("x", npy(X)), ("d/y.npy", npy(Y))), {"x": X, "d.y": Y}),
    "A-40": (zipped(("readme.txt", b"two arrays"), ("x.npy", npy(X)), ("y.npy", npy(Y))), XY),
    "A-41 after": (saved(x=X, y=Y) + bytes(1000), XY),
    "A-41 a comment": (zipped(("x.npy", npy(X)), ("y.npy", npy(Y)), comment=b"PK\5 what" * 100), XY),
    "A-9 deflated": (saved(np.savez_compressed, x=np.asfortranarray(numbers("<f8", 20, 5))), None),
    "A-9 stored": (saved(x=np.asfortranarray(numbers(">f4", 20, 5, 2))), None),
}
MEMBER = zipped(("x.npy", npy(X)))
DIRECTORY = MEMBER.index(b"PK\1\2")
DEFLATED = zipped(("x.npy", npy(X)), method=zipfile.ZIP_DEFLATED)
OTHER = DEFLATED.index(b"PK\1\2")
BAD = {  # folder -> (file, words of the message)
    "A-30 empty": (zipped(), ["expected arrays, got an empty archive"]),
    "A-33 bzip2": (zipped(("x.npy", npy(X)), method=zipfile.ZIP_BZIP2), ["member x.npy", "method is 12 (bzip2)"]),
    "A-33 lzma": (zipped(("x.npy", npy(X)), method=zipfile.ZIP_LZMA), ["method is 14 (LZMA)"]),
    "A-36 encrypted": (patched(MEMBER, (DIRECTORY + 8, b"\1")), ["is encrypted"]),
    "A-36 disks": (patched(MEMBER, (len(MEMBER) - 18, b"\1")), ["an archive of one file"]),
    "A-37 deflated": (patched(DEFLATED, (OTHER + 16, b"abcd")), ["member x.npy: expected 3008 bytes with CRC-32 64636261"]),
    "A-37 damage": (patched(DEFLATED, (OTHER - 500, b"\xff" * 300)), ["member x"]),
    "A-38": (zipped(("x.npy", npy(X)), ("x.npy", npy(Y))), ["two members are called x"]),
    "A-38 two names": (zipped(("x.npy", npy(X)), ("x", npy(Y))), ["two members are called x"]),
    "A-41 before": (MEMBER[:30] + MEMBER, ["are there bytes before the archive?"]),
    "A-41 cut short": (MEMBER[:-30], ["expected the directory", "cut short?"]),
    "A-42 outside": (patched(MEMBER, (DIRECTORY + 42, b"\xff\xff\xff\x7f")), ["before the directory at byte"]),
    "A-42 too many": (patched(MEMBER, (DIRECTORY + 20, struct.pack("<II", 2**31, 2**31))), ["before the directory at byte"]),
    "A-42 declared": (patched(DEFLATED, (OTHER + 24, struct.pack("<I", 2**31))), ["at most 1032 bytes of each deflated byte, got 2147483648"]),
    "A-42 count": (patched(MEMBER, (len(MEMBER) - 14, b"\2\0\2\0")), None),
    "A-43": (saved(indices=Y, indptr=Y, format=np.array("csr"), shape=np.array([4, 5]), data=Y), ["sparse matrix"]),
    "A-44 nothing": (saved(x=np.array(["a"]), n=np.array(3)), ["expected an array of samples", "got strings"]),
    "A-14 alone": (saved(x=np.array([{}, 1], object)), ["a pickle, which is never read"]),
}


def overlapping():
    """Two entries of the directory for the same bytes."""
    data = zipped(("x.npy", npy(X)))
    at = data.index(b"PK\1\2")
    entry = data[at:-22]
    end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 2, 2, 2 * len(entry), at, 0)
    return data[:at] + entry + entry + end


def make():
    for name, key in ("A-9 deflated", "x"), ("A-9 stored", "x"):
        data = GOOD[name][0]
        GOOD[name] = (data, {"data": np.load(io.BytesIO(data))[key]})
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in XY.items():
            with archive.open(f"{name}.npy", "w") as member:
                member.write(npy(array))
    GOOD["A-34"] = (pipe.getvalue(), XY)
    mixed = io.BytesIO()
    with zipfile.ZipFile(mixed, "w") as archive:
        archive.writestr("x.npy", npy(X), zipfile.ZIP_DEFLATED)
        archive.writestr("y.npy", npy(Y))
    GOOD["A-31 and A-32"] = (mixed.getvalue(), XY)
    BAD["A-42 overlap"] = (overlapping(), ["got two that overlap"])
    BAD["A-42 count"] = (BAD["A-42 count"][0], ["expected 2 members, got 1"])
    for folder, (data, fields) in GOOD.items():
        write(f"{folder}/a.npz", data)
        with np.load(io.BytesIO(data)) as archive:  # numpy agrees
            for name, array in fields.items():
                if name in archive:
                    equal(archive[name].tolist(), array.tolist(), folder)
    for folder, (data, _) in BAD.items():
        write(f"{folder}/a.npz", data)
    write("A-37 stored/a.npz", patched(MEMBER, (DIRECTORY + 16, b"abcd")))
    write("A-44/a.npz", saved(x=X, y=Y, names=np.array(["a", "b"]), count=np.array(3), things=np.array([{}], object),
                              other=numbers("f4", 7)))
    write("keras/mnist.npz", saved(x_train=X, y_train=Y.astype("u1"), x_test=X[:5], y_test=Y[:5].astype("u1")))
    write("two/a.npz", saved(x_train=X, y_train=Y))
    write("two/b.npz", saved(x_train=X[:7], y_train=Y[:7], classes=np.arange(10)))


def check_all():
    for folder, (_, fields) in GOOD.items():
        check(f"{folder}/a", fields)
    for folder, (_, words) in BAD.items():
        contains(error(f"{folder}/a.npz"), "a.npz: ", *words)
    check("keras/train", {"x": X, "y": Y.astype("u1")})
    check("keras/test", {"x": X[:5], "y": Y[:5].astype("u1")})
    equal(int(text(path("keras/train/samples/png/000003.y.cls"))), int(Y[3]), "cls")
    equal(described("keras/test")["sources"][0]["file"], "keras/mnist.npz", "source")
    check("two/a-train", XY)
    check("two/b-train", {"x": X[:7], "y": Y[:7]})
    check("two/b-classes", {"data": np.arange(10)})
    # members that are no array of samples are omitted, and listed
    check("A-44/a", XY)
    left = described("A-44/a")["left_out"]
    equal([line.split(":")[0] for line in left], ["names", "count", "things"], "left out")
    contains(" ".join(left), "got strings", "a scalar", "a pickle, which is never read")
    equal(len(described("A-44/other")["arrays"]), 1, "another length")


def check_info():
    out = run("info", f"{SOURCE}/A-44")
    contains(out, "paired   x, y: they have the same number of samples", "ignored  names: ")
    # stored members are compared by --check
    check_text = run("info", "--check", f"{SOURCE}/A-37 stored", code=2)
    contains(check_text, "a.npz: member x: CRC-32", "expected 64636261, got ")
    for folder in GOOD:
        run("info", "--check", f"{SOURCE}/{folder}")


def check_kept():
    """A second mount unpacks nothing: the archive's deflated bytes may be anything."""
    with mounted(f"{SOURCE}/A-32"):
        check("a", XY)
    entries = sorted(os.listdir(f"{CACHE}/unpacked"))
    with mounted(f"{SOURCE}/A-32"):
        check("a", XY)
    equal(sorted(os.listdir(f"{CACHE}/unpacked")), entries, "entries of the cache")
    with mounted(f"{SOURCE}/A-32/a.npz", "pair=off"):
        check("x", {"data": X})
        check("y", {"data": Y})


def check_changed():
    """An archive that changes while mounted is stale, unpacked or not."""
    for folder in "A-31", "A-32":
        with mounted(f"{SOURCE}/{folder}"):
            check("a", XY)
            write(f"{folder}/new", GOOD[folder][0])
            os.rename(f"{SOURCE}/{folder}/new", f"{SOURCE}/{folder}/a.npz")
            try:
                with open(path("a/batches/batch=5,seed=99/epoch=0/npz/000002.npz"), "rb") as f:
                    f.read()
                raise AssertionError(f"{folder}: a changed file was read")
            except OSError:
                pass


def loaded(plan):
    with np.load(path(f"{plan}/epoch=0/npz/000000.npz")) as npz:
        return dict(npz)


def check_draws():
    """The kept labels and weights of one dataset are not those of another with the same names and sizes."""
    n = 400
    weight = {"train": np.arange(n) % 4 == 1, "test": np.arange(n) % 4 == 3}
    label = {"train": np.arange(n) // 50, "test": 100 + np.arange(n) % 5}
    for folder, save in (("draws/stored", np.savez), ("draws/deflated", np.savez_compressed)):
        arrays = {"x_train": np.arange(n), "x_test": np.arange(n)}
        for split in "train", "test":
            arrays[f"label_{split}"] = label[split].astype("<i4")
            arrays[f"w_{split}"] = weight[split].astype("<f4")
        write(f"{folder}/a.npz", saved(save, **arrays))
        for _ in range(2):  # makes the tables, then loads them
            for split in "train", "test":
                with mounted(f"{SOURCE}/{folder}"):
                    drawn = loaded(f"{split}/batches/batch=20,draw=20:w,seed=1")
                    equal([int(i) for i in drawn["index"] if not weight[split][i]], [], f"{folder} {split}: of weight 0")
                    classes = loaded(f"{split}/batches/batch=8,classes=4x2,seed=1")
                    counts = np.unique(label[split][classes["index"]], return_counts=True)[1]
                    equal(counts.tolist(), [2, 2, 2, 2], f"{folder} {split}: samples of each class")


OBJECTS = np.array([[1, 2], [3], [4, 5, 6], [7]] * 10, dtype=object)
RECORDS = np.zeros(40, [("a", "<i4"), ("b", "<f8", (3,)), ("c", "<U3")])
WORDS = np.array(["cat", "dog"] * 20)


def check_halves():
    """A set that lacks an array is an error that says which and why: not a dataset of labels alone."""
    lacking = {  # folder -> (arrays, name of the set, words of the reason)
        "imdb": ({"x_train": OBJECTS, "y_train": Y, "x_test": OBJECTS[:8], "y_test": Y[:8]}, "train",
                 ["array x_train cannot be read", "a pickle", "numpy.array(rows.tolist())", "-o pair=off"]),
        "pair": ({"x": OBJECTS, "y": Y}, "a", ["array x cannot be read", "a pickle"]),
        "three": ({"x": OBJECTS, "y": Y, "w": Y}, "a", ["array x cannot be read", "a pickle"]),
        "records": ({"x": RECORDS, "y": Y, "w": Y}, "a", ["array x cannot be read", "records of several fields"]),
        "dates": ({"x": X, "y": Y, "t": np.zeros(40, "M8[s]")}, "a", ["array t cannot be read", "astype('int64')"]),
        "raw": ({"x": np.zeros(40, "V2"), "y": Y}, "a", ["array x cannot be read", "bfloat16"]),
        "labels": ({"x": X, "y": WORDS}, "a", ["array y cannot be read", "numpy.unique(labels, return_inverse=True)[1]"]),
        "bytes": ({"x_train": X, "y_train": WORDS.astype("S3")}, "train", ["array y_train cannot be read", "got strings"]),
    }
    for folder, (arrays, _, _) in lacking.items():
        write(f"half/{folder}/a.npz", saved(**arrays))
    write("half/split files/x_train.npy", npy(OBJECTS))
    write("half/split files/y_train.npy", npy(Y))
    write("half/files/words.npy", npy(WORDS))
    write("half/files/x.npy", npy(X))
    write("half/more/a.npz", saved(x=X, y=Y, z=Y.astype("c8"), words=WORDS, count=np.array(3)))
    with mounted(f"{SOURCE}/half"):
        for folder, (_, name, words) in lacking.items():
            contains(error(f"{folder}/{name}"), "a.npz: ", *words)
            equal(os.listdir(path(f"{folder}/{name}")), ["ERROR.txt"], folder)
        contains(error("split files/train"), "array x_train cannot be read", "a pickle")
        contains(error("split files/x_train.npy"), "a pickle")
        check("files/x", {"data": X})
        contains(error("files/words.npy"), "got strings")
        check("more/a", {"x": X, "y": Y, "z": Y.astype("c8")})
        equal([line.split(":")[0] for line in described("more/a")["left_out"]], ["words", "count"], "left out")
    for folder in lacking:
        run("info", "--check", f"{SOURCE}/half/{folder}", code=2)
    with mounted(f"{SOURCE}/half/imdb", "pair=off"):
        check("y_train", {"data": Y})


def check_many():
    """As docs/limits.md says: 60 arrays are a dataset, 61 one each; of names with `train`, a reason."""
    def info(name, count, *words, code=0):
        write("many/a.npz", saved(**{name.format(f"{i:02}"): np.arange(3) for i in range(count)}))
        return run("info", *words, f"{SOURCE}/many", code=code)

    for name, count, want in ("{}", 60, ["a"]), ("x{}_train", 60, ["train"]), ("{}", 61, [f"{i:02}" for i in range(61)]):
        equal([d["dataset"] for d in json.loads(info(name, count, "--json"))["datasets"]], want, f"datasets of {count} arrays {name}")
    contains(info("x{}_train", 61, code=2), "arrays of train: expected at most 60, got 61; with -o pair=off each array is a dataset")


def check_shared():
    if not os.path.isdir(SHARED):
        return
    with mounted(SHARED, "pair=off"):
        for name in sorted(os.listdir(SHARED)):
            with np.load(f"{SHARED}/{name}") as archive:
                for key in archive.files:
                    array = archive[key]
                    if array.ndim and array.dtype.kind in "buifc":
                        check(f"{name[:-4]}-{key}", {"data": array}, batch=997)


make()
with mounted():
    check_all()
check_info()
check_kept()
check_changed()
check_draws()
check_halves()
check_many()
check_shared()
