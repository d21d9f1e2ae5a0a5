#!/usr/bin/python3
"""Everything at once, see tests/soak. Not a case: it never ends by itself."""

import contextlib
import glob
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np

import order_reference
from lib import DEADLINE, EPOCHFS, PRIVATE, equal, idx_bytes, log_text, mount_type, run
from push import by_pages, compute, whole
from servers import MiB, Nginx, ended, locks_in, pidfd, place, read_anew, start_at

ROUND = 30  # seconds that a mount lives
PATIENCE = 10  # seconds that its end may take, with a sanitizer on a busy machine
WWW = f"{PRIVATE}/www"
CACHE = f"{PRIVATE}/cache"
READERS = 7


# ---- the model ----

class Model:
    """The expected files of the mount."""

    def __init__(self):
        self.ref = order_reference.load()
        rng = np.random.default_rng(17)
        self.image = rng.integers(0, 256, (20000, 30, 30), dtype=np.uint8)
        self.label = rng.integers(0, 10, 20000, dtype=np.uint8)
        self.data = rng.standard_normal((3000, 700)).astype(np.float32)

    def write(self):
        place(WWW, "set/train-images-idx3-ubyte", idx_bytes(self.image))
        place(WWW, "set/train-labels-idx1-ubyte", idx_bytes(self.label))
        place(WWW, "wide-data", idx_bytes(self.data))

    def n(self, name):
        return len(self.arrays(name)["index"])

    def arrays(self, name):
        if name == "wide-data":
            return {"data": self.data, "index": np.arange(len(self.data))}
        return {"image": self.image, "label": self.label, "index": np.arange(len(self.image))}

    def check(self, got, name, samples, field, kind):
        """got: the bytes of a file of these samples; field: "" for all in one."""
        arrays = self.arrays(name)
        if kind == "npz":
            with np.load(io.BytesIO(got)) as z:
                return all(np.array_equal(z[f], arrays[f][samples]) for f in arrays)
        want = arrays[field][samples]
        if kind == "npy":
            return np.array_equal(np.load(io.BytesIO(got)), want)
        return got == want.astype(want.dtype.newbyteorder(">")).tobytes()


# ---- readers ----

class Reader:
    """A process that reads until it is ended. A wrong byte, or an error before the mount's end has
    begun, is its failure."""

    def __init__(self, at, seed, ending):
        self.at, self.ending = at, ending
        self.rng = random.Random(seed)
        self.model = Model()
        self.files = 0

    def fail(self, what):
        sys.exit(f"reader of {self.at}: {what}, after {self.files} files")

    def read(self, file):
        way = self.rng.random()
        if way < 0.2:
            return by_pages(file, self.rng) if os.stat(file).st_size else b""
        if way < 0.25:
            fd = os.open(file, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        return whole(file)

    def check(self, folder, number, name, samples, kind):
        fields = {"npz": [""], "npy": list(self.model.arrays(name)),
                  "raw": [f for f in self.model.arrays(name) if f != "index"]}[kind]
        for field in fields:
            file = f"{folder}/{number:06d}{'.' + field if field else ''}.{kind}"
            got = self.read(file)
            self.files += 1
            if not self.model.check(got, name, samples, field, kind):
                self.fail(f"WRONG BYTES in {file}")

    def plan(self):
        """Few of them, so that readers meet in one."""
        rng = self.rng
        plan = f"batch={rng.choice([8, 32, 32, 100, 2500])}"
        if rng.random() < 0.5:
            plan += f",rank={rng.randrange(2)}of2"
        plan += f",seed={rng.randrange(2)}"
        if rng.random() < 0.3:
            plan += ",shuffle=window:500"
        return plan, rng.randrange(3)

    def batches(self):
        rng, ref = self.rng, self.model.ref
        name, kind = rng.choice(["train", "wide-data"]), rng.choice(["raw", "npy", "npz"])
        plan, epoch = self.plan()
        n, count = self.model.n(name), ref.batch_count(self.model.n(name), plan)
        below = "set/train" if name == "train" else name
        folder = f"{self.at}/{below}/batches/{plan}/epoch={epoch}/{kind}"
        if rng.random() < 0.3:
            os.listdir(folder)
        at = rng.choice([0, rng.randrange(count)])
        stride = rng.choice([1, 1, 4])
        pause = rng.choice([0, 0.002, 0.01])
        jumps = rng.random() < 0.2
        for _ in range(rng.randrange(20, 150)):
            samples = ref.batch_samples(n, plan, epoch, at % count)
            self.check(folder, at % count, name, samples, kind)
            at = rng.randrange(count) if jumps and rng.random() < 0.1 else at + stride
            if pause:
                compute(pause)

    def samples(self):
        name = self.rng.choice(["train", "wide-data"])
        below, n = ("set/train" if name == "train" else name), self.model.n(name)
        kind, at = self.rng.choice(["raw", "npy"]), self.rng.randrange(n)
        chance = self.rng.random() < 0.3
        for _ in range(200):
            fields = [f for f in self.model.arrays(name) if f != "index"]
            field = self.rng.choice(fields[:1] + fields)
            file = f"{self.at}/{below}/samples/{kind}/{at:06d}.{field}.{kind}"
            if not self.model.check(self.read(file), name, at, field, kind):
                self.fail(f"WRONG BYTES in {file}")
            self.files += 1
            at = self.rng.randrange(n) if chance else (at + 1) % n

    def sources(self):
        want = idx_bytes(self.model.data)
        fd = os.open(f"{self.at}/wide-data/source/wide-data", os.O_RDONLY)
        for _ in range(50):
            off, size = self.rng.randrange(len(want)), self.rng.randrange(1 << 18)
            size = min(size, len(want) - off)
            got = os.pread(fd, size, off)
            while len(got) < size:  # the bytes before an error; then the error is reported
                more = os.pread(fd, size - len(got), off + len(got))
                if not more:
                    self.fail(f"the source ends at {off + len(got)}")
                got += more
            if got != want[off:off + size]:
                wrong = next(i for i in range(size) if got[i] != want[off + i])
                self.fail(f"WRONG BYTES in the source at {off + wrong}, read from {off} on")
        os.close(fd)

    def looks(self):
        """Listings, attributes, the live texts."""
        plan, epoch = self.plan()
        for folder in ("", "set/train/batches", f"set/train/batches/{plan}/epoch={epoch}/npy",
                       "wide-data/samples/npz"):
            found = os.listdir(f"{self.at}/{folder}")
            for entry in self.rng.sample(found, min(len(found), 20)):
                os.stat(f"{self.at}/{folder}/{entry}")
        for _ in range(20):
            json.loads(whole(f"{self.at}/.epochfs/status.json"))
            whole(f"{self.at}/.epochfs/metrics")
            compute(0.01)

    def go_on(self):
        while True:
            way = self.rng.choices([self.batches, self.samples, self.sources, self.looks],
                                   [8, 2, 1, 1])[0]
            try:
                way()
            except (OSError, ValueError) as e:
                if os.path.exists(self.ending):
                    return
                self.fail(f"{e!r} before the end")


# ---- mounts ----

class Mount:
    """A mount with its readers, and how it ends."""

    def __init__(self, soak, number, url, keep, readers=READERS):
        self.soak, self.name = soak, f"mount{number}"
        options = f"cache={CACHE},keep={keep},cache_size={soak.cache_size}," \
            f"ahead={soak.rng.choice(['1M', '16M', '256M'])},block=64K,patience=60," \
            "plan=batch=32+seed=0,plan=batch=32+rank=1of2+seed=1"
        self.daemon = start_at(self.name, f"{url}/", options)
        self.ending = f"{PRIVATE}/ending.{number}"
        self.readers = [self.new_reader() for _ in range(readers)]
        self.fd = os.pidfd_open(self.daemon.pid)

    def new_reader(self):
        words = [sys.executable, __file__, self.daemon.at, str(self.soak.rng.randrange(1 << 40)),
                 self.ending]
        return subprocess.Popen(words, stderr=self.soak.reader_log)

    def look(self):
        """Check that all is well; kill a reader now and then."""
        equal(self.daemon.poll(), None, f"{self.name}: exit code {log_text(f'log.{self.name}')}")
        for i, reader in enumerate(self.readers):
            code = reader.poll()
            if code is not None:
                self.soak.reader_failed(code)
                self.readers[i] = self.new_reader()
        if self.soak.rng.random() < 0.2:
            i = self.soak.rng.randrange(len(self.readers))
            self.readers[i].kill()
            self.readers[i].wait(DEADLINE)
            self.readers[i] = self.new_reader()

    def kill_readers(self):
        for reader in self.readers:
            reader.kill()
            reader.wait(DEADLINE)

    def end(self, way):
        place(PRIVATE, os.path.basename(self.ending), b"")
        if way == "umount":
            self.kill_readers()
            run("umount", self.daemon.at)
        elif way == "lazy":
            subprocess.run(["umount", "-l", self.daemon.at], check=True)
            self.kill_readers()
        else:
            self.daemon.send_signal(way)
        begin = time.monotonic()
        if not ended(self.fd, PATIENCE):
            subprocess.run(["umount", "-f", "-l", self.daemon.at], check=False)
            raise AssertionError(f"{self.name}: no end by {way} in {PATIENCE} s")
        code, took = self.daemon.wait(), time.monotonic() - begin
        os.close(self.fd)
        equal(code, -way if way == signal.SIGKILL else 0, f"{self.name}: exit code by {way}")
        if way == signal.SIGKILL:
            subprocess.run(["umount", "-l", self.daemon.at], check=True)
        equal(mount_type(self.daemon.at), None, f"{self.name}: mounted after {way}")
        for reader in self.readers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                reader.wait(0.5)
            reader.kill()
            code = reader.wait(DEADLINE)
            if code not in (0, -signal.SIGKILL, -signal.SIGBUS):  # a mapping, and no mount
                self.soak.reader_failed(code)
        return took


class Lasting:
    """A mount that lives as long as the soak: it must not grow.

    Its memory: what it keeps (docs/internals/memory.md) must stay below the limits that status.json says, all
    of it. The rest must not grow with its READ requests; it is compared with the rest after the
    first round, when all its threads have worked. Its descriptors at the end are compared with
    their maximum while it settled."""

    SETTLED = 120  # seconds
    FILES_MORE = 16  # allowance for chance, as readers come and go
    READS = 2000  # in each round, besides those of its readers
    MORE, PER_READ = 6 * MiB, 64  # bytes by which the rest may grow: for chance, and for each READ
    BESIDE = 24 * MiB  # resident besides what is allocated: code, libraries, stacks
    UNUSED = 8 * MiB  # freed and not used again, and a quarter of all allocated bytes

    def __init__(self, mount, model):
        self.mount, self.model, self.begin = mount, model, time.monotonic()
        self.settled, self.first = 0, None

    def files(self):
        """The number of its descriptors; 0 if we may not count them."""
        with contextlib.suppress(PermissionError):
            return len(os.listdir(f"/proc/{self.mount.daemon.pid}/fd"))
        return 0

    def look(self):
        self.mount.look()
        if time.monotonic() - self.begin <= self.SETTLED:
            self.settled = max(self.files(), self.settled)

    def read(self):
        for number in self.mount.soak.rng.choices(range(len(self.model.data)), k=self.READS):
            file = f"{self.mount.daemon.at}/wide-data/samples/raw/{number:06d}.data.raw"
            if not self.model.check(read_anew(file), "wide-data", number, "data", "raw"):
                raise AssertionError(f"WRONG BYTES in {file}")

    def check_memory(self):
        found = json.loads(whole(f"{self.mount.daemon.at}/.epochfs/status.json"))
        memory, reads = found["memory"], found["requests"]["read"]
        rest = memory["allocated_bytes"] - memory["kept_bytes"]
        self.first = self.first or (rest, reads)
        kept = [(k["what"], k["bytes"] >> 10, k["limit_bytes"] >> 10) for k in memory["kept"]]
        print(f"after {time.monotonic() - self.begin:.0f} s and {reads} READs the lasting mount has "
              f"{memory['resident_bytes'] / MiB:.1f} MiB of memory; allocated "
              f"{memory['allocated_bytes'] / MiB:.1f}, of which it keeps "
              f"{memory['kept_bytes'] / MiB:.1f}, the rest is {rest / MiB:.1f} (after its first "
              f"round {self.first[0] / MiB:.1f}); unused {memory['unused_bytes'] / MiB:.1f}; "
              f"{self.files()} descriptors (at first {self.settled}); kept, and limits, in KiB: "
              f"{kept}", flush=True)
        if os.environ.get("SOAK_PRESET") in ("asan", "tsan"):  # which allocate by themselves
            return
        for what, size, limit in kept:
            equal(size <= limit, True, f"{what} that it keeps: {size} KiB")
        equal(rest <= self.first[0] + self.MORE + self.PER_READ * (reads - self.first[1]), True,
              f"memory that it took beside what it keeps: {rest} bytes, at first {self.first[0]}")
        equal(memory["unused_bytes"] <= self.UNUSED + memory["allocated_bytes"] // 4, True,
              "memory that is freed and not used again")
        equal(memory["resident_bytes"] <=
              memory["allocated_bytes"] + memory["unused_bytes"] + self.BESIDE, True,
              "memory that is not allocated")

    def report(self):
        self.read()
        self.check_memory()

    def end(self):
        self.report()
        equal(self.files() <= self.settled + self.FILES_MORE, True, "descriptors that it took")
        self.mount.end(signal.SIGTERM)


class Soak:
    def __init__(self, minutes, seed):
        self.rng = random.Random(seed)
        self.until = time.monotonic() + 60 * minutes
        self.rounds, self.longest = 0, 0
        self.reader_log = open(f"{PRIVATE}/readers", "ab")  # pylint: disable=consider-using-with
        self.model = Model()
        self.model.write()
        size = sum(os.path.getsize(f) for f in glob.glob(f"{WWW}/**", recursive=True)
                   if os.path.isfile(f))
        self.cache_size = f"{max(size // 2, 8 * MiB)}"
        self.keeps = os.environ.get("SOAK_KEEP", "pin,once").split(",")

    def reader_failed(self, code):
        with open(f"{PRIVATE}/readers", encoding="utf-8", errors="replace") as f:
            raise AssertionError(f"a reader failed, exit code {code}: {f.read()[-4000:]}")

    def disturb(self, server):
        """The server is slow, or away for a moment."""
        chance = self.rng.random()
        if chance < 0.05:
            server.stall()
            compute(self.rng.random())
            server.resume()
        elif chance < 0.07:
            server.stop()
            compute(self.rng.random())
            server.start()

    def round(self, server, lasting):
        keep = self.rng.choice(self.keeps)
        mounts = [Mount(self, 2 * self.rounds + i, server.url, keep)
                  for i in range(self.rng.choice([1, 1, 2]))]
        until = min(time.monotonic() + ROUND, max(self.until, time.monotonic() + 5))
        with pidfd(os.getpid()) as fd:
            while time.monotonic() < until:
                for mount in [*mounts, lasting]:
                    mount.look()
                self.disturb(server)
                ended(fd, 0.5)
        for mount in mounts:
            ways = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL, "umount"]
            way = self.rng.choice(ways + (["lazy"] if os.geteuid() == 0 else []))
            if self.rng.random() < 0.3:
                server.stall()
            took = mount.end(way)
            server.resume()
            self.longest = max(self.longest, took)
            print(f"round {self.rounds}: keep={keep}, ended by {way} in {took:.2f} s", flush=True)
        lasting.report()
        run("cache", "verify", CACHE)
        self.rounds += 1

    def go_on(self):
        with Nginx(WWW, limit_rate=20_000_000) as server:
            lasting = Lasting(Mount(self, "lasting", server.url, "pin", readers=2),
                              self.model)
            while time.monotonic() < self.until:
                self.round(server, lasting)
            lasting.end()
        equal(locks_in(CACHE), [], "locks that are left")
        print(f"{self.rounds} rounds, the longest end took {self.longest:.2f} s")


def main():
    assert EPOCHFS
    minutes = float(os.environ.get("SOAK_MINUTES", "1"))
    seed = int(os.environ.get("SOAK_SEED", random.randrange(1 << 30)))
    print(f"SOAK_SEED={seed}", flush=True)
    Soak(minutes, seed).go_on()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        Reader(sys.argv[1], int(sys.argv[2]), sys.argv[3]).go_on()
    else:
        main()
