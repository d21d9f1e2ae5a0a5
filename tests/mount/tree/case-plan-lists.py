#!/usr/bin/python3
"""Plans that take a list of samples, and plans that draw: against the reference of docs/spec/order.md, by
ranks and batch by batch. Bad lists."""

import errno
import os

import numpy as np

import order_reference
from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, equal, expect_error, idx_bytes, log_text,
                 mounted, path, run, small, status, text, write)

ref = order_reference.load()
N = 100
small(N)
write("thousand", idx_bytes(np.arange(2000, dtype=np.int16).reshape(1000, 2)))
KEYS = [f"u{i * 37 % 101:03d}" for i in range(60)]  # in no order, with one that no list has
write("kaldi/text", "".join(f"{k} word {k}\n" for k in sorted(KEYS)).encode())
EPOCHS = [0, 1, 2 ** 64 - 1]


def list_file(name, lines, end="\n"):
    where = os.path.join(PRIVATE, name)
    with open(where, "wb") as f:
        f.write(b"".join(os.fsencode(line + end) for line in lines))
    return where


def folder_of(dataset, plan, epoch):
    return path(dataset, "batches", plan, *([f"epoch={epoch}"] if "seed" in plan else []), "npy")


def batch(dataset, plan, epoch, i):
    return np.load(f"{folder_of(dataset, plan, epoch)}/{i:06d}.index.npy").tolist()


def check_plan(dataset, n, plan, lists):
    """All batches, the last first: each opens alone, so a job resumes anywhere."""
    for epoch in EPOCHS if "seed" in plan else EPOCHS[:1]:
        count = ref.batch_count(n, plan, lists=lists)
        files = [f for f in os.listdir(folder_of(dataset, plan, epoch)) if f.endswith(".index.npy")]
        equal(len(files), count, f"{plan}: batches")
        for i in reversed(range(count)):
            equal(batch(dataset, plan, epoch, i), ref.batch_samples(n, plan, epoch, i, lists=lists),
                  f"{dataset}: {plan}, {epoch}, {i}")


def check_global_batches(plan, n, lists):
    """The same global batches by one rank of 12, two of 6 and three of 4."""
    for i in range(n // 12):
        whole = batch("train", f"batch=12,{plan}", 3, i)
        for ranks in (2, 3):
            parts = [batch("train", f"batch={12 // ranks},{plan.replace('seed', f'rank={k}of{ranks},seed')}", 3, i)
                     for k in range(ranks)]
            equal([x for step in zip(*parts) for x in step], whole, f"{plan}: {ranks} ranks")


def check_file_changes():
    """A dataset that needs the list later than another reads its file again: even without a name, but not
    with another text."""
    first, second = [list_file(name, ["#4", "#2"]) for name in ("removed", "changed")]
    with mounted(SOURCE, f"list=removed={first},list=changed={second}"):
        for name in ("removed", "changed"):
            equal(np.load(path("train", "batches", f"batch=all,only={name}", "npy", "000000.index.npy")).tolist(), [4, 2], name)
        os.remove(first)
        with open(second, "w", encoding="ascii") as f:
            f.write("#4\n#3\n")
        equal(np.load(path("thousand", "batches", "batch=all,only=removed", "npy", "000000.index.npy")).tolist(), [4, 2],
              "a file without a name")
        expect_error(errno.ENOENT, os.listdir, path("thousand", "batches", "batch=all,only=changed"))
        equal(np.load(path("train", "batches", "batch=1,only=changed", "npy", "000001.index.npy")).tolist(), [2],
              "what was read before")
    contains(log_text(), "expected the file that was there when the mount began, got another text in it")


def check_notes():
    """Plans that open, but may not be what was meant."""
    plans = {"batch=4,take=10:1001": "take=: 1001 is past the end (1000 samples of the dataset); using the end",
             "batch=4,only=some,take=0:30": "take=: 30 is past the end (29 lines of the list); using the end",
             "batch=4,take=5:5": "the plan leaves none of 1000 samples",
             "batch=4,seed=1,draw=0:uniform": "the plan leaves none of 1000 samples",
             "batch=4,take=0:3,rank=3of4": "rank 3 has none of 3 samples",
             "batch=4,take=0:3,tail=drop": "tail=drop leaves no batch: 3 samples are fewer than a batch for each rank"}
    announced = "batch=8,take=2000:3000"
    file = list_file("noted", [f"#{i}" for i in some])
    with mounted(os.path.join(SOURCE, "thousand"), f"list=some={file},plan={announced.replace(',', '+')}"):
        for plan in plans:
            os.listdir(path("thousand", "batches", plan))
            os.listdir(path("thousand", "batches", plan))
        os.listdir(path("thousand", "batches", "batch=4,take=0:1000,tail=drop"))
    log = log_text()
    for plan, want in (*plans.items(), (announced, "the plan leaves none of 1000 samples")):
        equal(log.count(f"thousand/batches/{plan}: "), 1, f"{plan}: once")
        contains(log, want)
    equal("take=0:1000" in log, False, "what is right")
    contains(run("plan", "-o", "plan=batch=4+take=10:1001", os.path.join(SOURCE, "thousand")),
             "    note     take=: 1001 is past the end (1000 samples")


some = [3, 99, 3, 0, 57, 58, 59, 3, 12] + list(range(20, 40))
rising = list(range(0, 100, 7))
LISTS = {"some": some, "rising": rising}
options = ["list=some=" + list_file("some", [f"#{i}" for i in some]),
           "list=rising=" + list_file("rising", [f"{i:06d}" for i in rising], "\r\n") + ",plan=batch=4+only=rising",
           "list=utterances=" + list_file("utterances", ["", "u037", f"#{5}", "", "u000", "u037"]),
           "list=wrong=" + list_file("wrong", ["#1"] + [f"no such key {i}" for i in range(1000000)]),
           "list=beyond=" + list_file("beyond", ["#0", "#100", "#1", "#99999999999999999999999", "#-1"]),
           "list=odd=" + list_file("odd", ["\x01\x1b[31m" + "x" * 5000, "#", "%00"])]

with mounted(SOURCE, *options):
    contains("".join(os.listdir(path("train/batches"))), "batch=4,only=rising")
    for words in ("only=some", "only=rising", "only=some,seed=7", "only=rising,seed=1,shuffle=window:2",
                  "only=some,take=2:90%,seed=7", "only=some,split=0@2:1", "only=some,split=1@2:1,seed=3",
                  "only=some,part=1of3", "only=some,rank=1of3,seed=7", "only=some,seed=9,limit=7",
                  "only=some,draw=50:uniform,seed=2"):
        for tail in ("keep", "drop", "wrap"):
            check_plan("train", N, f"batch=4,{words},tail={tail}".replace(",tail=keep", ""), LISTS)
    for words in ("draw=30:uniform", "draw=250:uniform", "draw=250:uniform,seed=7", "draw=7:uniform,seed=7",
                  "seed=7,shuffle=window:9,draw=130:uniform", "rank=2of3,seed=7,draw=250:uniform",
                  "take=0:10%,seed=1,draw=90:uniform,limit=33", "draw=0:uniform,seed=1"):
        for tail in ("keep", "drop", "wrap"):
            check_plan("train", N, f"batch=16,{words},tail={tail}".replace(",tail=keep", ""), {})
    check_plan("thousand", 1000, "batch=100,seed=7,draw=3000:uniform", {})
    check_global_batches("seed=5,draw=120:uniform", 120, LISTS)

    # Other spellings are links to the canonical name.
    equal(os.readlink(path("train/batches/draw=30:uniform,batch=4")), "batch=4,draw=30:uniform", "a link")
    # Labels of a batch are those of its samples, repeats included.
    labels = np.load(path("train/samples/npy/000003.label.npy"))
    equal(np.load(path("train/batches/batch=all,only=some/npy/000000.label.npy"))[[0, 2, 7]].tolist(),
          [int(labels)] * 3, "labels of repeats")
    # Keys, and numbers in the same list.
    order = sorted(KEYS)
    keys = text(path("kaldi/text/batches/batch=all,only=utterances/npy/000000.key.txt")).split()
    equal(keys, ["u037", order[5], "u000", "u037"], "keys, and a number, in the list's order")

    def refused(dataset, plan, *reasons):
        expect_error(errno.ENOENT, os.stat, path(dataset, "batches", plan))
        contains(log_text(), *reasons)
        contains(status(MOUNTPOINT)["last_refused_name"], *reasons)

    refused("train", "batch=4,only=wrong", "line 2: no sample has the key 'no such key 0'; line 3: ",
            "line 4: ", "'no such key 2'; and 999997 more")
    refused("train", "batch=4,only=beyond", "line 2: expected a number below 100, got '#100'",
            "line 4: ", "line 5: no sample has the key '#-1'")
    refused("train", "batch=4,only=odd", "line 1: no sample has the key '??[31mxxx", "...'")
    refused("kaldi/text", "batch=4,only=rising", "no sample has the key '000000'", "and 12 more")
    refused("train", "batch=4,only=none", "(some, rising, utterances, wrong, beyond, odd), got 'none'")
    refused("train", "batch=4,only=some,limit=30", "expected at most 29")
    refused("train", "batch=4,draw=5:uniform,take=5:5", "draw: expected a list that has samples, got none")
    refused("train", "batch=4,draw=0:balanced,take=5:5", "draw: expected a list that has samples, got none")
    refused("train", "batch=4,split=1@1:0,draw=5:balanced", "split: expected a share that has samples, got none in share 1 of")
    refused("train", "batch=4,split=0@0:0", "of up to 16 weights below 2^32 that are not all 0")
    refused("train", "batch=6,classes=2x3,draw=5:uniform", "expected classes= or draw=, got both")
    refused("train", "batch=7,classes=2x3", "expected batch=6 for batches of 2 times 3, got batch=7")
    refused("train", "batch=all,classes=2x3", "got batch=all")
    refused("train", "batch=6,classes=2x3,seed=1,shuffle=window:4", "expected shuffle=full, got window:4")
    refused("train", "batch=6,draw=5", "draw: expected N:uniform")
    refused("train", f"batch=6,draw={2 ** 48 + 1}:uniform", "with N up to 2^48")
    refused("train", "batch=6,draw=5:index", "field index: expected a field that the source has, got the numbers that epochfs gives")
    refused("train", "batch=6,take=0:99.9%", "both numbers of samples up to 2^48, or whole percentages")

check_file_changes()
check_notes()
with mounted(SOURCE):
    expect_error(errno.ENOENT, os.stat, path("train/batches/batch=4,only=some"))
    contains(log_text(), "gives to the mount (there is none), got 'some'")

for option, reason in ((f"list=a={list_file('empty', [])}", "expected a key or #number a line, got no line"),
                       (f"list=a={list_file('empty-lines', ['', ''])}", "got no line"),
                       (f"list=a={PRIVATE}/nothing", "No such file"),
                       (f"list=a={PRIVATE}", "the file of keys cannot be read: a folder"),
                       ("list=a=/dev/zero", "the file of keys cannot be read: no regular file"),
                       (f"list=a={PRIVATE}/some,list=a={PRIVATE}/some", "the name is given twice"),
                       (f"list=a b={PRIVATE}/some", "a name of at most 63 ASCII characters without spaces and"), ("list=a", "expected NAME=FILE"), ("list==x", "expected NAME=FILE"), ("list=a=", "expected NAME=FILE")):
    for command in (["mount", "-f", "-o", option, SOURCE, MOUNTPOINT], ["plan", "-o", option, SOURCE]):
        contains(run(*command, code=1 if "NAME=FILE" in reason or "ASCII" in reason or "twice" in reason else 2), reason)

# The arithmetic of `epochfs plan` knows the words.
shown = run("plan", "-o", f"list=some={PRIVATE}/some,plan=batch=4+only=some,plan=batch=50+draw=1000:uniform+seed=1", SOURCE,
            code=2)  # there is no such list of each dataset
contains(shown, "29 of 100 an epoch: 8 batches of 4", "1000 of 100 an epoch: 20 batches of 50")
