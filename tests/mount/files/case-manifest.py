#!/usr/bin/python3
"""Manifests of MindSpore: a dataset for each usage (F-20), labels numbered over the whole manifest (F-21), pictures
found next to it or by the longest tail of their path (F-18), and never outside of SOURCE (F-19); the real ones, made
ones, what is wrong with them (F-22), and with their pictures (F-23)."""

import errno
import io
import json
import os

import numpy as np

from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error, mounted, path, run, stop,
                 write)
from servers import Nginx, place, start_at

JPEG = b"\xff\xd8\xff\xe0"


def line(source, usage="TRAIN", labels=("cat",), **more):
    return json.dumps({"source": source, "usage": usage, "id": "0x1",
                       "annotation": [{"type": "modelarts/image_classification", "name": n} for n in labels],
                       **more}) + "\n"


def load(*parts):
    return np.load(io.BytesIO(content(*parts)))


def described(*parts):
    return json.loads(content(path(*parts, "dataset.json")))


def model(lines):
    """What MindSpore's rules make of a manifest: the rows of each usage, and the numbers of labels."""
    rows = [json.loads(text) for text in lines]
    names = sorted({a["name"] for row in rows for a in row.get("annotation", [])}, key=str.encode)
    usages = {}
    for row in rows:
        usages.setdefault(row["usage"].lower(), []).append(
            (row["source"], [names.index(a["name"]) for a in row.get("annotation", [])]))
    return usages, names


def check(root, name, lines, read):
    """Samples and a batch of a manifest's datasets, against the model; read(source): the bytes."""
    usages, names = model(lines)
    for usage, rows in usages.items():
        at = f"{root}/{name}.{usage}"
        info = json.loads(content(at, "dataset.json"))
        equal(info["classes"], names, "classes")
        equal(info["samples"], len(rows), "samples")
        one = all(len(labels) == 1 for _, labels in rows)
        files = sorted(os.listdir(f"{at}/samples/raw"))
        equal(sorted(content(at, "samples/raw", f) for f in files), sorted(read(s) for s, _ in rows), "pictures")
        with load(f"{at}/batches/batch={len(rows)}/npz/000000.npz") as npz:
            if one:
                equal(npz["label"].tolist(), [labels[0] for _, labels in rows], "label")
            else:
                off = npz["label_offsets"]
                equal([npz["label"][off[i]:off[i + 1]].tolist() for i in range(len(rows))],
                      [labels for _, labels in rows], "labels")
            equal(npz["label"].dtype, np.int64, "type")
            equal(len(npz["key"]), len(set(npz["key"])), "keys")


def real():
    folder = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "files/manifest")
    if not os.path.isdir(folder):
        return
    with open(f"{folder}/testManifestData/test.manifest") as f:
        lines = f.readlines()
    with mounted(folder):
        check(path("testManifestData"), "test", lines,
              lambda s: content(f"{folder}/testManifestData", *s.split("/")[-2:]))
        for name in ("errorSample1_empty", "errorSample3_text", "errorSample4_corrupt1midsamp"):
            info = described("testManifestData", f"{name}.eval")
            equal((info["samples"], info["dropped"]), (2, 1), name)
        with open(f"{folder}/testManifestData/cpp.json") as f:  # whatever it is called
            check(path("testManifestData"), "cpp", f.readlines(),
                  lambda s: content(f"{folder}/testManifestData", *s.split("/")[-2:]))
    info = run("info", folder)
    for name, number in ("invalidNoSource", 2), ("invalidNoUsage", 1):
        contains(info, f"{name}.manifest, line {number}: expected a text")


def made(files):
    """Pictures, and a manifest that names them in all ways."""
    rng = np.random.default_rng(3)
    lines = []
    for i in range(60):
        name = f"images/{'ab'[i % 2]}/{i:02}.{('jpg', 'PNG')[i % 3 == 0]}"
        files[name] = (b"\x89PNG\r\n\x1a\n" if i % 3 == 0 else JPEG) + rng.bytes(50 + i)
        source = (f"../{name}", f"./{name}", f"/data/old/{name}", f"s3://bucket/{name}", f"x/../../{name}")[i % 5]
        lines.append(line(source, ("TRAIN", "Eval", "test")[i % 3], [f"label {k}" for k in {i % 7, i % 4}]
                          if i % 3 == 1 else [f"label {i % 7}"]))
    files["lists/set.manifest"] = "".join(lines).encode()
    return lines


def tail(source):
    return source[source.index("images/"):]


real()

files = {}
lines = made(files)
for name, data in files.items():
    write(f"{SOURCE}/{name}", data)
for turn in range(2):
    with mounted(SOURCE, f"cache={PRIVATE}/cache"):
        equal(sorted(f for f in os.listdir(MOUNTPOINT) if f not in ("README.txt", ".epochfs")),
              ["set.eval", "set.test", "set.train"], "datasets")
        check(MOUNTPOINT, "set", lines, lambda s: files[tail(s)])

# Over HTTP: names count, contents are not looked at.
WWW = f"{PRIVATE}/www"
for name, data in files.items():
    place(WWW, f"set/{name}", data)
place(WWW, "set/images/text.jpg", b"no picture")
place(WWW, "set/lists/set.manifest", files["lists/set.manifest"] + line("images/text.jpg", "test", ["label 0"]).encode())
with Nginx(WWW) as server:
    daemon = start_at("far", f"{server.url}/set/", f"cache={PRIVATE}/cache-far")
    far = [*lines, line("images/text.jpg", "test", ["label 0"])]
    check(daemon.at, "set", far, lambda s: files.get(tail(s), b"no picture"))
    stop(daemon)

# What is wrong.
bad = f"{SOURCE}/bad"
write(f"{bad}/a.jpg", JPEG + b"a")
write(f"{bad}/b.jpg", JPEG + b"b")
write(f"{bad}/text.jpg", b"text")
write(f"{SOURCE}/secret.jpg", JPEG + b"secret")
good = line("a.jpg")
manifests = {
    "json": good + "{\n", "array": good + "[]\n", "nosource": good + '{"usage": "TRAIN"}\n', "empty": good + "\n" + good,
    "name": good + json.dumps({"source": "b.jpg", "usage": "TRAIN", "annotation": [{}]}) + "\n",
    "number": good + '{"source": 1, "usage": "TRAIN"}\n', "many": good + line("a.jpg", labels=["x"] * 300),
    "first": '{"usage": "TRAIN"}\n' + good, "xml": '<?xml version="1.0"?>\n<assembly/>\n', "nothing": "",
}
for name, text in manifests.items():
    write(f"{bad}/{name}.manifest", text.encode())
write(f"{bad}/gone.manifest", (good + line("gone.jpg") + line("../secret.jpg") + line("/etc/hostname") +
                               line(f"{SOURCE}/secret.jpg") + line("b.jpg") + line("text.jpg")).encode())
write(f"{bad}/end.manifest", (good + "\n").encode())
with mounted(bad):
    for name in ("json", "array", "nosource", "empty", "name", "number", "many"):
        contains(content(path(f"{name}.manifest", "ERROR.txt")).decode(), f"{name}.manifest, line 2")
    contains(content(path("first.manifest", "ERROR.txt")).decode(), "first.manifest, line 1")
    for name in ("xml", "nothing"):  # they are none
        equal([f for f in os.listdir(MOUNTPOINT) if f.startswith(name)], [], name)
    contains(described("end.train")["left_aside"], "2 .manifest")
    equal(described("end.train")["samples"], 1, "an empty line at the end")
    info = described("gone.train")
    equal((info["samples"], info["dropped"], info["rows_without_file"]), (6, 1, 4), "what is gone")
    equal(content(path("gone.train", "samples/raw/a.jpg")), JPEG + b"a")
    equal(content(path("gone.train", "samples/raw/b.jpg")), JPEG + b"b")
    lost = [f for f in os.listdir(path("gone.train", "samples/raw")) if f not in ("a.jpg", "b.jpg")]
    equal(len(lost), 4, f"files that are not there: {lost}")
    for name in lost:
        expect_error(errno.EIO, content, path("gone.train", "samples/raw", name))
info = run("info", bad)
contains(info, "1 dropped that are no JPEG", "4 files that are not in SOURCE")
for name in ("json", "array", "nosource", "empty", "name", "number", "many"):
    contains(info, f"{name}.manifest, line 2")

# Nothing outside of SOURCE is read, with allow_outside neither (F-19): a file called so is looked up below SOURCE. Only
# a link that leaves SOURCE shows what it leads to, as in other folders.
os.makedirs(f"{PRIVATE}/outside")
write(f"{SOURCE}/out/in/a.jpg", JPEG + b"a")
for where in (f"{PRIVATE}/outside/b.jpg", f"{SOURCE}/out/b.jpg"):
    with open(where, "wb") as f:
        f.write(JPEG + b"outside")
os.symlink(f"{PRIVATE}/outside/b.jpg", f"{SOURCE}/out/in/link.jpg")
write(f"{SOURCE}/out/in/x.manifest", "".join(map(line, (
    "a.jpg", "../b.jpg", f"{PRIVATE}/outside/b.jpg", f"file://{PRIVATE}/outside/b.jpg", "../../out/b.jpg", "link.jpg"))).encode())
for options, linked in ((), False), (("allow_outside",), True):
    with mounted(f"{SOURCE}/out/in", *options):
        info = described("x.train")
        equal((info["samples"], info["rows_without_file"]), (6, 4 if linked else 5), f"{options}")
        equal(content(path("x.train", "samples/raw/a.jpg")), JPEG + b"a", "inside")
        for file in os.listdir(path("x.train", "samples/raw")):
            if file.startswith("link") and linked:
                equal(content(path("x.train", "samples/raw", file)), JPEG + b"outside", "a link")
            elif file != "a.jpg":
                expect_error(errno.EIO, content, path("x.train", "samples/raw", file))

# Called otherwise, known by their lines; and files called *.manifest that are none hide no picture.
for name in "train.json", "LIST", "all.txt":
    write(f"{SOURCE}/any/{name}/{name}", (good + line("b.jpg", "eval", ["dog"])).encode())
    write(f"{SOURCE}/any/{name}/notes.json", b'{"source": "https://example.org"}\n')
    for picture in "ab":
        write(f"{SOURCE}/any/{name}/{picture}.jpg", JPEG + picture.encode())
for i in range(4):
    write(f"{SOURCE}/any/site/{'ab'[i % 2]}/{i}.jpg", JPEG + b"%d" % i)
write(f"{SOURCE}/any/site/app.manifest", b'{"name": "app", "icons": ["a.png"]}\n')
with mounted(f"{SOURCE}/any"):
    for name in "train.json", "LIST", "all.txt":
        stem = name.partition(".")[0]
        equal(content(path(name, f"{stem}.train", "samples/raw/a.jpg")), JPEG + b"a", name)
        equal(load(path(name, f"{stem}.eval", "samples/npy/b.label.npy")).item(), 1, name)
        equal(described(name, f"{stem}.eval")["left_aside"], "1 .json (notes.json)", "left aside")
    equal((described("site")["layout"], described("site")["left_aside"]), ("class folders", "1 .manifest (app.manifest)"), "site")
with mounted(f"{SOURCE}/any/site"):
    equal((described("all")["samples"], described("all")["left_aside"]), (4, "1 .manifest (app.manifest)"), "site alone")

# Far away: one request a candidate, and no other file is read before the mount is ready.
for name in os.listdir(f"{SOURCE}/any/train.json"):
    place(WWW, f"any/{name}", content(f"{SOURCE}/any/train.json/{name}"))
with Nginx(WWW) as server:
    daemon = start_at("any", f"{server.url}/any/", f"cache={PRIVATE}/cache-any")
    equal(load(daemon.at, "train.eval/samples/npy/b.label.npy").item(), 1, "far")
    heads = [r.path for r in server.log() if r.method == "GET" and r.path.endswith(".json")]
    equal(heads.count("/any/notes.json"), 1, f"requests: {heads}")
    stop(daemon)

# Usages where they are hard to find: next to one of an annotation, escaped, under an escaped name; one too long.
inner = '{"source": "1.jpg", "annotation": [{"name": "a", "property": {"usage": "inner"}}], "usage": "TRAIN"}\n'
odd = f"{SOURCE}/odd"
for name, text in (("inner", inner * 2), ("text", line("1.jpg", "T\\u0045ST").replace("\\\\", "\\")),
                   ("key", line("1.jpg", "eval").replace("usage", "us\\u0061ge")),
                   ("value", line("1.jpg", "test", type="usage")), ("long", line("1.jpg") + line("1.jpg", "x" * 70))):
    write(f"{odd}/{name}.manifest", text.encode())
write(f"{odd}/1.jpg", JPEG + b"1")
with mounted(odd):
    found = sorted(f for f in os.listdir(MOUNTPOINT) if f not in ("README.txt", ".epochfs"))
    equal(found, ["inner.train", "key.eval", "long.manifest", "text.test", "value.test"], "usages")
    equal([described(name)["samples"] for name in found if name != "long.manifest"], [2, 1, 1, 1], "samples")
    contains(content(path("long.manifest", "ERROR.txt")).decode(), "long.manifest, line 2", "at most 63 bytes")

# No labels at all, as for inference.
write(f"{SOURCE}/plain/x.manifest", (line("1.jpg", "INFERENCE", ()) + '{"source": "2.jpg", "usage": "inference"}').encode())
for i in (1, 2):
    write(f"{SOURCE}/plain/{i}.jpg", JPEG + b"%d" % i)
with mounted(f"{SOURCE}/plain"):
    equal(sorted(os.listdir(path("x.inference", "samples/raw"))), ["1.jpg", "2.jpg"], "without labels")
    equal("label" in load(path("x.inference", "batches/batch=2/npz/000000.npz")).files, False, "label")
