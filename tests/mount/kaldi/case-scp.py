#!/usr/bin/python3
"""Lines of scp files, K-50 to K-61 of the table of Kaldi's edge cases: the samples that they make,
what is wrong with the others and where that is reported, and where the mount looks for the files
that they name."""

import json
import os
import re
import shutil
import subprocess

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, Dataset, Item, expect_told
from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, expect_error, log_text,
                 mounted, path, run, text, write)

rng = np.random.default_rng(50)


def matrix(*shape, dtype=np.float32):
    a = rng.normal(size=shape).astype(dtype)
    return Item("matrix", a, kd.fm(a))


OBJECTS = {"a": matrix(5, 3), "b": matrix(2, 3), "c": matrix(9, 3)}
rounded = np.round(OBJECTS["a"].value * 8) / 8  # exact in seven digits
OBJECTS["t"] = Item("matrix", rounded, kd.text_matrix(rounded))
OBJECTS["t8"] = Item("matrix", rounded, kd.text_matrix(rounded).rstrip())  # without a line's end


def data_files():
    """Make the files that lines name: a, b, c in one archive, in others of odd names, and alone in
    files without keys. Returns the values to fill into the lines."""
    data, at = kd.archive([(f"k{name}", OBJECTS[name].raw) for name in "abct"])
    write("data/fm.ark", data)
    places = {name: f"data/fm.ark:{start}" for name, start in zip("abct", at)}
    odd = ["with space.ark", "two  spaces.ark", "brackets[1].ark", "per%cent.ark", "#.ark",
           "'quote\".ark", "back\\slash.ark", "$HOME.ark", "~.ark", "\u00fcml\u00e4ut.ark",
           "a:b:7:.ark",
           "12", "semi;colon.ark", "dash-.ark", "tab\there.ark", "ark", "scp"]
    for i, name in enumerate(odd):
        write(f"data/{name}", data)
        places[f"odd{i}"] = f"data/{name}:{at[1]}"
    for name, file in {"whole": "b.mat", "colon": "b.mat:", "digits": "b.mat12", "arkx": "arkx:b",
                       "not_ark": "not ark:b"}.items():
        write(f"data/{file}", OBJECTS["b"].raw)
        places[name] = f"data/{file}"
    for name, file in {"arkx_top": "arkx:b", "options_top": "s,cs:b",
                       "scpx_top": "scp.x:b"}.items():
        write(file, OBJECTS["b"].raw)
        places[name] = file
    write("data/text.mat", OBJECTS["t"].raw)
    write("data/no-end.mat", OBJECTS["t"].raw.rstrip())
    write("data/b.mat:12", OBJECTS["b"].raw)
    write("data/nothing", b"")
    write("data/letters", b"abc def\n")
    write("data/cut", OBJECTS["a"].raw[:-1])
    write("data/head", OBJECTS["a"].raw[:9])
    places |= {"odds": len(odd), "end": f"data/fm.ark:{len(data)}", "at_key": "data/fm.ark:0",
               "middle": f"data/fm.ark:{at[0] + 1}", "zeros": f"data/fm.ark:000{at[0]}",
               "hex": f"data/fm.ark:0x{at[0]:x}", "plus": f"data/fm.ark:+{at[0]}"}
    return places


GOOD3 = [("u1", "a"), ("u2", "b"), ("u3", "c")]

# (number, name, the text, its samples, the lines that messages name)
TABLE = [
    ("K-50", "blank-last", "u1 {a}\nu2 {b}\n\n \n", GOOD3[:2], []),
    ("K-50", "mark", "\ufeffu1 {a}\nu2 {b}\n", GOOD3[:2], []),
    ("K-51", "plain", "u1 {a}\nu2 {b}\nu3 {c}\n", GOOD3, []),
    ("K-51", "no-newline", "u1 {a}\nu2 {b}\nu3 {c}", GOOD3, []),
    ("K-51", "one", "u1 {a}", GOOD3[:1], []),
    ("K-51", "crlf", "u1 {a}\r\nu2 {b}\r\nu3 {c}\r\n", GOOD3, []),
    ("K-51", "crlf-no-newline", "u1 {a}\r\nu2 {b}\r\nu3 {c}\r", GOOD3, []),
    ("K-51", "tabs", "u1\t{a}\nu2 \t {b}\n\tu3\t\t{c}\t\n", GOOD3, []),
    ("K-51", "blanks-around", "   u1 {a}  \n\v\fu2\v{b}\f\n \t u3\f \v{c} \r\n", GOOD3, []),
    ("K-51", "cr-between", "u1\r{a}\nu2 \r {b}\n", GOOD3[:2], []),
    ("K-53", "double", "u1 {a}\nu2 {b}\nu1 {c}\nu1 {a}\n",
     [("u1", "a"), ("u2", "b"), ("u1~2", "c"), ("u1~3", "a")], []),
    ("K-53", "double-taken", "u1~2 {a}\nu1 {b}\nu1 {c}\n",
     [("u1~2", "a"), ("u1", "b"), ("u1~3", "c")], []),
    ("K-53", "double-before", "u1 {a}\nu1 {b}\nu1~2 {c}\n", None, []),
    ("K-53", "double-same", "u1 {a}\nu1 {a}\n", [("u1", "a"), ("u1~2", "a")], []),
    ("K-53", "double-bad", "u1 {a}\nu1 data/none:7\nu2 {b}\n",
     [("u1", "a"), ("u1~2", BAD), ("u2", "b")], [2]),
    ("K-54", "unsorted", "u3 {c}\nu1 {a}\nu2 {b}\n", [("u3", "c"), ("u1", "a"), ("u2", "b")], []),
    ("K-55", "missing", "u1 {a}\nu2 data/none.ark:5\nu3 {c}\n",
     [("u1", "a"), ("u2", BAD), ("u3", "c")], [2]),
    ("K-55", "missing-whole", "u1 {a}\nu2 data/none\nu3 {c}\n",
     [("u1", "a"), ("u2", BAD), ("u3", "c")], [2]),
    ("K-55", "missing-folder", "u1 {a}\nu2 none/fm.ark:5\nu3 {c}\n",
     [("u1", "a"), ("u2", BAD), ("u3", "c")], [2]),
    ("K-55", "file-as-folder", "u1 {a}\nu2 data/fm.ark/x:5\nu3 {c}\n",
     [("u1", "a"), ("u2", BAD), ("u3", "c")], [2]),
    ("K-55", "folder", "u1 {a}\nu2 data\nu3 data/\nu4 data:3\nu5 .\n",
     [("u1", "a"), ("u2", BAD), ("u3", BAD), ("u4", BAD), ("u5", BAD)], [2, 3, 4, 5]),
    ("K-55", "first-missing", "u1 data/none.ark:5\nu2 {b}\nu3 {c}\n",
     [("u1", BAD), ("u2", "b"), ("u3", "c")], [1]),
    ("K-55", "last-missing", "u1 {a}\nu2 {b}\nu3 data/none.ark:5",
     [("u1", "a"), ("u2", "b"), ("u3", BAD)], [3]),
    ("K-55", "most-missing", "".join(f"v{i} data/none{i}:5\n" for i in range(40)) + "w {a}\n",
     [(f"v{i}", BAD) for i in range(40)] + [("w", "a")], [1]),
    ("K-55", "content", "u1 {a}\nu2 data/nothing\nu3 data/letters\nu4 data/cut\nu5 data/head\n"
     "u6 data/no-end.mat:3\nu7 data/text.mat\nu8 data/no-end.mat\n",
     [("u1", "a"), *((f"u{i}", BAD) for i in (2, 3, 4, 5, 6)), ("u7", "t"), ("u8", "t8")],
     [2, 3, 4, 5, 6]),
    ("K-56", "stdin", "u1 {a}\nu2 -\n", [("u1", "a"), ("u2", BAD)], [2]),
    ("K-56", "pipe-in-front", "u1 {a}\nu2 |{b}\nu3 | cat {b}\n",
     [("u1", "a"), ("u2", BAD), ("u3", BAD)], [2, 3]),
    ("K-56", "pipe-inside", "u1 {a}\nu2 data|{b}\nu3 cat {b} | head\n",
     [("u1", "a"), ("u2", BAD), ("u3", BAD)], [2, 3]),
    ("K-56", "specifier",
     "u1 {a}\nu2 ark:{b}\nu3 scp:data/x.scp\nu4 ark,t:{b}\nu5 scp,p:data/x.scp\n"
     "u6 ark:{a}\nu7 ark,s,cs:data/fm.ark\n",
     [("u1", "a")] + [(f"u{i}", BAD) for i in range(2, 8)], [2, 3, 4, 5, 6, 7]),
    ("K-56", "no-specifier",
     "u1 {arkx}\nu2 {arkx_top}\nu3 {options_top}\nu4 {scpx_top}\nu5 {not_ark}\n",
     [(f"u{i}", "b") for i in range(1, 6)], []),
    ("K-56", "colon-last", "u1 {colon}\nu2 {digits}\nu3 {whole}\n",
     [("u1", "b"), ("u2", "b"), ("u3", "b")], []),
    ("K-56", "offset-in-name", "u1 {a}\nu2 data/b.mat:12\n", [("u1", "a"), ("u2", BAD)], [2]),
    ("K-56", "offset-alone", "u1 {a}\nu2 :12\nu3 :\n",
     [("u1", "a"), ("u2", BAD), ("u3", BAD)], [2, 3]),
    ("K-56", "offset-odd", "u1 {a}\nu2 data/fm.ark:-5\nu3 {plus}\nu4 {hex}\nu5 data/fm.ark:5x\n"
     "u6 data/fm.ark: 5\nu7 data/fm.ark:5.0\nu8 data/fm.ark::5\nu9 {zeros}\n",
     [("u1", "a")] + [(f"u{i}", BAD) for i in range(2, 9)] + [("u9", "a")], [2, 3, 4, 5, 6, 7, 8]),
    ("K-57", "offset-wrong", "u1 {a}\nu2 {end}\nu3 {at_key}\nu4 {middle}\nu5 data/fm.ark:1000000\n"
     "u6 data/fm.ark:9223372036854775807\nu7 data/fm.ark:18446744073709551615\n"
     "u8 data/fm.ark:18446744073709551620\nu9 data/fm.ark:99999999999999999999999999\n",
     [("u1", "a")] + [(f"u{i}", BAD) for i in range(2, 10)], [2, 3, 4, 5, 6, 7, 8, 9]),
    ("K-57", "offset-text", "u1 {t}\nu2 {a}\nu3 data/text.mat:0\n",
     [("u1", "t"), ("u2", "a"), ("u3", "t")], []),
    ("K-60", "same", "u1 {a}\nu2 {a}\nu3 {b}\nu4 {a}\n",
     [("u1", "a"), ("u2", "a"), ("u3", "b"), ("u4", "a")], []),
    ("keys", "keys",
     "a/b {a}\n%41 {b}\n.hidden {c}\n.. {a}\n. {b}\n/ {c}\n\u043a\u043b\u044e\u0447 {a}\n"
     "u:1 {b}\nu[0] {c}\n* {a}\n-f {b}\na.b.c {c}\n~ {a}\nu~2 {b}\n'\" {c}\n\\ {a}\n# {b}\n",
     [("a/b", "a"), ("%41", "b"), (".hidden", "c"), ("..", "a"), (".", "b"), ("/", "c"),
      ("\u043a\u043b\u044e\u0447", "a"), ("u:1", "b"), ("u[0]", "c"), ("*", "a"), ("-f", "b"),
      ("a.b.c", "c"), ("~", "a"), ("u~2", "b"), ("'\"", "c"), ("\\", "a"), ("#", "b")], []),
    ("keys", "key-bytes", "u {a}\nb\udcff\udc80 {b}\nc\u00a0d {c}\nx\x01y {a}\nDEL\x7f {b}\n",
     [("u", "a"), ("b\udcff\udc80", "b"), ("c\u00a0d", "c"), ("x\x01y", "a"), ("DEL\x7f", "b")],
     []),
]

# Kaldi ends the table before other lines: an error, but kaldi=p omits the line.
ENDS = [
    ("K-50", "blank", "u1 {a}\n\nu2 {b}\n", GOOD3[:2], 2),
    ("K-50", "blanks", "u1 {a}\nu2 {b}\n \t \n\nu3 {c}\n", GOOD3, 3),
    ("K-50", "blank-crlf", "u1 {a}\r\n\r\nu2 {b}\r\n", GOOD3[:2], 2),
    ("K-50", "blank-no-value", "u1 {a}\n\nu2\n", [("u1", "a")], 2),
    ("K-50", "no-value", "u1 {a}\nu2\nu3 {c}\n", [GOOD3[0], GOOD3[2]], 2),
    ("K-50", "no-value-blanks", "u1 {a}\nu2 {b}\nu2b \t \nu3 {c}\n", GOOD3, 3),
    ("K-50", "no-value-last", "u1 {a}\nu2 {b}\nu3", GOOD3[:2], 3),
]

# No line can be used: no dataset.
NOTHING = [("K-50", "blank-first", "\nu1 {a}\n", ["t.scp", "1"]),
           ("K-50", "blanks-first", " \t\nu1 {a}\n", ["t.scp", "1"]),
           ("K-55", "all-missing", "u1 data/none.ark:5\nu2 data/none2.ark:7\n", ["none.ark"]),
           ("K-55", "all-bad", "u1 {at_key}\nu2 {middle}\nu3 {end}\n", ["t.scp"]),
           ("K-52", "binary", "\0Bu1 {a}\nu2 {b}\n", ["t.scp"])]


def write_table(places):
    """name -> (keys, items, lines that messages name)"""
    found = {}
    for number, name, lines, samples, told in TABLE:
        name = f"{number.lower()}-{name}"
        write(f"{name}/t.scp", lines.format(**places).encode(errors="surrogateescape"))
        if samples is not None:
            found[name] = ([key for key, _ in samples],
                           [BAD if what == BAD else OBJECTS[what] for _, what in samples], told)
    for number, name, lines, _, _ in ENDS:
        write(f"{number.lower()}-{name}/t.scp", lines.format(**places).encode())
    odd = [f"odd{i}" for i in range(places["odds"])]
    kd.script("odd-names/t.scp", [f"{name} {places[name]}" for name in odd])
    found["odd-names"] = (odd, [OBJECTS["b"]] * len(odd), [])
    for number, name, lines, _ in NOTHING:
        write(f"{number.lower()}-{name}/t.scp", lines.format(**places).encode())
    return found


def check_table(found, permissive, log):
    """permissive: lines with objects that cannot be read are omitted."""
    for name, (keys, items, told) in found.items():
        every = list(zip(keys, items))
        samples = [pair for pair in every if not permissive or pair[1] is not BAD]
        ds = Dataset(path(name, "t.scp"), [key for key, _ in samples],
                     {"data": [item for _, item in samples]})
        few = None if len(samples) < 20 else [0, 17, len(samples) - 1]
        kd.check(ds, ["raw", "npy", "npz", "ark", "tar"], few)
        check_messages(name, ds, told, log, permissive)
    for number, name, _, samples, line in ENDS:
        folder = path(f"{number.lower()}-{name}", "t.scp")
        if permissive:
            kd.check(Dataset(folder, [key for key, _ in samples], {"data": [OBJECTS[what] for _, what in samples]}),
                     ["raw", "npy"])
            expect_told(folder, f"{number.lower()}-{name}/t.scp", line, log)
        else:
            contains(text(folder, "ERROR.txt"), f"{number.lower()}-{name}/t.scp:{line}: ", "-o kaldi=p")
    for number, name, _, words in NOTHING[2 * permissive:]:
        kd.check_error(path(f"{number.lower()}-{name}", "t.scp"), *words)


def check_messages(name, ds, told, log, permissive):
    """Every message is in dataset.json or the log; those about repeated keys are in both."""
    own = text(ds.folder, "dataset.json")
    for line in told if not permissive or name.startswith("k-50") else []:
        expect_told(ds.folder, f"{name}/t.scp", line, log)
    if told and not permissive:
        contains(own, "t.scp")
    if any("~" in key for key in ds.keys) and name.startswith("k-53"):
        lines = [line for line in log_text(log).splitlines() if f"{name}/t.scp" in line]
        for where, messages in (("dataset.json", own), ("the log", "\n".join(lines))):
            equal(bool(re.search(r"\bu1\b|\brow (2|3)\b", messages)), True,
                  f"{name}: {where} says that u1 stands twice: {messages!r:.2000}")


def check_lines():
    places = data_files()
    found = write_table(places)
    with mounted(SOURCE, "log=debug"):
        check_table(found, False, "log")
        # The first keeps its name, whatever the later key is.
        before = path("k-53-double-before/t.scp")
        names = os.listdir(f"{before}/samples/npz")
        equal((len(names), len(set(names))), (3, 3), "double-before: three samples")
        kd.check_raw(f"{before}/samples/raw/u1.data.raw", OBJECTS["a"])
        kd.check_raw(f"{before}/samples/raw/u1~2.data.raw",
                     OBJECTS["c"] if "u1~3.npz" in names else OBJECTS["b"])
        check_batches_with_bad()
        check_absent()
    with mounted(SOURCE, "kaldi=p", "log=debug", log="log.p"):
        check_table(found, True, "log.p")


def check_batches_with_bad():
    """A batch with a bad sample fails; the other batches work."""
    ds = Dataset(path("k-55-missing/t.scp"), ["u1", "u2", "u3"],
                 {"data": [OBJECTS["a"], BAD, OBJECTS["c"]]})
    folder = f"{ds.folder}/batches/batch=1"
    for i in range(3):
        kd.check_batch(ds, folder, i, [i])
    kd.check_batch(ds, f"{ds.folder}/batches/batch=2", 0, [0, 1])
    kd.check_batch(ds, f"{ds.folder}/batches/batch=2", 1, [2])
    kd.check_batch(ds, f"{ds.folder}/batches/batch=all", 0, [0, 1, 2])
    found = subprocess.run(["ls", "-l", f"{ds.folder}/samples/npy"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=30)
    contains(found.stdout.decode(), "u1.data.npy", "u3.data.npy")


def check_absent():
    """Names that no sample has."""
    folder = path("k-51-plain/t.scp/samples")
    for name in ("u4", "u", "u11", "U1", "u1~2", "%75%31", "u1 ", ""):
        for enc, ext in (("npy", "data.npy"), ("npz", "npz"), ("raw", "data.raw"), ("ark", "ark")):
            expect_error(2, os.stat, f"{folder}/{enc}/{name}.{ext}")
    for name in ("u1.npy", "u1.feats.npy", "u1.data.npz", "u1.data", "u1"):
        expect_error(2, os.stat, f"{folder}/npy/{name}")


def check_long_keys():
    """Names have at most 255 bytes; the keys themselves stay whole."""
    shutil.rmtree(SOURCE)
    keys = ["k" * 150, "k" * 250 + "1", "k" * 250 + "2", "\u00e4" * 300, "%" * 100, "short"]
    kd.table("t", [(key, OBJECTS["a"].raw) for key in keys])
    with mounted():
        folder = path("t.scp")
        names = os.listdir(f"{folder}/samples/npy")
        equal(len(set(names)), len(keys), f"names of long keys: {names}")
        for name in names:
            kd.check_array_file(f"{folder}/samples/npy/{name}", OBJECTS["a"].value)
        batch = f"{folder}/batches/batch=all"
        equal(text(batch, "npy/000000.key.txt").splitlines(), keys, "the keys of a batch")
        found = [key for key, _, _ in kd.read_ark(content(batch, "ark/000000.ark"), "matrix")]
        equal(found, keys, "the keys of an archive")


def check_folders():
    """K-61: the mount's cwd, the scp's folder, the folders above; never outside SOURCE."""
    shutil.rmtree(SOURCE)
    places = ["cwd", "a/b/c", "a/b", "a", "."]
    items = {place: matrix(i + 1, 3) for i, place in enumerate(places)}
    for place, item in items.items():
        write(f"{place}/x/m.ark", b"k " + item.raw)
    kd.script("a/b/c/t.scp", ["u x/m.ark:2", "v ./x/m.ark:2", "w x/../x/m.ark:2",
                              f"abs {SOURCE}/a/x/m.ark:2"])
    os.makedirs(f"{PRIVATE}/x")
    shutil.copy(f"{SOURCE}/x/m.ark", f"{PRIVATE}/x/m.ark")  # outside: it does not count

    def check_found(item):
        ds = Dataset(path("a/b/c/t.scp"), ["u", "v", "w", "abs"],
                     {"data": [item, item, item, items["a"]]})
        kd.check(ds, ["npy", "raw"])

    os.chdir(f"{SOURCE}/cwd")
    with mounted():
        check_found(items["cwd"])
    run("mount", SOURCE, MOUNTPOINT)  # in the background it has left the folder
    check_found(items["cwd"])
    run("umount", MOUNTPOINT)
    os.chdir("/")
    for place in places[1:]:
        with mounted():
            check_found(items[place])
        if place != "a":  # abs needs that one
            os.unlink(f"{SOURCE}/{place}/x/m.ark")
        else:
            kd.script("a/b/c/t.scp", ["u x/m.ark:2", "v ./x/m.ark:2", "w x/../x/m.ark:2",
                                      f"abs {SOURCE}/x/m.ark:2"])
            os.unlink(f"{SOURCE}/a/x/m.ark")
            items["a"] = items["."]
    os.chdir(PRIVATE)  # there is an x/m.ark, but it is not in SOURCE
    write("good/g.scp", b"g h.mat\n")
    write("good/h.mat", OBJECTS["a"].raw)
    with mounted():
        kd.check_error(path("a/b/c/t.scp"), "x/m.ark")
        kd.check(Dataset(path("good/g.scp"), ["g"], {"data": [OBJECTS["a"]]}))


def check_alone():
    """A single file, and which archives are datasets of their own."""
    shutil.rmtree(SOURCE)
    lines = kd.table("one/fm", [("u1", OBJECTS["a"].raw), ("u2", OBJECTS["b"].raw)])
    kd.script("one/fm.scp", lines[1:])
    kd.table("two/unused", [("u1", OBJECTS["c"].raw)])
    kd.script("two/unused.scp", ["x ../one/fm.ark:3"])
    write("three/x", b"u1 " + OBJECTS["b"].raw)  # not the name decides
    both = Dataset(MOUNTPOINT, ["u1", "u2"], {"data": [OBJECTS["a"], OBJECTS["b"]]})
    one = Dataset(MOUNTPOINT, ["u2"], {"data": [OBJECTS["b"]]})
    with mounted():
        for folder, names in (("one", ["fm.scp"]), ("two", ["unused.ark", "unused.scp"]),
                              ("three", ["x"])):
            equal(sorted(os.listdir(path(folder))), names, f"datasets in {folder}/")
        one.folder = path("one/fm.scp")
        kd.check(one)
        kd.check(Dataset(path("two/unused.ark"), ["u1"], {"data": [OBJECTS["c"]]}))
        kd.check(Dataset(path("two/unused.scp"), ["x"], {"data": [OBJECTS["a"]]}))
        kd.check(Dataset(path("three/x"), ["u1"], {"data": [OBJECTS["b"]]}))
        equal(content(path("one/fm.scp/source/fm.scp")), content(SOURCE, "one/fm.scp"), "source/")
    for file, ds in (("one/fm.scp", one), ("one/fm.ark", both)):
        with mounted(f"{SOURCE}/{file}"):
            ds.folder = path(os.path.basename(file))
            kd.check(ds)
    message = run("info", SOURCE)
    contains(message, "one/fm.scp", "two/unused.ark", "kaldi", "data", "samples")
    found = json.loads(run("info", "--json", SOURCE))
    equal({d["dataset"]: d["samples"] for d in found["datasets"]},
          {"one/fm.scp": 1, "two/unused.ark": 1, "two/unused.scp": 1, "three/x": 1}, "info --json")
    run("info", "--check", SOURCE)
    kd.script("two/unused.scp", ["x ../one/fm.ark:3", "y ../one/none.ark:3"])
    contains(run("info", "--check", SOURCE, code=2), "unused.scp", "none.ark")
    kd.script("two/unused.scp", ["x ../one/fm.ark:3", "", "y ../one/fm.ark:3"])
    contains(run("info", "--check", SOURCE, code=2), "two/unused.scp:2")


def check_shared():
    """Real files: scp files with paths relative to the folder above, and repeated keys."""
    if not os.path.isdir(kd.SHARED_KALDI):
        print("without SHARED_DATA")
        return
    shutil.rmtree(SOURCE)
    shutil.copytree(kd.SHARED_KALDI, SOURCE)
    subprocess.run(["chmod", "-R", "u+w", SOURCE], check=True)
    os.makedirs(f"{SOURCE}/ascii/tests/data")
    for name in ("feats_ascii.ark", "feats_ascii.scp"):
        shutil.copy(f"{SOURCE}/vesis84/{name}", f"{SOURCE}/ascii/tests/data/{name}")
    with mounted():
        for name, kind in (("fm", "matrix"), ("dm", "matrix"), ("fv", "vector"), ("dv", "vector"),
                           ("cm_with_empty", "matrix"),
                           *((f"cm_method{i}", "matrix") for i in range(1, 8))):
            found = {}
            for line in content(SOURCE, f"kaldi-written/{name}.scp").decode().splitlines():
                key, place = line.split()
                file, at = place.split(":")
                data = content(SOURCE, file)
                item, _ = kd.read_object(data, int(at), kind)
                # K-8: an empty CM has 4 bytes more than are read of it.
                found[key] = item if item.value.size else item._replace(raw=None)
            ds = Dataset(path(f"kaldi-written/{name}.scp"), found, {"data": list(found.values())})
            kd.check(ds, ["npy", "npz", "raw"])
        check_vectors()
        check_ascii()


def check_vectors():
    data = content(SOURCE, "funcwj/asset/6.vec.ark")
    lines = content(SOURCE, "funcwj/asset/6.vec.scp").decode().splitlines()
    pairs = [line.split() for line in lines]
    items = [kd.read_object(data, int(place.split(":")[1]), "vector")[0] for _, place in pairs]
    kd.check(Dataset(path("funcwj/asset/6.vec.scp"), [key for key, _ in pairs], {"data": items}))


def check_ascii():
    """Kaldi's own text archive, with ranges, under a key that occurs three times."""
    data = content(SOURCE, "vesis84/feats_ascii.ark")
    whole = [kd.read_object(data, at, "matrix")[0].value for at in (39, 35877)]
    equal(whole[1].shape[1], 13, "columns: 7:13 is one too many")
    want = {"0003427_0003714": whole[0], "0003714_0003915": whole[1],
            "0003714_0003915_slice1": whole[1], "0003714_0003915_slice2": whole[1][:6],
            "0003714_0003915_slice2~2": None, "0003714_0003915_slice2~3": None}
    ds = Dataset(path("ascii/tests/data/feats_ascii.scp"),
                 [f"AMI_ES2011a_H00_FEE041_{key}" for key in want],
                 {"data": [BAD if a is None else Item("matrix", np.ascontiguousarray(a))
                           for a in want.values()]})
    kd.check_names(ds)
    for i in range(len(ds.keys)):
        kd.check_sample(ds, i, ["npy", "npz", "raw", "ark"])
    contains(text(ds.folder, "dataset.json"), "row 5 has the key of row 4")


check_lines()
check_long_keys()
check_folders()
check_alone()
check_shared()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
