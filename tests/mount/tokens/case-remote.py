#!/usr/bin/python3
"""Tokens on a web server: a folder of all kinds, and one file with those next to it; no byte comes twice."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from servers import *  # noqa: E402
from tokens_model import *  # noqa: E402

rng = np.random.default_rng(9)
WWW = os.path.join(PRIVATE, "www")
tokens = rng.integers(0, 50000, 40000, dtype="u2")
edges = [0, *sorted(rng.integers(1, 40000, 60).tolist()), 40000]
sequences = [tokens[a:b] for a, b in zip(edges, edges[1:])]
files = {"m/x.idx": megatron(sequences, [*range(len(sequences) + 1)], "u2")[0], "m/x.bin": tokens.tobytes(),
         "l/y.bin": llmc(tokens)}
for suffix, data in zip(("", ".index", ".metadata"), datatrove(tokens, edges[1:])):
    files[f"d/z.ds{suffix}"] = data
for name, data in files.items():
    os.makedirs(os.path.dirname(f"{WWW}/{name}"), exist_ok=True)
    with open(f"{WWW}/{name}", "wb") as f:
        f.write(data)


def compare(dataset, documents):
    windows = Windows([(tokens, edges[:-1] if documents else None, None)], 100)
    seen = []
    for b in range(-(-len(windows) // 32)):
        epoch = path(dataset, "batches/batch=32,seed=1/epoch=0")
        index = np.load(f"{epoch}/npz/{b:06d}.npz")["index"].tolist()
        seen += index
        for name in windows.names():
            found = np.load(f"{epoch}/npy/{b:06d}.{name}.npy")
            equal(found.tolist(), np.stack([windows.field(name, k) for k in index]).tolist(), f"{dataset}: {name}")
    equal(sorted(seen), list(range(len(windows))), dataset)


with Nginx(WWW) as server:
    with mounted(f"{server.url}/", "seq=100", f"cache={CACHE}"):
        compare("m/x", True)
        compare("l/y.bin", False)
        compare("d/z.ds", True)
        state = remote()
        assert state["demand_bytes"] + state["background_bytes"] <= sum(map(len, files.values())), state
    # One file, and what it needs next to it
    for source, dataset, documents in (("m/x.idx", "x", True), ("d/z.ds", "z.ds", True), ("l/y.bin", "y.bin", False)):
        with mounted(f"{server.url}/{source}", "seq=100", f"cache={CACHE}"):
            compare(dataset, documents)
    # The same by documents
    with mounted(f"{server.url}/m/", f"cache={CACHE}"):
        equal(json.loads(text(path("x/dataset.json")))["samples"], len(sequences), "documents")
        equal(np.load(path("x/samples/npy/000003.tokens.npy")).tolist(), sequences[3].tolist(), "document 3")
for source, dataset, documents in (("m/x.idx", "x", True), ("d/z.ds", "z.ds", True)):
    with mounted(f"{WWW}/{source}", "seq=100"):
        compare(dataset, documents)


def packed():
    """What a mount shows of packed windows, also as records, whose sizes take reading."""
    plan = path("m/x/batches/batch=16,seed=2/epoch=0")
    return [content(f"{plan}/{name}") for name in ("tfrecord/000001.tfrecord", "npz/000000.npz", "npy/000002.doc.npy")]


options = ("seq_len=100", "pack=20")
with Nginx(WWW) as server:
    with mounted(f"{server.url}/", *options, f"cache={CACHE}-packed"):
        far = packed()
with mounted(WWW, *options):
    equal(far, packed(), "packed windows of a remote")
