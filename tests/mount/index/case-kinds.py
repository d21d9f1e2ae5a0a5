#!/usr/bin/python3
# slow: makes each kind of index
"""Each kind of index that a mount keeps is written by `epochfs index`, and used by a mount that finds it on a server:
no index is made there, and all samples are as without. A copy of the folder elsewhere also shows the same samples."""

import glob
import hashlib
import os
import re
import shutil
import sys

import numpy as np

import kaldi_dirs
from lib import CACHE, PRIVATE, SLOW, contains, content, equal, log_text, run, stop
from mindrecord_model import make
from page_blocks import take
from servers import Nginx, files_below, place, start_at
from tar_model import shard
from tfrecord_model import example, frame, integers, strings
from tokens_model import datatrove, megatron

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "recordio"))
from recordio_model import picture, read, record  # noqa: E402

WWW, OUT = f"{PRIVATE}/www", f"{PRIVATE}/out"
OLD = 1600000000
rng = np.random.default_rng(12)


def lines(make_line, n=300):
    return b"".join(make_line(i) + b"\n" for i in range(n))


def numbers(i):
    return b",".join(b"%d.%d" % (v, i) for v in rng.integers(0, 9, 5))


def kinds():
    """kind: (its files, how many indexes)."""
    jpg = b"\xff\xd8\xff\xe0" + bytes(range(200))
    rec = b"".join(record(picture(float(i % 3), i, jpg + b"%d" % i)) for i in range(50))
    tokens = rng.integers(0, 50000, 20000, dtype="u2")
    edges = [0, *sorted(rng.integers(1, 20000, 40).tolist()), 20000]
    utterances = [f"utt{i:03d}" for i in range(60)]
    ark, at = kaldi_dirs.archive([(key, kaldi_dirs.fm(rng.random((5 + i % 7, 4), dtype=np.float32)))
                                  for i, key in enumerate(utterances)])
    return {
        "tar": ({"a.tar": shard([(f"{i:04d}.bin", rng.bytes(3000)) for i in range(40)])}, 1),
        "tfrecord": ({"a.tfrecord": b"".join(frame(example(x=strings(rng.bytes(100)), label=integers(i)))
                                             for i in range(200))}, 1),
        "recordio": ({"a.rec": rec}, 1),
        "recordio-idx": ({"a.rec": rec, "a.idx": "".join(f"{i}\t{at}\n" for i, (at, _) in enumerate(read(rec))).encode()}, 1),
        "mindrecord": ({"a.mindrecord": make({"image": {"type": "bytes"}, "label": {"type": "int32"}},
                                             [{"image": rng.bytes(50), "label": i} for i in range(30)],
                                             addresses=["a.mindrecord"])}, 1),
        "csv": ({"a.csv": lines(numbers)}, 1),
        "jsonl": ({"a.jsonl": lines(lambda i: b'{"i": %d}' % i)}, 1),
        "libsvm": ({"a.txt": lines(lambda i: b"%d 1:%d 7:0.5" % (i % 2, i + 1))}, 1),
        "libfm": ({"a.libfm": lines(lambda i: b"%d 0:1:%d 1:7:0.5" % (i % 2, i + 1))}, 1),
        "kaldi": ({"a.ark": ark}, 1),
        "kaldi-dir": ({"feats.ark": ark, "feats.scp": "".join(f"{key} feats.ark:{p}\n" for key, p in
                                                              zip(utterances, at)).encode(),
                       "text": "".join(f"{key} some words\n" for key in utterances).encode()}, 3),
        "megatron": ({"x.idx": megatron([tokens[a:b] for a, b in zip(edges, edges[1:])], [*range(len(edges))], "u2")[0],
                      "x.bin": tokens.tobytes()}, 1),
        "datatrove": ({f"z.ds{suffix}": data for suffix, data in
                       zip(("", ".index", ".metadata"), datatrove(tokens, edges[1:]))}, 1),
        "pairs": ({f"{i:03d}.{ext}": body for i in range(60) for ext, body in (("jpg", jpg), ("cls", b"%d" % i))}, 1),
    }


def samples(at):
    """All files of samples/, by their names, but scp files, which name the mountpoint."""
    found = {}
    for path, _ in files_below(at):
        if "/samples/" in path and not path.endswith(".scp"):
            found[os.path.relpath(path, at)] = hashlib.sha256(content(path)).hexdigest()
    return found


def mount_and_read(source, cache, server=None):
    """What is shown; and with a server: the requests for .epochfs/."""
    daemon = start_at(f"at-{cache}", source, f"cache={CACHE}.{cache}", "stage=off")
    found = samples(daemon.at)
    asked = sum("/.epochfs/" in r.path for r in server.log(False)) if server else 0
    stop(daemon)
    equal("is ignored" in log_text(f"log.at-{cache}"), False, log_text(f"log.at-{cache}"))
    return found, asked


def check_table(table):
    """Each line has one of the forms of docs/spec/index-format.md. Returns the forms that were found."""
    page = take("docs/spec/index-format.md", "epochfs-index 3").splitlines()
    known = {re.sub(r"<[^>]*>", "<>", line): re.compile("".join(
        {"<bytes>": r"\d+", "<version>": r"(?:etag:\S+|time:\d+\.\d{9}|-)"}.get(piece) or
        (r"[0-9a-f]{64}" if piece.startswith("<SHA-256") else ".+" if piece.startswith("<") else re.escape(piece))
        for piece in re.split(r"(<[^>]*>)", line))) for line in page}
    found = set()
    for line in table.splitlines():
        forms_of = [form for form, pattern in known.items() if pattern.fullmatch(line)]
        equal(len(forms_of), 1, f"forms of the page that {line!r} has")
        found.update(forms_of)
    equal(table.splitlines()[0], page[0], "the first line")
    return found


def check(kind, files, n):
    root = f"{WWW}/{kind}"
    for name, data in files.items():
        os.utime(place(root, name, data), (OLD, OLD))
    with Nginx(root) as server:
        want, _ = mount_and_read(f"{server.url}/", f"{kind}-without", server)
        equal(len(want) > 0, True, f"{kind}: samples")
        shutil.rmtree(OUT, ignore_errors=True)
        contains(run("index", f"{server.url}/", "-o", OUT, "-o", f"cache={CACHE}.{kind}-index"), "written")
        table = content(OUT, "index.txt").decode()
        forms.update(check_table(table))
        written = table.count("\nindex ")
        equal(written >= n, True, f"{kind}: {written} indexes")
        equal(len(os.listdir(OUT)), 2, f"{kind}: files of {written} indexes")
        shutil.copytree(OUT, f"{root}/.epochfs")
        server.forget()
        found, asked = mount_and_read(f"{server.url}/", f"{kind}-with", server)
        equal(found == want, True, f"{kind}: samples with .epochfs/")
        equal(asked, 2, f"{kind}: requests for .epochfs/, of {written} indexes")
    copy = f"{PRIVATE}/copy-{kind}"
    shutil.copytree(root, copy)
    found, _ = mount_and_read(copy, f"{kind}-copy")
    equal(found == want, True, f"{kind}: samples of a copy")
    print(f"{kind}: {written} indexes, {len(want)} files")


forms = set()
for name_, (files_, n_) in kinds().items():
    check(name_, files_, n_)
equal({form.split()[0] for form in forms} - {"listing"}, {"epochfs-index", "file", "index", "joined"}, "forms of the page that were found")

# The indexes of many files are one request, unless they are large.
MANY = 40
for k in range(MANY):
    place(f"{WWW}/many", f"p-{k:02d}.jsonl", b'{"t": %d}\n' % k)
with Nginx(f"{WWW}/many") as many:
    shutil.rmtree(OUT)
    contains(run("index", f"{many.url}/", "-o", OUT, "-o", f"cache={CACHE}.many-index"), "written")
    shutil.copytree(OUT, f"{WWW}/many/.epochfs")
    many.forget()
    contains(run("cat", "-o", f"cache={CACHE}.many,stage=off", f"{many.url}/", "all/dataset.json"), f'"samples": {MANY}')
    equal(sum("/.epochfs/" in r.path for r in many.log(False)), 2, "requests for the indexes of many files")
    os.truncate(glob.glob(f"{WWW}/many/.epochfs/" + "?" * 64)[0], 99)
    contains(run("cat", "-o", f"cache={CACHE}.cut,stage=off", f"{many.url}/", "all/dataset.json"), f'"samples": {MANY}')

# Indexes of more than 8 MiB together are a file each; a unit test writes such ones with sanitizers.
LARGE = [2000000, 2000000, 2000000, 10]
if SLOW:
    sys.exit(0)
for k, rows in enumerate(LARGE):
    place(f"{WWW}/large", f"p-{k}.jsonl", b'{"t":%d}\n' % k * rows)
with Nginx(f"{WWW}/large") as large:
    shutil.rmtree(OUT)
    contains(run("index", f"{large.url}/", "-o", OUT, "-o", f"cache={CACHE}.large-index"), "4 indexes written")
    table = content(OUT, "index.txt").decode()
    indexes = [line.split()[1:] for line in table.splitlines() if line.startswith("index ")]
    files = {name: content(OUT, name) for name in os.listdir(OUT) if name != "index.txt"}
    equal((table.splitlines()[0], "\njoined " in table), ("epochfs-index 2", False), "the table of large indexes")
    equal(sorted(indexes), sorted([str(len(data)), hashlib.sha256(data).hexdigest(), name] for name, data in files.items()), "files of large indexes")
    equal(sum(map(len, files.values())) > 8 << 20, True, "the indexes are large")
    shutil.copytree(OUT, f"{WWW}/large/.epochfs")
    large.forget()
    daemon = start_at("at-large", f"{large.url}/", f"cache={CACHE}.large", "stage=off", "block=4K")
    for k, rows in enumerate(LARGE):
        for i in (sum(LARGE[:k]), sum(LARGE[:k]) + rows - 1):
            equal(content(daemon.at, f"all/samples/jsonl/{i:07d}.jsonl"), b'{"t":%d}\n' % k, f"sample {i}")
    stop(daemon)
    equal("is ignored" in log_text("log.at-large"), False, log_text("log.at-large"))
    equal(sum("/.epochfs/" in r.path for r in large.log(False)), 5, "requests for large indexes")
