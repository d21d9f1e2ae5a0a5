#!/usr/bin/python3
"""zip archives as folders of files, of this machine and over HTTP: names, stored and deflated members, what is ignored and what
is refused. With SHARED_DATA, also archives of other tools."""

import errno
import hashlib
import io
import json
import os
import shutil
import stat
import struct
import zipfile
import zlib

import numpy as np

from lib import CACHE, SOURCE, contains, content, equal, expect_error, mounted, path, run, text, write
from servers import Nginx

SHARED = os.environ.get("SHARED_DATA", "/nowhere")
MEDIA = (".jpg", ".png", ".txt", ".json", ".cls")
rng = np.random.default_rng(3)
JPG = {f"{c}/{i}.jpg": b"\xff\xd8\xff\xe0" + rng.bytes(200 + 40 * i) + bytes(3000) for c in ("cat", "dog") for i in range(5)}


def archive(files, method=zipfile.ZIP_STORED, **kwargs):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, **kwargs) as z:
        for name, data in files.items():
            z.writestr(name, data)
    return out.getvalue()


def sha(data):
    return hashlib.sha256(data).hexdigest()


link = zipfile.ZipInfo("cat/link.jpg")
link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
odd = {**JPG, "../out.jpg": b"a", link: b"0.jpg", "__MACOSX/cat/._0.jpg": b"b", "./cat//clean.jpg": b"\xff\xd8\xffc",
       "table.csv": "a\n1\n", "gr\xf6\xdfe/\xfc.jpg": b"\xff\xd8\xffd", "empty/": b""}
classic = archive({"gr__e/1.jpg": b"\xff\xd8\xff1", "b/2.jpg": b"\xff\xd8\xff2"}).replace(b"gr__e", b"gr\x94\xe1e")  # code page 437
made = {
    "plain.zip": (archive(JPG), ["plain"]),
    "packed.zip": (archive(JPG, zipfile.ZIP_DEFLATED), ["packed"]),
    "behind.zip": (archive(JPG) + b"more", ["behind"]),
    "inner.zip": (archive({f"inner/{k}": v for k, v in JPG.items()}), ["inner"]),
    "splits.zip": (archive({f"{s}/{k}": v for k, v in JPG.items() for s in ("train", "val")}), ["splits/train", "splits/val"]),
    "sub/deep.zip": (archive(JPG, zipfile.ZIP_DEFLATED), ["sub/deep"]),
}
whole = made["plain.zip"][0]
refused = {
    "cut.zip": (whole[:-30], ["expected the directory", "cut short"]),
    "before.zip": (b"PK\3\4" + whole, ["bytes before the archive"]),
    "twice.zip": (archive({"a/1.jpg": b"1", "a/2.jpg": b"2"}).replace(b"a/2.jpg", b"a/1.jpg"), ["different names", "a/1.jpg"]),
    "both.zip": (archive({"a/1": b"1", "a/1/2.jpg": b"2"}), ["a file or as a folder, got both"]),
    "text.zip": (archive({"a.docx": b"x", "b.docx": b"y"}), ["2 files of which none is", "2 .docx"]),
    "far.zip": (archive({"a/" * 3000 + "1.jpg": b"1"}), ["its path is too long"]),
    "none.zip": (archive({}), ["without files"]),
    "count.zip": (whole[:-14] + struct.pack("<HH", 99, 99) + whole[-10:], ["expected 99 members, got 10"]),
}
bomb = bytearray(archive({"a/1.jpg": bytes(5000), "b/1.jpg": b"x"}, zipfile.ZIP_DEFLATED))
struct.pack_into("<I", bomb, bytes(bomb).index(b"PK\1\2") + 24, 1 << 30)
refused["ratio.zip"] = (bytes(bomb), ["at most 1032 bytes of each deflated byte"])
# Many bytes for few: the head of a picture would be all of them.
many = bytearray(archive({"a/1.jpg": os.urandom(200_000), "b/1.jpg": b"x"}, zipfile.ZIP_DEFLATED))
many[(at := many.rindex(b"PK\1\2", 0, many.rindex(b"PK\1\2")) + 24):at + 4] = (10).to_bytes(4, "little")
refused["many.zip"] = (bytes(many), ["deflated bytes for 10, got"])
flags = bytearray(whole)
for at in (flags.index(b"PK\1\2") + 8, 6):
    flags[at] |= 1
refused["secret.zip"] = (bytes(flags), ["is encrypted"])
damaged = bytearray(archive(JPG))
damaged[damaged.index(b"cat/1.jpg") + 1] ^= 1  # its local header only
wrong = bytearray(archive(JPG, zipfile.ZIP_DEFLATED))
wrong[wrong.index(b"dog/2.jpg") + 40] ^= 1

for name, (data, _) in {**made, **refused}.items():
    write(name, data)
write("odd.zip", archive(odd, strict_timestamps=False))
write("classic.zip", classic)
write("damaged.zip", bytes(damaged))
write("recipe.zip", archive({**JPG, "epochfs.json": '{"datasets": {"x": {"files": "b.csv"}}}'}))
write("wrong.zip", bytes(wrong))
shared = []
ERRORS = {"aes", "count_too_large", "count_too_small", "directory_offset_beyond", "duplicate_names", "encrypted", "end_record_cut",
          "junk_before", "offset_beyond", "other_disk", "overlap_same_data", "ratio_impossible", "split_last_part",
          "stored_sizes_differ", "truncated", "zip64_end_beyond", "zip64_extra_short", "empty"}
UNREAD = {"deflate_damaged", "deflated_size_too_small", "local_method_differs", "local_name_differs"}  # a/0.jpg of each
if os.path.isdir(f"{SHARED}/zip"):
    with open(f"{SHARED}/hub-expected/zip.json", encoding="utf-8") as f:
        shared = json.load(f)
    os.makedirs(f"{SOURCE}/shared")
    for row in shared:
        shutil.copyfile(f"{SHARED}/{row['file']}", f"{SOURCE}/shared/{os.path.basename(row['file'])}")


def raw(folder):
    """name -> bytes of the files of a dataset, or of those below a folder; EIO: None."""
    found = {}
    for at, _, names in os.walk(path(folder)):
        for name in names if at.endswith("/samples/raw") else []:
            try:
                found[f"{at}/{name}"] = content(at, name)
            except OSError as e:
                equal(e.errno, errno.EIO, f"{at}/{name}")
                found[f"{at}/{name}"] = None
    return found


def check():
    for name, (_, datasets) in made.items():
        for ds in datasets:
            equal(sorted(sha(d) for d in raw(ds).values()), sorted(map(sha, JPG.values())), ds)
            about = json.loads(text(path(ds, "dataset.json")))
            equal((about["samples"], about["classes"]), (10, ["cat", "dog"]), ds)
        npz = np.load(path(datasets[0], "batches/batch=4,seed=1/epoch=0/npz/000000.npz"))
        at = npz["jpg_offsets"]
        for k, i in enumerate(npz["index"].tolist()):
            equal(npz["jpg"][at[k]:at[k + 1]].tobytes(), list(JPG.values())[i], f"{name}: sample {i} of a batch")
    for name, (_, words) in refused.items():
        contains(text(path(name, "ERROR.txt")), name, *words)
    about = json.loads(text(path("odd/dataset.json")))
    equal((about["samples"], about["classes"]), (12, ["cat", "dog", "empty", "größe"]), "odd")
    contains(" ".join(about["notes"]), "2 ignored", "../out.jpg", "..")
    equal(json.loads(text(path("classic/dataset.json")))["classes"], ["b", "größe"], "code page 437")
    contains(text(path("recipe/ERROR.txt")), "'x': an archive has no datasets of \"files\"")
    equal([d for d in raw("damaged").values() if d is None], [None], "a local header that differs")
    equal([d for d in raw("wrong").values() if d is None], [None], "a damaged member")
    for row in shared:
        file = os.path.basename(row["file"])
        name = file[:-4]
        if name in ERRORS:
            contains(text(path("shared", file, "ERROR.txt")), file)
            continue
        if not row.get("members"):  # zipfile does not read it
            equal(len(raw(f"shared/{name}")), 3, name)
            continue
        want = [m["sha256"] for m in row["members"] if m["name"].endswith(MEDIA) and "sha256" in m]
        got = raw(f"shared/{name}")
        equal(name in UNREAD, None in got.values(), f"{name}: something cannot be read")
        equal({sha(d) for d in got.values() if d is not None} <= set(want), True, f"{name}: contents")
        if "/bad/" not in row["file"] and name not in ("odd_paths", "nested"):
            equal(sorted(sha(d) for d in got.values()), sorted(want), f"{name}: all contents")


with mounted():
    check()
equal("cat" in run("info", f"{SOURCE}/plain.zip"), True, "info of one archive")
# What is found in a large archive is kept, and found again where that is damaged.
os.makedirs(f"{SOURCE}/large")
write("large/many.zip", archive({f"{c}/{i}.jpg": b"\xff\xd8\xff" for c in "abcd" for i in range(1100)}))
about = [run("info", "--json", "-o", f"cache_dir={CACHE}/kept", f"{SOURCE}/large/many.zip")]
listing = max(os.scandir(f"{CACHE}/kept/rows"), key=lambda entry: entry.stat().st_size).path  # not the keys
for at in (None, 30, 4000, 100_000):
    if at:
        with open(listing, "r+b") as f:
            f.seek(at)
            f.write(b"epochfs!")
    about.append(run("info", "--json", "-o", f"cache_dir={CACHE}/kept", f"{SOURCE}/large/many.zip"))
equal(set(about), {about[0]}, "what is kept of an archive")
contains(about[0], '"samples": 4400')
with Nginx(SOURCE) as nginx:
    with mounted(nginx.url, f"cache={CACHE}/far", "block=4096"):
        check()
    fetched = sum(r.sent for r in nginx.log() if r.path.endswith("/plain.zip"))
    equal(fetched <= len(whole), True, f"{fetched} of {len(whole)} bytes of an archive")
