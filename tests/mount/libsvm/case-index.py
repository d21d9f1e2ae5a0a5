#!/usr/bin/python3
# slow: indexes of long texts
"""The index of libsvm text: made in the background, kept in the cache folder, rejected when it is
damaged or of another file, and small in memory."""

import contextlib
import ctypes
import errno
import json
import os
import random
import select
import shutil
import signal
import subprocess
import time

import numpy as np

from lib import (CACHE, DEADLINE, EPOCHFS, LOG, MOUNTPOINT, PRIVATE, SLOW, SOURCE, contains,
                 content, equal, expect_error, idx_header, log_text, mount_type, mounted, path,
                 run, skip, start, status, stop, text, wait_mounted, write)
from servers import wait_until


GONE = (errno.ESTALE, errno.EIO)
AT_ONCE = 30  # seconds, generously: the index takes minutes
BLOCK_ROWS = 4000
BLOCKS = 25 if SLOW else 250
rng = random.Random(31)
libc = ctypes.CDLL(None, use_errno=True)


# ---- files ----

def rows(n, seed):
    """n different rows of 4 to 500 bytes, each with its number of seed and row as its label."""
    draw = random.Random(seed)
    out = []
    for i in range(n):
        values = [draw.randrange(10 ** 6) for _ in range(draw.randrange(48))]
        pairs = b"".join(b" %d:%d" % pair for pair in enumerate(values))
        out.append(b"%d%s" % (seed * 10 ** 5 + i, pairs))
    return out


def text_of(lines):
    return b"".join(line + b"\n" for line in lines)


def hole(file, lines, size=2 ** 40, more=b""):
    """A sparse file: rows, a hole of size bytes, more rows."""
    with open(file, "wb") as f:
        f.write(text_of(lines))
        try:
            f.truncate(f.tell() + size)
        except OSError as error:
            skip(f"no sparse file of {size} bytes: {error}")
        f.seek(0, os.SEEK_END)
        f.write(more)


@contextlib.contextmanager
def endless(lines, copies=10 ** 8):
    """Gives a function that makes a file of many copies of the lines, and the daemon that serves
    it: the file is a link to a batch of another mount, which repeats its only sample."""
    data = text_of(lines)
    lower, at = f"{PRIVATE}/lower-source", f"{PRIVATE}/lower"
    for folder in (lower, at):
        os.makedirs(folder, exist_ok=True)
    with open(f"{lower}/data", "wb") as f:
        f.write(idx_header(8, [1, len(data)]) + data)
    daemon = start(lower, at=at)
    file = f"{at}/data/batches/batch={copies},tail=wrap/raw/000000.data.raw"
    equal(os.path.getsize(file), copies * len(data), "the size of a batch")
    try:
        yield lambda name, _=None: os.symlink(file, name), daemon
        stop(daemon)
    finally:
        daemon.kill()
        daemon.wait()


def fresh(files=()):
    """A source of only these files, and an empty cache folder."""
    for folder in (SOURCE, CACHE):
        shutil.rmtree(folder)
        os.mkdir(folder, 0o700)
    for name, lines in dict(files).items():
        write(name, text_of(lines))


# ---- kept indexes ----

def kept(cache=CACHE):
    """Every whole file of the cache folder, except unpacked ones and the marker."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(cache)
                  for name in names if name != "EPOCHFS" and not name.endswith(".part")
                  and "unpacked" not in folder)


def times(files):
    return {f: (os.stat(f).st_ino, os.stat(f).st_mtime_ns, os.stat(f).st_size) for f in files}


def wait_kept(n):
    """Wait until that many files are kept; inotify reports changes."""
    until = time.monotonic() + DEADLINE
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while True:
            for folder, _, _ in os.walk(CACHE):
                libc.inotify_add_watch(fd, os.fsencode(folder), 0x180)  # IN_MOVED_TO, IN_CREATE
            if len(kept()) >= n:
                return
            left = until - time.monotonic()
            equal(left > 0, True, f"{n} indexes in the cache folder, got {kept()}")
            if select.select([fd], [], [], left)[0]:
                os.read(fd, 65536)
    finally:
        os.close(fd)


def index_all(files):
    """Mount until everything is indexed and kept."""
    with mounted():
        wait_kept(len(files))


def read_bytes(daemon):
    with open(f"/proc/{daemon.pid}/io", encoding="ascii") as f:
        return int(dict(line.split(": ") for line in f)["rchar"])


def rss(daemon):
    """The daemon's own memory: mapped files do not count, they can be dropped at any time."""
    with open(f"/proc/{daemon.pid}/status", encoding="ascii") as f:
        found = dict(line.split(":", 1) for line in f)
    return sum(int(found[name].split()[0]) for name in ("RssAnon", "RssFile")) / 1024


# ---- right bytes ----

def samples_of(name):
    return json.loads(text(path(name, "dataset.json")))["samples"]


def check_rows(name, lines, at=MOUNTPOINT):
    """All rows, as text and as labels, and some single ones."""
    folder = os.path.join(at, name)
    whole = content(folder, "batches/batch=all/svm/000000.svm")
    equal(whole == text_of(lines), True, f"{name}: all rows")
    labels = np.load(f"{folder}/batches/batch=all/npy/000000.label.npy")
    want = np.array([float(line.split()[0]) for line in lines], np.float32)
    equal(np.array_equal(labels, want), True, f"{name}: labels")
    for i in (0, len(lines) // 2, len(lines) - 1):
        equal(content(folder, f"samples/svm/{i:06d}.svm"), lines[i] + b"\n", f"{name}: row {i}")
    with np.load(f"{folder}/batches/batch=50,seed=1/epoch=0/npz/000000.npz") as batch:
        picked = [lines[i].split()[1:] for i in batch["index"]]
        equal(batch["indptr"].tolist(), np.cumsum([0] + [len(p) for p in picked]).tolist(), name)
        equal([b"%d:%d" % pair for pair in zip(batch["indices"], batch["data"])],
              sum(picked, []), f"{name}: a batch")


# ---- while the index is made ----

def waits(process):
    """Does the process wait in the kernel, for an answer of the daemon, or for another reader of
    the folder? Before libfuse 3.17 the kernel allows only one lookup at a time in a folder."""
    with open(f"/proc/{process.pid}/wchan", encoding="ascii") as f:
        return f.read() in ("request_wait_answer", "fuse_lock_inode")


APART = ["samples/svm/000000.svm", "samples/npy/000012.label.npy", "samples/npz/000013.npz",
         "batches/batch=4/svm/000000.svm"]
PAGE = ["dataset.json"]
TOGETHER = [f"samples/svm/{i:06d}.svm" for i in range(1, 14)] + [
    "batches/batch=4,seed=1/epoch=0/npz/000000.npz", "batches/batch=all,part=1of3/npy/000000.x.npy"]


def readers_of(files):
    """Processes that read files not known yet, once they all wait; no two read the same name."""
    readers = []
    for file in files:
        readers.append(subprocess.Popen(["cat", path("big", file)], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL))
        wait_until(lambda: waits(readers[-1]), f"the reader of {file} waits")
    return readers


def check_answers(small):
    """Reads that succeed while big is not indexed yet."""
    begin = time.monotonic()
    # A separate process, since it may wait in the kernel where no signal reaches it.
    stat = subprocess.Popen(["stat", "-t", *(path("big", n) for n in ("", "batches", "samples/npz",
                                                                      "source/big"))],
                            stdout=subprocess.DEVNULL)
    equal(stat.wait(AT_ONCE), 0, "looking around in big/")
    equal(sorted(n for n in os.listdir(MOUNTPOINT) if n != "all"),
          [".epochfs", "README.txt", "big", "small"], "the top")
    equal({"samples", "batches", "source"} - set(os.listdir(path("big"))), set(), "big/")
    equal(os.listdir(path("big/source")), ["big"], "source/")
    with open(path("big/source/big"), "rb") as f:
        equal(f.read(1000), text_of(small)[:1000], "the start of the source")
    contains(text(path("README.txt")), "big", "small")
    equal(status()["pid"] > 0, True, "status.json")
    text(path(".epochfs/metrics"))
    subprocess.run(["ls", "-l", MOUNTPOINT, path("small")], stdout=subprocess.DEVNULL, check=True,
                   timeout=AT_ONCE)
    check_rows("small", small)
    equal(time.monotonic() - begin < AT_ONCE, True, "what does not need the index, seconds")


def end_of(daemon, how):
    """End it in that way, while the index is being made."""
    begin = time.monotonic()
    if how == "umount":
        run("umount", MOUNTPOINT)
    elif how == "SIGKILL":
        daemon.kill()
    else:
        daemon.terminate()
    equal(daemon.wait(AT_ONCE), -9 if how == "SIGKILL" else 0, f"{how}: exit code")
    if how == "SIGKILL":
        run("umount", MOUNTPOINT)
    equal(mount_type(MOUNTPOINT), None, how)
    equal(time.monotonic() - begin < AT_ONCE, True, f"{how}, seconds")


def check_under_way(big, first, how):
    """With a file that takes many minutes to index. first: readers wait for it before any has
    requested the small one."""
    small = rows(500, 1)
    fresh({"small": small})
    big(f"{SOURCE}/big", small)
    begin = time.monotonic()
    daemon = start(SOURCE, "allow_outside")  # the big one may be a link
    equal(time.monotonic() - begin < AT_ONCE, True, "mounting, seconds")
    if not first:
        check_answers(small)
    readers = readers_of(APART + TOGETHER + PAGE)
    check_answers(small)
    done = status()["index_bytes_done"]
    wait_until(lambda: status()["index_bytes_done"] > done, "status.json shows how far it is")
    equal([r.poll() for r in readers], [None] * len(readers), "the readers still wait")
    if how != "SIGTERM with readers":
        for reader in readers[:len(APART)]:
            reader.send_signal(signal.SIGINT)
            equal(reader.wait(AT_ONCE), -signal.SIGINT, "Ctrl-C")
        for i, reader in enumerate(readers[len(APART):]):
            reader.send_signal(signal.SIGKILL if i % 4 == 3 else signal.SIGINT)
        for reader in readers:
            equal(reader.wait(AT_ONCE) < 0, True, "ended by the signal")
        check_answers(small)
    end_of(daemon, how)
    for reader in readers:
        reader.wait(AT_ONCE)
    os.unlink(f"{SOURCE}/big")
    write("big", text_of(small))
    with mounted():  # the unfinished index does no harm
        check_rows("big", small)


def check_waiting():
    """A reader that comes before the index is ready waits for it, and gets the right bytes."""
    lines = rows(2000, 1)
    fresh()
    copies = (64 if SLOW else 200) * 2 ** 20 // len(text_of(lines))
    last = 2000 * copies - 1
    digits = max(6, len(str(last)))

    def sample(i):
        return path("big/samples/svm", f"{i:0{digits}d}.svm")

    with endless(lines, copies) as (big, lower):
        big(f"{SOURCE}/big")
        with mounted(SOURCE, "allow_outside"):
            lower.send_signal(signal.SIGSTOP)  # the source stalls
            try:
                reader = subprocess.Popen(["cat", sample(last)], stdout=subprocess.PIPE)
                wait_until(lambda: waits(reader) or reader.poll() is not None, "the reader waits")
                equal(os.listdir(path("big/source")), ["big"], "source/ while it waits")
                now = status()
                if reader.poll() is not None:
                    print("without readers that wait: the index was ready at once")
                else:
                    equal(now["index_bytes_done"] < now["index_bytes_total"], True, "status.json")
            finally:
                lower.send_signal(signal.SIGCONT)
            equal(reader.stdout.read(), lines[-1] + b"\n", "the last row")
            reader.wait()
            equal(samples_of("big"), last + 1, "rows")
            equal(status()["index_bytes_done"], status()["index_bytes_total"], "status.json")
            for i in (0, 1999, 2000, rng.randrange(last)):
                equal(content(sample(i)), lines[i % 2000] + b"\n", f"row {i}")


def check_hole():
    """A row longer than the limit."""
    lines, more = rows(300, 1), rows(300, 2)
    fresh()
    hole(f"{SOURCE}/big", lines, (300 if SLOW else 600) * 2 ** 20, b"\n" + text_of(more))
    with mounted():
        equal(content(path("big/samples/svm/000600.svm")), more[-1] + b"\n", "the last row")
        equal(len(os.listdir(path("big/samples/svm"))), 601, "rows, a bad one among them")
        equal(content(path("big/samples/svm/000301.svm")), more[0] + b"\n", "behind the bad row")
        expect_error(errno.EIO, content, path("big/samples/npy/000300.label.npy"))
        equal(float(np.load(path("big/samples/npy/000301.label.npy"))), 200000, "its label")
    contains(log_text(), "big:301:")


def check_cut():
    """A source that is truncated while it is indexed: readers that wait get an error."""
    lines = rows(500, 1)
    fresh({"small": lines})
    hole(f"{SOURCE}/big", lines)
    with mounted():
        readers = readers_of(APART + TOGETHER)
        page = readers_of(PAGE)[0]
        os.truncate(f"{SOURCE}/big", 1000)
        for reader in readers:
            equal(reader.wait(AT_ONCE), 1, "a reader that waited")
        equal(page.wait(AT_ONCE), 0, "dataset.json, which says why")
        contains(json.loads(content(path("big/dataset.json")))["error"], "big: ")
        expect_error(GONE, content, path("big/samples/svm/000003.svm"))
        check_rows("small", lines)
        contains(log_text(), "big: ")


def change_at_once(name):
    """A larger file that changes right after the mount, indexed or not: the old bytes, or an
    error."""
    lines = rows(BLOCK_ROWS, 1)
    fresh({"small": lines})
    with open(f"{SOURCE}/big", "wb") as f:
        for _ in range(8 if SLOW else 40):
            f.write(text_of(lines))
    file = f"{SOURCE}/big"
    size = os.path.getsize(file)
    new = rows(500, 2)
    with mounted():
        if name == "cut":
            os.truncate(file, size // 2)
        elif name == "longer":
            with open(file, "ab") as f:
                f.write(b"1 1:1\n")
        elif name == "touched":
            os.utime(file, ns=(1, 1))
        elif name == "removed":
            os.unlink(file)
        else:
            write("new", text_of(new))
            os.rename(f"{SOURCE}/new", file)
        for i in rng.sample(range(BLOCK_ROWS), 20):
            for at in (f"samples/svm/{i:06d}.svm", f"samples/npy/{i:06d}.label.npy"):
                with contextlib.suppress(OSError):
                    got = content(path("big", at))
                    want = lines[i] + b"\n" if at.endswith("svm") else float(lines[i].split()[0])
                    equal(got if at.endswith("svm") else float(np.load(path("big", at))), want, at)
        expect_error(GONE, content, path("big/batches/batch=100/svm/000002.svm"))
        check_rows("small", lines)
    if name in ("cut", "longer", "touched", "replaced"):  # the next mount sees the new file
        data = content(file)
        with mounted():
            equal(content(path("big/batches/batch=all/svm/000000.svm")) == data, True, name)


# ---- kept ----

def check_large():
    """Background, reuse, memory, with 10^6 rows."""
    block = rows(BLOCK_ROWS, 1)
    data, n = text_of(block), BLOCK_ROWS * BLOCKS
    digits = max(6, len(str(n - 1)))
    fresh()
    with open(f"{SOURCE}/large", "wb") as f:
        for _ in range(BLOCKS):
            f.write(data)
    size = len(data) * BLOCKS

    def random_reads(count):
        for _ in range(count):
            i = rng.randrange(n)
            equal(content(path("large/samples/svm", f"{i:0{digits}d}.svm")),
                  block[i % BLOCK_ROWS] + b"\n", f"row {i}")
        for i in range(count // 50):
            file = path(f"large/batches/batch=200,seed={i}/epoch=0/npz/000000.npz")
            with np.load(file) as batch:
                want = [float(block[k % BLOCK_ROWS].split()[0]) for k in batch["index"]]
                equal(batch["label"].tolist(), want, file)

    begin = time.monotonic()
    daemon = start()
    print(f"mounted after {time.monotonic() - begin:.3f} s")
    wait_kept(1)  # without any reader
    print(f"indexed after {time.monotonic() - begin:.3f} s, {os.path.getsize(kept()[0])} bytes")
    equal(samples_of("large"), n, "rows")
    random_reads(500 if SLOW else 5000)
    print(f"memory after random reads: {rss(daemon):.1f} MiB")
    equal(SLOW or rss(daemon) < 60, True, f"memory after random reads: {rss(daemon)} MiB")
    equal(read_bytes(daemon) >= size, True, "the first mount read it all")
    stop(daemon)
    first = times(kept())

    daemon = start()
    random_reads(20)
    equal(read_bytes(daemon) < size / 4 + 2 ** 22, True, "the second mount did not read it all")
    stop(daemon)
    equal(times(kept()), first, "the second mount wrote nothing")
    run("info", SOURCE)
    equal(times(kept()), first, "info wrote nothing")

    os.utime(f"{SOURCE}/large", ns=(1, 1))
    daemon = start()
    random_reads(20)
    equal(read_bytes(daemon) >= size, True, "a changed time: read anew")
    stop(daemon)


def check_other_versions():
    """The index of an older version of the file is not used for a newer one."""
    lines = rows(3000, 1)
    fresh({"t": lines})
    index_all(["t"])
    backwards = lines[::-1]  # the same size
    file = write("t", text_of(backwards))
    os.utime(file, ns=(10 ** 18, 10 ** 18))
    with mounted():
        check_rows("t", backwards)
    st = os.stat(file)
    write("t", text_of(lines + [b"7 7:7"]))  # the same time, another size
    os.utime(file, ns=(10 ** 18, st.st_mtime_ns))
    with mounted():
        check_rows("t", lines + [b"7 7:7"])


def damage_of(number):
    """The damages, one for each file: in every region of an index, of a bit or of many bytes."""
    places = list(range(0, 128, 3 if not SLOW else 16)) + [None] * (10 if SLOW else 40)

    def flip(file):
        size = os.path.getsize(file)
        at = places[number] if places[number] is not None else rng.randrange(size)
        with open(file, "r+b") as f:
            f.seek(at % size)
            byte = f.read(1)
            f.seek(at % size)
            f.write(bytes([byte[0] ^ 1 << rng.randrange(8)]))

    def overwrite(file, what):
        with open(file, "wb") as f:
            f.write(what)

    def cut(file):
        os.truncate(file, rng.randrange(1, os.path.getsize(file)))

    def trailer(file):
        with open(file, "r+b") as f:
            f.seek(-rng.randrange(1, 65), os.SEEK_END)
            f.write(b"?")

    more = [cut, cut, cut, trailer, trailer, lambda f: os.truncate(f, 0),
            lambda f: os.truncate(f, 1), lambda f: open(f, "ab").write(b"x"),
            lambda f: overwrite(f, bytes(os.path.getsize(f))),
            lambda f: overwrite(f, b"1 0:1\n" * 100), os.unlink,
            lambda f: (os.unlink(f), os.mkfifo(f)), lambda f: (os.unlink(f), os.mkdir(f)),
            lambda f: (os.unlink(f), os.symlink("/dev/zero", f)),
            lambda f: os.rename(f, f + ".part")]
    return [flip] * len(places) + more


def check_damage():
    """With damaged indexes reads give the right bytes, or a clear error; many files at once."""
    n = len(damage_of(0))
    files = {f"f{i:03d}": rows(200 + i % 7 * 30, 100 + i) for i in range(n)}
    fresh(files)
    index_all(files)
    for number, index in enumerate(kept()):
        os.chmod(index, 0o600)
        damage_of(number)[number](index)
    with mounted():
        for name, lines in files.items():
            check_rows(name, lines)
    with mounted():
        for name in rng.sample(sorted(files), 8):
            check_rows(name, files[name])
    # The indexes of other files, whole, under the names of these.
    fresh(files)
    index_all(files)
    names = kept()
    for index in names:
        os.rename(index, index + ".away")
    for index, other in zip(names, names[1:] + names[:1]):
        os.rename(index + ".away", other)
    with mounted():
        for name, lines in files.items():
            check_rows(name, lines)
    # The trailer is right: only the content shows the damage.
    fresh({"t": rows(3000, 1)})
    index_all(["t"])
    [index] = kept()
    good = content(index)
    for _ in range(4 if SLOW else 12):
        bad = bytearray(good)
        for _ in range(3):
            bad[rng.randrange(len(bad) - 64)] ^= 1 << rng.randrange(8)
        with open(index, "wb") as f:
            f.write(bad)
        with mounted():
            check_rows("t", rows(3000, 1))


# ---- a cache folder that cannot be used ----

@contextlib.contextmanager
def cache_at(where):
    os.environ["EPOCHFS_CACHE"] = where
    try:
        yield
    finally:
        os.environ["EPOCHFS_CACHE"] = CACHE


def check_unwritable():
    lines = rows(800, 1)
    fresh({"t": lines, "u": lines[::-1]})
    write("a-file", b"not a folder\n")
    shutil.move(f"{SOURCE}/a-file", f"{PRIVATE}/a-file")
    for where in (f"{PRIVATE}/a-file", f"{PRIVATE}/a-file/below", "/dev/null/x", "/proc/none"):
        with cache_at(where), mounted():
            check_rows("t", lines)
            check_rows("u", lines[::-1])
    # A file where the folder of indexes should be.
    index_all(["t", "u"])
    folder = os.path.dirname(kept()[0])
    shutil.rmtree(folder)
    write("a-file", b"")
    shutil.move(f"{SOURCE}/a-file", folder)
    with mounted():
        check_rows("t", lines)
    os.unlink(folder)
    if os.geteuid() != 0:
        print("without the part that needs root: full and read-only cache folders")
        return
    check_read_only(lines)
    check_full(lines)


def check_read_only(lines):
    """A folder that an ordinary user may not write to."""
    binary = f"{PRIVATE}/epochfs"
    shutil.copy(EPOCHFS, binary)
    os.chmod(SOURCE, 0o755)
    locked = f"{PRIVATE}/locked"
    os.mkdir(locked, 0o755)
    with cache_at(locked):
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               binary, "info", "--check", SOURCE], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=DEADLINE)
    contains(done.stdout.decode(), f"samples  {len(lines)}", f"samples  {2 * len(lines)}")
    equal(done.returncode, 0, f"info of an ordinary user: {done.stdout}")


def check_full(lines):
    full = f"{PRIVATE}/full"
    os.mkdir(full)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", full], check=True)
    with cache_at(full):
        with mounted():  # there is space
            check_rows("t", lines)
        fresh({"t": lines[1:], "u": rows(30000, 1)})
        filler = os.open(f"{full}/filler", os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(filler, bytes(4096))
        os.close(filler)
        with mounted():
            check_rows("t", lines[1:])
            check_rows("u", rows(30000, 1))
        left = [n for _, _, names in os.walk(full) for n in names if n.endswith(".part")]
        equal(left, [], "nothing half-done is left")
        subprocess.run(["mount", "-o", "remount,ro", full], check=True)
        with mounted():
            check_rows("t", lines[1:])
    subprocess.run(["umount", full], check=True)


def check_two_at_once():
    """Mounts that start together on one cache folder."""
    files = {f"f{i}": rows(3000, i + 1) for i in range(3)}
    fresh(files)
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
        for name, lines in files.items():
            check_rows(name, lines, at)
    wait_kept(len(files))
    for daemon in daemons:
        stop(daemon)
    equal(len(kept()), len(files), "one index a file")
    with mounted():
        check_rows("f0", files["f0"])


with endless(rows(500, 1)) as (big, _):
    for how in ("umount", "SIGTERM", "SIGTERM with readers", "SIGKILL"):
        check_under_way(big, False, how)
    check_under_way(big, True, "SIGTERM")
check_under_way(hole, False, "SIGTERM")
check_waiting()
check_hole()
check_cut()
for name in ("cut", "longer", "touched", "removed", "replaced"):
    change_at_once(name)
check_large()
check_other_versions()
check_damage()
check_unwritable()
check_two_at_once()
