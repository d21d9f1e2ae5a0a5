#!/usr/bin/python3
# slow: every field, against numpy
"""Windows of tokens of each kind of file: every field, samples and shuffled batches, against numpy."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from tokens_model import *  # noqa: E402

rng = np.random.default_rng(20)


def some(n, kind):
    info = np.iinfo(np.dtype(kind))
    return rng.integers(info.min, info.max, n, dtype=np.dtype(kind), endpoint=True)


def compare(dataset, windows, samples=7):
    equal(json.loads(text(path(dataset, "dataset.json")))["samples"], len(windows), f"samples of {dataset}")
    if not len(windows):
        return
    some_of = sorted({0, len(windows) - 1, *rng.integers(0, len(windows), samples).tolist()})
    for k in some_of:
        key = f"{k:06d}"
        for name in windows.names():
            want = windows.field(name, k)
            found = np.load(path(dataset, "samples/npy", f"{key}.{name}.npy"))
            equal((found.dtype, found.tolist()), (want.dtype, want.tolist()), f"{dataset} {name} of {k}")
        equal(content(path(dataset, "samples/raw", f"{key}.tokens.raw")), windows.field("tokens", k).tobytes(),
              f"raw of {k}")
    plan = path(dataset, "batches/batch=5,seed=3/epoch=1")
    seen = []
    for b in range(-(-len(windows) // 5)):
        batch = np.load(f"{plan}/npz/{b:06d}.npz")
        index = batch["index"].tolist()
        seen += index
        for name in windows.names():
            want = np.stack([windows.field(name, k) for k in index])
            found = np.load(f"{plan}/npy/{b:06d}.{name}.npy")
            equal((found.dtype, found.tolist()), (want.dtype, want.tolist()), f"{dataset} {name} of batch {b}")
        stored = np.stack([windows.field("tokens", k) for k in index])
        equal(batch["tokens"].tolist(), stored.tolist(), "tokens of the npz")
        equal(content(f"{plan}/raw/{b:06d}.tokens.raw"), stored.tobytes(), "raw of a batch")
    equal(sorted(seen), list(range(len(windows))), "each window once in an epoch")


def megatron_files(name, sequences, documents, kind, **kwargs):
    index, data = megatron(sequences, documents, kind, **kwargs)
    write(f"{name}.idx", index)
    write(f"{name}.bin", data)


sequences = [some(n, "u2") for n in (3, 0, 40, 1, 1, 100, 0, 0, 17, 250)]
tokens = np.concatenate(sequences)
edges = np.cumsum([0, *map(len, sequences)])
documents = [0, 1, 3, 3, 5, 8, 10]  # some of several sequences, one empty
starts = [int(edges[d]) for d in documents[:-1]]
megatron_files("m/gpt_text_document", sequences, documents, "u2")
megatron_files("m/modes", sequences, documents, "u2", modes=[0] * len(sequences))

# TK-28: the sequences in another order in the file, with gaps between them
item, backwards, at = 2, b"", 0
pointers = [0] * len(sequences)
for i in reversed(range(len(sequences))):
    pointers[i] = len(backwards) + 1  # TK-27: and at odd places
    backwards += b"\xff" + sequences[i].tobytes()
index, _ = megatron(sequences, documents, "u2", pointers=pointers)
write("m/backwards.idx", index)
write("m/backwards.bin", backwards)

shards = {f"fineweb_{split}_{i:06d}.bin": some(n, "u2")
          for split, sizes in (("train", (500, 64, 65, 1, 300)), ("val", (100,))) for i, n in enumerate(sizes)}
for name, shard in shards.items():
    write(f"llmc/{name}", llmc(shard))
llama = some(333, "u4")
write("llama/train.bin", llmc(llama, "u4"))

trove = some(400, "u4")
ends = [10, 10, 10, 75, 76, 390]  # TK-63 empty documents; TK-62 ten tokens after the last end
for suffix, data in zip(("", ".index", ".metadata"), datatrove(trove, ends, "u4", "Unknown Tokenizer|2")):
    write(f"trove/00000_unshuffled.ds{suffix}", data)
loss = (rng.random(400) < 0.9).astype("u1")
write("trove/00000_unshuffled.ds.loss", loss.tobytes())
raw = {kind: some(200, kind) for kind in ("u1", "u2", "u4", "i4", "i8")}

for seq, stride, split in ((16, None, False), (1, None, False), (7, 8, False), (64, 3, False), (3, None, True),
                           (20, 21, True), (16, 40, False)):
    options = [f"seq={seq}"] + ([f"stride={stride}"] if stride else [])
    megatrons = [(tokens, starts, None)]
    with mounted(SOURCE, *options, *(["docs=split"] if split else [])):
        for name in ("gpt_text_document", "modes", "backwards"):
            compare(f"m/{name}", Windows(megatrons, seq, stride, split))
        compare("m/all", Windows(megatrons * 3, seq, stride, split), 20)
        compare("trove/00000_unshuffled.ds", Windows([(trove, [0, 10, 75, 76, 390], loss)], seq, stride, split))
        if split:
            continue
        compare("llmc/fineweb_train",
                Windows([(shards[n], None, None) for n in sorted(shards) if "train" in n], seq, stride))
        compare("llmc/fineweb_val_000000.bin", Windows([(shards["fineweb_val_000000.bin"], None, None)], seq, stride))
        compare("llmc/all", Windows([(shards[n], None, None) for n in sorted(shards)], seq, stride))
        compare("llama/train.bin", Windows([(llama, None, None)], seq, stride))

# unit=seq: each sequence is a document
with mounted(os.path.join(SOURCE, "m"), "seq=16", "unit=seq"):
    compare("gpt_text_document", Windows([(tokens, [int(e) for e in edges[:-1]], None)], 16))
    compare("backwards", Windows([(tokens, [int(e) for e in edges[:-1]], None)], 16))

# TK-1, TK-2: how many windows there are
for n, want in ((0, 0), (1, 0), (64, 0), (65, 1), (128, 1), (129, 2)):
    write(f"count/{n}/x.bin", llmc(some(n, "u2")))
with mounted(os.path.join(SOURCE, "count"), "seq=64"):
    for n, want in ((0, 0), (1, 0), (64, 0), (65, 1), (128, 1), (129, 2)):
        equal(json.loads(text(path(f"{n}/x.bin/dataset.json")))["samples"], want, f"windows of {n} tokens")
    about = json.loads(text(path("129/x.bin/dataset.json")))
    equal((about["tokens"], about["left_over"], about["seq"]), (129, 0, 64), "dataset.json")
    equal(json.loads(text(path("128/x.bin/dataset.json")))["left_over"], 63, "left over of 128")
# TK-3
contains(run("info", os.path.join(SOURCE, "count/64"), "-o", "seq=64"), "no window of seq_len=64 fits: the file has 64 tokens")

# Files without a header, of each type (TK-40), and what they begin with when it is a magic (TK-41)
for kind, data in raw.items():
    write(f"raw/{kind}/val.bin", data.tobytes())
    with mounted(os.path.join(SOURCE, "raw", kind), "seq=16", f"tokens={kind}"):
        compare("val.bin", Windows([(data, None, None)], 16))
magic = np.frombuffer(llmc(some(20, "u2")), "<u2")
write("magic/val.bin", magic.tobytes())
with mounted(os.path.join(SOURCE, "magic"), "seq=16", "tokens=raw:u2"):
    compare("val.bin", Windows([(magic, None, None)], 16))

# Tokens that begin as IDX files do; and an IDX file that is one
zeros = np.concatenate([np.array([0, 776, 0, 7], "<u2"), some(200, "u2")])
write("zeros/val.bin", zeros.tobytes())
write("zeros/labels.bin", idx_bytes(np.arange(9, dtype="u1")))
with mounted(os.path.join(SOURCE, "zeros"), "seq=16", "tokens=u2"):
    compare("val.bin", Windows([(zeros, None, None)], 16))
    equal(json.loads(text(path("labels.bin/dataset.json")))["format"], "idx", "an IDX file that is called .bin")

# A part of the samples, and ranks
with mounted(os.path.join(SOURCE, "m"), "seq=16"):
    windows = Windows([(tokens, starts, None)], 16)
    parts = []
    for k in range(3):
        plan = path(f"gpt_text_document/batches/batch=all,part={k}of3/npy")
        parts += np.load(f"{plan}/000000.index.npy").tolist()
    equal(parts, list(range(len(windows))), "parts")
    place = os.getxattr(path("gpt_text_document/samples/raw/000002.tokens.raw"), "user.epochfs.source").decode()
    equal(place, "gpt_text_document.bin:64+34", "user.epochfs.source")

# What a person sees a wrong type by (TK-42), and the largest token of all (TK-6)
letters = rng.integers(97, 123, 40000, dtype="u1")
letters[-1] = 250
write("letters/train.bin", letters.tobytes())
for dtype, first, last in (("u1", letters[:8], 250), ("u2", letters.view("<u2")[:8], int(letters.view("<u2").max()))):
    printed = run("info", "--check", os.path.join(SOURCE, "letters"), "-o", f"seq=64,tokens={dtype}")
    contains(printed, "first    " + " ".join(map(str, first.tolist())) + " ...; the largest of the first 8192 is ",
             f"train.bin: the largest of all {40000 // np.dtype(dtype).itemsize} tokens is {last}")

# Modes of sequences, where each is a document (TK-31)
modes = [0, 1, -1, 127, -128, 5, 6, 7, 8, 9]
megatron_files("modes/x", sequences, documents, "u2", modes=modes)
with mounted(os.path.join(SOURCE, "modes"), "unit=seq"):
    batch = np.load(path("x/batches/batch=10,seed=4/epoch=0/npz/000000.npz"))
    equal((batch["mode"].dtype, batch["mode"].tolist()), (np.dtype("i1"), [modes[k] for k in batch["index"]]), "modes")
    equal(np.load(path("x/samples/npy/000004.mode.npy")).tolist(), -128, "the mode of a sequence")
    equal([batch["tokens"][a:b].tolist() for a, b in zip(batch["tokens_offsets"], batch["tokens_offsets"][1:])],
          [sequences[k].tolist() for k in batch["index"]], "their tokens")
with mounted(os.path.join(SOURCE, "modes")):
    equal("mode" in np.load(path("x/batches/batch=2/npz/000000.npz")).files, False, "documents of several sequences")
