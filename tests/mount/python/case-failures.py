#!/usr/bin/python3
"""What breaks while Python reads: nothing ends early in silence, here or in workers of a DataLoader."""

import errno
import gc
import importlib.util
import io
import os
import resource
import signal
import tarfile

import numpy as np

import epochfs
import kaldi_dirs
from lib import MOUNTPOINT, PRIVATE, SOURCE, contains, equal, mount_type, path, run, small, status, stop, start, write

PLAN = "batch=8,seed=7"
HAS_TORCH = importlib.util.find_spec("torch")


def passes(train, epoch):
    """Ways to read an epoch to its end, which all must fail alike."""
    yield "here", lambda: sum(1 for _ in train.batches(PLAN, epoch=epoch))
    if HAS_TORCH:
        import epochfs.torch
        for workers in (0, 2):
            def read(workers=workers):
                batches = epochfs.torch.Batches(train, PLAN)
                batches.set_epoch(epoch)
                return sum(1 for _ in epochfs.torch.Loader(batches, num_workers=workers))
            yield f"{workers} workers", read


def expect(kind, words, call, what):
    try:
        found = call()
    except Exception as e:
        equal(type(e), kind, f"{what}: {e!r}")
        contains(str(e), *words)
        return
    finally:
        gc.collect()  # a DataLoader that has failed is a cycle, and complains where the next one forks
    raise AssertionError(f"{what}: expected {kind.__name__}, got {found}")


def daemon_dies():
    """In the middle of an epoch: the loop raises, and does not just end."""
    daemon = start(SOURCE, "ahead=0")
    train = epochfs.open(MOUNTPOINT)["train"]
    read, error = 0, None
    try:
        for _ in train.batches(PLAN):
            read += 1
            if read == 2:
                daemon.kill()
                daemon.wait()
    except epochfs.Error as e:
        error = e
    equal((read, type(error)), (2, epochfs.DeadMountError), "batches before the end of the daemon")
    contains(str(error), MOUNTPOINT, "the daemon of this mount has died")
    for what, call in passes(train, 1):
        expect(epochfs.DeadMountError, ["died"], call, what)
    expect(epochfs.DeadMountError, ["died"], lambda: list(epochfs.open(MOUNTPOINT)), "open")
    run("umount", MOUNTPOINT)
    equal(mount_type(MOUNTPOINT), None, "mounted")


def own_daemon_dies():
    """The mount's block cleans up after a daemon that is dead."""
    try:
        with epochfs.mount(SOURCE, MOUNTPOINT) as mount:
            os.kill(mount.status()["pid"], signal.SIGKILL)
            while True:  # the kernel learns of it in its own time
                mount.status()
    except epochfs.DeadMountError as e:
        contains(str(e), "died")
    equal((mount_type(MOUNTPOINT), os.listdir(MOUNTPOINT)), (None, []), "after the block")


def is_unmounted():
    daemon = start()
    train = epochfs.open(MOUNTPOINT)["train"]
    list(train.batches(PLAN))
    stop(daemon)
    for epoch in (0, 1):
        for what, call in passes(train, epoch):
            expect(epochfs.DeadMountError, ["no epochfs is mounted there"], call, what)


def is_of_another_user():
    if os.geteuid():
        return
    os.chmod(PRIVATE, 0o755)
    daemon = start()
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            expect(epochfs.Error, [MOUNTPOINT, "Permission denied; is it another user's mount, without allow_other?"],
                   lambda: epochfs.open(MOUNTPOINT), "another user")
            os._exit(0)
        except BaseException as e:
            print(e, flush=True)
            os._exit(1)
    equal(os.waitpid(pid, 0)[1], 0, "status of the other user")
    stop(daemon)


def source_changes():
    """Another file in its place; then one that is cut short."""
    for change in ("other", "cut"):
        images, _ = small(30)
        file = os.path.join(SOURCE, "train-images-idx3-ubyte")
        daemon = start(SOURCE, "ahead=0")
        train = epochfs.open(MOUNTPOINT)["train"]
        equal(train[0]["image"].tolist(), images[0].tolist(), "before the change")
        if change == "other":
            small(30, seed=2)
            os.utime(file, ns=(1, 1))
        else:
            os.truncate(file, 100)
        for what, call in passes(train, 5):
            expect(epochfs.StaleSourceError, ["mount it again", "train-images-idx3-ubyte"], call, f"{change}, {what}")
        daemon.kill()
        daemon.wait()
        run("umount", MOUNTPOINT)


def cannot_be_indexed():
    """A dataset that is found to be none while it is indexed: each way to it has the reason."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in ["p/data.bin"] * 40 + ["p/setup.py"]:
            member = tarfile.TarInfo(name)
            member.size = 1000
            archive.addfile(member, io.BytesIO(bytes(1000)))
    write("code/late.tar", tar.getvalue())
    write("code/rows.txt", b"1 1:1\n" * 3)
    daemon = start(os.path.join(SOURCE, "code"))
    mount = epochfs.open(MOUNTPOINT)
    equal(sorted(mount), ["late.tar", "rows.txt"], "names")
    for what, call in (("mount[]", lambda: mount["late.tar"]), ("get()", lambda: mount.get("late.tar")),
                       ("items()", lambda: dict(mount)), ("Dataset", lambda: epochfs.Dataset(mount, "late.tar"))):
        expect(epochfs.Error, ["late.tar: ", "p/setup.py", "the files of a project"], call, what)
    equal(["late.tar" in mount, "rows.txt" in mount], [False, True], "what can be used")
    stop(daemon)


def row_is_bad():
    """What the mount cannot read has its reason."""
    write("rows.txt", b"".join(b"1 3:0.5 17:2\n" for _ in range(40)) + b"1 3:x\n")
    daemon = start(os.path.join(SOURCE, "rows.txt"))
    rows = epochfs.open(MOUNTPOINT)["rows.txt"]
    for what, call in passes(rows, 0):
        expect(epochfs.Error, ["Input/output error", "rows.txt:41"], call, what)
    equal(status()["read_errors"] > 0, True, "errors that the mount counts")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        rows.batches(PLAN)
    except epochfs.Error as e:
        equal((e.errno, "rows.txt:41" in str(e)), (errno.EMFILE, False), f"an error of this process, and no other's reason: {e}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    stop(daemon)


def file_is_cut():
    """A batch that is shorter than it says, as of a copy of a mount that was broken off."""
    daemon = start()
    folder = os.path.join(SOURCE, "copy")
    os.makedirs(f"{folder}/.epochfs")
    os.makedirs(f"{folder}/train/batches/batch=8/npz")
    for file in (".epochfs/status.json", "train/dataset.json", *(f"train/batches/batch=8/npz/{k:06d}.npz" for k in range(4))):
        with open(path(file), "rb") as f, open(f"{folder}/{file}", "wb") as copy:
            copy.write(f.read())
    stop(daemon)
    train = epochfs.open(folder)["train"]
    equal(sum(len(b["label"]) for b in train.batches("batch=8")), 30, "samples of the copy")
    where = f"{folder}/train/batches/batch=8/npz/000002.npz"
    os.truncate(where, os.path.getsize(where) - 1)
    expect(epochfs.BadBatchError, [where, "the archive's end is missing; the file is cut short"],
           lambda: list(train.batches("batch=8")), "cut")
    with open(f"{folder}/.epochfs/status.json", "r+b") as f:
        f.truncate(10)
    expect(epochfs.Error, ["status.json", "expected the JSON of a mount's status"], lambda: epochfs.open(folder), "status that is cut")
    os.unlink(where)
    expect(epochfs.Error, ["has 3 batches, and 3 is the last"], lambda: list(train.batches("batch=8")), "one is missing")


def batch_is_left_out():
    """A batch that cannot be one array is not in the listing: in the middle a hole, at the end no end."""
    rng = np.random.default_rng(3)
    for name, columns in (("middle", [2, 2, 2, 3, 3, 3]), ("last", [2, 2, 2, 2, 2, 3])):
        items = [(f"u{i}", kaldi_dirs.fm(rng.normal(size=(2, c)).astype(np.float32))) for i, c in enumerate(columns)]
        write(f"mixed/{name}.ark", kaldi_dirs.archive(items)[0])
    daemon = start(os.path.join(SOURCE, "mixed"))
    mount = epochfs.open(MOUNTPOINT)
    reason = "expected 2 columns, as others of the batch have, got 3; they cannot be one array"
    expect(epochfs.PlanError, ["'batch=2' does not open", reason], lambda: list(mount["middle.ark"].batches("batch=2")), "npz")
    expect(epochfs.PlanError, [reason], lambda: list(mount["middle.ark"].batches("batch=2", encoding="npy")), "npy")
    expect(epochfs.Error, ["000002.npz", reason], lambda: list(mount["last.ark"].batches("batch=2")), "npz of the last")
    expect(epochfs.Error, ["000000.npz", reason], lambda: list(mount["last.ark"].batches("batch=all")), "the only one")
    equal(len(list(mount["last.ark"].batches("batch=2", encoding="npy", fields=["index"]))), 3, "batches of numbers")
    equal(len(list(mount["middle.ark"].batches("batch=3"))), 2, "batches of three")
    stop(daemon)


def main():
    small(30)
    daemon_dies()
    own_daemon_dies()
    is_unmounted()
    is_of_another_user()
    source_changes()
    small(30)
    file_is_cut()
    cannot_be_indexed()
    row_is_bad()
    batch_is_left_out()


main()
