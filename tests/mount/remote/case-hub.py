#!/usr/bin/python3
"""hf://: trees in pages, one commit for all of a mount, large files of another server which gets no token, limits,
gated and private repositories, names by README.md, and what the Hub's library has downloaded."""

import hashlib
import json
import os
import shutil

import numpy as np

from fake_hub import FakeHub
from lib import PRIVATE, contains, content, equal, idx_bytes, log_text, mounted, path, run
from servers import files_below, place

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
HOME = f"{PRIVATE}/hf"
CSV = b"a,b\n1,2\n3,4\n"
LINES = b"".join(b'{"text": "line %06d"}\n' % i for i in range(20000))
IMAGES = idx_bytes(np.arange(1600 * 4096).astype(np.uint8).reshape(1600, 64, 64))
FILES = {"images": IMAGES, "train.csv": CSV, "data/test.jsonl": LINES, "data/more.csv": CSV + b"5,6\n", "README.md": b"# hi\n",
         ".gitattributes": b"x", "load.py": b"1", "config.json": b"{}"}
ODD = {"a b/%41#?.csv": CSV, "a b/x.csv": CSV}


def set_env(env):
    os.environ.clear()
    os.environ.update(env)


def fresh(*options):
    fresh.count += 1
    return ",".join([f"cache={PRIVATE}/cache.{fresh.count}", "stage=off", *options])


fresh.count = 0


def part(name, off, n):
    with open(path(name, "source", os.path.basename(name)), "rb", buffering=0) as f:
        return os.pread(f.fileno(), n, off)


def asked(hub, word):
    return sum(word in p for _, p, _ in hub.requests)


def check_reads(hub):
    """One commit, one resolver request for all parts of a large file."""
    old = hub.heads["o/n"]
    with mounted("hf://datasets/o/n", fresh()):
        listed = sorted(n for n in os.listdir(path()) if n not in (".epochfs", "README.txt"))
        equal(listed, ["data", "images", "train.csv"], "datasets: files about the repository are none")
        equal(content(path("train.csv", "source", "train.csv")), CSV, "a small file")
        equal(content(path("data/test.jsonl", "source", "test.jsonl")) == LINES, True, "a large file")
        equal(part("images", 0, 100), IMAGES[:100], "the beginning of a larger one")
        before = asked(hub, "/images")
        equal(part("images", 5000000, 100), IMAGES[5000000:5000100], "its middle")
        equal(asked(hub, "/images"), before, "requests to the Hub for another part of it")
        spans = [h["Range"].removeprefix("bytes=").split("-") for _, p, h in hub.storage
                 if p.startswith("/" + hashlib.sha256(IMAGES).hexdigest())]
        got = sum(int(last) - int(first) + 1 for first, last in spans)
        equal(got < len(IMAGES) // 2, True, f"a reader gets a part before all of the file is there to be compared: {got} bytes")
        hub.commit("o/n", {"train.csv": b"a,b\n9,9\n"})
        equal(content(path("data/more.csv", "source", "more.csv")), FILES["data/more.csv"], "the old commit")
    equal(sum("Range" in h for _, _, h in hub.storage) >= 3, True, "parts of the other server")
    contains(run("info", "-o", fresh(), f"hf://datasets/o/n@{old}/data"), "more.csv", "20000")
    said = run("info", "-o", fresh(), "hf://datasets/o/n")
    contains(said, hub.heads["o/n"], f"token of {HOME}/token")
    equal("test.jsonl" in said, False, "files of the old commit in the new one")


def check_many(hub):
    """Each of many files is asked for once, and later parts of it are at the other server."""
    before = len(hub.requests)
    contains(run("info", "-o", fresh(), "hf://datasets/o/many"), f"{150 * 1000}")
    asked_for = [p for _, p, _ in hub.requests[before:] if p.endswith(".jsonl")]
    equal((len(asked_for), len(set(asked_for))), (150, 150), "requests to the Hub for 150 files")


def check_secret(hub):
    """The token goes to the Hub, and nowhere else."""
    equal(all(h.get("Authorization") == f"Bearer {TOKEN}" for _, _, h in hub.requests), True, "sent to the Hub")
    equal(any("Authorization" in h for _, _, h in hub.storage), False, "sent elsewhere")
    equal(TOKEN in log_text() or "Signature" in log_text(), False, "secrets in the log")
    for at, _ in files_below(PRIVATE):
        if at != f"{HOME}/token" and os.path.isfile(at):
            with open(at, "rb") as f:
                data = f.read()
            equal(TOKEN.encode() in data or b"Signature=" in data, False, f"secrets in {at}")


def check_errors(hub):
    for name, words in (("o/none", ["is missing, or private"]), ("o/n@v9", ["has no revision 'v9'"]),
                        ("o/n/nothing", ["has no file or folder 'nothing'"]), ("o/../n", ["expected hf://"]),
                        ("o/gated", [])):
        contains(run("info", "-o", fresh(), f"hf://datasets/{name}", code=0 if name == "o/gated" else 2), *words)
    os.rename(f"{HOME}/token", f"{HOME}/token.old")
    contains(run("info", "-o", fresh(), "hf://datasets/o/gated", code=2), "is gated", "set HF_TOKEN",
             f"{hub.endpoint}/datasets/o/gated")
    contains(run("info", "-o", fresh(), "hf://datasets/o/private", code=2), "private", "no token was found")
    os.rename(f"{HOME}/token.old", f"{HOME}/token")
    contains(run("info", "-o", fresh(), "hf://datasets/o/old"), "o/private by now")
    contains(run("info", "-o", fresh(), "hf://spaces/o/x", code=2), "expected a dataset or a model")
    hub.limited = 1
    run("info", "-o", fresh(), "hf://datasets/o/n")  # waits for a second
    hub.link_to = hub.storage_url
    contains(run("info", "-o", fresh(), "hf://datasets/o/odd", code=2), "got another server")
    hub.link_to = "https://huggingface.co"  # a mirror's links
    contains(run("info", "-o", fresh(), "hf://datasets/o/odd"), "%41#?.csv", "x.csv")
    hub.link_to = hub.endpoint
    os.environ["HF_ENDPOINT"] = "http://example.com"
    contains(run("info", "-o", fresh(), "hf://datasets/o/n", code=2), "expected a URL with https://")
    os.environ["HF_ENDPOINT"] = hub.endpoint


CARD = b"""---
configs:
- config_name: en
  default: true
  data_files:
  - split: train
    path: "data/en-*"
- config_name: fr
  data_files: ["fr.csv"]
---
"""


MOVED = b"""---
configs:
- {config_name: a, data_dir: b}
- {config_name: b, data_files: x.csv}
- {config_name: c, data_files: d/*.csv}
---
"""


def check_card(hub):
    """The names are those of load_dataset, whether the files are on the Hub, in its cache, or in a clone."""
    files = {"README.md": CARD, "data/en-0.csv": CSV, "data/en-1.csv": CSV, "fr.csv": CSV, "other.csv": CSV}
    for at, data in files.items():
        place(f"{PRIVATE}/clone", at, data)
    for source in "hf://datasets/o/card", f"{PRIVATE}/clone":
        with mounted(source, fresh()):
            about = [json.loads(content(path(f"{name}/dataset.json"))) for name in ("en/train", "fr/train")]
            equal([d["samples"] for d in about], [4, 2], f"{source}: samples")
            if source.startswith("hf"):
                equal((about[0]["revision"], about[0]["commit"]), ("main", hub.heads["o/card"]), "what it is")
            equal(about[0]["notes"], ["config en of README.md, the default one"], f"{source}: notes")
            equal(sorted(n for n in os.listdir(path()) if n not in (".epochfs", "README.txt")), ["en", "fr"], source)
        contains(run("info", "-o", fresh(), source), "README.md names other files than these: 1 .csv (other.csv)")
    moved = f"{PRIVATE}/moved"  # what is shown in the place of another folder stays what it is
    for at, data in (("README.md", MOVED), ("b/y.csv", CSV), ("x.csv", CSV), ("d/0.csv", CSV)):
        place(moved, at, data)
    os.symlink("/etc/hostname", f"{moved}/d/1.csv")
    found = json.loads(run("info", "--json", moved))
    equal([d["dataset"] for d in found["datasets"]], ["a/y.csv", "b/train"], "datasets")
    contains(found["unusable"][0]["reason"], "README.md: 'd/*.csv': d/1.csv: a link to /etc/hostname")
    hub.commit("o/card", {**files, "README.md": b"---\nconfigs: [\n---\n"})
    contains(run("info", "-o", fresh(), "hf://datasets/o/card"), "line 3: did not find", "its configs are ignored", "other.csv")
    hub.commit("o/card", files)


def check_cache(hub):
    """Files that the Hub's library has downloaded are read there; all of them without the Hub."""
    commit = hub.heads["o/kept"]
    folder = f"{HOME}/hub/datasets--o--kept"
    digest = hashlib.sha256(LINES).hexdigest()
    place(folder, f"blobs/{digest}", LINES)
    os.makedirs(f"{folder}/snapshots/{commit}/data")
    os.symlink(f"../../../blobs/{digest}", f"{folder}/snapshots/{commit}/data/test.jsonl")
    place(folder, "refs/main", commit.encode())
    before = len(hub.storage)
    contains(run("info", "-o", fresh(), "hf://datasets/o/kept"), "20000")
    equal(len(hub.storage), before, "requests for a file that is on this machine")
    # A copy of a snapshot: its links stay inside, and its index is that of the original, for the bytes are.
    shutil.copytree(folder, f"{PRIVATE}/copy/datasets--o--kept", symlinks=True)
    os.environ["EPOCHFS_CACHE"], seen = f"{PRIVATE}/indexes", None
    for at in folder, f"{PRIVATE}/copy/datasets--o--kept":
        with mounted(f"{at}/snapshots/{commit}"):
            about = json.loads(content(path("data/test.jsonl/dataset.json")))
            equal((about["samples"], about["commit"], "revision" in about), (20000, commit, False), at)
        entries = sorted(f for f, _ in files_below(f"{PRIVATE}/indexes"))
        equal(entries, seen or entries, "what is made of the copy")
        seen = entries
    equal(any("/rows/" in name for name in seen), True, f"an index is kept: {seen}")
    os.environ["HF_HUB_OFFLINE"] = "1"
    place(folder, f"trees/{commit}.json", b'{"format_version": 1, "files": {"data/test.jsonl": {"size": %d, "blob_id": "%s"}, '
          b'"data/x.csv": {"size": 3, "blob_id": "%s"}}}' % (len(LINES), b"0" * 40, b"1" * 40))
    contains(run("info", "-o", fresh(), "hf://datasets/o/kept", code=2), "1 of 2 files are in the cache")
    os.remove(f"{folder}/trees/{commit}.json")
    requests = len(hub.requests)
    contains(run("info", "-o", fresh(), "hf://datasets/o/kept"), "20000", "is not known")
    contains(run("info", "-o", fresh(), "hf://datasets/o/n", code=2), "is not in the cache")
    equal(len(hub.requests), requests, "requests offline")


with FakeHub({"o/n": FILES, "o/gated": FILES, "o/private": {"train.csv": CSV}, "o/odd": ODD,
              "o/card": {"README.md": CARD, "data/en-0.csv": CSV, "data/en-1.csv": CSV, "fr.csv": CSV, "other.csv": CSV},
              "o/many": {f"p-{i:03d}.jsonl": LINES[24 * i:24 * (i + 1000)] for i in range(150)},
              "o/kept": {"data/test.jsonl": LINES}}) as server:
    server.token, server.page = TOKEN, 2
    server.private, server.gated, server.renamed = {"o/private"}, {"o/gated"}, {"o/old": "o/private"}
    place(HOME, "token", f"{TOKEN}\n".encode())
    set_env(server.env(HOME))
    check_reads(server)
    check_many(server)
    check_secret(server)
    check_errors(server)
    check_card(server)
    check_cache(server)
