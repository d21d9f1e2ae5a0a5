#!/usr/bin/python3
"""What `epochfs info` draws on a terminal: pixels in greys or characters, by TERM, NO_COLOR and the
locale; never wider than the terminal, never of many lines, and nothing at all on a pipe."""

import os
import re

import numpy as np

import kaldi_dirs
from lib import SOURCE, contains, equal, idx_bytes, run, write
from terminal import on_terminal

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
    contains(drawn(lines, "all")[-1], "s0-u000")
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


others()
check_others()
check_unreadable()
check_many()
