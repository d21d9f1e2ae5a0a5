#!/usr/bin/python3
"""A path with cache= is staged like a remote: each byte is read once, staged bytes of removed files
can still be read, and a changed file is an error, never a mixture."""

import errno
import gzip
import os
import shutil
import time

import numpy as np

import kaldi_dirs as kd
from lib import (PRIVATE, SOURCE, contains, content, equal, expect_error, idx_bytes, log_text,
                 mounted, path, run, small, start, status, stop, write)
from servers import error_of, place, read_anew, remote, wait_staged

rng = np.random.default_rng(31)
OLD = idx_bytes(rng.integers(0, 128, (2000, 45, 45), dtype=np.uint8))
NEW = idx_bytes(rng.integers(128, 256, (2000, 45, 45), dtype=np.uint8))
BLOCK = 16 << 10
CACHES = iter(range(100))


def fresh(*options):
    return ",".join([f"cache={PRIVATE}/cache.{next(CACHES)}", "block=16K", *options])


def check_same():
    """A mount with cache= shows what one without shows, and reads the source once."""
    images, labels = small(300, side=30)
    write("big-data", OLD)
    write("packed-data.gz", gzip.compress(OLD, mtime=0))
    full = kd.Folder(rng, "kaldi", 10, 2).write()
    options = fresh()
    for n in range(2):
        with mounted(SOURCE, options):
            equal(content(path("train/batches/batch=all/raw/000000.image.raw")) == images.tobytes(),
                  True, "images")
            equal(content(path("train/batches/batch=all/raw/000000.label.raw")), labels.tobytes(),
                  "labels")
            equal(content(path("big-data/source/big-data")) == OLD, True, "big-data")
            equal(content(path("packed-data/source/packed-data")) == OLD, True, "packed-data")
            kd.check(full.dataset(path("kaldi/all"))[0])
            r = wait_staged()
            fetched = r["demand_bytes"] + r["background_bytes"]
            equal(fetched, 0 if n else r["distinct_bytes"], f"mount {n}: bytes of the source read")
            equal(r["errors"], 0, "errors")
    with mounted(SOURCE):
        equal("remote" in status(), False, "no cache=: read in place")
    for url in (f"file://{SOURCE}", SOURCE):
        with mounted(f"{url}/big-data", fresh()):
            equal(content(path("big-data/source/big-data")) == OLD, True, url)
            equal(wait_staged()["total_bytes"], len(OLD), f"{url} is staged")


def check_gone():
    """The source is removed: staged bytes are served, the rest is ESTALE (or EIO)."""
    shutil.rmtree(SOURCE)
    write("here-data", OLD)
    write("there-data", NEW)
    options = fresh("stage=off", "patience=1")
    daemon = start(SOURCE, options)
    equal(read_anew(path("here-data/source/here-data")) == OLD, True, "staged")
    read_anew(path("there-data/source/there-data"), size=4096)
    os.rename(SOURCE, f"{SOURCE}.away")
    equal(read_anew(path("here-data/source/here-data")) == OLD, True, "staged, the source is gone")
    equal(read_anew(path("here-data/samples/raw/001999.image.raw")), OLD[-2025:], "a sample")
    equal(len(os.listdir(path("there-data/samples/raw"))), 2000, "listings answer")
    expect_error((errno.ESTALE, errno.EIO), read_anew, path("there-data/source/there-data"),
                 size=4096, offset=3_400_000)
    os.rename(f"{SOURCE}.away", SOURCE)
    os.unlink(f"{SOURCE}/here-data")
    equal(read_anew(path("here-data/source/here-data")) == OLD, True, "staged, the file is gone")
    stop(daemon)
    with mounted(SOURCE, options):
        equal(content(path("there-data/source/there-data")) == NEW, True, "it is back")


def check_changed():
    """Another version: ESTALE and a log line for missing bytes; the next mount has the new
    version."""
    for what in ("rewritten", "replaced", "cut", "touched"):
        shutil.rmtree(SOURCE)
        write("one-data", OLD)
        options = fresh("stage=off", "patience=1")
        file = path("one-data/source/one-data")
        daemon = start(SOURCE, options, log=f"log.{what}")
        equal(read_anew(file, size=4096) == OLD[:4096], True, "staged in part")
        st = os.stat(f"{SOURCE}/one-data")
        if what == "replaced":
            place(PRIVATE, "other", NEW)
            os.rename(f"{PRIVATE}/other", f"{SOURCE}/one-data")
        elif what == "cut":
            os.truncate(f"{SOURCE}/one-data", 1000)
        elif what == "rewritten":
            with open(f"{SOURCE}/one-data", "r+b") as f:
                f.write(NEW)
        if what in ("rewritten", "touched"):
            os.utime(f"{SOURCE}/one-data", ns=(st.st_atime_ns, st.st_mtime_ns + 1_000_000))
        equal(read_anew(file, size=4096) == OLD[:4096], True, f"{what}: what is staged")
        errors = 0
        for off in range(0, len(OLD), 200_000):
            e = error_of(read_anew, file, size=4096, offset=off)
            equal(e in (0, errno.ESTALE), True, f"{what}: errno at {off}: {e}")
            if not e:
                equal(read_anew(file, size=4096, offset=off) == OLD[off:off + 4096], True,
                      f"{what}: bytes at {off}")
            errors += bool(e)
        equal(errors > 5, True, f"{what}: {errors} reads failed")
        contains(log_text(f"log.{what}"), "one-data")
        stop(daemon)
        if what in ("rewritten", "replaced"):
            with mounted(SOURCE, options):
                equal(content(file) == NEW, True, f"{what}: the next mount has the new version")


def check_options():
    """stage=off, rate= and jobs= of a path; invalid values."""
    shutil.rmtree(SOURCE)
    write("big-data", OLD)
    with mounted(SOURCE, fresh("stage=off")):
        content(path("big-data/samples/raw/001000.image.raw"))
        r = remote()
        equal((r["background_bytes"], r["demand_bytes"] <= 5 * BLOCK), (0, True),
              f"one sample: {r}")
    with mounted(SOURCE, fresh("rate=100K")):
        equal(content(path("big-data/source/big-data")) == OLD, True, "demand has no limit")
    # A second's worth, and a piece, may come at once.
    write("big-data", idx_bytes(rng.integers(0, 256, (4000, 32, 32), dtype=np.uint8)))
    begin = time.monotonic()
    with mounted(SOURCE, fresh("rate=1M")):
        wait_staged()
    seconds = time.monotonic() - begin
    equal(seconds > 1.5, True, f"4 MB in {seconds:.2f} s with rate=1M")
    for bad in ("block=3K", "block=512K", "block=100K", "jobs=0", "jobs=x", "keep=all", "rate=fast",
                "cache_size=0", "cache_size=200%", "stage=maybe", "patience=x", "timeout=0"):
        said = run("mount", "-o", f"{fresh()},{bad}", SOURCE, path(), code=1)
        contains(said, bad.partition("=")[0])


check_same()
check_gone()
check_changed()
check_options()
