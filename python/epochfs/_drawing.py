"""The drawings of `epochfs info`: numbers as characters of a terminal. Pixels are half blocks in shades of grey, heights are bars;
in simpler forms without colours, or without Unicode. fs/cli/drawing.c reads the samples."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

import numpy as np

INDENT, GAP = "    ", "  "
CAPTION_WIDTH = 20          # columns at least, more if the panel is wider
BARS, WORDS_MOST = 64, 40   # at most; columns of the text before bars
LOW_BAR = 0.125             # of a length that there is, however rare
GREY_FIRST, GREYS = 232, 24  # of the 256 colours, dark to light
ASCII, SHADES, STEPS = " .:-=+*#%@", " ░▒▓█", " ▁▂▃▄▅▆▇█"
COMMANDS = {0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)}  # turn the direction, or end a line


def _steps(v: np.ndarray, n: int) -> np.ndarray:
    """The place of each v, from 0 to 1, among n steps."""
    return (np.clip(np.nan_to_num(v.astype(np.float32), nan=0), 0, 1) * np.float32(n - 1) + np.float32(0.5)).astype(int)


class Screen:
    """What the terminal can show."""

    def __init__(self, columns: int, unicode: bool, greys: bool) -> None:
        self.columns, self.unicode, self.greys = columns, unicode, greys and unicode

    def pixels(self, upper: np.ndarray, lower: np.ndarray) -> str:
        """Characters of two pixels each, one above the other, from 0, black, to 1."""
        if not self.greys:
            marks = SHADES if self.unicode else ASCII
            return "".join(marks[i] for i in _steps((upper + lower) / 2, len(marks)))
        line, was = "", (-1, -1)  # the upper half block has the foreground colour, the lower half the background colour
        for pair in zip(_steps(upper, GREYS).tolist(), _steps(lower, GREYS).tolist()):
            for which, new, old in zip((38, 48), pair, was):
                line += f"\033[{which};5;{GREY_FIRST + new}m" if new != old else ""
            line, was = line + "▀", pair
        return line + "\033[0m"

    def bars(self, heights: np.ndarray) -> str:
        """A bar of each height, from 0 to 1."""
        marks = STEPS if self.unicode else ASCII
        return "".join(marks[i] for i in _steps(heights, len(marks)))

    def plain(self, words: bytes) -> str:
        """The words; bytes that a terminal would obey as commands, or cannot show, are '?'."""
        shown = ""
        for c in words.decode("utf-8", "surrogateescape"):
            code, n = ord(c), len(c.encode("utf-8", "surrogateescape"))
            is_bad = code < 32 or 0x7F <= code < 0xA0 or code in COMMANDS or 0xD800 <= code < 0xE000
            shown += "?" * n if is_bad or (n > 1 and not self.unicode) else c
        return shown

    def cut(self, words: str, columns: int) -> str:
        """The words, cut to columns and padded with spaces. Cut words end with a mark, or a cut number would look like another."""
        shown, mark = "", ("…" if self.unicode else "~") if width(words) > columns > 0 else ""
        columns -= len(mark)
        for c in words:
            if width(c) > columns:
                break
            shown, columns = shown + c, columns - width(c)
        return shown + mark + " " * columns


def width(words: str) -> int:
    """How many columns the words take."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in words)


# ---- panels ----

def _cuts(length: int, n: int) -> np.ndarray:
    """Where each of n parts of an axis begins; none is empty, because n is at most length."""
    return np.arange(n) * length // max(n, 1)


def _means(v: np.ndarray, cells: tuple[int, ...]) -> np.ndarray:
    """The mean of the finite numbers in each cell; NaN: there is none."""
    finite = np.isfinite(v)
    total, count = np.where(finite, v, 0).astype(float), finite.astype(float)
    for axis, n in enumerate(cells):
        total, count = (np.add.reduceat(a, _cuts(v.shape[axis], n), axis) for a in (total, count))
    with np.errstate(invalid="ignore"):
        return (total / count).astype(np.float32)


def _stretch(v: np.ndarray, are_bytes: bool) -> np.ndarray:
    """Scale to 0 .. 1: bytes from their full range, other numbers from their minimum and maximum."""
    finite = v[np.isfinite(v)]
    least, most = (0, 255) if are_bytes else (finite.min(), finite.max()) if finite.size else (0, 0)
    return np.where(np.isfinite(v), (v - least) / (most - least), 0) if most > least else np.zeros(v.shape)


def _panel(about: dict[str, Any], array: np.ndarray) -> np.ndarray:
    rows, columns, each, size = (about[name] for name in ("rows", "columns", "each", "width"))
    if not size:
        return np.zeros((0, 0))
    plane = array[:rows * columns * each].reshape(rows, columns, each)
    if about["timed"]:
        plane = plane.swapaxes(0, 1)[::-1]
    # Cells of the same number of colours: the mean of all is that of the pixels' sums.
    return _stretch(_means(plane, (about["height"], size, 1))[:, :, 0], array.dtype == np.uint8)


def _panels(screen: Screen, samples: list[dict[str, Any]]) -> list[str]:
    panels = [_panel(s, s["array"]) for s in samples]
    columns = [max(p.shape[1], CAPTION_WIDTH) for p in panels]
    lines = []
    for y in range(0, max(len(p) for p in panels), 2):
        shown = [screen.pixels(p[y], p[y + 1] if y + 1 < len(p) else np.zeros(p.shape[1])) if y < len(p) else "" for p in panels]
        lines.append(INDENT + GAP.join(line + " " * (n - (p.shape[1] if line else 0)) for line, p, n in zip(shown, panels, columns)))
    return lines + [INDENT + GAP.join(screen.cut(s["caption"], n) for s, n in zip(samples, columns))]


# ---- lines of bars ----

def _level(v: np.ndarray) -> np.ndarray:
    """Divide by the maximum, unless that is 0."""
    v = np.where(np.isfinite(v), v, 0)
    return v / v.max() if v.max(initial=0) > 0 else v


def _heights(kind: str, sample: dict[str, Any], features: int, most: int) -> np.ndarray:
    v = sample.get("array", np.zeros(0))
    if kind == "row":  # the largest feature of each part
        n = min(most, features)
        heights = np.zeros(n)
        k = min(len(v), len(sample["index"]))
        if n:
            np.fmax.at(heights, np.minimum(sample["index"][:k] / features * n, n - 1).astype(int), np.abs(v[:k].astype(float)))
        return _level(heights)
    n = min(most, len(v))
    if not n:
        return np.zeros(0)
    if kind == "vector":
        return _stretch(_means(v, (n,)), False)
    return _level(np.fmax.reduceat(np.nan_to_num(np.abs(v.astype(float)), posinf=0), _cuts(len(v), n)))  # the loudest of each part


def _lines(screen: Screen, about: dict[str, Any]) -> list[str]:
    room = screen.columns - len(INDENT) - len(GAP)
    widest = room if about["kind"] == "words" else min(room // 2, WORDS_MOST)
    words = min(max((width(s["caption"]) for s in about["samples"]), default=0), widest)
    return [INDENT + screen.cut(s["caption"], words) + GAP
            + screen.bars(_heights(about["kind"], s, about["features"], min(room - widest, BARS))) for s in about["samples"]]


# ---- lengths ----

def _lengths(screen: Screen, about: dict[str, Any]) -> list[str]:
    """Least, middle and largest length; and bars from the least to that of the 99th of 100, with one for what is longer."""
    lengths = np.sort([n for n in about["lengths"] if n])
    at = (len(lengths) - 1) * 99 // 100
    least, most = int(lengths[0]), int(lengths[at])
    words = screen.plain(f"lengths of {about['name']}: {least} to {lengths[-1]}{' bytes' if about['are_bytes'] else ''}, "
                         f"half of them up to {lengths[(len(lengths) - 1) // 2]}".encode())
    room = screen.columns - len(INDENT)
    n = min(room, BARS, most - least + 1)
    counts = np.bincount(np.minimum((lengths - least) / (most - least + 1) * n, n - 1).astype(int), minlength=n)
    heights = np.where(counts, np.maximum(counts / counts.max(), LOW_BAR), 0)
    return [INDENT + screen.cut(words, min(room, width(words))), INDENT + screen.bars(heights)]


def main() -> int:
    """Draw what stdin has: a line of JSON, then the bytes of its arrays and captions."""
    about = json.loads(sys.stdin.buffer.readline())
    screen = Screen(about["screen"], about["unicode"], about["greys"])
    for sample in about["samples"]:
        for name in ("array", "index"):
            if name in sample:
                descr, size = sample[name]
                sample[name] = np.frombuffer(sys.stdin.buffer.read(size), np.dtype(descr))
        sample["caption"] = screen.plain(sys.stdin.buffer.read(sample["caption"]))
    lines = [""]
    if about["kind"] != "panels":
        lines += _lines(screen, about)
    elif about["samples"]:
        lines += _panels(screen, about["samples"])
    if about["error"]:
        lines.append(f"{INDENT}(not drawn: {about['error']})")
    for lengths in about["lengths"]:
        lines += _lengths(screen, lengths)
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 0
