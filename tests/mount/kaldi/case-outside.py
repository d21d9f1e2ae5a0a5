#!/usr/bin/python3
"""Paths in scp files that lead out of SOURCE: refused unless allowed, whatever way they take; and
paths that are no regular files. Links in SOURCE may lead anywhere, as in a scan of SOURCE."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import BAD, Dataset, Item
from lib import (CACHE, MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, log_text, mounted,
                 path, run, text)

OUTSIDE = f"{PRIVATE}/outside"
rng = np.random.default_rng(14)


def fresh():
    os.chdir(PRIVATE)
    for folder in (SOURCE, CACHE, OUTSIDE):
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder, 0o700)


def matrix(*shape):
    a = rng.normal(size=shape).astype(np.float32)
    return Item("matrix", a, kd.fm(a))


def put(file, item, key=b"k"):
    """An archive of one object anywhere; its line needs the offset :2."""
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "wb") as f:
        f.write(key + b" " + item.raw)


inside, secret, other = matrix(4, 3), matrix(6, 3), matrix(8, 3)


def check_ways():
    """All ways out, and the ways that stay in."""
    fresh()
    put(f"{SOURCE}/m.ark", inside)
    put(f"{SOURCE}/deep/er/m2.ark", inside)
    put(f"{OUTSIDE}/o.ark", secret)
    put(f"{OUTSIDE}/sub/o.ark", secret)
    put(f"{PRIVATE}/beside.ark", secret)
    put(f"{SOURCE}-more/o.ark", secret)  # its name begins as SOURCE's does
    os.symlink(f"{OUTSIDE}/o.ark", f"{SOURCE}/link.ark")
    os.symlink("../outside/o.ark", f"{SOURCE}/relative-link.ark")
    os.symlink(OUTSIDE, f"{SOURCE}/link")
    os.symlink(f"{SOURCE}/link", f"{SOURCE}/deep/link-to-link")
    os.symlink(f"{OUTSIDE}/sub", f"{SOURCE}/sub")
    os.symlink("deep/er", f"{SOURCE}/good-link")
    os.symlink(f"{SOURCE}/m.ark", f"{SOURCE}/good-link.ark")
    os.symlink(SOURCE, f"{PRIVATE}/name-of-source")
    os.symlink("nowhere", f"{SOURCE}/dangling.ark")
    os.symlink("round.ark", f"{SOURCE}/round.ark")
    stay = ["m.ark", "./m.ark", "deep/../m.ark", "deep/er/../../m.ark", "deep//er/m2.ark",
            f"{SOURCE}/m.ark", f"{SOURCE}/deep/../m.ark", f"{SOURCE}//./m.ark", "good-link/m2.ark",
            "good-link.ark", f"{PRIVATE}/name-of-source/m.ark", f"{SOURCE}/../source/m.ark",
            "../source/m.ark"]
    link = ["link.ark", "relative-link.ark", "link/o.ark", "deep/link-to-link/o.ark", "sub/o.ark",
            f"{SOURCE}/link/o.ark"]
    leave = [f"{OUTSIDE}/o.ark", "../outside/o.ark", "deep/../../outside/o.ark",
             f"{SOURCE}/../outside/o.ark",
             "../../../../../../../../.." + f"{OUTSIDE}/o.ark", f"{SOURCE}-more/o.ark",
             f"{PRIVATE}/beside.ark", f"{OUTSIDE}/sub/../o.ark",
             f"{SOURCE}/link/../../outside/o.ark"]
    never = ["dangling.ark", "round.ark", "sub/../o.ark", "link/none.ark", f"{OUTSIDE}/none.ark",
             f"{OUTSIDE}", ".."]
    names = [("stay", p) for p in stay] + [("link", p) for p in link] + \
        [("leave", p) for p in leave] + [("never", p) for p in never]
    keys = [f"{kind}{i:02d}" for i, (kind, _) in enumerate(names)]
    kd.script("t.scp", [f"{key} {place}:2" for key, (_, place) in zip(keys, names)])
    what = {"stay": inside, "link": secret, "leave": secret, "never": BAD}
    refused = [BAD if kind in ("leave", "link") else what[kind] for kind, _ in names]
    with mounted(SOURCE, "log=debug"):
        ds = Dataset(path("t.scp"), keys, {"data": refused})
        kd.check(ds, ["raw", "npy", "npz", "ark"])
        for i, (kind, place) in enumerate(names):
            if kind in ("leave", "link"):
                kd.expect_told(ds.folder, "t.scp", i + 1)
        contains(text(ds.folder, "dataset.json"), "allow_outside")
        equal("t.scp" in os.listdir(f"{ds.folder}/source"), True, "source/")
    contains(log_text(), "allow_outside")
    with mounted(SOURCE, "allow_outside"):
        ds = Dataset(path("t.scp"), keys, {"data": [what[kind] for kind, _ in names]})
        kd.check(ds, ["raw", "npy", "npz", "ark"])
    # A file found while outside was allowed does not exist when it is not.
    with mounted(SOURCE):
        kd.check(Dataset(path("t.scp"), keys, {"data": refused}), ["raw", "npy"])
    with mounted(f"{PRIVATE}/name-of-source"):
        kd.check(Dataset(path("t.scp"), keys, {"data": refused}), ["raw", "npy"])
    with mounted(SOURCE, "kaldi=p"):
        good = [i for i, item in enumerate(refused) if item is not BAD]
        kd.check(Dataset(path("t.scp"), [keys[i] for i in good],
                         {"data": [refused[i] for i in good]}))


def check_only():
    """Nothing but lines that lead out: no dataset, and how to allow them."""
    fresh()
    put(f"{OUTSIDE}/o.ark", secret)
    kd.script("t.scp", [f"a {OUTSIDE}/o.ark:2", "b ../outside/o.ark:2"])
    put(f"{SOURCE}/good.ark", inside)
    folder = kd.Folder(rng, "dir", 5, 2).keep("utt2spk", "text").write()
    kd.script("dir/feats.scp", [f"{u} {OUTSIDE}/o.ark:2" for u in folder.utterances])
    with mounted():
        kd.check_error(path("t.scp"), "t.scp", "allow_outside")
        kd.check_error(path("dir/feats.scp"), "feats.scp", "allow_outside")
        contains(text(path("dir/all/ERROR.txt")), "dir/feats.scp", "allow_outside", "would lack a field")
        kd.check(Dataset(path("good.ark"), ["k"], {"data": [inside]}))
    contains(run("info", SOURCE), "allow_outside")
    with mounted(SOURCE, "kaldi=p"):
        kd.check(folder.dataset(path("dir/all"))[0])
    contains(run("mount", f"{SOURCE}/t.scp", MOUNTPOINT, code=2), "t.scp", "allow_outside")
    with mounted(f"{SOURCE}/t.scp", "allow_outside"):
        kd.check(Dataset(path("t.scp"), "ab", {"data": [secret, secret]}))
    folder.tables["feats"] = {u: secret for u in folder.utterances}
    with mounted(SOURCE, "allow_outside"):
        kd.check(folder.dataset(path("dir/all"))[0], samples=[0, 4])
    for option in ("allow_outside=1", "allow_outsid"):
        contains(run("mount", "-o", option, SOURCE, MOUNTPOINT, code=1), "allow_outside")


def check_cwd():
    """The cwd counts where it is in SOURCE, or outside is allowed; otherwise the search goes on."""
    fresh()
    put(f"{OUTSIDE}/x/m.ark", secret)
    put(f"{SOURCE}/x/m.ark", inside)
    put(f"{SOURCE}/y/x/m.ark", other)
    kd.script("a/b/t.scp", ["u x/m.ark:2"])
    for cwd, options, want in ((OUTSIDE, [], inside), (OUTSIDE, ["allow_outside"], secret),
                               (f"{SOURCE}/y", [], other),
                               (f"{SOURCE}/y", ["allow_outside"], other),
                               (PRIVATE, ["allow_outside"], inside), ("/", [], inside)):
        os.chdir(cwd)
        with mounted(SOURCE, *options):
            kd.check(Dataset(path("a/b/t.scp"), "u", {"data": [want]}), ["raw", "npy"])
    os.chdir(PRIVATE)


def check_alone():
    """A single scp file: its folder is in, what is above is not."""
    fresh()
    put(f"{SOURCE}/here/m.ark", inside)
    put(f"{SOURCE}/m.ark", secret)
    put(f"{SOURCE}/here/below/m.ark", other)
    kd.script("here/t.scp", ["a m.ark:2", "b below/m.ark:2", "c ../m.ark:2", f"d {SOURCE}/m.ark:2"])
    with mounted(f"{SOURCE}/here/t.scp"):
        kd.check(Dataset(path("t.scp"), "abcd", {"data": [inside, other, BAD, BAD]}),
                 ["raw", "npy"])
    with mounted(f"{SOURCE}/here/t.scp", "allow_outside"):
        kd.check(Dataset(path("t.scp"), "abcd", {"data": [inside, other, secret, secret]}),
                 ["raw", "npy"])
    with mounted(SOURCE):
        kd.check(Dataset(path("here/t.scp"), "abcd", {"data": [inside, other, secret, secret]}),
                 ["raw", "npy"])


def too_long(signum, frame):
    raise AssertionError("expected an answer in 30 s; something waits")


def check_no_files():
    """Pipes, devices, sockets, folders, unreadable files: an error, and no reader waits."""
    fresh()
    put(f"{SOURCE}/m.ark", inside)
    os.mkfifo(f"{SOURCE}/fifo")
    os.mkfifo(f"{OUTSIDE}/fifo")
    os.mkdir(f"{SOURCE}/folder")
    names = ["fifo", "fifo:2", f"{OUTSIDE}/fifo", "/dev/zero", "/dev/zero:2", "/dev/null",
             "/dev/full",
             "/dev/stdin", "/dev/tty", "/proc/self/mem:0", "/proc/self/fd/0", "/proc/self/environ",
             "folder", "/", "/proc", "x" * 300, "y/" * 3000 + "m.ark"]
    keys = [f"u{i:02d}" for i in range(len(names))]
    kd.script("t.scp", ["good m.ark:2"] + [f"{key} {name}" for key, name in zip(keys, names)])
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(30)
    for options in ([], ["allow_outside"]):
        with mounted(SOURCE, *options, log="log.no-files"):
            kd.check(Dataset(path("t.scp"), ["good", *keys],
                             {"data": [inside] + [BAD] * len(names)}), ["raw", "npy"])
    signal.alarm(0)


def check_exchanged():
    """Files that become links out of SOURCE after the mount: it never shows their targets."""
    fresh()
    outside = Item("matrix", -inside.value, kd.fm(-inside.value))
    put(f"{OUTSIDE}/o.ark", outside)
    for i in range(3):
        put(f"{SOURCE}/d{i}/m.ark", inside)
    kd.script("t.scp", [f"u{i} d{i}/m.ark:2" for i in range(3)])
    with mounted():
        kd.check_raw(path("t.scp/samples/raw/u0.data.raw"), inside)
        for i in range(3):
            os.rename(f"{SOURCE}/d{i}", f"{SOURCE}/was{i}")
        os.mkdir(f"{SOURCE}/d0")
        os.symlink(f"{OUTSIDE}/o.ark", f"{SOURCE}/d0/m.ark")
        os.mkdir(f"{SOURCE}/d1")
        os.symlink(f"{OUTSIDE}/o.ark", f"{SOURCE}/d1/m.ark")
        os.symlink(OUTSIDE, f"{SOURCE}/d2")
        os.link(f"{OUTSIDE}/o.ark", f"{OUTSIDE}/m.ark")
        for file in ("samples/raw/u1.data.raw", "samples/npy/u2.data.npy",
                     "samples/npy/u1.data.npy",
                     "batches/batch=all/npz/000000.npz", "batches/batch=all/ark/000000.ark"):
            with contextlib.suppress(OSError):  # ESTALE, or the old content
                data = content(path("t.scp", file))
                equal(outside.value.tobytes()[:40] in data, False, f"{file}: bytes of outside")
                equal(inside.value.tobytes() in data, True, f"{file}: what was there")
    put(f"{SOURCE}/good.ark", inside)
    with mounted(log="log.exchanged"):
        kd.check_error(path("t.scp"), "t.scp", "allow_outside")
    with mounted(SOURCE, "allow_outside", log="log.allowed"):
        kd.check(Dataset(path("t.scp"), ["u0", "u1", "u2"], {"data": [outside] * 3}))


def check_changed():
    """A file that is replaced while it is mounted: ESTALE, never a mixture."""
    fresh()
    put(f"{SOURCE}/a.ark", inside)
    put(f"{SOURCE}/b.ark", secret)
    kd.script("t.scp", ["a a.ark:2", "b b.ark:2"])
    with mounted(log="log.changed"):
        put(f"{SOURCE}/new", Item("matrix", None, kd.fm(-inside.value)))
        os.rename(f"{SOURCE}/new", f"{SOURCE}/a.ark")
        for file in ("samples/raw/a.data.raw", "samples/npy/a.data.npy", "samples/npz/a.npz",
                     "batches/batch=all/ark/000000.ark"):
            try:
                data = content(path("t.scp", file))
                equal(inside.value.tobytes() in data, True, f"{file}: what was there at first")
            except OSError as e:
                equal(e.errno, errno.ESTALE, file)
        kd.check_raw(path("t.scp/samples/raw/b.data.raw"), secret)


def check_many_files():
    """More files than may be open at once: each can be read, and a replaced one is refused."""
    fresh()
    items = [Item("matrix", a, kd.fm(a)) for a in
             [rng.normal(size=(3, 2)).astype(np.float32) for _ in range(300)]]
    for i, item in enumerate(items):
        put(f"{SOURCE}/objects/{i}.mat", item, b"")
    keys = [f"u{i:03d}" for i in range(300)]
    kd.script("t.scp", [f"{key} objects/{i}.mat:1" for i, key in enumerate(keys)])
    with mounted(log="log.many", prefix=("prlimit", "--nofile=100:100")):
        ds = Dataset(path("t.scp"), keys, {"data": items})
        kd.check(ds, ["raw", "npy"])
        for i in (0, 150, 299):  # long closed again, the one or the other
            put(f"{SOURCE}/new", Item("matrix", None, kd.fm(-items[i].value)), b"")
            os.rename(f"{SOURCE}/new", f"{SOURCE}/objects/{i}.mat")
        gone = 0
        for i in rng.permutation(300).tolist():
            try:
                data = content(path(f"t.scp/samples/npz/{keys[i]}.npz"))
            except OSError as e:
                equal((e.errno, i in (0, 150, 299)), (errno.ESTALE, True), f"sample {i}")
                gone += 1
            else:
                equal(items[i].value.tobytes() in data, True, f"sample {i}: what was there")
        equal(gone > 0, True, "one of the replaced files is no longer open")


def check_who_may_read():
    """With allow_other: a user that cannot read a file that a line names cannot read its
    samples."""
    if os.geteuid() != 0:
        print("without the part that needs root: allow_other")
        return
    fresh()
    for folder in (SOURCE, OUTSIDE):
        os.chmod(folder, 0o755)
    for file in (f"{SOURCE}/open.mat", f"{SOURCE}/closed.mat", f"{OUTSIDE}/closed.mat"):
        put(file, inside, b"")
        os.chmod(file, 0o600 if "closed" in file else 0o644)
    tables = {"all-open": ["open.mat:1"], "one-closed": ["open.mat:1", "closed.mat:1"],
              "outside": [f"{OUTSIDE}/closed.mat:1"]}
    for name, places in tables.items():
        kd.script(f"{name}.scp", [f"u{i} {place}" for i, place in enumerate(places)])
        os.chmod(f"{SOURCE}/{name}.scp", 0o644)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for _ in range(2):  # an index that was kept knows as much
        with mounted(SOURCE, "allow_other", "allow_outside", log="log.other"):
            for name in tables:
                for file in ("samples/raw/u0.data.raw", "samples/npz/u0.npz",
                             "batches/batch=all/ark/000000.ark"):
                    file = path(f"{name}.scp", file)
                    kd.whole(file)
                    done = subprocess.run([*nobody, "cat", file], stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
                    equal(done.returncode, 0 if name == "all-open" else 1, f"another user: {file}")


check_ways()
check_only()
check_cwd()
check_alone()
check_no_files()
check_exchanged()
check_changed()
check_many_files()
check_who_may_read()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
