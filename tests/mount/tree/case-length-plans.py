#!/usr/bin/python3
"""Batches by length against the Python reference of docs/spec/order-length.md: names, counts and samples of a mount, the kept sums, what is refused, `epochfs plan` and `epochfs audit`. Rows of the shared data where there is any."""

import json
import os

import numpy as np

import order_reference
from lib import CACHE, MOUNTPOINT, SOURCE, contains, equal, log_text, mounted, path, run, write

ref = order_reference.load_length()
N = 400
LENGTH = [1 + ref.mix(s) % 40 for s in range(N)]
np.savez(write("w.npz", b""), x=np.zeros((N, 2), np.float32), n=np.array(LENGTH, np.int32), f=np.array(LENGTH, np.float32) - 1)
np.savez(write("v.npz", b""), x=np.zeros((90, 2), np.float32), n=np.arange(90, dtype=np.int32) % 40)
with open("few.txt", "wb") as f:
    f.write(b"".join(b"#%d\n" % s for s in range(0, 300, 3)))
DATA = {"lists": {"few": list(range(0, 300, 3))}}
PLANS = [("batch=n:120,bucket=64,seed=7", 3), ("batch=n:120:3,bucket=64", 0), ("batch=n:300,seed=1", 0),
         ("batch=n:120,bucket=32,group=4,quad=30,rank=1of4,seed=7,tail=drop", 0), ("batch=n:90,bucket=50,rank=2of3,seed=9,tail=wrap", 1),
         ("batch=n:200,only=few,take=10%:90%,length=5:30,split=0@3:1,seed=5", 0), ("batch=n:99,bucket=16,draw=500:uniform,seed=3", 2)]
MIXED = "batch=n:100,bucket=64,seed=7"


def folder(plan, epoch):
    return path("w", "batches", plan, *([f"epoch={epoch}"] if "seed" in plan else []), "npz")


def check(plan, epoch):
    """A few batches, first those that open before the epoch is counted."""
    want = ref.LengthBatches(LENGTH, plan, epoch, **DATA)
    for k in sorted({0, want.batches // 2, want.batches - 1}):
        got = np.load(f"{folder(plan, epoch)}/{k:06d}.npz")["index"].tolist()
        equal(got, want.batch(k), f"{plan}, epoch {epoch}, batch {k}")
    equal(sorted(os.listdir(folder(plan, epoch))), [f"{k:06d}.npz" for k in range(want.batches)], f"{plan}: batches")
    equal(os.path.exists(f"{folder(plan, epoch)}/{want.batches:06d}.npz"), False, f"{plan}: one more")
    return want


def sums():
    return sorted(os.listdir(f"{CACHE}/batches"))


with mounted(SOURCE, "subset=few=few.txt", "mix=m=w*2+v*1", "mix=f=w:only=few*1+v*1"):
    for plan, epoch in PLANS:
        check(plan, epoch)
    kept = sums()
    equal(len(kept) >= len(PLANS) - 1, True, f"kept sums: {kept}")
    for plan in (PLANS[0][0], PLANS[3][0], PLANS[4][0], "batch=f:100,bucket=64", "batch=x:9,bucket=64"):
        contains(run("audit", "--all-ranks", path("w"), plan), "all equal to the stored order")
    for mix, n in (("m", 490), ("f", 190)):
        contains(run("audit", "--epoch=1", path(mix), MIXED), f"{n} samples", "all equal to the stored order")
    for plan, why in (("batch=n:9.5", "expected a whole number of n, got a fraction"), ("batch=tokens:9", "length tokens: the dataset has none"),
                      ("batch=4,length=90:99:n", "expected a sample of such a length")):
        equal(os.path.exists(path("w", "batches", plan)), False, plan)
        contains(log_text(), why)
    equal(json.load(open(path("w", "dataset.json")))["orders"]["length batches"], 1, "the order's version")

for name in kept:  # damaged: counted again
    with open(os.path.join(CACHE, "batches", name), "r+b") as f:
        f.seek(40)
        f.write(b"\xff" * 8)
with open("long.txt", "wb") as f:  # another list of that name
    f.write(b"".join(b"#%d\n" % s for s in sorted(range(N), key=LENGTH.__getitem__)[-100:]))
with mounted(SOURCE, "subset=few=few.txt"):
    for plan, epoch in PLANS:
        check(plan, epoch)
with mounted(SOURCE, "subset=few=long.txt", "mix=f=w:only=few*1+v*1"):
    contains(run("audit", "--epoch=1", path("f"), MIXED), "190 samples", "all equal to the stored order")

want = ref.LengthBatches(LENGTH, PLANS[0][0], 0)
area = sum(len(b) * max(LENGTH[s] for s in b) for b in map(want.batch, range(want.batches)))
said = json.loads(run("plan", "--dry-run", "--json", "-o", f"plan={PLANS[0][0].replace(',', '+')}", SOURCE))["plans"]
said = next(row for row in said if row["dataset"] == "w")
equal((said["batches"], round(said["padding"], 5)), (want.batches, round(1 - sum(LENGTH) / area, 5)), "epochfs plan")

SHARED = os.path.join(os.environ.get("SHARED_DATA", "/"), "sequences")
if os.path.isdir(SHARED):
    with open(f"{SHARED}/EXPECTED-sequences.json", encoding="utf-8") as f:
        expected = json.load(f)
    for source, names in (("lengths", ["documents", "feats.ark"]), ("lengths/tones", ["tones"])):
        with mounted(f"{SHARED}/{source}"):
            for name in names:
                at = name if os.path.isdir(path(name)) else "all"
                for row in expected[f"lengths/{name}"]["plans"]:
                    shown = path(at, "batches", row["plan"], *([f"epoch={row['epoch']}"] if "seed" in row["plan"] else []), "npz")
                    equal(len(os.listdir(shown)), row["batches"], row["plan"])
                    for k, samples in row["samples"].items():
                        equal(np.load(f"{shown}/{int(k):06d}.npz")["index"].tolist(), samples, f"{row['plan']}, batch {k}")
