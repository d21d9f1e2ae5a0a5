#!/usr/bin/python3
"""Rows of the table of cases that no other case names: what is one dataset and what several, how files are
recognised, and what documents show."""

import gzip
import json
import os
import pickle
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from tokens_model import *  # noqa: E402

rng = np.random.default_rng(55)


def about(at):
    return json.loads(text(path(at, "dataset.json")))


def tokens_of(at, k):
    return np.load(path(at, "samples/npy", f"{k:06d}.tokens.npy"))


def same(found, want, what):
    equal((found.dtype, found.tolist()), (want.dtype, want.tolist()), what)


def pair(name, sequences, kind="u2", packed=False):
    idx, data = megatron(sequences, range(len(sequences) + 1), kind)
    write(f"{name}.idx", idx)
    write(f"{name}.bin{'.gz' if packed else ''}", gzip.compress(data) if packed else data)


def some(n, kind="u2"):
    return rng.integers(0, 60000, n).astype(kind)


# TK-5: two types are two datasets, and no `all` of both
small, large = [some(40)], [some(40, "i4")]
pair("types/a_text_document", small)
pair("types/b_text_document", large, "i4")
with mounted(os.path.join(SOURCE, "types"), "seq=8"):
    same(tokens_of("a_text_document", 1), small[0][8:17], "u2")
    same(tokens_of("b_text_document", 1), large[0][8:17], "i4")
    equal(os.path.exists(path("all")), False, "no dataset of two types")
contains(run("info", os.path.join(SOURCE, "types"), "-o", "seq=8"), "uint16, 9", "int32, 9")

# TK-9: windows inside documents only: as many as each document has
documents = [some(n) for n in (3, 1, 0, 9, 8, 30)]
pair("split/x", documents)
with mounted(os.path.join(SOURCE, "split"), "seq=4,docs=split"):
    equal(about("x")["samples"], sum(max(0, (len(d) - 1) // 4) for d in documents), "TK-9")
    same(tokens_of("x", 0), documents[3][:5], "the first window of the first document that has one")
with mounted(os.path.join(SOURCE, "split"), "seq=4"):
    equal(about("x")["samples"], (sum(map(len, documents)) - 1) // 4, "docs=keep")

# TK-20, TK-30, TK-32: recognised by the .idx, whatever the .bin begins with; sequences of no tokens; a dataset a prefix
elf, packed = np.frombuffer(b"\x7fELF" + bytes(60), "<u2"), np.frombuffer(gzip.compress(b"x" * 99)[:40], "<u2")
idx_like = np.frombuffer(bytes([0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4]), "<u2")
for name, data in (("elf", elf), ("packed", packed), ("idx", idx_like)):
    pair(f"prefixes/{name}_text_document", [data[:5], data[:0], data[5:]])
with mounted(os.path.join(SOURCE, "prefixes")):
    for name, data in (("elf", elf), ("packed", packed), ("idx", idx_like)):
        equal(about(f"{name}_text_document")["samples"], 3, "documents, one of them empty")
        for k, want in enumerate((data[:5], data[:0], data[5:])):
            same(tokens_of(f"{name}_text_document", k), want, f"{name}: document {k}")
    equal(sorted(n for n in os.listdir(path()) if n.endswith("_document")),
          [f"{name}_text_document" for name in ("elf", "idx", "packed")], "a dataset for each prefix")

# TK-33: the .bin packed with gzip
pair("gz/x", documents, packed=True)
with mounted(os.path.join(SOURCE, "gz")):
    for k, want in enumerate(documents):
        same(tokens_of("x", k), want, f"document {k} of a packed file")
pair("gzbad/x", documents)
write("gzbad/x.bin.gz", gzip.compress(b"12345"))
os.remove(os.path.join(SOURCE, "gzbad/x.bin"))
contains(run("info", os.path.join(SOURCE, "gzbad"), code=2), "expected it inside the 5 bytes of x.bin.gz")

# TK-43: meta.pkl is never unpickled, and is no error
os.makedirs(os.path.join(SOURCE, "chars"))


class Evil:
    def __reduce__(self):
        return (os.mkdir, (os.path.join(SOURCE, "unpickled"),))


chars = some(100)
write("chars/train.bin", chars.tobytes())
write("chars/meta.pkl", pickle.dumps(Evil()))
with mounted(os.path.join(SOURCE, "chars"), "seq=9,tokens=u2"):
    same(tokens_of("train.bin", 2), chars[18:28], "raw tokens")
    equal(sorted(os.listdir(path())), [".epochfs", "README.txt", "train.bin"], "no meta.pkl")
    equal(os.path.exists(os.path.join(SOURCE, "unpickled")), False, "nothing was unpickled")

# TK-50, TK-51, TK-53, TK-56, TK-57: llm.c
shards = {f"fineweb_{split}_{i:06d}.bin": some(30 + i) for split, n in (("train", 12), ("val", 2)) for i in range(n)}
for name, data in shards.items():
    write(f"llmc/{name}", llmc(data))
with mounted(os.path.join(SOURCE, "llmc"), "seq=7"):
    for split in ("train", "val"):
        want = [shards[n] for n in sorted(shards) if split in n]
        windows = Windows([(data, None, None) for data in want], 7)
        equal(about(f"fineweb_{split}")["samples"], len(windows), f"windows of {split}")
        for k in range(len(windows)):
            same(tokens_of(f"fineweb_{split}", k), windows.field("tokens", k), f"{split} {k}")
os.unlink(os.path.join(SOURCE, "llmc/fineweb_train_000004.bin"))
lacks = json.loads(run("info", "--json", os.path.join(SOURCE, "llmc"), "-o", "seq=7"))["datasets"]
equal({ds["dataset"]: [part["name"] for part in ds["missing"]] for ds in lacks if ds["missing"]},
      dict.fromkeys(("all", "fineweb_train"), ["fineweb_train_000004.bin"]), "what a shard less leaves out")
run("info", "--check", os.path.join(SOURCE, "llmc"), "-o", "seq=7", code=2)

# Shards of one set that do not fit together, and what is missing of the others
rows = some(20)
parts = [{"": data, ".index": index, ".metadata": about_it} for data, index, about_it in [datatrove(some(20), [8, 20]) for _ in range(3)]]
parts[1][".loss"] = b"\1" * 20
del parts[2][".index"]


def listed(folder, code=0):
    """{dataset: names of what it lacks}, {what is not usable: reason}, notes of `all`"""
    found = json.loads(run("info", "--json", os.path.join(SOURCE, folder), "-o", "seq=4"))
    run("info", "--check", os.path.join(SOURCE, folder), "-o", "seq=4", code=code)
    return ({ds["dataset"]: [part["name"] for part in ds["missing"]] for ds in found["datasets"]},
            {u["name"]: u["reason"] for u in found["unusable"]},
            " ".join(note for ds in found["datasets"] if ds["dataset"] == "all" for note in ds["notes"]))


for which, folder in ((2, "losses"), (3, "indexes")):
    for i, part in enumerate(parts[:which]):
        for suffix, data in part.items():
            if folder == "losses" or suffix != ".loss":
                write(f"{folder}/{i:05}_x.ds{suffix}", data)
datasets, unusable, _ = listed("losses", code=2)
equal((sorted(datasets), list(unusable)), (["00000_x.ds", "00001_x.ds"], ["all"]), "a loss of some files")
contains(unusable["all"], "00000_x.ds: has no .loss, but 00001_x.ds has one: expected 00000_x.ds.loss")
contains(listed("indexes")[2], "00002_x.ds has no index of documents, 00001_x.ds has one")
for i, data in enumerate((llmc(rows), llmc(rows, "u4"), llmc(rows))):
    write(f"unlike/f_train_{i}.bin", data)
contains(listed("unlike", code=2)[1]["all"], "expected uint16 (llm.c) as in f_train_0.bin, got uint32 (llm.c) in f_train_1.bin")
write("unlike/f_val_0.bin", llmc(rows))
datasets, unusable, _ = listed("unlike", code=2)
equal(("all" in datasets, list(unusable)), (False, ["f_train"]), "a set among other files")
for i in range(4):
    pair(f"halves/a_{i}", [rows[:9], rows[9:]])
os.unlink(os.path.join(SOURCE, "halves/a_1.bin"))
equal(listed("halves", code=2)[0]["all"], ["a_1.idx"], "an index without its tokens")
os.unlink(os.path.join(SOURCE, "halves/a_1.idx"))
equal(listed("halves", code=2)[0]["all"], ["a_1.idx"], "a gap")
for i in range(3):
    write(f"broken/f_{i}.bin", llmc(rows)[:None if i != 1 else -2])
equal(listed("broken", code=2)[0]["all"], ["f_1.bin"], "a broken shard")
odd = bytearray(llmc(some(20)))
odd[12:1024] = rng.integers(0, 256, 1012, dtype="u1").tobytes()
write("words/x.bin", bytes(odd))
with mounted(os.path.join(SOURCE, "words"), "seq=4"):
    same(tokens_of("x.bin", 0), np.frombuffer(odd, "<u2")[512:517], "words 3 to 255 of the header do not count")
write("size/x.bin", llmc(some(20))[:-2])
contains(run("info", os.path.join(SOURCE, "size"), "-o", "seq=4", code=2), "x.bin: ", "expected a file of 1064 bytes", "1062")

# TK-66: a window that begins where a document ends begins at position 0
trove = some(40)
for suffix, data in zip(("", ".index", ".metadata"), datatrove(trove, [8, 20, 40])):
    write(f"trove/a.ds{suffix}", data)
with mounted(os.path.join(SOURCE, "trove"), "seq=8"):
    equal(np.load(path("a.ds/samples/npy/000001.pos.npy")).tolist(), list(range(9)), "TK-66")
    equal(np.load(path("a.ds/samples/npy/000000.pos.npy")).tolist(), [*range(8), 0], "the document ends at its last token")

# TK-6, of documents
top = [np.array([1, 2], "<u2"), np.array([65535, 3], "<u2"), np.array([4], "<u2")]
pair("top/x", top)
contains(run("info", "--check", os.path.join(SOURCE, "top")), "x: the largest of all 5 tokens is 65535")
