#!/usr/bin/python3
# slow: many files on servers
"""The list of a folder of many files next to the data, on a web server and on S3: the first mount of anybody fetches
it, looks at a few pages and versions, and asks for no other; one that is not current is ignored, and no sample
has the bytes of another version."""

import errno
import os
import random
import shutil

from fake_s3 import PAGE, FakeS3
from lib import CACHE, PRIVATE, contains, content, equal, expect_error, log_text, run, stop
from servers import Nginx, place, sha256sums, start_at

N, CLASSES, OLD = 4200, 20, 1600000000  # more than LISTING_KEPT
SAMPLES = 4  # of pages, and of versions
OUT = f"{PRIVATE}/out"


def path_of(i):
    return f"train/c{i % CLASSES:02d}/{i:05d}.jpg"


def data(i):
    return b"picture %d " % i * (1 + i % 50)


def sample(at, i):
    return content(at, "train/samples/raw", f"{i:05d}.jpg")


def check_some(at, but=()):
    for i in random.Random(1).sample(range(N), 40):
        if i not in but:
            equal(sample(at, i), data(i), f"sample {i}")


# ---- a web server ----

class Web:
    def __init__(self, root, sums):
        self.root, self.sums, self.turn = root, sums, 0
        for i in range(N):
            self.put(i, data(i), OLD)
        if sums:
            sha256sums(root)
        self.server = Nginx(root)

    def put(self, i, body, when):
        os.utime(place(self.root, path_of(i), body), (when, when))

    def mount(self, cache):
        """A mount, with the requests that it took: of .epochfs/, of pages and SHA256SUMS, of versions."""
        self.server.forget()
        daemon = start_at(cache, f"{self.server.url}/", f"cache={CACHE}.{cache}", "stage=off")
        os.listdir(f"{daemon.at}/train/samples/raw")
        log = self.server.log(data_only=False)
        ours = [r for r in log if "/.epochfs/" in r.path]
        pages = [r for r in log if r.path.endswith("/") or r.path.endswith("SHA256SUMS")]
        return daemon, len(ours), len(pages), sum(r.method == "HEAD" for r in log), len(log)

    def index(self):
        shutil.rmtree(OUT, ignore_errors=True)
        contains(run("index", f"{self.server.url}/", "-o", OUT, "-o", f"cache={CACHE}.index"), "1 index",
                 "and the list of files written")
        shutil.rmtree(f"{self.root}/.epochfs", ignore_errors=True)
        shutil.copytree(OUT, f"{self.root}/.epochfs")


def check_web(sums):
    name = "sums" if sums else "pages"
    web = Web(f"{PRIVATE}/{name}", sums)
    with web.server:
        daemon, ours, pages, heads, _ = web.mount(f"{name}-without")
        equal(heads, N, f"{name}: versions that are asked for without a list")
        stop(daemon)
        web.index()

        # The first mount fetches the list, and the one index; the next mount of that node neither.
        daemon, ours, pages, heads, all_ = web.mount(f"{name}-first")
        equal((ours, heads), (3, SAMPLES), f"{name}: files of .epochfs/, and versions")
        equal(pages <= SAMPLES + 2, True, f"{name}: {pages} pages")
        print(f"{name}: {all_} requests for {N} files")
        check_some(daemon.at)
        stop(daemon)
        equal("ignored" in log_text(f"log.{name}-first"), False, log_text(f"log.{name}-first"))
        daemon, ours, pages, heads, _ = web.mount(f"{name}-first")
        equal((ours, heads), (1, SAMPLES), f"{name}: again")
        stop(daemon)

        # A file that no sample of the check shows: ESTALE, and the next mount makes its own list.
        web.put(777, data(777)[::-1], OLD + 60)
        daemon, ours, pages, heads, _ = web.mount(f"{name}-stale")
        equal(ours, 3, f"{name}: files of .epochfs/")
        expect_error((errno.ESTALE, errno.EIO), sample, daemon.at, 777)
        check_some(daemon.at, (777,))
        stop(daemon)
        daemon, ours, pages, heads, _ = web.mount(f"{name}-stale")
        equal(heads >= N, True, f"{name}: {heads} versions after a stale file")
        if not sums:
            equal(sample(daemon.at, 777), data(777)[::-1], "after a remount")
        check_some(daemon.at, (777,))
        stop(daemon)

        # What the check does show: a new folder, or another SHA256SUMS, or the first file.
        web.put(777, data(777), OLD)
        place(web.root, "train/new/99999.jpg", b"new")
        if sums:
            sha256sums(web.root)
        os.utime(f"{web.root}/train", (OLD + 99, OLD + 99))
        web.put(0, data(0), OLD + 60)
        daemon, ours, pages, heads, _ = web.mount(f"{name}-changed")
        contains(log_text(f"log.{name}-changed"), "have changed since")
        equal(content(daemon.at, "train/samples/raw/99999.jpg"), b"new")
        check_some(daemon.at)
        stop(daemon)

        # Index pages, or a SHA256SUMS, in the place of the other.
        if sums:
            os.unlink(f"{web.root}/SHA256SUMS")
        else:
            sha256sums(web.root, *(path_of(i) for i in range(N - 1)))
        daemon, *_ = web.mount(f"{name}-other")
        contains(log_text(f"log.{name}-other"), "have changed since")
        equal(len(os.listdir(f"{daemon.at}/train/samples/raw")), N + sums - (not sums), "samples")
        stop(daemon)
        if sums:
            sha256sums(web.root)
        else:
            os.unlink(f"{web.root}/SHA256SUMS")

        # A list of other files, and a file that is no list.
        web.index()
        table = content(OUT, "index.txt")
        list_name = next(line.split()[3] for line in table.decode().splitlines() if line.startswith("listing"))
        good = content(OUT, list_name)
        for turn, body in (("cut", good[:-8]), ("zeros", bytes(len(good)))):
            with open(f"{web.root}/.epochfs/{list_name}", "wb") as f:
                f.write(body)
            daemon, *_ = web.mount(f"{name}-{turn}")
            contains(log_text(f"log.{name}-{turn}"), "SHA-256")
            check_some(daemon.at)
            stop(daemon)


# ---- S3 ----

def check_s3():
    many = {f"set/{path_of(i)}": data(i) for i in range(N)}

    def mount(s3, cache):
        lists, objects = s3.lists, s3.objects
        daemon = start_at(cache, "s3://data/set", f"anonymous,cache={CACHE}.{cache},stage=off")
        os.listdir(f"{daemon.at}/train/samples/raw")
        return daemon, s3.lists - lists, s3.objects - objects

    with FakeS3(many) as s3:
        os.environ["AWS_ENDPOINT_URL"] = s3.endpoint
        daemon, lists, objects = mount(s3, "s3-without")
        equal(lists >= N // PAGE, True, f"{lists} pages without a list")
        equal(objects, 1, "objects without a list: the table that is not there")
        stop(daemon)
        shutil.rmtree(OUT, ignore_errors=True)
        contains(run("index", "s3://data/set", "-o", OUT, "-o", f"anonymous,cache={CACHE}.s3-index"),
                 "and the list of files written")
        for name in os.listdir(OUT):
            s3.put(f"set/.epochfs/{name}", content(OUT, name))
        for turn, want in (("first", (SAMPLES + 1, 3)), ("again", (SAMPLES + 1, 1))):
            daemon, lists, objects = mount(s3, "s3-with")
            print(f"s3, {turn}: {lists} pages and {objects} objects for {N} files")
            equal(lists <= want[0] and objects == want[1], True, f"{turn}: {lists} pages, {objects} objects")
            check_some(daemon.at)
            stop(daemon)

        # An object that no page of the check has, one that is gone, and what a page shows.
        stale = next(i for i in range(N // 2, N) if i % CLASSES == CLASSES // 2)
        s3.put(f"set/{path_of(stale)}", data(stale)[::-1])
        daemon, *_ = mount(s3, "s3-stale")
        try:
            equal(sample(daemon.at, stale), data(stale)[::-1], "the new version")
        except OSError as e:
            equal(e.errno in (errno.ESTALE, errno.EIO), True, str(e))
        check_some(daemon.at, (stale,))
        stop(daemon)
        daemon, *_ = mount(s3, "s3-stale")
        equal(sample(daemon.at, stale), data(stale)[::-1], "after a remount")
        stop(daemon)
        s3.put(f"set/{path_of(0)}", b"the first")
        daemon, *_ = mount(s3, "s3-changed")
        contains(log_text("log.s3-changed"), "have changed since")
        equal(sample(daemon.at, 0), b"the first")
        stop(daemon)


check_web(False)
if os.environ.get("SANITIZED") != "thread":  # the threads do the same
    check_web(True)
check_s3()
