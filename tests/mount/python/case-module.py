#!/usr/bin/python3
"""The Python module without further libraries: mounting, datasets, samples, batches."""

import ctypes
import io
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tarfile
import warnings

import numpy as np

import epochfs
import kaldi_dirs
from lib import DEADLINE, EPOCHFS, MOUNTPOINT, PRIVATE, SOURCE, contains, equal, mount_type, path, small, text, write

TMP = os.path.join(PRIVATE, "tmp")
PLAN = "batch=8,seed=7"
KEYS = ["photos/000000", "photos/a%b", "sp ace/ü"]
DIGITS = ["000002", "000000", "000001"]  # keys that look like numbers, and are others


def expect(kind, *words, call):
    """call() must raise exactly that kind, and the message must have the words. Returns the error."""
    try:
        call()
    except Exception as e:
        equal(type(e), kind, f"kind of {e!r}")
        contains(str(e), *words)
        return e
    raise AssertionError(f"expected {kind.__name__}, got no error")


def same(found, file, what):
    with np.load(file) as want:
        equal(list(found), want.files, what)
        for name in want.files:
            equal((found[name].dtype, found[name].shape), (want[name].dtype, want[name].shape), f"{what} {name}")
            equal(found[name].tobytes(), want[name].tobytes(), f"{what} {name}")


def look_at(mount, images, labels):
    train = mount["train"]
    equal((list(mount), len(mount), "train" in mount, "t10k" in mount), (["train"], 1, True, False), "datasets")
    equal((len(train), train.name, train.info["format"]), (30, "train", "idx"), "dataset")
    equal(train.fields["image"], epochfs.Field(np.dtype("u1"), (5, 6), False), "field image")
    equal(train.fields["label1h"], epochfs.Field(np.dtype("f4"), (10,), True), "field label1h")
    equal((train.notes, train.missing), ([], []), "notes and missing parts")
    for number in (0, 7, 29, -1, np.int64(3)):
        equal(train[number]["image"].tolist(), images[number].tolist(), f"sample {number}")
        equal(int(train[number]["label"]), labels[number], f"sample {number}")
    equal(train["000007"]["image"].tolist(), images[7].tolist(), "sample of a key")
    equal([int(s["label"]) for s in train], labels.tolist(), "all samples, as of a list")
    for number in (30, -31):
        expect(IndexError, str(number), call=lambda number=number: train[number])
    for number in (1.5, slice(0, 3), None):
        expect(TypeError, call=lambda number=number: train[number])
    for key in ("000030", "", "..", "../npz/000003", "a\0b"):
        expect(KeyError, call=lambda key=key: train[key])
    equal(("000007" in train, b"000030" in train), (True, False), "keys that are there")
    expect(TypeError, "expected a key", call=lambda: 7 in train)
    for name in ("nothing", "train/", "./train", "../mountpoint/train", "", "a\0b", SOURCE, 7, None):
        expect(KeyError, "no such dataset, expected one of train", call=lambda name=name: mount[name])
        equal(name in mount, False, f"is {name!r} there")
    equal((mount == mount, mount != epochfs.open(mount.path), len({mount})), (True, True, 1), "a mount is itself")


def read_batches(mount, images):
    train = mount["train"]
    for epoch in range(2):
        batches = train.batches(PLAN, epoch=epoch)
        folder = path("train/batches", PLAN, f"epoch={epoch}")
        equal((len(batches), batches.count), (4, 4), "batches")
        for k, batch in enumerate(batches):
            same(batch, f"{folder}/npz/{k:06d}.npz", f"batch {k}")
            equal(batch["image"].tolist(), images[batch["index"]].tolist(), "its pictures")
            equal(all(a.flags.owndata or a.base is not None for a in batch.values()), True, "memory")
        later = list(train.batches(PLAN, epoch=epoch, start=2, fields=["label"]))
        equal([list(b) for b in later], [["label"]] * 2, "two more batches")
        equal([list(b) for b in train.batches(PLAN, fields=(name for name in ["label"]))], [["label"]] * 4, "names that come once")
        same(batches.read(3), f"{folder}/npz/000003.npz", "the last")
        equal(len(list(train.batches(PLAN, epoch=epoch, start=4))), 0, "batches after the last")
        for k, batch in enumerate(train.batches(PLAN, epoch=epoch, encoding="npy", fields=["label1h", "image01"])):
            equal(list(batch), ["label1h", "image01"], "fields of npy")
            for name, array in batch.items():
                equal(array.tobytes(), np.load(f"{folder}/npy/{k:06d}.{name}.npy").tobytes(), name)
    equal(sorted(train.batches("batch=all", encoding="npy").read(0)), ["image", "image01", "index", "label", "label1h"],
          "all of npy")
    equal(len(train.batches("tail=drop,seed=7,batch=8")), 3, "words in another order")
    one, two = train.batches("batch=8").read(0)["image"], train.batches("batch=8").read(0)["image"]
    one[:] = 0
    equal(two.tolist(), images[:8].tolist(), "a batch has its own memory")


def refuse(mount):
    train = mount["train"]
    for plan, reason in [("batch=8,foo=1", "'foo' is not a parameter of a plan"), ("batch=0", "batch"),
                         ("batch=8,split=5@1:1", "split: expected K@W0:W1"), ("batch=8,seed=x", "seed"),
                         ("batch=8,limit=31", "limit: expected at most 30")]:
        expect(epochfs.PlanError, plan, "does not open", reason, call=lambda plan=plan: train.batches(plan))
    for plan in ("batch=31,tail=drop", "batch=8,take=40:50"):
        expect(epochfs.PlanError, plan, "has no batches", call=lambda plan=plan: train.batches(plan))
    expect(epochfs.PlanError, "'../x'", call=lambda: train.batches("../x"))
    for epoch in (-1, 2 ** 64):
        expect(ValueError, f"epoch: expected a number from 0 to {2 ** 64 - 1}, got {epoch}",
               call=lambda epoch=epoch: train.batches(PLAN, epoch=epoch))
    for words in ({"epoch": 1.0}, {"epoch": "3"}, {"start": 1.0}, {"start": None}):
        expect(TypeError, "expected a whole number, got", call=lambda words=words: train.batches(PLAN, **words))
    for number in (2 ** 63, 2 ** 64 - 1, np.uint64(2 ** 64 - 1), True):
        equal(train.batches(PLAN, epoch=number).epoch, int(number), "epoch")
        equal(len(train.batches(PLAN, epoch=number).read(np.int64(3))["index"]), 6, "samples of a batch of that epoch")
    expect(TypeError, "plan: expected text as 'batch=128,seed=7', got 8", call=lambda: train.batches(8))
    expect(ValueError, "from 0 to 4, got 5", call=lambda: train.batches(PLAN, start=5))
    expect(ValueError, "got -1", call=lambda: train.batches(PLAN, start=-1))
    expect(IndexError, "batch 4 of 4", call=lambda: train.batches(PLAN).read(4))
    expect(TypeError, call=lambda: train.batches(PLAN).read(1.0))
    expect(KeyError, "encoding='npy' has", call=lambda: train.batches(PLAN, fields=["image01"]))
    expect(KeyError, "sound: expected one of image, label, index, key", call=lambda: train.batches(PLAN, fields=["sound"]).read(0))
    expect(KeyError, "sound: expected one of", call=lambda: train.batches(PLAN, fields=["sound"], encoding="npy"))
    for fields in ("image", b"image", [b"image"], [3]):
        expect(TypeError, f"fields: expected a list of names, got {fields!r}",
               call=lambda fields=fields: train.batches(PLAN, fields=fields))
    expect(ValueError, "'png'", call=lambda: train.batches(PLAN, encoding="png"))
    expect(epochfs.Error, "the dataset has no batches in csc", call=lambda: train.batches(PLAN, encoding="csc"))


def temporary(images, labels):
    """A mountpoint of its own, gone at the end, however the block ends."""
    with epochfs.mount(SOURCE) as mount:
        equal(os.path.dirname(mount.path), TMP, "where the temporary mountpoint is")
        equal(mount_type(mount.path), "fuse.epochfs", "what is mounted")
        look_at(mount, images, labels)
        again = pickle.loads(pickle.dumps(mount["train"]))
        equal(again.mount.path, mount.path, "the mount of a dataset that was pickled")
        equal(again[3]["image"].tolist(), images[3].tolist(), "a dataset that was pickled")
        again.mount.close()
        pid = os.fork()
        if pid == 0:
            warnings.simplefilter("error")
            sys.unraisablehook = lambda wrong: os._exit(3)  # also that a warning at the end could not be raised
            mount.close()
            sys.exit(0)  # a child that ends as programs do, and does not unmount
        equal(os.waitpid(pid, 0)[1], 0, "status of a child")
        equal(mount_type(mount.path), "fuse.epochfs", "after the end of a child")
    equal(os.listdir(TMP), [], "left behind")
    expect(epochfs.DeadMountError, mount.path, "no epochfs is mounted", call=lambda: mount["train"])
    expect(ZeroDivisionError, call=lambda: fail_in_block())
    equal(os.listdir(TMP), [], "left behind after an exception")
    mount = epochfs.mount(SOURCE)
    mount.close()
    mount.close()
    equal(os.listdir(TMP), [], "left behind by close()")
    program = f"import epochfs\nmount = epochfs.mount({SOURCE!r})\nprint(len(mount['train']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    equal((done.stdout, os.listdir(TMP)), ("30\n", []), "a program that unmounts at its end")


def interrupted():
    """Ctrl-C while epochfs mounts: nothing is left mounted. The command is one that ends only after that."""
    slow = os.path.join(PRIVATE, "slow")
    os.mkfifo(os.path.join(PRIVATE, "never"))
    with open(slow, "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\n"{EPOCHFS}" "$@"\n[ "$1" != mount ] || {{ kill -INT $PPID; read -r _ < {PRIVATE}/never; }}\n')
    os.chmod(slow, 0o755)
    mount = epochfs.mount(SOURCE, MOUNTPOINT)  # which is not theirs
    for where in (None, os.path.join(PRIVATE, "interrupted/here"), MOUNTPOINT):
        program = f"import epochfs\nepochfs.mount({SOURCE!r}, {where!r})"
        done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False,
                              env={**os.environ, "EPOCHFS": slow})
        equal(done.returncode, -signal.SIGINT, done.stderr)
        equal((os.listdir(TMP), os.path.exists(f"{PRIVATE}/interrupted")), ([], False), "left behind")
    equal(len(mount["train"]), 30, "samples of a mount that was there before")
    mount.close()


def mounted_again():
    """A daemon has died, and the same name takes the next mount: the object that goes then leaves that mount alone."""
    mount = epochfs.mount(SOURCE, MOUNTPOINT)
    os.kill(mount.status()["pid"], signal.SIGKILL)
    try:
        while True:  # the kernel learns of it in its own time
            mount.status()
    except epochfs.DeadMountError:
        pass
    mount = epochfs.mount(SOURCE, MOUNTPOINT)
    equal(len(mount["train"]), 30, "samples of the second mount")
    mount.close()
    equal(mount_type(MOUNTPOINT), None, "mounted after close()")


def killed():
    """A temporary mount goes with its program, whatever ends that; if it has forked, with the last of the children."""
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: the daemon and what guards the mount become children of this process
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP):
        for forks in (False, True):
            given, end = os.pipe()  # the child holds its mount until its stdin ends
            program = f"""
import epochfs, os, sys
mount = epochfs.mount({SOURCE!r})
forked = {forks} and os.fork()
if {forks} and not forked:
    sys.stdin.read()
    print(len(epochfs.open(mount.path)["train"]), flush=True)
    os._exit(0)
os.kill(os.getpid(), {int(number)})
"""
            parent = subprocess.Popen([sys.executable, "-c", program], stdin=given, stdout=subprocess.PIPE)
            os.close(given)
            equal(parent.wait(), -number, "exit code")
            if forks:
                equal(len(os.listdir(TMP)), 1, "folders while a child lives")
            os.close(end)
            equal(parent.stdout.read(), b"30\n" if forks else b"", "what the child reads after the end of its parent")
            parent.stdout.close()
            signal.alarm(DEADLINE)
            try:
                while True:
                    os.waitpid(-1, 0)
            except ChildProcessError:
                signal.alarm(0)
            equal(os.listdir(TMP), [], f"left behind after signal {number}")


def fail_in_block():
    with epochfs.mount(SOURCE):
        raise ZeroDivisionError


def given():
    """A folder that is given is kept, one that is made goes; options."""
    with epochfs.mount(SOURCE, MOUNTPOINT, plan=[PLAN, "batch=4"], epochs=2, anonymous=True, cache_size="1G",
                       rate=None, transpose=False) as mount:
        equal(mount.path, MOUNTPOINT, "mountpoint")
        equal(sorted(os.listdir(path("train/batches"))), ["batch=4", PLAN], "plans of options")
        equal(sorted(os.listdir(path("train/batches", PLAN))), ["epoch=0", "epoch=1"], "epochs of options")
    equal(os.listdir(MOUNTPOINT), [], "the mountpoint stays")
    made = os.path.join(PRIVATE, "kept/new/made/here")
    os.mkdir(os.path.join(PRIVATE, "kept"))
    for where in (made, os.fsencode(made), pathlib.Path(made), f"{made}//", os.path.relpath(made), f"{made} ü,\\n"):
        with epochfs.mount(pathlib.Path(SOURCE), where) as mount:
            equal((mount_type(mount.path), list(epochfs.open(where))), ("fuse.epochfs", ["train"]), f"what is mounted at {where}")
        equal(os.listdir(os.path.join(PRIVATE, "kept")), [], f"of {where}, what was made goes, what was there stays")
    with epochfs.mount(SOURCE, made):
        write("../kept/new/file", b"")
    equal(os.listdir(os.path.join(PRIVATE, "kept/new")), ["file"], "a folder that is in use stays")
    for cache in ("a,b", b"by\\,te", pathlib.Path("p\\ath")):
        folder = os.path.join(os.fsencode(PRIVATE), os.fsencode(cache))
        with epochfs.mount(SOURCE, cache=type(cache)(folder if isinstance(cache, bytes) else os.fsdecode(folder))):
            equal(os.path.isdir(folder), True, f"is {folder} the cache")
    expect(epochfs.MountError, "mountpoint: expected a folder, got an empty name", call=lambda: epochfs.mount(SOURCE, ""))
    for source in (None, 3):
        expect(TypeError, call=lambda source=source: epochfs.mount(source))
    expect(epochfs.MountError, "/nowhere: No such file or directory", call=lambda: epochfs.mount("/nowhere"))
    expect(epochfs.MountError, "./--help: No such file", call=lambda: epochfs.mount("--help"))
    expect(epochfs.MountError, "/dev/null: expected a folder", call=lambda: epochfs.mount(SOURCE, "/dev/null"))
    expect(epochfs.MountError, "colour", call=lambda: epochfs.mount(SOURCE, colour="red"))
    os.environ["EPOCHFS"] = os.path.relpath(EPOCHFS)
    with epochfs.mount(SOURCE) as mount:
        before = os.getcwd()
        os.chdir(os.path.join(PRIVATE, "kept/new"))
    os.chdir(before)
    os.environ["EPOCHFS"] = "/nowhere/epochfs"
    expect(epochfs.MountError, "/nowhere/epochfs: cannot be run", call=lambda: epochfs.mount(SOURCE))
    os.environ["EPOCHFS"] = EPOCHFS
    equal(os.listdir(TMP), [], "left behind")


def folders(images):
    """Datasets in folders, files that cannot be used, keys of all kinds."""
    write("deep/er/a.npy", npy(np.arange(6)))
    write("deep/bad.npy", b"\x93NUMPY\1\0\xff\xffx")
    for n, key in enumerate(("000002", "000000", "000001")):
        write(f"numbers/c{n}/{key}.txt", b"%d" % n)
    for name, keys in (("shard", KEYS), ("digits", DIGITS)):
        with tarfile.open(f"{SOURCE}/{name}.tar", "w") as shard:
            for key in keys:
                member = tarfile.TarInfo(f"{key}.txt")
                member.size = len(key.encode())
                shard.addfile(member, io.BytesIO(key.encode()))
    rows = {"__c": 1, "a.b": 2, ".d": 3, "plain": 4}
    write("table.ark", kaldi_dirs.archive([(key, kaldi_dirs.fm(np.zeros((n, 2), "f4"))) for key, n in rows.items()])[0])
    with epochfs.mount(SOURCE, MOUNTPOINT) as mount:
        names = list(mount)
        equal({key: len(mount["table.ark"][key]["data"]) for key in rows}, rows, "samples by keys with points")
        equal({"train", "deep/er/a"} - set(names), set(), f"datasets in {names}")
        equal([int(s[list(s)[0]]) for s in mount["deep/er/a"]], list(range(6)), "samples of a folder's dataset")
        equal(["deep/bad.npy" in mount, "deep" in mount, "deep/er/a" in mount], [False, False, True], "datasets that can be used")
        error = expect(epochfs.Error, "bad.npy", call=lambda: mount["deep/bad.npy"])
        expect(epochfs.Error, "bad.npy", call=lambda: mount.get("deep/bad.npy"))
        equal("deep/bad.npy" in dict(mount), False, "is what cannot be used among all datasets")
        contains(text(path("deep/bad.npy/ERROR.txt")), str(error).rpartition(": ")[2][:40])
        keyed = [n for n in names if n.startswith("numbers")]
        for name in keyed:
            every = mount[name].batches("batch=all").read(0)
            for number, key in enumerate(every["key"].tolist()):
                same(mount[name][number], path(name, f"samples/npz/{key.decode()}.npz"), f"sample {number} of {name}")
                same(mount[name][key], path(name, f"samples/npz/{key.decode()}.npz"), f"sample {key} of {name}")
        equal(bool(keyed), True, f"datasets of numbers/ in {names}")
        keys = mount["shard.tar"].batches("batch=all").read(0)["key"].tolist()
        equal(keys, [k.encode() for k in KEYS], "keys of the shard")
        equal([bytes(mount["shard.tar"][key]["txt"]) for key in keys], keys, "samples by keys of all kinds")
        equal([bytes(mount["shard.tar"][n]["txt"]) for n in range(3)], keys, "samples by numbers")
        parts = {name: sorted(next(iter(mount[dataset].batches("batch=2", fields=[name], encoding=encoding))))
                 for name, dataset, encoding in (("txt", "shard.tar", "npz"), ("data", "table.ark", "npy"))}
        equal(parts, {"txt": ["txt", "txt_offsets"], "data": ["data", "data_len"]}, "arrays of fields whose samples differ in shape")
        equal([bytes(mount["digits.tar"][n]["txt"]).decode() for n in range(3)], DIGITS, "samples by number, whatever the keys")
        opened = epochfs.open(MOUNTPOINT)
        equal(opened["train"][0]["image"].tolist(), images[0].tolist(), "a mount that was opened")
        opened.close()
        equal(mount_type(MOUNTPOINT), "fuse.epochfs", "close() of a mount that was opened")
    expect(epochfs.DeadMountError, "no epochfs is mounted", call=lambda: epochfs.open(MOUNTPOINT))
    expect(epochfs.DeadMountError, "no epochfs is mounted", call=lambda: epochfs.open(SOURCE))


def npy(array):
    f = io.BytesIO()
    np.save(f, array)
    return f.getvalue()


def main():
    os.mkdir(TMP)
    os.environ["TMPDIR"] = TMP
    images, labels = small(30)
    temporary(images, labels)
    killed()
    interrupted()
    mounted_again()
    with epochfs.mount(SOURCE, MOUNTPOINT) as mount:
        read_batches(mount, images)
        refuse(mount)
    given()
    folders(images)


main()
