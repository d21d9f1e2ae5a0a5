#!/usr/bin/python3
# plain: arithmetic of plans, which fuzz_plan and others run with sanitizers
"""unit=qid: batches of whole queries, against a model that orders queries by docs/spec/order.md and shows their rows."""

import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../.."))
from lib import *  # noqa: E402
from order_reference import load  # noqa: E402

RUNS = [3, 1, 4, 2, 5, 1, 2]  # rows of each query; the fifth has the number of the first
QIDS = [103, 106, 107, 108, 103, 112, 113]
START = np.cumsum([0, *RUNS]).tolist()
write("said/utt2spk", "".join(f"u{i:02} s{i // 3 % 2}\n" for i in range(11)).encode())
write("said/text", "".join(f"u{i:02} words {i}\n" for i in range(11)).encode())
write("rows/t.csv", "a,label\n".encode() + "".join(f"{i},{i // 4}\n" for i in range(11)).encode())
write("rank/rank.txt", "".join(f"{k % 3} qid:{q} {k}:{k + 1}\n" for q, n in zip(QIDS, RUNS) for k in range(n)).encode())


def batch(plan, number=0, epoch=None):
    return np.load(path("rank.txt/batches", plan, "" if epoch is None else f"epoch={epoch}", f"npz/{number:06d}.npz"))


def rows(units):
    return [row for unit in units for row in range(START[unit], START[unit + 1])]


model = load()
with mounted(os.path.join(SOURCE, "rank")):
    # The vectors: queries of a batch.
    for plan, epoch, number, units in (("batch=2,seed=7,unit=qid", 0, 0, [4, 0]), ("batch=2,seed=7,unit=qid", 0, 3, [1]),
                                       ("batch=2,seed=7,unit=qid", 1, 1, [4, 2]), ("batch=2,rank=1of2,seed=7,unit=qid", 0, 1, [2]),
                                       ("batch=all,split=1@80:20,unit=qid", None, 0, [2, 3]), ("batch=all,take=1:3,unit=qid", None, 0, [1, 2]),
                                       ("batch=all,part=1of2,unit=qid", None, 0, [4, 5, 6])):
        found = batch(plan, number, epoch)
        equal(found["index"].tolist(), rows(units), f"{plan} {epoch} {number}")
        equal(found["qid_offsets"].tolist(), np.cumsum([0, *(RUNS[u] for u in units)]).tolist(), f"{plan}: offsets")
        equal(found["qid"].tolist(), np.repeat([QIDS[u] for u in units], [RUNS[u] for u in units]).tolist(), f"{plan}: qid")
    equal(len(os.listdir(path("rank.txt/batches/batch=2,seed=7,unit=qid/epoch=0/npz"))), 4, "batches")
    # Any plan of units is that of as many samples.
    for plan in ("batch=3,seed=9", "batch=2,seed=9,shuffle=window:2", "batch=2,seed=3,draw=9:uniform", "batch=2,seed=5,limit=5,tail=wrap",
                 "batch=2,rank=0of2,seed=5,tail=drop"):
        for epoch in 0, 5:
            for number in range(model.batch_count(7, plan)):
                want = rows(model.batch_samples(7, plan, epoch, number))
                equal(batch(plan + ",unit=qid", number, epoch)["index"].tolist(), want, f"{plan} {epoch} {number}")
    # Batches by length: no more rows than the budget once padded, each query once.
    seen, plan = [], "batch=rows:6,bucket=4,seed=7,unit=qid"
    for name in sorted(os.listdir(path("rank.txt/batches", plan, "epoch=0/npz"))):
        found = np.load(path("rank.txt/batches", plan, "epoch=0/npz", name))
        sizes = np.diff(found["qid_offsets"])
        equal(len(sizes) == 1 or max(sizes) * len(sizes) <= 6, True, f"{name}: {sizes}")
        seen += found["index"].tolist()
    equal(sorted(seen), list(range(START[-1])), "each row once")
    lines = content(path("rank.txt/batches/batch=2,seed=7,unit=qid/epoch=0/svm/000000.svm")).decode().splitlines()
    equal([line.split()[1] for line in lines], ["qid:103"] * 8, "the text")
    contains(log_text(), "unit=qid: 1 of 7 units have a value that an earlier one has")
    equal("qid_offsets" in batch("batch=4").files, False, "without units no offsets")
    equal(os.path.exists(path("rank.txt/batches/batch=2,unit=none")), False, "no such field")
    for words, says in (("limit=8", "expected at most 7, the units of the list, got 8"),
                        ("split=1@1:0", "got none in share 1 of 7 units")):
        equal(os.path.exists(path(f"rank.txt/batches/batch=2,unit=qid,{words}")), False, words)
        contains(log_text(), says)
    equal(batch("batch=rows:4")["index"].tolist(), [0, 1, 2, 3], "without units, the length of a row is its entries: 1 each")
    contains(log_text(), "has no field 'none'")
    contains(run("audit", path("rank.txt"), "batch=2,seed=7,unit=qid"), ": 7 units in 4 batches, of the 7 of the list each once; all equal")
    contains(run("audit", "--all-ranks", path("rank.txt"), "batch=2,rank=0of2,seed=7,split=0@80:20,unit=qid"), "units in", "of the 5 of the list each once")
    contains(run("audit", path("rank.txt"), "batch=rows:6,bucket=4,seed=7,unit=qid"), "each once; all equal")
    wrong = f"{PRIVATE}/wrong"  # a copy, with units that are no runs, and with one unit in the place of another
    for name in ("dataset.json", "batches/batch=2,unit=qid/npz", "batches/batch=2,seed=7,unit=qid/epoch=0/npz"):
        os.makedirs(os.path.dirname(f"{wrong}/{name}"), exist_ok=True)
        (shutil.copytree if name.endswith("npz") else shutil.copyfile)(path("rank.txt", name), f"{wrong}/{name}")
    last = f"{wrong}/batches/batch=2,seed=7,unit=qid/epoch=0/npz/000003.npz"
    for number, offsets, said in ((0, [0, 4, 8], "expected units that are whole runs of a value"), (2, None, "expected 1 to 1 times in the epoch, got 2")):
        with np.load(path(f"rank.txt/batches/batch=2,seed=7,unit=qid/epoch=0/npz/{number:06d}.npz")) as found:
            members = dict(found)
        members["qid_offsets"] = np.array(offsets) if offsets else members["qid_offsets"]
        os.chmod(last, 0o600)
        np.savez(last, **members)
        contains(run("audit", wrong, "batch=2,seed=7,unit=qid", code=5), said)

# Every dataset with such a field, of texts or numbers.
for source, dataset, unit, plan, want in (("said", "all", "utt2spk", "batch=3", [0, 3, 6, 9]), ("rows", "t.csv", "label", "batch=2", [0, 4, 8])):
    with mounted(os.path.join(SOURCE, source)):
        with np.load(path(f"{dataset}/batches/{plan},unit={unit}/npz/000000.npz")) as found:
            equal(found[f"{unit}_offsets"].tolist(), want, unit)
            equal(found["index"].tolist(), list(range(want[-1])), unit)
        equal(f"{unit}_offsets" in np.load(path(f"{dataset}/batches/{plan}/npz/000000.npz")).files, False, "without units no offsets")
