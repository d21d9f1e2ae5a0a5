#!/usr/bin/python3
"""The file `segments` of a data directory: utterances are cut out of recordings as by Kaldi's
extract-segments, exact to the sample; lines that it skips make no utterance."""

import os
import shutil
import subprocess

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, Dataset, Item
from lib import MOUNTPOINT, SLOW, SOURCE, contains, equal, log_text, mounted, path, text, write

rng = np.random.default_rng(36)


def fresh():
    shutil.rmtree(SOURCE)
    os.mkdir(SOURCE)


def recordings():
    """Recordings with rates that put times between samples, and with one, two and three
    channels."""
    found = {f"r{rate}": kd.tone(rng, n, 1, rate)
             for rate, n in ((8000, 16000), (11025, 15000), (16000, 40003), (22050, 30001),
                             (44100, 50000), (7, 30), (1, 9), (48000, 24000))}
    found["stereo"] = kd.tone(rng, 12000, 2, 8000)
    found["three"] = kd.tone(rng, 5000, 3, 16000)
    found["tiny"] = kd.tone(rng, 100, 1, 8000)
    return found


def edges(name, wave):
    """Lines with times around every limit."""
    n, rate = wave.samples.shape[0], wave.rate
    length = n / rate
    f4_length = float(np.float32(n) / np.float32(rate))
    times = ["0", "0.0", "-0", "+0", "0.1", "0.5", "1", "1.0", "1e-1", ".25", "1.", "-1", "-1.0",
             "-1e0", "-2",
             "-0.5", f"{length}", f"{f4_length!r}", f"{length + .5}", f"{f4_length + .5!r}",
             f"{length + .5000001}", f"{length + .499}", f"{length + .6}", f"{length - .1}",
             f"{length - .10001}", f"{length + 1e-9}", f"{length + 100}", "1e9", "1e300", "inf",
             "-inf",
             "infinity", "1e400", "x", "1x", "0x1", "1,5", "1:2", "--1", "1e", "."]
    lines = [(a, b) for a in times[:12] + times[16:19] + times[23:27] + times[30:] for b in times]
    for k in (0, 1, 2, 799, 800, 1234, n - 1):  # half a sample: 800.5 / 8000 and its neighbours
        for part in (.25, .499999, .5, .500001, .75):
            at = (k + part) / rate
            for more in (900.5, 900.4999, 1500.25):
                lines.append((repr(at), repr(at + more / rate)))
            lines.append((f"{at:.6f}", "-1"))
            lines.append(("0", f"{at:.4f}"))
    for length_ in ("0.0999999", "0.1", "0.10000000149", "0.1000000015", "0.100001"):
        for start in (0, .3, .5, 1):
            lines.append((repr(float(start)), repr(float(start) + float(length_))))
    rng.shuffle(lines)
    return [[name, a, b] for a, b in lines[:150 if SLOW else 400]]


def write_dir(name, lines, waves, speakers=False):
    """A directory of just segments and wav.scp, perhaps with utt2spk."""
    for key, wave in waves.items():
        if wave != BAD:
            write(f"{name}/audio/{key}.wav", kd.wave_bytes(wave))
    kd.script(f"{name}/wav.scp", [f"{key} audio/{key}.wav" for key in waves])
    kd.script(f"{name}/segments", lines)
    if speakers:
        first = [line.split()[0] for line in lines if line.split()]
        kd.script(f"{name}/utt2spk", [f"{u} s{i % 3}" for i, u in enumerate(first)])


def items_of(cut):
    return [BAD if wave == BAD else Item("wave", wave,
                                         kd.wave_bytes(wave)) for wave in cut.values()]


def check_dir(name, lines, waves, encodings, samples=None):
    """The remaining utterances, in the order of their lines."""
    cut = kd.extract_segments(lines, waves)
    ds = Dataset(path(name, "all"), list(cut), {"wav": items_of(cut)})
    ds.alone = False
    kd.check_names(ds)
    every = range(len(ds.keys)) if samples is None else samples(len(ds.keys))
    for i in every:
        kd.check_sample(ds, i, encodings)
    return ds


def check_edges():
    fresh()
    waves = recordings()
    tables = {}
    for name, wave in waves.items():
        if wave.samples.shape[1] == 1:
            lines = [" ".join([f"u{i:04d}", *words]) for i, words in enumerate(edges(name, wave))]
            good = kd.extract_segments(lines, {name: wave})
            equal(len(good) > 5 or len(wave.samples) < 200, True,
                  f"{name}: the test's own good lines")
            equal(len(good) < len(lines), True, f"{name}: the test's own skipped lines")
            tables[name] = lines
            write_dir(name, lines, {name: wave})
    with mounted():
        for name, lines in tables.items():
            if not kd.extract_segments(lines, {name: waves[name]}):
                continue  # nothing is left
            ds = check_dir(name, lines, waves, ["wav"])
            for i in range(0, len(ds.keys), max(len(ds.keys) // 8, 1)):
                kd.check_sample(ds, i)
            skipped = [line.split()[0] for line in lines if line.split()[0] not in ds.keys]
            said = text(ds.folder, "dataset.json") + log_text()
            equal(skipped[0] in said or kd.names_line(
                said, "segments", [line.split()[0] for line in lines].index(skipped[0]) + 1), True,
                f"{name}: the first line that was skipped, {skipped[0]}, is named")


def check_rounding():
    """(int32)(t * rate + 0.5) at both ends, by hand."""
    fresh()
    wave = kd.tone(rng, 8000, 1, 8000)
    want = {"a": ("0", "0.5", 0, 4000), "b": ("0.0000624", "0.5", 0, 4000),
            "c": ("0.0000625", "0.5", 1, 4000), "d": ("0.25", "0.5000624", 2000, 4000),
            "e": ("0.25", "0.5000626", 2000, 4001), "f": ("0.25", "-1", 2000, 8000),
            "g": ("0.5", "1.5", 4000, 8000), "h": ("0.5", "1.4", 4000, 8000),
            "i": ("0.899", "1", 7192, 8000), "j": ("0", "1", 0, 8000),
            "k": ("0.3333", "0.6667", 2666, 5334)}
    lines = [f"{u} r {a} {b}" for u, (a, b, _, _) in want.items()]
    lines += ["x r 0.9 1", "y r 0.5 1.5001", "z r 0.95 1", "w r 0.5 0.5", "v r 0.6 0.5",
              "u r -0.1 0.5",
              "t r 0 0", "s r 0.2 -2", "q r 1 -1", "p r 1.1 -1", "o r 0 0.1"]
    write_dir("d", lines, {"r": wave})
    with mounted():
        cut = kd.extract_segments(lines, {"r": wave})
        equal(list(cut), list(want), "the test's own model: what is skipped")
        for u, (_, _, first, last) in want.items():
            equal(cut[u].samples.tobytes(), wave.samples[first:last].tobytes(),
                  f"the test's own model: {u}")
            file = path(f"d/all/samples/wav/{u}.wav")
            kd.check_wave(kd.whole(file), kd.Wave(wave.samples[first:last], 8000), file)
        check_dir("d", lines, {"r": wave}, None)


LINES = ["u01 r8000 0 1", "u02\tr8000\t0.5\t1.5", "  u03  r8000 \t 0.5   1 ", "u04 r8000 0 1\r",
         "u05 r8000 0", "u06 r8000", "u07", "", " ", "u10 r8000 0 1 0", "u11 r8000 0 1 1",
         "u12 r8000 0 1 -1",
         "u13 r8000 0 1 x", "u14 r8000 0 1 0.0", "u15 r8000 0 1 0 0", "u16 r8000 0 1 0 # more",
         "u17 none 0 1", "u18 R8000 0 1", "u19 stereo 0 1 0", "u20 stereo 0 1 1",
         "u21 stereo 0 1 2",
         "u22 stereo 0.25 -1 1", "u23 three 0 0.2 2", "u24 three 0 0.2 0", "u25 three 0 0.2 3",
         "u26 tiny 0 -1", "u27 tiny 0 0.0125", "u28 r8000 0 2.5", "u29 r8000 0 2.50001",
         "u30 r8000 1 -1",
         "u31 r8000 0 1 +0", "u32 stereo 0 1 01", "u33 stereo 0 1 2147483648", "u34 r44100 0.1 0.9",
         "u35 r16000 0 99", "u38 r11025 0.7 1.2 0", "u39 r8000 nan 1",
         "u40 r8000 0 nan", "u41 r8000 0 inf", "u42 r8000 -inf 1"]


def check_lines():
    """Words, channels, recordings: no bad line stops the file or crashes the mount."""
    fresh()
    waves = recordings()
    unclear = {"u39", "u40"}  # Kaldi goes on with what is no number
    sure = [line for line in LINES if line.split() == [] or line.split()[0] not in unclear]
    write_dir("d", LINES, waves)
    write_dir("last", ["u1 r8000 0 1", "u2 r8000 0 -1"], {"r8000": waves["r8000"]})
    with open(f"{SOURCE}/last/segments", "ab") as f:
        f.write(b"u3 r8000 0.5 1")  # without an end
    with mounted():
        names = [n for n in os.listdir(path("d/all/samples/wav")) if n.split(".")[0] in unclear]
        for name in names:
            kd.expect_eio(path("d/all/samples/wav", name))
        cut = kd.extract_segments(sure, waves)
        equal({"u01", "u02", "u03", "u04", "u10", "u19", "u20", "u22", "u23", "u24", "u28", "u30",
               "u31",
               "u32", "u34", "u38"}, set(cut), "the test's own model")
        listed = {n.split(".")[0] for n in os.listdir(path("d/all/samples/wav"))} - unclear
        equal(listed, set(cut), "utterances")
        for u, wave in cut.items():
            file = path(f"d/all/samples/wav/{u}.wav")
            kd.check_wave(kd.whole(file), wave, file)
        check_dir("last", ["u1 r8000 0 1", "u2 r8000 0 -1", "u3 r8000 0.5 1"], waves, None)


def check_channels_missing():
    """Several channels and none given: Kaldi ends there, epochfs goes on."""
    fresh()
    waves = recordings()
    lines = ["u1 r8000 0 1", "u2 stereo 0 1", "u3 r8000 0.5 1.5", "u4 three 0 0.2",
             "u5 stereo 0 1 1"]
    write_dir("d", lines, waves)
    with mounted(SOURCE, "log=debug", log="log.channels"):
        listed = {n.split(".")[0] for n in os.listdir(path("d/all/samples/wav"))}
        equal({"u1", "u3", "u5"} - listed, set(), "utterances that are fine")
        for u in listed - {"u1", "u3", "u5"}:
            for file in (f"wav/{u}.wav", f"npy/{u}.wav.npy", f"npz/{u}.npz"):
                kd.expect_eio(path("d/all/samples", file))
        for u, wave in kd.extract_segments(lines, waves).items():
            if wave != BAD:
                file = path(f"d/all/samples/wav/{u}.wav")
                kd.check_wave(kd.whole(file), wave, file)
        said = text(path("d/all/dataset.json")) + log_text("log.channels")
        equal(kd.names_line(said, "segments", 2) or "u2" in said, True,
              "line 2 of segments is named")
        equal("channel" in said, True, f"the reason names the channel: {said!r:.2000}")


def check_bad_recordings():
    """A recording that is missing, or no audio that Kaldi reads: only its utterances fail."""
    fresh()
    wave = kd.tone(rng, 8000, 1, 8000)
    waves = {"good": wave, "none": BAD, "cut": BAD, "eight": BAD, "text": BAD}
    lines = [f"{name}-{i} {name} {i / 10} {i / 10 + .3}" for name in waves for i in range(3)]
    write_dir("d", lines, waves)
    data = kd.wave_bytes(wave)
    write("d/audio/cut.wav", data[:30])
    write("d/audio/eight.wav", data[:34] + b"\x08" + data[35:])
    write("d/audio/text.wav", b"no audio\n")
    kd.script("d/utt2spk", [f"{line.split()[0]} s" for line in lines])
    with mounted(SOURCE, "log=debug", log="log.bad"):
        cut = kd.extract_segments(lines, waves)
        equal(sum(w == BAD for w in cut.values()), 12, "the test's own bad utterances")
        ds = Dataset(path("d/all"), list(cut), {"wav": items_of(cut),
                                                "utt2spk": [kd.text_item("s")] * len(cut)})
        kd.check(ds)
        said = text(path("d/all/dataset.json")) + log_text("log.bad")
        for name in ("none", "cut", "eight", "text"):
            equal(f"{name}.wav" in said, True, f"{name}.wav is named: {said!r:.3000}")
    with mounted(SOURCE, "kaldi=p", log="log.p"):
        good = {u: w for u, w in cut.items() if w != BAD}
        kd.check(Dataset(path("d/all"), list(good), {"wav": items_of(good),
                                                     "utt2spk": [kd.text_item("s")] * len(good)}))


def check_joined():
    """With all other tables: by utterance, by speaker, and reco2dur by recording."""
    fresh()
    folder = kd.Folder(rng, "d", 24, 3)
    waves = {f"reco{i}": kd.tone(rng, 9000 + i, 2 if i == 1 else 1, 8000) for i in range(3)}
    recording = {u: f"reco{i % 3}" for i, u in enumerate(folder.utterances)}
    lines = [f"{u} {recording[u]} {i / 50:.3f} {i / 50 + .3:.3f}" + (" 1" if i % 3 == 1 else "")
             for i, u in enumerate(folder.utterances)]
    skipped = {folder.utterances[5]: "0.5 0.55", folder.utterances[6]: "9 10"}
    lines = [line if line.split()[0] not in skipped else
             f"{line.split()[0]} {line.split()[1]} {skipped[line.split()[0]]}" for line in lines]
    lines.append("s9-extra reco0 0 0.5")
    folder.tables["reco2dur"] = {r: kd.number_item(np.float64)(w.samples.shape[0] / 8000)
                                 for r, w in waves.items()}
    folder.tables["reco2file_and_channel"] = {r: kd.text_item(f"{r}.sph  B") for r in waves}
    folder.tables["utt2dur"]["s9-extra"] = kd.number_item(np.float64)(0.5)
    wav = folder.tables.pop("wav")
    folder.write()
    write_dir("d", lines, waves)
    cut = kd.extract_segments(lines, waves)
    folder.tables["wav"] = {u: Item("wave", w, kd.wave_bytes(w)) for u, w in cut.items()}
    equal(len(wav), len(cut) + 1, "the test's own segments")
    keys, fields, missing = kd.join(folder.utterances, folder.tables, folder.speaker, recording)
    equal((len(keys), list(missing)), (22, ["wav"]), "the test's own join")
    with mounted():
        ds = Dataset(path("d/all"), keys, fields)
        kd.check(ds, samples=[0, 1, 7, 21])
        kd.check_batch(ds, f"{ds.folder}/batches/batch=5", 1, [5, 6, 7, 8, 9])
        found = kd.page(ds)
        gone = {name: v["keys"] for name, v in found["missing_keys"].items() if v["count"]}
        equal({k for keys in gone.values() for k in keys}, set(skipped), f"missing: {gone}")
        extra = {name: v["keys"] for name, v in found["extra"].items() if v["count"]}
        equal("s9-extra" in extra.get("utt2dur", []), True, f"extra: {extra}")


def check_same_words():
    """Utterances with the names of recordings, even of other recordings."""
    fresh()
    waves = {name: kd.tone(rng, 8000 + i, 1, 8000) for i, name in enumerate(("a", "b", "c"))}
    lines = ["a a 0 0.5", "a-2 a 0.5 1", "c b 0 0.75", "b c 0.25 1", "b-2 b 0.1 0.9"]
    write_dir("d", lines, waves, speakers=True)
    lengths = {name: kd.number_item(np.float64)(len(w.samples) / 8000) for name, w in waves.items()}
    kd.script("d/reco2dur", [f"{name} {item.value!s}" for name, item in lengths.items()])
    cut = kd.extract_segments(lines, waves)
    with mounted():
        kd.check(Dataset(path("d/all"), list(cut), {
            "wav": items_of(cut), "reco2dur": [lengths[line.split()[1]] for line in lines]}))


def check_recording_order():
    """segments decides the order where there is no utt2spk, or feats.scp next to it."""
    fresh()
    folder = kd.Folder(rng, "d", 6, 2).keep("feats", "text")
    folder.write()
    wave = kd.tone(rng, 8000, 1, 8000)
    order = list(reversed(folder.utterances))
    lines = [f"{u} r 0.{i} 0.{i + 3}" for i, u in enumerate(order)]
    write_dir("d", lines, {"r": wave})
    cut = kd.extract_segments(lines, {"r": wave})
    with mounted():
        fields = {name: [folder.tables[name][u] for u in order] for name in ("feats", "text")}
        kd.check(Dataset(path("d/all"), order, fields | {"wav": items_of(cut)}))


def check_without_audio():
    """segments with a wav.scp that is missing: the other tables work; one that is refused: an error, but with kaldi=p."""
    fresh()
    for name in ("refused", "gone"):
        folder = kd.Folder(rng, name, 6, 2).keep("feats", "text", "utt2spk").write()
        kd.script(f"{name}/segments", [f"{u} r 0 0.5" for u in folder.utterances])
    kd.script("refused/wav.scp", ["r cat audio.wav |"])
    with mounted(log="log.refused"):
        contains(text(path("refused/all/ERROR.txt")), "refused/wav.scp", "allow_commands")
        equal(len(os.listdir(path("gone/all/samples/txt"))) > 0, True, "without wav.scp")
    with mounted(SOURCE, "kaldi=p", log="log.without"):
        for name in ("refused", "gone"):
            found = os.listdir(path(name, "all/samples/txt"))
            equal(len([n for n in found if n.endswith(".text.txt")]), 6, f"{name}: utterances")
        kd.check_error(path("refused/wav.scp"), "allow_commands")
    equal(subprocess.run(["pgrep", "-f", "cat audio.wav"], stdout=subprocess.DEVNULL).returncode, 1,
          "no command has run")


check_rounding()
check_lines()
check_channels_missing()
check_bad_recordings()
check_joined()
check_same_words()
check_recording_order()
check_without_audio()
check_edges()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
