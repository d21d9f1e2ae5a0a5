#!/usr/bin/python3
# needs: python3-scipy
"""Rows K-80 to K-86 of the table of Kaldi's edge cases: waves in archives and in files of their
own, as Kaldi reads them, and the files that show them; Python's wave and scipy read the .wav."""

import errno
import io
import json
import os
import shutil
import struct
import subprocess
import wave

import numpy as np
import scipy.io.wavfile

import kaldi_model
from kaldi_model import (Object, Stream, Table, check_archive, check_sample, check_table,
                         read_ark, read_wave, wave_arrays, wave_bytes, write_ark)
from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error, log_text,
                 mounted, path, text, write as write_file)

rng = np.random.default_rng(16)
SHARED = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "kaldi")
PCM = struct.pack("<4I", 1, 0x00100000, 0xAA000080, 0x719B3800)
NOT_PCM = [PCM[:4 * i] + b"\3\1\1\1" + PCM[4 * i + 4:] for i in range(4)]


def samples(n, channels=1):
    out = rng.integers(-32768, 32768, (n, channels)).astype(np.int16)
    out.reshape(-1)[:2] = [-32768, 32767]
    return out


def riff(data, riff_size=None, data_size=None, channels=1, rate=16000, form=1, bits=16, align=None,
         byte_rate=None, extra=b"", before=b"", between=b"", after=b"", e="<", tag=None,
         fmt_size=None):
    """A wave file, all of whose numbers can be wrong. data: bytes or int16 [n, channels]."""
    if isinstance(data, np.ndarray):
        channels = data.reshape(len(data), -1).shape[1]
        data = data.astype(f"{e}i2").tobytes()
    align = channels * bits // 8 if align is None else align
    byte_rate = rate * channels * bits // 8 if byte_rate is None else byte_rate
    fmt = struct.pack(f"{e}HHIIHH", form, channels, rate, byte_rate, align, bits) + extra
    body = b"WAVE" + before + b"fmt " + \
        struct.pack(f"{e}I", len(fmt) if fmt_size is None else fmt_size) + fmt + between + \
        b"data" + struct.pack(f"{e}I", len(data) if data_size is None else data_size) + data + after
    tag = tag or (b"RIFF" if e == "<" else b"RIFX")
    return tag + struct.pack(f"{e}I", len(body) if riff_size is None else riff_size) + body


def chunk(name, data, e="<"):
    return name + struct.pack(f"{e}I", len(data)) + data


A, B2, LONG = samples(5), samples(7, 2), samples(3000)

# Waves that can be read: row -> (bytes, Kaldi's result).
GOOD = {
    "plain": (riff(A), A), "stereo": (riff(B2), B2), "long": (riff(LONG, rate=44100), LONG),
    "rate-8000": (riff(A, rate=8000), A), "rate-1": (riff(A, rate=1), A),
    "rifx": (riff(B2, e=">"), B2), "many-channels": (riff(samples(3, 300)[:1] * 0 + 5),
                                                   np.full((1, 300), 5, np.int16)),
    "K-83-riff-small": (riff(A, riff_size=4), A),
    "K-83-riff-large": (riff(A, riff_size=10 ** 9), A),
    "fmt-18": (riff(A, extra=b"\0\0"), A), "fmt-odd": (riff(A, extra=b"xyz"), A),
    "extensible": (riff(A, form=0xfffe, extra=struct.pack("<HHI", 22, 16, 4) + PCM), A),
    "before-odd": (riff(A, before=chunk(b"JUNK", b"12345")), A),  # no pad byte
    "between-odd": (riff(A, between=chunk(b"fact", b"1234") + chunk(b"LIST", b"INFOx")), A),
    "between-zero": (riff(A, between=chunk(b"LIST", b"")), A),
}

# Waves that are an error (K-84).
BAD = {
    "8-bit": riff(b"12345", bits=8), "24-bit": riff(b"123456", bits=24),
    "32-bit": riff(bytes(8), bits=32), "float": riff(bytes(8), form=3, bits=32),
    "float-16": riff(bytes(8), form=3), "a-law": riff(bytes(8), form=6, bits=8),
    "mu-law": riff(bytes(8), form=7, bits=8), "gsm": riff(bytes(65), form=49, bits=0, align=65),
    "byte-rate": riff(A, byte_rate=32001), "byte-rate-0": riff(A, byte_rate=0),
    "align": riff(A, align=4), "align-0": riff(A, align=0), "channels-0": riff(b"12", channels=0),
    **{f"extensible-{i}": riff(A, form=0xfffe, extra=struct.pack("<HHI", 22, 16, 4) + guid)
       for i, guid in enumerate(NOT_PCM)},
    "extensible-extra": riff(A, form=0xfffe, extra=struct.pack("<HHI", 21, 16, 4) + PCM),
    "endless-one-byte": riff(b"x", data_size=0), "endless-nothing": riff(b"", riff_size=0),
    "extensible-short": riff(A, form=0xfffe, extra=b"\0\0"),
    "no-data": riff(A).partition(b"data")[0], "fmt-cut": riff(A)[:30], "head-cut": riff(A)[:10],
    "size-cut": riff(A)[:42], "no-samples": riff(b"", data_size=2), "one-byte": riff(b"x"),
    "partial": riff(b"xyz", channels=2), "not-wave": riff(A).replace(b"WAVE", b"AVI "),
    "tag": riff(A, tag=b"RF64"), "fmt-14": riff(A, fmt_size=14),
    "chunk-huge": riff(A, before=b"JUNK\xff\xff\xff\xff"),
    "binary-mark": b"\0B" + riff(A), "text": b" [ 1 2 ]\n", "nothing": b"",
}


def fresh(files):
    shutil.rmtree(SOURCE)
    for name, data in files.items():
        write_file(name, data)


class Files(Table):
    """A table of whole files. keys: key -> bytes of its file."""

    def __init__(self, keys):
        self.files = list(keys.values())
        super().__init__(b"", "wave")
        self.objects = [Object(key, 0, len(data), read_wave(Stream(data)))
                        for key, data in keys.items()]
        self.keys = list(keys)
        self.arrays = wave_arrays(self.objects)

    def raw(self, sample):
        return self.files[sample]


def check_readers(folder, table):
    """Other readers get the same from the .wav."""
    for i, o in enumerate(table.objects):
        file = os.fsencode(folder) + b"/samples/wav/" + kaldi_model.encode(table.keys[i]) + b".wav"
        rate, want = o.value
        data = content(file)
        equal((len(data), os.stat(file).st_size), (44 + want.nbytes,) * 2, f"{file}: size")
        with wave.open(io.BytesIO(data)) as w:
            equal((w.getnchannels(), w.getsampwidth(), w.getframerate(), w.getnframes()),
                  (want.shape[1], 2, rate, len(want)), f"{file}: Python's wave")
            got = np.frombuffer(w.readframes(len(want) + 1), "<i2").reshape(want.shape)
            equal(got.tolist(), want.tolist(), f"{file}: Python's wave")
        got = scipy.io.wavfile.read(io.BytesIO(data))
        equal((got[0], got[1].dtype, got[1].reshape(want.shape).tolist()),
              (rate, np.int16, want.tolist()), f"{file}: scipy")


def check_model():
    """The table above against the tests' own model."""
    for name, (data, want) in GOOD.items():
        kaldi_model.same_array(read_wave(Stream(data))[1], want, f"the model reads {name}")
        equal(data == wave_bytes(want, 16000), name in ("plain", "stereo", "many-channels"),
              f"bytes of {name}")
    for name, data in BAD.items():
        objects, broken = read_ark(write_ark([(b"a", data)]), "wave")
        equal((objects, bool(broken)), ([], True), f"the model reads {name}")


# ---- archives ----

def check_archives():
    mono = {name: data for name, (data, want) in GOOD.items() if want.shape[1] == 1}
    everything = [(name.encode(), data) for name, (data, _) in GOOD.items()]
    files = {"all.ark": write_ark(everything),
             "mono.ark": write_ark([(k.encode(), data) for k, data in mono.items()]),
             "stereo.ark": write_ark([(b"a", riff(B2)), (b"b", riff(samples(3, 2), e=">"))]),
             "tab.ark": b"a\t" + riff(A) + b"\n \nb " + riff(LONG) + b"\n"}
    fresh(files)
    with mounted():
        for name, data in files.items():
            table = check_archive(name, data, "wave")
            equal((table.broken, len(table) > 1), (None, True), f"{name}: the model")
            check_table(table, path(name))
            check_readers(path(name), table)
        shapes = {name: np.load(path(name, "samples/npy/plain.data.npy")).shape
                  for name in ("all.ark", "mono.ark")}
        equal(shapes, {"all.ark": (5, 1), "mono.ark": (5,)}, "mono alone, and beside stereo")
        page = json.loads(text(path("mono.ark/dataset.json")))
        equal("wav" in page["encodings"], True, f"encodings: {page['encodings']}")


def check_remains():
    """K-80 to K-82: bytes that Kaldi leaves in the stream become part of the next key; bytes that
    it consumes too many are missing there."""
    files = {
        "K-80-pad.ark": (write_ark([(b"a", riff(A.tobytes() + b"\5")), (b"b", riff(A)),
                                    (b"c", riff(A))]), [b"a", b"\5b", b"c"]),
        "K-80-list.ark": (write_ark([(b"a", riff(A, after=b"LIST\4\0\0\0INFO")), (b"b", riff(A))]),
                          [b"a", b"LIST\4\0\0\0INFOb"]),
        "K-80-partial.ark": (write_ark([(b"a", riff(B2.tobytes() + b"xyz", channels=2)),
                                        (b"b", riff(B2))]), [b"a", b"xyzb"]),
        "K-80-last.ark": (write_ark([(b"a", riff(A)), (b"b", riff(A, after=b"LIST\4\0\0\0INFO"))]),
                          [b"a", b"b"]),
        "K-80-blank.ark": (write_ark([(b"a", riff(A)),
                                      (b"b", riff(A, after=chunk(b"id3 ", b"x")))]), None),
        "K-81-data-0.ark": (write_ark([(b"a", riff(A)), (b"b", riff(A, data_size=0)),
                                       (b"c", riff(A))]), [b"a", b"b"]),
        "K-81-data-ff.ark": (write_ark([(b"a", riff(A)), (b"b", riff(A, data_size=2 ** 32 - 1))]),
                             [b"a", b"b"]),
        "K-81-sox.ark": (write_ark([(b"a", riff(B2, data_size=0x7ffff000)), (b"b", riff(A))]),
                         [b"a"]),
        "K-81-riff-0.ark": (write_ark([(b"a", riff(A)), (b"b", riff(A, riff_size=0)),
                                       (b"c", riff(A)), (b"d", riff(A))]), [b"a", b"b"]),
        "K-81-riff-ff.ark": (write_ark([(b"a", riff(LONG, riff_size=2 ** 32 - 1))]), [b"a"]),
        "K-82-middle.ark": (write_ark([(b"a", riff(A)), (b"b", riff(A, data_size=40)),
                                       (b"c", riff(A)), (b"d", riff(A))]), None),
        "K-82-last.ark": (write_ark([(b"a", riff(A)), (b"b", riff(A, data_size=4000))]),
                          [b"a", b"b"]),
        "K-82-odd.ark": (write_ark([(b"a", riff(A)), (b"b", riff(B2.tobytes()[:-1], channels=2,
                                                                 data_size=400))]), [b"a", b"b"]),
    }
    fresh({name: data for name, (data, _) in files.items()})
    with mounted(SOURCE, "kaldi_type=wave"):
        for name, (data, keys) in files.items():
            objects, broken = read_ark(data, "wave")
            if keys:
                equal((keys, None), ([o.key for o in objects], broken), f"the model reads {name}")
            check_archive(name, data, "wave")
            check_readers(path(name), Table(data, "wave"))


def check_rejects():
    files = {}
    for name, data in BAD.items():
        files[f"K-84-{name}.ark"] = write_ark([(b"bad", data)])
        files[f"K-84-{name}-second.ark"] = write_ark([(b"a", riff(A)), (b"bad", data)])
    files["K-84-middle.ark"] = write_ark([(b"a", riff(A)), (b"bad", BAD["8-bit"]),
                                          (b"c", riff(A))])
    fresh(files)
    with mounted(SOURCE, "kaldi_type=wave", log="log.rejects"):
        for name, data in files.items():
            table = check_archive(name, data, "wave", encodings=["raw", "npy", "wav", "ark"])
            equal((bool(table.broken), len(table.objects)), (True, "-second" in name or
                                                            "middle" in name), f"{name}: the model")
            if table.objects:
                contains(log_text("log.rejects"), name)
    with mounted(SOURCE, "kaldi_type=wave", "kaldi=p", log="log.p"):
        for name, data in files.items():
            check_archive(name, data, "wave", permissive=True, encodings=["wav"])


# ---- files of their own ----

def scp(lines):
    return "".join(f"{key} {place}\n" for key, place in lines).encode()


def check_whole_files():
    """raw/ shows the file as it is, everything else what Kaldi reads. Paths are relative to the
    folder of the scp, which is also the working folder."""
    files = {f"wav/{name}.wav": data for name, (data, _) in GOOD.items()}
    tails = {"K-80-pad": riff(A.tobytes() + b"\5"), "K-80-list": riff(A, after=b"LIST\4\0\0\0INFO"),
             "K-81-data-0": riff(A, data_size=0), "K-81-sox": riff(A, data_size=0x7ffff000),
             "K-81-riff-0": riff(A, riff_size=0, after=b"LIST\4\0\0\0INFO"),
             "K-82": riff(LONG, data_size=7000)}
    files.update({f"wav/{name}.wav": data for name, data in tails.items()})
    names = sorted(files)
    keys = {os.path.basename(n)[:-4].encode(): files[n] for n in names}
    mono = {key: data for key, data in keys.items() if read_wave(Stream(data))[1].shape[1] == 1}
    files["wav.scp"] = scp([(os.path.basename(n)[:-4], n) for n in names])
    files["mono.scp"] = scp([(key.decode(), f"wav/{key.decode()}.wav") for key in mono])
    files["absolute.scp"] = scp([(key.decode(), f"{SOURCE}/wav/{key.decode()}.wav")
                                 for key in mono])
    fresh(files)
    os.chdir(SOURCE)
    with mounted():
        for name, table in (("wav.scp", Files(keys)), ("mono.scp", Files(mono)),
                            ("absolute.scp", Files(mono))):
            if os.path.exists(path(name, "ERROR.txt")):
                raise AssertionError(f"{name}: {text(path(name, 'ERROR.txt'))}")
            check_table(table, path(name), batch=4)
            check_readers(path(name), table)
    for name in ("wav.scp", "mono.scp"):
        with mounted(f"{SOURCE}/{name}"):
            check_table(Files(keys if name == "wav.scp" else mono), path(name), batch=50)
    os.chdir(PRIVATE)


def check_bad_files():
    """K-84, K-86: those samples fail, the others work."""
    files = {f"bad/{name}.wav": data for name, data in BAD.items()}
    files["good.wav"] = riff(A)
    names = ["good", *BAD, "range", "columns", "missing", "last"]
    where = {"good": "good.wav", "last": "good.wav", "range": "good.wav[0:2]",
             "columns": "good.wav[0:0,0:1]", "missing": "nowhere.wav"}
    files["wav.scp"] = scp([(n, where.get(n, f"bad/{n}.wav")) for n in names])
    fresh(files)
    os.chdir(SOURCE)
    with mounted(f"{SOURCE}/wav.scp", log="log.files"):
        folder = path("wav.scp/samples")
        equal(sorted(os.listdir(f"{folder}/raw")), sorted(f"{n}.data.raw" for n in names),
              "files of samples, good or bad")
        for n in names:
            for file in (f"npy/{n}.data.npy", f"wav/{n}.wav", f"ark/{n}.ark", f"tar/{n}.tar"):
                if n in ("good", "last"):
                    equal(len(content(folder, file)) > 40, True, file)
                else:
                    expect_error(errno.EIO, content, folder, file)
        kaldi_model.check_npy(content(folder, "npy/last.data.npy"), A[:, 0], "last")
        expect_error(errno.EIO, content, path("wav.scp/batches/batch=2/npy/000000.data.npy"))
    contains(log_text("log.files"), "bad/8-bit.wav")
    os.chdir(PRIVATE)


def check_channel():
    """One of many channels, as segments select it."""
    audio = samples(300, 9000)
    fresh({"x.wav": wave_bytes(audio, 2000), "wav.scp": b"reco x.wav\n",
           "segments": b"utt reco 0 0.12 5\nvtt reco 0.02 0.14 1\n", "utt2spk": b"utt s\nvtt s\n"})
    os.chdir(SOURCE)
    with mounted():
        folder = path("all/samples/npy")
        # Kaldi counts channels from 0.
        for key, first, channel in (("utt", 0, 5), ("vtt", 40, 1)):
            kaldi_model.check_npy(content(folder, f"{key}.wav.npy"),
                                  audio[first:first + 240, channel], key)
    os.chdir(PRIVATE)


# ---- the data that is shared ----

def check_shared():
    shutil.rmtree(SOURCE)
    shutil.copytree(SHARED, SOURCE)
    subprocess.run(["chmod", "-R", "u+rwX", SOURCE], check=True)
    whole = ["kaldi/test.wav", "wav/stereo.wav", "wav/mono_c0.wav"]
    keys = [b"kaldi-test", b"stereo", b"mono0"]
    table = Files({key: content(SHARED, name) for key, name in zip(keys, whole)})
    archive = Table(content(SHARED, "wavark/wav.ark"), "wave")
    equal([(o.value[0], o.value[1].shape) for o in archive.objects],
          [(16000, (23001, 1)), (8000, (8000, 2)), (8000, (4000, 1)), (8000, (4000, 1))],
          "the model reads wav.ark")
    write_file("rejects.scp", scp([("good", "wav/stereo.wav"),
                                   ("float", "wav-rejects/test-44100Hz-2ch-32bit-float-le.wav"),
                                   ("byte", "wav-rejects/test-8000Hz-le-2ch-1byteu.wav")]))
    os.chdir(SOURCE)
    with mounted():
        for sample in range(3):
            check_sample(table, path("wav_in.scp"), sample)
        check_table(archive, path("wavark/wav.scp"), encodings=["npy", "npz", "tar", "wav", "ark"])
        check_readers(path("wavark/wav.scp"), archive)
        for key in ("float", "byte"):
            expect_error(errno.EIO, content, path(f"rejects.scp/samples/wav/{key}.wav"))
    for i, name in enumerate(whole):
        rate, data = scipy.io.wavfile.read(f"{SHARED}/{name}")
        kaldi_model.same_array(table.objects[i].value[1], data.reshape(len(data), -1), name)
        equal(table.objects[i].value[0], rate, name)
    os.chdir(PRIVATE)


check_model()
check_archives()
check_remains()
check_rejects()
check_whole_files()
check_bad_files()
check_channel()
if os.path.isdir(SHARED):
    check_shared()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
