#!/usr/bin/python3
"""Draw docs/tree.svg, the picture of docs/concepts.md, from a real mount.      docs/tree.py EPOCHFS [SVG]

EPOCHFS is the binary (build/release/epochfs), SVG the file to write (default: tree.svg next to this script).
It mounts the Fashion-MNIST of Debian's package dataset-fashion-mnist on a temporary folder, takes every name, count and
picture from there, and unmounts. It needs nothing but Python. The test mount_cli-readme draws it again and compares.
"""

import html
import json
import os
import subprocess
import sys
import tempfile

SOURCE = "/usr/share/datasets/fashion-mnist"
PLAN = "batch=128,seed=7"
LINE, COLUMN, LEFT, TOP, NOTES, WIDTH = 21, 8.2, 20, 32, 416, 872  # pixels
GRAYS = 6  # of a picture, white paper not counted
PICTURE = 28  # pixels a side, as in the data


class Drawing:
    def __init__(self):
        self.parts, self.row = [], 0

    def line(self, stems, name, note="", folder=False):
        """stems: for each level above, whether its folder goes on below; the last is that of this line."""
        y = TOP + self.row * LINE
        for level, goes_on in enumerate(stems):
            x, last = LEFT + 6 + level * 2.5 * COLUMN, level == len(stems) - 1
            if goes_on or last:
                end = y + 8 if goes_on else y - 5
                self.parts.append(f'<path class="stem" d="M{x:g} {y - 13}V{end}{f"M{x:g} {y - 5}h12" if last else ""}"/>')
        x = LEFT + len(stems) * 2.5 * COLUMN
        kind = ' class="folder"' if folder else ""
        self.parts.append(f'<text x="{x:g}" y="{y}"{kind}>{html.escape(name)}</text>')
        if note:
            self.parts.append(f'<text x="{NOTES}" y="{y}" class="note">{html.escape(note)}</text>')
        self.row += 1

    def pictures(self, left, images):
        """Next to the last line, from left on."""
        y = TOP + (self.row - 1) * LINE - 14
        for i, image in enumerate(images):
            self.parts.append(picture(image, left + i * (PICTURE + 3), y))

    def svg(self):
        height = TOP + self.row * LINE - 6
        style = ("text{font:14px ui-monospace,monospace;fill:#24292f}.folder{fill:#0b5cad;font-weight:bold}"
                 ".note{font:13px sans-serif;fill:#57606a}.stem{stroke:#b5bcc4;fill:none}")
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
                          f'height="{height}">', f"<style>{style}</style>",
                          f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>', *self.parts, "</svg>", ""])


def picture(pixels, left, top):
    """Black on white, a path of runs for each gray."""
    runs = {}
    for row in range(PICTURE):
        levels = [round(p / 255 * GRAYS) for p in pixels[row * PICTURE:(row + 1) * PICTURE]]
        begin = 0
        for x in range(1, PICTURE + 1):
            if x == PICTURE or levels[x] != levels[begin]:
                runs.setdefault(levels[begin], []).append(f"M{begin} {row}h{x - begin}v1h-{x - begin}z")
                begin = x
    runs.pop(0, None)
    paths = "".join(f'<path fill="#{3 * f"{255 - 255 * level // GRAYS:02x}"}" d="{"".join(d)}"/>'
                    for level, d in sorted(runs.items()))
    return f'<g transform="translate({left} {top})" shape-rendering="crispEdges">{paths}</g>'


def read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def draw(mount):
    d = Drawing()
    train = f"{mount}/train"
    batches = f"{train}/batches/{PLAN}"
    samples = json.loads(read(train, "dataset.json"))["samples"]

    def entry(stems, path, note="", shown=None):
        """A line for what is at this path; it must exist."""
        d.line(stems, shown or os.path.basename(path), note, os.path.isdir(path))

    def others(stems, folder, but, note=""):
        d.line(stems, "  ".join(sorted(set(os.listdir(folder)) - set(but))), note, True)

    def images(folder, *numbers):
        return [read(folder, "raw", f"{n:06d}.image.raw") for n in numbers]

    d.line([], "/mnt/mnist", "", True)
    entry([True], f"{mount}/README.txt", "how to read this mount, with paths that work")
    entry([True], train, f"{samples:,} samples")
    entry([True, True], f"{train}/dataset.json", "fields, types, shapes")
    entry([True, True], f"{train}/samples", "one file for each sample and field")
    entry([True, True, True], f"{train}/samples/npy", "as NumPy arrays")
    entry([True, True, True, True], f"{train}/samples/npy/000000.image.npy")
    entry([True, True, True, True], f"{train}/samples/npy/000000.label.npy")
    d.line([True, True, True, False], "...", f"{len(os.listdir(f'{train}/samples/npy')):,} files")
    entry([True, True, True], f"{train}/samples/png", "as pictures")
    entry([True, True, True, True], f"{train}/samples/png/000000.image.png")
    d.pictures(NOTES, images(f"{train}/samples", 0))
    d.line([True, True, True, False], "...")
    others([True, True, False], f"{train}/samples", ["npy", "png"], "and in other encodings")
    entry([True, True], f"{train}/batches", "one file for each batch")
    entry([True, True, False], batches, "128 samples a batch, shuffled with seed 7")
    entry([True, True, False, True], f"{batches}/epoch=0")
    listed = sorted(os.listdir(f"{batches}/epoch=0/npz"))
    entry([True, True, False, True, True], f"{batches}/epoch=0/npz")
    entry([True, True, False, True, True, True], f"{batches}/epoch=0/npz/{listed[0]}", "image, label, index of 128 samples")
    first = read(batches, "epoch=0", "raw", "000000.image.raw")
    size = PICTURE * PICTURE
    d.pictures(NOTES + 250, [first[i * size:(i + 1) * size] for i in range(6)])
    d.line([True, True, False, True, True, True], "...", f"{len(listed)} files: the whole epoch, in order")
    entry([True, True, False, True, True, False], f"{batches}/epoch=0/npz/{listed[-1]}")
    others([True, True, False, True, False], f"{batches}/epoch=0", ["npz"], "the same batches in other encodings")
    entry([True, True, False, False], f"{batches}/epoch=1", "another order; any plan and any epoch opens")
    entry([True, False], f"{train}/source", "the files themselves, unpacked")
    entry([False], f"{mount}/t10k", f"{json.loads(read(mount, 't10k/dataset.json'))['samples']:,} samples, in the same way")
    return d.svg()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    epochfs = sys.argv[1]
    out = sys.argv[2] if len(sys.argv) == 3 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree.svg")
    with tempfile.TemporaryDirectory(prefix="epochfs-tree-") as folder:
        mount = f"{folder}/mount"
        os.mkdir(mount)
        options = f"cache_dir={folder}/cache,plan={PLAN.replace(',', '+')},epochs=2"
        subprocess.run([epochfs, "mount", "-o", options, SOURCE, mount], check=True)
        try:
            svg = draw(mount)
        finally:
            subprocess.run([epochfs, "umount", mount], check=True)
    with open(out, "w") as f:
        f.write(svg)


main()
