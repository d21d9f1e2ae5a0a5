#!/usr/bin/python3
# slow: thousands of names
"""Keys of Kaldi tables as names of files: any bytes, dots, percent signs, very long keys, repeated
ones; every listed name can be opened, and no other; the members of a tar as WebDataset reads them;
100,000 keys."""

import errno
import io
import json
import os
import random
import re
import shutil

import numpy as np

import kaldi_model
from kaldi_model import (Table, check_batch, check_listing, check_sample, encode, webdataset, write,
                         write_ark)
from lib import (MOUNTPOINT, SOURCE, contains, content, equal, expect_error, log_text, mounted,
                 path, text, write as write_file)

SPACE = b" \t\n\v\f\r"
random.seed(4)


def vector(number):
    return write("vector", [float(number), number / 8])


def archive_of(keys):
    """The vector of sample n begins with n."""
    return write_ark([(key, vector(n)) for n, key in enumerate(keys)])


def fresh(files):
    shutil.rmtree(SOURCE)
    for name, data in files.items():
        write_file(name, data)


def table_of(data, keys):
    table = Table(data, "vector")
    equal([o.key for o in table.objects], keys, "keys that the model reads")
    equal(table.broken, None, "the model")
    return table


def check_absent(folder, names):
    for enc, name in names:
        expect_error((errno.ENOENT, errno.ENAMETOOLONG), os.stat,
                     os.fsencode(folder) + b"/samples/" + enc + b"/" + name)


# ---- bytes ----

ALL = [bytes([c]) for c in range(256) if bytes([c]) not in [bytes([s]) for s in SPACE]]
ODD = ALL + [b"k" + c + b"z" for c in ALL] + [c + b"!" for c in ALL] + [b"?" + c for c in ALL] + [
    b"..", b"...", b"..a", b".hidden", b"a..b", b"a.", b"a.b.c", b"%2F", b"%2f", b"%", b"%%",
    b"%00", b"a%2Fb", b"a/b", b"a//b", b"/", b"//", b"/etc/passwd", b"../../x", b"./x", b"-rf",
    b"~", b"~2",
    b"x~2", b"a.data", b"a.data.raw", b"a.data.npy", b"a.npz", b"a.ark", b"a.scp", b"a.tar",
    b"000000", b"1", b"UPPER", b"upper", b"con", b"\xef\xbb\xbfbom", b"\0\0\0\0b",
    b"LIST\4\0\0\0INFOb",
    b"\xff\xfe", "größe".encode(), "日本語".encode(), "e\u0301".encode(), "é".encode(),
    b"caf\xe9", "\u00a0".encode(), "\u2028".encode(), "🐧".encode(), b"*", b"$(x)", b"a'b", b"a\"b",
    b"a\\b", b"|", b"<>", b"a:3", b"a|", b"[0:1]", b"a=b,c+d", b"\x1b[1m",
    b"P09_S03_NOLOCATION.L-0006072-0006147-1"]


def check_bytes():
    keys = list(dict.fromkeys([b"first", *ODD]))
    data = archive_of(keys)
    fresh({"odd.ark": data})
    table = table_of(data, keys)
    equal(len({encode(key) for key in keys}), len(keys), "names of the model differ")
    with mounted():
        folder = path("odd.ark")
        check_listing(table, folder)
        for sample in range(len(keys)):
            check_sample(table, folder, sample, ["raw", "npy"])
        for sample in random.sample(range(len(keys)), 40) + list(range(len(keys) - 60, len(keys))):
            check_sample(table, folder, sample, ["npz", "ark", "tar"])
        check_batch(table, f"{folder}/batches/batch=all", 0, list(range(len(keys))))
        check_batch(table, f"{folder}/batches/batch=100", 2, list(range(200, 300)))
        # Plausible names that are not the escaped form of a key.
        listed = set(os.listdir(os.fsencode(f"{folder}/samples/raw")))
        wrong = [b"%2f", b"%2F%", b"%61", b"a%2fb", b"%", b"%%", b"%2", b"a%2Fb%", b"%252f%",
                 b"%2Ehidden%", b".hidden", b".", b"a%2Eb.c", b"kk", b"%25%32F", b"%7E", b"%00%0",
                 b"000000.", b"%~0123456789abcdef", b"a%~0123456789abcdef", b"nothing"]
        wrong = [key + b".data.raw" for key in wrong]
        wrong = [name for name in wrong if name not in listed]
        equal(len(wrong) > 15, True, "wrong names to try")
        check_absent(folder, [(b"raw", name) for name in wrong] + [
            (b"raw", b"1"), (b"raw", b"1.data"), (b"raw", b"1.raw"), (b"raw", b"1.data.npy"),
            (b"npy", b"1.data.raw"), (b"npz", b"1.data.npz"), (b"raw", b"1.data.raw "),
            (b"raw", b"1.data.raw.gz"), (b"npz", b"1.ark"), (b"ark", b"1.tar"), (b"npy", b"1.npy"),
            (b"npy", b"1.data_len.npy"), (b"npy", b"1.index.npy"), (b"raw", b".data.raw"),
            (b"raw", b"1.DATA.RAW"), (b"raw", b"%31.data.raw")])
        for name in (b".", b"..", b".a.b"):
            equal(name in listed, False, f"{name} is listed")


# ---- the tar ----

DOTTED = [b"a", b"a.b", b"a.c", b"a.b.c", b"a%2Eb", b"a.data", b"a.data.npy", b".", b"..", b".a",
          b"b.",
          b"c/d.e", b"c/d", b"c.x/d", b"utt.with.dots", b"utt.with", b"npy", b"x.NPY", b"x.npy"]


def check_tar():
    keys = DOTTED + ["größe.1".encode(), "größe".encode(), b"caf\xe9.x", b"k" * 90 + b".1",
                     b"k" * 90 + b".2", b"k" * 99, b"k" * 100, b"k" * 101 + b".x", b"z"]
    data = archive_of(keys)
    fresh({"dots.ark": data})
    table = table_of(data, keys)
    with mounted():
        folder = path("dots.ark")
        for sample in range(len(keys)):
            check_sample(table, folder, sample)
        check_batch(table, f"{folder}/batches/batch=all", 0, list(range(len(keys))))
        got = list(webdataset(content(folder, "batches/batch=all/tar/000000.tar")))
        equal(len(got), len(keys), "samples that WebDataset makes of the tar")
        for n, (key, members) in enumerate(got):
            equal(list(members), [b"data.npy"], f"{key}: extensions")
            equal(np.lib.format.read_array(io.BytesIO(members[b"data.npy"]))[0],
                  np.float32(n), f"{key}: its vector")
            equal(b"." in key, False, f"a dot in {key}")


# ---- long keys ----

CUT = re.compile(rb"(.*)%~([0-9a-f]{16})")


def check_long():
    """A key's name is whole if it fits, otherwise cut, and still each key has its own file."""
    lengths = [1, 100, 150, 190, 200, 210, 220, 230, 240, 245, 250, 255, 256, 300, 500, 800, 1000,
               1024]
    keys = [bytes([97 + i]) * n for i, n in enumerate(lengths)]
    keys += [b"p" * 400 + b"%d" % i for i in range(50)]  # which differ only after the cut
    keys += [b"%" * 100, b"%" * 60, b"/" * 200, ("ü" * 200).encode(), ("日" * 100).encode(),
             b"." + b"d" * 300, b"a." * 200, b"a." * 60, b"~" * 254]
    data = archive_of(keys)
    fresh({"long.ark": data})
    table = table_of(data, keys)
    with mounted():
        folder = os.fsencode(path("long.ark"))
        suffixes = {b"raw": b".data.raw", b"npy": b".data.npy", b"npz": b".npz", b"ark": b".ark",
                    b"tar": b".tar"}
        shown = {enc: long_names(folder, enc, suffix, table) for enc, suffix in suffixes.items()}
        for enc, names in shown.items():
            for key, name in zip(keys, names):
                check_long_name(key, name, suffixes[enc], f"{enc}: {key[:20]}*{len(key)}")
            equal(len(set(names)), len(keys), f"{enc}: names differ")
        hashes = [{m[2] for m in map(CUT.fullmatch, names) if m} for names in zip(*shown.values())]
        equal([len(h) > 1 for h in hashes], [False] * len(keys), "one hash for each key")
        for n in range(len(keys)):
            ark = folder + b"/samples/ark/" + shown[b"ark"][n]
            kaldi_model.check_ark(ark + b".ark", ark + b".scp", table, [n])
        plan = folder + b"/batches/batch=all"
        check_batch(table, plan, 0, list(range(len(keys))), ["npy", "npz", "ark"])
        got = list(webdataset(content(plan + b"/tar/000000.tar")))
        equal(len(got), len(keys), "samples in the tar")
        cut = shown[b"raw"][lengths.index(1024)]
        wrong = [cut[:-1] + (b"0" if cut[-1:] != b"0" else b"1"), cut[:-17] + cut[-16:],
                 b"x" + cut, cut[:-16] + cut[-16:].upper() + b"x", cut[1:]]
        check_absent(folder, [(b"raw", name + b".data.raw") for name in wrong])


def long_names(folder, enc, suffix, table):
    """The name of each sample, got by its file's content."""
    names = [None] * len(table)
    found = [n for n in os.listdir(folder + b"/samples/" + enc) if n.endswith(suffix)]
    equal(len(found), len(table), f"files in samples/{enc}")
    for name in found:
        equal(len(name) <= 255, True, f"{name}: its length")
        data = content(folder + b"/samples/" + enc + b"/" + name)
        values = next(iter(vector_in(data, enc)))
        names[int(values[0])] = name[:-len(suffix)]
    equal(None in names, False, f"samples/{enc}: a sample has no file")
    return names


def vector_in(data, enc):
    if enc == b"raw":
        yield kaldi_model.read_object(kaldi_model.Stream(data), "vector")
    elif enc == b"npy":
        yield np.load(io.BytesIO(data))
    elif enc == b"npz":
        yield kaldi_model.read_npz(data, enc)["data"]
    elif enc == b"ark":
        yield kaldi_model.read_ark(data, "vector")[0][0].value
    else:
        yield np.load(io.BytesIO(next(webdataset(data))[1][b"data.npy"]))


def check_long_name(key, name, suffix, what):
    whole = encode(key)
    cut = CUT.fullmatch(name)
    if len(whole) <= 150:
        equal(name, whole, what)
    if len(whole) + len(suffix) > 255:
        equal(bool(cut), True, f"{what}: expected it cut, got {name}")
    if cut:
        equal(whole.startswith(cut[1]), True, f"{what}: {name} begins as the key")
        equal(len(cut[1]) > 100, True, f"{what}: {name} shows much of the key")
    else:
        equal(name, whole, what)


def check_too_long():
    """Longer than any key: an error with its place; the samples before it are good."""
    data = archive_of([b"a", b"b" * 100000, b"c"])
    fresh({"long.ark": data, "first.ark": archive_of([b"b" * 100000, b"a"]),
           "no-blank.ark": b"x" * 3000000})
    with mounted():
        kaldi_model.check_npy(content(path("long.ark/samples/npy/a.data.npy")),
                              np.zeros(2, np.float32), "a")
        os.listdir(path("long.ark/samples/npy"))
        if os.path.exists(path("first.ark/ERROR.txt")):
            contains(text(path("first.ark/ERROR.txt")), "first.ark", "byte")
        contains(text(path("no-blank.ark/ERROR.txt")), "no-blank.ark")


# ---- repeated keys ----

def check_twice():
    cases = {"two.ark": [b"a", b"b", b"a"], "many.ark": [b"a"] * 12 + [b"b"],
             "taken.ark": [b"a", b"a~2", b"a", b"a"], "later.ark": [b"a", b"a", b"a~2"],
             "chain.ark": [b"a~2", b"a~2", b"a", b"a"],
             "odd.ark": [b".a/%", b".a/%", b"\xff", b"\xff"], "good.ark": [b"a", b"b"],
             "long.ark": [b"l" * 500] * 2, "longest.ark": [b"l" * 1024] * 2}
    files = {name: archive_of(keys) for name, keys in cases.items()}
    fresh(files)
    with mounted():
        for name, keys in cases.items():
            table = Table(files[name], "vector")
            page = json.loads(text(path(name, "dataset.json")))
            equal(page["samples"], len(keys), f"{name}: samples")
            if name == "good.ark":
                equal(page["notes"], [], f"{name}: note")
            else:
                contains("\n".join(page["notes"]), name, "key")
            if name.startswith("long"):
                found = os.listdir(path(name, "samples/npy"))
                equal((len(found), len(set(found))), (2, 2), f"{name}: {found}")
                continue
            check_listing(table, path(name))
            for sample in range(len(keys)):
                check_sample(table, path(name), sample)
            check_batch(table, path(name, "batches/batch=all"), 0, list(range(len(keys))))
    messages = log_text()
    for name in ("two.ark", "many.ark", "taken.ark"):
        contains(messages, name)


# ---- many ----

def check_many():
    n = 100000
    keys = [b"spk%03d-utt%06d.%d" % (i % 997, i, i % 3) for i in range(n)]
    random.shuffle(keys)
    keys[70000] = b"odd/key"
    data = b"".join(key + b" \0BFV \4\1\0\0\0" + np.float32(i).tobytes()
                    for i, key in enumerate(keys))
    fresh({"many.ark": data})
    with mounted():
        folder = os.fsencode(path("many.ark"))
        equal(json.loads(content(folder, b"dataset.json"))["samples"], n, "samples")
        for enc, suffix in ((b"npy", b".data.npy"), (b"raw", b".data.raw")):
            names = os.listdir(folder + b"/samples/" + enc)
            equal(len(names), n, f"names in samples/{enc}")
            equal(set(names) == {encode(key) + suffix for key in keys}, True,
                  f"names in samples/{enc} are those of the keys")
        for i in random.sample(range(n), 500) + [0, 70000, n - 1]:
            file = folder + b"/samples/npy/" + encode(keys[i]) + b".data.npy"
            equal(np.load(file).tolist(), [float(i)], file)
            check_absent(folder, [(b"npy", encode(keys[i]) + b"x.data.npy"),
                                  (b"npy", encode(keys[i])[:-1] + b".data.npy")])
        batch = folder + b"/batches/batch=all/npy/000000"
        equal(content(batch + b".key.txt"), b"".join(key + b"\n" for key in keys), "keys of all")
        equal(np.load(batch + b".data.npy").ravel().tolist(), list(map(float, range(n))),
              "values of all")
        shuffled = folder + b"/batches/batch=1000,seed=3/epoch=7/"
        index = np.load(shuffled + b"npy/000042.index.npy").tolist()
        equal(content(shuffled + b"npy/000042.key.txt"), b"".join(keys[i] + b"\n" for i in index),
              "keys of a shuffled batch")
        objects, broken = kaldi_model.read_ark(content(shuffled + b"ark/000042.ark"), "vector")
        equal(([(o.key, o.value.tolist()) for o in objects], broken),
              ([(keys[i], [float(i)]) for i in index], None), "archive of a shuffled batch")


check_bytes()
check_tar()
check_long()
check_too_long()
check_twice()
check_many()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
