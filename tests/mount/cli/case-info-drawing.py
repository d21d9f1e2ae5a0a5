#!/usr/bin/python3
"""What `epochfs info` draws on a terminal: pixels in greys or characters, audio and lengths as bars, by TERM, NO_COLOR and the
locale; never wider than the terminal, never of many lines, and nothing at all on a pipe."""

import os
import re
import struct
import subprocess

import numpy as np

import kaldi_dirs
from lib import EPOCHFS, SOURCE, contains, equal, idx_bytes, run, write
from tar_model import shard
from terminal import on_terminal
from tokens_model import megatron

LINES_MOST = 12
COLOURS = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
SHADES, ASCII = " ░▒▓█", " .:-=+*#%@"
BARS = " ▁▂▃▄▅▆▇█"


def drawn(lines, dataset):
    """The lines after the empty line that follows a dataset's fields."""
    below = lines[lines.index(dataset):]
    below = below[below.index("") + 1:]
    ends = [i for i, line in enumerate(below) if line and not line.startswith("    ")]
    return below[:ends[0]] if ends else below


def plain(line):
    return re.sub(r"\033\[[0-9;]*m", "", line)


def check_size(lines, columns):
    for line in lines:
        equal(len(plain(line)) <= columns, True, f"{columns} columns: {line!r}")


def greys(lines):
    """The greys of the upper and lower halves of all characters; -1: no grey."""
    rows = []
    for line in lines:
        upper, lower, front, back = [], [], -1, -1
        for colour, which, character in re.findall(r"\033\[([34]8;5;(\d+)|0)m|(.)",
                                                   line.removeprefix("    ")):
            if colour == "0":
                front = back = -1
            elif colour.startswith("38"):
                front = int(which)
            elif colour.startswith("48"):
                back = int(which)
            elif character:
                equal(character in "▀ ", True, f"{character!r} in {line!r}")
                upper.append(front if character == "▀" else -1)
                lower.append(back if character == "▀" else -1)
        rows += [upper, lower]
    return np.array(rows)


# ---- pictures ----

ramp = np.zeros((3, 20, 20), np.uint8)
ramp[0] = np.arange(20)[:, None] * 13  # dark above
ramp[1] = np.arange(20)[None, :] * 13  # dark at the left
ramp[2] = 255
write("train-images-idx3-ubyte", idx_bytes(ramp))
write("train-labels-idx1-ubyte", idx_bytes(np.array([4, 5, 6], np.uint8)))


def check_pictures():
    lines = drawn(on_terminal(SOURCE, **COLOURS), "train")
    check_size(lines, 80)
    equal(len(lines), 11, "10 lines of two pixels each, and the captions")
    equal(re.split("  +", lines[-1].strip()), ["000000", "label 4", "000001", "label 5", "000002",
                                               "label 6"], "captions")
    found = greys(lines[:-1])
    for i, picture in enumerate(ramp):
        want = 232 + np.floor(picture / 255 * 23 + 0.5).astype(int)
        equal(found[:, 22 * i:22 * i + 20].tolist(), want.tolist(), f"greys of sample {i}")
    equal(set(found[:, 20:22].ravel().tolist()), {-1}, "between two")
    for name, more in (("NO_COLOR", {"NO_COLOR": "1"}), ("no TERM", {"TERM": ""}),
                       ("dumb", {"TERM": "dumb"}), ("eight colours", {"TERM": "vt100"})):
        lines = drawn(on_terminal(SOURCE, **{**COLOURS, **more}), "train")
        equal("\033" in "".join(lines), False, f"{name}: escapes")
        mean = ramp.reshape(3, 10, 2, 20).mean(axis=2)
        want = np.floor(mean / 255 * 4 + 0.5).astype(int)
        for i in range(3):
            equal([[SHADES.index(c) for c in line[4 + 22 * i:24 + 22 * i]] for line in lines[:-1]],
                  want[i].tolist(), f"{name}: shades of sample {i}")
    for locale in ("C", "POSIX", "no_SUCH.UTF-8"):
        lines = drawn(on_terminal(SOURCE, **{**COLOURS, "LC_ALL": locale}), "train")
        equal("".join(lines).isascii() and "\033" not in "".join(lines), True, locale)
        want = np.floor(mean / 255 * 9 + 0.5).astype(int)
        equal([[ASCII.index(c) for c in line[4:24]] for line in lines[:-1]], want[0].tolist(),
              f"{locale}: characters")


def check_no_terminal():
    for words in ((), ("--json",)):
        printed = run("info", *words, SOURCE, env={**os.environ, **COLOURS})
        equal(printed.isascii(), True, f"{words} on a pipe: {printed}")
    equal("\n".join(on_terminal("--json", SOURCE, **COLOURS)) + "\n", printed, "--json on a terminal")
    on_pipe = run("info", SOURCE)
    told = on_terminal(SOURCE, columns=24, **COLOURS)
    equal("\n".join(told) + "\n", on_pipe, "a terminal of 24 columns is too narrow")


def check_widths():
    for columns in (26, 40, 67, 68, 80, 132, 1000):
        lines = on_terminal(SOURCE, columns=columns, **COLOURS)
        shown = drawn(lines, "train")
        check_size(shown, columns)
        equal(len(re.findall("label", shown[-1])), min(3, (columns - 4 + 2) // 22), f"{columns} columns")


check_pictures()
check_no_terminal()
check_widths()


# ---- other forms ----

def others():
    rng = np.random.default_rng(2)
    write("more/huge", idx_bytes(rng.integers(0, 256, (2, 900, 30), dtype=np.uint8)))
    write("more/empty", idx_bytes(np.zeros((0, 28, 28), np.uint8)))
    write("more/hollow", idx_bytes(np.zeros((2, 0, 28), np.uint8)))
    write("more/only", idx_bytes(np.arange(9, dtype=np.uint8)))
    write("more/cubes", idx_bytes(rng.normal(size=(4, 3, 8, 9)).astype(np.float32)))
    colours = np.stack([ramp, ramp, 255 - ramp], axis=3)  # the mean is never that of one
    write("more/colours", idx_bytes(colours))
    write("more/flat", idx_bytes(np.full((4, 2, 2), np.nan, np.float32)))
    write("more/vectors", idx_bytes(np.tile(np.arange(64, dtype=np.int32), (3, 1))))
    write("rows/rows.txt", b"1 0:1 63:4\n0 2:2 # note\n-1.5 1:1\n" * 9)
    made = kaldi_dirs.Folder(rng, "speech", 9, 2).keep("feats", "text", "utt2spk")
    made.write()
    waves = [(f"utt{i}", kaldi_dirs.wave_bytes(kaldi_dirs.tone(rng, 4000))) for i in range(3)]
    write("waves/waves.ark", kaldi_dirs.archive(waves)[0])
    write("words/text", b"one a\x1b[31mb\xc3\xa9\ntwo c\xff d\n")
    write("words/utt2spk", b"one she\ntwo he\n")


def check_others():
    lines = on_terminal(f"{SOURCE}/more", **COLOURS)
    check_size(lines, 80)
    equal(len(drawn(lines, "huge")), 11, "a picture that is much higher than wide")
    equal("".join(drawn(lines, "only")).count("label"), 5, "scalars alone are a line each")
    contains(" ".join(drawn(lines, "cubes")), "▀", "000002")
    found = greys(drawn(lines, "colours")[:-1])
    for i, picture in enumerate(ramp.astype(float)):
        want = 232 + np.floor((picture + 255) / 3 / 255 * 23 + 0.5).astype(int)
        equal(found[:, 22 * i:22 * i + 20].tolist(), want.tolist(), f"colours of sample {i}, grey")
    equal(re.sub(r"(.)\1+", r"\1", drawn(lines, "vectors")[0].split("  ")[-1]), BARS, "a ramp")
    equal("not drawn" in "\n".join(lines), False, lines)
    lines = on_terminal(f"{SOURCE}/rows", **COLOURS)
    found = [line.strip() for line in drawn(lines, "rows.txt")]
    equal([line.split("  ")[:2] for line in found[:3]],
          [["000000", "label 1"], ["000001", "label 0"], ["000002", "label -1.5"]], "rows")
    equal(re.sub(" +", " ", found[0]), "000000 label 1 ▂ █", "features 0 and 63")
    lines = on_terminal(f"{SOURCE}/speech", **COLOURS)
    contains("\n".join(drawn(lines, "all")), "s0-u000", "lengths of feats: ")
    lines = on_terminal(f"{SOURCE}/waves", **COLOURS)
    contains("\n".join(drawn(lines, "waves.ark")), "utt0", "█")
    told = drawn(on_terminal(f"{SOURCE}/words", **COLOURS), "all")
    equal([line.rstrip() for line in told], ["    one  a?[31mbé  she", "    two  c? d  he"], "text of others")
    told = drawn(on_terminal(f"{SOURCE}/words", **{**COLOURS, "LC_ALL": "C"}), "all")
    equal(told[0].rstrip(), "    one  a?[31mb??  she", "the same without UTF-8")


def check_unreadable():
    write("bad/rows.txt", b"1 0:1\n1 x:1\n1 2:1\n" * 4)
    told = drawn(on_terminal(f"{SOURCE}/bad/rows.txt", **COLOURS), "rows.txt")
    equal([re.sub(" +", " ", line).strip() for line in told],
          ["000000 label 1 █", "000001 label ?", "000002 label 1 █", "000003 label 1 █",
           "000004 label ?"], "a row that cannot be read")
    data, at = kaldi_dirs.archive([(key, kaldi_dirs.fm(np.ones((4, 3), np.float32))) for key in "ab"])
    write("bad/two.ark", data)
    kaldi_dirs.script("bad/two.scp", [f"a two.ark:{at[0]}", f"b two.ark:{at[1] + 2}"])
    told = drawn(on_terminal(f"{SOURCE}/bad/two.scp", **COLOURS), "two.scp")
    contains(told[-2], "a")
    contains(told[-1], "(not drawn: two.scp:2: ", "two.ark")


def check_many():
    for i in range(10):
        write(f"many/{i}", idx_bytes(ramp))
    lines = on_terminal(f"{SOURCE}/many", **COLOURS)
    equal(sum("000000" in line for line in lines), 8, "datasets that are drawn")
    for name in "01234567":
        equal(len(drawn(lines, name)) <= LINES_MOST, True, f"lines of {name}")


# ---- audio, and lengths of texts ----

def wav(loud, bits):
    """Samples as loud as that, one after another, in a file of audio of one channel."""
    body = b"".join(struct.pack("<i", int(v * 0x7fffffff))[4 - bits // 8:] for v in loud) if bits > 8 else \
        bytes(int(128 + v * 127) for v in loud)
    fmt = struct.pack("<HHIIHH", 1, 1, 8000, 1000 * bits, bits // 8, bits)
    return b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", len(body)) + body


SPHERE = (b"NIST_1A\n   1024\nchannel_count -i 1\nsample_rate -i 8000\nsample_n_bytes -i 2\nsample_byte_format -s2 01\n"
          b"sample_sig_bits -i 16\nsample_count -i 900\nsample_coding -s3 pcm\nend_head\n")
RAMP = np.repeat(np.arange(9) / 8, 100) * np.tile([1, -1], 450)  # nine steps, from silence to full
TEXTS = [1, 1, 1, 1, 2, 2, 3, 64]  # bytes


def check_audio():
    sounds = [wav(RAMP, 16), wav(RAMP, 8), wav(RAMP[::-1], 24), b"RIFF, and no more", SPHERE.ljust(1024) + b"".join(
        struct.pack("<h", int(v * 32767)) for v in RAMP)]
    write("sounds/a.tar", shard([(f"{i}.wav", data) for i, data in enumerate(sounds)]))
    told = drawn(on_terminal(f"{SOURCE}/sounds", **COLOURS), "a.tar")
    found = [re.sub(r"(.)\1+", r"\1", line[len("    0  "):]).rstrip() for line in told[:5]]
    equal(found, [BARS, BARS, BARS[::-1].rstrip(), "", BARS], "steps as bars")
    plain_told = drawn(on_terminal(f"{SOURCE}/sounds", **{**COLOURS, "LC_ALL": "C"}), "a.tar")
    equal("".join(plain_told).isascii() and plain_told[0].endswith("@"), True, plain_told)
    equal(len(plain_told), 5, "no lengths of audio files")


def check_lengths():
    write("texts/a.tar", shard([(f"{i}.txt", b"x" * n) for i, n in enumerate(TEXTS)]))
    told = drawn(on_terminal(f"{SOURCE}/texts", **COLOURS), "a.tar")
    equal(told[0].split(), ["0", "x"], "the first text")
    equal(told[5], "    lengths of txt: 1 to 64 bytes, half of them up to 1", "words")
    equal(told[6].split(), ["█▄▄"], "bars: 4 and 2 samples, then one with the longest")
    rows = [b'{"text": "%s"}\n' % (b"x" * n) for n in (5, 9, 9)]
    write("rows-json/a.jsonl", b"".join(rows))
    told = drawn(on_terminal(f"{SOURCE}/rows-json", **{**COLOURS, "LC_ALL": "C"}), "a.jsonl")
    equal([told[0].rstrip(), told[3]], ['    000000  {"text": "xxxxx"}',
                                        "    lengths of json: 17 to 21 bytes, half of them up to 21"], "JSON lines")
    equal(told[4].strip(), "#   @".replace("#", told[4].strip()[0]), "bars of JSON lines")
    equal("lengths" in run("info", f"{SOURCE}/texts"), False, "lengths on a pipe")
    write("tokens/m.bin", np.arange(60, dtype="<u2").tobytes())
    index, data = megatron([np.arange(n) for n in (4, 6, 20, 30)], range(5), "u2")
    write("tokens/m.idx", index)
    write("tokens/m.bin", data)
    told = drawn(on_terminal(f"{SOURCE}/tokens", **COLOURS), "m")
    contains("\n".join(told), "lengths of tokens: 4 to 30, half of them up to 6")


def check_no_python():
    """What it prints has no drawings then."""
    told = on_terminal(f"{SOURCE}/texts", **COLOURS, EPOCHFS_PYTHON=f"{SOURCE}/none")
    equal("\n".join(told) + "\n", run("info", f"{SOURCE}/texts"), "without Python")


if b"lacks a library" not in subprocess.run([EPOCHFS, "info", "-o", "audio=native", SOURCE], stderr=subprocess.PIPE, check=False).stderr:
    check_audio()
check_lengths()
check_no_python()
others()
check_others()
check_unreadable()
check_many()
