#!/usr/bin/python3
# needs: python3-scipy python3-pil
"""Mixes of records: ragged arrays, texts, files under their own extensions, rows of libsvm text."""

import errno
import io
import os
import tarfile

import numpy as np
import scipy.sparse
from PIL import Image

from lib import SOURCE, contains, content, equal, expect_error, log_text, mounted, path, write
from tfrecord_model import example, frame, integers, strings

COUNT = {"a": 30, "b": 9}


def arrays(file):
    with np.load(file) as loaded:
        return dict(loaded)


def records(name, n, offset):
    write(f"{name}.tfrecord", b"".join(frame(example(
        ids=integers(*(k + offset for k in range(i % 5))), n=integers(i), text=strings(b"%s %d" % (name.encode(), i)),
        **{f"only_{name}": integers(1)})) for i in range(n)))
    write(f"{name}.jsonl", b"".join(b'{"row": %d}\n' % (i + offset) for i in range(n)))


def shards(name, n):
    """A tar of WebDataset: a picture's bytes, a class, and a long key now and then."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(n):
            key = f"{name}{i:03d}" + ("-" + "x" * 60 if i == 4 else "")
            for ext, data in (("jpg", bytes([i]) * (i + 1)), ("cls", b"%d" % (i % 7)), ("txt", b"caption %d" % i)):
                member = tarfile.TarInfo(f"{key}.{ext}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    write(f"{name}.tar", out.getvalue())


def batches(mix, encoding, plan="batch=8,seed=3"):
    return path(mix, "batches", plan, "epoch=1", encoding)


def check_records():
    batch = arrays(batches("rec", "npz") + "/000001.npz")
    equal("only_a" in batch or "only_b" in batch, False, "fields that one source has")
    rows = list(zip(batch["source"].tolist(), batch["index"].tolist()))
    equal({d for d, _ in rows}, {0, 1}, "sources")
    equal(batch["n"].tolist(), [i for _, i in rows], "n")
    want = [[k + 100 * d for k in range(i % 5)] for d, i in rows]
    offsets, texts = batch["ids_offsets"], batch["text_offsets"]
    equal([batch["ids"][a:b].tolist() for a, b in zip(offsets, offsets[1:])], want, "ids")
    equal([batch["text"][a:b].tobytes() for a, b in zip(texts, texts[1:])], [b"%s %d" % (b"ab"[d:d + 1], i) for d, i in rows], "text")
    padded = np.load(batches("rec", "npy") + "/000001.ids.npy")
    lengths = np.load(batches("rec", "npy") + "/000001.ids_len.npy")
    equal([row[:n].tolist() for row, n in zip(padded, lengths)], want, "padded")
    equal(content(batches("rec", "txt"), "000001.text.txt"), b"".join(b"%s %d\n" % (b"ab"[d:d + 1], i) for d, i in rows), "lines")
    for file in os.listdir(path("rec", "samples", "raw")):
        d, own = file.split("-", 1)
        equal(content(path("rec", "samples", "raw", file)),
              content(path(f"{'ab'[int(d)]}.tfrecord", "samples", "raw", own)), file)


def check_lines():
    index = arrays(batches("json", "npz") + "/000000.npz")
    want = b"".join(b'{"row": %d}\n' % (i + 100 * d) for d, i in zip(index["source"].tolist(), index["index"].tolist()))
    equal(content(batches("json", "jsonl"), "000000.jsonl"), want, "lines")


def check_tar():
    folder = path("tars", "samples", "raw")
    for file in os.listdir(folder):
        d, own = file.split("-", 1)
        equal(content(folder, file), content(path(f"{'ab'[int(d)]}.tar", "samples", "raw", own)), file)
    equal(len(os.listdir(folder)), len(os.listdir(path("a.tar", "samples", "raw"))) + len(os.listdir(path("b.tar", "samples", "raw"))), "files")
    members = {}
    for file in os.listdir(batches("tars", "tar")):
        with tarfile.open(fileobj=io.BytesIO(content(batches("tars", "tar"), file))) as tar:
            members.update({m.name: tar.extractfile(m).read() for m in tar})
    seen = {name.split(".")[0] for name in members}
    equal(all(name[:2] in ("0-", "1-") for name in seen), True, "keys")
    for name, data in members.items():
        if name.endswith(".jpg"):
            number = int(name.split(".")[0].split("-")[1][1:])
            equal(data, bytes([number]) * (number + 1), name)


def check_libsvm():
    """Labels and lines; a matrix has as many columns as the widest source."""
    batch = arrays(batches("rows", "npz") + "/000000.npz")
    rows = list(zip(batch["source"].tolist(), batch["index"].tolist()))
    equal(batch["label"].tolist(), [float(i + 10 * d) for d, i in rows], "labels")
    matrix = scipy.sparse.load_npz(batches("rows", "npz") + "/000000.npz").toarray()
    want = np.zeros((8, 5), np.float32)
    for k, (d, i) in enumerate(rows):
        want[k, i % (3 + d) + 1] = i + 1
    equal((matrix == want).all() and matrix.shape == want.shape, True, "the matrix")
    for file in sorted(os.listdir(path("rows", "samples", "npz"))):
        d, own = file.split("-", 1)
        row, other = (scipy.sparse.load_npz(path(*p, file_)).toarray() for p, file_ in (
            (("rows", "samples", "npz"), file), ((f"{'ab'[int(d)]}.svm", "samples", "npz"), own)))
        equal(row[0, :other.shape[1]].tolist(), other[0].tolist(), file)
    lines = content(batches("rows", "svm"), "000000.svm").splitlines()
    equal(lines, [b"%d %d:%d" % (i + 10 * d, i % (3 + d) + 1, i + 1) for d, i in rows], "lines")


def check_tokens():
    """Windows of two streams, with what is derived from them."""
    where = os.path.join(SOURCE, "tokens")
    os.makedirs(where)
    streams = [np.arange(1000, dtype=np.uint16), np.arange(5000, 5300, dtype=np.uint16)]
    for name, stream in zip("ab", streams):
        stream.tofile(f"{where}/{name}.bin")
    with mounted(where, "mix=m=a.bin*3+b.bin*1,tokens=u2,seq=16"):
        batch = arrays(batches("m", "npz") + "/000001.npz")
        want = np.stack([streams[d][16 * i:16 * i + 17] for d, i in zip(batch["source"], batch["index"])])
        equal((batch["tokens"] == want).all(), True, "tokens")
        for name, columns in (("x", want[:, :-1]), ("y", want[:, 1:])):
            equal((np.load(batches("m", "npy") + f"/000001.{name}.npy") == columns).all(), True, name)


def check_pictures():
    """Folders of pictures of several kinds: decoded arrays, files that not every sample has, class numbers."""
    where, rng = os.path.join(SOURCE, "pictures"), np.random.default_rng(6)
    for folder, n in (("cats", 12), ("dogs", 5)):
        for i in range(n):
            os.makedirs(f"{where}/{folder}/class{i % 3}", exist_ok=True)
            pixels = rng.integers(0, 255, (20 + i, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(f"{where}/{folder}/class{i % 3}/p{i:02d}.{('png', 'jpg')[i % 2]}")
    with mounted(where, "mix=m=cats*2+dogs*1,picture=16x16"):
        batch = arrays(batches("m", "npz") + "/000000.npz")
        own = [arrays(path(folder, "batches", "batch=all", "npz", "000000.npz")) for folder in ("cats", "dogs")]
        for field in ("image", "label"):
            want = np.stack([own[d][field][i] for d, i in zip(batch["source"], batch["index"])])
            equal((batch[field] == want).all(), True, field)
        listed = [f"{d}-{name}" for d, folder in enumerate(("cats", "dogs"))
                  for name in os.listdir(path(folder, "samples", "raw"))]
        equal(sorted(os.listdir(path("m", "samples", "raw"))), sorted(listed), "files")
        equal(content(path("m", "preview.png"))[:4], b"\x89PNG", "preview.png")
    check_made(where)


def check_made(where):
    """Numbers of a picture follow from index and place: where both are alike in the mix and in a source, so are its pictures."""
    equally = 0
    with mounted(where, "mix=m=cats*2+dogs*1,augment=t=rrc:scale=0.2-0.6+flip"):
        for epoch in range(8):
            plan = f"batch=all,seed=3,picture=16x16,augment=t/epoch={epoch}/npz/000000.npz"
            mixed = arrays(path("m", "batches", plan))
            for d, folder in enumerate(("cats", "dogs")):
                own = arrays(path(folder, "batches", plan))
                for place in range(len(own["index"])):
                    if (mixed["source"][place], mixed["index"][place]) == (d, own["index"][place]):
                        equal((mixed["image"][place] == own["image"][place]).all(), True, "pictures")
                        equal(mixed["image_box"][place].tolist(), own["image_box"][place].tolist(), "boxes")
                        equally += 1
        twice = [np.flatnonzero((mixed["source"] == 0) & (mixed["index"] == i)) for i in range(12)]
        equal(len({tuple(box) for box in mixed["image_box"].tolist()}), len(mixed["index"]), f"each time another part: {twice}")
    equal(equally > 4, True, f"{equally} samples at one place")


records("a", COUNT["a"], 0)
records("b", COUNT["b"], 100)
for name, n in COUNT.items():
    shards(name, n)
for d, name in enumerate("ab"):
    write(f"{name}.svm", b"".join(b"%d %d:%d\n" % (i + 10 * d, i % (3 + d) + 1, i + 1) for i in range(12)))
with mounted(SOURCE, "mix=rec=a.tfrecord*2+b.tfrecord*1,mix=json=a.jsonl*2+b.jsonl*1,mix=tars=a.tar*3+b.tar*1,"
                     "mix=rows=a.svm*1+b.svm*1"):
    check_records()
    check_lines()
    check_tar()
    check_libsvm()
check_tokens()
check_pictures()
