#!/usr/bin/python3
# needs: zstd
"""Files packed with zstd and bzip2, of this machine and over HTTP: their content, or a reason. With SHARED_DATA, also files of
other tools."""

import bz2
import hashlib
import json
import os
import shutil
import subprocess

from lib import CACHE, SOURCE, contains, content, equal, mounted, path, run, text, write
from servers import Nginx

SHARED = os.environ.get("SHARED_DATA", "/nowhere")
ROWS = b"".join(b'{"n": %d, "t": "row %d"}\n' % (i, i * i) for i in range(3000))
MAGIC = b"\x28\xb5\x2f\xfd"


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, capture_output=True, check=True).stdout


whole = zstd(ROWS)
good = {  # name: bytes; all are ROWS
    "a/rows.jsonl.zst": whole,
    "b/rows.jsonl.bz2": bz2.compress(ROWS),
    "c/rows.jsonl.zst": zstd(ROWS[:1000], "--no-check") + zstd(ROWS[1000:], "--long=27"),
    "d/rows.jsonl.bz2": bz2.compress(ROWS[:1000]) + bytes(100) + bz2.compress(ROWS[1000:]),
    "e/rows.jsonl": whole,  # what it is, its bytes say
}
bad = {  # name: (bytes, words of the message)
    "x/cut.jsonl.zst": (whole[:-9], ["zstd data: expected its end, got the end of the file at byte"]),
    "x/behind.jsonl.bz2": (bz2.compress(ROWS) + b"x", ["after the bzip2 data: expected another stream", "got 78"]),
    "x/window.jsonl.zst": (MAGIC + b"\0\xa8" + bytes(20000), ["window of at most 256 MiB, got one of 2048 MiB", "--long=31"]),
    "x/dictionary.jsonl.zst": (MAGIC + b"\1\0\x2a\x11\0\0hi", ["without a dictionary", "dictionary 42"]),
    "x/lz4.jsonl.lz4": (b"\x04\x22\x4d\x18" + bytes(60), ["is LZ4", "Unpack it"]),
}
want = {os.path.splitext(name)[0] if "." in name[8:] else name: hashlib.sha256(ROWS).hexdigest() for name in good}
for name, data in good.items():
    write(name, data)
for name, (data, _) in bad.items():
    write(name, data)
refused = {name: words for name, (_, words) in bad.items()}
if os.path.isdir(f"{SHARED}/zst"):
    with open(f"{SHARED}/hub-expected/zst.json", encoding="utf-8") as f:
        expected = json.load(f)
    for number, row in enumerate(expected):
        at = f"shared{number}/{os.path.basename(row['file'])}"
        os.makedirs(os.path.dirname(f"{SOURCE}/{at}"))
        shutil.copyfile(f"{SHARED}/{row['file']}", f"{SOURCE}/{at}")
        if "/bad/" in row["file"] and "zeros_after" not in row["file"] or not row["bytes"]:
            refused[at] = []
        else:
            want[os.path.splitext(at)[0]] = row["sha256"]


def check():
    for name, sha in want.items():
        got = content(path(name, "source", os.path.basename(name)))
        equal(hashlib.sha256(got).hexdigest(), sha, name)
    for name, words in refused.items():
        contains(text(path(name, "ERROR.txt")), os.path.basename(name), *words)


with mounted():
    check()
    equal(json.loads(text(path("a/rows.jsonl/dataset.json")))["samples"], 3000, "samples")
equal("zstd" in run("info", "--check", f"{SOURCE}/a/rows.jsonl.zst"), False, "info of one file")
with Nginx(SOURCE) as nginx:
    with mounted(nginx.url, f"cache={CACHE}/far"):
        check()
    fetched = sum(r.sent for r in nginx.log() if r.path.endswith(".zst") and "/a/" in r.path)
    equal(fetched, len(whole), "each byte comes once")
    nginx.forget()
    with mounted(nginx.url, f"cache={CACHE}/far"):
        check()
    equal([r.path for r in nginx.log() if r.path.endswith("/a/rows.jsonl.zst")], [], "unpacked before")
