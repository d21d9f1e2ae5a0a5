#!/usr/bin/python3
"""Blocks that show the form of files, held against such files: the arrays of docs/tables.md, the layout of docs/spec/tables.md, and
the lines of an scp file of docs/speech.md."""

import os
import re

import numpy as np

import kaldi_dirs as kd
from lib import PRIVATE, SOURCE, contains, equal, mounted, path, run, text, write
from page_blocks import ROOT, take

rng = np.random.default_rng(11)


def arrays():
    archive, shown = take("docs/tables.md", "x_train.npy  y_train.npy").splitlines()
    name, members = archive.split(": ")
    datasets, fields = re.fullmatch(r"└── datasets (.*), each with the fields (.*)", shown).groups()
    datasets, fields = datasets.split(" and "), fields.split(" and ")
    members = [member.removesuffix(".npy") for member in members.split()]
    equal(sorted(members), sorted(f"{f}_{d}" for d in datasets for f in fields), "members that the page names")
    stored = {m: rng.integers(0, 9, (8 if m.endswith("train") else 6, 3), dtype=np.uint8) for m in members}
    np.savez(write(name, b""), **stored)
    with mounted(f"{SOURCE}/{name}"):
        equal(sorted(n for n in os.listdir(path()) if os.path.exists(path(n, "dataset.json"))), sorted(datasets), "datasets")
        for dataset in datasets:
            with np.load(path(dataset, "batches/batch=all/npz/000000.npz")) as batch:
                equal(sorted(set(batch) - {"index", "key"}), sorted(fields), f"fields of {dataset}")
                for field in fields:
                    equal(batch[field].tolist(), stored[f"{field}_{dataset}"].tolist(), f"{field} of {dataset}")


# ---- IDX ----

def idx_parts():
    """The bytes of a file by the block, from its type, its dimensions and its elements."""
    block = take("docs/spec/tables.md", "offset 0   00 00")
    offset_of = {words: int(at) for at, words in re.findall(r"offset (\d+) +(\S.*?)(?=    |\n)", block)}
    last = re.search(r"^then +(.*)$", block, re.M)[1]
    order = {"big-endian": ">", "little-endian": "<"}

    def order_of(words):
        return order[re.search("|".join(order), words)[0]]

    def make(code, shape, elements):
        parts = {}
        for words, at in offset_of.items():
            if words.startswith("the dimensions"):
                equal("the number of samples first" in words, True, words)
                width = int(re.search(r"(\d) bytes each", words)[1])
                parts[at] = np.array(shape, f"{order_of(words)}u{width}").tobytes()
            else:
                parts[at] = {"type": bytes([code]), "number of dimensions, 1 to 255": bytes([len(shape)])}.get(words) or \
                    bytes.fromhex(words)
        out = b"".join(parts[at] for at in sorted(parts))
        equal([out[at:at + len(parts[at])] for at in parts], list(parts.values()), "parts at their offsets")
        contains(last, "the elements", "to the end of the file, neither fewer nor more")
        return out + elements.astype(elements.dtype.newbyteorder(order_of(last))).tobytes()

    return make


def types():
    """(code, name) by the table below the block."""
    codes, names = re.search(r"\| type \| (.*) \|\n\|[-|]+\|\n\| shown as \| (.*) \|", text(ROOT, "docs/spec/tables.md")).groups()
    found = [(int(code, 16), name) for code, name in zip(codes.split(" | "), names.split(" | "))]
    equal(len(found), 6, "types of the table")
    return found


def idx():
    make = idx_parts()
    stored = {name: (rng.integers(0, 100, (4, 3, 2)) - (0 if name == "uint8" else 50)).astype(name) for _, name in types()}
    for code, name in types():
        write(f"idx/{name}", make(code, stored[name].shape, stored[name]))
    with mounted(f"{SOURCE}/idx"):
        for name, values in stored.items():
            field = "image" if name == "uint8" else "data"
            found = np.load(path(name, f"batches/batch=all/npy/000000.{field}.npy"))
            equal((found.dtype.name, found.tolist()), (name, values.tolist()), name)
    one = np.ones(1, np.uint8)
    contains(run("info", write("dimensions", make(8, (1,) * 255, one))), "samples  1\n")
    good = make(8, (2, 2), np.ones(4, np.uint8))
    run("info", write("good", good))
    for what, bad in (("no dimensions", make(8, (), one)), ("magic", b"\0\1" + good[2:]), ("fewer", good[:-1]), ("more", good + b"\1")):
        contains(run("info", write(what, bad), code=2), what)


# ---- lines of an scp file ----

# What stands for the program of that name: SPHERE files of 16-bit samples as the program reads them, and WAVE as it writes it.
SPH2PIPE = """#!/usr/bin/python3
import struct, sys
data = open(sys.argv[3], 'rb').read()
size = int(data[8:16])
fields = dict((line.split(None, 2)[::2]) for line in data[16:size].decode().split('end_head')[0].splitlines())
rate, samples = int(fields['sample_rate']), data[size:]
assert data[:8] == b'NIST_1A\\n' and sys.argv[1:3] == ['-f', 'wav']
sys.stdout.buffer.write(b'RIFF' + struct.pack('<I', 36 + len(samples)) + b'WAVEfmt ' +
                        struct.pack('<IHHIIHH', 16, 1, 1, rate, 2 * rate, 2, 16) + b'data' +
                        struct.pack('<I', len(samples)) + samples)
"""


def command(name, program):
    where = f"{PRIVATE}/bin/{name}"
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "w", encoding="utf-8") as f:
        f.write(program)
    os.chmod(where, 0o755)
    os.environ["PATH"] = f"{os.path.dirname(where)}:{os.environ['PATH']}"


def scp():
    lines, said = zip(*(re.split(" {2,}", line) for line in take("docs/speech.md", "sph2pipe -f wav").splitlines()))
    at, part, whole, output = lines
    archive, offset = at.split()[1].rsplit(":", 1)
    first, last, left, right = map(int, re.fullmatch(rf"\S+ {re.escape(archive)}:{offset}\[(\d+):(\d+),(\d+):(\d+)\]", part).groups())
    equal(said[1], f"rows {first} to {last}, columns {left} to {right}, both ends included", "what the page says of a range")
    matrix = rng.normal(size=(last + 9, right + 3)).astype(np.float32)
    key = b"other".ljust(5 + (int(offset) - 26) % 4, b"s")  # whose object ends where utt1's begins: 21 bytes of heads
    others = kd.fm(np.zeros(((int(offset) - len(key) - 21) // 4, 1), np.float32))
    before = key + b" " + others + b"utt1 "
    equal(len(before), int(offset), "offset of utt1's object")
    write(f"kaldi/{archive}", before + kd.fm(matrix))
    waves = [rng.integers(-9999, 9999, (700 + i, 1)).astype(np.int16) for i in range(2)]
    write(f"kaldi/{whole.split(None, 1)[1]}", kd.wave_bytes(kd.Wave(waves[0], 8000)))
    head = b"NIST_1A\n   1024\nsample_rate -i 8000\nsample_n_bytes -i 2\nsample_byte_format -s2 01\nend_head\n"
    write(f"kaldi/{output.split()[-2]}", head.ljust(1024) + waves[1].astype("<i2").tobytes())
    command(output.split()[1], SPH2PIPE)
    want = [matrix, matrix[first:last + 1, left:right + 1], waves[0][:, 0], waves[1][:, 0]]
    # A table has objects of one type.
    for table, its in (("feats.scp", lines[:2]), ("audio.scp", lines[2:])):
        write(f"kaldi/{table}", "".join(line + "\n" for line in its).encode())
    os.chdir(f"{SOURCE}/kaldi")
    with mounted(".", "allow_commands"):
        for table, line, values in zip(("feats.scp", "feats.scp", "audio.scp", "audio.scp"), lines, want):
            found = np.load(path(table, f"samples/npy/{line.split()[0]}.data.npy"))
            equal((found.dtype, found.shape, found.tolist()), (values.dtype, values.shape, values.tolist()), line)
    os.chdir(PRIVATE)


arrays()
idx()
scp()
