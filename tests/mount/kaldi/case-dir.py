#!/usr/bin/python3
"""Kaldi data directories: tables joined by utterance, by speaker and by recording, what is missing
and extra, shuffled padded batches, tables that cannot be used; and a real one."""

import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import kaldi_dirs as kd
import order_reference
from kaldi_dirs import BAD, Dataset, Folder, Item
from lib import (MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains, content, equal, expect_error,
                 log_text,
                 mounted, path, run, text, write)

ref = order_reference.load()
rng = np.random.default_rng(77)


def fresh():
    shutil.rmtree(SOURCE)
    os.mkdir(SOURCE)


def check_missing(folder, missing, extra, what):
    """Compare dataset.json with the keys that each table lacks or has in excess."""
    found = kd.page(folder)
    for member, want in (("missing_keys", missing), ("extra", extra)):
        have = {name: (v["count"], sorted(v["keys"])) for name, v in found.get(member, {}).items()
                if v["count"]}
        equal(have, {name: (len(keys), sorted(keys)) for name, keys in want.items() if keys},
              f"{what}: {member} of dataset.json")


# ---- a whole one ----

PLANS = ["batch=4", "batch=5,tail=drop", "batch=4,seed=7", "batch=3,seed=1,shuffle=window:4",
         "batch=4,part=1of3", "batch=3,rank=1of2,seed=9,tail=wrap",
         "batch=all,part=2of4,rank=0of2,seed=3", "batch=1,seed=5", "batch=40"]


def check_plan(ds, plan, epoch, encodings=None):
    n = len(ds.keys)
    folder = f"{ds.folder}/batches/{plan}" + (f"/epoch={epoch}" if "seed" in plan else "")
    count = ref.batch_count(n, plan)
    listed = [name for name in os.listdir(f"{folder}/npy") if name.endswith(".index.npy")]
    equal(len(listed), count, f"{plan}: batches")
    every = list(range(count))
    for b in every if len(every) < 5 else [0, 1, count - 1]:
        kd.check_batch(ds, folder, b, ref.batch_samples(n, plan, epoch, b), encodings)


def check_full():
    fresh()
    full = Folder(rng, "train", 26, 3).write()
    with mounted():
        equal(sorted(n for n in os.listdir(path()) if n not in ("README.txt", ".epochfs")),
              ["train"],
              "folders of the mount")
        ds, missing = full.dataset(path("train/all"))
        equal((len(ds.keys), missing), (26, {}), "the test's own directory")
        check_page(ds)
        kd.check(ds, samples=[0, 7, 25])
        for i in range(len(ds.keys)):
            kd.check_sample(ds, i, ["npz", "txt"])
        for plan in PLANS:
            for epoch in (0, 3) if "seed" in plan and not SLOW else (0,):
                check_plan(ds, plan, epoch)
        check_readers(ds)
        check_fields_of_files(ds)
        check_missing(ds.folder, {}, {}, "a whole directory")
        check_readme()
    found = json.loads(run("info", "--json", SOURCE))
    equal([(d["dataset"], d["samples"]) for d in found["datasets"]], [("train/all", 26)],
          "info --json")
    contains(run("info", "--check", SOURCE), "train/all", "feats", "utt2num_frames")
    with mounted(f"{SOURCE}/train"):  # the directory itself
        ds.folder = path("all")
        kd.check(ds, samples=[3])
    for name in ("feats", "text", "utt2dur"):  # one table of it
        file = full.file(name)
        with mounted(f"{SOURCE}/{file}"):
            keys = list(full.tables[name])
            one = Dataset(path(os.path.basename(file)), keys,
                          {"data": list(full.tables[name].values())})
            if name != "utt2dur":
                kd.check(one, samples=[0, 25])
            else:
                equal(len(os.listdir(path("utt2dur/samples/npz"))), 26, "utt2dur alone")


def check_readme():
    """The paths and the Python of README.txt work."""
    readme = text(path("README.txt"))
    contains(readme, "train/all", "26 samples")
    words = [w.strip("',;.()\"") for w in re.findall(r"/[^\s\"']+", readme)]
    found = [w for w in words if w.startswith(f"{MOUNTPOINT}/")]
    equal(len(found) > 0, True, f"paths in {readme!r:.2000}")
    for word in found:
        os.stat(word)
    lines = re.search(r"^  import .*?(?=^\s*$|\Z)", readme, re.M | re.S)[0]
    subprocess.run([sys.executable, "-c", re.sub("^  ", "", lines, flags=re.M)], check=True)


def check_page(ds):
    found = kd.page(ds)
    equal((found["dataset"], found["format"], found["samples"]), ("all", "kaldi", 26),
          "dataset.json")
    fields = {f["name"]: f for f in found["fields"]}
    for name, dtype in (("feats", "<f4"), ("cmvn", "<f8"), ("vad", "<f4"), ("wav", "<i2"),
                        ("utt2dur", "<f8"), ("utt2num_frames", "<i4"), ("reco2dur", "<f8"),
                        ("text", "|S"), ("utt2spk", "|S")):  # how long differs from file to file
        equal(fields[name]["descr"], dtype, f"dataset.json: dtype of {name}")
    encodings = {"raw", "npy", "npz", "ark", "tar", "wav", "txt"}
    equal(encodings - set(found["encodings"]), set(), "encodings")
    equal({"train/feats.scp", "train/wav.scp", "train/text", "train/utt2spk"} -
          {s["file"] for s in found["sources"]}, set(), "sources of dataset.json")
    equal({"feats.scp", "wav.scp", "text", "utt2spk"} - set(os.listdir(f"{ds.folder}/source")),
          set(),
          "source/")


def check_readers(ds):
    """Typical uses."""
    files = sorted(os.listdir(f"{ds.folder}/batches/batch=8,seed=2/epoch=5/npz"))
    equal(len(files), 4, "batches of an epoch")
    seen = []
    for file in files:
        with np.load(f"{ds.folder}/batches/batch=8,seed=2/epoch=5/npz/{file}") as batch:
            for i, key in enumerate(batch["key"]):
                at = ds.keys.index(key.decode())
                feats = batch["feats"][batch["feats_offsets"][i]:batch["feats_offsets"][i + 1]]
                equal(np.array_equal(feats, ds.fields["feats"][at].value), True, f"feats of {key}")
                equal(batch["text"][i], ds.fields["text"][at].value, f"text of {key}")
                equal(batch["utt2num_frames"][i], len(feats), f"frames of {key}")
                seen.append(at)
    equal(sorted(seen), list(range(26)), "an epoch has every utterance once")
    mapped = np.load(f"{ds.folder}/samples/npy/{ds.keys[4]}.feats.npy", mmap_mode="r")
    equal(np.array_equal(mapped, ds.fields["feats"][4].value), True, "a mapped array")
    import wave
    with wave.open(f"{ds.folder}/samples/wav/{ds.keys[4]}.wav") as f:
        audio = ds.fields["wav"][4].value
        equal((f.getnchannels(), f.getframerate(), f.getnframes()), (1, 8000, len(audio.samples)),
              "audio by Python's wave")
        equal(f.readframes(10 ** 6), audio.samples.tobytes(), "its samples")


def check_fields_of_files(ds):
    """Every listed file opens, and belongs to a known field and encoding."""
    for scope in ("samples", "batches/batch=9"):
        for enc in os.listdir(f"{ds.folder}/{scope}"):
            names = os.listdir(f"{ds.folder}/{scope}/{enc}")
            equal(len(names) > 2, True, f"{scope}/{enc}: files")
            for name in names[::7]:
                kd.whole(f"{ds.folder}/{scope}/{enc}/{name}")


# ---- joins ----

def check_joins():
    """Directories that differ in which tables they have, all in one mount."""
    fresh()
    dirs = {}

    def add(name, n=9, speakers=3):
        dirs[name] = Folder(rng, name, n, speakers)
        return dirs[name]

    add("gaps")
    holes(dirs["gaps"])
    add("order")
    reorder(dirs["order"])
    add("no-speakers").keep("feats", "wav", "text")
    for name, tables in (("from-feats", ["feats", "vad", "text"]), ("from-wav", ["wav", "text"]),
                         ("from-text", ["text", "utt2dur"]), ("only-text", ["text"]),
                         ("only-utt2spk", ["utt2spk"]), ("only-feats", ["feats"]),
                         ("only-wav", ["wav"]), ("deep/er/down", ["feats", "text"])):
        first = add(name).keep(*tables)
        back = first.tables[tables[0]]
        first.tables[tables[0]] = {u: back[u] for u in reversed(list(back))}
    own = add("cmvn-by-utterance").keep("feats", "cmvn", "text")
    own.tables["cmvn"] = {u: Item("matrix", m, kd.fm(m)) for u in own.utterances
                          for m in [rng.normal(size=(2, 6))]}
    for folder in dirs.values():
        folder.write()
    # Other files of such folders.
    kd.table("gaps/other", [("k", kd.fm(np.ones((2, 2), np.float32)))])
    write("gaps/frame_shift", b"0.01\n")
    write("gaps/conf/mfcc.conf", b"--use-energy=false\n")
    with mounted():
        for name, folder in dirs.items():
            if list(folder.tables) in (["text"], ["feats"], ["wav"]):  # a table on its own
                [table] = folder.tables
                ds = Dataset(path(folder.file(table)), folder.tables[table],
                             {"data": list(folder.tables[table].values())})
                kd.check(ds, samples=[0, len(ds.keys) - 1])
                continue
            ds, missing = folder.dataset(path(name, "all"))
            equal(len(ds.keys) > 1, True, f"{name}: the test's own samples")
            kd.check(ds, samples=[0, len(ds.keys) - 1])
            check_missing(ds.folder, missing, extra_of(folder), name)
        kd.check(Dataset(path("gaps/other.scp"), ["k"],
                         {"data": [Item("matrix", np.ones((2, 2), np.float32))]}))
        check_gaps_files(dirs["gaps"])


def holes(gaps):
    """Remove keys from some tables, remove a speaker, and add keys that only one table has."""
    u = gaps.utterances
    del gaps.tables["feats"][u[1]]
    del gaps.tables["text"][u[1]]
    del gaps.tables["text"][u[2]]
    del gaps.tables["utt2dur"][u[4]]
    gaps.tables["text"]["s9-nobody"] = kd.text_item("NOBODY SAYS THIS")
    gaps.tables["text"]["a-first"] = kd.text_item("NOR THIS")
    gaps.tables["feats"]["s9-nobody"] = gaps.tables["feats"][u[0]]
    gaps.tables["cmvn"]["s9"] = gaps.tables["cmvn"]["s0"]
    gaps.tables["spk2gender"]["s9"] = kd.text_item("m")


def extra_of(folder):
    base = next(list(folder.tables[name]) for name in ("utt2spk", "feats", "wav", "text")
                if name in folder.tables)
    speakers = {i.value.decode() for i in folder.tables.get("utt2spk", {}).values()}
    own = {name: speakers if name in kd.BY_SPEAKER and speakers else set(base)
           for name in folder.tables}
    return {name: sorted(set(items) - own[name]) for name, items in folder.tables.items()
            if set(items) - own[name]}


def reorder(folder):
    """Each table in an order of its own; utt2spk decides."""
    for name, items in folder.tables.items():
        keys = list(items)
        rng.shuffle(keys)
        folder.tables[name] = {key: items[key] for key in keys}


def check_gaps_files(gaps):
    """There is no file for an utterance that a table lacks, and none for an extra one."""
    folder = path("gaps/all/samples")
    for key in (gaps.utterances[1], gaps.utterances[2], gaps.utterances[4], "s9-nobody", "a-first"):
        for file in (f"npy/{key}.feats.npy", f"npz/{key}.npz", f"txt/{key}.text.txt",
                     f"wav/{key}.wav"):
            expect_error(2, os.stat, f"{folder}/{file}")


def check_same_words():
    """An utterance with the name of a speaker: tables by speaker stay so."""
    fresh()
    folder = Folder(rng, "d", 5, 2).keep("utt2spk", "feats", "cmvn", "spk2gender", "text")
    names = dict(zip(folder.utterances, ["s0", "s0-b", "s1-x", "s1", "s0-c"]))
    speaker = dict(zip(names.values(), ["s0", "s0", "s1", "s1", "s0"]))
    for table in ("utt2spk", "feats", "text"):
        folder.tables[table] = {names[u]: item for u, item in folder.tables[table].items()}
    folder.tables["utt2spk"] = {u: kd.text_item(s) for u, s in speaker.items()}
    folder.utterances, folder.speaker = list(speaker), speaker
    folder.write()
    crossed = Folder(rng, "crossed", 2, 2).keep("utt2spk", "cmvn", "spk2gender")
    crossed.utterances, crossed.speaker = ["s0", "s1"], {"s0": "s1", "s1": "s0"}
    crossed.tables["utt2spk"] = {u: kd.text_item(s) for u, s in crossed.speaker.items()}
    crossed.write()
    with mounted():
        for made, n in ((folder, 5), (crossed, 2)):
            ds, missing = made.dataset(path(made.name, "all"))
            equal((len(ds.keys), missing), (n, {}), "the test's own directory")
            kd.check(ds)


def check_many_missing():
    """A missing speaker, long lists of missing keys, and an empty join."""
    fresh()
    lost = Folder(rng, "lost", 9, 3).keep("feats", "cmvn", "spk2gender", "utt2spk", "text")
    del lost.tables["cmvn"]["s1"]
    lost.write()
    many = Folder(rng, "many", 2000 if SLOW else 5000, 5).keep("utt2spk", "text", "utt2dur")
    for u in many.utterances[10:-10]:
        del many.tables["utt2dur"][u]
    many.write()
    nothing = Folder(rng, "nothing", 6, 2).keep("utt2spk", "text")
    nothing.tables["text"] = {f"x{k}": v for k, v in nothing.tables["text"].items()}
    nothing.write()
    with mounted():
        ds, _ = lost.dataset(path("lost/all"))
        equal(len(ds.keys), 6, "the test's own samples")
        kd.check(ds)
        found = kd.page(ds)["missing_keys"]["cmvn"]
        gone = [u for u in lost.utterances if u.startswith("s1")]
        equal(found in ({"count": 3, "keys": gone}, {"count": 1, "keys": ["s1"]}), True,
              f"a speaker that lacks: {found}")
        ds, _ = many.dataset(path("many/all"))
        equal(len(ds.keys), 20, "the test's own samples")
        kd.check(ds, samples=[0, 19])
        found = kd.page(ds)["missing_keys"]["utt2dur"]
        equal(found["count"], len(many.utterances) - 20, "the count of missing keys")
        equal(found["keys"][0], many.utterances[10], "the first of them")
        folder = path("nothing/all")
        equal(set(os.listdir(folder)) & {"dataset.json", "ERROR.txt"} != set(), True,
              "a join of nothing says something")


# ---- what cannot be used ----

def check_unusable():
    """Lines and tables that cannot be used."""
    fresh()
    some, none, stops, twice = (Folder(rng, name, 8, 2) for name in ("some", "none", "stops",
                                                                     "twice"))
    for folder in (some, none, stops, twice):
        folder.keep("feats", "wav", "text", "utt2spk").write()
    odd = some.utterances[3]
    kd.script("some/wav.scp", [f"{u} " + (f"cat audio/{u}.wav |" if u == odd else
                                         f"audio/{u}.wav") for u in some.utterances])
    lines = some.lines_of("feats")
    lines[5] = f"{some.utterances[5]} none.ark:7"
    kd.script("some/feats.scp", lines)
    kd.script("none/wav.scp", [f"{u} cat audio/{u}.wav |" for u in none.utterances])
    lines = stops.lines_of("feats")
    kd.script("stops/feats.scp", lines[:5] + [""] + lines[5:])
    kd.script("twice/text", twice.lines_of("text") + [f"{twice.utterances[2]} SAID AGAIN"])
    with mounted(SOURCE, "log=debug"):
        ds, _ = some.dataset(path("some/all"))
        ds.fields["wav"][3] = BAD
        ds.fields["feats"][5] = BAD
        kd.check(ds)
        kd.check_batch(ds, f"{ds.folder}/batches/batch=3", 0, [0, 1, 2])
        kd.check_batch(ds, f"{ds.folder}/batches/batch=3", 1, [3, 4, 5])
        kd.check_batch(ds, f"{ds.folder}/batches/batch=3", 2, [6, 7])
        kd.expect_told(ds.folder, "some/wav.scp", 4)
        kd.expect_told(ds.folder, "some/feats.scp", 6)
        contains(log_text() + text(ds.folder, "dataset.json"), "allow_commands")
        kd.check_error(path("none/wav.scp"), "wav.scp", "allow_commands")
        contains(text(path("none/all/ERROR.txt")), "none/wav.scp", "allow_commands", "would lack a field")
        contains(text(path("stops/all/ERROR.txt")), "stops/feats.scp:6: blank line before other lines")
        ds, _ = twice.dataset(path("twice/all"))
        kd.check(ds, samples=[2])
        contains(log_text(), "twice/text: row 9 has the key of row 3")
    with mounted(SOURCE, "log=debug", "kaldi=p", log="log.p"):
        ds, _ = none.keep("feats", "text", "utt2spk").dataset(path("none/all"))
        kd.check(ds, samples=[0])
        equal("wav" in {f["name"] for f in kd.page(ds)["fields"]}, False, "no field wav")
        ds, missing = stops.dataset(path("stops/all"))
        kd.check(ds, samples=[4])
        check_missing(ds.folder, missing, {}, "around a blank line")
        kd.expect_told(ds.folder, "stops/feats.scp", 6, "log.p")


def check_empty_text():
    """Utterances without words, spaces, CRLF, no newline at the end."""
    fresh()
    folder = Folder(rng, "d", 4, 1).keep("utt2spk", "utt2dur", "utt2num_frames").write()
    u = folder.utterances
    write("d/text", f"{u[0]}\n{u[1]} \n{u[2]}\t A  B \tC \r\n{u[3]} LAST".encode())
    folder.tables["text"] = dict(zip(u, map(kd.text_item, ["", "", "A  B \tC", "LAST"])))
    write("d/utt2lang", "".join(f"{k}   x \r\n" for k in u).encode())
    folder.tables["utt2lang"] = {k: kd.text_item("x") for k in u}
    write("d/utt2dur",
          "".join(f"{k} {v} \n" for k, v in zip(u, ["1", "1e-3", "-0.5", "3.25"])).encode())
    folder.tables["utt2dur"] = {k: kd.number_item(np.float64)(v) for k,
                                v in zip(u, [1, 1e-3, -.5, 3.25])}
    with mounted():
        ds, _ = folder.dataset(path("d/all"))
        kd.check(ds)


def check_bad_numbers():
    """utt2dur and utt2num_frames with words: such a table ends there, as an archive does."""
    fresh()
    folder = Folder(rng, "d", 6, 1).keep("utt2spk", "text").write()
    u = folder.utterances
    kd.script("d/utt2dur", [f"{k} {v}" for k, v in zip(u, ["1.5", "2", "2.5", "3.5", "abc", "7"])])
    kd.script("d/utt2num_frames",
              [f"{k} {v}" for k, v in zip(u, [7, 8, 9, "9.5", 10, 99999999999])])
    good = {u[0]: (1.5, 7), u[1]: (2.0, 8), u[2]: (2.5, 9)}
    with mounted():
        names = {n.removesuffix(".npz") for n in os.listdir(path("d/all/samples/npz"))}
        equal((set(good) - names, u[5] in names), (set(), False), "utterances")
        for key in sorted(names):
            if key in good:
                with np.load(path(f"d/all/samples/npz/{key}.npz")) as npz:
                    equal((float(npz["utt2dur"]), int(npz["utt2num_frames"])), good[key], key)
            else:
                kd.expect_eio(path(f"d/all/samples/npz/{key}.npz"))
                equal(text(path(f"d/all/samples/txt/{key}.text.txt")),
                      folder.tables["text"][key].value.decode() + "\n", f"text of {key}")
        contains(text(path("d/all/dataset.json")), u[5])
        contains(log_text(), "d/utt2dur", "d/utt2num_frames")


# ---- a real one ----

SOX = """#!/bin/sh
# A sox that knows `synth <n>s` only: the test has made the audio.
while [ "$1" != synth ]; do shift; done
exec cat "$PRIVATE/tones/$2"
"""


def check_mini_librispeech():
    shared = f"{kd.SHARED_KALDI}/mini_librispeech"
    if not os.path.isdir(shared):
        print("without SHARED_DATA")
        return
    fresh()
    shutil.copytree(shared, f"{SOURCE}/mini")
    subprocess.run(["chmod", "-R", "u+w", SOURCE], check=True)
    waves = {}
    os.makedirs(f"{PRIVATE}/tones")
    for line in content(shared, "wav.scp").decode().splitlines():
        words = line.split()
        length = words[words.index("synth") + 1]
        audio = kd.tone(rng, int(length.rstrip("s")))
        waves[words[0]] = audio
        with open(f"{PRIVATE}/tones/{length}", "wb") as f:
            f.write(kd.wave_bytes(audio))
    os.makedirs(f"{PRIVATE}/bin")
    with open(f"{PRIVATE}/bin/sox", "w", encoding="ascii") as f:
        f.write(SOX)
    os.chmod(f"{PRIVATE}/bin/sox", 0o755)
    # Two recordings of one length have one file: the last one written.
    by_length = {len(audio.samples): audio for audio in waves.values()}
    waves = {key: by_length[len(audio.samples)] for key, audio in waves.items()}
    lines = content(shared, "segments").decode().splitlines()
    cut = kd.extract_segments(lines, waves)
    tables = {name: kd.text_table(content(shared, name), kd.TEXT_TABLES[name])
              for name in ("text", "utt2spk", "spk2gender", "utt2dur", "utt2num_frames",
                           "reco2dur")}
    speaker = {u: i.value.decode() for u, i in tables["utt2spk"].items()}
    recording = {line.split()[0]: line.split()[1] for line in lines}
    keys, fields, missing = kd.join(list(tables["utt2spk"]), tables, speaker, recording)
    equal((len(keys), missing, len(cut)), (38, {}, 38), "the test's own mini_librispeech")
    contains(run("info", os.path.join(SOURCE, "mini"), code=2), "allow_commands")
    with mounted(SOURCE, "kaldi=p", log="log.refused"):
        ds = Dataset(path("mini/all"), keys, fields)
        kd.check(ds, samples=[0, 37])
        kd.check_error(path("mini/wav.scp"), "allow_commands")
    fields["wav"] = [Item("wave", cut[u], kd.wave_bytes(cut[u])) for u in keys]
    os.environ["PATH"] = f"{PRIVATE}/bin:{os.environ['PATH']}"
    with mounted(SOURCE, "allow_commands", log="log.allowed"):
        ds = Dataset(path("mini/all"), keys, fields)
        kd.check_names(ds)
        for i in (0, 1, 20, 37):
            kd.check_sample(ds, i, ["npy", "npz", "wav", "txt", "tar"])
        for i in range(38):
            kd.check_wave(kd.whole(f"{ds.folder}/samples/wav/{keys[i]}.wav"), cut[keys[i]], keys[i])
        check_plan(ds, "batch=8,seed=7", 1, ["npz", "npy", "txt"])
    equal([line for line in log_text("log.allowed").splitlines() if re.search(r"\bsox\b", line)], [], "the log")




check_full()
check_joins()
check_same_words()
check_many_missing()
check_unusable()
check_empty_text()
check_bad_numbers()
check_mini_librispeech()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
