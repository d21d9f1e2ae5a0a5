#!/usr/bin/python3
# needs: python3-pil
"""CIFAR-10 and CIFAR-100 in their binary version, made here record by record; and files that are refused or
are none. Each check names its row of the table of cases."""

import errno
import gzip
import json
import os
import pickle

import numpy as np
from PIL import Image

from array_model import described, error
from lib import SOURCE, contains, content, equal, expect_error, mounted, path, run, text, write

RNG = np.random.default_rng(8)
SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "cifar")
TEN = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def records(n, coarse=False, classes=10):
    """Bytes of n records, planes (n, 3, 32, 32), labels, coarse labels."""
    planes = RNG.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)
    labels = RNG.integers(0, classes, n, dtype=np.uint8)
    above = RNG.integers(0, 20, n, dtype=np.uint8)
    data = b"".join((bytes([a]) if coarse else b"") + bytes([label]) + p.tobytes()
                    for p, label, a in zip(planes, labels, above))
    return data, planes, labels, above


def read(data, n_labels):
    """The same arrays from bytes of a real file."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, 3072 + n_labels)
    return rows[:, n_labels:].reshape(-1, 3, 32, 32), rows[:, n_labels - 1], rows[:, 0]


def check(at, planes, labels, coarse=None, batch=7):
    n = len(labels)
    want = {"image": planes.transpose(0, 2, 3, 1), "label": labels}
    if coarse is not None:
        want["coarse_label"] = coarse
    equal(described(at)["samples"], n, at)
    equal([f["name"] for f in described(at)["fields"]], [*want, "index", "key"], f"{at}: fields")
    plan = path(at, f"batches/batch={batch},seed=2/epoch=0")
    seen = []
    for b in range((n + batch - 1) // batch):
        with np.load(f"{plan}/npz/{b:06d}.npz") as archive:
            index = archive["index"]
            seen += list(index)
            for name, array in want.items():
                equal(archive[name].dtype, array.dtype, name)
                equal(archive[name].tobytes(), np.ascontiguousarray(array[index]).tobytes(), f"{at} {name} {b}")
        equal(content(f"{plan}/raw/{b:06d}.image.raw"), planes[index].tobytes(), f"{at}: raw is as stored")
        equal(content(f"{plan}/raw/{b:06d}.label.raw"), labels[index].tobytes(), f"{at}: raw labels")
    equal(sorted(seen), list(range(n)), f"{at}: samples")
    for k in {0, n // 2, n - 1} if n else ():
        equal(np.load(path(at, f"samples/npy/{k:06d}.image.npy")).tobytes(), want["image"][k].tobytes(), f"{at} {k}")
        with Image.open(path(at, f"samples/png/{k:06d}.image.png")) as picture:
            equal(np.asarray(picture).tobytes(), want["image"][k].tobytes(), f"{at} {k}: png")
        equal(int(text(path(at, f"samples/png/{k:06d}.label.cls"))), int(labels[k]), f"{at} {k}: cls")
    with open(path(at, "batches/batch=all/raw/000000.image.raw"), "rb", buffering=0) as f:
        for off, length in ((0, 10), (3071, 3), (5000, 4000)):
            equal(os.pread(f.fileno(), length, off), planes.tobytes()[off:off + length], f"{at}: a range")


def join(parts):
    return [np.concatenate(arrays) for arrays in zip(*[p[1:] for p in parts])]


def check_ten():
    # C-7: data_batch_10 comes after data_batch_2; C-6: any number of records
    parts = {1: records(3), 2: records(5), 10: records(2)}
    for number, (data, *_) in parts.items():
        write(f"ten/data_batch_{number}.bin", data)
    test = records(4)
    write("ten/test_batch.bin.gz", gzip.compress(test[0]))
    write("ten/batches.meta.txt", ("\n".join(TEN) + "\r\n\n \n").encode())
    write("empty/data_batch_1.bin", b"")
    write("empty/test_batch.bin", b"")
    write("partly/data_batch_1.bin", parts[1][0])
    write("partly/data_batch_2.bin", b"")
    write("partly/data_batch_3.bin", parts[2][0])
    # C-3: a size that both could have: the name decides
    both = records(3074)
    write("both/data_batch_1.bin", both[0])
    with mounted():
        planes, labels, _ = join(parts.values())
        check("ten/train", planes, labels)
        check("ten/test", *test[1:3])
        equal(described("ten/train")["classes"], TEN, "C-10")
        equal(described("empty/train")["samples"], 0, "C-4")
        equal(described("empty/test")["samples"], 0, "C-4")
        planes, labels, _ = join([parts[1], parts[2]])
        check("partly/train", planes, labels)
        check("both/train", both[1], both[2], batch=1000)
        equal(described("both/train").get("classes"), None, "no names of classes")
        expect_error(errno.ENOENT, os.stat, path("ten/batches.meta.txt"))
        contains(text(path("README.txt")), "image (uint8, 32 x 32 x 3)")
        os.stat(path("ten/train/preview.png"))
        place = os.getxattr(path("ten/train/samples/npy/000009.image.npy"), "user.epochfs.source").decode()
        equal(place, "ten/data_batch_10.bin:3074+3072", "place")
        equal(os.getxattr(path("ten/train/samples/raw/000001.image.raw"), "user.epochfs.shape").decode(),
              "(3, 32, 32)", "shape as stored")
        equal(os.getxattr(path("ten/train/samples/npy/000001.image.npy"), "user.epochfs.shape").decode(),
              "(32, 32, 3)", "shape")


def check_missing():
    """A batch that is missing, or cannot be used, is named, and `info --check` fails."""
    for number in (1, 2, 4, 5):
        write(f"lacks/data_batch_{number}.bin", records(3)[0])
        write(f"pointer/data_batch_{number}.bin", b"version https://git-lfs.github.com/spec/v1\n" if number == 2 else records(3)[0])
    write("lacks/test_batch.bin", records(3)[0])
    found = json.loads(run("info", "--json", f"{SOURCE}/lacks"))["datasets"]
    equal({ds["dataset"]: ds["missing"] for ds in found},
          {"train": [{"name": "data_batch_3.bin", "reason": "no such file"}], "test": []}, "a gap")
    run("info", "--check", f"{SOURCE}/lacks", code=2)
    contains(run("info", "--check", f"{SOURCE}/pointer", code=2), "data_batch_2.bin", "git lfs pull")


def check_hundred():
    train, test = records(6, True, 100), records(3, True, 100)
    for folder in "cifar-100-binary", "other":
        write(f"{folder}/train.bin", train[0])
        write(f"{folder}/test.bin", test[0])
    write("other/fine_label_names.txt", b"".join(b"fine %d\n" % i for i in range(100)))
    write("other/coarse_label_names.txt", b"coarse 0\ncoarse 1\n")
    with mounted():
        for folder in "cifar-100-binary", "other":
            check(f"{folder}/train", *train[1:])
            check(f"{folder}/test", *test[1:])
        equal(described("other/test")["classes"], [f"fine {i}" for i in range(100)], "classes")
        equal(described("other/test")["coarse_classes"], ["coarse 0", "coarse 1"], "coarse classes")
    with mounted(f"{SOURCE}/cifar-100-binary"):  # the folder is SOURCE itself
        check("train", *train[1:])


def check_none():
    """Files that are no CIFAR, or bad ones."""
    data = records(4)[0]
    write("bad/data_batch_1.bin", data)
    write("bad/data_batch_2.bin", data[:-5])
    write("bad/test_batch.bin", data[:100])
    write("pickle/data_batch_1", pickle.dumps({b"labels": [1], b"data": np.zeros((1, 3072), "u1")}))
    write("labels/data_batch_1.bin", b"\x0a" + data[1:])
    write("nano/train.bin", records(2, True, 100)[0])
    later = bytearray(records(9)[0])
    later[3073 * 7] = 12
    write("later/data_batch_1.bin", bytes(later))
    write("good/test_batch.bin", data)
    with mounted():
        contains(error("bad/train"), "bad/data_batch_2.bin: expected records of CIFAR-10 of 3073 bytes, got 3 records and "
                 "3068 bytes")                                                                    # C-2
        contains(error("bad/test"), "got 0 records and 100 bytes")
        contains(error("pickle/data_batch_1"), "got a pickle of Python, which is never read", "binary")  # C-8
        contains(error("labels/data_batch_1.bin"), "of no format")                                # C-1
        contains(error("nano/train.bin"), "nano/train.bin: ")                                      # C-11
        equal(int(text(path("later/train/samples/png/000007.label.cls"))), 12, "C-5")
    contains(run("info", "--check", f"{SOURCE}/later", code=2),
             "data_batch_1.bin: record 7, byte 21511: label: expected 0 to 9, got 12")               # C-5
    run("info", "--check", f"{SOURCE}/good")
    write("cifar-100-nano/train.bin", records(2, True, 100)[0])
    with mounted(f"{SOURCE}/cifar-100-nano", "tokens=u2,seq=5"):                                   # C-11
        equal([n for n in os.listdir(path()) if n == "train"], [], "tokens= decides")


def check_given():
    """format= says what the names do not (C-1); C-3: it decides between two sizes."""
    ten, hundred, both = records(5), records(4, True, 100), records(3074)
    write("given/odd.dat", ten[0])
    write("given/train.bin", both[0])
    write("given/batches.meta.txt", "\n".join(TEN).encode())
    write("given/bad.dat", ten[0][:-1])
    with mounted(f"{SOURCE}/given", "format=cifar10"):
        check("odd.dat", *ten[1:3])
        check("train", *both[1:3], batch=1000)
        equal(described("odd.dat")["classes"], TEN, "classes")
        contains(error("bad.dat"), "bad.dat: expected records of CIFAR-10 of 3073 bytes, got 4 records and 3072 bytes")
    with mounted(f"{SOURCE}/given", "format=cifar100"):
        equal(described("train")["samples"], 3073, "the same bytes as CIFAR-100")
        contains(error("odd.dat"), "of CIFAR-100 of 3074 bytes, got 4 records and 3069 bytes")
    write("hundred/odd.dat", hundred[0])
    with mounted(f"{SOURCE}/hundred", "format=cifar100"):
        check("odd.dat", *hundred[1:])
    contains(run("info", f"{SOURCE}/hundred", "-o", "format=cifar", code=2), "odd.dat: expected a name that says which CIFAR")
    contains(run("info", f"{SOURCE}/hundred", "-o", "format=cifar11", code=2), "csv, cifar, cifar10 or cifar100")


def check_names():
    """C-10: files that name classes, with blank lines, other ends of lines and too few or too many names: info, and
    dataset.json say the same."""
    lines = [f" {name}\t" for name in TEN]
    for name, words, want, note in (
            ("crlf", "\r\n".join(lines) + "\r\n\r\n", TEN, None),
            ("between", "\n\n".join(["", *lines]), TEN, None),
            ("bom", "\ufeff" + "\n".join(lines), TEN, None),
            ("fewer", "\n".join(lines[:7]), TEN[:7], "expected 10 names of classes, got 7"),
            ("more", "\n".join([*lines, "more"]), TEN, "expected 10 names of classes, got 11"),
            ("gap", "\n".join([*lines[:3], "", *lines[4:]]), None, "expected 10 names of classes, got 9 and empty lines between them, so no class has a name")):
        write(f"names/{name}/data_batch_1.bin", b"".join(bytes([k]) * 3073 for k in range(10)))
        write(f"names/{name}/batches.meta.txt", words.encode())
        with mounted(f"{SOURCE}/names/{name}"):
            equal(described("train").get("classes"), want, f"classes of {name}")
        each = json.loads(run("info", "--json", f"{SOURCE}/names/{name}"))["datasets"][0]["class_counts"]["each"]
        equal([c.get("name") for c in each], (want or []) + [None] * (10 - len(want or [])), f"classes of {name} in info")
        found = run("info", f"{SOURCE}/names/{name}")
        if note:
            contains(found, f"batches.meta.txt: {note}")
        else:
            equal("names of classes" in found, False, found)


def check_shared():
    if not os.path.isdir(SHARED):
        return
    with mounted(SHARED):
        ten = [read(content(SHARED, f"cifar-10-batches-bin/data_batch_{i}.bin"), 1) for i in (1, 2)]
        check("cifar-10-batches-bin/train", *[np.concatenate(a) for a in zip(*ten)][:2], batch=100)
        check("cifar-10-batches-bin/test", *read(content(SHARED, "cifar-10-batches-bin/test_batch.bin"), 1)[:2])
        equal(described("cifar-10-batches-bin/train")["classes"], TEN, "classes")
        for split in "train", "test":
            check(f"cifar-100-binary/{split}", *read(content(SHARED, f"cifar-100-binary/{split}.bin"), 2))


check_ten()
check_missing()
check_hundred()
check_none()
check_given()
check_names()
check_shared()
