#!/usr/bin/python3
"""Ranges of scp lines, K-58, K-59 and K-86: the rows and columns that they select from matrices and
vectors of every store, the ranges that are errors, and the objects in raw/ and ark/."""

import os
import re
import struct

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, Dataset, Item
from lib import MOUNTPOINT, SLOW, SOURCE, contains, content, equal, log_text, mounted, path, text, write

rng = np.random.default_rng(58)
TOLERANCE = 3  # the last requested row must be below rows + 3


# ---- the rule, as kaldi-holder.cc has it ----

def numbers(part):
    """strtoll on each piece between colons; None: no range."""
    if part == ":":
        return []
    pieces = part.split(":")
    if not all(re.fullmatch(r"[ \t]*[-+]?[0-9]+", p) for p in pieces):
        return None
    values = [int(p) for p in pieces]
    return values if all(-2 ** 31 <= v < 2 ** 31 for v in values) else None


def bounds(part, n, tolerance):
    """The first and last index below n that part selects, or None."""
    values = numbers(part)
    if values is None:
        return None
    first, last = values or (0, n - 1) if len(values) in (0, 2) else (1, 0)
    if not 0 <= first <= last < n + tolerance:
        return None
    last = min(last, n - 1)
    return None if first > last else (first, last)  # Kaldi aborts if nothing remains


def cut(a, text_):
    """The part of an array that [text_] selects, or None."""
    parts = text_.split(",")
    if len(parts) > a.ndim or "" in parts:
        return None
    rows = bounds(parts[0], a.shape[0], TOLERANCE)
    columns = bounds(parts[1] if len(parts) > 1 else ":", a.shape[1], 0) if a.ndim > 1 else (0, 0)
    if not rows or not columns:
        return None
    a = a[rows[0]:rows[1] + 1]
    return np.ascontiguousarray(a[:, columns[0]:columns[1] + 1] if a.ndim > 1 else a)


FIXED = ["0:0", "0:1", "0:4", "4:4", "1:3", ":", "0:5", "0:6", "4:6", "4:5", "0:7", "0:8", "0:100",
         "5:5", "5:6", "5:7", "6:6", "7:7", "2:1", "4:0", "0", "3", ":1", "1:", "-1:1", "-1:-1",
         "1:-1",
         "0:1:2", "0:1:1", "::", "a:b", "0x0:1", "0:1x", "0.0:1", "1e0:2", "99999999999:1",
         "0:2147483647", "0:2147483648", "0:4294967296", "0:18446744073709551616", "00:01",
         "+0:+1", "0: 1",
         "0:1,0:0", "0:1,0:3", ":,0:0", ":,3:3", ":,:", "0:4,:", "0:1,0:4", ":,4:4", ":,0:5",
         ":,1:0",
         ":,-1:1", ":,0", ":,", "0:1,", ",0:1", ",", "0:1,0:1,0:1", ":,:,:", "0:6,1:2", "0:7,1:2",
         "4:6,3:3", "5:6,1:1", "0:1;0:1", "0-1", "all", "0:1,1:", "0:1,:1", "0:1,99999999999:1"]


def drawn(n):
    """Ranges near the edges of 5 x 4."""
    out = []
    for _ in range(n):
        rows = f"{rng.integers(-1, 9)}:{rng.integers(-1, 9)}" if rng.random() < .8 else ":"
        columns = f",{rng.integers(-1, 6)}:{rng.integers(-1, 6)}" if rng.random() < .6 else ""
        out.append(rows + columns)
    return out


# ---- tables ----

def a(*shape, dtype=np.float32):
    return rng.normal(size=shape).astype(dtype)


def rounded(*shape):
    return (rng.integers(-999, 999, shape) / 8).astype(np.float32)


def sparse():
    """SM of 5 x 4, and its value."""
    full = np.where(rng.random((5, 4)) < .5, a(5, 4), np.float32(0))
    out = b"\0BSM " + struct.pack("<bi", 4, 5)
    for row in full:
        at = np.flatnonzero(row)
        out += b"SV " + struct.pack("<bibi", 4, 4, 4, len(at))
        out += b"".join(struct.pack("<bibf", 4, i, 4, row[i]) for i in at)
    return full, out


def object_of(store):
    """An array and its object."""
    if store in ("CM", "CM2", "CM3"):
        data = kd.cm(rng, 5, 4, store)
        return kd.read_object(data, 0, "matrix")[0].value, data
    if store == "SM":
        return sparse()
    make = {"FM": lambda: a(5, 4), "DM": lambda: a(5, 4, dtype=np.float64), "FV": lambda: a(5),
            "DV": lambda: a(5, dtype=np.float64), "text-matrix": lambda: rounded(5, 4),
            "text-vector": lambda: rounded(5)}
    array = make[store]()
    write_ = {"FM": kd.fm, "DM": kd.fm, "FV": kd.fv, "DV": kd.fv, "text-matrix": kd.text_matrix,
              "text-vector": kd.text_vector}[store]
    return array, write_(array)


STORES = ["FM", "DM", "CM", "CM2", "CM3", "SM", "FV", "DV", "text-matrix", "text-vector"]
AT_ONCE = ["[]", "[0:1", "0:1]", "[0:1][0:1]", "[[0:1]", "[0:1]]", " [0:1]", "[0:1] ", "[0:1]x"]


def write_store(store):
    """A table of lines with ranges on one object; returns its keys and items."""
    array, data = object_of(store)
    kind = "matrix" if array.ndim > 1 else "vector"
    binary = kd.fm if kind == "matrix" else kd.fv
    other = b"k " + kd.text_matrix(rounded(2, 4)) if kind == "matrix" else b"k " + kd.fv(a(3))
    write(f"{store}/t.ark", other + b"key " + data)
    place = f"t.ark:{len(other) + 4}"
    ranges = FIXED + drawn(40 if SLOW else 120)
    lines, keys, items = [f"whole {place}"], ["whole"], [Item(kind, array, data)]
    for i, range_ in enumerate(ranges):
        part = cut(array, range_)
        lines.append(f"{i:03d}={range_.replace(' ', '_')} {place}[{range_}]")
        keys.append(lines[-1].split(" ")[0])
        items.append(BAD if part is None else Item(kind, part, binary(part)))
    kd.script(f"{store}/t.scp", lines)
    return keys, items


def check_store(store, keys, items):
    ds = Dataset(path(store, "t.scp"), keys, {"data": items})
    good = [i for i, item in enumerate(items) if item is not BAD]
    equal(10 < len(good) < len(items) - 10, True, f"{store}: the test has good and bad ranges")
    kd.check_names(ds)
    for i in range(len(keys)):
        # A bad range fails in every file; of the good ones some are checked in each file.
        few = ["npy", "raw"] if items[i] is BAD or i % 7 else ["npy", "raw", "ark", "npz", "tar"]
        kd.check_sample(ds, i, few)
    batch = f"{ds.folder}/batches/batch=1"
    for i in rng.choice(good, 6, replace=False).tolist():
        kd.check_batch(ds, batch, i, [i])
    told = text(ds.folder, "dataset.json") + log_text()
    line = next(i for i, item in enumerate(items) if item is BAD) + 1
    equal(kd.names_line(told, "t.scp", line), True, f"{store}: t.scp:{line} is named")


def check_stores():
    found = {store: write_store(store) for store in STORES}
    with mounted(SOURCE, "log=debug"):
        for store, (keys, items) in found.items():
            check_store(store, keys, items)


def check_small():
    """Tolerance on objects of one or two rows, and of none."""
    tables = {}
    for name, shape in (("two", (2, 3)), ("one", (1, 3)), ("none", (0, 0)), ("v2", (2,)),
                        ("v1", (1,)),
                        ("large", (3000, 2))):
        array = a(*shape)
        kind, binary = ("matrix", kd.fm) if len(shape) == 2 else ("vector", kd.fv)
        write(f"{name}/t.ark", b"k " + binary(array))
        ranges = ["0:0", "0:1", "0:2", "0:3", "0:4", "0:5", "1:1", "1:3", "1:4", "2:2", "2:3",
                  "2:4", "3:3",
                  "3:4", ":", "0:2999", "0:3001", "0:3002", "0:3003", "2999:3001", "100:199"]
        if len(shape) == 1:  # Kaldi gives an empty vector there, and aborts a step further
            ranges = [r for r in ranges if int(r.partition(":")[0] or 0) < shape[0] or r == ":"]
        pairs = [(range_, cut(array, range_)) for range_ in ranges]
        kd.script(f"{name}/t.scp", ["whole t.ark:2"] + [f"{r} t.ark:2[{r}]" for r in ranges])
        items = [Item(kind, array, binary(array))]
        items += [BAD if part is None else Item(kind, part, binary(part)) for _, part in pairs]
        tables[name] = (["whole", *ranges], items)
    with mounted(log="log.small"):
        for name, (keys, items) in tables.items():
            kd.check(Dataset(path(name, "t.scp"), keys, {"data": items}),
                     ["npy", "raw", "npz", "ark"])


def check_at_once():
    """Values that Kaldi cannot parse, or takes for odd names: no such sample, or an error."""
    array = a(5, 4)
    for i, tail in enumerate(AT_ONCE):
        kd.script(f"once{i}/t.scp", ["good t.ark:2", f"odd t.ark:2{tail}"])
        write(f"once{i}/t.ark", b"k " + kd.fm(array))
    write("names/t[0:1].ark", b"k " + kd.fm(array))
    write("names/t[0:1]", kd.fm(array))
    kd.script("names/t.scp", ["good t[0:1].ark:2", "bad t[0:1].ark:2[0:1]"])
    item = Item("matrix", array, kd.fm(array))
    with mounted(log="log.once"):
        for i, tail in enumerate(AT_ONCE):
            folder = path(f"once{i}", "t.scp")
            if tail == "[0:1] ":  # spaces at the end of a line do not count
                part = np.ascontiguousarray(array[:2])
                kd.check(Dataset(folder, ["good", "odd"],
                                 {"data": [item, Item("matrix", part, kd.fm(part))]}))
                continue
            check_one_bad(folder, item, "odd", f"once{i}/t.scp")
        check_one_bad(path("names/t.scp"), item, "bad", "names/t.scp")


def check_one_bad(folder, item, key, file):
    listed = os.listdir(f"{folder}/samples/npy")
    bad = f"{key}.data.npy" in listed
    ds = Dataset(folder, ["good", key] if bad else ["good"],
                 {"data": [item, BAD] if bad else [item]})
    kd.check(ds, ["npy", "raw", "npz"])
    equal(kd.names_line(text(folder, "dataset.json"), "t.scp", 2) or
          kd.names_line(log_text("log.once"), file, 2), True, f"{file}:2 is named")


def check_other_types():
    """Only matrices and vectors have ranges: K-86 waves, and integers do not."""
    wave = kd.tone(rng, 500)
    data = kd.wave_bytes(wave)
    write("wave/t.wav", data)
    write("wave/t.ark", b"k " + data)
    kd.script("wave/t.scp", ["good t.wav", "offset t.ark:2", "bad t.wav[0:0]", "bad2 t.wav[:]",
                             "bad3 t.wav[0:0,0:99]", "bad4 t.ark:2[0:0]"])
    good = Item("wave", wave, data)
    line = b"k " + kd.ints([1, 2, 3, 4, 5])
    write("ints/t.ark", line)
    kd.script("ints/t.scp", ["bad t.ark:2[0:1]", "good t.ark:2", "bad2 t.ark:2[:]"])
    ali = Item("ints", np.array([1, 2, 3, 4, 5], np.int32), line[2:])
    with mounted(SOURCE, "log=debug", log="log.other"):
        ds = Dataset(path("wave/t.scp"), ["good", "offset", "bad", "bad2", "bad3", "bad4"],
                     {"data": [good, good, BAD, BAD, BAD, BAD]})
        kd.check(ds)
        equal(kd.names_line(text(ds.folder, "dataset.json") + log_text("log.other"), "t.scp", 3),
              True,
              "wave/t.scp:3 is named")
    with mounted(f"{SOURCE}/ints", "kaldi_type=int-vector", log="log.ints"):
        kd.check(Dataset(path("t.scp"), ["bad", "good", "bad2"], {"data": [BAD, ali, BAD]}))


def check_messages():
    """An error of a range names the range and its object; an error of a line shows the line."""
    data, at = kd.archive([("m", kd.fm(a(2, 4))), ("v", kd.fv(a(3).reshape(-1)))])
    write("says/f.ark", data)
    lines = {"[0:5]": "within the object, got one that ends after it: [0:5] of a matrix of 2 rows, "
                      "4 columns",
             "[:,2:4]": "got one that ends after it: [:,2:4] of a matrix of 2 rows, 4 columns",
             "[2:2,0:0]": "got one that starts after it: [2:2,0:0] of a matrix of 2 rows",
             "[0:x]": f"got something else: bad3 f.ark:{at[0]}[0:x]",
             "[1:0]": f"got one that does: bad4 f.ark:{at[0]}[1:0]"}
    kd.script("says/t.scp", ["good f.ark:%d" % at[0]] + [f"bad{i} f.ark:{at[0]}{part}" for i, part
                                                         in enumerate(lines)])
    kd.script("says/v.scp", ["good f.ark:%d" % at[1], f"bad f.ark:{at[1]}[0:6]"])
    with mounted(f"{SOURCE}/says", log="log.says"):
        contains(text(path("t.scp/dataset.json")), *lines.values())
        contains(text(path("v.scp/dataset.json")), "[0:6] of a vector of 3 numbers")


def check_batches():
    """Ranges of one archive next to whole objects, in batches: Kaldi's way to cut utterances."""
    arrays = [a(20, 3), a(31, 3), a(7, 3)]
    data, at = kd.archive([(f"r{i}", kd.fm(x)) for i, x in enumerate(arrays)])
    write("cuts/f.ark", data)
    lines, items = [], []
    for i in range(40):
        k = int(rng.integers(3))
        first = int(rng.integers(len(arrays[k])))
        last = int(rng.integers(first, len(arrays[k]) + 2))
        lines.append(f"u{i:02d} f.ark:{at[k]}[{first}:{last}]")
        part = np.ascontiguousarray(arrays[k][first:last + 1])
        items.append(Item("matrix", part, kd.fm(part)))
    kd.script("cuts/t.scp", lines)
    with mounted(log="log.cuts"):
        ds = Dataset(path("cuts/t.scp"), [line.split()[0] for line in lines], {"data": items})
        kd.check(ds)
        for number in range(3):
            folder = f"{ds.folder}/batches/batch=16"
            kd.check_batch(ds, folder, number, list(range(40))[16 * number:16 * number + 16])
        folder = f"{ds.folder}/batches/batch=16,seed=2/epoch=1"
        index = np.load(f"{folder}/npy/000000.index.npy").tolist()
        equal(len(set(index)), 16, "a shuffled batch")
        kd.check_batch(ds, folder, 0, index)
        whole = content(f"{ds.folder}/batches/batch=all/ark/000000.ark")
        equal(whole, kd.archive([(key, item.raw) for key, item in zip(ds.keys, items)])[0],
              "the archive of all ranges")


check_stores()
check_small()
check_at_once()
check_other_types()
check_messages()
check_batches()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
