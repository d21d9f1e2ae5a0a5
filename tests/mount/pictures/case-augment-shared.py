#!/usr/bin/python3
# needs: python3-pil
"""Augmented pictures of $SHARED_DATA/augment, by mounts and by the library, against its reference in Python: each recipe, size, seed and field of EXPECTED-augment.json,
with the numbers of the places that a plan has. The reference itself has to give the arrays of expected.npz."""

import importlib.util
import io
import json
import os

import numpy as np
from PIL import Image

import lib
import epochfs
from lib import SOURCE, equal, mounted, path, skip, write

DATA = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "augment")
if not os.path.isdir(DATA):
    skip(f"{DATA} is missing")
HAS_LIBRARY = not lib.SLOW and os.path.exists(f"{os.path.dirname(lib.EPOCHFS)}/libepochfs.so.0")
spec = importlib.util.spec_from_file_location("reference", f"{DATA}/reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

COPIES = 4  # of each picture: so many places
with open(f"{DATA}/EXPECTED-augment.json", encoding="utf-8") as f:
    CASES = json.load(f)["cases"]
with open(f"{DATA}/policies.json", encoding="utf-8") as f:
    POLICIES = json.load(f)
ARRAYS = np.load(f"{DATA}/expected.npz")


def read(name):
    with open(f"{DATA}/{name}", "rb") as f:
        return f.read()


def expected(case, file, epoch, index, position):
    pixels, done = reference.augment(file, case["size"], case["recipe"], case["seed"], epoch, index, position, POLICIES,
                                     case.get("normalize", "imagenet"))
    if case["field"] == "image_norm":
        return reference.normalized(pixels, case["normalize"], done.get("erase"), case.get("f2", False))
    if case["field"] == "mask":
        height, width = map(int, case["size"].split("x"))
        mask = reference.nearest(np.asarray(Image.open(io.BytesIO(read(case["mask"])))), *done["rrc"], height, width)
        return mask[:, ::-1] if done.get("flip") else mask
    return pixels


def recipes(cases):
    """The options, and the name of the recipe of each case; "none" has no word."""
    names = {recipe: f"r{i}" for i, recipe in enumerate(sorted({case["recipe"] for case in cases} - {"none"}))}
    return [f"augment={name}={recipe}" for recipe, name in names.items()], names


def of_mount(dataset):
    def read(plan, epoch, *fields):
        folder = path(dataset, "batches", plan, f"epoch={epoch}", "npy")
        return [np.load(io.BytesIO(lib.content(f"{folder}/000000.{name}.npy"))) for name in fields]
    return read


def of_library(dataset):
    def read(plan, epoch, *fields):
        batch = dataset.batches(plan, epoch=epoch, fields=fields, encoding="npy").read(0)
        return [batch[name] for name in fields]
    return read


def compare(cases, names, read, file_of):
    compared = 0
    for case in cases:
        augment = f",augment={names[case['recipe']]}" if case["recipe"] != "none" else ""
        plan = f"batch={COPIES},seed={case['seed']},picture={case['size']}{augment}"
        for epoch in 0, 3, 10**12:
            index, got = read(plan, epoch, "index", case["field"])
            for position in range(COPIES):
                want = expected(case, file_of[case["picture"]], epoch, int(index[position]), position)
                equal([got[position].dtype, got[position].shape], [want.dtype, want.shape], str(case))
                equal(got[position].tobytes(), np.ascontiguousarray(want).tobytes(), f"{case} {epoch} {index[position]} {position}")
                compared += 1
    return compared


for case in CASES:  # what is compared with is what the data says
    for want, sample in zip(ARRAYS[case["array"]], case["samples"]):
        made = expected(case, reference.File(read(case["picture"])), sample["epoch"], sample["index"], sample["position"])
        equal(made.tobytes(), want.tobytes(), case["array"])



def folder_of(case):
    return ("masked-" if case["field"] == "mask" else "") + case["picture"]


def normalize_of(case):
    return case.get("normalize", "imagenet") + (":f2" if case.get("f2") else "")


files = {case["picture"]: reference.File(read(case["picture"])) for case in CASES}
for case in {folder_of(case): case for case in CASES}.values():
    for folder, name in ("images", case["picture"]), ("masks", case.get("mask")):
        for i in range(COPIES if name else 0):
            write(f"{folder_of(case)}/{folder}/{i}.{name.split('.')[1]}", read(name))

compared = 0
for folder, normalize in sorted({(folder_of(case), normalize_of(case)) for case in CASES}):
    some = [case for case in CASES if (folder_of(case), normalize_of(case)) == (folder, normalize)]
    options, names = recipes(some)
    with mounted(f"{SOURCE}/{folder}", *options, f"normalize={normalize}"):
        compared += compare(some, names, of_mount("all"), files)
    if HAS_LIBRARY:
        with epochfs.load(f"{SOURCE}/{folder}", augment=[option.partition("=")[2] for option in options], normalize=normalize) as data:
            compare(some, names, of_library(data["all"]), files)
equal(compared, len(CASES) * 3 * COPIES)

# The pictures as arrays: what is made of those is what the reference makes of their pixels.
arrays = {name: reference.Array(np.array(Image.open(io.BytesIO(read(name))).convert("RGB"))) for name in ("cifar.png", "tall.png")}
for name, picture in arrays.items():
    some = [case for case in CASES if case["picture"] == name and case["field"] == "image"]
    options, names = recipes(some)
    os.makedirs(f"{SOURCE}/arrays-{name}")
    np.savez(f"{SOURCE}/arrays-{name}/a.npz", image=np.stack([picture.array] * COPIES), label=np.arange(COPIES))
    with mounted(f"{SOURCE}/arrays-{name}", *options):
        equal(compare(some, names, of_mount("a"), arrays), len(some) * 3 * COPIES)
    if HAS_LIBRARY:
        with epochfs.load(f"{SOURCE}/arrays-{name}", augment=[option.partition("=")[2] for option in options]) as data:
            compare(some, names, of_library(data["a"]), arrays)
