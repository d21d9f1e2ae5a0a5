"""A small file on the bad server, mounted for one kind of failure: what remote/case-bad.py and
remote/case-lasting.py share."""

import errno
import shutil
import time

import numpy as np

from lib import PRIVATE, contains, content, equal, idx_bytes, log_text, path, start, stop
from servers import error_of, place, read_anew, took

WWW = f"{PRIVATE}/www"
# 4 MB; a mount itself reads only the beginning.
DATA = idx_bytes(np.random.default_rng(9).integers(0, 256, (4000, 32, 32), dtype=np.uint8))
OTHER = DATA[:16] + bytes(b ^ 0x55 for b in DATA[16:])  # another version, of the same size
BLOCK = 16 << 10
FILE = "/data/file-one"
PATIENCE, TIMEOUT = 2, 1
CLEAR = (errno.EIO, errno.ESTALE, errno.EACCES)
place(WWW, FILE[1:], DATA)


class Try:
    """A mount of the file with its own cache folder. before: scripts to set before the mount:
    (path, action, arguments). options: of the mount, instead of the defaults here."""

    count = 0

    def __init__(self, server, what, options=None, before=(), source=FILE):
        Try.count += 1
        self.server, self.what = server, what
        server.healthy()
        for script in before:
            server.script(*script[:2], **(script[2] if len(script) > 2 else {}))
        self.cache = (options or {}).get("cache", f"{PRIVATE}/c{Try.count}")
        self.log = f"log.{Try.count}"
        self.source = server.url + source
        words = {"cache": self.cache, "block": BLOCK, "jobs": 4, "patience": PATIENCE,
                 "timeout": TIMEOUT, "stage": "off"}
        words.update(options or {})
        self.options = ",".join(f"{k}={v}" for k, v in words.items() if v is not None)
        server.forget()

    def __enter__(self):
        self.daemon = start(self.source, self.options, log=self.log)
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.daemon.kill()
            self.daemon.wait()
            print(f"in: {self.what}; the server's log:",
                  [(r.method, r.status, r.range, r.sent) for r in self.server.logged[-12:]])
            print(f"the daemon's: {log_text(self.log)[-2000:]}")
            return
        stop(self.daemon)
        shutil.rmtree(self.cache)

    def check(self, what="", anew=True):
        """All of it is right."""
        file = path("file-one/source/file-one")
        got = read_anew(file) if anew else content(file)
        equal(got == DATA, True, f"{self.what}: the bytes{what}")
        equal(content(path("file-one/samples/raw/003999.image.raw")), DATA[-1024:], self.what)

    def fails(self, *wants, off=0, limit=None):
        """A read of the block at off fails in time."""
        begin = time.monotonic()
        e = error_of(read_anew, path("file-one/source/file-one"), size=4096, offset=off)
        seconds = time.monotonic() - begin
        equal(e in (wants or CLEAR), True,
              f"{self.what}: a read fails; errno {errno.errorcode.get(e, e)}")
        took(seconds, f"{self.what}: a read that fails", limit or PATIENCE + TIMEOUT + 10)

    def right_or_error(self):
        """Piece by piece: right bytes or a clear error. Returns how many failed."""
        errors = 0
        for off in range(0, len(DATA), 512 << 10):
            try:
                got = read_anew(path("file-one/source/file-one"), size=4096, offset=off)
            except OSError as e:
                equal(e.errno in CLEAR, True, f"{self.what}: {e}")
                errors += 1
                break  # each takes `patience`
            equal(got == DATA[off:off + 4096], True, f"{self.what}: bytes at {off}")
        return errors


def mounts_or_says(t):
    """Is it mounted? If not, a message must say why."""
    try:
        t.__enter__()
        return True
    except AssertionError as e:
        contains(str(e), "the daemon ended before it mounted")
        contains(log_text(t.log), "file-one")
        return False
