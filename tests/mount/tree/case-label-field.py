#!/usr/bin/python3
"""-o label=FIELD: balanced, classes=, label1h and counts of classes by any field, in every format that has one."""

import errno
import io
import json
import os

import numpy as np

import tar_model
import tfrecord_model as records
from model import npy_bytes
from lib import SOURCE, contains, equal, expect_error, log_text, mounted, path, run, text, write

SAMPLES, WIDTH = 300, 6
rng = np.random.default_rng(5)
KIND = rng.choice(WIDTH - 1, SAMPLES, p=[.5, .25, .15, .05, .05]).astype(np.int64) + 1  # 1 .. 5; 0 has no samples
REAL = np.linspace(0, 1, SAMPLES)


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


# The same samples in each format; model.npz has them under the name that needs no option.
write("a/model.npz", npz(x=REAL, label=KIND))
write("a/keras.npz", npz(x=REAL, y=KIND.astype(np.uint8)))
write("a/real.npz", npz(x=REAL, y=KIND.astype(np.float64)))
write("a/swapped.npz", npz(x=REAL, y=KIND.astype(">i4")))
write("a/train.tfrecord", b"".join(records.frame(records.example(**{
    "image/encoded": records.strings(bytes(k % 7)), "image/class/label": records.integers(int(kind))}))
    for k, kind in enumerate(KIND)))
write("a/web.tar", tar_model.shard([(f"{k:05}.{ext}", data) for k, kind in enumerate(KIND)
                                    for ext, data in (("txt", b"a text"), ("cls", b"%d\n" % kind))]))
write("a/table.csv", ("one,kind,two\n" + "".join(f"{k / 2},{kind},{k}\n" for k, kind in enumerate(KIND))).encode())
write("a/bare.csv", "".join(f"{k / 2},{kind},{k}\n" for k, kind in enumerate(KIND)).encode())
NAMES = [b"", b"Zebra", b"a", b"a b\n", b"ab", "é".encode()]  # in the order of their bytes; the first has no samples
write("text/web.tar", tar_model.shard([(f"{k:05}.txt", NAMES[kind]) for k, kind in enumerate(KIND)]))
write("text/long.tar", tar_model.shard([("0.txt", b"x"), ("1.txt", b"y" * 257)]))
write("text/lacks.tar", tar_model.shard([("0.txt", b"x"), ("0.cls", b"1"), ("1.cls", b"2")]))
write("a/more.npz", npz(x=REAL, y=KIND))
write("a/both.npz", npz(x=REAL, label=np.zeros(SAMPLES, np.int64), y=KIND))

# (file, what the option says, the field)
CASES = [("keras.npz", "y", "y"), ("real.npz", "y", "y"), ("swapped.npz", "y", "y"), ("both.npz", "y", "y"),
         ("train.tfrecord", "image/class/label", "image%2Fclass%2Flabel"),
         ("train.tfrecord", "image%2Fclass%2Flabel", "image%2Fclass%2Flabel"),
         ("web.tar", "cls", "cls"), ("table.csv", "kind", "label"), ("bare.csv", "1", "label")]
PLANS = ["batch=30,seed=3,draw=200:balanced", "batch=8,seed=3,classes=4x2", "batch=10,seed=3,take=50%:100%,draw=100:balanced"]


def epoch(dataset, plan, field):
    """The numbers of the samples, and their labels, as the batches of an epoch have them."""
    folder = path(dataset, "batches", plan, "epoch=0", "npz")
    batches = [np.load(f"{folder}/{name}") for name in sorted(os.listdir(folder))]
    return (np.concatenate([b["index"] for b in batches]), np.concatenate([b[field] for b in batches]),
            [b[field] for b in batches])


def one_hot(labels, width):
    return (np.asarray(labels, np.int64)[:, None] == np.arange(width)).astype(np.float32)


with mounted(f"{SOURCE}/a/model.npz"):
    ORDER = {plan: epoch("model", plan, "label")[0] for plan in PLANS}
counts = np.bincount(KIND)

for file, option, field in CASES:
    dataset = file.removesuffix(".npz")
    found = json.loads(run("info", "--json", "-o", f"label={option}", f"{SOURCE}/a/{file}"))["datasets"][0]
    equal([(c["value"], c["samples"]) for c in found["class_counts"]["each"]],
          [(value, int(n)) for value, n in enumerate(counts) if n], f"{file}: counts")
    equal((found["class_counts"]["field"], found["label"], found["notes"]), (field, field, []), f"{file}: the field")
    contains(run("info", "-o", f"label={option}", f"{SOURCE}/a/{file}"), f"    classes  5 of {field}, the least ")
    with mounted(f"{SOURCE}/a/{file}", f"label={option}"):
        for plan in PLANS:
            index, labels, batches = epoch(dataset, plan, field)
            equal(labels.tolist(), KIND[index].tolist(), f"{file}: {plan}: labels of the samples")
            equal(index.tolist(), ORDER[plan].tolist(), f"{file}: {plan}: as with a field called label")
            if "classes=" in plan:
                for batch in batches:
                    equal(np.unique(batch, return_counts=True)[1].tolist(), [2] * 4, f"{file}: classes in a batch")
            elif "take" not in plan:
                equal(np.bincount(labels.astype(int), minlength=WIDTH).tolist(), [0] + [40] * 5, f"{file}: balanced")
        hot = np.load(path(dataset, "batches/batch=64,seed=2/epoch=0/npy/000001.label1h.npy"))
        index = np.load(path(dataset, "batches/batch=64,seed=2/epoch=0/npy/000001.index.npy"))
        equal((hot.dtype, hot.shape), (np.float32, (64, WIDTH)), f"{file}: one-hot")
        equal(np.array_equal(hot, one_hot(KIND[index], WIDTH)), True, f"{file}: one-hot of a batch")
        for k in (0, 17, SAMPLES - 1):
            name = f"{k:05}" if file == "web.tar" else f"{k:06}"
            equal(np.load(path(dataset, f"samples/npy/{name}.label1h.npy")).tolist(), one_hot([KIND[k]], WIDTH)[0].tolist(),
                  f"{file}: one-hot of sample {k}")
        run("audit", path(dataset), "batch=30,seed=3,draw=200:balanced")

# one_hot= is the width. Pages begin and end inside rows of 52 bytes.
with mounted(f"{SOURCE}/a/web.tar", "label=cls,one_hot=13", "readahead=0"):
    wanted = npy_bytes(one_hot(KIND, 13))
    with open(path("web.tar", "batches/batch=all/npy/000000.label1h.npy"), "rb", buffering=0) as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for at in (12288, 8192, 4096, 0):
            equal(os.pread(f.fileno(), 4096, at), wanted[at:at + 4096], f"page at {at}")
    equal(np.load(path("web.tar", "batches/batch=all/npy/000000.label1h.npy")).shape, (SAMPLES, 13), "one_hot=")
with mounted(f"{SOURCE}/a/web.tar", "label=cls,one_hot=4"):
    expect_error(errno.EIO, np.load, path("web.tar", "batches/batch=all/npy/000000.label1h.npy"))

# Without the option nothing is new, and a plan says what there is.
with mounted(f"{SOURCE}/a/web.tar"):
    equal([n for n in os.listdir(path("web.tar/samples/npy")) if "1h" in n], [], "no option, no one-hot field")
    equal("label" in json.loads(text(path("web.tar/dataset.json"))), False, "no option, no member")
    equal(os.path.exists(path("web.tar/batches/batch=8,seed=1,draw=100:balanced")), False, "no classes")
    contains(log_text(), "has no field 'label'", "cls. -o label=FIELD makes one of them its label")

# What cannot be: a note says it, in `info`, dataset.json and the log; plans are refused, or have what they had.
for file, option, words in (
        ("both.npz", "z", "label=z: the dataset has no field 'z'; its fields with a number in each sample: x, label, y. "),
        ("model.npz", "z", "Its classes are those of 'label'"), ("keras.npz", "z", "It has no classes"),
        ("keras.npz", "index", "label=index: field index: expected a field that the source has"),
        ("keras.npz", "x", "there is no label1h of x: classes of field x: sample 1 (keras.npz:")):
    found = json.loads(run("info", "--json", "-o", f"label={option}", f"{SOURCE}/a/{file}"))["datasets"][0]
    contains(" ".join(found["notes"]), words)

# Texts: classes in the order of their bytes, by the option, or by the parameters of a plan. The order is that of numbers.
found = json.loads(run("info", "--json", "-o", "label=txt", f"{SOURCE}/text/web.tar"))["datasets"][0]
equal([(c["value"], c["name"], c["samples"]) for c in found["class_counts"]["each"]],
      [(value, name.decode(), int(n)) for value, (name, n) in enumerate(zip(NAMES[1:], counts[1:]))], "counts of texts")
equal((found["label"], found["classes"]), ("txt", [name.decode() for name in NAMES[1:]]), "classes")
contains(" ".join(found["notes"]), "there is no label1h of txt: its classes are texts")
for plan in PLANS:
    by_field = plan.replace("balanced", "balanced:txt").replace("4x2", "4x2:txt")
    with mounted(f"{SOURCE}/text/web.tar", *["label=txt"] * ("take" in plan)):
        equal(epoch("web.tar", plan if "take" in plan else by_field, "index")[0].tolist(), ORDER[plan].tolist(), by_field)
with mounted(f"{SOURCE}/a/both.npz"):
    equal(epoch("both", PLANS[0] + ":y", "y")[0].tolist(), ORDER[PLANS[0]].tolist(), "a field of the plan")
with mounted(f"{SOURCE}/text", log="refused"):
    for name, words in (("long.tar", "expected a text of at most 256 bytes, got 257"), ("lacks.tar", "sample 1 lacks it")):
        equal(os.path.exists(path(name, "batches/batch=1,seed=1,draw=9:balanced:txt")), False, name)
        contains(log_text("refused"), words)

# A field for each dataset, by its name.
with mounted(f"{SOURCE}/a", "label=keras:y;both:x;table.csv:two"):
    equal([json.loads(text(path(name, "dataset.json"))).get("label") for name in ("keras", "both", "more")], ["y", "x", None], "labels")
    equal(np.load(path("table.csv/batches/batch=9/npz/000000.npz"))["label"].tolist(), list(range(9)), "a column of one table")
with mounted(f"{SOURCE}/a/both.npz", "label=z", log="missing"):
    equal(epoch("both", "batch=8,seed=1,draw=100:balanced", "label")[1].tolist(), [0] * 100, "its own label")
    contains(log_text("missing"), "label=z: the dataset has no field 'z'")

# Several datasets: those that have it follow; a mix has the field of its sources.
with mounted(f"{SOURCE}/a", "label=y", "mix=m=more*1+both*1", log="several"):
    for dataset in ("keras", "both", "swapped"):
        equal(epoch(dataset, PLANS[0], "y")[0].tolist(), ORDER[PLANS[0]].tolist(), f"{dataset} of several")
    equal(epoch("model", PLANS[0], "label")[0].tolist(), ORDER[PLANS[0]].tolist(), "one that lacks it keeps its own")
    equal(json.loads(text(path("m/dataset.json")))["label"], "y", "the label of a mix")
    equal([n for n in os.listdir(path("model/samples/npy")) if "1h" in n], [], "one that lacks it has no one-hot field")
found = json.loads(run("info", "--json", "--check", "-o", "label=y,mix=m=more*1+both*1", f"{SOURCE}/a"))["datasets"]
found = next(d for d in found if d["dataset"] == "m")
equal([c["samples"] for c in found["class_counts"]["each"]], [2 * int(n) for n in counts if n], "counts of a mix")

# A table's own option comes first; then label= names a field.
found = json.loads(run("info", "--json", "-o", "label=kind,label_column=two,weight_column=one", f"{SOURCE}/a/table.csv"))["datasets"][0]
contains(" ".join(found["notes"]), "label=kind: the dataset has no field 'kind'")
found = json.loads(run("info", "--json", "-o", "label=weight,label_column=two,weight_column=kind", f"{SOURCE}/a/table.csv"))["datasets"][0]
equal((found["label"], found["class_counts"]["classes"]), ("weight", 5), "another field of a table")
