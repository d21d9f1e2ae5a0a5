#!/usr/bin/python3
# slow: starts reads that take hours
"""Reads that take hours (the checksum of a huge archive) block no other reads, and end on
request."""

import os
import signal
import subprocess
import time

from lib import DEADLINE, MOUNTPOINT, equal, idx_header, path, skip, start, status, write
from servers import wait_until

READERS = 16  # more than the daemon has serving threads
NAME = "huge-5-bytes"
SAMPLES = 4_000_000_000


def reads():
    return status()["requests"]["read"]


file = write(NAME, idx_header(8, (SAMPLES, 5)))
try:
    os.truncate(file, os.path.getsize(file) + 5 * SAMPLES)
except OSError as error:
    skip(f"no sparse file of 20 GB: {error}")
daemon = start()
before = reads()
readers = []
for seed in range(READERS):
    archive = path(NAME, f"batches/batch=all,seed={seed}/epoch=0/npz/000000.npz")
    readers.append(subprocess.Popen(["cat", archive], stdout=subprocess.DEVNULL))
wait_until(lambda: reads() >= before + READERS, "all readers wait for their first bytes")

# Everything else answers, including files not read before.
begin = time.monotonic()
for i in range(100):
    with open(path(NAME, f"samples/raw/{i * 31_000_000:010d}.data.raw"), "rb") as sample:
        equal(sample.read(), bytes(5), "a sample")
equal(time.monotonic() - begin < DEADLINE, True, "100 samples during slow reads, seconds")
equal([r.poll() for r in readers], [None] * READERS, "the readers still wait")

for reader in readers[:8]:
    reader.send_signal(signal.SIGINT)
for reader in readers[8:]:
    reader.kill()
for reader in readers:
    reader.wait(DEADLINE)

# The daemon ends even with slow reads under way that no reader waits for any more.
daemon.terminate()
daemon.wait(DEADLINE)
equal(os.path.ismount(MOUNTPOINT), False, "mounted after the end")
