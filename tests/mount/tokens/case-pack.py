#!/usr/bin/python3
"""Packed windows of each kind of file against the reference of docs/spec/packing.md: every field, kept packings, and what is refused."""

import json
import os
import re
import sys
import types

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from tokens_model import *  # noqa: E402

from page_blocks import ROOT, take  # noqa: E402

rng = np.random.default_rng(9)
reference = types.ModuleType("packing")
exec(take("docs/spec/packing.md", "def pack("), reference.__dict__)

# The table of the page
rows = re.findall(r"^\| ([\d ]+) \| (\d+) \| (\d+) \| (.*) \|$", content(f"{ROOT}/docs/spec/packing.md").decode(), re.M)
for lengths, seq, together, want in rows:
    found = "; ".join("+".join("%d:%d+%d" % piece for piece in sample)
                      for sample in reference.pack([int(n) for n in lengths.split()], int(seq), int(together)))
    equal(found, want, lengths)
equal(len(rows), 6, "rows of the table")


class Packed:
    """Samples of streams [(documents, losses or None)]; index: of one of them in `tokens`, ..."""

    def __init__(self, streams, seq, together, pad=0):
        self.padding = 0
        self.fields = {name: [] for name in ("tokens", "loss", "x", "y", "doc", "pos", "cu")}
        for documents, losses in streams:
            for sample in reference.pack([len(d) for d in documents], seq, together):
                made = [np.concatenate([of[d][at:at + n] for d, at, n in sample]) for of in (documents, losses or documents)]
                tokens = np.full(seq + 1, pad, made[0].dtype)
                tokens[:len(made[0])] = made[0]
                self.padding += seq + 1 - len(made[0])
                doc, pos, loss, cu = reference.fields(sample, seq)
                if losses:
                    loss[:len(made[1])] &= made[1]
                for name, value, kind in (("tokens", tokens, tokens.dtype), ("loss", loss, "u1"), ("x", tokens[:-1], "i8"),
                                          ("y", tokens[1:], "i8"), ("doc", doc, "u4"), ("pos", pos, "i4"), ("cu", cu, "i4")):
                    self.fields[name].append(np.array(value).astype(kind))


def compare(dataset, want, **about):
    found = json.loads(text(path(dataset, "dataset.json")))
    equal({name: found[name] for name in ("samples", *about)}, {"samples": len(want.fields["tokens"]), **about}, dataset)
    plan = path(dataset, "batches/batch=all,seed=3/epoch=1")
    batch = np.load(f"{plan}/npz/000000.npz")
    for name, values in want.fields.items():
        values = np.stack([values[k] for k in batch["index"]])
        shown = batch[name] if name in batch else np.load(f"{plan}/npy/000000.{name}.npy")
        equal((shown.dtype, shown.tolist()), (values.dtype, values.tolist()), f"{dataset} {name}")
    equal(content(path(dataset, "samples/raw/000001.loss.raw")), want.fields["loss"][1].tobytes(), "raw")
    equal(np.load(path(dataset, "samples/npy/000002.x.npy")).tolist(), want.fields["x"][2].tolist(), "a sample")


lengths = [[5, 9, 1, 0, 17, 3, 30, 2, 8, 9, 4], rng.integers(0, 25, 200).tolist()]
documents = [[rng.integers(0, 65535, n).astype("u2") for n in some] for some in lengths]
losses = [(rng.random(n) < 0.7).astype("u1") for n in lengths[1]]
for i, some in enumerate(documents):
    index, data = megatron(some, range(len(some) + 1), "u2")
    write(f"m/x{i}.idx", index)
    write(f"m/x{i}.bin", data)
for suffix, data in zip(("", ".index", ".metadata"), datatrove(np.concatenate(documents[1]), np.cumsum(lengths[1]))):
    write(f"t/a.ds{suffix}", data)
write("t/a.ds.loss", np.concatenate(losses).tobytes())

for _ in "made", "kept":
    with mounted(SOURCE, "seq_len=8", "pack=50", "pad=7", f"cache_dir={CACHE}"):
        for i, some in enumerate(documents):
            compare(f"m/x{i}", Packed([(some, None)], 8, 50, 7), pack=50, pad=7,
                    left_over=sum(len(d) == 1 for d in some), left_over_documents=sum(len(d) < 2 for d in some))
        both = Packed([(some, None) for some in documents], 8, 50, 7)
        compare("m/all", both, padding=both.padding)
        compare("t/a.ds", Packed([(documents[1], losses)], 8, 50, 7))
        place = os.getxattr(path("m/x0/samples/raw/000008.tokens.raw"), "user.epochfs.source").decode()
equal(len(os.listdir(f"{CACHE}/rows")), 3, "a kept packing of each file")
contains(run("info", os.path.join(SOURCE, "m"), "-o", "seq_len=8,pack=50"), "% of the samples are padding; 1 tokens, of 2 documents")

# The page's example, and the index of documents that it needs
some = [rng.integers(0, 65535, n).astype("u2") for n in rng.integers(1, 5000, 40)]
index, data = megatron(some, range(len(some) + 1), "u2")
write("page/train.idx", index)
write("page/train.bin", data)
with mounted(os.path.join(SOURCE, "page"), take("docs/text.md", "pack=4096").split()[3]):
    space = {}
    exec(take("docs/text.md", "cu = np.load").replace("'/mnt/", f"'{path()}/"), space)
    equal((space["x"].shape, space["weight"].shape), ((len(space["tokens"]), 2048),) * 2, "shapes")
    equal(int(space["weight"].sum()), sum(len(d) - 1 for d in some), "each token but a document's first is predicted once")
write("raw/train.bin", data)
contains(run("info", os.path.join(SOURCE, "raw"), "-o", "seq_len=8,pack=50,token_dtype=uint16", code=2),
         "nothing says where its documents end, so -o pack= cannot pack them")
for options, words in (("pack=50", "packs windows of tokens. Add seq_len=2048"), ("seq_len=8,pad=1", "Add seq_len=2048,pack=4096"),
                       ("seq_len=8,pack=5,stride=4", "packed windows begin where documents do"),
                       ("seq_len=8,pack=0", "from 1 to 65536")):
    contains(run("info", os.path.join(SOURCE, "m"), "-o", options, code=1), words)
contains(run("info", os.path.join(SOURCE, "m"), "-o", "seq_len=8,pack=5,pad=65536", code=2),
         "expected -o pad= of at most 65535, a token of uint16, got 65536")
