#!/usr/bin/python3
# needs: python3-torchvision python3-pil
"""docs/folders.md: its recipes, its boxes in PyTorch, its line of metadata.jsonl and its line of a manifest."""

import io
import json
import os

import numpy as np
from PIL import Image

import pages
from lib import contains, equal, run
from page_blocks import take

world = pages.World()


def picture(kind="jpeg"):
    out = io.BytesIO()
    Image.fromarray(np.zeros((8, 10, 3), np.uint8)).save(out, kind)
    return out.getvalue()


def put(*names):
    for name in names:
        world.file(name, picture("png" if name.endswith("png") else "jpeg"))


def datasets(folder, recipe):
    """What a recipe of the page makes of a folder: its datasets by name."""
    world.file("recipe.json", recipe.encode())
    shown = json.loads(run("info", "--json", "-o", f"layout={world.folder('')}/recipe.json", world.folder(folder)))
    return {d["dataset"]: d for d in shown["datasets"]}


def fields(dataset):
    return {f["name"] for f in dataset["fields"] if not f["derived"]}


for split, city in (("train", "aachen"), ("train", "bochum"), ("val", "ulm")):
    for i in range(2):
        scene = f"{split}/{city}/{city}_{i:06}_000019"
        put(f"cityscapes/leftImg8bit/{scene}_leftImg8bit.png", f"cityscapes/gtFine/{scene}_gtFine_labelIds.png",
            f"cityscapes/gtFine/{scene}_gtFine_color.png")
for name in take("docs/folders.md", "aachen_000000").split():
    equal(os.path.exists(f"{world.folder('cityscapes')}/{name}"), True, name)
world.file("cityscapes.json", take("docs/folders.md", "leftImg8bit/{split}").encode())
contains(run("info", world.folder("cityscapes"), code=2), "epochfs.json")

images = [{"id": i, "file_name": f"{i}.jpg"} for i in range(3)]
world.file("coco/annotations/instances_train2017.json", json.dumps({
    "images": images, "categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}],
    "annotations": [{"id": k, "image_id": k % 2, "category_id": (1, 18)[k % 2], "bbox": [1, 2, 3, 4]} for k in range(3)]}).encode())
put(*(f"coco/train2017/{image['file_name']}" for image in images), "coco/val2017/9.jpg")
world.run("docs/folders.md", "Recipes")
world.run("docs/folders.md", "Annotations")


def fields_of(folder, *options):
    return {d["dataset"]: d["fields"] for d in json.loads(run("info", "--json", *options, world.folder(folder)))["datasets"]}


world.file("recipe.json", run("info", "--layout", world.folder("coco")).encode())
equal(fields_of("coco", "-o", f"layout={world.folder('')}/recipe.json"), fields_of("coco"), "what the recipe of --layout gives")

for name in ("Abyssinian_1", "Abyssinian_2", "beagle_1", "beagle_10"):
    put(f"pets/images/{name}.jpg", f"pets/annotations/trimaps/{name}.png")
world.file("pets/annotations/trainval.txt", b"Abyssinian_1 1 1 1\nbeagle_1 2 2 1\nbeagle_10 2 2 1\n")
world.file("pets/annotations/test.txt", b"Abyssinian_2 1 1 1\n")
found = datasets("pets", take("docs/folders.md", "trimap.png"))
equal({name: d["samples"] for name, d in found.items()}, {"trainval": 3, "test": 1}, "the lists of Oxford Pets")
equal(fields(found["trainval"]), {"jpg", "trimap.png", "label", "n"}, "the fields of Oxford Pets")

put("sun/a/abbey/1.jpg", "sun/a/airport/hall/2.jpg", "sun/b/bar/3.jpg")
found = datasets("sun", take("docs/folders.md", "{letter}"))
equal((found["all"]["samples"], found["all"]["classes"]), (3, ["abbey", "airport", "bar"]), "SUN397")

put("dogs/train/x.jpg", "dogs/train/y.jpg", "dogs/test/z.jpg")
world.file("dogs/labels.csv", b"id,breed,age,note\nx,pug,3,a\ny,boxer,4,b\n")
found = datasets("dogs", take("docs/folders.md", '"breed"'))
equal((fields(found["train"]), found["train"]["classes"]), ({"jpg", "label", "breed", "age"}, ["boxer", "pug"]), "a table")
os.remove(f"{world.folder('dogs')}/test/z.jpg")
contains(run("info", "-o", f"layout={world.folder('')}/recipe.json", world.folder("dogs"), code=2), "line 3: 'test/*.jpg': expected a file of that name, got none")

for name in ("001.jpg", "masks/001.png"):
    put(f"table/{name}")
world.file("table/metadata.jsonl", take("docs/folders.md", "mask_file_name").encode())
contains(run("info", world.folder("table")), "mask", "label", "caption")

line = take("docs/folders.md", '"usage": "TRAIN"')
for i in range(3):
    world.file(f"list/{json.loads(line)['source'] if not i else f'train/{i + 1}.JPEG'}", picture())
world.file("list/mine.manifest", line.encode())
contains(run("info", world.folder("list")), "mine.train", "samples  1\n", "label")
