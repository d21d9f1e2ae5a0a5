#!/usr/bin/python3
# slow: every file of a mix
"""A mix of datasets of pictures: every file of it against the files of its sources, and its orders against the
reference of docs/spec/order-mix.md."""

import errno
import io
import json
import os
import tarfile

import numpy as np

import order_reference
from lib import (CACHE, MOUNTPOINT, PRIVATE, contains, content, equal, expect_error, idx_bytes, idx_parse, log_text, mounted, path, run, small,
                 SOURCE)

ref = order_reference.load_mix()
SIZES = {"one": 37, "two": 11, "three": 5}
DATA = {name: small(n, name=f"{name}/", seed=n) for name, n in SIZES.items()}
FIELDS = ("image", "label")
TEXT = "one/train*7+two/train*3+three/train*0.5"
SOURCES = ["one", "two", "three"]


def folder_of(mix, plan, epoch, encoding):
    return path(mix, "batches", plan, *([f"epoch={epoch}"] if "seed" in plan else []), encoding)


def words_of(plan):
    return dict(word.split("=", 1) for word in plan.split(","))


def want_epoch(mix, plan, epoch):
    """(source, place) of all positions of an epoch."""
    words = words_of(plan)
    seed = int(words["seed"]) if "seed" in words else None
    window = int(words["shuffle"].split(":")[1]) if "shuffle" in words else None
    n = min(mix.length, int(words.get("limit", mix.length)))
    return [mix.at(seed, epoch, p, window) for p in range(n)]


def batches_of(plan, positions):
    words = words_of(plan)
    rank, ranks = map(int, words.get("rank", "0of1").split("of"))
    batch, n = int(words["batch"]), len(positions)
    tail = words.get("tail", "keep")
    own = positions[rank::ranks]
    if tail != "keep":
        count = n // ranks // batch if tail == "drop" else -(-(-(-n // ranks)) // batch)
        own = [positions[(j * ranks + rank) % n] for j in range(count * batch)]
    return [own[i:i + batch] for i in range(0, len(own), batch)]


def check_arrays(arrays, samples, sources, places=None):
    """places[source]: the dataset's sample at a place of the source's list; None: they are the same."""
    index = [places[d][x] if places else x for d, x in samples]
    equal(arrays["source"].tolist(), [d for d, _ in samples], "source")
    equal(arrays["index"].tolist(), index, "index")
    for f, field in enumerate(FIELDS):
        want = np.stack([DATA[sources[d]][f][i] for (d, _), i in zip(samples, index)])
        equal(arrays[field].dtype, want.dtype, field)
        equal((arrays[field] == want).all(), True, f"{field} of {samples}")
    equal([k.decode() for k in arrays["key"].tolist()], [f"{d}-{i:06d}" for (d, _), i in zip(samples, index)], "key")


def check_plan(name, mix, plan, epoch, sources, places=None):
    folder = folder_of(name, plan, epoch, "npz")
    want = batches_of(plan, want_epoch(mix, plan, epoch))
    equal(sorted(os.listdir(folder)), [f"{i:06d}.npz" for i in range(len(want))], plan)
    for i, samples in enumerate(want):
        check_arrays(np.load(f"{folder}/{i:06d}.npz"), samples, sources, places)
    return want


def check_encodings(plan, samples):
    """The other encodings of batch 0 say the same as npz."""
    npz = np.load(folder_of("m", plan, 0, "npz") + "/000000.npz")
    npy = folder_of("m", plan, 0, "npy") + "/000000."
    for field in (*FIELDS, "source", "index"):
        equal((np.load(f"{npy}{field}.npy") == npz[field]).all(), True, field)
    equal((np.load(f"{npy}image01.npy") == npz["image"].astype(np.float32) / np.float32(255)).all(), True, "image01")
    equal((np.load(f"{npy}label1h.npy").argmax(1) == npz["label"]).all(), True, "label1h")
    equal(content(f"{npy}key.txt"), b"".join(k + b"\n" for k in npz["key"].tolist()), "key.txt")
    for field in FIELDS:
        equal(content(folder_of("m", plan, 0, "raw"), f"000000.{field}.raw"), npz[field].tobytes(), "raw")
        equal((idx_parse(content(folder_of("m", plan, 0, "idx"), f"000000.{field}.idx")) == npz[field]).all(), True, "idx")
    contains(content(folder_of("m", plan, 0, "png"), "000000.image.png"), b"IHDR")
    with tarfile.open(fileobj=io.BytesIO(content(folder_of("m", plan, 0, "tar"), "000000.tar"))) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}
    for i, key in enumerate(k.decode() for k in npz["key"].tolist()):
        equal(int(members[f"{key}.label.cls"]), int(npz["label"][i]), key)
        equal((np.load(io.BytesIO(members[f"{key}.image.npy"])) == npz["image"][i]).all(), True, key)
    equal(os.getxattr(f"{npy}image.npy", "user.epochfs.index").decode(), ",".join(str(x) for _, x in samples), "index")


def check_samples():
    """samples/ has all samples of the first source, then those of the second, and so on."""
    for encoding in ("npy", "raw", "idx", "png", "npz", "tar"):
        listed = sorted(os.listdir(path("m", "samples", encoding)))
        want = sorted(f"{d}-{file}" for d, source in enumerate(SOURCES)
                      for file in os.listdir(path(source, "train", "samples", encoding)))
        equal(listed, want, encoding)
        for file in listed:
            d, own = file.split("-", 1)
            got, other = content(path("m", "samples", encoding, file)), content(
                path(SOURCES[int(d)], "train", "samples", encoding, own))
            if encoding != "tar":  # whose members are named by the key
                equal(got, other, file)
    where = path("m", "samples", "npy", "1-000004.image.npy")
    equal(os.getxattr(where, "user.epochfs.key"), b"1-000004", "key")
    equal(os.getxattr(where, "user.epochfs.source"),
          os.getxattr(path("two", "train", "samples", "npy", "000004.image.npy"), "user.epochfs.source"), "source")
    for name in ("3-000000", "1-000011", "0-00000", "01-000000", "1-4", "000000", "-1-000000"):
        expect_error(errno.ENOENT, os.stat, path("m", "samples", "npy", f"{name}.image.npy"))


def check_page(mix):
    page = json.loads(content(path("m", "dataset.json")))
    equal(page["format"], "mix", "format")
    equal(page["samples"], sum(SIZES.values()), "samples")
    equal(page["mix"]["text"], TEXT, "text")
    equal([(s["dataset"], s["samples"], s["first_sample"]) for s in page["mix"]["sources"]],
          [("one/train", 37, 0), ("two/train", 11, 37), ("three/train", 5, 48)], "sources")
    equal(page["mix"]["weights"], [{"position": 0, "weights": [14, 6, 1]}], "weights")
    equal(page["mix"]["epoch_samples"], mix.length, "epoch")
    equal(page["orders"], {"mix": 1, "length batches": 1}, "orders")
    equal(len(page["sources"]), 6, "files")


def check_refused():
    """Words that a mix has no meaning for: the plan does not open, and the log says why."""
    for word in ("take=0:5", "split=0@1:1", "part=0of2", "draw=5:uniform", "classes=2x2"):
        plan = "batch=4," + word
        expect_error(errno.ENOENT, os.stat, path("m", "batches", plan))
    contains(log_text(), "take= is not for plans of a mix", "split= is not for", "part= is not for", "draw= is not for")


def first_mix():
    sizes = list(SIZES.values())
    mix = ref.Mix(TEXT, sizes)
    with mounted(SOURCE, f"mix=m={TEXT},classes=10"):
        for epoch in (0, 1, 7, 2**64 - 1):
            want = check_plan("m", mix, "batch=8,seed=7", epoch, SOURCES)
        for plan in ("batch=10", "batch=100,seed=0", "batch=6,seed=7,shuffle=window:3", "batch=4,rank=1of3,seed=2",
                     "batch=4,rank=2of3,seed=2,tail=drop", "batch=4,rank=2of3,seed=2,tail=wrap",
                     "batch=5,rank=1of2,seed=9,limit=33"):
            check_plan("m", mix, plan, 1 if "seed" in plan else 0, SOURCES)
        check_encodings("batch=8,seed=7", want_epoch(mix, "batch=8,seed=7", 0)[:8])
        del want
        check_samples()
        check_page(mix)
        check_refused()
        contains(content(path("README.txt")).decode(), "m/  53 samples")
        contains(run("audit", path("m"), "batch=8,seed=7"), "all equal to the stored order")
        contains(run("audit", path("one/train"), "batch=8,seed=7"), "each once")
        contains(run("info", "-o", f"mix=m={TEXT}", SOURCE), "format   mix", "mix      " + TEXT, "0: one/train, 37 samples")
        contains(run("plan", "-o", f"mix=m={TEXT},plan=batch=8+seed=7", SOURCE), "m, plan batch=8,seed=7\n    samples  53 an epoch: 7 batches of 8")


def plan_bytes():
    """Bytes that `epochfs plan` says a rank reads: a small source comes many times, its blocks once."""
    source, block, side = os.path.join(PRIVATE, "large"), 4096, 64 * 65
    for name, n in (("many", 200), ("few", 9)):
        os.makedirs(f"{source}/{name}")
        with open(f"{source}/{name}/x", "wb") as f:
            f.write(idx_bytes(np.zeros((n, 64, 65), np.uint8)))
    text = "many/x*3+few/x*8"
    mix = ref.Mix(text, [200, 9])
    plans = ("batch=8,seed=7", "batch=4,rank=1of3,seed=7", "batch=8,seed=7,limit=9", "batch=8,seed=7,tail=drop",
             "batch=500,rank=1of2,seed=7,tail=wrap", "batch=50,seed=7,limit=1,tail=wrap")
    options = [o for plan in plans for o in ("-o", "plan=" + plan.replace(",", "+"))]
    said = json.loads(run("plan", "--json", "--rate=1M", "-o", f"cache={CACHE},block={block},mix=m={text}", *options, source))
    for plan in plans:
        found = next(p["epoch_block_bytes"] for p in said["plans"] if (p["dataset"], p["plan"]) == ("m", plan))
        blocks = 0
        for epoch in range(20):
            read = {s for b in batches_of(plan, want_epoch(mix, plan, epoch)) for s in b}
            blocks += len({(d, k) for d, x in read for k in range((16 + x * side) // block, (15 + x * side + side) // block + 1)})
        equal(.7 < found / (blocks / 20 * block) < 1.4, True, f"{plan}: bytes {found}, as counted {blocks / 20 * block}")


def list_of_samples():
    """only= of a source: a list in its own order, with a sample twice."""
    chosen = [3, 9, 3, 0, 36]
    where = os.path.join(os.path.dirname(SOURCE), "chosen")
    with open(where, "w", encoding="ascii") as f:
        f.writelines(f"#{i}\n" for i in chosen)
    mix = ref.Mix("a*1+b*2/60", [5, 11])
    with mounted(SOURCE, f"list=chosen={where},mix=m=one/train:only=chosen*1+two/train*2/60"):
        for plan, epoch in (("batch=7", 0), ("batch=7,seed=3", 2)):
            check_plan("m", mix, plan, epoch, ["one", "two"], [chosen, list(range(11))])


def words_and_changes():
    """Lists of sources, the same dataset twice, weights that change, and ends of epochs."""
    order = order_reference.load()
    shares = [[order.Plan(37, f"batch=1,split={k}@9:1").sample(0, j)
               for j in range(order.Plan(37, f"batch=1,split={k}@9:1").n)] for k in (0, 1)]
    places = [shares[0], shares[1], list(range(2, 8))]
    sources = ["one", "one", "two"]
    texts = {"words": "one/train:split=0@9:1*3+one/train:split=1@9:1*1+two/train:take=2:8*2"}
    for end in ("first", "all", "40"):
        texts[f"until-{end}"] = f"one/train*5+two/train*4+one/train*1@13:two/train*1+one/train*2+one/train*2/{end}"
    with mounted(SOURCE, *(f"mix={name}={text}" for name, text in texts.items())):
        mix = ref.Mix("a*3+b*1+c*2", [len(p) for p in places])
        for epoch in (0, 3):
            check_plan("words", mix, "batch=9,seed=4", epoch, sources, places)
        for end in ("first", "all", "40"):
            # The second stretch names the sources in another order: one/train is source 0, then 2.
            mix = ref.Mix(f"a*5+b*4+a*1@13:b*1+a*2+a*2/{end}", [37, 11, 37])
            for epoch in (0, 1):
                check_plan(f"until-{end}", mix, "batch=16,seed=4", epoch, ["one", "two", "one"])


first_mix()
words_and_changes()
list_of_samples()
plan_bytes()
