#!/usr/bin/python3
"""Random histories of mounts of a remote against a model: tests/histories, and tests/mount/remote/case-histories.py.

The model: each word of a file says which file it is of, which version and which place. A read gives words of one version that
the server had since the mount began, each at its place, or an error; and it ends in LIMIT seconds. What the server has sent of
a version is at most the file, unless blocks were lost or replies were wrong.
"""

import collections
import contextlib
import datetime
import errno
import http.server
import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import hypothesis
import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import order_reference
from lib import DEADLINE, EPOCHFS, PRIVATE, SLOW, mount_type, run, start
from servers import files_below, read_anew

SAMPLES, WORDS, BATCH = 600, 64, 32  # 512 bytes each
FILES = ("a", "b")
PATIENCE = 2
LIMIT = PATIENCE + (40 if SLOW else 15)  # of a read, on a busy machine
DISK = f"{PRIVATE}/disk"  # a tmpfs of its own where possible, because it becomes full
CACHE, FILLER = f"{DISK}/cache", f"{DISK}/filler"
ORDER = order_reference.load()
DAY = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)
KEEPS = ("", "evict=after_use", "evict=never", "cache_size=256K", "cache_size=1M,evict=after_use", "prefetch=off")
FAULTS = ("503", "429", "404", "cut", "stall", "close", "whole", "short range", "other range", "other version", "garbage", "redirect")


COUNTED = collections.Counter()  # what reads gave


# ---- the model ----

def word(file, version):
    return np.uint64(FILES.index(file) << 56 | version << 32)


def made(file, version, samples):
    """The bytes of a file."""
    array = np.arange(samples * WORDS, dtype=np.uint64).reshape(samples, WORDS) + word(file, version)
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def version_of(array, file, samples):
    """The only version that the words are of; None: they are wrong."""
    found = np.unique(array >> np.uint64(32))
    if len(found) != 1 or int(found[0]) >> 24 != FILES.index(file):
        return None
    at = np.asarray(samples, dtype=np.uint64)[:, None] * np.uint64(WORDS) + np.arange(WORDS, dtype=np.uint64)
    version = int(found[0]) & 0xFFFFFF
    return version if np.array_equal(array, at + word(file, version)) else None


# ---- the server ----

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def reply(self, status, body, headers=()):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server, name = self.server, self.path.rpartition("/")[2]
        if not name:
            self.reply(200, "".join(f'<a href="{f}.npy">{f}.npy</a>\n' for f in FILES).encode(), [("Content-Type", "text/html")])
            return
        file = name.partition(".")[0]
        with server.lock:
            fault = server.faults.pop(0) if server.faults and self.command == "GET" else None
            version, data, headers = server.current.get(file, (0, b"", []))
        if file not in FILES or fault == "404":
            self.reply(404, b"")
        elif fault in ("503", "429"):
            self.reply(int(fault), b"", [("Retry-After", "0")])
        elif fault == "close":
            self.close_connection = True
        elif fault == "redirect":
            self.reply(302, b"", [("Location", self.path)])
        elif fault == "stall":
            server.stalled.wait(PATIENCE * 2)
            self.close_connection = True
        else:
            self.part(file, version, data, headers, fault)

    def part(self, file, version, data, headers, fault):
        server, span, size = self.server, self.headers.get("Range"), len(data)
        condition = self.headers.get("If-Match")
        if condition and ("ETag", condition) not in headers:
            self.reply(412, b"")
            return
        if fault == "other version":
            data = bytes(len(data))
            headers = [("ETag", '"other"')] if dict(headers).get("ETag") else [("Last-Modified", "Thu, 01 Jan 2015 00:00:00 GMT")]
        if not span or fault == "whole":
            status, first, body = 200, 0, data
        else:
            first, last = span.partition("=")[2].split("-")
            first = int(first)
            body, status = data[first:int(last) + 1 if last else None], 206
            said = first + (512 if fault == "other range" else 0)
            headers = [*headers, ("Content-Range", f"bytes {said}-{said + len(body) - 1}/{size}")]
        if fault == "garbage":
            headers = [(name, "x" * 5000) for name, _ in headers]
        if fault in ("cut", "short range"):
            length = len(body) if fault == "cut" else len(body) // 2
            body = body[:len(body) // 2]
            self.close_connection = True
        else:
            length = len(body)
        self.send_response_only(status)
        self.send_header("Content-Length", str(length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(body)
                with server.lock:
                    server.sent[file, version] = server.sent.get((file, version), 0) + len(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the 5 of Python a connection may wait for a second, which is timeout=

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.faults, self.current, self.sent = threading.Lock(), [], {}, {}
        self.stalled = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/set/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*_)

    def put(self, file, version, samples, names):
        when = (DAY + datetime.timedelta(hours=version)).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"etag": [("ETag", f'"{file}{version}"')], "time": [("Last-Modified", when)],
                   "both": [("ETag", f'"{file}{version}"'), ("Last-Modified", when)], "weak": [("ETag", f'W/"{file}{version}"'), ("Last-Modified", when)]}
        with self.lock:
            self.current[file] = version, made(file, version, samples), headers[names]

    def end(self):
        self.stalled.set()
        self.shutdown()
        self.server_close()


# ---- histories ----

class Lateness(threading.Thread):
    """Does this machine let a thread wait for a processor for so long that timeout= may pass without a fault?"""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.ended = 0.0, threading.Event()
        self.start()

    def run(self):
        begun = time.monotonic()
        while not self.ended.wait(0.05):
            self.most, begun = max(self.most, time.monotonic() - begun), time.monotonic()

    def may_time_out(self):
        COUNTED["checks that a busy machine excused"] += self.most > 0.3
        return self.most > 0.3


def overwrite(file, choice):
    """Write into a file, which keeps its times. Mounts compare content once (docs/cache.md): of it only the count of drops changes."""
    before = os.stat(file)
    with open(file, "r+b") as f:
        f.seek(max(0, before.st_size - 8) if file.endswith(".content") else choice % (before.st_size + 1))
        f.write(choice.to_bytes(8)[:max(0, before.st_size - f.tell())])
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


class Mount:
    def __init__(self, daemon, versions):
        self.daemon, self.versions = daemon, versions  # of each file, since it began
        self.is_stopped = False


files, slots = st.sampled_from(FILES), st.integers(0, 1)


class Histories(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.mounts, self.cache_number, self.is_lossless = {}, 0, True
        self.server, self.lateness = Server(), Lateness()
        self.version, self.samples = dict.fromkeys(FILES, 0), dict.fromkeys(FILES, SAMPLES)
        subprocess.run(["rm", "-rf", CACHE, FILLER], check=True)
        os.mkdir(CACHE)

    @initialize(names=st.sampled_from(("etag", "time", "both", "weak")), keep=st.sampled_from(KEEPS))
    def serve(self, names, keep):
        self.names = names
        for file in FILES:
            self.server.put(file, 0, SAMPLES, names)
        self.mount(0, keep)

    # -- what happens elsewhere --

    @rule(file=files, grows=st.booleans())
    def change(self, file, grows):
        self.version[file] += 1
        self.samples[file] += 50 * grows
        for mount in self.mounts.values():
            mount.versions[file].append((self.version[file], self.samples[file]))
        self.server.put(file, self.version[file], self.samples[file], self.names)

    @rule(kind=st.sampled_from(FAULTS), n=st.integers(1, 3))
    def fault(self, kind, n):
        self.is_lossless = False
        with self.server.lock:
            self.server.faults += [kind] * n

    @rule(how=st.sampled_from(("cut", "grow", "remove", "empty", "overwrite", "old", "future")), choice=st.integers(0, 10**6))
    def damage(self, how, choice):
        found = sorted(file for file, _ in files_below(CACHE) if not file.endswith("/EPOCHFS"))
        if not found:
            return
        self.is_lossless = False
        file = found[choice % len(found)]
        with contextlib.suppress(OSError):  # it is gone, or the disk is full
            if how == "remove":
                os.unlink(file)
            elif how in ("old", "future"):  # times of a clock that was wrong
                os.utime(file, (0, 0) if how == "old" else (time.time() + 10**6,) * 2)
            elif how == "overwrite":  # and touch -r
                overwrite(file, choice)
            else:
                size = os.stat(file).st_size
                os.truncate(file, {"cut": choice % (size + 1), "grow": size + 4096, "empty": 0}[how])

    @precondition(lambda _: os.path.ismount(DISK))
    @rule(is_full=st.booleans())
    def fill(self, is_full):
        self.is_lossless = self.is_lossless and not is_full
        with open(FILLER, "wb", buffering=0) as f, contextlib.suppress(OSError):
            while is_full and f.write(bytes(4096)):
                pass

    # -- mounts --

    @rule(slot=slots, keep=st.sampled_from(KEEPS))
    def mount(self, slot, keep):
        if slot in self.mounts:
            return
        at = f"{PRIVATE}/m{slot}"
        os.makedirs(at, exist_ok=True)
        self.is_lossless = self.is_lossless and "=" not in keep.replace("prefetch=off", "")
        options = [f"retry_timeout={PATIENCE}", "timeout=1", f"cache_dir={CACHE}", "block_size=4K", "pair=off", *keep.split(",")]
        versions = {file: [(self.version[file], self.samples[file])] for file in FILES}
        began = time.monotonic()
        try:
            daemon = start(self.server.url, *filter(None, options), at=at, log=f"log.m{slot}")
        except AssertionError:
            if self.is_lossless:
                raise
            self.ends(began, f"a mount at slot {slot} that fails")
            return
        self.mounts[slot] = Mount(daemon, versions)

    @precondition(lambda self: self.mounts)
    @rule(slot=slots, kills=st.booleans())
    def unmount(self, slot, kills):
        mount = self.mounts.pop(slot, None)
        if not mount:
            return
        mount.daemon.send_signal(signal.SIGCONT)
        if kills:
            self.is_lossless = False
            mount.daemon.kill()
            mount.daemon.wait(DEADLINE)
            run("umount", mount.daemon.at)
        else:
            mount.daemon.terminate()
            assert mount.daemon.wait(DEADLINE) == 0, "exit code of the daemon"
        assert mount_type(mount.daemon.at) is None, "mounted after the end"

    @precondition(lambda self: self.mounts)
    @rule(slot=slots)
    def stop(self, slot):
        if slot in self.mounts:
            self.is_lossless = False
            self.mounts[slot].is_stopped = True
            self.mounts[slot].daemon.send_signal(signal.SIGSTOP)

    @precondition(lambda self: self.mounts)
    @rule(slot=slots)
    def go_on(self, slot):
        if slot in self.mounts:
            self.mounts[slot].is_stopped = False
            self.mounts[slot].daemon.send_signal(signal.SIGCONT)

    @rule(command=st.sampled_from(("stage", "info", "index")))
    def command(self, command):
        began = time.monotonic()
        done = subprocess.run([EPOCHFS, command, "-o", f"retry_timeout={PATIENCE},timeout=1,cache_dir={CACHE}", self.server.url],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, check=False)
        self.ends(began, command)
        self.is_lossless = self.is_lossless and command != "stage"  # it has blocks of another size
        assert done.returncode in (0, 1, 2, 4), f"{command}: exit code {done.returncode}: {done.stdout.decode()}"
        assert done.returncode == 0 or done.stdout, f"{command} fails without a word"

    # -- reads --

    def ends(self, began, what):
        took = time.monotonic() - began
        assert took < LIMIT, f"{what} took {took:.1f} s; expected less than {LIMIT}"

    def check(self, slot, file, path, samples_of):
        """Read a file of a mount: samples_of(n) are the samples that it has of n."""
        mount = self.mounts.get(slot)
        if not mount or mount.is_stopped:
            return
        began, error = time.monotonic(), None
        try:
            got = read_anew(mount.daemon.at, file, path)
            array = np.load(io.BytesIO(got)).reshape(-1, WORDS)
        except OSError as e:
            error = e.errno
        except ValueError as e:
            raise AssertionError(f"{file}/{path} is no .npy file: {e}") from e
        self.ends(began, f"a read of {file}/{path}")
        if error is None:
            for version, n in mount.versions[file]:
                if version_of(array, file, samples_of(n)) == version:
                    COUNTED["right"] += 1
                    return
            raise AssertionError(f"WRONG BYTES in {file}/{path}: words {array[:2, :4]}; versions {mount.versions[file]}")
        COUNTED[errno.errorcode[error]] += 1
        assert error in (errno.EIO, errno.ESTALE, errno.ENOENT, errno.EAGAIN, errno.ETIMEDOUT), errno.errorcode[error]
        if self.is_lossless and len(mount.versions[file]) == 1 and not self.lateness.may_time_out():
            raise AssertionError(f"{file}/{path}: {errno.errorcode[error]}, but the server did nothing")

    @precondition(lambda self: self.mounts)
    @rule(slot=slots, file=files, at=st.integers(0, SAMPLES - 1))
    def sample(self, slot, file, at):
        mount = self.mounts.get(slot)
        if mount and not mount.is_stopped:
            n = mount.versions[file][0][1]
            self.check(slot, file, f"samples/npy/{at:0{max(6, len(str(n - 1)))}}.data.npy", lambda n: [at])

    @precondition(lambda self: self.mounts)
    @rule(slot=slots, file=files, k=st.integers(0, SAMPLES // BATCH - 1))
    def batch(self, slot, file, k):
        self.check(slot, file, f"batches/batch={BATCH}/npy/{k:06}.data.npy", lambda n: range(k * BATCH, min(n, (k + 1) * BATCH)))

    @precondition(lambda self: self.mounts)
    @rule(slot=slots, file=files, seed=st.integers(0, 1), epoch=st.integers(0, 1))
    def epoch(self, slot, file, seed, epoch):
        plan = f"batch={BATCH * 4},seed={seed}"
        for k in range(4):
            self.check(slot, file, f"batches/{plan}/epoch={epoch}/npy/{k:06}.data.npy", lambda n: ORDER.batch_samples(n, plan, epoch, k))

    @precondition(lambda self: self.is_lossless)
    @rule()
    def once(self):
        with self.server.lock:
            all_sent = list(self.server.sent.items())
        for (file, version), sent in all_sent:
            size = len(made(file, version, self.samples[file])) + 2 * 4096  # the head is read before its blocks are
            assert sent <= size or self.lateness.may_time_out(), f"{sent} bytes of version {version} of {file} were sent; expected at most {size}"

    def teardown(self):
        error = sys.exc_info()[1]
        if error and not type(error).__module__.startswith("hypothesis"):  # one that does not come again is not shown otherwise
            print("wrong:", repr(error), file=sys.stderr, flush=True)
        for slot in list(self.mounts):
            self.unmount(slot, False)
        self.server.end()
        self.lateness.ended.set()


def main():
    examples, steps, seed = int(os.environ.get("HISTORIES", "60")), 30, int(os.environ.get("HISTORIES_SEED", "1"))
    print(f"{examples} histories of {steps} steps, seed {seed}", flush=True)
    settings = hypothesis.settings(max_examples=examples, stateful_step_count=steps, deadline=None, database=None, print_blob=False,
                                   suppress_health_check=list(hypothesis.HealthCheck))
    socket.setdefaulttimeout(DEADLINE)
    os.mkdir(DISK)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", DISK], stderr=subprocess.DEVNULL, check=False).returncode:
        print("not tested: a full disk, which needs a tmpfs")
    hypothesis.stateful.run_state_machine_as_test(hypothesis.seed(seed)(Histories), settings=settings)
    print("reads:", ", ".join(f"{n} {what}" for what, n in COUNTED.most_common()), flush=True)


if __name__ == "__main__":
    main()
