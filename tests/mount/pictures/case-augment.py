#!/usr/bin/python3
# needs: python3-pil
"""Plans that make pictures (picture=, augment=), compared with a model in Python: files and arrays, any rank and size of
batches, boxes, normalized pictures, bad pictures; what is refused, and that all other files stay as they are."""

import errno
import io
import json
import os

import numpy as np
from PIL import Image

import lib
from augment_model import Model, normalized
from lib import SOURCE, contains, equal, expect_error, idx_bytes, log_text, mounted, path, run, write

rng = np.random.default_rng(42)
SEED, MEAN, STD = 7, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RECIPES = {"t": "rrc+flip", "c": "crop:5+flip+vflip:0.7+gray:0.5+erase:0.8",
           "b": "base:16+rrc:scale=0.3-1:ratio=0.5-2+flip:1+salt:3", "p": "trivial"}


def load(*parts):
    return np.load(io.BytesIO(lib.content(path(*parts))))


def png(height, width, orientation=1):
    """Its bytes, and its pixels as they are shown."""
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x112] = orientation
    Image.fromarray(pixels).save(out, "PNG", exif=exif)
    return out.getvalue(), np.rot90(pixels, -1) if orientation == 6 else pixels


def batch(plan, epoch=0, number=0, encoding="npy", root="all"):
    folder = path(root, "batches", plan, f"epoch={epoch}", encoding)
    return {name.split(".")[1]: load(folder, name) for name in sorted(os.listdir(folder)) if name.startswith(f"{number:06}")}


def check(plan, name, height, width, positions, epoch=0, number=0, short=0):
    """Compare a batch; positions: of its samples in the epoch."""
    got = batch(f"{plan},augment={name}", epoch, number)
    equal(got["image"].shape, (len(positions), height, width, 3))
    for i, position in enumerate(positions):
        index, model = int(got["index"][i]), Model(RECIPES[name], SEED)
        pixels, box = model.picture(SHOWN[index], height, width, epoch, index, position, short, index == TURNED)
        equal(got["image"][i].tobytes(), pixels.tobytes(), f"{plan} {name} {position}")
        assert np.allclose(got["image_box"][i], box, rtol=1e-6, atol=1e-4), (got["image_box"][i], box)
        equal(got["image_norm"][i].tobytes(), normalized(pixels, MEAN, STD, model.hole).tobytes())
    return got


TURNED = 6
SIZES = [(24, 33), (33, 24), (8, 70), (40, 40), (1, 1), (17, 18), (64, 50)]
FILES = [png(h, w, 6 if i == TURNED else 1) for i, (h, w) in enumerate(SIZES)]
SHOWN = [shown for _, shown in FILES]
for i, (data, _) in enumerate(FILES):
    write(f"{i}.png", data)

with mounted(SOURCE, "image_size=12x16"):
    before = [lib.content(path("all", *p)) for p in (("samples", "npz", "3.npz"), ("batches", "batch=4", "npz", "000000.npz"), ("dataset.json",))]
    plain = batch("batch=7,seed=7,picture=20x30of32")
    for i, index in enumerate(plain["index"]):
        equal(plain["image"][i].tobytes(), Model("", SEED).picture(SHOWN[index], 20, 30, 0, 0, 0, 32, index == TURNED)[0].tobytes())
    expect_error(errno.ENOENT, os.stat, path("all", "batches", "batch=7,seed=7,augment=t"))

options = [f"augment={name}={words}" for name, words in RECIPES.items()]
with mounted(SOURCE, *options, "normalize=imagenet"):
    whole = check("batch=7,seed=7,picture=20x30", "t", 20, 30, range(7))
    check("batch=7,seed=7,picture=20x30", "c", 20, 30, range(7), epoch=3)
    check("batch=7,seed=7,picture=25x9", "b", 25, 9, range(7), epoch=10**12)
    check("batch=7,seed=7,picture=20x30of33", "c", 20, 30, range(7), short=33)
    # Another rank, and another size of batches, is the same.
    part = check("batch=2,rank=1of2,seed=7,tail=wrap,picture=20x30", "t", 20, 30, (5, 0), number=1)
    equal(part["image"][1].tobytes(), whole["image"][0].tobytes())
    folder = path("all/batches/batch=7,seed=7,picture=20x30,augment=t/epoch=0")
    equal(sorted(os.listdir(folder)), ["npy", "npz"])
    npz = load(folder, "npz/000000.npz")
    equal([npz["image"].tobytes(), npz["image_box"].tobytes()], [whole["image"].tobytes(), whole["image_box"].tobytes()])
    assert "image_norm" not in npz and "image_norm" in whole
    data = lib.content(f"{folder}/npy/000000.image_norm.npy")
    with open(f"{folder}/npy/000000.image_norm.npy", "rb", buffering=0) as f:
        for off, n in ((0, 1), (127, 3), (129, 4096), (3601, 7201), (len(data) - 5, 5)):
            equal(os.pread(f.fileno(), n, off), data[off:off + n], f"{n} bytes from {off}")
    equal(os.readlink(path("all/batches/batch=7,seed=7,augment=t,image_size=20x30")), os.path.basename(os.path.dirname(folder)))
    # What differs only in words that are new: nothing else changes.
    equal(json.loads(lib.content(path("all/dataset.json")))["augment"]["t"], "rrc:scale=0.08-1:ratio=0.75-1.333333+flip:0.5")
    drawn = batch("batch=14,seed=7,draw=14:uniform,picture=16x16,augment=t")
    first = [np.flatnonzero(drawn["index"] == i)[:2] for i in range(7)]
    assert any(drawn["image"][a].tobytes() != drawn["image"][b].tobytes() for a, b in first), "a sample twice is two pictures"
    for plan in ("batch=7,seed=7,augment=t", "batch=7,picture=20x30,augment=t", "batch=7,seed=7,picture=20x30,augment=x",
                 "batch=7,seed=7,picture=20x30of32,augment=t", "batch=7,picture=20x30of29", "batch=7,picture=4097x1", "batch=7,picture=0x1"):
        expect_error(errno.ENOENT, os.stat, path("all/batches", plan))
    contains(log_text(), "expected a size of the pictures, got none; add picture=HxW", "augment= needs seed=",
             "gives to the mount: t, c, b, p, got 'x'", "'of32' has no meaning with rrc", "S at least as large as H and W")

with mounted(SOURCE, *options, "normalize=imagenet:f2", "image_size=12x16"):
    after = [lib.content(path("all", *p)) for p in (("samples", "npz", "3.npz"), ("batches", "batch=4", "npz", "000000.npz"))]
    equal(after, before[:2], "files of today")
    one, half = load("all/samples/npy/3.image.npy"), load("all/samples/npy/3.image_norm.npy")
    equal([half.dtype, half.shape], [np.float16, (3, 12, 16)])
    equal(half.tobytes(), normalized(one, MEAN, STD).astype(np.float16).tobytes())
    equal(batch("batch=7,seed=7,augment=t")["image"].shape, (7, 12, 16, 3))
    with open(path("all/samples/npy/3.image_norm.npy"), "rb") as f:
        equal(f.read()[-7:], half.tobytes()[-7:])

# A picture that is bad; and arrays: gray, and in planes.
write("5.png", FILES[5][0][:60])
with mounted(SOURCE, *options, "on_error=zero"):
    got = batch("batch=7,seed=7,picture=20x30,augment=t")
    bad = list(got["index"]).index(5)
    equal([got["image_ok"].tolist().count(False), got["image_ok"][bad], got["image"][bad].any(), got["image_box"][bad].tolist()],
          [1, False, False, [0, 0, 0, 0]])
with mounted(SOURCE, *options):
    plan = path("all/batches/batch=7,seed=7,picture=20x30,augment=t/epoch=0/npy/000000.image.npy")
    expect_error(errno.EIO, lib.content, plan)
    contains(log_text(), "5.png")

for name in os.listdir(SOURCE):
    os.unlink(os.path.join(SOURCE, name))
gray, planes = rng.integers(0, 256, (40, 28, 28), dtype=np.uint8), rng.integers(0, 256, (6, 3, 10, 14), dtype=np.uint8)
write("train-images-idx3-ubyte", idx_bytes(gray))
write("train-labels-idx1-ubyte", idx_bytes(np.arange(40, dtype=np.uint8)))
np.savez(os.path.join(SOURCE, "planes.npz"), image=planes, label=np.arange(6))
records = rng.integers(0, 10, (20, 3073), dtype=np.uint8)  # of CIFAR-10: a label, then three planes
write("test_batch.bin", records.tobytes())
with mounted(SOURCE, *options, "augment=d=crop:3+flip", "normalize=0.5/0.25"):
    got = batch("batch=40,seed=7,augment=d", root="train")
    for i, index in enumerate(got["index"]):
        want = Model("crop:3+flip", SEED).picture(np.repeat(gray[index][..., None], 3, -1), 28, 28, 0, int(index), i)[0][..., 0]
        equal(got["image"][i].tobytes(), want.tobytes())
        equal(got["image_norm"][i].tobytes(), ((want.astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.25)).tobytes())
    # Without a plan of pictures, from any byte on: more items than are read at once.
    got = batch("batch=40,seed=7", root="train")
    want = ((got["image"].astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.25)).tobytes()
    equal(got["image_norm"].tobytes(), want)
    with open(path("train/batches/batch=40,seed=7/epoch=0/npy/000000.image_norm.npy"), "rb", buffering=0) as f:
        equal(os.pread(f.fileno(), 70_001, 128 + 3001), want[3001:73_002])
    got = batch("batch=20,seed=7,augment=d", root="test")
    for i, index in enumerate(got["index"]):
        want = Model("crop:3+flip", SEED).picture(records[index, 1:].reshape(3, 32, 32).transpose(1, 2, 0), 32, 32, 0, int(index), i)[0]
        equal(got["image"][i].tobytes(), want.tobytes())
    got = batch("batch=6,seed=7,picture=7x9,augment=b", root="planes", epoch=2)
    equal(got["image"].shape, (6, 3, 7, 9))
    for i, index in enumerate(got["index"]):
        want = Model(RECIPES["b"], SEED).picture(planes[index].transpose(1, 2, 0), 7, 9, 2, int(index), i)[0]
        equal(got["image"][i].tobytes(), want.transpose(2, 0, 1).tobytes())

for name in os.listdir(SOURCE):
    os.unlink(os.path.join(SOURCE, name))


def mask(i, height, width, mode="P", orientation=1):
    """Write the mask of a sample; its pixels."""
    pixels = rng.integers(0, 16, (height, width) + (3,) * (mode == "RGB"), dtype=np.uint8)
    picture, out, exif = Image.fromarray(pixels, "RGB" if mode == "RGB" else "L"), io.BytesIO(), Image.Exif()
    if mode == "P":
        picture.putpalette(list(range(255, 207, -1)))  # not their numbers
    exif[0x112] = orientation
    picture.save(out, "PNG", exif=exif, **({"bits": 4} if mode == "P" else {}))
    write(f"masks/{i}.png", out.getvalue())
    return np.rot90(pixels, -1) if orientation == 6 else pixels


def check_masks(plan, name, masks, height, width):
    """By the boxes: the pixel of the picture under the middle of each made one, and that of the mask under its middle."""
    got = batch(f"{plan},augment={name}", root="all")
    equal(got["mask"].shape, (len(masks), height, width) + masks[0].shape[2:])
    for i, index in enumerate(got["index"]):
        model = Model(RECIPES[name], SEED)
        _, (left, top, across, down) = model.picture(SHOWN[index], height, width, 0, int(index), i, lies=index == TURNED)
        H, W = masks[index].shape[:2]
        y, x = ((2 * np.floor(first + (np.arange(n) + 0.5) * size / n + 1e-4).astype(int) + 1) * length // (2 * shown) for first, n, size, length, shown in
                ((top, height, down, H, SHOWN[index].shape[0]), (left, width, across, W, SHOWN[index].shape[1])))
        inside = ((y >= 0) & (y < H))[:, None] & ((x >= 0) & (x < W))
        want = np.where(inside.reshape(inside.shape + (1,) * (masks[index].ndim - 2)), masks[index][np.ix_(y.clip(0, H - 1), x.clip(0, W - 1))], 255)
        differ = (got["mask"][i] != want).reshape(height, width, -1).any(-1)
        assert not differ.any(), (name, index, np.argwhere(differ)[:3], got["mask"][i], want)
    return got


for i, (data, _) in enumerate(FILES):
    write(f"images/{i}.png", data)
masks = [mask(i, *size, "L" if i == 2 else "P", 6 if i == TURNED else 1) for i, size in enumerate(SIZES)]
with mounted(SOURCE, *options):
    whole = check_masks("batch=7,seed=7,picture=20x30", "c", masks, 20, 30)
    assert (whole["mask"] == 255).any() and (whole["mask"] < 16).any()
    check_masks("batch=7,seed=7,picture=11x9", "t", masks, 11, 9)
    folder = "all/batches/batch=7,seed=7,picture=20x30,augment=c/epoch=0"
    equal(load(folder, "npz/000000.npz")["mask"].tobytes(), whole["mask"].tobytes())
    with open(path(folder, "npy/000000.mask.npy"), "rb", buffering=0) as f:
        equal(os.pread(f.fileno(), 700, 128 + 601), whole["mask"].tobytes()[601:1301])
    expect_error(errno.ENOENT, os.stat, path("all/batches/batch=7,seed=7,picture=8x8,augment=p"))
    contains(log_text(), "masks of the dataset do not follow")

# Twice the size, and colors; then what no mask can be.
masks = [mask(i, 2 * h, 2 * w, "RGB") for i, (h, w) in enumerate(SIZES)]
masks[TURNED] = mask(TURNED, *SHOWN[TURNED].shape[:2], "RGB")
with mounted(SOURCE, *options):
    check_masks("batch=7,seed=7,picture=11x9", "t", masks, 11, 9)
mask(0, 24, 33)
mask(1, 24, 33)
out = io.BytesIO()
Image.fromarray(rng.integers(0, 999, (8, 70), dtype=np.uint16)).save(out, "PNG")
write("masks/2.png", out.getvalue())
with mounted(SOURCE, *options, "on_error=zero"):
    folder = "all/batches/batch=1,seed=7,picture=8x8,augment=t/epoch=0/npy"
    for k in range(7):
        if load(folder, f"{k:06}.index.npy") != 0:
            equal(load(folder, f"{k:06}.image_ok.npy").tolist(), [True])
            expect_error(errno.EIO, load, folder, f"{k:06}.mask.npy")
    contains(log_text(), "masks/1.png", "the shape of its picture, 33 x 24, got 24 x 33", "masks/2.png", "at most 8 bits, got 16",
             "masks/3.png", "one channel, as the first one has, got colors")
os.unlink(os.path.join(SOURCE, "masks/6.png"))
with mounted(SOURCE, *options):
    assert "mask" not in batch("batch=3,seed=7,picture=8x8,augment=t")
    contains(log_text(), "there is no mask: some samples have no .masks.png")

for option, words in (("augment=t", "expected NAME=WORD"), ("augment=a b=rrc", "letters, digits"), ("augment=t=rrc+flop", "'flop' is not a word"),
                      ("augment=t=rrc+rrc", "rrc is given twice"), ("augment=t=flip,augment=t=flip", "the name is given twice"),
                      ("normalize=0.5/0/", "no STD of 0"), ("normalize=nan/1", "numbers from 0 to 1"), ("normalize=123.675/58.395", "divided by 255")):
    contains(run("mount", "-o", option, SOURCE, lib.MOUNTPOINT, code=1), words)
