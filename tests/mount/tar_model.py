"""What WebDataset's readers make of a shard, by Python's tarfile and WebDataset's own rule for names;
and checks of a mount against that."""

import io
import os
import re
import tarfile

import numpy as np

import order_reference
from lib import content, equal

ref = order_reference.load()

KEY = re.compile(r"((?:.*/|)[^.]+)[.]([^/]*)", re.S)
META = re.compile(r"__[^/]*__($|/)")


def members(data):
    """(name, bytes) of each member that is a file."""
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
        for member in tar:
            if member.isreg():
                yield member.name, tar.extractfile(member).read()


def split(name):
    """(key, extension), or None: no sample has it."""
    match = KEY.fullmatch(name)
    if not match or META.match(name) or match[1].endswith("/") or not match[2]:
        return None
    return match[1], "".join(c.lower() if c.isascii() else c for c in match[2])


def samples(data):
    """[(key, {extension: bytes})]: members that follow one another and have one key."""
    found = []
    for name, body in members(data):
        parts = split(name)
        if not parts:
            continue
        if not found or found[-1][0] != parts[0]:
            found.append((parts[0], {}))
        assert parts[1] not in found[-1][1], name
        found[-1][1][parts[1]] = body
    return found


def escaped(key, dots=False):
    """The name of a key as a file; in tar batches dots are also escaped."""
    while key.startswith("./") and len(key) > 2:
        key = key[2:]
    return "".join(f"%{ord(c):02X}" if c in "/%" or (c == "." and (dots or i == 0)) or
                   (dots and i == 0 and key.startswith("__")) else c for i, c in enumerate(key))


def keys_of(found):
    """The keys as the mount has them: a later one that repeats an earlier gets ~2 ..."""
    taken, keys = set(), []
    for key, _ in found:
        while key.startswith("./"):
            key = key[2:]
        name, n = key, 2
        while name in taken:
            name, n = f"{key}~{n}", n + 1
        taken.add(name)
        keys.append(name)
    return keys


def is_integer(body):
    return re.fullmatch(rb"\s*[+-]?\d+\s*", body) is not None


class Shards:
    """Samples of one shard, or of several in sequence."""

    def __init__(self, folder, *data):
        self.folder = folder
        self.samples = [s for d in data for s in samples(d)]
        self.keys = keys_of(self.samples)
        self.names = [escaped(key) for key in self.keys]
        self.fields = sorted({ext for _, fields in self.samples for ext in fields})

    def check_listing(self):
        want = sorted(f"{name}.{ext}" for name, (_, fields) in zip(self.names, self.samples)
                      for ext in fields)
        equal(sorted(os.listdir(f"{self.folder}/samples/raw")), want, f"{self.folder}/samples/raw")

    def check_sample(self, i):
        name, (_, fields) = self.names[i], self.samples[i]
        for ext, body in fields.items():
            equal(content(self.folder, "samples/raw", f"{name}.{ext}"), body, f"{name}.{ext}")
        self.check_tar(content(self.folder, "samples/tar", f"{name}.tar"), [i])

    def check_tar(self, data, numbers):
        """WebDataset's own reader finds the same samples in a batch, byte for byte."""
        got = samples(data)
        want = [(escaped(self.keys[i], True), self.samples[i][1]) for i in numbers]
        equal([key for key, _ in got], [key for key, _ in want], f"{self.folder}: keys of a batch")
        equal(got, want, f"{self.folder}: a batch")

    def check_npz(self, npz, numbers):
        rows = [self.samples[i][1] for i in numbers]
        equal(npz["index"].tolist(), numbers, "index")
        equal([k.decode(errors="surrogateescape") for k in npz["key"].tolist()],
              [self.keys[i] for i in numbers], "key")
        for ext in self.fields:
            bodies = [row.get(ext, b"") for row in rows]
            last = ext.rpartition(".")[2]
            if last in ("cls", "index", "id", "npy"):
                continue
            equal(npz[ext].tobytes(), b"".join(bodies), f"{ext} of a batch")
            equal(npz[f"{ext}_offsets"].tolist(),
                  np.concatenate([[0], np.cumsum([len(b) for b in bodies])]).tolist(),
                  f"{ext}_offsets")

    def check_batch(self, plan, batch, epoch=0):
        n = len(self.samples)
        numbers = [int(i) for i in ref.batch_samples(n, plan, epoch, batch)]
        folder = f"{self.folder}/batches/{plan}" + (f"/epoch={epoch}" if "seed" in plan else "")
        self.check_tar(content(folder, "tar", f"{batch:06d}.tar"), numbers)
        self.check_npz(np.load(io.BytesIO(content(folder, "npz", f"{batch:06d}.npz"))), numbers)
        return folder, numbers

    def check_plan(self, plan, epoch=0):
        for batch in range(ref.batch_count(len(self.samples), plan)):
            self.check_batch(plan, batch, epoch)


def shard(entries, form=tarfile.USTAR_FORMAT):
    """A shard of (name, bytes), or (name, bytes, type)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as tar:
        for name, body, *kind in entries:
            member = tarfile.TarInfo(name)
            member.size = len(body)
            if kind:
                member.type = kind[0]
                member.linkname = "target" if kind[0] in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            tar.addfile(member, io.BytesIO(body))
    return out.getvalue()


def npy(array, **how):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **how)
    return out.getvalue()
