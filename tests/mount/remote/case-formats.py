#!/usr/bin/python3
# needs: python3-scipy
"""libsvm text and Kaldi data directories on a web server: indexed, joined and read as on a disk,
each byte fetched once; the files that an scp names are next to it on the server."""

import gzip
import os

import numpy as np

import kaldi_dirs as kd
import svm_model
from lib import (PRIVATE, SOURCE, contains, content, equal, idx_bytes, mounted, path, run, start,
                 stop, write)
from servers import Nginx, check_counters, check_once, error_of, files_below, sha256sums, wait_staged

rng = np.random.default_rng(55)


def svm_text(rows):
    """Rows of 100 to 400 bytes."""
    def row():
        index = np.sort(rng.choice(5000, int(rng.integers(5, 40)), replace=False))
        return f"{rng.integers(0, 2)} " + " ".join(f"{i}:{rng.random():.4g}" for i in index)
    return "".join(row() + "\n" for _ in range(rows)).encode()


TEXTS = {"a.svm": svm_text(1500), "b.svm": svm_text(700)}
for name, data in TEXTS.items():
    write(f"svm/{name}", data)
write("packed/c.svm.gz", gzip.compress(TEXTS["b.svm"], mtime=0))
full = kd.Folder(rng, "kaldi", 20, 3).write()
sha256sums(SOURCE)
SIZES = {f"/{os.path.relpath(file, SOURCE)}": st.st_size for file, st in files_below(SOURCE)
         if not file.endswith("SHA256SUMS")}


def check_svm():
    both = svm_model.Dataset(sorted(TEXTS.items()))
    folder = path("svm/all")
    for i in (0, 1, 1499, 1500, 2199):
        svm_model.check_sample(both, folder, i)
    rows = list(range(2200))
    svm_model.check_batch(both, f"{folder}/batches/batch=all", 0, rows)
    svm_model.check_batch(both, f"{folder}/batches/batch=64", 3, rows[192:256])
    part = both.part(1, 3)
    svm_model.check_batch(both, f"{folder}/batches/batch=all,part=1of3", 0, part)
    packed = svm_model.Dataset([("c.svm", TEXTS["b.svm"])])
    names = [n for n in os.listdir(path("packed")) if n != "all"]
    equal(len(names), 1, f"datasets of packed/: {names}")
    svm_model.check_batch(packed, path(f"packed/{names[0]}/batches/batch=all"), 0, rows[:700])


def check_kaldi(where="kaldi/all"):
    ds, missing = full.dataset(path(where))
    equal(missing, {}, "the test's own directory")
    kd.check(ds)


with Nginx(SOURCE) as server:
    daemon = start(f"{server.url}/")
    check_svm()
    check_kaldi()
    numbers = wait_staged(daemon)
    requests = server.log()
    check_counters(requests, "libsvm and Kaldi", numbers)
    check_once([r for r in requests if r.path != "/kaldi/spk2utt"],
               {p: n for p, n in SIZES.items() if p != "/kaldi/spk2utt"}, "libsvm and Kaldi")
    stop(daemon)
    before = len(server.log())
    with mounted(f"{server.url}/"):  # the indices are also kept
        check_svm()
        check_kaldi()
    equal(len(server.log()), before, "requests for data after a remount")

    # Only the requested bytes: the audio of one utterance.
    with mounted(f"{server.url}/kaldi/", f"cache={PRIVATE}/lone,stage=off"):
        ds, _ = full.dataset(path("all"))
        kd.check_sample(ds, 5, ["wav"])

    # A single table, by its scp; its archive next to it.
    with mounted(f"{server.url}/kaldi/feats.scp", f"cache={PRIVATE}/single"):
        at = path("feats.scp")
        equal(len(os.listdir(f"{at}/samples/npy")), 20, "samples of feats.scp")
        key = full.utterances[7]
        with open(f"{at}/samples/npy/{key}.data.npy", "rb") as f:
            got = np.load(f)
        equal(np.array_equal(got, full.tables["feats"][key].value), True, "a sample of feats.scp")

    write("bad.scp", f"{full.utterances[7]} ../feats.ark:0\n".encode())
    contains(run("info", "-o", f"cache={PRIVATE}/bad", f"{server.url}/bad.scp", code=2),
             "expected a file of")

# The same without a listing: the mount requests the file that the scp names.
os.rename(f"{SOURCE}/SHA256SUMS", f"{PRIVATE}/SHA256SUMS")
with Nginx(SOURCE, autoindex=False) as server:
    with mounted(f"{server.url}/kaldi/feats.scp", f"cache={PRIVATE}/asked"):
        with open(path(f"feats.scp/samples/npy/{key}.data.npy"), "rb") as f:
            equal(np.array_equal(np.load(f), full.tables["feats"][key].value), True, "asked for")
    names = {r.path for r in server.log(False) if r.method == "HEAD"}
    equal([n for n in names if ".ark" in n and "feats" not in n], [], "files asked for")

# An scp on a server names files of its folder only, and no commands.
LINES = {"a": "/etc/passwd", "b": "../kaldi/audio/x.wav", "c": "cat /etc/passwd |",
         "d": "file:///etc/passwd", "e": "http://127.0.0.1:1/x"}
write("evil/wav.scp", "".join(f"{key} {value}\n" for key, value in LINES.items()).encode())
write("evil/numbers", idx_bytes(np.arange(9, dtype=np.uint8)))  # a file that can be mounted
with Nginx(SOURCE) as server:
    with mounted(f"{server.url}/evil/", f"cache={PRIVATE}/evil"):
        for at, _, names in os.walk(path()):
            for name in names:
                if name[0] in LINES and name[1] == ".":
                    equal(error_of(content, at, name) != 0, True, f"{at}/{name} fails")
    equal([r.path for r in server.log() if not r.path.startswith("/evil/")], [],
          "files outside of SOURCE")
