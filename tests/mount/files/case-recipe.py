#!/usr/bin/python3
# slow: two dozen layouts, each read twice, and fifty bad recipes
"""(F-30) `info --layout` prints what was detected as a recipe. Given back, or put with the data, it gives the same
datasets: samples and their keys in order, labels, classes, fields, and all bytes of batches. Bad recipes are refused,
with their name and a line."""

import json
import os
import shutil

import numpy as np

from lib import MOUNTPOINT, PRIVATE, SOURCE, contains, equal, mounted, run, write

JPEG = b"\xff\xd8\xff\xe0"
RECIPE = f"{PRIVATE}/recipe.json"
made = 0


def files(root, *names):
    global made
    for name in names:
        made += 1
        write(f"{root}/{name}", JPEG + b"%d" % made)


def text(root, name, *lines):
    write(f"{root}/{name}", "".join(line + "\n" for line in lines).encode())


def detected(source, *options):
    """What users see of a source, except what only people read."""
    found = {}
    given = [word for option in options for word in ("-o", option)]
    for d in json.loads(run("info", "--json", *given, source))["datasets"]:
        found[d["dataset"]] = {
            "samples": d["samples"], "classes": d.get("classes"), "box_format": d.get("box_format"),
            "class_names": d.get("class_names"), "attr_names": d.get("attr_names"),
            "fields": sorted((f["name"], str(f.get("dtype")), str(f.get("shape"))) for f in d["fields"])}
    with mounted(source, *options):
        for name, about in found.items():
            with np.load(f"{MOUNTPOINT}/{name}/batches/batch=all/npz/000000.npz") as batch:
                about["batch"] = {field: (str(batch[field].dtype), batch[field].shape, batch[field].tobytes())
                                  for field in batch.files}
    return found


def same(root, want, recipe=None):
    """want: names of datasets and their samples. The recipe that is printed also gives them."""
    source = f"{SOURCE}/{root}"
    printed = run("info", "--layout", source)
    write(RECIPE, printed.encode())
    before = detected(source)
    equal({name: d["samples"] for name, d in before.items()}, want, f"{root}: detected")
    after = detected(source, f"layout={RECIPE}")
    for name in before.keys() | after.keys():
        equal(after.get(name), before.get(name), f"{root}: {name} by the recipe\n{printed}")
    equal(json.loads(run("info", "--layout", "-o", f"layout={RECIPE}", source)), json.loads(printed),
          f"{root}: a recipe is printed as it is")
    for pattern in recipe or ():
        contains(printed, pattern)
    return printed, before


# ---- classes ----
files("classes", *(f"train/{c}/{i}.JPEG" for c in ("bird", "cat", "dog") for i in range(3)),
      *(f"val/{c}/x{i}.png" for c in ("bird", "dog") for i in range(2)), "val/dog/y.jpg", "val/dog/y.json")
os.mkdir(f"{SOURCE}/classes/train/empty")
same("classes", {"train": 9, "val": 5}, ['"train/{label}/*.JPEG"', '"val/{label}/*.png"', '"classes"'])
files("deeper", *(f"{c}/{v}/{i}.jpg" for c in ("run", "walk") for v in (f"{c}1", f"{c}2") for i in (1, 2)), "run/0.jpg",
      "walk/run1-x/1.jpg")
same("deeper", {"all": 10}, ['"{label}/**/*.jpg"'])
files("passed", *(f"{c}/images/{i}.jpg" for c in "abc" for i in range(2)))
same("passed", {"all": 6}, ['"{label}/images/*.jpg"'])
files("copy", *(f"{top}{c}/{i}.png" for top in ("cells/", "cells/cells/") for c in ("ill", "well") for i in range(2)))
same("copy", {"cells": 4, "cells/cells": 4})

# ---- files of one stem ----
files("stems", *(f"{i}.jpg" for i in range(4)), "0.txt", "1.TXT", "0.seg.png", "1.seg.png", "2.json", "3.png", "5.PNG")
same("stems", {"all": 5}, ['"{path}.seg.png"', '"{path}.TXT"'])

# ---- pairs ----
files("pairs", *(f"images/{s}/{c}/{i}.jpg" for s in ("train", "val") for c in "xy" for i in range(2)),
      *(f"masks/{s}/{c}/{i}_mask.{'png' if i else 'PNG'}" for s in ("train", "val") for c in "xy" for i in range(2)))
same("pairs", {"train": 4, "val": 4}, ['"masks/train/{label}/{stem}_mask.PNG"'])
files("scenes", *(f"{s}/{v}/{r}/{i}.png" for s in ("train", "test") for v in ("s1", "s2") for r in ("blur", "sharp")
                  for i in range(2)))
same("scenes", {"train": 4, "test": 4}, ['"train/{_1}/sharp/{stem}.png"'])
files("parts", *(f"images_{i:03d}/{10 * i + k}.jpg" for i in range(1, 4) for k in range(3)))
same("parts", {"all": 9})

# ---- tables ----
files("tables", *(f"train/{i}.jpg" for i in range(6)), *(f"test/{i}.jpg" for i in range(6, 8)))
text("tables", "labels.csv", "id,breed,size", *(f"{i},{'ab'[i % 2]},{i / 2}" for i in range(6)))
text("tables", "more.csv", "file;class id;age", *(f"{i}.jpg;{i % 3};{i}" for i in range(8)))
same("tables", {"train": 6, "test": 2}, ['"key": "file"', '"label": "class id"', '"separator": ";"'])
files("lists", *(f"images/{c}/{i}.jpg" for c in ("pie", "soup") for i in range(4)))
text("lists", "meta/train.txt", "pie/3", "soup/0", "pie/1")
text("lists", "meta/test.txt", "soup/2", "pie/0")
same("lists", {"train": 3, "test": 2}, ['"images/{label}/*.jpg"', '"list": "meta/train.txt"'])
files("columns", *(f"images/{i}.jpg" for i in range(5)))
text("columns", "train.csv", "image,rust,scab", "0,1,0", "2,0,1", "1,1,1")
text("columns", "test.csv", "image", "4", "3")
same("columns", {"train": 3, "test": 2}, ['"list": "train.csv"'])
files("numbers", *(f"train/{c}/{i}.png" for c in (0, 1, 10) for i in range(2)), *(f"val/v{i}.png" for i in range(3)))
text("numbers", "val/val_annotations.txt", "v0.png 10", "v1.png 0", "v2.png 10")
same("numbers", {"train": 6, "val": 3}, ['"classes": ["0", "1", "10"]'])
files("subjects", *(f"images/{i}.jpg" for i in range(8)))
for kind, names in ("variant", "ab"), ("family", "cd"):
    for k, split in enumerate(("train", "test")):
        text("subjects", f"images_{kind}_{split}.txt", *(f"{4 * k + i} {names[i > 1]}" for i in range(4)))
same("subjects", {f"images_{k}_{s}": 4 for k in ("variant", "family") for s in ("train", "test")}, ['"classes": ["c", "d"]'])

# ---- annotations ----
files("coco", *(f"{s}2017/{i}.jpg" for s in ("train", "val") for i in range(3)))
for split in "train", "val":
    images = [{"id": i + 1, "file_name": f"{i}.jpg"} for i in range(2)]
    text("coco", f"annotations/instances_{split}2017.json", json.dumps({"images": images, "annotations": [
        {"id": 7 + i, "image_id": i + 1, "category_id": 90 - i, "bbox": [i, 1, 2, 3], "iscrowd": 0, "area": 6,
         "segmentation": [[1, 2, 3, 4]]} for i in range(2)], "categories": [{"id": 90, "name": "z"}, {"id": 89, "name": "y"}]}))
    text("coco", f"annotations/captions_{split}2017.json", json.dumps({"images": images, "annotations": [
        {"id": i, "image_id": i + 1, "caption": f"{split} {i}"} for i in range(2)]}))
same("coco", {"train2017": 2, "val2017": 2}, ['"annotations/captions_train2017.json", "annotations/instances_train2017.json"'])
files("one-folder", *(f"images/{i}.jpg" for i in range(5)))
for split, at in ("train", (0, 2, 4)), ("val", (3, 1)):
    text("one-folder", f"annotations/{split}.json", json.dumps({
        "images": [{"id": i, "file_name": f"{i}.jpg"} for i in at], "annotations": [
            {"id": 7, "image_id": at[0], "category_id": 3, "bbox": [at[0], 1, 2, 3], "segmentation": [[1, 2, 3, 4]]}],
        "categories": [{"id": 3, "name": "z"}, {"id": 2, "name": "y"}]}))
same("one-folder", {"train": 3, "val": 2}, ['"coco": "annotations/train.json"'])
for i in (0, 2):
    text("one-folder", f"labels/{i}.txt", "0 0.5 0.5 0.1 0.1")
_, both = same("one-folder", {"train": 3, "val": 2}, ['"txt": "labels/{stem}.txt"'])
equal([d["box_format"] for d in both.values()], ["xywh"] * 2, "boxes of COCO, with files of YOLO")
files("classified", *(f"pictures/{k}/{i}.jpg" for k in ("birds", "plants") for i in range(2)))
for split, at in ("train", 0), ("val", 1):
    text("classified", f"{split}.json", json.dumps({
        "images": [{"id": i, "file_name": f"pictures/{k}/{at}.jpg"} for i, k in enumerate(("birds", "plants"))],
        "annotations": [{"id": i, "image_id": i, "category_id": 5 - i} for i in range(2)],
        "categories": [{"id": 4, "name": "fern"}, {"id": 5, "name": "crow"}]}))
same("classified", {"train": 2, "val": 2})
files("yolo", *(f"images/{s}/{i}.jpg" for s in ("train", "val") for i in range(3)))
text("yolo", "data.yaml", "names: [cat, dog]")
for split in "train", "val":
    for i in range(2):
        text("yolo", f"labels/{split}/{i}.txt", *(f"{k} 0.5 0.5 0.25 0.{i + 1}" for k in range(i + 1)))
same("yolo", {"train": 3, "val": 3}, ['"boxes": {"yolo": "labels/train/{stem}.txt", "names": "data.yaml"}'])
files("voc", *(f"images/{i}.png" for i in range(3)))
for i in range(2):
    text("voc", f"annotations/{i}.xml", "<annotation><object><name>dog</name><bndbox><xmin>1</xmin><ymin>2</ymin>"
         f"<xmax>3</xmax><ymax>{4 + i}</ymax></bndbox></object></annotation>")
text("yolo", "labels/classes.txt", "cat", "dog")  # LabelImg's
os.remove(f"{SOURCE}/yolo/data.yaml")
same("yolo", {"train": 3, "val": 3}, ['"names": "labels/classes.txt"'])
text("yolo", "data.yaml", "names: [cat, dog]")
os.remove(f"{SOURCE}/yolo/labels/classes.txt")
same("voc", {"all": 3}, ['"boxes": {"voc": "annotations/{stem}.xml"}'])
files("celeba", *(f"img_align_celeba/{i:06d}.jpg" for i in range(1, 6)))
text("celeba", "list_attr_celeba.txt", "5", "Bald Young", *(f"{i:06d}.jpg -1  1" for i in range(1, 6)))
text("celeba", "list_eval_partition.txt", *(f"{i:06d}.jpg {i % 3}" for i in range(1, 6)))
same("celeba", {"train": 1, "valid": 2, "test": 2}, ['"{split}"', '"celeba"'])

# ---- what is no dataset of a recipe ----
files("mixed", *(f"pictures/{c}/{i}.jpg" for c in "ab" for i in range(2)), "described/0.jpg", "described/1.jpg")
text("mixed", "described/metadata.jsonl", *(json.dumps({"file_name": f"{i}.jpg", "n": i}) for i in range(2)))
for word in "yes", "no":
    for i in range(2):
        write(f"mixed/spoken/{word}/{i}.wav", b"RIFF%d" % i)
np.savez(f"{SOURCE}/mixed/more.npz", x=np.arange(12).reshape(6, 2))
same("mixed", {"pictures": 4, "described": 2, "spoken": 4, "more": 6}, ['"leave"', '"described/**"', '"*.npz"'])
for who in "ab":
    write(f"speech/wav/{who}/{who}1.wav", b"RIFF1")
text("speech", "text.txt", "a1 one", "b1 two")
same("speech", {"all": 2}, ['"leave": "**"'])
shutil.copytree(f"{SOURCE}/mixed/described", f"{SOURCE}/described")
same("described", {"all": 2}, ['"leave": "**"'])
files("odd", "a{b}/1.jpg", "a{b}/2.jpg", "a*c/1.jpg", "d e/3.jpg", "__MACOSX/d e/3.jpg", ".hidden/x/1.jpg", "d e/._3.jpg")
os.makedirs(os.fsencode(f"{SOURCE}/odd") + b"/\xff")
with open(os.fsencode(f"{SOURCE}/odd") + b"/\xff/4.jpg", "wb") as file:
    file.write(JPEG + b"4")
same("odd", {"all": 5})

# ---- a recipe with the data ----
printed, before = same("yolo", {"train": 3, "val": 3})
write("yolo/epochfs.json", printed.encode())
equal(detected(f"{SOURCE}/yolo"), before, "epochfs.json in SOURCE")
shutil.copytree(f"{SOURCE}/yolo", f"{SOURCE}/around/in")
files("around", *(f"out/{c}/1.jpg" for c in "ab"))
around = detected(f"{SOURCE}/around")
equal({name: d["samples"] for name, d in around.items()}, {"in/train": 3, "in/val": 3, "out": 2}, "in a folder")
equal({name[3:]: d for name, d in around.items() if name != "out"}, before, "epochfs.json in a folder of it")
same("around", {"in/train": 3, "in/val": 3, "out": 2}, ['"in/images/train/*.jpg"'])

files("around/in/train", "9.jpg")  # the recipe does not name it
same("around", {"in/train": 3, "in/val": 3, "out": 2})

# ---- neighbours ----
files("shared", *(f"{s}/{i}.jpg" for s in ("train", "val") for i in range(2)))
text("shared", "all.json", json.dumps({
    "images": [{"id": i, "file_name": name} for i, name in enumerate(("train/0.jpg", "val/0.jpg", "val/1.jpg"))],
    "annotations": [{"id": i, "image_id": i, "category_id": 1, "bbox": [i, 1, 2, 3], "segmentation": [[i, 2, 3, 4]]}
                    for i in range(3)], "categories": [{"id": 1, "name": "z"}]}))
same("shared", {"train": 1, "val": 2}, ['"coco": "all.json"'])
files("depths", *(f"images/{f}{i}.jpg" for f in ("", "a/", "a/b/", "c/") for i in range(2)),
      *(f"masks/{f}{i}.png" for f in ("", "a/", "a/b/", "c/") for i in range(2)))
same("depths", {"all": 6}, ['"masks/{label}/{_2}/{stem}.png"'])
files("repeated", *(f"parts/part-{i}/{k}.jpg" for i in range(3) for k in (1, 2)), "parts/part-0/1.png")
same("repeated", {"parts": 6})
for word in "yes", "no":
    for i in range(3):
        text("texts", f"train/{word}/{i}.txt", f"{word} {i}")
        text("texts", f"test/{word}/{i}.txt", f"{word} {i}")
        text("bare", f"{word}.space/{i}", f"{word} {i}")
same("texts", {"train": 6, "test": 6}, ['"train/{label}/*.txt"'])
same("bare", {"all": 6}, ['"{label}/*"'])

# ---- what is refused has a recipe of one reading ----
files("doubtful", *(f"{c}/{i}.jpg" for c in ("bus", "car", "train") for i in range(2)))
printed = run("info", "--layout", f"{SOURCE}/doubtful", code=2)
contains(printed, '"note"', '"{label}/*.jpg"', "epochfs.json")
write(RECIPE, printed[printed.index("{"):printed.rindex("}") + 1].encode())
equal({n: d["classes"] for n, d in detected(f"{SOURCE}/doubtful", f"layout={RECIPE}").items()},
      {"all": ["bus", "car", "train"]}, "one reading of what is refused")

# ---- bad recipes ----
files("bad", *(f"{i % 3}/{i}-{'a' * 40}.jpg" for i in range(30)))
text("bad", "labels.csv", "file,label", *(f"{i}-{'a' * 40}.jpg,{i}" for i in range(30)))
deep = "[" * 10**5
LINE = "line 2"


def one(**members):
    return '{"datasets":\n{"x": ' + json.dumps({"pictures": "**/*.jpg"} | members) + "}}"


BAD = [
    ("no JSON", "{", "line 1"),
    ("empty", "", "JSON"),
    ("deep", deep, "JSON"),
    ("deep in a place", '{"datasets": {"x": {"pictures": ' + deep, "JSON"),
    ("twice", '{"datasets": {"x": {"pictures": "*", "pictures": "*"}}}', "line 1"),
    ("no datasets", "{}", "datasets"),
    ("no object", "[]", "datasets"),
    ("none", '{"datasets": {}}', "datasets"),
    ("unknown member", '{"datasets": {"x": {"pictures": "*"}},\n "sets": 1}', LINE, "sets"),
    ("unknown key", one(picture="*"), LINE, "'picture'", "expected pictures"),
    ("no pictures", '{"datasets":\n{"x": {}}}', LINE, "pictures"),
    ("no dataset", '{"datasets":\n{"x": 5}}', LINE, "'x'"),
    ("bad name", '{"datasets":\n{"../x": {"pictures": "**/*.jpg"}}}', LINE, "'../x'"),
    ("name with a dot", '{"datasets":\n{"x/.": {"pictures": "**/*.jpg"}}}', LINE, "'x/.'"),
    ("long name", '{"datasets":\n{"%s": {"pictures": "**/*.jpg"}}}' % ("x" * 256), LINE, "name of a dataset"),
    ("name with an unknown word", '{"datasets":\n{"{y}": {"pictures": "**/*.jpg"}}}', LINE, "'{y}'"),
    ("word without an end", one(pictures="{a"), LINE, "'{a'"),
    ("number", one(pictures=5), LINE, "'pictures'"),
    ("list of numbers", one(pictures=["**/*.jpg", 5]), LINE, "'pictures'"),
    ("empty list", one(pictures=[]), LINE, "'pictures'"),
    ("no file", one(pictures="*.png"), LINE, "'*.png'"),
    ("no file of a list", one(pictures=["**/*.jpg", "*.gif"]), LINE, "'*.gif'"),
    ("outside", one(pictures="../*.jpg"), LINE, "'../*.jpg'", "leaves"),
    ("outside, within", one(pictures="a/../../*.jpg"), LINE, "leaves"),
    ("absolute", one(pictures="/etc/*"), LINE, "'/etc/*'"),
    ("address", one(pictures="s3://a/*"), LINE),
    ("table outside", one(table={"file": "../labels.csv"}), LINE, "file"),
    ("list outside", one(list="../labels.csv"), LINE, "leaves"),
    ("names outside", one(boxes={"yolo": "{path}.txt", "names": "/etc/passwd"}), LINE, "/etc/passwd"),
    ("catastrophic", one(pictures="**{a}*{b}*{c}*{d}*{e}*@*.jpg"), LINE, "too many ways"),
    ("catastrophic exception", one(**{"except": "**{a}*{b}*{c}*{d}*{e}*@*.jpg"}), LINE, "too many ways"),
    ("too many words", one(pictures="".join(f"{{a{i}}}" for i in range(99))), LINE),
    ("unknown word", one(**{"with": {"png": "{other}.png"}}), LINE, "{other}"),
    ("with a star", one(**{"with": {"png": "*/{stem}.png"}}), LINE, "without *"),
    ("with nothing", one(**{"with": {"png": "{path}.png"}}), LINE, "{path}.png"),
    ("bad field", one(**{"with": {"a/b": "{path}.jpg"}}), LINE, "'a/b'"),
    ("two labels", '{"datasets":\n{"x": {"pictures": "{label}/*.jpg", "table": {"file": "labels.csv", "label": "label"}}}}',
     LINE, "label"),
    ("half a label", '{"datasets":\n{"x": {"pictures": ["0/*.jpg", "{label}/*.jpg"]}}}', LINE, "or in none"),
    ("no list", one(list="no.txt"), LINE, "'no.txt'"),
    ("no table", one(table={"file": "no.csv"}), LINE, "'no.csv'"),
    ("table without a file", one(table={"key": "file"}), LINE, "'table'"),
    ("no column", one(table={"file": "labels.csv", "key": "none"}), "labels.csv", '"none"'),
    ("bad separator", one(table={"file": "labels.csv", "separator": "|"}), LINE, "'separator'"),
    ("no boxes", one(boxes={"names": "labels.csv"}), LINE, "'boxes'"),
    ("two boxes", one(boxes={"yolo": "{path}.txt", "voc": "{path}.xml"}), LINE, "'boxes'"),
    ("boxes of nothing", one(boxes={"yolo": "{path}.txt"}), LINE, "{path}.txt"),
    ("no COCO", one(boxes={"coco": "labels.csv"}), "labels.csv"),
    ("no CelebA", one(celeba="labels.csv"), LINE, "CelebA"),
    ("classes", one(classes="a"), LINE, "'classes'"),
    ("equal classes", one(classes=["a", "b", "a"]), LINE, "'a'"),
    ("missing classes", '{"datasets":\n{"x": {"pictures": "{label}/*.jpg", "classes": ["0", "1"]}}}', LINE, "'2'"),
    ("leave all", '{"datasets": {"x": {"pictures": "**/*.jpg"}},\n"leave": "**"}', LINE, "'leave'"),
    ("note", one(note=[1]), LINE, "'note'"),
]
for what, recipe, *words in BAD:
    write(RECIPE, recipe.encode())
    found = run("info", "-o", f"layout={RECIPE}", f"{SOURCE}/bad", code=2)
    contains(found, "recipe.json", *words) if "labels.csv" not in words else contains(found, *words)
    write("bad/epochfs.json", recipe.encode())
    contains(run("info", f"{SOURCE}/bad", code=2), *words)
os.unlink(f"{SOURCE}/bad/epochfs.json")
write(RECIPE, b"\0")
contains(run("info", "-o", f"layout={RECIPE}", f"{SOURCE}/bad", code=2), "recipe.json")
contains(run("info", "-o", f"layout={RECIPE}.none", f"{SOURCE}/bad", code=2), "recipe.json.none")

# Very many values of a word: as labels they are classes, as datasets too many.
files("many", *(f"{i}.jpg" for i in range(5000)))
write(RECIPE, b'{"datasets": {"{n}": {"pictures": "{n}.jpg"}}}')
contains(run("info", "-o", f"layout={RECIPE}", f"{SOURCE}/many", code=2), "line 1", "at most 4096 datasets")
write(RECIPE, b'{"datasets": {"x": {"pictures": "{label}.jpg"}}}')
equal(json.loads(run("info", "--json", "-o", f"layout={RECIPE}", f"{SOURCE}/many"))["datasets"][0]["samples"], 5000, "many")
