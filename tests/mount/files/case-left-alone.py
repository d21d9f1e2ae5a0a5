#!/usr/bin/python3
"""What looks like something else stays what it is: IDX, libsvm and Kaldi with pictures next to them, projects,
manifests; and what stands next to a dataset is counted."""

import os

import numpy as np

from kaldi_model import wave_bytes
from lib import MOUNTPOINT, SOURCE, contains, content, equal, mounted, path, run, small, text, write

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def top():
    return sorted(os.listdir(MOUNTPOINT))


# A project: nothing to mount.
for name in ("README.md", "Makefile", "src/a.c", "src/b.c", "docs/spec/index-format.md"):
    write(f"project/{name}", b"text of a project\n")
for i in range(9):
    write(f"project/docs/images/{i}.png", PNG)
    write(f"project/assets/icons{i % 2}/{i}.png", PNG)
found = run("info", f"{SOURCE}/project", code=2)
contains(found, "nothing usable among 23 files (18 .png, 2 .md, 2 .c, 1 without an extension)",
         "these are not, because Makefile says that a program is built there.")
equal(found.count("epochfs.json"), 1, "hints at a recipe")

# The same is the reason for what a recipe leaves below it.
for name in ("left/q/1.png", "left/p/data/cat/1.png", "left/p/data/dog/1.png"):
    write(name, PNG)
write("left/Makefile", b"all:\n")
write("left/epochfs.json", b'{"datasets": {"all": {"pictures": "q/*.png"}}, "leave": "p/**"}')
found = run("info", f"{SOURCE}/left")
contains(found, "ignored: 1 without an extension (Makefile)\n",
         "p/data/cat/1.png: is a PNG picture, which epochfs does not read by itself. A folder of pictures is a dataset, "
         "and class folders are; these are not, because Makefile says that a program is built there.")

# Datasets in a project are shown with all that is no dataset: the first files, and how many there are of which kind.
for i in range(14):
    write(f"code/src/{i:02}.c", b"int main(void);\n")
write("code/Makefile", b"all:\n")
small(name="code/data/")
found = run("info", f"{SOURCE}/code")
contains(found, "format   idx", "Makefile\n    not usable: ")
equal(found.count("not usable: "), 15, "files that are not usable: few enough")
for i in range(14, 40):
    write(f"code/src/{i:02}.C", b"int main(void);\n")
found = run("info", f"{SOURCE}/code")
contains(found, "format   idx", "Makefile\n    not usable: ", "src/02.c\n    not usable: ",
         "37 more files are not usable: 37 .c\n")
equal(found.count("not usable: "), 5, "files that are not usable")
equal(run("info", "--json", f"{SOURCE}/code").count('"reason"'), 41, "reasons")
equal(run("info", "--check", f"{SOURCE}/code", code=2).count("not usable: "), 41, "with --check")

# IDX with a picture next to it.
small(name="idx/")
write("idx/preview.png", PNG)
with mounted(f"{SOURCE}/idx"):
    contains(" ".join(top()), "train", "preview.png")
    contains(text(path("preview.png/ERROR.txt")), "a PNG picture")

# libsvm.
write("svm/a9a", b"1 1:2\n-1 2:3\n")
write("svm/plot.png", PNG)
with mounted(f"{SOURCE}/svm"):
    equal(content(path("a9a/samples/svm/000000.svm")), b"1 1:2\n", "libsvm")

# A Kaldi table with plots below it.
write("kaldi/text", b"utt1 hello\nutt2 world\n")
write("kaldi/wav.scp", b"utt1 wav/1.wav\nutt2 wav/2.wav\n")
for name in ("kaldi/wav/1.wav", "kaldi/wav/2.wav"):
    write(name, wave_bytes(np.zeros(80, np.int16), 8000))
for i in range(20):
    write(f"kaldi/plots/{i}.png", PNG)
found = run("info", f"{SOURCE}/kaldi")
contains(found, "Kaldi" if "Kaldi" in found else "kaldi", "plots/0.png")

# What is next to a dataset of pictures.
for i in range(4):
    write(f"mixed/set/cat/{i}.jpg", b"jpg")
write("mixed/set/cat/notes.txt", b"notes")
write("mixed/set/labels.csv", b"a,b\n")
write("mixed/set/cat/x.txt", b"x")
write("mixed/rows.svm", b"1 1:2\n")
found = run("info", f"{SOURCE}/mixed")
contains(found, "set", "ignored: 2 .txt (notes.txt and 1 more), 1 .csv (labels.csv)", "rows.svm")
with mounted(f"{SOURCE}/mixed"):
    equal(sorted(os.listdir(path("set/samples/raw"))), [f"{i}.jpg" for i in range(4)], "set")
