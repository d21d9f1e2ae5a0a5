#!/usr/bin/python3
"""Token files that are damaged, forged, or none: each becomes an error that says what is wrong, and nothing else breaks."""

import json
import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from lib import *  # noqa: E402
from tokens_model import *  # noqa: E402

rng = np.random.default_rng(5)
tokens = rng.integers(0, 60000, 300, dtype="u2")
sequences = [tokens[:100], tokens[100:130], tokens[130:]]
documents = [0, 1, 2, 3]
index, data = megatron(sequences, documents, "u2")


def patched(source, at, value):
    return source[:at] + value + source[at + len(value):]


def pair(name, idx=index, bin=data):
    write(f"m/{name}.idx", idx)
    if bin is not None:
        write(f"m/{name}.bin", bin)


refused = {}  # file -> what its error says
pair("good")
pair("tail", bin=data + b"xyz")  # TK-29
pair("empty", *megatron([], [0], "u2"))
cases = {
    # TK-22
    "version": (patched(index, 9, b"\2"), "byte 9: expected version 1, got 2"),
    "code0": (patched(index, 17, b"\0"), "byte 17: expected a type of tokens (1, 2, 3, 4, 5 or 8), got 0"),
    "code6": (patched(index, 17, b"\6"), "floating point numbers"),
    "code9": (patched(index, 17, b"\x09"), "got 9"),
    # TK-23, TK-24
    "short": (index[:-1], f"expected a file of {len(index)} bytes, or {len(index) + 3} with modes, got {len(index) - 1}"),
    "long": (index + b"xx", "expected a file of"),
    "head": (index[:20], "expected a header of 34 bytes, got 20"),
    "many": (patched(index, 18, struct.pack("<Q", 2**63)), "hold, got 9223372036854775808 and 4"),
    "manydocs": (patched(index, 26, struct.pack("<Q", 2**61)), "hold, got 3 and 2305843009213693952"),
    # TK-25
    "nodocs": (megatron(sequences, [], "u2")[0], "expected at least 1 document number, got 0"),
    "first": (megatron(sequences, [1, 1, 2, 3], "u2")[0], "expected 0 as the first document number, got 1"),
    "last": (megatron(sequences, [0, 1, 2, 2], "u2")[0], "expected 3 as the last document number, as many as sequences, got 2"),
    "falling": (megatron(sequences, [0, 2, 1, 3], "u2")[0], "document 1: expected an end after its begin"),
    "outside": (megatron(sequences, [0, 9, 9, 3], "u2")[0], "expected one of 3 sequences, got 9"),
    # TK-26
    "negative": (patched(index, 38, struct.pack("<i", -5)), "sequence 1: expected a length of at least 0, got -5"),
    "pointer": (patched(index, 46, struct.pack("<q", -8)), "got it at byte -8"),
    "behind": (patched(index, 46 + 16, struct.pack("<q", 2 * 200)), "sequence 2 of 340 bytes: expected it inside the 600 bytes"),
}
for name, (bad, says) in cases.items():
    pair(name, bad)
    refused[f"m/{name}"] = says
pair("cut", bin=data[:-2])
refused["m/cut"] = "sequence 2 of 340 bytes: expected it inside the 598 bytes of m/cut.bin, got it at byte 260"
pair("alone", bin=None)  # TK-21
refused["m/alone.idx"] = "expected the tokens in alone.bin next to it, got no such file"
write("m/lone.bin", data)
refused["m/lone.bin"] = "-o token_dtype=uint16"

write("l/good.bin", llmc(tokens))
lonely = {
    "l/count.bin": (llmc(tokens, count=299), "299 tokens of 2 bytes after a header of 1024: expected a file of 1622 bytes, got 1624"),
    "l/negative.bin": (llmc(tokens, count=-300), "expected a file of"),  # TK-52
    "l/version.bin": (llmc(tokens, version=2), "byte 4: expected version 1 of llm.c's file 20240520, got 2"),  # TK-54
    "l/eval.bin": (llmc(tokens, magic=20240522), "an evaluation file of llm.c"),  # TK-55
    "l/short.bin": (llmc(tokens)[:1000], "expected a header of 1024 bytes, got 1000"),
    "l/odd.bin": (llmc(tokens) + b"x", "got 1625"),  # TK-4
}
for name, (bad, says) in lonely.items():
    write(name, bad)
    refused[name] = says


def trove(name, says=None, ds=tokens.tobytes(), index=np.array([100, 300], "<u8").tobytes(), metadata=b"gpt2|2\n300\n0.3 kT",
          loss=None):
    for suffix, content in (("", ds), (".index", index), (".metadata", metadata), (".loss", loss)):
        if content is not None:
            write(f"d/{name}.ds{suffix}", content)
    if says:
        refused[f"d/{name}.ds"] = says


trove("good")
trove("empty", ds=b"", index=b"", metadata=b"gpt2|2\n0\n0 T")
trove("width", "line 1: expected 2 or 4 bytes of a token after the last |, got '3'", metadata=b"a|b|3\n300\nx")
trove("count", "line 2: expected the number of tokens of 2 bytes in d/count.ds, 300, got 299", metadata=b"a|2\n299\nx")  # TK-61
trove("index", "expected a multiple of 8 bytes, the end of a document, got 15", index=b"x" * 15)  # TK-62
trove("end", "expected an end of at most 300 tokens, got 301", index=np.array([100, 301], "<u8").tobytes())
trove("falling", "expected an end after its begin", index=np.array([100, 50, 300], "<u8").tobytes())
trove("middle", "document 0: expected an end of at most 300 tokens, got 4000", index=np.array([4000, 300], "<u8").tobytes())
trove("loss", "expected a byte for each of 300 tokens, got 299", loss=b"\1" * 299)  # TK-65
trove("guess", "how wide is a token?", metadata=b"gpt2\n300\n", index=np.array([100, 299], "<u8").tobytes())  # TK-60
trove("found", metadata=b"gpt2\n300\n")
trove("noindex", index=None)  # TK-64

with mounted(SOURCE, "seq=16"):
    for name, says in refused.items():
        where = [w for w in (path(name, "ERROR.txt"), path(f"{name}.idx", "ERROR.txt")) if os.path.exists(w)]
        if not where:  # found when it was prepared: the dataset's files fail, and status says why
            contains(run("info", "--json", os.path.join(SOURCE, name.split("/")[0]), "-o", "seq=16"), says.split(" of m/")[0])
            expect_error(errno.EIO, os.listdir, path(name, "samples/raw"))
            continue
        contains(text(where[0]), says)
    for name in ("m/good", "m/tail", "l/good.bin", "d/good.ds", "d/found.ds"):
        windows = Windows([(tokens, None, None)], 16)
        equal(content(path(name, "samples/raw/000001.tokens.raw")), windows.field("tokens", 1).tobytes(), name)
    for name in ("m/empty", "d/empty.ds"):
        equal(os.listdir(path(name, "samples/raw")), [], name)
    names = {n.split(".")[1] for n in os.listdir(path("d/noindex.ds/samples/npy"))}
    assert "tokens" in names and "doc" not in names, names
contains(run("info", os.path.join(SOURCE, "m"), "-o", "seq=16"), "3 bytes after the last sequence are not used")

# TK-8, and other options
for option, says in (("seq=0", "seq=0"), ("seq=-1", "seq=-1"), ("seq=2147483649", "2147483648"), ("tokens=u3", "expected uint8, uint16"),
                     ("tokens=raw", "expected uint8, uint16"), ("docs=cut", "yes or no"), ("stride=0", "stride=0")):
    contains(run("info", os.path.join(SOURCE, "l"), "-o", option, code=1), says)

# TK-7
small()
for option, name in (("seq_len=16", "seq_len"), ("seq=16", "seq_len"), ("tokens=u2", "token_dtype"), ("docs=split", "across_docs"),
                     ("unit=seq", "megatron_unit")):
    contains(run("info", os.path.join(SOURCE, "train-images-idx3-ubyte"), "-o", option, code=2),
             f"option {name}=: expected a source of tokens")

# TK-44, and files that are no tokens although they are called .bin
raw = os.path.join(SOURCE, "raw")
for name, bad, says in (("odd.bin", b"x" * 33, "expected a multiple of 2 bytes, a token of uint16, got 33"),
                        ("elf.bin", b"\x7fELF" + b"\0" * 60, "got a program (ELF)"),
                        ("gz.bin", b"\x1f\x8b\x08" + b"\0" * 61, "gzip data near byte 15"),
                        ("zip.bin", b"PK\3\4" + b"\0" * 60, "got zip")):
    write(f"raw/{name}", bad)
write("raw/good.bin", tokens.tobytes())
write("raw/row.bin", b"8#\xc2\xc2" * 30)  # begins as a row of libsvm does
with mounted(raw, "seq=16", "tokens=u2"):
    equal(json.loads(text(path("row.bin/dataset.json")))["format"], "tokens", "format of row.bin")
    equal(len(content(path("good.bin/samples/raw/000000.tokens.raw"))), 34, "the others")
    for name, says in (("odd.bin", "expected a multiple of 2 bytes"), ("elf.bin", "got a program (ELF)"),
                       ("gz.bin", "gzip data near byte 15"), ("zip.bin", "expected the directory of the archive")):
        contains(text(path(name, "ERROR.txt")), says)
with mounted(raw, "seq=16", "tokens=raw:u2"):
    equal(len(content(path("elf.bin/samples/raw/000000.tokens.raw"))), 34, "raw: takes anything")

# tokens= must agree with a header
contains(run("info", os.path.join(SOURCE, "l/good.bin"), "-o", "seq=16,tokens=u4", code=2),
         "expected tokens of uint32, as -o token_dtype= says, got uint16")
