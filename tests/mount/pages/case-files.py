#!/usr/bin/python3
# needs: python3-torch python3-pil
"""docs/folders.md: its loader for PyTorch over its folders of pictures, its class folders of sounds and texts, what `info` says of its
splits and of its tables."""

import io
import os
import json
import subprocess
import wave

import numpy as np
from PIL import Image

import pages
import tutorials
from lib import contains, equal, run
from page_blocks import take

world = pages.World()
out = io.BytesIO()
Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(out, "jpeg")
for split, n in (("train", 100), ("val", 10)):
    for i in range(n):
        world.file(f"/data/data/{split}/{('cat', 'dog')[i % 2]}/{i:03}.jpg", out.getvalue())
sound = io.BytesIO()
with wave.open(sound, "wb") as file:
    file.setparams((1, 2, 16000, 0, "NONE", ""))
    file.writeframes(np.arange(500, dtype="<i2").tobytes())
block = take("docs/folders.md", "corpus/speech/yes").replace("──►", "")
classes, shown_classes = zip(*(line.split() for line in block.splitlines()))
for name in classes:
    world.file(f"/data/{name}", sound.getvalue() if name.endswith(".wav") else b"A film.")
for name in ("train2017/1", "train2017/2", "train2017/3", "val2017/4", "val2017/5"):
    world.file(f"coco/{name}.jpg", out.getvalue())
for i, name in enumerate(("train/a", "train/b", "train/c", "train/d", "test/e", "test/f")):
    world.file(f"dogs/{name}.jpg", out.getvalue())
world.file("dogs/labels.csv", b"id,breed\na,boxer\nb,pug\nc,pug\nd,boxer\n")
world.file("dogs/sample_submission.csv", b"id,breed\ne,0\nf,0\n")
world.run("docs/folders.md", "What a folder means")
world.run("docs/folders.md", "Tables next to images")
world.run("docs/folders.md", "Audio and texts in class folders",
          then={"import io, wave": "assert samples.tolist() == list(range(500)) and label in (0, 1), label"},
          before="mkdir -p /mnt/corpus\nepochfs mount /data/corpus /mnt/corpus\n")
os.makedirs("/mnt/data")

block = take("docs/folders.md", "data/train/cat/001.jpg").replace("──►", "").replace("...", "any.jpg")
source, shown = zip(*(line.split() for line in block.splitlines()))
for name in source:
    world.file(name, b'{"caption": "a dog"}' if name.endswith(".json") else out.getvalue())
shown = "\n".join(f"test -e '{name}'" for name in shown if not name.endswith("any.jpg"))
equal(shown.count("\n"), 3, "paths of the mount that the page shows")
subprocess.run(["bash", "-ec", f"epochfs mount data /mnt/data\n{shown}\n"
                "cmp /mnt/data/train/samples/raw/002.jpg data/train/cat/002.jpg\n"
                "test $(ls /mnt/data/val/samples/raw | wc -l) = 1\nepochfs umount /mnt/data"], cwd=world.folder(""),
               env=tutorials.environment(), check=True)

subprocess.run(["bash", "-ec", "mkdir -p /mnt/corpus\nepochfs mount /data/corpus /mnt/corpus\n"
                + "\n".join(f"test -e '{name}'" for name in shown_classes)
                + "\ntest \"$(cat /mnt/corpus/aclImdb/train/samples/txt/0_9.txt)\" = 'A film.'\nepochfs umount /mnt/corpus"],
               cwd=world.folder(""), env=tutorials.environment(), check=True)

# The rules, as the page words them: files of a folder, and its datasets or words of the message.
for i, (files, wanted) in enumerate((
        ("1 2 3 sub/4", {"all": (3, None)}),
        ("images_1/1 images_2/2", {"all": (2, None)}),
        ("train2017/1 val2017/2", {"train2017": (1, None), "val2017": (1, None)}),
        ("train/cat/1 train/dog/2 extra/3", {"train": (2, ["cat", "dog"]), "extra": (1, None)}),
        ("test/train/1 test/bus/2 train/train/3 train/bus/4", {"test": (2, ["bus", "train"]), "train": (2, ["bus", "train"])}),
        ("s1/blur/1 s1/sharp/1 s2/blur/1 s2/sharp/1", {"all": (2, None)}),
        ("val/images/1 val/images/2", {"val": (2, None)}),
        ("cat/1 dog/2", {"all": (2, ["cat", "dog"])}),
        ("cat/images/1 dog/images/2", {"all": (2, ["cat", "dog"])}),
        ("run/a/1 run/b/2 jump/c/3", {"all": (3, ["jump", "run"])}),
        ("Art/bike/1 Art/mug/2 Clipart/bike/3 Clipart/mug/4", {"Art": (2, ["bike", "mug"]), "Clipart": (2, ["bike", "mug"])}),
        ("cats/1 dogs/2 all/cats/1 all/dogs/2", {"all": (2, ["cats", "dogs"]), "all~2": (2, ["cats", "dogs"])}),
        ("train/cat/1", {"train": (1, None)}),
        ("bus/1 car/2 train/3", ("one of them is a part", "all of them are classes")),
        ("a/abbey/1 a/arch/2 b/bakery/3 b/bar/4", ("letters",)),
        ("x/a/1 x/b/2 x/c/3 y/a/4 y/d/5 y/e/6", ("they are classes", "they are datasets")),
        ("images/1/a images/2/b masks/1/c masks/2/d", ("images and masks",)),
        ("images/1 masks/1 masks/2", ("images and masks",)),
        ("low/1 low/2 high/1 high/2 medium/1 medium/2", ("low", "high", "all of them are classes")),
        ("1/images/a 1/masks/b 1/masks/c 2/images/d 2/masks/e 2/masks/f", ("several files of a picture",)))):
    for name in files.split():
        world.file(f"rules/{i}/{name}.jpg", out.getvalue())
    if isinstance(wanted, tuple):
        contains(run("info", world.folder(f"rules/{i}"), code=2), *wanted, "epochfs.json")
        continue
    said = run("info", "--json", world.folder(f"rules/{i}"))
    equal({d["dataset"]: (d["samples"], d.get("classes")) for d in json.loads(said)["datasets"]}, wanted, files)
    equal("equal names" in said, False, f"{files}: a note of equal names")

line = json.loads(take("docs/spec/folders.md", '"reason"'))
equal([d["ignored"] for d in json.loads(run("info", "--json", world.folder("dogs")))["datasets"] if "ignored" in d], [[line]], "ignored")
