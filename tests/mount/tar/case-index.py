#!/usr/bin/python3
"""Indexes next to the data: `epochfs index` writes the same bytes for the same source; a mount that
finds them makes none; whatever is wrong with them is ignored, and what is read stays right."""

import io
import os
import shutil
import tarfile

import numpy as np

from lib import CACHE, PRIVATE, SOURCE, content, contains, equal, log_text, mounted, path, run, write
from servers import Nginx
from tar_model import Shards, shard

OLD = 1600000000
rng = np.random.default_rng(47)
N, TABLE = 16, "index.txt"
DIR = f"{SOURCE}/.epochfs"


def make():
    data = []
    for i in range(N):
        data.append(shard([(f"{i:02d}{k:04d}.{ext}", body) for k in range(8)
                           for ext, body in (("jpg", rng.bytes(70_000)), ("cls", b"%d" % k))]))
        write(f"s-{i:02d}.tar", data[-1])
    return data


def files(folder):
    return {name: content(folder, name) for name in sorted(os.listdir(folder))}


def check(ds, source, cache, *words):
    """The mount is right, and its log has the words; without words it has no complaint."""
    shutil.rmtree(f"{CACHE}.{cache}", ignore_errors=True)
    with mounted(source, f"cache={CACHE}.{cache},stage=off", log=cache):
        ds.check_listing()
        for i in (0, 9, 8 * N - 1):
            ds.check_sample(i)
        equal([name for name in os.listdir(path()) if "index" in name], [], "datasets of indexes")
    equal("is ignored" in log_text(cache), bool(words), log_text(cache))
    contains(log_text(cache), *words)


def check_same_bytes():
    """Another cache, another folder and a second run give the same files; what is no folder of ours
    stays as it is."""
    contains(run("index", SOURCE, "-o", DIR, "-o", f"cache={CACHE}.1"), f"{N} indexes written")
    first = files(DIR)
    equal(len(first), 2, "files")
    run("index", SOURCE, "-o", DIR, "-o", f"cache={CACHE}.2")
    copy = f"{PRIVATE}/copy"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns(".epochfs"))
    run("index", copy, "-o", f"{PRIVATE}/out/", "-o", f"cache={CACHE}.3")
    for folder in (DIR, f"{PRIVATE}/out"):
        equal(files(folder) == first, True, f"the bytes of {folder}")
    equal([name for name in os.listdir(SOURCE) if name.startswith(".epochfs.")], [], "folders left")

    os.mkdir(f"{PRIVATE}/other")
    with open(f"{PRIVATE}/other/mine", "w", encoding="utf-8"):
        pass
    contains(run("index", SOURCE, "-o", f"{PRIVATE}/other", code=4), "something else")
    equal(os.listdir(f"{PRIVATE}/other"), ["mine"], "the other folder")
    contains(run("index", SOURCE, code=1), "expected --output DIR")
    contains(run("index", SOURCE, "-o", "cache=/x", code=1), "expected --output DIR")
    os.mkdir(f"{PRIVATE}/empty")
    shutil.copy(f"{SOURCE}/s-00.tar", f"{PRIVATE}/empty/README")
    with open(f"{PRIVATE}/empty/README", "w", encoding="utf-8") as f:
        f.write("nothing here\n")
    run("index", f"{PRIVATE}/empty", "-o", f"{PRIVATE}/none", code=2)
    equal(os.path.exists(f"{PRIVATE}/none"), False, "a folder without an index")


def check_remote(ds):
    """Fewer requests than without, over HTTP; the cache folder has the indexes then."""
    many, names = {}, os.listdir(DIR)
    for kind in ("with", "without"):
        folder = f"{PRIVATE}/{kind}"
        shutil.copytree(SOURCE, folder,
                        ignore=shutil.ignore_patterns(*([".epochfs"] if kind == "without" else [])))
        with Nginx(folder) as server:
            cache = f"{CACHE}.{kind}"
            with mounted(f"{server.url}/", f"cache={cache},stage=off,block=4K"):
                ds.check_listing()
                many[kind] = len(server.log(False))
            equal(sum("/.epochfs/" in str(line) for line in server.log(False)),
                  len(names) if kind == "with" else 1, f"requests for .epochfs/, {kind}")
            with mounted(f"{server.url}/", f"cache={cache},stage=off,block=4K"):
                ds.check_listing()
            equal(sum("/.epochfs/" in str(line) for line in server.log(False)),
                  len(names) if kind == "with" else 1, f"requests after a remount, {kind}")
    print(f"requests until 16 shards are ready: {many}")
    equal(many["with"] < many["without"], True, f"{many} requests")


def check_wrong(data, ds):
    table = content(DIR, TABLE)
    index = next(name for name in os.listdir(DIR) if name != TABLE)

    def put(name, body):
        with open(f"{DIR}/{name}", "wb") as f:
            f.write(body)

    good = content(DIR, index)
    for name, body, words in (
            ("garbage", bytes(len(good)), ("SHA-256", index)),
            ("short", good[:-1], (index,)),
            ("long", good + bytes(9), (index,))):
        put(index, body)
        check(ds, SOURCE, name, *words)
    os.remove(f"{DIR}/{index}")
    check(ds, SOURCE, "gone", index)
    put(index, good)
    for name, body in (("cut", table[:-1]), ("nul", table.replace(b"file", b"fil\0", 1)),
                       ("head", b"x" + table), ("order", table + table.split(b"\n", 1)[1]),
                       ("name", table.replace(index.encode(), b"../../" + index.encode()[6:], 1)),
                       ("number", table.replace(b"\nindex ", b"\nindex 99999999999999999999", 1))):
        put(TABLE, body)
        check(ds, SOURCE, name, TABLE)
    put(TABLE, table)
    check(ds, SOURCE, "again")

    # The same size, but other samples: the first block differs, and so does another one.
    data[3] = shard([(f"x{k:05d}.{ext}", body) for k in range(8)
                     for ext, body in (("jpg", rng.bytes(70_000)), ("cls", b"%d" % k))])
    equal(len(data[3]), os.path.getsize(f"{SOURCE}/s-03.tar"), "size of the new shard")
    write("s-03.tar", data[3])
    os.utime(f"{SOURCE}/s-03.tar", (OLD, OLD))
    check(Shards(path("all"), *data), SOURCE, "changed", "s-03.tar has changed")

    # The same size and the same four blocks, but samples between them are moved: its time shows it.
    with tarfile.open(fileobj=io.BytesIO(data[3])) as tar:
        members = [(m.name, tar.extractfile(m).read()) for m in tar]
    (name, three), (other, four) = members[6], members[8]
    members[6], members[8] = (name, three[:69_000]), (other, four + rng.bytes(1_000))
    before, data[3] = data[3], shard(members)
    run("index", SOURCE, "-o", DIR)
    third = len(before) // 3 // 4096 * 4096
    for at in (0, third, 2 * third, len(before) - 4096):
        equal(before[at:at + 4096] == data[3][at:at + 4096], True, f"the block at {at}")
    write("s-03.tar", data[3])
    check(Shards(path("all"), *data), SOURCE, "newer", "s-03.tar is newer than index.txt")


content_of = make()
model = Shards(path("all"), *content_of)
check_same_bytes()
check(model, SOURCE, "fresh")
check_remote(model)
check_wrong(content_of, model)
