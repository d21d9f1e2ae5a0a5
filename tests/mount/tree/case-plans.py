#!/usr/bin/python3
# slow: many plans, against a reference in Python
"""Plans and epochs against the Python reference of docs/spec/order.md, and their listings."""

import errno
import itertools
import os
import random
import re
import stat
import time

import numpy as np

import order_reference
from lib import (FASHION, MOUNTPOINT, SLOW, contains, content, equal, expect_error, idx_bytes,
                 log_text, mounted, path, small, status, write)

ref = order_reference.load()
rng = random.Random(3)
BEGIN = time.monotonic()
EPOCHS = [0, 1, 2 ** 64 - 1]
N = {"train": 100, "one": 1, "seven": 7, "thousand": 1000}
small(100)
for name, n in N.items():
    if name != "train":
        write(name, idx_bytes(np.arange(n * 2, dtype=np.int16).reshape(n, 2)))


def folder_of(dataset, plan, epoch):
    return path(dataset, "batches", plan, *([f"epoch={epoch}"] if "seed" in plan else []))


def index_of(file):
    return np.load(file).tolist()


def check_plan(dataset, plan, epoch):
    """Names, number and samples of all batches; returns the samples of all of them."""
    n = N[dataset]
    folder = os.path.join(folder_of(dataset, plan, epoch), "npy")
    count = ref.batch_count(n, plan)
    files = sorted(f for f in os.listdir(folder) if f.endswith(".index.npy"))
    equal(files, [f"{i:06d}.index.npy" for i in range(count)], f"{plan}: batches")
    expect_error(errno.ENOENT, os.stat, f"{folder}/{count:06d}.index.npy")
    every = []
    for i, file in enumerate(files):
        want = ref.batch_samples(n, plan, epoch, i)
        equal(index_of(os.path.join(folder, file)), want, f"{dataset}: {plan}, {epoch}, {i}")
        attribute = os.getxattr(os.path.join(folder, file), "user.epochfs.index").decode()
        equal(attribute, ",".join(map(str, want)), f"{plan}: attribute")
        every += want
    return every


def plans(dataset):
    """All combinations of a few values of each parameter."""
    n = N[dataset]
    batches = ["1", "3", str(n), str(n + 5), "all"]
    parts = ["", "part=0of2", "part=2of3", f"part={n}of{n + 1}"]
    ranks = ["", "rank=1of2", "rank=4of5", f"rank={n + 1}of{n + 2}"]
    seeds = ["", "seed=0", "seed=7", f"seed={2 ** 64 - 1}"]
    shuffles = ["", "shuffle=window:1", "shuffle=window:3", f"shuffle=window:{n}",
                f"shuffle=window:{2 ** 48}"]
    tails = ["", "tail=drop", "tail=wrap"]
    for b, *rest in itertools.product(batches, parts, ranks, seeds, shuffles, tails):
        if rest[2] or not rest[3]:
            yield ",".join([f"batch={b}"] + [p for p in rest if p])


def check_combinations():
    for dataset in ("train", "one", "seven"):
        every = list(plans(dataset))
        for plan in rng.sample(every, min(len(every), 60 if SLOW else 250)):
            check_plan(dataset, plan, rng.choice(EPOCHS) if "seed" in plan else 0)
    for epoch in EPOCHS + [3, 2 ** 63]:
        check_plan("train", "batch=32,seed=7", epoch)
        check_plan("train", "batch=32,part=1of3,rank=1of2,seed=9,shuffle=window:4,tail=wrap", epoch)
    check_plan("thousand", "batch=128,seed=1", 5)
    check_plan("thousand", "batch=all,seed=1,shuffle=window:64", 5)


def check_selections():
    """take=, split=, limit= in all combinations of a few values."""
    takes = ["", "take=10:60", "take=0:80%", "take=33%:5000", "take=50:50"]
    splits = ["", "split=0@80:10:10", "split=2@1:2:3", "split=1@0:7"]
    limits = ["", "limit=0", "limit=1", "limit=4"]
    others = ["", "part=1of3", "rank=1of2,tail=wrap", "part=0of2,rank=2of3,tail=drop"]
    orders = ["", "seed=7", "seed=7,shuffle=window:4"]
    every = [",".join(p for p in words if p) for words in itertools.product(["batch=5", "batch=all"], takes, splits, others,
                                                                             orders, limits)]
    for plan in rng.sample(every, 40 if SLOW else 200):
        if "take=50:50" in plan and ("split" in plan or "limit=1" in plan or "limit=4" in plan):
            expect_error(errno.ENOENT, os.stat, path("train/batches", plan))
            continue
        check_plan("train", plan, rng.choice(EPOCHS) if "seed" in plan else 0)
    check_plan("thousand", "batch=64,split=0@9:1,seed=3,limit=500", 2)
    for plan, says in (("batch=1,limit=101", "limit: expected at most 100, the samples of the list, got 101"),
                       ("batch=1,split=0@1:999", "split: expected a share that has samples, got none in share 0 of 100 samples"),
                       ("batch=1,take=5:4", "take: expected A:B with A at most B"),
                       ("batch=1,split=3@1:1", "split: expected K@W0:W1:..., share K (0 or more)")):
        expect_error(errno.ENOENT, os.stat, path("train/batches", plan))
        contains(status(MOUNTPOINT)["last_refused_name"], f"train/batches/{plan}: {says}")


def check_unions():
    """Ranks and parts divide an epoch: no sample is lost or repeated."""
    for ranks, extra in ((3, "seed=5"), (4, "seed=5,shuffle=window:8"), (2, "")):
        seen = []
        for k in range(ranks):
            plan = ",".join(p for p in (f"batch=4,rank={k}of{ranks}", extra) if p)
            seen.append(check_plan("train", plan, 2))
        equal(sorted(sum(seen, [])), list(range(100)), f"union of {ranks} ranks, {extra}")
    parts = [check_plan("train", f"batch=7,part={k}of3,seed=1", 0) for k in range(3)]
    equal(sorted(sum(parts, [])), list(range(100)), "union of parts")
    equal([len(p) for p in parts], [34, 33, 33], "sizes of parts")
    for tail in ("drop", "wrap"):
        sizes = {len(check_plan("train", f"batch=4,rank={k}of3,seed=5,tail={tail}", 2))
                 for k in range(3)}
        equal(len(sizes), 1, f"tail={tail}: every rank gets the same")
    shares = [check_plan("train", f"batch=9,split={k}@80:10:10,seed={k}", k) for k in range(3)]
    equal([len(s) for s in shares], [80, 10, 10], "sizes of the shares of a split")
    equal(sorted(sum(shares, [])), list(range(100)), "union of the shares")
    equal(sorted(check_plan("train", "batch=9,split=1@80:10:10,seed=5", 9)), sorted(shares[1]), "the same in every epoch")
    # The set of samples in a global step does not depend on the number of ranks.
    steps = {}
    for ranks in (1, 2, 4):
        for k in range(ranks):
            samples = check_plan("train", f"batch={20 // ranks},rank={k}of{ranks},seed=8", 1)
            for step in range(5):
                size = 20 // ranks
                steps.setdefault((ranks, step), set()).update(samples[step * size:(step + 1) * size])
    for step in range(5):
        equal(steps[2, step], steps[1, step], "step with 2 ranks")
        equal(steps[4, step], steps[1, step], "step with 4 ranks")


MALFORMED = [
    "batch=0", "batch=", "batch", "batch=-1", "batch=+1", "batch=1.5", "batch=01", "batch=1e3",
    "batch=all2", "batch=ALL", "batch=0x10", "batch= 1", "batch=1 ", "batch=1,", ",batch=1",
    "batch=1,,seed=2", "batch=18446744073709551616", "batch=1,batch=2", "Batch=1", "seed=7", "plan",
    "batch=1,rank=4of4", "batch=1,rank=5of4", "batch=1,rank=0of0", "batch=1,rank=1", "batch=1,rank=of",
    "batch=1,rank=0of", "batch=1,rank=of2", "batch=1,part=1of1", "batch=1,part=-1of2",
    "batch=1,seed=", "batch=1,seed=-1", "batch=1,seed=18446744073709551616", "batch=1,seed=x",
    "batch=1,shuffle=full", "batch=1,seed=1,shuffle=window", "batch=1,seed=1,shuffle=window:",
    "batch=1,seed=1,shuffle=window:0", "batch=281474976710657",
    "batch=1,seed=1,shuffle=window:281474976710657", "batch=1,seed=1,shuffle=none", "batch=1,tail=",
    "batch=1,tail=KEEP", "batch=1,tail=wrap2", "batch=1,colour=red", "batch=1+seed=2", "batch:1",
    "batch=1,seed=1,seed=1", "b\u00e4tch=1", "batch=\u0661", "batch=1\n", "x" * 255,
]
BAD_EPOCHS = ["epoch=", "epoch", "epoch=-1", "epoch=01", "epoch=1.0", "epoch=18446744073709551616",
              "epoch=x", "Epoch=1", "epoch= 1", "epoch=1 ", "epoch=+1", "1", "npy", "epoch=0x1"]


def check_malformed():
    for name in MALFORMED:
        expect_error(errno.ENOENT, os.stat, path("train/batches", name))
    for name in BAD_EPOCHS:
        expect_error(errno.ENOENT, os.stat, path("train/batches/batch=1,seed=1", name))
    for name in ("batch=5/epoch=0", "batch=5/zip", "batch=5/npy/000000.x.npy", "batch=5/npy/0.npz"):
        expect_error(errno.ENOENT, os.stat, path("train/batches", name))


def check_spellings():
    """Any order of the parameters, defaults written out: a link to the canonical name."""
    want = "batch=8,part=1of2,rank=0of3,seed=4,shuffle=window:5,tail=drop"
    words = want.split(",")
    for _ in range(20):
        rng.shuffle(words)
        name = ",".join(words)
        st = os.lstat(path("seven/batches", name))
        equal(stat.S_ISLNK(st.st_mode), name != want, name)
        if name != want:
            equal(os.readlink(path("seven/batches", name)), want, name)
    long = "batch=8,part=0of1,rank=0of1,seed=4,shuffle=full,tail=keep"
    equal(os.readlink(path("seven/batches", long)), "batch=8,seed=4", long)
    equal(os.path.samefile(path("seven/batches", long), path("seven/batches/batch=8,seed=4")), True,
          long)


def check_growing():
    """An opened plan is listed at once, even if the kernel had cached the listing."""
    folder = path("one/batches")
    before = os.listdir(folder)
    for i in range(30):
        os.listdir(folder)  # cached
        if i % 3 == 0:
            os.stat(path(f"one/batches/tail=drop,batch={i + 100}"))  # by a link
        elif i % 3 == 1:
            os.stat(path(f"one/batches/batch={i + 100},tail=drop"))
        else:
            os.stat(path(f"one/batches/batch={i + 100},tail=drop/npz"))
        before.append(f"batch={i + 100},tail=drop")
        equal(os.listdir(folder), before, "a new plan at once, at the end")
    folder = path("one/batches/batch=2,seed=3")
    equal(os.listdir(folder), [], "no epoch was opened")
    seen = []
    for epoch in (5, 0, 2 ** 64 - 1, 7, 6):
        os.stat(f"{folder}/epoch={epoch}/npz/000000.npz")
        seen.append(f"epoch={epoch}")
        equal(os.listdir(folder), seen, "a new epoch at once")
        equal(os.listdir(folder), seen, "and again")
    open_listing = os.scandir(path("one/batches"))
    next(open_listing)
    os.stat(path("one/batches/batch=999"))
    names = [entry.name for entry in open_listing]
    equal(len(set(names)), len(names), "a listing under way has no name twice")


def check_listed_by_option():
    equal(os.listdir(path("train/batches")), ["batch=128,seed=7", "batch=2"], "plan= options")
    equal(os.listdir(path("train/batches/batch=128,seed=7")), ["epoch=0", "epoch=1", "epoch=2"],
          "epochs=3")
    os.stat(path("train/batches/batch=128,seed=7/epoch=1"))
    os.stat(path("train/batches/batch=128,seed=7/epoch=40"))
    equal(os.listdir(path("train/batches/batch=128,seed=7")),
          ["epoch=0", "epoch=1", "epoch=2", "epoch=40"], "an epoch behind the listed ones")
    equal(len(os.listdir(path("train/batches/batch=2"))) > 4, True, "a plan without a seed")


def check_page():
    """The commands on the page work."""
    typed = re.findall(r"^ +ls '(.*?)'", content(path("train/batches/README.txt")).decode(), re.M)
    equal(len(typed), 2, "examples")
    for name in typed:
        equal(os.listdir(path("train/batches", name))[:1], ["000000.npz"], name)
    equal(os.listdir(path("train/batches"))[0], "README.txt", "it stays")


def check_refused():
    """A mistyped plan: the suggestion is in the log, once, and in the status."""
    before = log_text().count("sed=7")
    for _ in range(3):
        expect_error(errno.ENOENT, os.stat, path("train/batches/batch=4,sed=7/epoch=0"))
    reason = "train/batches/batch=4,sed=7: 'sed' is not a parameter of a plan; expected batch, bucket, quad, group, only, " \
             "take, length, split, part, rank, seed, shuffle, draw, classes, limit, tail, unit, picture or augment; is it 'batch=4,seed=7'?"
    contains(log_text(), f"no such name: {reason}\n")
    equal(log_text().count("batch=4,sed=7") - before, 1, "lines of the log")
    equal(status(MOUNTPOINT)["last_refused_name"], reason, "the name in the status")
    expect_error(errno.ENOENT, os.stat, path("train/batches/.hidden"))
    expect_error(errno.ENOENT, os.stat, path("train/batches/desktop.ini"))
    equal(status(MOUNTPOINT)["last_refused_name"], reason, "what is meant for others is not told")
    equal("desktop.ini" in log_text(), False, "nor in the log")


with mounted():
    equal(os.listdir(path("train/batches")), ["README.txt"], "no plan was opened")
    check_page()
    check_refused()
    check_growing()
    check_unions()
    check_selections()
    check_spellings()
    check_malformed()
    check_combinations()
said = log_text().splitlines()
most = 60 + 51 * (time.monotonic() - BEGIN) / 10  # 50 in 10 s, and a line that says how many are omitted
equal(20 < len(said) < most and all(re.match("epochfs: (no such name:|[a-z]+/batches/|[0-9]+ messages? omitted$)", line)
                                  for line in said),
      True, f"what was mistyped, and no more of it than anybody reads: {said}")
with mounted(path().replace("mountpoint", "source"), "plan=batch=128+seed=7,epochs=3",
             "plan=batch=2", "log=debug", log="log.debug"):
    check_listed_by_option()
    check_malformed()
    reasons = log_text("log.debug")
    for name in ("batch=0", "batch=1,rank=4of4", "batch=1,colour=red", "seed=7",
                 "batch=1,shuffle=full", "batch=18446744073709551616", "epoch=x"):
        contains(reasons, f"/{name}: ")
    contains(reasons, "batch: expected", "rank: expected", "'colour' is not a parameter", "batch= is missing",
             "shuffle= needs seed=")

if os.path.isdir(FASHION):
    with mounted(FASHION):
        for epoch, plan, batch in ((0, "batch=8,seed=7", 7499), (1, "batch=128,seed=7", 400),
                                   (10 ** 12, "batch=7,part=3of7,rank=5of8,seed=42,"
                                    "shuffle=window:64,tail=wrap", 153),
                                   (2 ** 64 - 1, "batch=100,seed=18446744073709551615", 599)):
            got = index_of(f"{folder_of('train', plan, epoch)}/npy/{batch:06d}.index.npy")
            equal(got, ref.batch_samples(60000, plan, epoch, batch), plan)
        plan = "batch=all,seed=3"
        got = np.load(f"{folder_of('t10k', plan, 9)}/npy/000000.index.npy")
        equal(sorted(got.tolist()), list(range(10000)), "all of an epoch")
        x = np.load(f"{folder_of('t10k', plan, 9)}/npy/000000.image.npy", mmap_mode="r")
        y = np.load(f"{folder_of('t10k', plan, 9)}/npy/000000.label.npy")
        for place in rng.sample(range(10000), 50):
            key = f"{got[place]:06d}"
            equal(np.array_equal(np.load(path(f"t10k/samples/npy/{key}.image.npy")), x[place]), True,
                  key)
            equal(int(np.load(path(f"t10k/samples/npy/{key}.label.npy"))), int(y[place]), key)
