#!/usr/bin/python3
# needs: data:tokens
"""Token files of real programs, against numpy reading them by itself: as windows, and as documents."""

import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from tokens_model import *  # noqa: E402

REAL = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "tokens")


def read_megatron(stem):
    """As Megatron-LM reads them: tokens in the order of the sequences, and where documents begin."""
    with open(f"{stem}.idx", "rb") as f:
        index = f.read()
    code, n, documents = struct.unpack("<BQQ", index[17:34])
    kind = {1: "<u1", 4: "<i4", 8: "<u2"}[code]
    lengths = np.frombuffer(index, "<i4", n, 34)
    pointers = np.frombuffer(index, "<i8", n, 34 + 4 * n)
    numbers = np.frombuffer(index, "<i8", documents, 34 + 12 * n)
    data = content(f"{stem}.bin")
    sequences = [np.frombuffer(data, kind, length, pointer) for length, pointer in zip(lengths, pointers)]
    before = np.cumsum([0, *lengths])
    return np.concatenate(sequences), [int(before[d]) for d in numbers[:-1]]


streams = {}
for name in ("ag_news_prompt_inputs_document", "meg-gpt2-openwebtext_text_document", "multiseq_modes", "reversed_ptrs"):
    streams[f"megatron/{name}"] = (*read_megatron(f"{REAL}/megatron/{name}"), None)
for name, kind, loss in (("00000_unshuffled.ds", "<u2", True), ("wide_00000_unshuffled.ds", "<u4", False)):
    file = f"{REAL}/datatrove/{name}"
    ends = np.fromfile(f"{file}.index", "<u8").tolist()
    streams[f"datatrove/{name}"] = (np.fromfile(file, kind), [0, *ends[:-1]],
                                    np.fromfile(f"{file}.loss", "u1") if loss else None)
streams["llmc/tiny_shakespeare_val.bin"] = (np.fromfile(f"{REAL}/llmc/tiny_shakespeare_val.bin", "<u2", offset=1024),
                                            None, None)
streams["llmc/agnews_llama3_layout.bin"] = (np.fromfile(f"{REAL}/llmc/agnews_llama3_layout.bin", "<u4", offset=1024),
                                            None, None)


def compare_windows(dataset, windows):
    epoch = path(dataset, "batches/batch=64,seed=7/epoch=0")
    seen = []
    for b in range(-(-len(windows) // 64)):
        index = np.load(f"{epoch}/npy/{b:06d}.index.npy").tolist()
        seen += index
        for name in windows.names() if b < 4 else ["tokens"]:
            found = np.load(f"{epoch}/npy/{b:06d}.{name}.npy")
            want = np.stack([windows.field(name, k) for k in index])
            equal((found.dtype, found.shape), (want.dtype, want.shape), f"{dataset} {name}")
            assert (found == want).all(), f"{dataset}: {name} of batch {b} differs"
    equal(sorted(seen), list(range(len(windows))), f"windows of {dataset}")


with mounted(REAL, "seq=64"):
    for dataset, stream in streams.items():
        compare_windows(dataset, Windows([stream], 64))

# datatrove's own windows do not share a token: one every T + 1
with mounted(os.path.join(REAL, "datatrove"), "seq=64", "stride=65"):
    for name, want in (("00000_unshuffled.ds", 504), ("wide_00000_unshuffled.ds", 91)):
        windows = Windows([streams[f"datatrove/{name}"]], 64, 65)
        equal(len(windows), want, "as datatrove counts them")
        compare_windows(name, windows)

for folder in ("nanogpt", "nanogpt-char", "nanogpt-words"):
    with mounted(os.path.join(REAL, folder), "seq=64", "tokens=u2"):
        for name in ("train.bin", "val.bin"):
            if os.path.exists(f"{REAL}/{folder}/{name}"):
                compare_windows(name, Windows([(np.fromfile(f"{REAL}/{folder}/{name}", "<u2"), None, None)], 64))

# Without seq= a sample is a document
with mounted(REAL):
    for dataset, (tokens, starts, loss) in streams.items():
        if starts is None:
            contains(text(path(dataset, "ERROR.txt")), "give -o seq_len=T")
            continue
        edges = [*starts, len(tokens)]
        documents = [tokens[a:b] for a, b in zip(edges, edges[1:])]
        epoch = path(dataset, "batches/batch=16,seed=7/epoch=0")
        seen = []
        for b in range(-(-len(documents) // 16)):
            batch = np.load(f"{epoch}/npz/{b:06d}.npz")
            seen += batch["index"].tolist()
            offsets = batch["tokens_offsets"]
            for i, k in enumerate(batch["index"]):
                found = batch["tokens"][offsets[i]:offsets[i + 1]]
                equal((found.dtype, found.tolist()), (documents[k].dtype, documents[k].tolist()), f"document {k}")
                if loss is not None:
                    equal(batch["loss"][offsets[i]:offsets[i + 1]].tolist(), loss[edges[k]:edges[k + 1]].tolist(),
                          f"loss of document {k}")
        equal(sorted(seen), list(range(len(documents))), f"documents of {dataset}")
        one = np.load(path(dataset, "samples/npy/000000.tokens.npy"))
        equal(one.tolist(), documents[0].tolist(), "document 0")
