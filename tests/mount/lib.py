"""What the cases of tests/mount share: start a mount, stop it, wait for it, make IDX files.

Also a command, for the cases in bash:  lib.py wait-mounted PID MOUNTPOINT
"""

import contextlib
import errno
import faulthandler
import gzip
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time

EPOCHFS = os.environ.get("EPOCHFS", "")
PRIVATE = os.environ.get("PRIVATE", "")
MOUNTPOINT = os.path.join(PRIVATE, "mountpoint")
SOURCE = os.path.join(PRIVATE, "source")
CACHE = os.path.join(PRIVATE, "cache")
LOG = os.path.join(PRIVATE, "log")
FASHION = "/usr/share/datasets/fashion-mnist"
SHARED_IDX = os.path.join(os.environ.get("SHARED_DATA", "/nowhere"), "idx")
DEADLINE = 180  # seconds; nothing takes that long, not even under a sanitizer on a busy machine
SLOW = bool(os.environ.get("SANITIZED"))
faulthandler.register(signal.SIGUSR1)  # the runner asks where a case is that takes too long


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def need_fashion():
    if not os.path.isdir(FASHION):
        skip(f"{FASHION} is missing (package dataset-fashion-mnist)")


def equal(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what}: expected {want!r:.2000}, got {got!r:.2000}")


def contains(text, *words):
    for word in words:
        if word not in text:
            raise AssertionError(f"expected {word!r} in: {text!r:.3000}")


# ---- mounts ----

def mount_type(mountpoint):
    """The file system type of the last mount there, None if there is none."""
    found = None
    with open("/proc/self/mountinfo", "rb") as f:
        for line in f:
            fields = line.split()
            where = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), fields[4])
            if where == os.fsencode(mountpoint):
                found = fields[fields.index(b"-") + 1].decode()
    return found


def wait_mounted(pid, mountpoint, log="log"):
    """Wait until an epochfs is mounted there and answers. The kernel reports changes of the table
    of mounts, a pidfd the end of the process."""
    until = time.monotonic() + DEADLINE
    process = os.pidfd_open(pid)
    with open("/proc/self/mountinfo", "rb") as table:
        poll = select.poll()
        poll.register(table, select.POLLPRI | select.POLLERR)
        poll.register(process, select.POLLIN)
        while mount_type(mountpoint) != "fuse.epochfs":
            left = until - time.monotonic()
            ready = poll.poll(left * 1000) if left > 0 else []
            if not ready:
                raise AssertionError(f"{mountpoint} was not mounted in {DEADLINE} s")
            if any(fd == process for fd, _ in ready):
                raise AssertionError(f"the daemon ended before it mounted: {os.waitpid(pid, os.WNOHANG)} {log_text(log)}")
    os.close(process)
    os.stat(mountpoint)


def log_text(log="log"):
    try:
        with open(os.path.join(PRIVATE, log), errors="surrogateescape") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def start(source=SOURCE, *options, at=MOUNTPOINT, log="log", prefix=()):
    """Start a daemon in the foreground and wait until its mount answers. Its messages go to
    $PRIVATE/<log>."""
    arguments = ["mount", "-f"] + [word for o in options for word in ("-o", o)]
    with open(os.path.join(PRIVATE, log), "ab") as f:
        daemon = subprocess.Popen([*prefix, EPOCHFS, *arguments, source, at],
                                  stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    daemon.at = at
    try:
        wait_mounted(daemon.pid, at, log)
    except AssertionError:
        daemon.kill()
        daemon.wait()
        raise
    return daemon


def stop(daemon):
    """End it as Ctrl-C would: it must unmount, without messages about errors."""
    daemon.terminate()
    equal(daemon.wait(DEADLINE), 0, "exit code of the daemon")
    equal(mount_type(daemon.at), None, "mounted after the end")


@contextlib.contextmanager
def mounted(source=SOURCE, *options, **kwargs):
    daemon = start(source, *options, **kwargs)
    try:
        yield daemon.at
    except BaseException:
        daemon.kill()
        daemon.wait()
        raise
    stop(daemon)


def run(*arguments, code=0, **kwargs):
    """Run epochfs with arguments; its exit code must be code. Returns stdout and stderr as one."""
    done = subprocess.run([EPOCHFS, *arguments], stdin=subprocess.DEVNULL, timeout=DEADLINE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kwargs)
    text = done.stdout.decode(errors="surrogateescape")
    equal(done.returncode, code, f"exit code of {arguments}: {text}")
    return text


def expect_error(want, function, *arguments, **kwargs):
    """Call function(*arguments), which must fail with one of the errno in want."""
    want = want if isinstance(want, tuple) else (want,)
    try:
        function(*arguments, **kwargs)
    except OSError as e:
        if e.errno in want:
            return
        raise AssertionError(f"{function.__name__}{arguments}: expected "
                             f"{[errno.errorcode[w] for w in want]}, got {e}") from e
    raise AssertionError(f"{function.__name__}{arguments}: expected an error, got none")


# ---- files ----

def path(*parts):
    return os.path.join(MOUNTPOINT, *parts)


def content(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def text(*parts):
    return content(*parts).decode(errors="surrogateescape")


def write(name, data):
    """A source file."""
    where = os.path.join(os.fsencode(SOURCE), os.fsencode(name))
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "wb") as f:
        f.write(data)
    return os.fsdecode(where)


def status(at=MOUNTPOINT):
    return json.loads(text(at, ".epochfs/status.json"))


def requests(at=MOUNTPOINT):
    return status(at)["requests"]


def difference(before, after):
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


# ---- IDX, written and read without epochfs ----

IDX_CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_header(code, dims):
    return bytes([0, 0, code, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims)


def idx_bytes(array):
    kind = f"{array.dtype.kind}{array.dtype.itemsize}"
    return idx_header(IDX_CODES[kind], array.shape) + array.astype(f">{kind}").tobytes()


def idx_parse(data):
    import numpy as np
    equal(data[:2], b"\0\0", "IDX magic")
    kind = {code: kind for kind, code in IDX_CODES.items()}[data[2]]
    dims = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
    array = np.frombuffer(data[4 + 4 * data[3]:], dtype=f">{kind}")
    return array.reshape(dims) if len(dims) <= 32 else (array, dims)


def load_gz(file):
    with gzip.open(file) as f:
        return f.read()


def small(n=20, name="", seed=1, side=5):
    """A small pair train-images/train-labels in the source; returns both arrays."""
    import numpy as np
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, side, side + 1), dtype=np.uint8)
    labels = rng.integers(0, 10, n, dtype=np.uint8)
    write(f"{name}train-images-idx3-ubyte", idx_bytes(images))
    write(f"{name}train-labels-idx1-ubyte", idx_bytes(labels))
    return images, labels


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] != "wait-mounted":
        sys.exit("usage: lib.py wait-mounted PID MOUNTPOINT")
    try:
        wait_mounted(int(sys.argv[2]), sys.argv[3])
    except (AssertionError, OSError) as failure:
        sys.exit(f"wait-mounted: {failure}")
