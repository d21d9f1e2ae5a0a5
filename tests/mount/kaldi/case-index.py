#!/usr/bin/python3
# slow: makes each index many times
"""The index of Kaldi tables: kept in the cache folder, reused, made again when one of its files has
changed, rejected when it is damaged, and the mount works even if it cannot be kept."""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import time

import numpy as np

import kaldi_dirs as kd
from kaldi_dirs import Dataset, Item
from lib import (CACHE, EPOCHFS, LOG, MOUNTPOINT, PRIVATE, SLOW, SOURCE, content, equal,
                 log_text, mounted, path, run, start, status, stop, text, wait_mounted, write)
from servers import wait_until

ARKS = 4
ROWS = 2000 if SLOW else 5000  # of each
rng = np.random.default_rng(5)
draw = random.Random(5)
STOPS = (errno.ESTALE, errno.EIO)


def fresh():
    for folder in (SOURCE, CACHE):
        shutil.rmtree(folder)
        os.mkdir(folder, 0o700)


def kept(cache=CACHE):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(cache)
                  for name in names if name != "EPOCHFS" and not name.endswith(".part"))


def times(files):
    return {f: (os.stat(f).st_ino, os.stat(f).st_mtime_ns, os.stat(f).st_size) for f in files}


def read_bytes(daemon):
    with open(f"/proc/{daemon.pid}/io", encoding="ascii") as f:
        return int(dict(line.split(": ") for line in f)["rchar"])


def table(name, n, columns=5, seed=1, rows=3):
    """An archive of n matrices and its scp; the first elements of a matrix are its number and seed.
    Returns the dataset of the scp."""
    local = np.random.default_rng(seed)
    items = []
    for i in range(n):
        a = local.normal(size=(1 + i % rows, columns)).astype(np.float32)
        a[0, 0], a[0, 1] = i, seed
        items.append((f"u{i:06d}", Item("matrix", a, kd.fm(a))))
    kd.table(name, [(key, item.raw) for key, item in items])
    return Dataset(path(f"{name}.scp"), [key for key, _ in items], {"data": [i for _, i in items]})


def check(ds, n=3):
    """All keys, some samples and a batch."""
    kd.check_names(ds)
    for i in {0, len(ds.keys) - 1, *(draw.randrange(len(ds.keys)) for _ in range(n))}:
        kd.check_sample(ds, i, ["raw", "npy"])
    index = np.load(f"{ds.folder}/batches/batch=20,seed=1/epoch=0/npy/000000.index.npy").tolist()
    kd.check_batch(ds, f"{ds.folder}/batches/batch=20,seed=1/epoch=0", 0, index, ["npz", "ark"])


def ready():
    now = status()
    return now["datasets_ready"] == now["datasets"] and \
        now["index_bytes_done"] == now["index_bytes_total"]


# ---- kept and reused ----

def check_reuse():
    """The first mount reads everything, in the background; the second only what it shows."""
    fresh()
    sets = [table(f"t{k}", ROWS, 40, k + 1, 9) for k in range(ARKS)]
    lines = [line for k in range(ARKS) for line in text(SOURCE, f"t{k}.scp").splitlines()]
    names = [line.split()[0] for line in lines]
    both = [f"v{i:06d} {line.split()[1]}" for i, line in enumerate(lines)]
    for k in range(ARKS):
        os.unlink(f"{SOURCE}/t{k}.scp")
    draw.shuffle(both)
    kd.script("all-of-it.scp", both)
    order = [int(line[1:7]) for line in both]
    items = [item for ds in sets for item in ds.fields["data"]]
    equal(len(names), len(items), "the test's own rows")
    ds = Dataset(path("all-of-it.scp"), [line.split()[0] for line in both],
                 {"data": [items[i] for i in order]})
    begin = time.monotonic()
    daemon = start()
    wait_until(ready, "the index is ready, though nobody has asked for it")
    print(f"{len(both)} rows: indexed after {time.monotonic() - begin:.2f} s")
    first = read_bytes(daemon)
    equal(first > len("\n".join(both)), True, "the first mount has read the scp")
    check(ds, 200)
    stop(daemon)
    files = times(kept())
    equal(len(files) > 0, True, "indexes are kept")
    print(f"kept: {sum(size for _, _, size in files.values()) / len(both):.1f} bytes a row")

    begin = time.monotonic()
    daemon = start()
    wait_until(ready, "the index is ready")
    second = read_bytes(daemon)
    print(f"the second mount: ready after {time.monotonic() - begin:.2f} s; "
          f"read {first} and {second} bytes")
    share = 2 if SLOW else 3  # a sanitizer reads much itself
    equal(second < first / share, True, f"bytes read by two mounts: {first}, {second}")
    check(ds, 50)
    stop(daemon)
    equal(times(kept()), files, "the second mount wrote nothing")
    run("info", SOURCE)
    equal(times(kept()), files, "info wrote nothing")
    # The archive alone, and a table next to it, leave the index of the first as it is.
    more = table("zz-more", 30)
    with mounted():
        check(ds)
        check(more)
    equal({f: t for f, t in times(kept()).items() if f in files}, files, "the old indexes stay")


def check_archive():
    """Indexes of an archive without an scp, of a text archive, of a data directory."""
    fresh()
    ark = table("plain", 500)
    os.unlink(f"{SOURCE}/plain.scp")
    ark.folder = path("plain.ark")
    rounded = [Item("matrix", np.round(item.value * 8) / 8) for item in ark.fields["data"]]
    write("text.ark", kd.archive([(key, kd.text_matrix(item.value)) for key, item in
                                  zip(ark.keys, rounded)])[0])
    words = Dataset(path("text.ark"), ark.keys, {"data": rounded})
    folder = kd.Folder(rng, "dir", 30, 3).write()
    for n in range(3):
        with mounted():
            check(ark)
            check(words)
            ds, _ = folder.dataset(path("dir/all"))
            kd.check(ds, samples=[0, 29])
        if n == 0:
            files = times(kept())
        equal(times(kept()), files, f"mount {n + 1}: what is kept")


# ---- changes ----

def check_changes():
    """An index is valid only for the exact bytes of its files."""
    fresh()
    a, b = table("a", 200, seed=1), table("b", 200, seed=2)
    both = text(SOURCE, "a.scp") + text(SOURCE, "b.scp").replace("u0", "w0")
    write("both.scp", both.encode())
    ds = Dataset(path("both.scp"), a.keys + [f"w{key[1:]}" for key in b.keys],
                 {"data": a.fields["data"] + b.fields["data"]})

    def is_right(what):
        with mounted():
            check(ds)
        print(f"right after: {what}")

    is_right("nothing")
    b2 = table("b", 200, seed=3)  # the same sizes, other content
    os.utime(f"{SOURCE}/b.ark", ns=(10 ** 18, 10 ** 18))
    ds.fields["data"][200:] = b2.fields["data"]
    is_right("an archive of the same size")
    st = os.stat(f"{SOURCE}/b.ark")
    b3 = table("b", 200, columns=6, seed=4)  # its offsets move
    shifted = text(SOURCE, "a.scp") + text(SOURCE, "b.scp").replace("u0", "w0")
    write("both.scp", shifted.encode())
    os.utime(f"{SOURCE}/b.ark", ns=(st.st_atime_ns, st.st_mtime_ns))
    ds.fields["data"][200:] = b3.fields["data"]
    with mounted():
        kd.check_names(ds)
        for i in (0, 199, 200, 333, 399):
            kd.check_sample(ds, i, ["raw", "npy"])
    lines = shifted.splitlines()
    order = list(range(400))
    draw.shuffle(order)
    write("both.scp", "".join(lines[i] + "\n" for i in order).encode())
    os.utime(f"{SOURCE}/both.scp", ns=(10 ** 18, 10 ** 18))
    with mounted():
        again = Dataset(ds.folder, [ds.keys[i] for i in order],
                        {"data": [ds.fields["data"][i] for i in order]})
        kd.check_names(again)
        equal(text(ds.folder, "batches/batch=all/npy/000000.key.txt").split(), again.keys,
              "the order")
        for i in (0, 199, 399):
            kd.check_sample(again, i, ["raw", "npy"])
    check_changed_kind()


def check_changed_kind():
    """A good row becomes bad, and the reverse; the scp itself does not change."""
    fresh()
    a = table("d/a", 50)
    a.folder = path("t.scp")
    kd.script("t.scp", [line.replace(" ", " d/") for line in text(SOURCE, "d/a.scp").splitlines()])
    os.unlink(f"{SOURCE}/d/a.scp")
    with mounted():
        check(a)
    data = content(SOURCE, "d/a.ark")
    write("d/a.ark", data[:len(data) // 2])  # the end is missing
    good = [i for i, (_, at, _) in enumerate(kd.read_ark(data, "matrix"))
            if at + len(a.fields["data"][i].raw) <= len(data) // 2]
    cut = Dataset(a.folder, a.keys, {"data": [item if i in good else kd.BAD for i, item in
                                              enumerate(a.fields["data"])]})
    equal(10 < len(good) < 40, True, "the test's own good rows")
    with mounted():
        kd.check(cut, ["raw", "npy"])
    # A file that was missing is there now.
    lines = text(SOURCE, "t.scp")
    write("t.scp", (lines + "late d/late.mat\n").encode())
    write("d/a.ark", data)
    late = Item("matrix", np.ones((3, 5), np.float32))
    for item in (kd.BAD, late):
        with mounted():
            kd.check(Dataset(a.folder, [*a.keys, "late"], {"data": [*a.fields["data"], item]}),
                     ["npy"])
        write("d/late.mat", kd.fm(late.value))
    write("t.scp", lines.encode())
    os.unlink(f"{SOURCE}/d/a.ark")
    with mounted_or_nothing() as is_mounted:
        if is_mounted:
            kd.check_error(path("t.scp"), "a.ark")
    write("d/a.ark", data)
    with mounted():
        check(a)
    # Another file of that name comes first: the index was of the other one.
    other = table("e/a", 50, seed=9)
    os.makedirs(f"{SOURCE}/near")
    os.rename(f"{SOURCE}/t.scp", f"{SOURCE}/near/t.scp")
    a.folder = path("near/t.scp")
    with mounted():
        check(a)
    os.makedirs(f"{SOURCE}/near/d")
    shutil.copy(f"{SOURCE}/e/a.ark", f"{SOURCE}/near/d/a.ark")
    with mounted():
        check(Dataset(a.folder, other.keys, other.fields))


def check_changed_audio():
    """The join depends on the files that its tables name: here on the length of a recording, and on
    the lines that can be read."""
    fresh()
    kd.script("d/wav.scp", ["r r.wav", "q q.wav"])
    lines = ["u1 r 0.5 -1", "u2 r 0 0.75", "u3 r 1.5 2", "u4 q 0 -1", "u5 q 1 2"]
    kd.script("d/segments", lines)
    kd.script("d/utt2spk", [f"u{i} s" for i in range(1, 6)])
    local = np.random.default_rng(8)
    for lengths in ((8000, 8000), (16000, 8000), (16000, 20000), (9000, 20000)):
        waves = {name: kd.tone(local, n, 1, 8000) for name, n in zip("rq", lengths)}
        for name, wave in waves.items():
            write(f"d/{name}.wav", kd.wave_bytes(wave))
        cut = kd.extract_segments(lines, waves)
        for _ in range(2):
            with mounted(log="log.audio"):
                kd.check(Dataset(path("d/all"), list(cut), {
                    "wav": [Item("wave", w) for w in cut.values()],
                    "utt2spk": [kd.text_item("s")] * len(cut)}))
    write("d/q.wav", b"no audio")
    cut["u4"] = cut["u5"] = kd.BAD
    for option in ([], ["kaldi=p"]):
        keys = [u for u in cut if not option or cut[u] != kd.BAD]
        with mounted(SOURCE, *option, log="log.audio"):
            kd.check(Dataset(path("d/all"), keys, {
                "wav": [kd.BAD if cut[u] == kd.BAD else Item("wave", cut[u]) for u in keys],
                "utt2spk": [kd.text_item("s")] * len(keys)}))


@contextlib.contextmanager
def mounted_or_nothing():
    """A mount with nothing usable fails."""
    try:
        daemon = start(log="log.nothing")
    except AssertionError:
        yield False
        return
    yield True
    stop(daemon)


def check_while_mounted():
    """Files that change under the mount: reads that need them give the old bytes or an error."""
    fresh()
    a, b = table("a", 300, seed=1), table("b", 300, seed=2)
    for how in ("cut", "longer", "replaced", "removed"):
        a = table("a", 300, seed=1)
        with mounted(log="log.changed"):
            check(a)
            file = f"{SOURCE}/a.ark"
            if how == "cut":
                os.truncate(file, os.path.getsize(file) // 2)
            elif how == "longer":
                with open(file, "ab") as f:
                    f.write(b"more")
            elif how == "removed":
                os.unlink(file)
            else:
                table("new", 300, seed=8)
                os.rename(f"{SOURCE}/new.ark", file)
                os.unlink(f"{SOURCE}/new.scp")
            for i in draw.sample(range(300), 20):
                try:
                    data = content(path(f"a.scp/samples/npy/{a.keys[i]}.data.npy"))
                    kd.npy_file(data, a.fields["data"][i].value, f"{how}: sample {i}")
                except OSError as e:
                    equal(e.errno in STOPS, True, f"{how}: {e}")
            check(b)


# ---- damage ----

def damages():
    def flip(file):
        size = os.path.getsize(file)
        with open(file, "r+b") as f:
            at = draw.randrange(size)
            f.seek(at)
            byte = f.read(1)
            f.seek(at)
            f.write(bytes([byte[0] ^ 1 << draw.randrange(8)]))

    def overwrite(file, data):
        with open(file, "wb") as f:
            f.write(data)

    def inside(file):  # the trailer is right
        size = os.path.getsize(file)
        with open(file, "r+b") as f:
            for _ in range(3):
                f.seek(draw.randrange(max(size - 64, 1)))
                f.write(bytes([draw.randrange(256)]))

    return [flip] * (10 if SLOW else 30) + [inside] * (5 if SLOW else 20) + [
        lambda f: os.truncate(f, draw.randrange(1, os.path.getsize(f))), lambda f: os.truncate(f,
                                                                                               0),
        lambda f: os.truncate(f, 1), lambda f: overwrite(f, bytes(os.path.getsize(f))),
        lambda f: overwrite(f, os.urandom(os.path.getsize(f))), os.unlink,
        lambda f: (os.unlink(f), os.mkfifo(f)), lambda f: (os.unlink(f), os.mkdir(f)),
        lambda f: (os.unlink(f), os.symlink("/dev/zero", f)), lambda f: os.rename(f, f + ".part")]


def check_damage():
    """Damaged indexes are made again; indexes of other tables are not used."""
    fresh()
    every = damages()
    sets = [table(f"t{i:03d}", 20 + i % 5 * 7, 4, i + 1) for i in range(len(every))]
    folders = [kd.Folder(rng, f"dir{i}", 6, 2).keep("feats", "utt2spk", "text", "utt2dur").write()
               for i in range(6)]

    def all_right(log):
        with mounted(log=log):
            for ds in sets:
                check(ds, 1)
            for folder in folders:
                kd.check(folder.dataset(path(f"{folder.name}/all"))[0], ["npz", "npy"], [0, 5])

    all_right("log.whole")
    for number, file in enumerate(kept()):
        os.chmod(file, 0o600)
        every[number % len(every)](file)
    all_right("log.damaged")
    all_right("log.mended")
    for cache_file in kept():
        equal(os.path.isfile(cache_file), True, cache_file)
    names = kept()
    draw.shuffle(names)
    for name in names:
        os.rename(name, name + ".away")
    for name, other in zip(names, names[1:] + names[:1]):
        os.rename(name + ".away", other)
    all_right("log.exchanged")
    for log in ("log.damaged", "log.exchanged"):
        equal("Assertion" in log_text(log), False, log)


def check_interrupted():
    """A daemon that is killed while it makes an index, repeatedly."""
    fresh()
    ds = table("t", ROWS, 30, rows=5)
    for _ in range(4):
        daemon = start(log="log.killed")
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        run("umount", MOUNTPOINT)
    with mounted():
        check(ds)
    fresh()
    ds = table("t", ROWS, 30, rows=5)
    with mounted():  # ended while it may be under way
        pass
    with mounted():
        check(ds)


# ---- a cache folder that cannot be used ----

@contextlib.contextmanager
def cache_at(where):
    os.environ["EPOCHFS_CACHE"] = where
    try:
        yield
    finally:
        os.environ["EPOCHFS_CACHE"] = CACHE


def check_unwritable():
    fresh()
    ds = table("t", 400)
    folder = kd.Folder(rng, "dir", 8, 2).write()
    joined, _ = folder.dataset(path("dir/all"))
    with open(f"{PRIVATE}/a-file", "wb"):
        pass
    for where in (f"{PRIVATE}/a-file", f"{PRIVATE}/a-file/below", "/dev/null/x", "/proc/none"):
        with cache_at(where), mounted(log="log.unwritable"):
            check(ds)
            kd.check(joined, samples=[0])
    if os.geteuid() != 0:
        print("without the part that needs root: a full cache folder")
        return
    full = f"{PRIVATE}/full"
    os.mkdir(full)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", full], check=True)
    try:
        filler = os.open(f"{full}/filler", os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(filler, bytes(4096))
        os.close(filler)
        large = table("large", ROWS, 3)
        with cache_at(full), mounted(log="log.full"):
            check(ds)
            check(large)
            kd.check(joined, samples=[7])
        left = [n for _, _, names in os.walk(full) for n in names if n.endswith(".part")]
        equal(left, [], "nothing half-done is left")
        subprocess.run(["mount", "-o", "remount,ro", full], check=True)
        with cache_at(full), mounted(log="log.read-only"):
            check(large)
    finally:
        subprocess.run(["umount", "-l", full], check=True)


def check_together():
    """Mounts that start together on one cache folder."""
    fresh()
    sets = [table(f"t{i}", 700, seed=i + 1) for i in range(3)]
    places = [f"{PRIVATE}/together{i}" for i in range(3)]
    daemons = []
    with open(LOG, "ab") as log:
        for at in places:
            os.mkdir(at)
            daemons.append(subprocess.Popen([EPOCHFS, "mount", "-f", SOURCE, at],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    for at, daemon in zip(places, daemons):
        daemon.at = at
        wait_mounted(daemon.pid, at)
    for at in places:
        for i, ds in enumerate(sets):
            check(Dataset(f"{at}/t{i}.scp", ds.keys, ds.fields))
    for daemon in daemons:
        stop(daemon)
    count = len(kept())
    with mounted():
        check(sets[0])
    equal(len(kept()), count, "one index a table")


def check_cache_command():
    """`epochfs mount -o cache=DIR` is the same folder."""
    fresh()
    ds = table("t", 100)
    where = f"{PRIVATE}/elsewhere"
    with mounted(SOURCE, f"cache={where}"):
        check(ds)
    equal((len(kept()), len(kept(where)) > 0), (0, True), "what is kept in which folder")


check_reuse()
check_archive()
check_changes()
check_changed_audio()
check_while_mounted()
check_damage()
check_interrupted()
check_unwritable()
check_together()
check_cache_command()
equal(os.listdir(MOUNTPOINT), [], "nothing is mounted")
