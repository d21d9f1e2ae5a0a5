#!/usr/bin/python3
"""The archives that the mount shows, and the scp files next to them: an independent reader finds
every object on the mounted path, sequentially and by offset."""

import os
import shutil
import struct
import subprocess
import sys

import numpy as np

import kaldi_dirs as kd
import order_reference
from kaldi_dirs import BAD, Dataset, Item
from lib import (MOUNTPOINT, PRIVATE, SLOW, SOURCE, content, equal, expect_error, mounted, path,
                 text,
                 write)

ref = order_reference.load()
rng = np.random.default_rng(62)


def fresh():
    shutil.rmtree(SOURCE)
    os.mkdir(SOURCE)


def a(*shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def rounded(*shape):
    return (rng.integers(-999, 999, shape) / 8).astype(np.float32)


def keys_of(n):
    """Keys of many lengths, sorted."""
    return sorted(f"spk{i % 3}-{'x' * int(rng.integers(0, 30))}{i:03d}" for i in range(n))


def tables():
    """name -> (kind, [(key, object)]): every kind that has an array, binary and as text."""
    n = 23
    shapes = [(int(rng.integers(1, 40)), 4) for _ in range(n)]
    found = {
        "fm": ("matrix", [kd.fm(a(*s)) for s in shapes]),
        "dm": ("matrix", [kd.fm(a(*s, dtype=np.float64)) for s in shapes]),
        "cm": ("matrix", [kd.cm(rng, *s) for s in shapes]),
        "cm2": ("matrix", [kd.cm(rng, *s, "CM2") for s in shapes]),
        "cm3": ("matrix", [kd.cm(rng, *s, "CM3") for s in shapes]),
        "fv": ("vector", [kd.fv(a(s[0])) for s in shapes]),
        "dv": ("vector", [kd.fv(a(s[0], dtype=np.float64)) for s in shapes]),
        "ali": ("ints", [kd.ints(rng.integers(-9, 9, s[0]).tolist()) for s in shapes]),
        "text-matrix": ("matrix", [kd.text_matrix(rounded(*s)) for s in shapes]),
        "text-vector": ("vector", [kd.text_vector(rounded(s[0])) for s in shapes]),
        "wave": ("wave", [kd.wave_bytes(kd.tone(rng, s[0] * 50)) for s in shapes]),
        "stereo": ("wave", [kd.wave_bytes(kd.tone(rng, s[0] * 9, 2, 44100)) for s in shapes]),
        "empty": ("matrix", [kd.fm(a(*s) if i % 3 else a(0, 0)) for i, s in enumerate(shapes)]),
        "mixed": ("matrix", [kd.fm(a(*s)) if i % 2 else kd.text_matrix(rounded(*s))
                             for i, s in enumerate(shapes)]),
    }
    return {name: (kind, list(zip(keys_of(n), objects))) for name, (kind, objects) in found.items()}


def item(kind, data):
    return kd.read_object(data, 0, kind)[0]


def check_whole(ds, data, binary):
    """batch=all in the stored order equals the source, if that has exactly one space after each
    key."""
    folder = f"{ds.folder}/batches/batch=all"
    kd.check_batch(ds, folder, 0, list(range(len(ds.keys))), ["ark"])
    if binary:
        equal(content(f"{folder}/ark/000000.ark") == data, True,
              f"{ds.folder}: the source, byte for byte")
        lines = text(f"{folder}/ark/000000.scp").splitlines()
        equal([line.rpartition(":")[2] for line in lines],
              [str(at) for _, at, _ in kd.read_ark(data, ds.kind("data"))], "offsets of the source")


def check_tables():
    fresh()
    found = tables()
    sources = {name: kd.archive(pairs)[0] for name, (_, pairs) in found.items()}
    for name, data in sources.items():
        write(f"{name}.ark", data)
    with mounted():
        for name, (kind, pairs) in found.items():
            ds = Dataset(path(f"{name}.ark"), [key for key, _ in pairs],
                         {"data": [item(kind, data) for _, data in pairs]})
            kd.check_names(ds)
            check_whole(ds, sources[name], name != "mixed")
            for i in (0, 11, 22):
                kd.check_sample(ds, i, ["ark", "raw"])
                check_sample_names(ds, i)
            for plan, epochs in (("batch=5", [0]), ("batch=4,seed=3", [0, 7]),
                                 ("batch=6,part=1of2,seed=1,shuffle=window:3,tail=wrap", [2])):
                for epoch in epochs if not SLOW else epochs[:1]:
                    check_plan(ds, plan, epoch)


def check_sample_names(ds, i):
    """One file for the table, named by the key alone."""
    for name in (f"{ds.keys[i]}.ark", f"{ds.keys[i]}.scp"):
        equal(os.path.isfile(f"{ds.folder}/samples/ark/{name}"), True, name)
    expect_error(2, os.stat, f"{ds.folder}/samples/ark/{ds.keys[i]}.data.ark")


def check_plan(ds, plan, epoch):
    folder = f"{ds.folder}/batches/{plan}" + (f"/epoch={epoch}" if "seed" in plan else "")
    count = ref.batch_count(len(ds.keys), plan)
    names = [f"{b:06d}.{ext}" for b in range(count) for ext in ("ark", "scp")]
    equal(sorted(os.listdir(f"{folder}/ark")), names, f"{folder}/ark")
    for b in range(count):
        kd.check_batch(ds, folder, b, ref.batch_samples(len(ds.keys), plan, epoch, b), ["ark"])


# ---- the scp on its path ----

READER = """
import struct, sys
# What Kaldi does with scp:000000.scp, as little as that takes.
for line in open(sys.argv[1], "rb"):
    key, place = line.rstrip(b"\\n").split(b" ", 1)
    file, _, offset = place.rpartition(b":")
    with open(file, "rb") as f:
        f.seek(int(offset))
        assert f.read(5) == b"\\0BFM ", (key, place)
        size, rows, size2, columns = struct.unpack("<bibi", f.read(10))
        assert size == size2 == 4
        values = struct.unpack("<%df" % (rows * columns), f.read(4 * rows * columns))
        print(key.decode(), rows, columns, "%.6g" % sum(values))
"""


def check_reader():
    """A separate process, in another folder, reads the scp files of a mount; of two mounts at once
    each names its own place."""
    fresh()
    arrays = {key: a(int(rng.integers(1, 9)), 3) for key in keys_of(12)}
    write("f.ark", kd.archive([(key, kd.fm(x)) for key, x in arrays.items()])[0])
    second = f"{PRIVATE}/second place"
    os.mkdir(second)
    with mounted(), mounted(SOURCE, at=second, log="log.second"):
        for at in (MOUNTPOINT, second):
            for file in ("batches/batch=all/ark/000000.scp",
                         "batches/batch=5,seed=2/epoch=1/ark/000001.scp",
                         f"samples/ark/{next(iter(arrays))}.scp"):
                scp = f"{at}/f.ark/{file}"
                out = subprocess.run([sys.executable, "-c", READER, scp], cwd="/", check=True,
                                     stdout=subprocess.PIPE, timeout=30).stdout.decode()
                keys = [line[0] for line in kd.script_lines(scp)]
                equal(len(keys), {"b": 12 if "all" in file else 5, "s": 1}[file[0]],
                      f"{scp}: lines")
                for line, key in zip(out.splitlines(), keys):
                    x = arrays[key]
                    want = f"{key} {len(x)} 3"
                    equal(line.startswith(want), True, f"{scp}: {line} begins as {want}")
                    # Added up one by one in double, as the reader does.
                    equal(line.split()[-1], f"{sum(x.ravel().tolist()):.6g}",
                          f"{scp}: sum of {key}")
                equal({p for _, p, _ in kd.script_lines(scp)}, {scp[:-3] + "ark"},
                      "paths of the scp")


def check_remount():
    """An scp of a mount is a source for another mount."""
    fresh()
    arrays = {key: a(int(rng.integers(1, 9)), 3) for key in keys_of(9)}
    write("f.ark", kd.archive([(key, kd.fm(x)) for key, x in arrays.items()])[0])
    upper, copied = f"{PRIVATE}/upper", f"{PRIVATE}/copied"
    for folder in (upper, copied):
        os.mkdir(folder)
    with mounted():
        folder = path("f.ark/batches/batch=all,seed=4/epoch=0")
        order = [line[0] for line in kd.script_lines(f"{folder}/ark/000000.scp")]
        equal(sorted(order), sorted(arrays), "the keys of an epoch")
        shutil.copy(f"{folder}/ark/000000.scp", f"{copied}/epoch.scp")
        with mounted(copied, "allow_outside", at=upper, log="log.upper"):
            ds = Dataset(f"{upper}/epoch.scp", order,
                         {"data": [Item("matrix", arrays[key],
                                        kd.fm(arrays[key])) for key in order]})
            kd.check(ds)


# ---- data directories, ranges, odd archives ----

def check_directory():
    """Each table has its own archive, which its scp names."""
    fresh()
    folder = kd.Folder(rng, "d", 11, 2).write()
    with mounted():
        ds, _ = folder.dataset(path("d/all"))
        for i in (0, 10):
            kd.check_sample(ds, i, ["ark"])
        for plan, b in (("batch=all", 0), ("batch=4", 2), ("batch=3,seed=6", 1)):
            at = f"{ds.folder}/batches/{plan}" + ("/epoch=0" if "seed" in plan else "")
            kd.check_batch(ds, at, b, ref.batch_samples(11, plan, 0, b), ["ark"])
        equal(content(f"{ds.folder}/batches/batch=all/ark/000000.feats.ark"),
              content(SOURCE, "d/feats.ark"),
              "feats of all utterances")
        # By speaker: an entry for each utterance, under the utterance's key.
        found = kd.read_ark(content(f"{ds.folder}/batches/batch=all/ark/000000.cmvn.ark"), "matrix")
        equal([key for key, _, _ in found], ds.keys, "keys of cmvn")


def check_ranges():
    """Parts of objects, as Kaldi would write them."""
    fresh()
    x, y = a(30, 6), a(25, 6, dtype=np.float64)
    packed = kd.cm(rng, 40, 6)
    z = kd.read_object(packed, 0, "matrix")[0].value
    for name, array, data in (("f", x, kd.fm(x)), ("d", y, kd.fm(y)), ("c", z, packed)):
        write(f"{name}.ark", b"k " + data)
        cuts = [(i, min(i + int(rng.integers(0, 12)), len(array) - 1)) for i in range(0, len(array),
                                                                                      3)]
        kd.script(f"{name}.scp",
                  [f"u{i:02d} {name}.ark:2[{r0}:{r1}]" for i, (r0, r1) in enumerate(cuts)])
        parts = [np.ascontiguousarray(array[r0:r1 + 1]) for r0, r1 in cuts]
        items = [Item("matrix", part, kd.fm(part)) for part in parts]
        with mounted(f"{SOURCE}/{name}.scp"):
            ds = Dataset(path(f"{name}.scp"), [f"u{i:02d}" for i in range(len(cuts))],
                         {"data": items})
            kd.check(ds, ["ark", "raw", "npy"])
            equal(content(f"{ds.folder}/batches/batch=all/ark/000000.ark"),
                  kd.archive([(key, i.raw) for key, i in zip(ds.keys, items)])[0],
                  f"{name}: all parts")
            check_plan(ds, "batch=4,seed=1", 3)


def check_odd():
    """Archives with white space, newlines and NULs between entries; keys that are no names; bad
    rows."""
    fresh()
    x = [a(3, 2) for _ in range(4)]
    objects = [kd.fm(array) for array in x]
    items = [Item("matrix", array, data) for array, data in zip(x, objects)]
    write("blanks.ark",
          b" \n\tk1 " + objects[0] + b"\n\nk2\t" + objects[1] + b"\r\n  k3 " + objects[2] +
          b"\nk4 " + objects[3] + b"\n\n")
    names = ["a/b", "%25", ".c", "\u00fc\u00df"]
    write("names.ark", kd.archive(list(zip(names, objects)))[0])
    empty = b"\0BCM " + bytes(16)
    write("nuls.ark", b"k1 " + objects[0] + b"k2 " + empty + bytes(4) + b"k3 " + objects[2])
    kd.table("bad", list(zip(["k1", "k2", "k3", "k4"], objects)))
    lines = text(SOURCE, "bad.scp").splitlines()
    kd.script("bad.scp", [lines[0], "k2 none.ark:7", *lines[2:]])
    wave = kd.tone(rng, 900)
    write("w.wav", kd.wave_bytes(wave, before=b"LIST" + struct.pack("<I", 4) + b"INFO",
                                 after=b"LIST" + struct.pack("<I", 4) + b"INFO"))
    kd.script("w.scp", ["k w.wav"])
    with mounted():
        # A space follows each key, whatever followed it in the source.
        kd.check(Dataset(path("blanks.ark"), ["k1", "k2", "k3", "k4"], {"data": items}),
                 ["ark", "npy"])
        equal(content(path("blanks.ark/batches/batch=all/ark/000000.ark")),
              kd.archive(list(zip(["k1", "k2", "k3", "k4"], objects)))[0],
              "an archive without what stood between")
        kd.check(Dataset(path("names.ark"), names, {"data": items}), ["ark", "npy"])
        found = kd.read_ark(content(path("nuls.ark/batches/batch=all/ark/000000.ark")).replace(
            empty + bytes(4), empty), "matrix")
        equal([key for key, _, _ in found], ["k1", "k2", "k3"], "keys around an empty CM")
        ds = Dataset(path("bad.scp"), ["k1", "k2", "k3", "k4"],
                     {"data": [items[0], BAD, *items[2:]]})
        kd.check(ds, ["ark", "npy"])
        kd.check_batch(ds, f"{ds.folder}/batches/batch=2", 0, [0, 1], ["ark"])
        kd.check_batch(ds, f"{ds.folder}/batches/batch=2", 1, [2, 3], ["ark"])
        # Bytes after the data would be read as the next key: K-80.
        kd.check(Dataset(path("w.scp"), ["k"], {"data": [Item("wave", wave)]}))
        two = content(path("w.scp/batches/batch=2,tail=wrap/ark/000000.ark"))
        equal([key for key, _, _ in kd.read_ark(two, "wave")], ["k", "k"],
              "an archive of two waves")


def check_parts_of_files():
    """Reads from the middle, as seeking readers do."""
    fresh()
    pairs = [(key, kd.fm(a(int(rng.integers(1, 90)), 7))) for key in keys_of(40)]
    data = kd.archive(pairs)[0]
    write("f.ark", data)
    with mounted():
        folder = path("f.ark/batches/batch=all,seed=1/epoch=0/ark")
        order = [line[0] for line in kd.script_lines(f"{folder}/000000.scp")]
        want = kd.archive([(key, dict(pairs)[key]) for key in order])[0]
        scp = content(f"{folder}/000000.scp")
        for file, bytes_ in ((f"{folder}/000000.ark", want), (f"{folder}/000000.scp", scp)):
            fd = os.open(file, os.O_RDONLY)
            for _ in range(60 if SLOW else 300):
                at = int(rng.integers(0, len(bytes_)))
                n = int(rng.integers(1, 5000))
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                equal(os.pread(fd, n, at) == bytes_[at:at + n], True, f"{file}: {n} bytes at {at}")
            os.close(fd)


check_tables()
check_reader()
check_remount()
check_directory()
check_ranges()
check_odd()
check_parts_of_files()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
