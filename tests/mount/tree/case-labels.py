#!/usr/bin/python3
# slow: many draws, against a reference in Python
"""Plans that draw by class or by weight, or that have classes, against the Python reference of
docs/spec/order.md; fields that have no classes or weights; the kept index: made once, damaged, cut
short, and not kept at all."""

import contextlib
import errno
import os

import numpy as np

import order_reference
from lib import (CACHE, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error,
                 idx_bytes, log_text, mounted, path, run, small, start, status, stop, text, write)

ref = order_reference.load()
rng = np.random.default_rng(21)
N = 300
LABEL = rng.choice([0, 3, 4, 9, 250], N, p=[.4, .3, .2, .07, .03]).astype(np.uint8)
WEIGHT = np.where(rng.random(N) < .2, 0, rng.random(N) * 9).astype(np.float32)
write("a-images", idx_bytes(rng.integers(0, 256, (N, 4, 4), dtype=np.uint8)))
write("a-labels", idx_bytes(LABEL))
write("plain-data", idx_bytes(rng.integers(0, 256, (20, 4), dtype=np.uint8)))
np.savez(write("w.npz", b""), x=rng.random((N, 2)).astype(np.float32), label=LABEL.astype(np.int32) - 4,
         weight=WEIGHT, count=LABEL.astype(np.uint16) + 1)
write("text.csv", "label,a,b\n".encode() + "".join(f"{LABEL[i]},{i},{i * 2}\n" for i in range(N)).encode())
FIELDS = {
    "a": {"label": LABEL.tolist()},
    "w": {"label": (LABEL.astype(int) - 4).tolist(), "weight": [float(w) for w in WEIGHT],
          "count": (LABEL.astype(int) + 1).tolist()},
    "text.csv": {"label": LABEL.tolist()},
}
LISTS = ["", "take=10:200", "take=50%:100%", "split=1@60:40", "part=1of3", "take=5:250,split=0@1:1,part=1of2"]
ORDERS = {"a": ["draw=500:balanced", "classes=3x4"],
          "w": ["draw=500:balanced", "draw=100:weight", "draw=1000:weight", "draw=77:count",
                "classes=2x5"],
          "text.csv": ["draw=64:balanced", "classes=4x3"]}


def labels(folder=CACHE):
    with contextlib.suppress(FileNotFoundError):
        return sorted(os.path.join(folder, "labels", f) for f in os.listdir(f"{folder}/labels"))
    return []


def check(dataset, words, epochs=(0, 1, 2 ** 40)):
    """All batches of some epochs, which have the samples that the reference has."""
    batch = {"classes=3x4": 12, "classes=2x5": 10, "classes=4x3": 12}
    size = next((b for w, b in batch.items() if w in words), 50)
    name = ",".join(w for w in (f"batch={size}", words) if w)
    for epoch in epochs if "seed" in name else (0,):
        folder = path(dataset, "batches", name, *([f"epoch={epoch}"] if "seed" in name else []), "npz")
        made = ref.Plan(N, name, fields=FIELDS[dataset])
        files = sorted(os.listdir(folder))
        equal(len(files), made.batches, f"{dataset}, {name}: batches")
        for i, file in enumerate(files):
            got = np.load(os.path.join(folder, file))
            want = [made.sample(epoch, j) for j in range(i * made.size, min((i + 1) * made.size, made.elements))]
            equal(got["index"].tolist(), want, f"{dataset}, {name}, {epoch}, {i}")
            equal(got["label"].tolist(), [FIELDS[dataset]["label"][s] for s in want], f"{name}: labels")


def words_of(dataset):
    for order in ORDERS[dataset]:
        for chosen in LISTS:
            if dataset == "text.csv" and "part=" in chosen:
                continue  # these shares are cut by bytes
            for seed in ("", "seed=7"):
                yield ",".join(w for w in (chosen, seed, order) if w)
        yield f"rank=1of2,seed=3,{order},tail=wrap"
        yield f"seed=3,{order},limit=60"
        if "draw" in order:
            yield f"seed=4,shuffle=window:16,{order}"


def check_balance():
    """What the words promise, without the reference."""
    folder = path("a/batches/batch=500,seed=1,draw=500:balanced/epoch=0/npz")
    drawn = np.load(f"{folder}/000000.npz")
    equal(np.bincount(drawn["label"])[[0, 3, 4, 9, 250]].tolist(), [100] * 5, "draws of each class")
    times = np.bincount(drawn["index"], minlength=N)
    for c in np.unique(LABEL):
        share = 100 / np.sum(LABEL == c)
        ok = np.isin(times[LABEL == c], [np.floor(share), np.ceil(share)])
        equal(bool(ok.all()), True, f"class {c}: each sample as often as the others")
    drawn = np.load(path("w/batches/batch=1000,seed=1,draw=1000:weight/epoch=4/npz/000000.npz"))
    times = np.bincount(drawn["index"], minlength=N)
    share = 1000 * WEIGHT.astype(float) / WEIGHT.astype(float).sum()
    equal(bool((np.abs(times - share) < 1 + 1e-9).all()), True, "floor or ceil of each share")
    equal(int(times[WEIGHT == 0].sum()), 0, "weight 0 is never drawn")
    rows = np.load(path("a/batches/batch=12,seed=1,classes=3x4/epoch=0/npz/000003.npz"))["label"].reshape(3, 4)
    equal([len(set(r)) for r in rows.tolist()], [1, 1, 1], "a class after the other")
    equal(len(set(rows[:, 0].tolist())), 3, "different classes")


def check_refusals():
    """The name does not open, and the log says why."""
    refused = {
        ("plain-data", "batch=5,draw=10:balanced"): "has no field 'label'; its fields with a number in each sample: none",
        ("plain-data", "batch=6,classes=2x3"): "has no field 'label'",
        ("a", "batch=5,draw=10:weight"): "has no field 'weight'; its fields with a number in each sample: label",
        ("a", "batch=5,draw=10:image"): "field image: expected a number in each sample, got uint8 with axes",
        ("w", "batch=5,draw=10:x"): "field x: expected a number in each sample",
        ("w", "batch=5,draw=10:label"): "weights of field label: sample ",
        ("a", "batch=18,classes=6x3"): "expected at most 5 classes, those of the list, in a batch, got 6",
        ("a", "batch=5,take=7:7,draw=10:balanced"): "expected a list that has samples, got none",
        ("a", "batch=6,take=7:7,classes=2x3"): "expected a list that has samples, got none",
        ("nan", "batch=5,draw=10:weight"): "weights of field weight: sample 7 (nan.npz:",
        ("inf", "batch=5,draw=10:weight"): "expected a weight of 0 or more, got inf",
        ("zero", "batch=5,draw=10:weight"): "expected a weight above 0, got 0 in all 20 samples",
        ("one", "batch=5,take=0:5,draw=10:weight"): "expected a weight above 0 in the list, got 0 in all 5",
        ("half", "batch=5,draw=10:balanced"): "expected a whole number, the number of a class, got 0.5",
        ("large.libsvm", "batch=5,draw=10:balanced"): "expected a class below 2^24",
        ("float16", "batch=5,draw=10:balanced"): "expected a class below 2^11",
    }
    for (dataset, name), why in refused.items():
        expect_error(errno.ENOENT, os.stat, path(dataset, "batches", name))
        contains(log_text().splitlines()[-1], "no such name: ", name, why)
    contains(log_text(), "expected a weight of 0 or more, got nan", "expected a weight of 0 or more, got -")


def save(name, label, weight):
    np.savez(write(f"{name}.npz", b""), x=np.zeros((20, 2), np.float32), label=label, weight=weight)


ONES = np.ones(20)
save("nan", np.arange(20), np.where(np.arange(20) == 7, np.nan, ONES))
save("inf", np.arange(20), np.where(np.arange(20) == 3, np.inf, ONES))
save("zero", np.arange(20), ONES * 0)
save("one", np.arange(20), np.where(np.arange(20) == 6, 1, ONES * 0))
save("float16", (np.arange(20) + 2040).astype(np.float16), ONES)  # 2049 would be 2048
write("large.libsvm", b"".join(b"%d 1:1\n" % (50000000 + i) for i in range(4)))  # three classes as float32
save("half", np.where(np.arange(20) == 5, 0.5, ONES), ONES)

# ---- the reference ----
with mounted(SOURCE, f"cache={CACHE}"):
    for d in ORDERS:
        for w in words_of(d):
            check(d, w, (0, 2 ** 40) if "seed=7" in w else (5,))
    check_balance()
    check_refusals()
    kept = labels()
    equal(any(f.endswith(".part") for f in kept), False, "nothing is half made")
    held = {k["what"]: k["bytes_held"] if "bytes_held" in k else k["bytes"] for k in status()["memory"]["kept"]}
    equal(held["labels"] < 65536, True, f"kept indexes take little memory: {held}")

# ---- kept: another mount makes nothing, but what is damaged ----
def changed(files):
    return {f: os.stat(f).st_ino for f in files}


before = changed(kept)
with mounted(SOURCE, f"cache={CACHE}"):
    for d in ORDERS:
        check(d, f"split=1@60:40,seed=7,{ORDERS[d][0]}")
equal(changed(labels()), before, "no index was made again")
contains(run("cache", "list", CACHE), "labels/")
for f in labels():
    with open(f, "r+b") as opened:
        opened.seek(4096 + 40)
        byte = opened.read(1)[0]
        opened.seek(4096 + 40)
        opened.write(bytes([byte ^ 1]))
contains(run("cache", "verify", CACHE, code=4), "labels/", "damaged")
equal(labels(), [], "damaged ones are removed")
for damage in ("flip", "cut", "rubbish"):
    with mounted(SOURCE, f"cache={CACHE}"):
        check("w", "seed=7,draw=1000:weight", (0,))
        check("a", "split=1@60:40,seed=7,draw=500:balanced", (0,))
    for f in labels():
        size = os.path.getsize(f)
        with open(f, "r+b") as opened:
            if damage == "cut":
                opened.truncate(size // 2)
            else:
                opened.seek(size // 3)
                opened.write(os.urandom(64) if damage == "rubbish" else b"\xff")
with mounted(SOURCE, f"cache={CACHE}"):
    check("w", "seed=7,draw=1000:weight", (0,))
    check("a", "split=1@60:40,seed=7,draw=500:balanced", (0,))

# ---- cut short under a mount: an error, never a wrong sample ----
with mounted(SOURCE, f"cache={CACHE}"):
    check("a", "seed=7,draw=500:balanced", (0,))
    for f in labels():
        os.truncate(f, 0)
    file = path("a/batches/batch=50,seed=7,draw=500:balanced/epoch=9/npy/000003.index.npy")
    expect_error(errno.EIO, content, file)
    contains(log_text(), "index of its labels in the cache folder was cut short; mount again")
    equal(np.load(path("a/batches/batch=50,seed=7/epoch=0/npy/000003.index.npy")).shape, (50,), "other plans")
with mounted(SOURCE, f"cache={CACHE}"):
    check("a", "seed=7,draw=500:balanced", (0,))

# ---- two mounts at once: one index; a plan of the options is listed ----
SECOND, OTHER = f"{PRIVATE}/second", f"{PRIVATE}/other-cache"
os.mkdir(SECOND)
plan = "batch=50,seed=7,draw=500:balanced"
both = [start(SOURCE, f"cache={OTHER}", f"plan={plan.replace(',', '+')}", at=at, log=log)
        for at, log in ((MOUNTPOINT, "log"), (SECOND, "log2"))]
for at in (MOUNTPOINT, SECOND):
    os.stat(f"{at}/a/batches/{plan}")
    equal(plan in os.listdir(f"{at}/a/batches"), True, "listed")
equal(content(SECOND, f"a/batches/{plan}/epoch=3/npz/000001.npz"),
      content(MOUNTPOINT, f"a/batches/{plan}/epoch=3/npz/000001.npz"), "the same bytes")
check("a", "seed=7,draw=500:balanced", (0,))
for daemon in both:
    stop(daemon)
sizes = sorted(os.path.getsize(f) for f in labels(OTHER))
equal(len([s for s in sizes if s >= 4096 + 8 * N + 16 * 5]), 3, f"one index for each dataset that has labels: {sizes}")

# ---- where nothing can be kept: in memory ----
write("../no-folder", b"")
os.environ["EPOCHFS_CACHE"] = f"{PRIVATE}/no-folder/cache"
with mounted(SOURCE):
    check("a", "seed=7,draw=500:balanced", (0,))
    check("w", "seed=7,draw=100:weight", (0,))
    held = {k["what"]: k["bytes"] for k in status()["memory"]["kept"]}
    equal(held["labels"] >= 2 * (4096 + 8 * N), True, f"they are in memory: {held}")

# ---- an index is of one version of the source ----
write("a-labels", idx_bytes(LABEL[::-1].copy()))
FIELDS["a"] = {"label": LABEL[::-1].tolist()}
with mounted(SOURCE, f"cache={CACHE}"):
    check("a", "seed=7,draw=500:balanced", (0,))
    check("a", "split=1@60:40,seed=7,classes=3x4", (0,))
