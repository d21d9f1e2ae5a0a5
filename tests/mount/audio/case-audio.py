#!/usr/bin/python3
"""-o audio=: WAV as arrays, at its rate and at another; a file that is cut, and one that is none; kept ones; docs/speech.md."""

import errno
import io
import json
import os
import struct
import subprocess
import tarfile
import wave

import numpy as np

import pages
from lib import EPOCHFS, PRIVATE, SOURCE, contains, equal, expect_error, mounted, path, run, skip

rng = np.random.default_rng(5)
TAR = f"{SOURCE}/speech.tar"


def sound(frames, channels=1, rate=16000, claimed=None):
    """A WAV file, and its array [channels, frames]."""
    numbers = rng.integers(-9000, 9000, (frames, channels)).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setnchannels(channels)
        w.setsampwidth(2)
        w.setframerate(rate)
        w.writeframes(numbers.tobytes())
    data = out.getvalue()
    if claimed:
        data = data[:40] + struct.pack("<I", 2 * channels * claimed) + data[44:]
    return data, (numbers.T / 32768).astype("f4")


FILES = {"a": sound(1000), "b": sound(700, 2), "cut": sound(300, claimed=5000), "none": (b"no audio", np.zeros((1, 0), "f4")),
         "other": sound(4000, rate=8000)}
KEYS = sorted(FILES)
with tarfile.open(TAR, "w") as tar:
    for name in KEYS:
        member = tarfile.TarInfo(f"{name}.wav")
        member.size = len(FILES[name][0])
        tar.addfile(member, io.BytesIO(FILES[name][0]))

if b"lacks a library" in subprocess.run([EPOCHFS, "info", "-o", "audio=native", TAR], stderr=subprocess.PIPE, check=False).stderr:
    skip("built without libsndfile")


def load(name):
    found = np.load(path(f"speech.tar/{name}"))
    return found if name.endswith("npy") else dict(found.items())


for text in ("16k", "0", "native:medium", "16000:mono:fast"):
    contains(run("info", "-o", f"audio={text}", TAR, code=1), f"audio={text}: expected RATE")

said = run("info", "-o", "audio=native", TAR)
contains(said, "audio    float32, varies x varies", "1 of the files of audio are cut short", "record 2 (cut)", "cannot be read",
         "audio=native:mono makes one of all")
contains(run("info", "--check", "-o", "audio=native", TAR, code=2), "record 3 (none): expected WAV", "1 fault in 5 samples")

with mounted(SOURCE, "audio=native"):
    for name in KEYS:
        if name == "none":
            expect_error(errno.EIO, load, f"samples/npy/{name}.audio.npy")
            continue
        equal(load(f"samples/npy/{name}.audio.npy").tobytes(), FILES[name][1].tobytes())
        equal(load(f"samples/npy/{name}.audio_rate.npy"), 8000 if name == "other" else 16000)
    expect_error(errno.EIO, load, "batches/batch=5/npy/000000.audio.npy")
    with open(path("speech.tar/dataset.json"), encoding="utf-8") as f:
        equal(json.load(f)["audio"]["rate"], "native")

for words in ("on_error=skip", "on_error=zero"):
    with mounted(SOURCE, "audio=native", words):
        batch = load("batches/batch=5/npz/000000.npz")
        equal(batch["audio_ok"].tolist(), [True, True, True, False, True])
        equal(batch["audio_shape"].tolist(), [list(FILES[n][1].shape) if n != "none" else [0, 0] for n in KEYS])
        equal(batch["audio"].tobytes(), b"".join(FILES[n][1].tobytes() for n in KEYS))
        equal(batch["audio_rate"].tolist(), [16000, 16000, 16000, 0, 8000])
        equal(load("batches/batch=seconds:100/npz/000000.npz")["index"].tolist(), [4, 0, 1, 2, 3])

# Kept arrays are the same, and nothing is decoded again.
kept = ("audio=16000:mono", "on_error=zero", f"cache_dir={PRIVATE}/cache", "decoded_cache=1G")
seen = []
for again in range(2):
    with mounted(SOURCE, *kept):
        batch = load("batches/batch=5/npz/000000.npz")
        equal(batch["audio_offsets"].tolist(), [0, 1000, 1700, 2000, 2000, 10000])
        equal(batch["audio"][:1000].tobytes(), FILES["a"][1].tobytes())
        equal(batch["audio"][1000:1700].tobytes(), ((FILES["b"][1][0].astype("f8") + FILES["b"][1][1]) / 2).astype("f4").tobytes())
        with open(path(".epochfs/status.json"), encoding="utf-8") as f:
            decoded = json.load(f)["pictures"]["decoded"]
        equal(decoded > 0, not again, "what is decoded")
        seen.append(batch["audio"].tobytes())
equal(seen[0], seen[1])

# Recordings of Kaldi, which segments cut; one that Kaldi does not read.
os.makedirs(f"{PRIVATE}/kaldi")
data, array = sound(8000)
for name, text in (("r.wav", data), ("wav.scp", b"rec r.wav\n"), ("segments", b"u1 rec 0.1 0.25\nu2 rec 0.2 0.5\n"), ("utt2spk", b"u1 s\nu2 s\n")):
    with open(f"{PRIVATE}/kaldi/{name}", "wb") as f:
        f.write(text)
for times, parts in ((None, ((1600, 4000), (3200, 8000))), (b"u1 rec 0.0 0.25\nu2 rec 0.3 0.5\n", ((0, 4000), (4800, 8000)))):
    if times:  # what is kept is of the old ones
        with open(f"{PRIVATE}/kaldi/segments", "wb") as f:
            f.write(times)
    with mounted(f"{PRIVATE}/kaldi", *kept):
        batch = dict(np.load(path("all/batches/batch=2/npz/000000.npz")).items())
        equal(batch["audio_offsets"].tolist(), [0, parts[0][1] - parts[0][0], sum(b - a for a, b in parts)])
        equal(batch["audio"].tobytes(), b"".join(array[0][a:b].tobytes() for a, b in parts))

# Segments of recordings that Kaldi does not read: 24 bits, two channels. The decoder cuts them; one that ends too late has no array.
os.makedirs(f"{PRIVATE}/deep")
numbers = rng.integers(-2**23, 2**23, (2, 4000, 2)).astype("<i4")
CUTS = {"u1": (0, 0.1, 0.25, 1), "u2": (1, 0.3, 0.5, 0), "u3": (1, 0, 0.1234, 1), "late": (0, 0.4, 1.2, 0)}
for r in range(2):
    with wave.open(f"{PRIVATE}/deep/r{r}.wav", "wb") as w:
        w.setparams((2, 3, 8000, 0, "NONE", ""))
        w.writeframes(numbers[r].reshape(-1, 1).view("u1")[:, :3].tobytes())
for name, text in (("wav.scp", "r0 r0.wav\nr1 r1.wav\n"), ("utt2spk", "".join(f"{u} s\n" for u in CUTS)),
                   ("segments", "".join(f"{u} r{r} {a} {b} {c}\n" for u, (r, a, b, c) in CUTS.items()))):
    with open(f"{PRIVATE}/deep/{name}", "w", encoding="utf-8") as f:
        f.write(text)
parts = {u: (numbers[r, int(a * 8000 + .5):int(b * 8000 + .5), c] / 2**23).astype("f4") for u, (r, a, b, c) in CUTS.items()}
with mounted(f"{PRIVATE}/deep", "audio=native:mono", "on_error=zero"):
    batch = dict(np.load(path("all/batches/batch=4/npz/000000.npz")).items())
    equal(batch["audio_ok"].tolist(), [True, True, True, False])
    equal(batch["audio"].tobytes(), b"".join(parts[u].tobytes() for u in CUTS if u != "late"))
    equal(np.load(path("all/samples/npy/u2.audio.npy")).tobytes(), parts["u2"].tobytes())
    expect_error(errno.EIO, np.load, path("all/samples/npy/late.audio.npy"))
contains(run("info", "--check", "-o", "audio=native", f"{PRIVATE}/deep", code=2), "r0.wav: cannot be cut by segments: it ends more than 0.5 s after")
contains(run("info", f"{PRIVATE}/deep"), "and -o audio=16000:mono shows its samples as an array")

world = pages.World()
os.makedirs("/mnt/speech")
for k in range(3):
    for i in range(20):
        world.file(f"/data/speech/train/c{k}/{k}-{i}.wav", sound(200 + 10 * i)[0])
world.run("docs/speech.md", "Audio as arrays", then={"audio_offsets": "assert x.dtype == 'f4' and len(offsets) == 33 and offsets[-1] == len(x)"})
