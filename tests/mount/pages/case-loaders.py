#!/usr/bin/python3
# needs: python3-torchvision python3-pil
"""docs/migration.md: for each loader, data laid out as it wants them, mounted as the page says. They have
the datasets and fields of the page, and the number and labels of torchvision's samples, in its order."""

import io
import json
import os
import re
import struct

import numpy as np
import torchvision.datasets as loaders
from PIL import Image

from lib import PRIVATE, SOURCE, equal, mounted, path, run, text, write
from page_blocks import ROOT, take

PAGE = "docs/migration.md"
rng = np.random.default_rng(3)


def picture(kind, mode="RGB"):
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (8, 10, 3) if mode == "RGB" else (8, 10), dtype=np.uint8), mode).save(out, kind)
    return out.getvalue()


def put(name, data=None):
    if data is None:
        kind = name.rpartition(".")[2]
        data = picture({"jpg": "jpeg"}.get(kind, kind.lower()))
    write(name, data.encode() if isinstance(data, str) else data)


def rows(*lines):
    return "".join(line + "\n" for line in lines)


def class_folders(where, kind, **files):
    """A folder for each class, with so many pictures of its own names."""
    for name, n in files.items():
        for i in range(n):
            put(f"{where}/{name}/{name}_{i:04}.{kind}")


# ---- data: a folder for each loader, called like it, which is its root ----

for split, n in (("train", 3), ("val", 1)):
    class_folders(f"ImageFolder/{split}", "JPEG", cat=n, dog=n + 1, fox=n)
    for name in ("cat", "dog"):
        for i in range(n):
            out = io.BytesIO()
            np.save(out, np.arange(3))
            put(f"DatasetFolder/{split}/{name}/{name}{i}.npy", out.getvalue())

names = [f"{i:06}.jpg" for i in range(1, 9)]
for name in names:
    put(f"CelebA/celeba/img_align_celeba/{name}")
POINTS = " ".join(f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy")
for name, head, row in (
        ("list_attr_celeba", ["8", "Smiling Young"], lambda i: f" {1 - i % 2 * 2:2}  1"),
        ("identity_CelebA", [], lambda i: f" {i + 5}"),
        ("list_eval_partition", [], lambda i: f" {max(i // 2 - 1, 0)}"),
        ("list_bbox_celeba", ["8", "image_id x_1 y_1 width height"], lambda i: f" 1 2 3 {i}"),
        ("list_landmarks_align_celeba", ["8", POINTS], lambda i: f" 1 2 3 4 5 6 7 8 9 {i}")):
    put(f"CelebA/celeba/{name}.txt", rows(*head, *(n + row(i) for i, n in enumerate(names))))

ids = [f"2007_{i:06}" for i in range(1, 6)]
for i, name in enumerate(ids):
    voc = "VOCDetection/VOCdevkit/VOC2012"
    objects = "".join(f"<object><name>{c}</name><truncated>0</truncated><difficult>0</difficult><bndbox><xmin>1</xmin><ymin>2</ymin>"
                      f"<xmax>5</xmax><ymax>{6 + i}</ymax></bndbox></object>" for c in ("person", "dog")[:i % 3])
    put(f"{voc}/JPEGImages/{name}.jpg")
    put(f"{voc}/Annotations/{name}.xml", f"<annotation><filename>{name}.jpg</filename>{objects}</annotation>")
    for kind in ("Class", "Object") if i < 3 else ():
        put(f"{voc}/Segmentation{kind}/{name}.png", picture("png", "L"))
for task, train, val in (("Main", ids[:3], ids[3:]), ("Segmentation", ids[:2], ids[2:3])):
    for split, listed in (("train", train), ("val", val), ("trainval", train + val)):
        put(f"{voc}/ImageSets/{task}/{split}.txt", rows(*listed))

for split, n in (("train2017", 3), ("val2017", 2)):
    images = [{"id": 9 + i, "file_name": f"{9 + i:012}.jpg", "height": 8, "width": 10} for i in range(n)]
    boxes = [{"id": k, "image_id": 9 + k % 2, "category_id": (18, 1, 90)[k], "bbox": [1, 2, 3.5, 4], "area": 14.0, "iscrowd": 0,
              "segmentation": [[1, 2, 4, 2, 4, 6]]} for k in range(3)]
    categories = [{"id": i, "name": name} for i, name in ((1, "person"), (18, "dog"), (90, "toothbrush"))]
    for image in images:
        put(f"CocoDetection/{split}/{image['file_name']}")
    for name, annotations in (("instances", boxes), ("person_keypoints", [boxes[1] | {"keypoints": [1, 2, 2] * 17, "num_keypoints": 17}]),
                              ("captions", [{"id": 50 + k, "image_id": 9 + k % n, "caption": f"text {k}"} for k in range(5)])):
        put(f"CocoDetection/annotations/{name}_{split}.json",
            json.dumps({"images": images, "annotations": annotations, "categories": categories}))

CAR = "Car 0.00 0 1.85 387.63 181.54 423.81 203.12 1.67 1.87 3.69 -16.53 2.39 58.49 1.57"
for i in range(3):
    put(f"Kitti/Kitti/raw/training/image_2/{i:06}.png")
    put(f"Kitti/Kitti/raw/training/label_2/{i:06}.txt", rows(*[CAR] * i))
    put(f"Kitti/Kitti/raw/testing/image_2/{i:06}.png")

for scene in ("train/aachen/aachen_000000", "train/aachen/aachen_000001", "train/bochum/bochum_000000", "val/ulm/ulm_000000"):
    put(f"Cityscapes/leftImg8bit/{scene}_000019_leftImg8bit.png")
    for kind in ("labelIds", "instanceIds", "color"):
        put(f"Cityscapes/gtFine/{scene}_000019_gtFine_{kind}.png", picture("png", "L"))

pets = [("Abyssinian_1", 1), ("Abyssinian_2", 1), ("beagle_1", 2), ("beagle_10", 2)]
for name, _ in pets:
    put(f"OxfordIIITPet/oxford-iiit-pet/images/{name}.jpg")
    put(f"OxfordIIITPet/oxford-iiit-pet/annotations/trimaps/{name}.png", picture("png", "L"))
for name, listed in (("trainval", pets[::2]), ("test", pets[1::2]), ("list", pets)):
    put(f"OxfordIIITPet/oxford-iiit-pet/annotations/{name}.txt", rows(*(f"{name} {c} {c} 1" for name, c in listed)))

for split, n in (("train", 3), ("test", 1)):
    foods = {c: [f"{c}/{100 * n + 10 * k + i}" for i in range(n)] for k, c in enumerate(("apple_pie", "waffles"))}
    for name in sum(foods.values(), []):
        put(f"Food101/food-101/images/{name}.jpg")
    put(f"Food101/food-101/meta/{split}.txt", rows(*sum(foods.values(), [])))
    put(f"Food101/food-101/meta/{split}.json", json.dumps(foods))
put("Food101/food-101/meta/classes.txt", rows("apple_pie", "waffles"))

HEAD = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
for c in range(3):
    where = f"GTSRB/gtsrb/GTSRB/Training/{c:05}"
    for i in range(2):
        put(f"{where}/{i:05}_00000.ppm")
    put(f"{where}/GT-{c:05}.csv", rows(HEAD, *(f"{i:05}_00000.ppm;10;8;1;1;9;7;{c}" for i in range(2))))
for i in range(4):
    put(f"GTSRB/gtsrb/GTSRB/Final_Test/Images/{i:05}.ppm")
put("GTSRB/gtsrb/GT-final_test.csv", rows(HEAD, *(f"{i:05}.ppm;10;8;1;1;9;7;{i % 3}" for i in range(4))))

planes = [f"{1000001 + i}" for i in range(15)]
KINDS = {"variant": ("707-320", "A300B4"), "family": ("A300", "Boeing 707"), "manufacturer": ("Airbus", "Boeing")}
aircraft = "FGVCAircraft/fgvc-aircraft-2013b/data"
for name in planes:
    put(f"{aircraft}/images/{name}.jpg")
put(f"{aircraft}/images_box.txt", rows(*(f"{name} 1 2 9 7" for name in planes)))
for kind, classes in KINDS.items():
    put(f"{aircraft}/{kind.replace('ly', 'lie')}s.txt", rows(*classes))
    for split, thirds in (("trainval", (0, 1)), ("train", (0,)), ("val", (1,)), ("test", (2,))):
        put(f"{aircraft}/images_{kind}_{split}.txt",
            rows(*(f"{name} {classes[i % 2]}" for i, name in enumerate(planes) if i % 3 in thirds)))

textures = [f"{c}/{c}_{i:04}.jpg" for c in ("banded", "blotchy") for i in range(6)]
for name in textures:
    put(f"DTD/dtd/dtd/images/{name}")
for first, split in enumerate(("train", "val", "test")):
    for part in (1, 2):
        put(f"DTD/dtd/dtd/labels/{split}{part}.txt", rows(*textures[(first + part) % 3::3]))
put("DTD/dtd/dtd/labels/labels_joint_anno.txt", rows(*(f"{name} {name.partition('/')[0]} " for name in textures)))

class_folders("EuroSAT/eurosat/2750", "jpg", AnnualCrop=2, Forest=3)
for split, n in (("train", 3), ("valid", 2), ("test", 1)):
    class_folders(f"Country211/country211/{split}", "jpg", AD=n, AE=2)
class_folders("Caltech101/caltech101/101_ObjectCategories", "jpg", BACKGROUND_Google=2, Faces=3)
put("Caltech101/caltech101/Annotations/Faces/annotation_0001.mat", b"MATLAB 5.0")
class_folders("Caltech256/caltech256/256_ObjectCategories", "jpg", **{"001.ak47": 2, "002.american-flag": 3})
for split in ("train", "test"):
    for i in range(3):
        put(f"StanfordCars/stanford_cars/cars_{split}/{i:05}.jpg")
for i in range(3):
    put(f"Flowers102/flowers-102/jpg/image_{i:05}.jpg")
put("Flowers102/flowers-102/setid.mat", b"MATLAB 5.0")
for name in ("a/abbey/sun_1", "a/airport/hall/sun_2", "b/bar/sun_3"):
    put(f"SUN397/SUN397/{name}.jpg")
put("SUN397/SUN397/ClassName.txt", rows("/a/abbey", "/a/airport/hall", "/b/bar"))
for alphabet in ("Greek", "Latin"):
    class_folders(f"Omniglot/omniglot-py/images_background/{alphabet}", "png", character01=2, character02=3)
for name, n, labels in (("10-batches-bin/data_batch_1", 20, 1), ("10-batches-bin/test_batch", 10, 1),
                        ("100-binary/train", 20, 2), ("100-binary/test", 10, 2)):
    put(f"CIFAR{name.partition('-')[0]}/cifar-{name}.bin", b"".join(bytes([i % 10] * labels) + bytes(3072) for i in range(n)))
for root, name, n in (("MNIST", "train", 20), ("MNIST", "t10k", 10), ("EMNIST", "emnist-letters-train", 20), ("EMNIST", "emnist-letters-test", 10)):
    put(f"{root}/{root}/raw/{name}-images-idx3-ubyte", struct.pack(">IIII", 0x803, n, 28, 28) + bytes(n * 784))
    put(f"{root}/{root}/raw/{name}-labels-idx1-ubyte", struct.pack(">II", 0x801, n) + bytes(i % 10 for i in range(n)))
for i in range(3):
    put(f"ManifestDataset/train/{i}.JPEG")
put("ManifestDataset/set.manifest", rows(*(json.dumps({
    "source": f"train/{i}.JPEG", "usage": ("TRAIN", "EVAL")[i == 2], "annotation": [{"name": ("cat", "dog")[i % 2]}]}) for i in range(3))))

# Loaders that read what others do.
LIKE = {"VOCSegmentation": "VOCDetection", "CocoCaptions": "CocoDetection", "ImageFolderDataset": "ImageFolder", "CocoDataset": "CocoDetection",
        "VOCDataset": "VOCDetection", "CelebADataset": "CelebA", "Cifar10Dataset": "CIFAR10", "Cifar100Dataset": "CIFAR100",
        "MnistDataset": "MNIST"}

# ---- torchvision ----

loaders.CelebA._check_integrity = lambda self: True  # of the archives
at = f"{SOURCE}/".__add__
# dataset of the page: the samples of the loader; their labels are the last of a sample, unless it is no number
COMPARED = {
    "ImageFolder": {s: lambda s=s: loaders.ImageFolder(at(f"ImageFolder/{s}")) for s in ("train", "val")},
    "DatasetFolder": {s: lambda s=s: loaders.DatasetFolder(at(f"DatasetFolder/{s}"), np.load, (".npy",)) for s in ("train", "val")},
    "CelebA": {s: lambda s=s: loaders.CelebA(at("CelebA"), s, "identity") for s in ("train", "valid", "test")},
    "VOCDetection": {f"Main/{s}": lambda s=s: loaders.VOCDetection(at("VOCDetection"), "2012", s) for s in ("train", "val", "trainval")},
    "VOCSegmentation": {f"Segmentation/{s}": lambda s=s: loaders.VOCSegmentation(at("VOCDetection"), "2012", s) for s in ("train", "val")},
    "Kitti": {"training": lambda: loaders.Kitti(at("Kitti"))},
    "Cityscapes": {s: lambda s=s: loaders.Cityscapes(at("Cityscapes"), s, target_type="semantic") for s in ("train", "val")},
    "Food101": {s: lambda s=s: loaders.Food101(at("Food101"), s) for s in ("train", "test")},
    "OxfordIIITPet": {s: lambda s=s: loaders.OxfordIIITPet(at("OxfordIIITPet"), s) for s in ("trainval", "test")},
    "GTSRB": {f"GTSRB/{d}": lambda s=s: loaders.GTSRB(at("GTSRB"), s) for d, s in (("Training", "train"), ("Final_Test", "test"))},
    "FGVCAircraft": {f"images_{k}_trainval": lambda k=k: loaders.FGVCAircraft(at("FGVCAircraft"), annotation_level=k) for k in KINDS},
    "DTD": {f"{s}{p}": lambda s=s, p=p: loaders.DTD(at("DTD"), s, p) for s in ("train", "val", "test") for p in (1, 2)},
    "EuroSAT": {"2750": lambda: loaders.EuroSAT(at("EuroSAT"))},
    "Country211": {s: lambda s=s: loaders.Country211(at("Country211"), s) for s in ("train", "valid", "test")},
    "MNIST": {"train": lambda: loaders.MNIST(at("MNIST")), "t10k": lambda: loaders.MNIST(at("MNIST"), train=False)},
    "EMNIST": {"emnist-letters-train": lambda: loaders.EMNIST(at("EMNIST"), "letters")},
}


def compare(name, dataset, samples):
    """Numbers, pictures and labels."""
    with np.load(path(dataset, "batches/batch=all/npz/000000.npz")) as batch:
        equal(len(batch["index"]), len(samples), f"samples of {name}, {dataset}")
        labels = [int(s[-1]) for s in samples if np.ndim(s[-1]) == 0 and isinstance(s[-1], int) or hasattr(s[-1], "item")]
        field = "identity" if name.startswith("CelebA") else "label"
        if labels and field in batch:
            equal(batch[field].tolist(), labels, f"labels of {name}, {dataset}")
        if "jpg" in batch:
            ends = batch["jpg_offsets"]
            for i, sample in enumerate(samples):
                shown = Image.open(io.BytesIO(batch["jpg"][ends[i]:ends[i + 1]].tobytes())).convert("RGB")
                equal(np.array_equal(shown, sample[0].convert("RGB")), True, f"picture {i} of {name}, {dataset}")


# ---- the page ----

RECIPES = {"recipe 1": take("docs/migration.md", "*.npy"),
           "recipe 2": take("docs/migration.md", "leftImg8bit"),
           "recipe 4": take("docs/migration.md", "{letter}")}


def words(cell):
    return re.findall(r"`([^`]+)`", cell)


def check(name, mount, datasets, fields, differs):
    source = os.path.normpath(f"{SOURCE}/{LIKE.get(name, name)}/{words(mount)[0]}")
    options, recipe = [], re.search(r"recipe \d", mount)
    if recipe:
        with open(f"{PRIVATE}/recipe.json", "w", encoding="ascii") as f:
            f.write(RECIPES[recipe[0]])
        options = [f"layout={PRIVATE}/recipe.json"]
    with mounted(source, *options):
        found = {}
        for dataset in words(datasets):
            about = json.loads(text(path(dataset, "dataset.json")))
            found[dataset] = {f["name"] for f in about["fields"]}
        has = set.union(*found.values())
        equal([f for f in words(fields) if f not in has], [], f"fields of {name} that are not in {sorted(has)}")
        for dataset, samples in COMPARED.get(name, {}).items():
            compare(name, dataset, list(samples()))
        if "and others" not in datasets:
            shown = [d["dataset"] for d in json.loads(run("info", "--json", *(w for o in options for w in ("-o", o)), source))["datasets"]
                     if "error" not in d]
            other = "Segmentation/" if "Main/" in datasets else "Main/"
            equal(sorted(d for d in shown if not d.startswith(other)), sorted(found), f"datasets of {name}")


checked = set()
with open(f"{ROOT}/{PAGE}", encoding="utf-8") as page:
    for line in page:
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| `") and words(cells[1]):
            checked.update(words(cells[0]))
            check(words(cells[0])[0], *cells[1:])
equal(sorted(set(COMPARED) - checked), [], "loaders that the page lacks")

# OxfordIIITPet with the class from the name.
with open(f"{PRIVATE}/recipe.json", "w", encoding="ascii") as f:
    f.write(take("docs/migration.md", "trimaps.png\":"))
with mounted(at("OxfordIIITPet/oxford-iiit-pet"), f"layout={PRIVATE}/recipe.json"):
    for split in ("trainval", "test"):
        compare("OxfordIIITPet", split, list(loaders.OxfordIIITPet(at("OxfordIIITPet"), split)))
print(f"{len(checked)} loaders")
