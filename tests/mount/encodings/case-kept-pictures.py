#!/usr/bin/python3
# needs: python3-pil
"""-o keep_made=SIZE: a second epoch and a second mount decode nothing and show the same bytes; so
after kills, damage, a full disk; a source or a size that differs is decoded again."""

import concurrent.futures
import errno
import io
import json
import os
import random
import shutil
import subprocess

import numpy as np
from PIL import Image

from lib import (PRIVATE, SOURCE, contains, content, equal, expect_error, log_text, mounted, path, run, start,
                 write)
from servers import wait_until

H, W, N = 48, 64, 300
CACHE = f"{PRIVATE}/cache"
MADE = f"{CACHE}/made"
rng = np.random.default_rng(3)
PLAN = "batch=32,seed=5"


def picture():
    small = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    out = io.BytesIO()
    small.resize((90, 70), Image.BICUBIC).save(out, "JPEG")
    return out.getvalue()


for i in range(N):
    os.makedirs(f"{SOURCE}/pets/c{i % 3}", exist_ok=True)
    write(f"pets/c{i % 3}/{i:04}.jpg", picture() if i != 100 else b"no picture")
OPTIONS = (f"picture={H}x{W}", "bad_rows=zero", f"cache={CACHE}")


def epoch(number, form="npy", at=None):
    """All bytes of the images of an epoch, by the number of the sample."""
    folder, ret = f"{at or path()}/pets/batches/{PLAN}/epoch={number}/{form}", {}
    for k in range((N + 31) // 32):
        if form == "npz":
            with np.load(f"{folder}/{k:06}.npz") as z:
                index, images = z["index"], z["image"]
        else:
            index, images = (np.load(f"{folder}/{k:06}.{f}.npy") for f in ("index", "image"))
        ret.update({int(i): image.tobytes() for i, image in zip(index, images)})
    equal(len(ret), N, "samples of the epoch")
    return ret


def pictures():
    with open(path(".epochfs/status.json"), "rb") as f:
        p = json.load(f)["pictures"]
    return p["decoded"], p["kept"]


def made():
    return [f"{MADE}/{name}" for name in sorted(os.listdir(MADE))] if os.path.isdir(MADE) else []


def listed():
    return [f for f in json.loads(run("cache", "list", "--json", CACHE))["files"] if f["kind"] == "made"]


with mounted(SOURCE, *OPTIONS, log="log.plain"):
    WANT = epoch(0)
    equal(made(), [], "nothing is kept without keep_made")
good = N - 1  # the bad one is never kept

# The first epoch keeps, the second one and the second mount decode nothing but the bad one.
with mounted(SOURCE, *OPTIONS, "keep_made=1G", log="log.first"):
    equal(epoch(0), WANT, "the first epoch")
    decoded, kept = pictures()
    equal(decoded, N, "decoded in the first epoch")
    equal(len(made()), 1, "files")
    equal([(f["staged"], f["size"], f["in_use"]) for f in listed()], [(good * H * W * 3, N * H * W * 3, True)], "list")
    contains(run("cache", "prune", "--all", CACHE), "in use")
    equal(len(made()), 1, "files in use stay")
for turn, form in enumerate(("npy", "npz")):
    with mounted(SOURCE, *OPTIONS, "keep_made=1G", log=f"log.{form}"):
        for number in (1, 2):
            equal(epoch(number, form), WANT, f"{form}, epoch {number}")
        decoded, kept = pictures()
        if decoded > 2:  # the bad one, perhaps twice
            raise AssertionError(f"{form}: decoded {decoded}")
        key = sorted(os.listdir(path("pets/samples/npy")))
        name = next(k for k in key if k.endswith(".image.npy"))
        whole = content(path("pets/samples/npy", name))
        with open(path("pets/samples/npy", name), "rb", buffering=0) as f:
            for off in (0, 130, len(whole) - 9):
                equal(os.pread(f.fileno(), 3001, off), whole[off:off + 3001], "a piece")

# Two mounts at once, from nothing.
shutil.rmtree(MADE)
other = f"{PRIVATE}/other"
os.mkdir(other)
with mounted(SOURCE, *OPTIONS, "keep_made=1G", log="log.a") as a:
    with mounted(SOURCE, *OPTIONS, "keep_made=1G", at=other, log="log.b") as b:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for got in pool.map(epoch, (3, 3), ("npy", "npz"), (a, b)):
                equal(got, WANT, "two mounts at once")
    equal(len(made()), 1, "files")

# Another size has another file; a changed source is seen.
with mounted(SOURCE, f"picture={H}x{H}", f"cache={CACHE}", "keep_made=1G", log="log.size"):
    content(path("pets/samples/npy", sorted(os.listdir(path("pets/samples/npy")))[0]))
    equal(len(made()), 2, "files")

# Plans with `base` find the scaled picture in every epoch: its bytes, and boxes of the file's picture, are those without.
AUGMENTED = "batch=32,seed=5,picture=32x32,augment=t"


def augmented(number):
    folder = path(f"pets/batches/{AUGMENTED}/epoch={number}/npy")
    return b"".join(content(folder, f"{k:06}.{field}.npy") for k in range((N + 31) // 32) for field in ("image", "image_box"))


recipe = ("augment=t=base:40+rrc+flip", "bad_rows=zero", f"cache={CACHE}")
with mounted(SOURCE, *recipe, log="log.base"):
    want = [augmented(number) for number in range(3)]
for turn in range(3):
    with mounted(SOURCE, *recipe, "keep_made=1G", log=f"log.base{turn}"):
        equal([augmented(number) for number in range(3)], want, "augmented pictures of kept ones")
        decoded, kept = pictures()
        equal((good if turn % 2 == 0 else 0) <= decoded <= (good if turn % 2 == 0 else 0) + 6, True, f"decoded in turn {turn}: {decoded}")
        equal(kept >= 2 * good, True, f"kept in turn {turn}: {kept}")
    if turn == 1:  # heads that say another size, pixels that differ
        with open(max(made(), key=os.path.getmtime), "r+b") as f:
            for at in range(8192, os.path.getsize(f.name), 40 * 40 * 3 // 2):
                f.seek(at)
                f.write(rng.bytes(16))
os.unlink(max(made(), key=os.path.getmtime))

# Damage of any kind: never a wrong byte.
order = random.Random(7)
file = max(made(), key=os.path.getsize)
for turn in range(40):
    with open(file, "r+b") as f:
        size = os.path.getsize(file)
        what = turn % 5
        if what == 0:
            f.truncate(order.randrange(size))
        elif what == 1:
            f.truncate(size + order.randrange(1, 10000))
        elif what == 2:
            f.seek(order.randrange(2048))
            f.write(order.randbytes(64))
        elif what == 3:  # records
            f.seek(2048 + 8 * order.randrange(N))
            f.write(order.randbytes(16))
        else:  # arrays
            for _ in range(20):
                f.seek(order.randrange(8192, size))
                f.write(order.randbytes(1))
    with mounted(SOURCE, *OPTIONS, "keep_made=1G", log=f"log.damage{turn}"):
        equal(epoch(4 + turn, "npz" if turn % 2 else "npy"), WANT, f"damage {turn}")
        # while it is mounted
        with open(file, "r+b") as f:
            f.seek(8192 + order.randrange(N * H * W * 3 - 100))
            f.write(order.randbytes(100))
        equal(epoch(100 + turn), WANT, f"damage while mounted {turn}")

# cache verify finds it.
with open(file, "r+b") as f:
    f.seek(os.path.getsize(file) - 10)
    f.write(b"damaged")
contains(run("cache", "verify", CACHE, code=4), "made/")
run("cache", "verify", CACHE)

# Killed at any time.
for turn in range(12):
    shutil.rmtree(MADE, ignore_errors=True)
    daemon = start(SOURCE, *OPTIONS, "keep_made=1G", log=f"log.kill{turn}")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reads = pool.submit(epoch, turn)
        wait_until(lambda: any(f["staged"] > turn * H * W * 3 for f in listed()), "some are kept", daemon)
        daemon.kill()
        daemon.wait()
        subprocess.run(["umount", "-l", path()], check=True)
        reads.exception()
    with mounted(SOURCE, *OPTIONS, "keep_made=1G", log=f"log.after{turn}"):
        equal(epoch(turn), WANT, f"after kill {turn}")
        if pictures()[1] < turn:
            raise AssertionError(f"kept before kill {turn}: {pictures()}")

# SIZE is reached: others that are in no use go first, then no more are kept.
with mounted(SOURCE, f"picture={H}x{W + 8}", "bad_rows=zero", f"cache={CACHE}", "keep_made=1G", log="log.large"):
    epoch(0)
    equal(len(made()), 2, "files")
with mounted(SOURCE, f"picture={H}x{W + 16}", "bad_rows=zero", f"cache={CACHE}", "keep_made=2M", log="log.limit"):
    first, second = epoch(0), epoch(1)
    equal(first, second, "epochs")
    equal(len(made()), 1, "older files are removed")
    used = sum(os.stat(f).st_blocks * 512 for f in made())
    if not 1 << 20 < used <= (2 << 20) + 65536:
        raise AssertionError(f"kept: {used} bytes")
with mounted(SOURCE, f"picture={H}x{W + 16}", "bad_rows=zero", f"cache={CACHE}", "keep_made=2M", log="log.limit2"):
    equal(epoch(0), first, "some are kept")
    if not 100 < pictures()[1] < good:
        raise AssertionError(f"kept: {pictures()}")
equal(log_text("log.limit").count("no more pictures are kept"), 1, "said once")

# A full disk.
small = f"{PRIVATE}/small"
os.mkdir(small)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M,mode=0700", "small", small], check=True)
with mounted(SOURCE, f"picture={H}x{W}", "bad_rows=zero", f"cache={small}", "keep_made=1G", log="log.full"):
    equal(epoch(0), WANT, "full disk")
with mounted(SOURCE, f"picture={H}x{W}", "bad_rows=zero", f"cache={small}", "keep_made=1G", log="log.full2"):
    equal(epoch(1), WANT, "full disk, some are kept")
    if not 0 < pictures()[1] < good:
        raise AssertionError(f"kept: {pictures()}")
subprocess.run(["umount", small], check=True)
equal(log_text("log.full").count("no more pictures are kept"), 1, "said once")

# A picture of this machine that changes in place: its kept array is not shown. With cache= it would be staged.
local = OPTIONS[:2] + ("keep_made=1G",)
with mounted(SOURCE, *local, log="log.local"):
    equal(epoch(0), WANT, "in the default folder")
with mounted(SOURCE, *local, log="log.change"):
    write("pets/c0/0000.jpg", picture())
    name = "samples/npy/" + next(k for k in sorted(os.listdir(path("pets/samples/npy")))
                                 if "0000" in k and k.endswith(".image.npy"))
    expect_error(errno.ESTALE, content, path("pets", name))
    equal(pictures(), (0, 0), "pictures")
with mounted(SOURCE, *local, log="log.changed"):
    after = epoch(0)
    equal([i for i in WANT if after[i] != WANT[i]], [0], "after the change")
