#!/usr/bin/python3
"""open=pass: the kernel reads files of this machine itself. Right bytes without any READ; files that
change; users that do not end; what `auto` decides. Without the right to do it: case-user.py."""

import errno
import mmap
import os
import random
import signal
import subprocess
import threading

from lib import (MOUNTPOINT, SOURCE, contains, content, difference, equal, expect_error, log_text,
                 mounted, path, requests, run, skip, start, status, write)
from page_blocks import take

LARGE = 3 << 20
rng = random.Random(19)
DATA = {f"c{i % 2}/{i}.jpg": rng.randbytes(LARGE + i * 4097) for i in range(6)}
SMALL = {f"c{i % 2}/s{i}.jpg": rng.randbytes(100 + i) for i in range(20)}


def where(name):
    return path("all/samples/raw", os.path.basename(name))


def name_is_right(name):
    equal(content(where(name)), DATA[name], name)


for name, data in (DATA | SMALL).items():
    write(name, data)

with mounted(SOURCE, "open=pass"):
    if status()["open"]["mode"] != "pass":
        skip(status()["open"]["reason"])
    content(where("c0/0.jpg"))
    if not status()["open"]["passed"]:
        skip("the file system of the tests cannot have backing files")

    # Each way to read; the daemon sees opens alone.
    before = requests()
    for name in DATA:
        name_is_right(name)
    with open(where("c0/2.jpg"), "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
        equal(m[:], DATA["c0/2.jpg"], "mmap")
        name_is_right("c0/2.jpg")  # the same file, opened twice at a time
    fd = os.open(where("c1/1.jpg"), os.O_RDONLY)
    for _ in range(100):
        at = rng.randrange(LARGE)
        equal(os.pread(fd, 70000, at), DATA["c1/1.jpg"][at:at + 70000], f"pread at {at}")
    threads = [threading.Thread(target=name_is_right, args=(name,)) for name in DATA for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert difference(before, requests()).get("read", 0) <= 2, "READ requests besides those of status.json"

    # Everything else works as without: small samples, batches, texts that change, listings.
    for name, data in SMALL.items():
        equal(content(where(name)), data, name)
    equal(len(os.listdir(path("all/samples/raw"))), len(DATA) + len(SMALL))
    equal(content(path("all/batches/batch=all/npy/000000.label.npy"))[-8 * 26:-8 * 25], b"\0" * 8, "first label")
    assert status()["open"]["passed"] >= len(DATA), status()["open"]
    shown = run("status", MOUNTPOINT)
    assert "pass" in shown, shown

    # Replaced by rename: a reader that has it open keeps the old bytes, and each other open fails.
    write("c1/1.jpg.new", b"new" * 1000)
    os.rename(f"{SOURCE}/c1/1.jpg.new", f"{SOURCE}/c1/1.jpg")
    equal(os.pread(fd, LARGE, 0), DATA["c1/1.jpg"][:LARGE], "the old bytes")
    expect_error(errno.ESTALE, open, where("c1/1.jpg"), "rb")
    os.close(fd)
    os.unlink(f"{SOURCE}/c0/0.jpg")
    expect_error(errno.ESTALE, open, where("c0/0.jpg"), "rb")
    os.truncate(f"{SOURCE}/c1/3.jpg", 5)
    expect_error(errno.ESTALE, open, where("c1/3.jpg"), "rb")
    os.unlink(f"{SOURCE}/c1/5.jpg")
    os.symlink("/etc/hostname", f"{SOURCE}/c1/5.jpg")
    expect_error(errno.ESTALE, open, where("c1/5.jpg"), "rb")
    name_is_right("c0/2.jpg")
    assert "1.jpg" in status()["last_read_error"] or "5.jpg" in status()["last_read_error"], status()

for name, data in DATA.items():
    if os.path.lexists(f"{SOURCE}/{name}"):
        os.unlink(f"{SOURCE}/{name}")
    write(name, data)

# Users that do not end: the mount ends, or is killed; an open file goes on.
daemon = start(SOURCE, "open=pass")
f = open(where("c0/2.jpg"), "rb")
equal(f.read(5), DATA["c0/2.jpg"][:5])
subprocess.run(["umount", "-l", MOUNTPOINT], check=True)
equal(f.read(), DATA["c0/2.jpg"][5:], "after umount -l")
f.close()
equal(daemon.wait(), 0)

daemon = start(SOURCE, "open=pass")
f = open(where("c0/4.jpg"), "rb")
daemon.send_signal(signal.SIGKILL)
daemon.wait()
equal(f.read(), DATA["c0/4.jpg"], "after the daemon was killed")
f.close()
subprocess.run(["umount", "-l", MOUNTPOINT], check=True)

# auto: where at least half of the bytes are in large samples.
with mounted():
    equal(status()["open"]["mode"], "pass")
    contains(log_text(), take("docs/performance.md", "the kernel reads files"))
with mounted(SOURCE, "open=cached"):
    equal(status()["open"], {"mode": "cached", "reason": "passthrough=off", "passed": 0})
    name_is_right("c0/4.jpg")
for i in range(3):
    write(f"c0/bulk{i}.jpg", b"b" * ((1 << 20) - 1))
for i in range(40):
    write(f"c1/many{i}.jpg", bytes([i]) * ((1 << 20) - 1))
with mounted():
    equal(status()["open"]["mode"], "cached")
    before = requests()
    content(path("all/samples/raw/many3.jpg"))
    content(path("all/samples/raw/many4.jpg"))
    assert "open" not in difference(before, requests()), "the kernel opens by itself"

# A batch of all samples that is the file itself, byte for byte, and those that are not.
lines = b"".join(b'{"i": %d, "x": "%s"}\n' % (i, b"y" * (i % 300)) for i in range(20000))
whole = {"plain": lines, "cr": lines.replace(b"\n", b"\r\n"), "bom": b"\xef\xbb\xbf" + lines, "blank": lines + b"\n",
         "open": lines[:-1]}
for name, data in whole.items():
    write(f"lines/{name}.jsonl", data)
for kept in (False, True):  # the second time with the index that was kept
    with mounted(f"{SOURCE}/lines", "open=pass"):
        for name, data in whole.items():
            before = status()["open"]["passed"]
            for plan in ("batch=all", "batch=20000", "batch=all,seed=1/epoch=0", "batch=all,take=0:19999", "batch=19999"):
                found = content(path(f"{name}.jsonl/batches/{plan}/jsonl/000000.jsonl"))
                if "seed" in plan:
                    equal(sorted(found.splitlines()), sorted(lines.splitlines()), f"{name} {plan}")
                else:
                    equal(found, lines if "19999" not in plan else lines[:lines.rindex(b"\n", 0, -1) + 1], f"{name} {plan}")
            equal(status()["open"]["passed"] - before, 2 if name == "plain" else 0, f"{name}: opens by the kernel, kept {kept}")
