#!/usr/bin/python3
# needs: python3-pil
"""What `epochfs info` of a far folder asks for: its list, and the versions of its files where the list has none;
no picture, unless it is drawn on a terminal, and then the few that are."""

import io
import os
import struct

import numpy as np
from PIL import Image

from fake_s3 import FakeS3
from lib import CACHE, PRIVATE, contains, equal, run
from servers import Nginx, place, sent
from tar_model import shard
from terminal import on_terminal

N, CLASSES, DRAWN = 400, 8, 12  # pictures that are drawn of a dataset, at most
rng = np.random.default_rng(5)
COLOURS = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def picture(i):
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(out, "JPEG", quality=95)
    return out.getvalue() + bytes(3000)


PICTURES = {f"train/c{i % CLASSES}/{i:04d}.jpg": picture(i) for i in range(N)}
SIZE = sum(map(len, PICTURES.values()))


def check(what, lines, requests, most):
    """requests: (for lists, for versions, for files, bytes of files)."""
    print(f"{what}: {requests[0]} lists, {requests[1]} versions, {requests[2]} files of {requests[3]} bytes")
    contains("\n".join(lines), f"samples  {N}")
    equal(requests[2] <= most, True, f"{what}: {requests}")


def check_http():
    www = f"{PRIVATE}/www"
    for name, data in PICTURES.items():
        place(www, name, data)
    with Nginx(www) as server:
        def counted():
            log = server.log(data_only=False)
            files = [r for r in server.log() if r.path.endswith(".jpg")]
            server.forget()
            return (sum(r.path.endswith("/") for r in log), sum(r.method == "HEAD" for r in log), len(files),
                    sum(r.sent for r in files))

        counted()
        lines = run("info", "-o", f"cache={CACHE}.plain", f"{server.url}/").splitlines()
        found = counted()
        check("http, plain", lines, found, 0)
        equal((found[0] <= CLASSES + 2, found[1]), (True, N), "lists and versions")
        run("info", "--json", "-o", f"cache={CACHE}.json", f"{server.url}/")
        equal(counted()[2], 0, "files for --json")
        lines = on_terminal("-o", f"cache={CACHE}.drawn", f"{server.url}/", columns=100, **COLOURS)
        contains("\n".join(lines), "\033[48;5;", "\033[38;5;")
        found = counted()
        check("http, drawn", lines, found, DRAWN)
        equal(0 < found[2] and found[3] < SIZE // 10, True, f"{found} of {SIZE}")
        lines = on_terminal("-o", f"cache={CACHE}.dumb", f"{server.url}/", columns=100, TERM="dumb", LC_ALL="C")
        equal(counted()[2] <= DRAWN, True, "files on a dumb terminal")


def check_s3():
    with FakeS3({f"set/{name}": data for name, data in PICTURES.items()}) as s3:
        os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
        lines = run("info", "-o", f"cache={CACHE}.s3,anonymous", "s3://data/set").splitlines()
        check("s3, plain", lines, (s3.lists, 0, s3.objects, 0), 1)  # the table of .epochfs/, which is not there
        equal(s3.lists <= 2, True, f"{s3.lists} lists")
        before = s3.objects
        lines = on_terminal("-o", f"cache={CACHE}.s3-drawn,anonymous", "s3://data/set", columns=100, **COLOURS)
        check("s3, drawn", lines, (s3.lists, 0, s3.objects - before, 0), DRAWN + 1)


def check_sounds():
    """The beginnings of long audio files are drawn."""
    www, n, size, begin = f"{PRIVATE}/sounds", 6, 4 << 20, 1 << 20
    fmt = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    head = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + fmt + b"data" + struct.pack("<I", size)
    place(www, "a.tar", shard([(f"{i}.wav", head + rng.bytes(size)) for i in range(n)]))
    with Nginx(www) as server:
        run("info", "-o", f"cache={CACHE}.sound-pipe", f"{server.url}/a.tar")
        indexed = sent(server.log())
        server.forget()
        lines = on_terminal("-o", f"cache={CACHE}.sound", f"{server.url}/a.tar", columns=100, **COLOURS)
        drawn = sent(server.log()) - indexed
        print(f"audio: {drawn} bytes more on a terminal, of {n * size}")
        contains("\n".join(lines), "█")
        equal(0 < drawn <= 5 * (begin + (256 << 10)), True, f"{drawn} bytes for five lines")


check_http()
check_s3()
check_sounds()
