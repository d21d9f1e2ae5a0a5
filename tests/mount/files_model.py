"""Folders of files, read without epochfs: what torchvision's ImageFolder lists, with the files that
lie next to a picture; and checks of a mount against it."""

import io
import os
import tarfile
import urllib.parse

import numpy as np

from lib import content, equal

PICTURES = (b".jpg", b".jpeg", b".png", b".ppm", b".bmp", b".pgm", b".tif", b".tiff", b".webp", b".gif")


class Sample:
    def __init__(self, path, label, key, files):
        self.path = path    # of the picture, bytes
        self.label = label  # None: no classes
        self.key = key      # bytes
        self.files = files  # extension in lower case: content


def is_picture(name):
    return name.lower().endswith(PICTURES)


def below(folder):
    """The files below a folder in torchvision's order, (folder, name); links that lead up are not followed."""
    found = []
    for where, folders, names in os.walk(folder, followlinks=True):
        folders[:] = [f for f in folders
                      if not os.path.realpath(where).startswith(os.path.realpath(os.path.join(where, f)))]
        found.append((where, names))
    for where, names in sorted(found):
        for name in sorted(names):
            yield where, name


def name_of(key):
    """The name of a sample's files, of a key that is not too long."""
    out = b"".join(b"%%%02X" % c if c in b"/%\0" or (i == 0 and c == 0x2E) else bytes([c])
                   for i, c in enumerate(key))
    return out


def with_keys(root, samples):
    """Set keys: the stem if it is the only one, otherwise the path without the extension."""
    stems = {}
    for s in samples:
        stems.setdefault(s.key, []).append(s)
    for same in stems.values():
        if len(same) > 1:
            for s in same:
                s.key = os.path.join(os.path.relpath(os.path.dirname(s.path), root), s.key)
    return samples


def class_folders(root):
    """Classes and samples: each picture is one, with the files next to it that are called by its stem alone, if it
    is the only picture that is."""
    root = os.fsencode(root)
    classes = sorted(e.name for e in os.scandir(root) if e.is_dir() and not e.name.startswith(b"."))
    samples = []
    for label, name in enumerate(classes):
        for where, file in below(os.path.join(root, name)):
            if not is_picture(file) or not os.path.exists(os.path.join(where, file)):
                continue  # or a link to nothing
            stem, ext = os.path.splitext(file)
            together = [f for f in os.listdir(where) if f.count(b".") == 1 and os.path.splitext(f)[0] == stem]
            if b"." in stem or sum(map(is_picture, together)) != 1:
                together = [file]
            files = {os.path.splitext(f)[1][1:].lower(): content(where, f) for f in together}
            samples.append(Sample(os.path.join(where, file), label, stem, files))
    return classes, with_keys(root, samples)


def check_samples(folder, samples):
    """samples/raw has just these files."""
    raw = os.path.join(os.fsencode(folder), b"samples/raw")
    want = {name_of(s.key) + b"." + ext: data for s in samples for ext, data in s.files.items()}
    equal(sorted(os.listdir(raw)), sorted(want), "names in samples/raw")
    for name, data in want.items():
        where = os.path.join(raw, name)
        equal(content(where), data, where)
        equal(os.stat(where).st_size, len(data), where)


def check_tar(data, samples):
    """A tar of these samples in this order; its readers group members by the name before the first dot."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            key, _, ext = member.name.partition(".")
            if not found or found[-1][0] != key:
                found.append((key, {}))
            found[-1][1][ext] = tar.extractfile(member).read()
    equal(len(found), len(samples), "samples in tar")
    for (_, members), s in zip(found, samples):
        want = {os.fsdecode(ext): data for ext, data in s.files.items()}
        if s.label is not None:
            want["label.cls"] = b"%d" % s.label
        equal(members, want, f"tar of {s.key}")


def check_npz(data, samples, numbers):
    batch = np.load(io.BytesIO(data))
    equal(batch["index"].tolist(), numbers, "index")
    for ext in {ext for s in samples for ext in s.files}:
        name = os.fsdecode(ext)
        offsets = batch[name + "_offsets"]
        equal(batch[name].dtype, np.dtype("u1"), name)
        for i, s in enumerate(samples):
            equal(batch[name][offsets[i]:offsets[i + 1]].tobytes(), s.files.get(ext, b""), f"{name} of {s.key}")
    if samples[0].label is not None:
        equal(batch["label"].dtype, np.dtype("<i8"), "label")
        equal(batch["label"].tolist(), [s.label for s in samples], "label")


def quote(name):
    return urllib.parse.quote(name)
