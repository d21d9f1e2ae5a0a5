#!/usr/bin/python3
"""epochfs audit: epochs of mounts of several formats are what their plans say; what is not right is named.

What is not right is a copy of a mount's files: audit reads files and nothing else."""

import hashlib
import io
import os
import re
import shutil
import tarfile
import zipfile

import numpy as np

from lib import MOUNTPOINT, PRIVATE, SOURCE, contains, equal, mounted, path, run, small, write

N = 50
IMAGES, LABELS = small(N)
rng = np.random.default_rng(11)
write("rows.libsvm", b"".join(b"%d %s\n" % (i % 3, b" ".join(b"%d:%d.5" % (c, i + c) for c in
                                                          np.flatnonzero(rng.random(9) < 0.4) + 1))
                              for i in range(N)))
with tarfile.open(os.path.join(SOURCE, "shard.tar"), "w") as tar:
    for i in range(N):
        for ext, data in (("txt", b"x" * int(rng.integers(0, 9))), ("cls", b"%d" % (i % 4))):
            member = tarfile.TarInfo(f"{i:03}.{ext}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))

np.savez(os.path.join(SOURCE, "half.npz"), x=np.arange(N), weight=(np.arange(N) % 5 / 4).astype(np.float16))

LINE = re.compile(r"(\S+)(?:, epoch (\d+))?(, all ranks)?: (\d+) samples in (\d+) batch(?:es)?, of the "
                  r"(\d+) of the list each (.*); all equal to the stored order; SHA-256 of the epoch "
                  r"([0-9a-f]{64})\n")


def audit(dataset, plan, *flags):
    """The fields of its line: samples, batches, places of the list, how often."""
    printed = run("audit", *flags, path(dataset), plan)
    match = LINE.fullmatch(printed)
    equal(bool(match), True, f"the one line, got {printed!r}")
    equal(match[1], plan, "the plan's name")
    return int(match[4]), int(match[5]), int(match[6]), match[7], match[8]


def check_right():
    for dataset in ("train", "rows.libsvm", "shard.tar"):
        first = audit(dataset, "batch=8")
        equal(first[:4], (N, 7, N, "once"), f"{dataset} in stored order")
        equal(audit(dataset, "batch=all")[:4], (N, 1, N, "once"), f"{dataset} as one batch")
        one = audit(dataset, "batch=8,seed=3", "--epoch=5")
        equal(one[:4], (N, 7, N, "once"), dataset)
        equal(audit(dataset, "batch=16,seed=3", "--epoch=5")[4], one[4], "the same order in other batches")
        equal(audit(dataset, "batch=8,seed=3", "--epoch=6")[4] != one[4], True, "another epoch")
        equal(audit(dataset, "batch=8,take=10:30,seed=3")[:4], (20, 3, 20, "once"), "take")
        equal(audit(dataset, "batch=8,seed=3,limit=9")[:4], (9, 2, N, "at most once"), "limit")
        equal(audit(dataset, "batch=4,rank=1of3,seed=3")[:4], (17, 5, N, "at most once"), "one rank")
        equal(audit(dataset, "batch=4,rank=1of3,seed=3", "--all-ranks")[:4], (N, 14, N, "once"), "all")
        equal(audit(dataset, "batch=4,rank=1of3,seed=3,tail=drop", "--all-ranks")[:4],
              (48, 12, N, "at most once"), "drop")
        equal(audit(dataset, "batch=4,rank=1of3,seed=3,tail=wrap", "--all-ranks")[:4],
              (60, 15, N, "1 or 2 times"), "wrap")


def check_draws():
    """Draws without labels."""
    for plan, want in (("batch=8,draw=30:uniform", (30, 4, N, "at most once")),
                       ("batch=8,seed=3,draw=120:uniform", (120, 15, N, "2 or 3 times")),
                       ("batch=8,seed=3,draw=120:uniform,limit=70", (70, 9, N, None)),
                       ("batch=8,take=10:30,seed=3,draw=40:uniform", (40, 5, 20, "2 times"))):
        found = audit("train", plan)
        equal(found[:3], want[:3], plan)
        equal(want[3] in (None, found[3]), True, f"{plan}: {found[3]}")


def check_half():
    """Weights 0, 1/4, 2/4, 3/4 and 1 of ten samples each, as float16: 25 in sum."""
    equal(audit("half", "batch=8,seed=3,draw=200:weight")[:4], (200, 25, N, "0 to 8 times"), "float16")


def check_lists():
    equal(audit("train", "batch=4,only=some")[:4], (5, 2, 5, "1 or 2 times"), "a list in its order, a sample twice")
    equal(audit("train", "batch=4,only=some,seed=1")[:4], (5, 2, 5, "1 or 2 times"), "the same, shuffled")


def check_classes():
    classes = np.bincount(LABELS)
    found = audit("train", f"batch=8,seed=3,draw={20 * np.count_nonzero(classes)}:balanced")
    equal(found[0], 20 * np.count_nonzero(classes), "balanced")
    for how in ("balanced", "label", "uniform"):  # each of a sample's places has its own floor or ceil
        for n in (70, 333, 1000):
            equal(audit("train", f"batch=50,only=some,seed={n},draw={n}:{how}")[0], n, f"{n} of a list with repeats: {how}")
    found = audit("rows.libsvm", "batch=8,seed=3,draw=150:label")  # labels 0, 1 and 2 as weights
    equal(found[:2], (150, 19), "in proportion to a field")
    rounds, batches = -(-classes.max() // 2), np.count_nonzero(classes) // 4
    equal(audit("train", "batch=8,seed=3,classes=4x2")[:2], (rounds * batches * 8, rounds * batches), "classes")
    for tail in ("keep", "wrap"):  # the last batch is cut, or begins again in the middle of a class
        equal(audit("train", f"batch=8,rank=1of3,seed=3,classes=4x2,limit=13,tail={tail}".replace(",tail=keep", ""),
                    "--all-ranks")[0], 13 if tail == "keep" else 24, f"classes of a limit, {tail}")


def check_mixes():
    equal(audit("both", "batch=8")[:3], (2 * N, 13, 2 * N), "a mix in stored order")
    for epoch in (0, 1, 4):
        equal(audit("both", "batch=8,seed=3", f"--epoch={epoch}")[:3], (2 * N, 13, 2 * N), "a mix")
    equal(audit("both", "batch=8,rank=1of3,seed=3", "--all-ranks")[:3], (2 * N, 15, 2 * N), "all ranks")
    equal(audit("part", "batch=8,seed=3", "--epoch=2")[2], 20 + N, "places of the lists")
    equal(audit("steps", "batch=8,seed=3", "--epoch=1")[0], 2 * N, "weights that change")
    equal(audit("both", "batch=1000,seed=3,tail=drop")[:2], (0, 0), "no batches")
    equal(audit("both", "batch=16,seed=3,limit=1,tail=wrap", "--epoch=1")[:2], (16, 1), "a position that comes 16 times")
    equal(audit("part", "batch=16,rank=7of8,seed=3,tail=wrap", "--all-ranks")[0], 128, "a small source, and twice at the end")
    equal(audit("turns", "batch=8,rank=1of3")[0], 400, "a rank that sees one sample of a source in each of its passes")
    equal(audit("both", "batch=8,seed=3", f"--epoch={2**64 - 1}")[0], 2 * N, "the last epoch")
    equal(audit("both", "batch=10,rank=2of5,seed=3,limit=2", "--all-ranks")[:2], (2, 2), "a rank without batches")


def check_wrong_classes():
    plan, copied = "batch=8,seed=3,classes=4x2", f"{PRIVATE}/classes"
    for part in (f"{plan}/epoch=0", "batch=8"):
        shutil.copytree(path("train/batches", part, "npz"), f"{copied}/batches/{part}/npz")
    shutil.copyfile(path("train/dataset.json"), f"{copied}/dataset.json")
    run("audit", copied, plan)
    with np.load(f"{copied}/batches/{plan}/epoch=0/npz/000001.npz") as batch:
        arrays = {k: batch[k] for k in batch.files}
    for places, found in (([0, 2, 1, 3, 4, 5, 6, 7], "expected a run of 2 samples of a class, got another class"),
                          ([0, 1, 2, 3, 0, 1, 6, 7], "expected 4 different classes")):
        np.savez(f"{copied}/batches/{plan}/epoch=0/npz/000001.npz", **{k: v[places] for k, v in arrays.items()})
        contains(run("audit", copied, plan, code=5), found)


def check_wrong_mix():
    copied = f"{PRIVATE}/mixed"
    epoch = f"{copied}/both/batches/batch=8,seed=3/epoch=0/npz"
    for part in ("both/batches/batch=8,seed=3/epoch=0", "train/batches/batch=8", "other.train/batches/batch=8"):
        os.makedirs(f"{copied}/{part}/npz")
        for name in os.listdir(path(part, "npz")):
            shutil.copyfile(path(part, "npz", name), f"{copied}/{part}/npz/{name}")
    shutil.copyfile(path("both", "dataset.json"), f"{copied}/both/dataset.json")
    run("audit", f"{copied}/both", "batch=8,seed=3")
    with np.load(f"{epoch}/000003.npz") as batch:
        arrays = {k: batch[k] for k in batch.files}
    order = np.argsort(arrays["source"], kind="stable")  # all of one source first: its share is wrong
    np.savez(f"{epoch}/000003.npz", **{k: v[order] for k, v in arrays.items()})
    contains(run("audit", f"{copied}/both", "batch=8,seed=3", code=5), "has not the share of its weight")
    np.savez(f"{epoch}/000003.npz", **arrays | {"source": arrays["source"] + 7})
    contains(run("audit", f"{copied}/both", "batch=8,seed=3", code=5), "expected samples of the mix's sources")
    arrays["image"][0, 0, 0] ^= 1
    np.savez(f"{epoch}/000003.npz", **arrays)
    contains(run("audit", f"{copied}/both", "batch=8,seed=3", code=5), "differs from the stored order")


def check_wrong_shares():
    """A sample of source 0 where one of source 1 should be, which the counts of samples allow."""
    copied = f"{PRIVATE}/shares"
    for part in [f"both/batches/batch=8,rank={k}of2,seed=3/epoch=0" for k in (0, 1)] + ["train/batches/batch=8",
                                                                                   "other.train/batches/batch=8"]:
        shutil.copytree(path(part, "npz"), f"{copied}/{part}/npz")
    shutil.copyfile(path("both", "dataset.json"), f"{copied}/both/dataset.json")
    arguments = ("audit", "--all-ranks", f"{copied}/both", "batch=8,rank=0of2,seed=3")
    run(*arguments)
    batch = f"{copied}/both/batches/batch=8,rank=1of2,seed=3/epoch=0/npz/000000.npz"
    with np.load(batch) as old:
        source = old["source"]
        places = np.where(source == 1, np.flatnonzero(source == 0)[0], np.arange(8))
        arrays = {k: old[k][places] for k in old.files}
    np.savez(batch, **arrays)
    contains(run(*arguments, code=5), "samples from 0 on: expected 75 to 75 of their source in the epoch, got")


def check_digest():
    """The digest, computed as python/epochfs/_audit_batch.py defines it."""
    whole = hashlib.sha256()
    with np.load(path("train", "batches", "batch=all", "npz", "000000.npz")) as batch:
        for i in range(N):
            state = bytes(32)
            for name in batch.files:
                if name not in ("index", "source"):
                    data = batch[name][i].tobytes().rstrip(b"\0" if batch[name].dtype.kind == "S" else b"")
                    state = hashlib.sha256(state + name.encode() + b"\0" +
                                           len(data).to_bytes(8, "little") + data).digest()
            whole.update(state)
    equal(audit("train", "batch=8")[4], whole.hexdigest(), "SHA-256 of the epoch")


# ---- what is not right ----

COPY = f"{PRIVATE}/copy"
PLAN = "batch=8,seed=3"
EPOCH = f"{COPY}/batches/{PLAN}/epoch=0/npz"


def copy(folder):
    shutil.rmtree(COPY, ignore_errors=True)
    for part in ("dataset.json", "batches/batch=8/npz", f"batches/{PLAN}/epoch=0/npz"):
        to = f"{COPY}/{part}"
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if part.endswith("npz"):
            os.makedirs(to)
            for name in os.listdir(f"{folder}/{part}"):
                shutil.copyfile(f"{folder}/{part}/{name}", f"{to}/{name}")
        else:
            shutil.copyfile(f"{folder}/{part}", to)


def change(name, **columns):
    """Write a batch of the copied epoch again, with other columns; None: without it."""
    with np.load(f"{EPOCH}/{name}") as batch:
        arrays = {k: batch[k] for k in batch.files} | columns
    np.savez(f"{EPOCH}/{name}", **{k: v for k, v in arrays.items() if v is not None})


def refused(*words):
    printed = run("audit", COPY, PLAN, code=5)
    contains(printed, *words)


def check_wrong(folder):
    copy(folder)
    run("audit", COPY, PLAN)
    with np.load(f"{EPOCH}/000002.npz") as batch:
        image, index = batch["image"].copy(), batch["index"].copy()
    image[5, 2, 2] ^= 1
    change("000002.npz", image=image)
    refused(f"batches/{PLAN}/epoch=0/npz/000002.npz: place 5: sample {index[5]} differs from the stored order",
            "1 fault")
    image[5, 2, 2] ^= 1
    change("000002.npz", image=image, index=np.roll(index, 1))
    refused("differs from the stored order", "faults")

    copy(folder)  # a batch twice, and another not
    shutil.copyfile(f"{EPOCH}/000001.npz", f"{EPOCH}/000004.npz")
    printed = run("audit", COPY, PLAN, code=5)
    contains(printed, "expected 1 to 1 times in the epoch, got", "16 faults")
    equal(len(printed.splitlines()), 4, "lines: the first three faults, and a count")

    copy(folder)
    os.remove(f"{EPOCH}/000006.npz")  # the last one
    refused("expected 50 samples in the epoch, got 48", "3 faults")
    copy(folder)
    os.remove(f"{EPOCH}/000003.npz")
    refused("expected batches 0 to 6, got 6 of them")
    copy(folder)
    os.truncate(f"{EPOCH}/000003.npz", 500)
    refused("000003.npz")
    for columns, words in (({"index": None}, "index.npy"), ({"image": image[:3]}, "image"),
                           ({"index": np.arange(8) + 10 ** 12}, "is not in the plan's list"),
                           ({"image_offsets": np.arange(9)[::-1]}, "offsets that grow from 0"),
                           ({"image_offsets": np.arange(9) + 10 ** 15}, "offsets"),
                           ({"label": np.array(3)}, "label")):
        copy(folder)
        change("000002.npz", **columns)
        refused(words)
    copy(folder)  # deflated: epochfs stores
    with zipfile.ZipFile(f"{EPOCH}/000002.npz", "w", zipfile.ZIP_DEFLATED) as z, \
            zipfile.ZipFile(f"{EPOCH}/000001.npz") as old:
        for name in old.namelist():
            z.writestr(name, old.read(name))
    refused("expected an array that is stored as it is")


def check_usage(folder):
    for words, code, found in (
            ((MOUNTPOINT,), 1, "expected MOUNTPOINT PLAN, got 1 argument; see"),
            ((MOUNTPOINT, "batch=8"), 1, "expected the folder of one dataset, got 9"),
            ((folder, "batch=x"), 1, "batch"),
            ((folder, "batch=8,sed=3"), 1, "'sed' is not a parameter"),
            (("--epoch=1", folder, "batch=8"), 1, "expected a plan with epochs"),
            (("--epoch=-1", folder, PLAN), 1, "--epoch"),
            (("--all-ranks", folder, "batch=8,rank=0of99999"), 1, "expected at most 65536 ranks"),
            ((f"{PRIVATE}/none", "batch=8"), 3, "No such file"),
            ((folder, "batch=8,limit=1000"), 3, "train/batches/batch=8,limit=1000: limit: expected at most 50"),
            ((folder, "batch=8,only=none"), 3, "only: expected the name of a list"),
            ((MOUNTPOINT + "/train/", "batch=99,seed=1,classes=99x1"), 3, "classes: expected at most")):
        contains(run("audit", *words, code=code), found)


with open(f"{PRIVATE}/some", "w", encoding="utf-8") as f:
    f.write("#3\n#40\n#3\n000007\n#49\n")
small(N, "other.", seed=2)
with mounted(SOURCE, f"list=some={PRIVATE}/some", "mix=both=train*3+other.train*1",
             "mix=part=train:take=0:20*1+other.train*2", "mix=steps=train*3+other.train*1@30:train*1+other.train*1",
             "mix=turns=train*7+other.train:take=0:5*5/1200"):
    check_right()
    check_lists()
    check_classes()
    check_mixes()
    check_wrong_classes()
    check_wrong_mix()
    check_wrong_shares()
    check_draws()
    check_half()
    check_digest()
    check_usage(path("train"))
    check_wrong(path("train"))
