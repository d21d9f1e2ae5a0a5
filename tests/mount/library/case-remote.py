#!/usr/bin/python3
"""Four processes that load a remote source by the library and share a cache directory: two epochs, each byte is fetched once.
Signals interrupt them all the time.
A server that stops is an error with its reason."""

import os
import subprocess
import sys

import numpy as np

from lib import EPOCHFS, PRIVATE, SLOW, contains, equal, idx_bytes, skip
from page_blocks import ROOT
from servers import Nginx, check_once, place

if SLOW or not os.path.exists(f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

N = 4000
IMAGES = idx_bytes(np.random.default_rng(4).integers(0, 256, (N, 40, 40), np.uint8))
WWW = f"{PRIVATE}/www"
WORKER = f"""
import sys
sys.path.insert(0, {ROOT + '/python'!r})
import atexit, signal
import numpy as np, epochfs
signal.signal(signal.SIGALRM, lambda *_: None)  # without SA_RESTART
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)  # the end of the interpreter has no handler
url, rank, seconds = sys.argv[1:]
stored = np.frombuffer(open({WWW + '/big'!r}, 'rb').read()[16:], np.uint8).reshape({N}, 40, 40)
with epochfs.load(url, prefetch="off", retry_timeout=int(seconds)) as data:
    for epoch in range(2):
        for batch in data["big"].batches(f"batch=64,rank={{rank}}of4,seed=7", epoch=epoch):
            assert (stored[batch["index"]] == batch["image"]).all()
"""


def workers(url, seconds):
    """seconds: a retry limit; a server on a busy machine may send nothing for 2."""
    return [subprocess.Popen([sys.executable, "-c", WORKER, url, str(rank), str(seconds)], stderr=subprocess.PIPE, text=True) for rank in range(4)]


place(WWW, "big", IMAGES)
with Nginx(WWW) as server:
    for process in workers(f"{server.url}/", 60):
        said = process.communicate()[1]
        equal((process.returncode, said), (0, ""), "a worker")
    check_once(server.log(), {"/big": len(IMAGES)}, "4 workers, 2 epochs")
    url = f"{server.url}/"
os.environ["EPOCHFS_CACHE"] = f"{PRIVATE}/other"
for process in workers(url, 2):
    said = process.communicate()[1]
    equal(process.returncode, 1, "a worker without its server")
    contains(said, "MountError: ", url.split("//")[1].rstrip("/"))
