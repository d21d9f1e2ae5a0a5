#!/usr/bin/python3
"""-o kaldi= and kaldi_type=: what the flags of rspecifiers mean here, how they are written, and
what is no option."""

import gzip
import os
import re
import shutil

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, Dataset, Item
from lib import (CACHE, MOUNTPOINT, SOURCE, contains, content, equal, log_text, mounted, path, run,
                 status, text, write)

rng = np.random.default_rng(443)


def fresh():
    for folder in (SOURCE, CACHE):
        shutil.rmtree(folder)
        os.mkdir(folder, 0o700)


def matrices(keys):
    arrays = [rng.normal(size=(2, 3)).astype(np.float32) for _ in keys]
    return [Item("matrix", a, kd.fm(a)) for a in arrays]


# ---- how they are written ----

GOOD = ["kaldi=p", "kaldi=o", "kaldi=s", "kaldi=cs", "kaldi=s,cs", "kaldi=o,p", "kaldi=o,p,s,cs",
        "kaldi=o+p+s+cs",
        "kaldi=p+s,cs", "kaldi=p,log=debug", "log=debug,kaldi=o,p,s", "kaldi=s,kaldi=p",
        "ro,kaldi=p,s,noatime",
        "kaldi=np", "kaldi=no,ns,ncs", "kaldi=p,plan=batch=2+seed=1", "kaldi=s,cs,allow_outside"]
WRONG = ["kaldi=", "kaldi", "kaldi=x", "kaldi=P", "kaldi=o;p", "kaldi=ark", "kaldi=p,x",
         "kaldi=p,,q", "kaldi=o p",
         "kaldi=o+x", "kaldi=true", "p", "s", "cs", "o,p", "log=debug,p", "kaldi=p,log=debug,s",
         "kaldis=p",
         "kaldi_types=int", "kaldi_type", "kaldi_type=", "kaldi_type=matrices", "kaldi_type=MATRIX",
         "kaldi_type=int,int", "kaldi_type=0", "kaldi_type=a.ark:", "kaldi_type=:int", "kaldi_type=a.ark:ints",
         "kaldi_type=int;int", "kaldi_type=a.ark:int;"]
TYPES = ["matrix", "vector", "packed", "int", "float", "double", "bool", "int-vector",
         "int-vectors", "int-pairs",
         "float-pairs", "posterior", "gauss-posterior", "token", "tokens", "wave"]


def check_writing():
    fresh()
    keys = ["a", "b", "c"]
    items = matrices(keys)
    lines = kd.table("t", list(zip(keys, [i.raw for i in items])))
    kd.script("t.scp", [lines[0], "b none:7", lines[2]])
    for option in GOOD:
        with mounted(SOURCE, option, log="log.good"):
            flags = set(re.split("[=,+]", option))
            permissive = "p" in flags
            every = list(zip(keys, [items[0], BAD, items[2]]))
            left = [pair for pair in every if not permissive or pair[1] is not BAD]
            ds = Dataset(path("t.scp"), [k for k, _ in left], {"data": [i for _, i in left]})
            kd.check_names(ds)
            kd.check_sample(ds, len(left) - 1, ["raw", "npy"])
    with mounted(SOURCE, "kaldi=o", "kaldi=p", log="log.good"):  # two options, as ever
        equal(len(os.listdir(path("t.scp/samples/npz"))), 2, "with p, given apart")
    for option in WRONG:
        for command in (["mount", "-o", option, SOURCE, MOUNTPOINT],
                        ["info", "-o", option, SOURCE]):
            message = run(*command, code=1)
            equal(message.count("\n"), 1, f"{option}: one message: {message!r}")
            equal("kaldi" in message or "unknown option" in message, True, f"{option}: {message!r}")
    contains(run("mount", "-o", "kaldi_type=matrices", SOURCE, MOUNTPOINT, code=1), *TYPES)
    contains(run("mount", "--help", "all"), "kaldi=", "kaldi_type=")


# ---- p ----

def check_permissive():
    """Archives that break off, lines that cannot be read: what remains of them, with p and
    without."""
    fresh()
    keys = [f"u{i}" for i in range(6)]
    items = matrices(keys)
    data, at = kd.archive(list(zip(keys, [i.raw for i in items])))
    write("cut.ark", data[:at[4] + 20])
    write("odd.ark", data[:at[3]] + b"oops " + data[at[3]:])  # no object of u3
    lines = kd.table("t", list(zip(keys, [i.raw for i in items])))
    kd.script("lines.scp", [lines[0], "u1 t.ark:1", lines[2], f"{lines[3]}[0:9]", lines[4], ""])
    folder = kd.Folder(rng, "dir", 6, 2).keep("utt2spk", "feats", "text").write()
    feats = folder.lines_of("feats")
    kd.script("dir/feats.scp", [*feats[:2], f"{folder.utterances[2]} none.ark:3", *feats[3:]])
    for option in ("", "kaldi=p", "kaldi=np"):
        p = option == "kaldi=p"
        with mounted(SOURCE, *([option] if option else []), log=f"log{option[-2:]}"):
            # The object that ends an archive is shown as one that cannot be read.
            for name, good, last in (("cut.ark", 4, "u4"), ("odd.ark", 3, "u3")):
                kd.check(Dataset(path(name), keys[:good] + ([] if p else [last]),
                                 {"data": items[:good] + ([] if p else [BAD])}))
            every = [(keys[0], items[0]), (keys[1], BAD), (keys[2], items[2]), (keys[3], BAD),
                     (keys[4], items[4])]
            left = [pair for pair in every if not p or pair[1] is not BAD]
            kd.check(Dataset(path("lines.scp"), [k for k, _ in left],
                             {"data": [i for _, i in left]}))
            if p:
                del folder.tables["feats"][folder.utterances[2]]
            ds, missing = folder.dataset(path("dir/all"))
            if not p:
                ds.fields["feats"][2] = BAD
            kd.check(ds)
            equal(sorted(kd.page(ds)["missing_keys"]), ["feats"] if p else [], "missing tables with p")
        feats = folder.tables["feats"]
        folder.tables["feats"] = {u: feats.get(u, items[0]) for u in folder.utterances}
        contains(log_text(f"log{option[-2:]}"), "cut.ark", "odd.ark")


# ---- s ----

def check_sorted():
    """Keys that are not in the order of LC_ALL=C are reported with s, and only then."""
    fresh()
    tables = {"right": ["A", "B", "a", "a0", "aa", "b", "\u00e4"], "not": ["b", "a", "c"],
              "case": ["a", "B"], "prefix": ["aa", "a"], "bytes": ["\u00e4", "z"], "late": [
                  f"u{i:04d}" for i in range(500)] + ["u0100x"], "one": ["x"]}
    good = ("right", "one")
    datasets = {}
    for name, keys in tables.items():
        items = matrices(keys)
        for kind in ("ark", "scp"):
            kd.table(f"{kind}/{name}", list(zip(keys, [i.raw for i in items])))
            datasets[f"{kind}/{name}.{kind}"] = Dataset(path(f"{kind}/{name}.{kind}"), keys,
                                                        {"data": items})
        os.unlink(f"{SOURCE}/ark/{name}.scp")
    for option in ([], ["kaldi=s"], ["kaldi=s,cs"]):
        log = f"log.sorted{len(option)}{(option or [''])[0][-1:]}"
        with mounted(SOURCE, *option, log=log):
            for name, ds in datasets.items():
                kd.check(ds, ["npy"], [0, len(ds.keys) - 1])
                own = text(ds.folder, "dataset.json")
                said = bool(re.search(r"sort|order(?!_version)", re.sub(r'"\w+":', "", own)))
                broken = os.path.basename(name).split(".")[0] not in good
                equal(said, broken and bool(option),
                      f"{option}: {name}: dataset.json tells of the order: {own!r:.1500}")
                lines = [line for line in log_text(log).splitlines() if name in line]
                equal(any(re.search("sort|order", line) for line in lines), broken and bool(option),
                      f"{option}: {name}: the log tells of the order: {lines}")


# ---- o and cs ----

BUSY = {"requests", "plans", "push", "bytes_served", "plans_opened", "read_errors", "last_read_error",
        "datasets_ready", "memory",
        "index_bytes_done"}


def calm(now):
    """The parts of status.json that reads alone do not change."""
    return {name: value for name, value in now.items() if name not in BUSY}


def read(*files):
    """Read files again: not from the kernel's pages."""
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        while os.read(fd, 1 << 20):
            pass
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def changed(before):
    return {name: value for name, value in calm(status()).items() if before.get(name) != value}


def make_table(n=12):
    fresh()
    keys = [f"u{i:02d}" for i in range(n)]
    kd.table("t", list(zip(keys, [i.raw for i in matrices(keys)])))
    return path("t.scp/batches")


def check_once():
    """An epoch that reads each utterance once is fine; a second read is reported."""
    batches = make_table()
    epoch = [f"{batches}/batch=4,seed=1/epoch={{}}/npz/{b:06d}.npz" for b in range(3)]
    for option in ([], ["kaldi=o"], ["kaldi=s"]):
        with mounted(SOURCE, "readahead=0", *option, log="log.once"):  # a file that was pushed is not read from us
            before = calm(status())
            read(*(f.format(0) for f in epoch))
            read(*(f.format(1) for f in epoch))  # another epoch
            equal(changed(before), {}, f"{option}: each utterance once in an epoch")
            read(epoch[1].format(1))
            found = changed(before)
            equal(bool(found), option == ["kaldi=o"],
                  f"{option}: status.json tells of a second read: {found}")
            if option == ["kaldi=o"]:
                middle = calm(status())
                equal(found["read_twice"], 4, "utterances that were read twice")
                contains(found["last_broken_promise"], "t.scp", "kaldi=o")
                read(epoch[1].format(0))
                equal(changed(middle).get("read_twice"), 8, f"status.json: {calm(status())}")
                read(epoch[1].format(0).replace("npz", "tar"))  # the first look at it in this form
                equal(status()["read_twice"], 8, "read twice, as another kind of file")


def check_fields_once():
    """The fields of a batch are files of their own: reading them all is no second read."""
    fresh()
    folder = kd.Folder(rng, "d", 8, 2).keep("utt2spk", "feats", "vad", "text", "utt2dur").write()
    with mounted(SOURCE, "readahead=0,kaldi=o", log="log.fields"):
        ds, _ = folder.dataset(path("d/all"))
        at = f"{ds.folder}/batches/batch=4,seed=1/epoch=0/npy"
        names = sorted(os.listdir(at))
        before = calm(status())
        read(*(f"{at}/{name}" for name in names if re.search(r"\.(feats|vad|utt2dur)\.npy$", name)))
        equal(changed(before), {}, "fields of a batch, each read once")


def check_pieces_once():
    """A large file that is read in pieces, in any order, counts as one read."""
    fresh()
    big = [Item("matrix", a, kd.fm(a)) for a in
           [rng.normal(size=(60000, 5)).astype(np.float32) for _ in range(4)]]
    kd.table("t", [(f"u{i}", item.raw) for i, item in enumerate(big)])
    with mounted(SOURCE, "readahead=0,kaldi=o", log="log.pieces"):
        before = calm(status())
        batch = path("t.scp/batches/batch=2/npz/000001.npz")
        loaded = np.load(batch)["data"]
        equal(np.array_equal(loaded, np.concatenate([big[2].value, big[3].value])), True,
              "the batch")
        sample = path("t.scp/samples/npy/u1.data.npy")
        mapped = np.load(sample, mmap_mode="r")
        for at in (59999, 0, 30000, 45000, 100):
            equal(mapped[at].tolist(), big[1].value[at].tolist(), f"row {at} of a mapped sample")
        equal(changed(before), {}, "files that are read once")


def check_called_sorted():
    """Batches in the stored order, read front to back, are fine; steps back are reported."""
    batches = make_table()
    plain = [f"{batches}/batch=2/npz/{b:06d}.npz" for b in range(6)]
    for option in ([], ["kaldi=cs"], ["kaldi=s,cs"], ["kaldi=s"]):
        with mounted(SOURCE, "readahead=0", *option, log="log.cs"):
            before = calm(status())
            read(*plain[:3])
            read(*plain[3:])
            equal(changed(before), {}, f"{option}: reads in order")
            read(plain[1])
            found = changed(before)
            called_sorted = bool(option) and "cs" in option[0]
            equal(found.get("read_backwards", 0) > 0, called_sorted,
                  f"{option}: status.json of a step back: {found}")
            equal(bool(found), called_sorted, f"{option}: status.json of a step back: {found}")


# ---- kaldi_type ----

def check_types():
    """Objects that do not state their type."""
    fresh()
    five = b"\0B" + kd.ints([])[2:]  # 04 00 00 00 00: an integer, a number, an empty list, ...
    write("zero.ark", b"u1 " + five + b"u2 " + five)
    kd.script("zero.scp", ["u1 zero.ark:3", "u2 zero.ark:13"])
    for kind, want in (("int", np.array(0, np.int32)), ("float", np.array(0, np.float32)),
                       ("int-vector", np.array([], np.int32))):
        for file in ("zero.ark", "zero.scp"):
            with mounted(f"{SOURCE}/{file}", f"kaldi_type={kind}", log="log.type"):
                for key in ("u1", "u2"):
                    kd.check_array_file(path(f"{file}/samples/npy/{key}.data.npy"), want)
    for file in ("zero.ark", "zero.scp"):
        contains(run("mount", f"{SOURCE}/{file}", MOUNTPOINT, code=2), file, "kaldi_type=")
    write("text.ark", b"u1  [ 1 2 3 ]\nu2  [ 4 5 6 ]\n")
    for kind, shape in (("matrix", (1, 3)), ("vector", (3,))):
        with mounted(f"{SOURCE}/text.ark", f"kaldi_type={kind}", log="log.type"):
            kd.check_array_file(path("text.ark/samples/npy/u2.data.npy"),
                                np.array([4, 5, 6], np.float32).reshape(shape))
            equal(content(path("text.ark/samples/raw/u1.data.raw")), b" [ 1 2 3 ]\n", "raw")
    write("line.ark", b"u1 1 2 3\nu2 4 5\n")
    with mounted(f"{SOURCE}/line.ark", "kaldi_type=tokens", log="log.type"):
        equal(text(path("line.ark/samples/txt/u2.txt")), "4 5\n", "tokens")
    with mounted(f"{SOURCE}/line.ark", "kaldi_type=int-vector", log="log.type"):
        kd.check_array_file(path("line.ark/samples/npy/u2.data.npy"), np.array([4, 5], np.int32))


def check_types_by_table():
    """A type of one table leaves the others alone; one of all is said where a table looks like another."""
    fresh()
    numbers = b"".join(b"u%d \0B\4" % i + np.float32(x).tobytes() for i, x in enumerate((0.5, -3, 1e9)))
    small = b"".join(b"u%d \0B\4" % i + np.int32(x).tobytes() for i, x in enumerate((1, 2, 300)))
    write("float.ark", numbers)
    write("ali.1", small)
    write("ali.2.ark.gz", gzip.compress(small))
    kd.script("ali.scp", [f"u{i} ali.1:{3 + 10 * i}" for i in range(3)])
    floats, ints = np.array([0.5, -3, 1e9], np.float32), np.array([1, 2, 300], np.int32)

    def check(want, *options):
        printed = run("info", *options, SOURCE)
        with mounted(SOURCE, *options[1:], log="log.table"):
            for name, array in want.items():
                kd.check_array_file(path(f"{name}/batches/batch=all/npy/000000.data.npy"), array)
        return printed

    all_ints = {"float.ark": floats, "ali.scp": ints, "ali.2.ark": ints}
    contains(check({"ali.scp": ints, "ali.2.ark": ints}), "can be read as int or float")
    for value in ("float.ark:float", "ali.scp:int;float.ark:float", "ali.2.ark.gz:int;float.ark:float"):
        equal("look like" in check(all_ints, "-o", f"kaldi_type={value}"), False, value)
    printed = check({"float.ark": floats, "ali.scp": ints.view(np.float32), "ali.2.ark": ints}, "-o",
                    "kaldi_type=float;ali.2.ark:int")
    contains(printed, "ali.scp: is read as float, as -o kaldi_type= says for all tables; its objects look like int. For single tables: ")
    equal(printed.count("look like"), 1, printed)


def check_types_shared():
    """Kaldi's own archives of every type, through their scp files."""
    shared = f"{kd.SHARED_KALDI}/kaldi-written"
    if not os.path.isdir(shared):
        print("without SHARED_DATA")
        return
    fresh()
    items = {"ali": "int-vector", "ivv": "int-vectors", "ipv": "int-pairs", "fpv": "float-pairs",
             "int": "int",
             "float": "float", "double": "double", "bool": "bool", "post": "posterior",
             "gpost": "gauss-posterior",
             "token": "token", "tokenvec": "tokens", "fm": "matrix", "dv": "vector"}
    for name, kind in items.items():
        lines = [line.split() for line in content(shared, f"{name}.scp").decode().splitlines()]
        source = SOURCE + "/alone"
        shutil.rmtree(source, ignore_errors=True)
        os.makedirs(f"{source}/kaldi-written")
        for ext in ("ark", "scp"):
            shutil.copy(f"{shared}/{name}.{ext}", f"{source}/kaldi-written/{name}.{ext}")
        with mounted(source, f"kaldi_type={kind}", log="log.shared"):
            folder = path(f"kaldi-written/{name}.scp")
            names = sorted(os.listdir(f"{folder}/samples/npz"))
            equal(names, sorted(f"{kd.name_of(key)}.npz" for key, _ in lines), f"{name}: samples")
            for key, _ in lines:
                members = kd.read_npz(f"{folder}/samples/npz/{kd.name_of(key)}.npz")
                equal("data" in members, True, f"{name}: members of {key}: {sorted(members)}")
        if name == "ali":
            with mounted(source, "kaldi_type=int-vector", log="log.shared"):
                data = content(shared, "ali.ark")
                keys, want = kd.items_of(data, "ints")
                kd.check(Dataset(folder, keys, {"data": want}))


check_writing()
check_permissive()
check_sorted()
check_once()
check_fields_once()
check_pieces_once()
check_called_sorted()
check_types()
check_types_by_table()
check_types_shared()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
