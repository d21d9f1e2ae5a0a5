#!/usr/bin/python3
# plain: names and texts decide, in the unit tests of a claim
"""Trees of speech, by their shapes: transcripts, tables without quotes, trees of texts, lists. What a shape does not say is refused."""

import io
import os
import wave

import numpy as np

from lib import SOURCE, contains, equal, mounted, path, run

out = io.BytesIO()
with wave.open(out, "wb") as w:
    w.setnchannels(1)
    w.setsampwidth(2)
    w.setframerate(16000)
    w.writeframes(bytes(64))
WAV = out.getvalue()


def make(name, files):
    for file, data in files.items():
        where = f"{SOURCE}/{name}/{file}"
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
    return f"{SOURCE}/{name}"


def wavs(*stems):
    return {f"{stem}.wav": WAV for stem in stems}


def value(z, field):
    if field not in z:
        return None
    v = z[field]
    v = bytes(v) if v.dtype == np.uint8 else v.item()
    return v.decode().strip() if isinstance(v, bytes) else v


# name: files; datasets, and of each some samples with fields, None: it has no such; what a note says.
TREES = {
    "libri": ({**wavs("dev-clean/88/12/88-12-0", "dev-clean/88/12/88-12-1", "dev-clean/174/5/174-5-0", "test-other/3/7/3-7-0"),
               "dev-clean/88/12/88-12.trans.txt": "88-12-0 ONE TWO\n88-12-1 THREE\n", "dev-clean/174/5/174-5.trans.txt": "174-5-0 FOUR\n",
               "test-other/3/7/3-7.trans.txt": "3-7-0 FIVE\n", "SPEAKERS.TXT": "; names\n", "README.TXT": "x\n"},
              {"dev-clean": {"88-12-0": {"txt": "ONE TWO", "speaker": "88", "chapter": "12", "label": 1}, "174-5-0": {"txt": "FOUR", "label": 0}},
               "test-other": {"3-7-0": {"txt": "FIVE", "speaker": "3"}}}, ()),
    "voice": ({**wavs("clips/a0", "clips/a1", "clips/a2"), "clip_durations.tsv": "clip\tms\na0.wav\t4\n",
               "train.tsv": 'client\tpath\tsentence\tup\tage\nx\ta0.wav\t"Quoted" start\t2\t\ny\ta1.wav\t"open\t0\ttwenties\nz\tno.wav\tgone\t1\t\n',
               "test.tsv": "client\tpath\tsentence\tup\tage\nx\ta2.wav\tplain, comma\t1\t\n"},
              {"train": {"a0": {"sentence": '"Quoted" start', "up": 2, "age": None}, "a1": {"sentence": '"open', "age": "twenties"}},
               "test": {"a2": {"sentence": "plain, comma", "up": 1, "age": None}}},
              ("clip_durations.tsv is ignored: it has no column path", "train.tsv: 1 of its rows name no file")),
    "lj": ({**wavs("wavs/L1", "wavs/L2"), "metadata.csv": 'L1|In 1881, "x|In eighteen\nL2|Dr. Who|Doctor Who\nL3||\n', "README": "x"},
           {"all": {"L1": {"text": 'In 1881, "x', "normalized": "In eighteen"}, "L2": {"normalized": "Doctor Who"}}},
           ("metadata.csv: 1 of its rows name no file",)),
    "vctk": ({**wavs("wav48/p1/p1_1_mic1", "wav48/p1/p1_1_mic2", "wav48/p2/p2_1_mic1", "wav48/p3/p3_1_mic1"),
              "txt/p1/p1_1.txt": "Hello", "txt/p2/p2_1.txt": "There", "speaker-info.txt": "ID AGE\np1 3\n", "wav48/log.txt": "log\n",
              "wav48/p1/p1_1_mic1_x.log": "x"},
             {"all": {"p1_1": {"mic1.wav": True, "mic2.wav": True, "txt": "Hello", "speaker": "p1", "label": 0},
                      "p2_1": {"mic2.wav": None, "txt": "There"}, "p3_1": {"txt": None, "label": 2}}}, ()),
    "commands": ({**wavs("bed/1", "bed/2", "bed/3", "no/1", "no/2", "no/3", "_background_noise_/n"), "LICENSE": "x",
                  "testing_list.txt": "bed/1.wav\nno/1.wav\n", "validation_list.txt": "bed/2.wav\nno/2.wav\n"},
                 {"all": {"bed%2F1": {"label": 0}, "no%2F3": {"label": 1}}, "testing": {"no%2F1": {"label": 1}}, "validation": {"bed%2F2": {"label": 0}},
                  "training": {"bed%2F3": {}, "no%2F3": {"label": 1}}}, ()),
    "shell": ({**wavs("wav/train/S02/BAC_S02_1", "wav/dev/S03/BAC_S03_1", "wav/dev/S03/BAC_S03_2"),
               "transcript/all_transcript.txt": "BAC_S02_1 而 对\nBAC_S03_1 广州\n"},
              {"train": {"BAC_S02_1": {"txt": "而 对", "speaker": "S02"}}, "dev": {"BAC_S03_1": {"txt": "广州"}, "BAC_S03_2": {"txt": None}}},
              ("1 of 2 samples have no txt",)),
    "vox": ({**wavs("wav/id1/v/1", "wav/id1/w/1", "wav/id2/v/1", "wav/id2/x/1"), "veri_test.txt": "1 id1/v/1.wav id2/v/1.wav\n",
             "iden_split.txt": "1 id1/v/1.wav\n2 id1/w/1.wav\n3 id2/v/1.wav\n1 id2/x/1.wav\n"},
            {"all": {"id1%2Fv%2F1": {"label": 0}}, "train": {"id2%2Fx%2F1": {"label": 1}}, "dev": {"1": {"label": 0}}, "test": {}},
            ("veri_test.txt is ignored: its lines are pairs",)),
    "books": ({**wavs("train/audio/10/7/10_7_1", "dev/audio/10/7/10_7_2"), "train/transcripts.txt": "10_7_1\tone two\n",
               "train/segments.txt": "10_7_1\thttp://x\t0\t1\n", "dev/transcripts.txt": "10_7_2\tthree\n"},
              {"train": {"10_7_1": {"txt": "one two", "speaker": "10", "chapter": "7"}}, "dev": {"10_7_2": {"txt": "three"}}},
              ("segments.txt is ignored: its columns have no names",)),
    "parts": ({**wavs("train/a0", "train/a1", "dev/b0"), "text.txt": "a0 one\nb0 two\n",
               "split.txt": "1 train/a0.wav\n1 train/a1.wav\n2 train/a0.wav\n2 dev/b0.wav\n"},
              {"train": {"a0": {"txt": "one"}, "a1": {"txt": None}}, "dev": {"b0": {"txt": "two"}}},
              ("split.txt is ignored: its sounds are of several datasets",)),
}

for name, (files, datasets, notes) in TREES.items():
    source = make(name, files)
    contains(run("info", source), *notes)
    with mounted(source):
        found = [d for d in os.listdir(path()) if os.path.isdir(path(d)) and d != ".epochfs"]
        equal(sorted(found), sorted(datasets), name)
        for dataset, samples in datasets.items():
            for key, fields in samples.items():
                z = dict(np.load(path(f"{dataset}/samples/npz/{key}.npz")).items())
                for field, want in fields.items():
                    if want is True:
                        equal(bytes(z[field.rpartition(".")[0] if field not in z else field]), WAV, f"{name}/{dataset}/{key}: {field}")
                    else:
                        equal(value(z, field), want, f"{name}/{dataset}/{key}: {field}")

source = make("language", {**wavs("cv/en/clips/voice_en_1"), "cv/en/train.tsv": "path\tup\nvoice_en_1.wav\t2\n"})
equal(run("info", source).count("label"), 0, "a language is no class")

# Nothing is guessed: numbers that may be speakers, one stem in two folders, other formats.
for name, files in {
        "filelist": {**wavs("wavs/x0", "wavs/x1"), "train.txt": "wavs/x0.wav|3|hello\nwavs/x1.wav|4|there\n"},
        "long": {**wavs("wavs/x0", "wavs/x1"), "text.txt": "x0 hello\n" * 70 + "x1 " + "a" * (2 << 20) + "\n"},
        "twice": {**wavs("wav/a/1", "wav/b/1", "wav/b/2"), "text.txt": "1 hello\n"},
        "segments": {**wavs("train/sph/T"), "train/stm/T.stm": "T 1 S 0 1 <o> hello\n"}}.items():
    text = run("info", make(name, files), code=0 if name == "twice" else 2)
    contains(text, {"twice": "not usable", "long": "text.txt, line 71: expected at most"}.get(name, "nothing usable"))
