#!/usr/bin/python3
"""The bars of token streams (bench/groups/tokens.sh): tokens_bars.py BAR

Prints the rows of the table as cache_bars.py does.
"""

import concurrent.futures
import http.client
import os
import statistics
import struct
import sys
import time

import numpy as np

from bars import FAST, ROUNDS, WWW, Far, empty, mount, ratio, row, say
from fake_s3 import ROW
from lib import PRIVATE, equal
from servers import Nginx, remote

T, B = 1024, 64  # tokens of a window without its last, windows of a batch
BATCHES = 300
CACHE = f"{PRIVATE}/cache"


def make(path, tokens):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        for at in range(0, tokens, 1 << 24):
            f.write(np.random.default_rng(at).integers(0, 50257, min(1 << 24, tokens - at), "u2").tobytes())


def nanogpt(path):
    """Batches as nanoGPT's get_batch() makes them: windows anywhere, by a map of the file."""
    import torch
    for _ in range(BATCHES):
        data = np.memmap(path, dtype=np.uint16, mode="r")
        at = torch.randint(len(data) - T, (B,))
        x = torch.stack([torch.from_numpy(data[i:i + T].astype(np.int64)) for i in at])
        y = torch.stack([torch.from_numpy(data[i + 1:i + 1 + T].astype(np.int64)) for i in at])
        equal((x.shape, y.shape), ((B, T), (B, T)), "a batch")


def as_torch(tokens):
    import torch
    wide = torch.from_numpy(tokens.astype(np.int64))
    equal(wide[:, :-1].shape, (B, T), "a batch")
    return wide[:, :-1], wide[:, 1:]


def read_raw(epoch):
    for b in range(BATCHES):
        as_torch(np.fromfile(f"{epoch}/raw/{b:06d}.tokens.raw", "<u2").reshape(B, T + 1))


def read_npz(epoch):
    for b in range(BATCHES):
        with np.load(f"{epoch}/npz/{b:06d}.npz") as batch:
            as_torch(batch["tokens"])


def timed(function, *arguments):
    begin = time.monotonic()
    function(*arguments)
    return time.monotonic() - begin


def rate(times):
    return f"{BATCHES * B * T / 1e6 / statistics.median(times):.0f} M tokens/s"


def bar_batches():
    import torch
    torch.set_num_threads(1)
    path = f"{PRIVATE}/tokens/train.bin"
    make(path, 1 << 27)
    for kind, read in (("raw", read_raw), ("npz", read_npz)):
        theirs, first, warm = [], [], []
        with mount(os.path.dirname(path), f"seq_len={T},token_dtype=uint16") as daemon:
            for i in range(ROUNDS):
                epoch = f"{daemon.at}/train.bin/batches/batch={B},seed=7/epoch={i}"
                theirs.append(timed(nanogpt, path))
                first.append(timed(read, epoch))
                warm.append(timed(read, epoch))
        row(f"shuffled {B} x {T + 1} uint16, {kind}, first pass", rate(first), f"np.memmap {rate(theirs)}",
            ratio(theirs, first), ">=", 1.0)
        row(f"the same, warm, {kind}", rate(warm), f"np.memmap {rate(theirs)}", ratio(theirs, warm), ">=", 2.0)


def ask_windows(far, order, jobs):
    """Each window by a request of its own range, jobs at once, over connections that are kept."""
    def work(part):
        connection = http.client.HTTPConnection("127.0.0.1", far.ports[0])
        for k in part:
            connection.request("GET", "/train.bin", headers={"Range": f"bytes={2 * T * k}-{2 * T * k + 2 * T + 1}"})
            equal(len(connection.getresponse().read()), 2 * T + 2, "a window")
        connection.close()

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, [order[j::jobs] for j in range(jobs)]))


def bar_far():
    n = 1 << 22  # 8 MB: a request for each of 4,095 windows takes 21 s
    make(f"{WWW}/train.bin", n)
    windows, ours, theirs = (n - 1) // T, [], []
    order = np.random.default_rng(1).permutation(windows).tolist()
    with Nginx(WWW, more=FAST) as server:
        for _ in range(min(ROUNDS, 3)):
            empty(CACHE)
            with Far(server, 100e6, delay=0.02) as far:
                begin = time.monotonic()
                with mount(f"{far.urls[0]}/train.bin", f"cache_dir={CACHE},seq_len={T},token_dtype=uint16") as daemon:
                    epoch = f"{daemon.at}/train.bin/batches/batch={B},seed=7/epoch=0/raw"
                    seen = sum(os.path.getsize(f"{epoch}/{name}") > 0 and len(open(f"{epoch}/{name}", "rb").read())
                               for name in sorted(os.listdir(epoch)))
                    ours.append(time.monotonic() - begin)
                equal(seen, windows * (2 * T + 2), "bytes of the epoch")
                say("requests", far.seen())
            with Far(server, 100e6, delay=0.02) as far:
                theirs.append(timed(ask_windows, far, order, 8))
    row("first epoch from HTTP, 100 MB/s, 20 ms", f"{statistics.median(ours):.2f} s",
        f"a range a window, 8 at once {statistics.median(theirs):.2f} s", ratio(ours, theirs), "<=", 0.5)


def memory_kb(pid, name="RssAnon"):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(name))


def first_batch(source, *options, rank="rank=3of8"):
    """Seconds until mounted, and until the first batch of a rank in a late epoch was read; memory in kB."""
    begin = time.monotonic()
    with mount(source, *options) as daemon:
        mounted = time.monotonic() - begin
        folder = f"{daemon.at}/all/batches/batch={B},{rank},seed=7/epoch=11/npz"
        with os.scandir(folder) as entries:
            name = next(entries).name
        with open(f"{folder}/{name}", "rb") as f:
            equal(len(f.read()) > B * (T + 1) * 2, True, "a batch")
        took = time.monotonic() - begin
        requests = remote(daemon.at)["requests"] if "://" in source else 0
        return mounted, took, memory_kb(daemon.pid), requests


def bar_start():
    folder = f"{PRIVATE}/sparse"
    os.makedirs(folder)
    for i in range(1000):
        with open(f"{folder}/part_{i:06d}.bin", "wb") as f:
            f.truncate(2 * 10**9)
    empty(CACHE)
    os.makedirs(CACHE, 0o700)
    os.environ["EPOCHFS_CACHE"] = CACHE
    found = [first_batch(folder, f"seq_len={T},token_dtype=uint16") for _ in range(ROUNDS)]
    row("first batch of a rank, 10^12 tokens in 1,000 files", f"{statistics.median(f[1] for f in found):.2f} s", "1 s",
        statistics.median(f[1] for f in found), "<=", 1)
    row("memory for that", f"{max(f[2] for f in found) / 1024:.1f} MiB", "16 MiB",
        max(f[2] for f in found) / 1024 / 16, "<=", 1)
    written = sum(len(files) for _, _, files in os.walk(CACHE))
    row("files written for that", f"{written}", "none", written, "<=", 0)


def make_pairs(folder, pairs, documents):
    """Megatron-LM pairs, which are one file under many names."""
    os.makedirs(folder)
    lengths = np.full(documents, 1000, "<i4")
    with open(f"{folder}/0000_text_document.idx", "wb") as f:
        f.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, documents, documents + 1) + lengths.tobytes() +
                (np.arange(documents, dtype="<i8") * 2000).tobytes() + np.arange(documents + 1, dtype="<i8").tobytes())
    with open(f"{folder}/0000_text_document.bin", "wb") as f:
        f.truncate(documents * 2000)
    for i in range(1, pairs):
        for suffix in ("idx", "bin"):
            os.link(f"{folder}/0000_text_document.{suffix}", f"{folder}/{i:04d}_text_document.{suffix}")


BUCKET = """location = /{bucket} {{ rewrite ^ /{bucket}/ last; }}
location = /{bucket}/ {{
    if ($args ~ "continuation-token=two") {{ rewrite ^ /two.xml last; }}
    if ($args ~ "list-type=2") {{ rewrite ^ /one.xml last; }}
}}"""


def make_bucket(root):
    """nginx as S3: the files of a folder as objects, and the two pages of their listing."""
    rows = []
    for name in sorted(os.listdir(f"{root}/data/set")):
        st = os.stat(f"{root}/data/set/{name}")
        rows.append(ROW.format(f"set/{name}", f"{int(st.st_mtime):x}-{st.st_size:x}", st.st_size))
    for page, part, rest in (("one", rows[:1000], True), ("two", rows[1000:], False)):
        with open(f"{root}/{page}.xml", "w", encoding="ascii") as f:
            f.write("<ListBucketResult>" + "".join(part) + f"<IsTruncated>{str(rest).lower()}</IsTruncated>" +
                    ("<NextContinuationToken>two</NextContinuationToken>" if rest else "") + "</ListBucketResult>")


def bar_pairs():
    make_pairs(f"{WWW}/pairs", 1000, 10**6)
    found = [first_batch(f"{WWW}/pairs", f"seq_len={T}") for _ in range(ROUNDS)]
    mounted = [f[0] for f in found]
    row("mount of 1,000 Megatron pairs, 10^9 documents", f"{statistics.median(mounted):.2f} s", "1 s",
        statistics.median(mounted), "<=", 1)
    far_found = []
    os.mkdir(f"{WWW}/data")
    os.rename(f"{WWW}/pairs", f"{WWW}/data/set")
    make_bucket(WWW)
    with Nginx(WWW, more=FAST + BUCKET.format(bucket="data")) as s3:
        for _ in range(min(ROUNDS, 3)):
            empty(CACHE)
            far_found.append(first_batch("s3://data/set/", f"seq_len={T},cache_dir={CACHE},prefetch=off,endpoint_url={s3.url},anonymous"))
    say("until the first batch", [f"{f[1]:.2f} s" for f in far_found])
    row("the same from S3", f"{statistics.median(f[0] for f in far_found):.2f} s", "2 s",
        statistics.median(f[0] for f in far_found), "<=", 2)
    row("requests for that and a batch", f"{far_found[0][3]}", "2,000 files", far_found[0][3] / 2000, "<=", 2)


if __name__ == "__main__":
    globals()[f"bar_{sys.argv[1]}"]()
