#!/usr/bin/python3
"""Class folders of sounds, and of texts, as torchaudio's SPEECHCOMMANDS and Keras's text_dataset_from_directory read
them: samples, labels and classes against os.walk, plans by class, here, from a web server and from S3. What is a dataset
without that stays one: libsvm, LibFM, CSV, JSON lines, arrays, Kaldi's tables."""

import io
import json
import os
import wave

import numpy as np

import epochfs
import files_model as model
from fake_s3 import FakeS3
from lib import MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, mounted, path, run, text, write
from servers import Nginx

rng = np.random.default_rng(11)
NOISE = "_background_noise_"
LOOKS = 16  # files that are looked into


def sound(n):
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setparams((1, 2, 16000, 0, "NONE", ""))
        f.writeframes(rng.integers(-2000, 2000, n, dtype="<i2").tobytes())
    return out.getvalue()


def prose(n):
    return " ".join(rng.choice("a the film was not good, but <br /> I liked it (very) much: 10/10".split(), n)).encode()


def read(root, ends, bare=None):
    """Classes and samples: all files below a class folder, by folder and by name."""
    root = os.fsencode(root)
    classes = sorted(e.name for e in os.scandir(root)
                     if e.is_dir() and not e.name.startswith(b".") and e.name != NOISE.encode())
    samples = []
    for label, name in enumerate(classes):
        for where, file in model.below(os.path.join(root, name)):
            stem, ext = os.path.splitext(file)
            if not file.startswith(b".") and (ext.lower() in ends or (bare and not ext)):
                samples.append(model.Sample(os.path.join(where, file), label, stem,
                                            {ext[1:].lower() or bare: content(where, file)}))
    model.with_keys(root, samples)
    keys = [s.key for s in samples]
    for s in samples:
        if keys.count(s.key) > 1:
            s.key = os.path.relpath(s.path, root)
    return classes, samples


def check(dataset, classes, samples):
    """All samples; batches in order, and of an epoch; plans by class."""
    folder = path(dataset)
    about = json.loads(text(folder, "dataset.json"))
    equal((about["samples"], about["classes"], about["layout"]),
          (len(samples), [os.fsdecode(c) for c in classes], "class folders"), dataset)
    model.check_samples(folder, samples)
    for plan in ("batch=7", "batch=7,seed=3/epoch=1"):
        seen = []
        for name in sorted(os.listdir(f"{folder}/batches/{plan}/npz")):
            numbers = np.load(f"{folder}/batches/{plan}/npz/{name}")["index"].tolist()
            seen += numbers
            chosen = [samples[i] for i in numbers]
            model.check_npz(content(folder, "batches", plan, "npz", name), chosen, numbers)
            model.check_tar(content(folder, "batches", plan, "tar", name.replace("npz", "tar")), chosen)
        equal(sorted(seen), list(range(len(samples))), f"{dataset}: all samples of {plan}")
    labels = np.load(f"{folder}/batches/batch=6,seed=1,classes=2x3/epoch=0/npy/000000.label.npy")
    equal(sorted(np.unique(labels, return_counts=True)[1].tolist()), [3, 3], f"{dataset}: two classes, three of each")
    labels = np.load(f"{folder}/batches/batch=all,seed=1,draw=600:balanced/epoch=0/npy/000000.label.npy")
    per_class = np.bincount(labels)
    equal(len(labels), 600, "draws")
    equal(per_class.min() > 600 / len(classes) / 2, True, f"{dataset}: classes drawn as often: {per_class}")
    contains(run("audit", folder, "batch=7,seed=3"), "each once")


# ---- sounds ----

for c, n in (("yes", 5), ("no", 9), ("up", 4)):
    for i in range(n):
        write(f"speech/{c}/{i:06x}{c}_nohash_{i % 2}.wav", sound(int(rng.integers(100, 2000))))
write(f"speech/{NOISE}/hum.wav", sound(3000))
write(f"speech/{NOISE}/README.md", b"noise")
for name in ("README.md", "LICENSE", ".DS_Store", "up/.DS_Store"):
    write(f"speech/{name}", b"x")
# Odd ones: a sound without a byte, names with odd characters, one stem, other kinds of sounds, a class without any.
for name in ("no/empty.wav", "no/a b%c.wav", "up/\u00fc.FLAC", "up/blues.00000.wav", "up/blues.00001.wav",
             "up/deep/er.opus", "yes/x.mp3", "yes/x.ogg"):
    write(f"speech/{name}", b"" if "empty" in name else sound(50))
os.makedirs(f"{SOURCE}/speech/zero")
SOUNDS = read(f"{SOURCE}/speech", {b".wav", b".flac", b".opus", b".mp3", b".ogg"})
equal(len(SOUNDS[1]), 5 + 9 + 4 + 8, "sounds")

with mounted(f"{SOURCE}/speech"):
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "README.txt", "all"], "README.md and LICENSE are no datasets")
    check("all", *SOUNDS)
    dataset = epochfs.open(MOUNTPOINT)["all"]
    equal({name: (f.dtype, f.shape) for name, f in dataset.fields.items() if name in ("wav", "label")},
          {"wav": (np.dtype("u1"), (None,)), "label": (np.dtype("<i8"), ())}, "fields in Python")
    equal(dataset["000003no_nohash_1"]["wav"].tobytes() in [s.files[b"wav"] for s in SOUNDS[1] if b"wav" in s.files], True, "a sample")
    contains(text(path("README.txt")), "wave.open(file)")
found = run("info", "--check", f"{SOURCE}/speech")
contains(found, "samples  26\n", "ignored: 2 .md (README.md and 1 more), 1 without an extension (LICENSE), 1 .wav (hum.wav)", "class zero (label 3) has no sound")
os.rmdir(f"{SOURCE}/speech/zero")
SOUNDS[0].remove(b"zero")

# What lies next to class folders stays what it is, and the dataset is in the folder with it.
write("speech/testing_list.txt", b"up/x.wav\n")
write("speech/rows.svm", b"1 1:2\n")
with mounted(f"{SOURCE}/speech"):
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "README.txt", "rows.svm", "sounds", "testing_list.txt"], "beside")
    equal(content(path("rows.svm/samples/svm/000000.svm")), b"1 1:2\n", "libsvm")
    model.check_samples(path("sounds"), SOUNDS[1])

# ---- texts ----

for split in ("train", "test"):
    for c, n in (("pos", 30), ("neg", 25), ("unsup", 20)):
        for i in range(n):
            write(f"aclImdb/{split}/{c}/{i}_{i % 10}.txt", prose(int(rng.integers(1, 60))))
    write(f"aclImdb/{split}/pos/empty.txt", b"")
    write(f"aclImdb/{split}/neg/a.b.TXT", "gr\u00fcn\n".encode("latin-1"))
    for name in ("labeledBow.feat", "unsupBow.feat"):
        write(f"aclImdb/{split}/{name}", b"9 0:9 1:1\n2 3:4\n")
write("aclImdb/README", b"Reviews\n")
TEXTS = {split: read(f"{SOURCE}/aclImdb/{split}", {b".txt"}, b"txt") for split in ("train", "test")}


def check_imdb():
    equal(sorted(os.listdir(path("train"))), ["all", "labeledBow.feat", "texts", "unsupBow.feat"], "train")
    equal(content(path("train/labeledBow.feat/samples/svm/000001.svm")), b"2 3:4\n", "bags of words")
    for split, (classes, samples) in TEXTS.items():
        equal(classes, [b"neg", b"pos", b"unsup"], split)
        check(f"{split}/texts", classes, samples)
    equal(content(path("train/texts/samples/txt/a.b.txt")), "gr\u00fcn\n\n".encode("latin-1"), "as text")


with mounted(f"{SOURCE}/aclImdb"):
    check_imdb()
contains(run("info", f"{SOURCE}/aclImdb"), "train/texts\n    format   files\n    samples  77\n",
         "classes  3 of label, the least 20 (2 unsup), the most 31 (1 pos)\n")

# Without an extension; an article in two groups.
for split in ("20news-train", "20news-test"):
    for c in ("alt.atheism", "sci.med", "sci.space"):
        for i in range(5):
            write(f"news/{split}/{c}/{10000 + i + len(c)}", b"From: a@b.c\nSubject: x\n\n" + prose(40))
with mounted(f"{SOURCE}/news"):
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "20news-test", "20news-train", "README.txt"], "newsgroups")
    for split in ("20news-train", "20news-test"):
        check(split, *read(f"{SOURCE}/news/{split}", {b".txt"}, b"txt"))

# ---- from a web server: a few texts are looked into ----

with Nginx(f"{SOURCE}/aclImdb/train") as server:
    out = run("info", server.url)
    contains(out, "texts\n", "samples  77\n")
    looked = {r.path for r in server.log() if not r.path.endswith((".feat", "README"))}
    equal(0 < len(looked) <= LOOKS, True, f"texts that info asked for: {len(looked)}")
with Nginx(f"{SOURCE}/aclImdb") as server, mounted(server.url):
    check_imdb()
# All is there after epochfs stage, also what is looked into.
with Nginx(f"{SOURCE}/aclImdb") as server:
    cache = f"cache={PRIVATE}/staged"
    contains(run("stage", "-o", cache, server.url), "complete and correct")
    server.forget()
    with mounted(server.url, cache):
        check_imdb()
    equal([r.path for r in server.log()], [], "requests for data after epochfs stage")

# From a bucket, however many there are.
asked = {}
for ext in ("wav", "txt"):
    with FakeS3({f"set/c{i % 1000:03}/{i}.{ext}": b"From: %d\n" % i for i in range(3000)}) as s3:
        os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
        contains(run("info", "-o", f"anonymous,cache={PRIVATE}/s3{ext}", "s3://data/"), "set\n    format   files\n    samples  3000\n",
                 "classes  1000 of label, each 3\n")
        asked[ext] = s3.objects
equal((asked["wav"] <= 1, 0 < asked["txt"] - asked["wav"] <= LOOKS), (True, True), f"objects that info asked for: {asked}")

# One that cannot be read is missed next to the dataset, not in it.
with Nginx(f"{SOURCE}/aclImdb", more="location /train/labeledBow.feat { return 403; }") as server, mounted(server.url):
    contains(text(path("train/labeledBow.feat/ERROR.txt")), "403")
    model.check_samples(path("train/texts"), TEXTS["train"][1])
    equal("left out" in text(path("train/texts/dataset.json")), False, "nothing of it is missing")
with Nginx(f"{SOURCE}/speech") as server:
    with mounted(server.url):
        check("sounds", *SOUNDS)
    server.forget()
    contains(run("info", server.url), "samples  26\n")
    equal({r.path for r in server.log()} <= {"/rows.svm", "/testing_list.txt"}, True, "no sound is asked for")

# ---- what is something else stays it ----

ROWS = {"libsvm": b"1 1:2 3:4\n-1 2:3\n", "libfm": b"1 0:1:2 1:3:4\n0 0:2:3\n", "csv": b"1,2,3\n4,5,6\n",
        "jsonl": b'{"a": 1}\n{"a": 2}\n'}
for kind, rows in ROWS.items():
    for c in "ab":
        for name in ("train", "more"):
            write(f"rows/{kind}/{c}/{name}.txt", rows)
seen = json.loads(run("info", "--json", f"{SOURCE}/rows"))["datasets"]
equal(sorted({d["format"] for d in seen}), ["csv", "jsonl", "libfm", "libsvm"], "formats of rows")
equal("files" in {d["format"] for d in seen}, False, "rows are no texts")

# One file of rows among forty texts; bytes that are no text; arrays next to sounds; tables of Kaldi; mixed kinds.
for i in range(40):
    write(f"one/{'ab'[i % 2]}/{i}.txt", prose(30))
write("one/a/rows.txt", ROWS["libsvm"] * 40)
contains(run("info", f"{SOURCE}/one"), "a/rows.txt\n    format   libsvm\n")
for c in "ab":
    write(f"binary/{c}/x.txt", b"\0" * 50)
    write(f"arrays/{c}/x.wav", sound(10))
    np.save(f"{SOURCE}/arrays/{c}/x.npy", np.zeros((3, 2)))
    write(f"kaldi/wav/{c}/x.wav", sound(10))
    write(f"kinds/{c}/x.{'wav' if c == 'a' else 'txt'}", sound(10))
write("kaldi/data/wav.scp", b"u1 ../wav/a/x.wav\n")
write("single/a/x.wav", sound(10))
contains(run("info", f"{SOURCE}/binary", code=2), "nothing usable")
contains(run("info", f"{SOURCE}/single", code=2), "audio is read in class folders, two or more with nothing else in them")
equal({d["format"] for d in json.loads(run("info", "--json", f"{SOURCE}/arrays"))["datasets"]}, {"npy"}, "arrays")
contains(run("info", f"{SOURCE}/kinds", code=2), "nothing usable")
equal("format   files" in run("info", f"{SOURCE}/kaldi"), False, "sounds that an scp file names")
# Who says of which format all files are is believed.
contains(run("info", "-o", "format=libsvm", f"{SOURCE}/aclImdb/train"), "labeledBow.feat\n    format   libsvm\n", "pos/0_0.txt\n")
