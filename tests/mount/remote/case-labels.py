#!/usr/bin/python3
# slow: draws from a server
"""The labels that a plan needs, from a server: fetched once and alone, not at all where folders say them;
a server that is gone or silent is EIO in time, Ctrl-C releases the reader, and nothing else waits."""

import errno
import os
import signal
import subprocess

import numpy as np

import order_reference
from bad_server import BadServer, stall
from lib import DEADLINE, PRIVATE, contains, content, equal, idx_bytes, log_text, stop
from servers import coverage, error_of, is_data, place, sha256sums, start_at, wait_until, within

ref = order_reference.load()
WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(4)
N = 100_000
LABEL = rng.choice(7, N, p=[.4, .2, .1, .1, .1, .05, .05]).astype(np.uint8)
IMAGES, LABELS = idx_bytes(rng.integers(0, 256, (N, 4, 4), dtype=np.uint8)), idx_bytes(LABEL)
place(WWW, "t/t-images", IMAGES)
place(WWW, "t/t-labels", LABELS)
for i in range(60):
    place(WWW, f"pictures/train/c{i % 3}/{i:04d}.jpg", rng.integers(0, 256, 20000, dtype=np.uint8).tobytes())
sha256sums(f"{WWW}/t", "t-images", "t-labels")
sha256sums(f"{WWW}/pictures", *(f"train/c{i % 3}/{i:04d}.jpg" for i in range(60)))
BIG = rng.integers(0, 5, 6_000_000, dtype=np.uint8)  # and far behind what is read first
np.savez(place(WWW, "big/t.npz", b""), x=np.zeros((len(BIG), 4), np.uint8), label=BIG)
sha256sums(f"{WWW}/big", "t.npz")
OPTIONS = "block=4K,stage=off,timeout=1"
PLAN = "batch=256,seed=7,draw=2560:balanced"
WANT = ref.Plan(N, PLAN, fields={"label": LABEL.tolist()})
MEMBERS = ref.classes_of(LABEL.tolist())


def sample_of(made, epoch, j):
    """As the reference's, for a list that is the dataset; its lists of classes are made once."""
    draw = made.made.setdefault(epoch, None) or ref.Draw(7, epoch, 2560, 0, classes=MEMBERS)
    made.made[epoch] = draw
    return draw.at(j)


def check_epoch(at, epoch):
    for i in range(10):
        got = np.load(f"{at}/t/batches/{PLAN}/epoch={epoch}/npz/{i:06d}.npz")
        want = [sample_of(WANT, epoch, j) for j in range(i * 256, i * 256 + 256)]
        equal(got["index"].tolist(), want, f"epoch {epoch}, batch {i}")
        equal(got["label"].tolist(), LABEL[want].tolist(), "labels")


def fetched(server):
    return {p: n for p, (n, _) in coverage(r for r in server.data() if is_data(r)).items()}


def check_fetched():
    """A plan's name fetches the labels, and only these; each byte once."""
    with BadServer(WWW) as server:
        daemon = start_at("fetch", f"{server.url}/t/", f"{OPTIONS},cache={PRIVATE}/cache")
        before = fetched(server)
        os.stat(f"{daemon.at}/t/batches/{PLAN}")
        after = fetched(server)
        equal(after["/t/t-labels"], len(LABELS), "labels are fetched once")
        equal(after["/t/t-images"], before["/t/t-images"], "and pictures are not")
        check_epoch(daemon.at, 0)
        check_epoch(daemon.at, 1)
        equal(fetched(server)["/t/t-labels"], len(LABELS), "labels, in the end")
        equal([total for total, _ in coverage(server.data()).values()],
              [different for _, different in coverage(server.data()).values()], "each byte once")
        stop(daemon)
        server.forget()
        daemon = start_at("kept", f"{server.url}/t/", f"{OPTIONS},cache={PRIVATE}/cache")
        os.stat(f"{daemon.at}/t/batches/{PLAN}")
        check_epoch(daemon.at, 1)
        equal(fetched(server), {}, "nothing is fetched when the index is kept")
        stop(daemon)


def check_folders():
    """Names of folders are labels: nothing is fetched for them."""
    with BadServer(WWW) as server:
        daemon = start_at("folders", f"{server.url}/pictures/", f"{OPTIONS},cache={PRIVATE}/cache-folders")
        name = next(n for n in os.listdir(daemon.at) if n not in (".epochfs", "README.txt"))
        plan = f"{daemon.at}/{name}/batches/batch=6,seed=1,classes=3x2"
        before = fetched(server)
        os.stat(plan)
        index = np.load(f"{plan}/epoch=0/npy/000000.index.npy")
        label = np.load(f"{plan}/epoch=0/npy/000000.label.npy")
        equal(fetched(server), before, "bytes fetched for labels of folders")
        equal(sorted(label.tolist()), [0, 0, 1, 1, 2, 2], f"two of each class: {index}")
        stop(daemon)


def check_dead(kind):
    """The server is silent, or refuses connections, while the labels are read."""
    with BadServer(WWW) as server:
        daemon = start_at(kind, f"{server.url}/big/",
                          f"{OPTIONS},patience=8,cache={PRIVATE}/cache-{kind}")
        content(daemon.at, "t/batches/batch=100/raw/000000.x.raw")  # this much is staged
        if kind == "gone":
            server.gone()
        else:
            server.script("*", stall())
        lookup = subprocess.Popen(["stat", f"{daemon.at}/t/batches/{PLAN}"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with within(6, "what needs no labels"):
            content(daemon.at, "t/batches/batch=100/raw/000000.x.raw")
            os.listdir(f"{daemon.at}/t/batches")
            os.stat(f"{daemon.at}/t/batches/batch=70,seed=3/epoch=1/raw/000000.x.raw")
            content(daemon.at, ".epochfs/status.json")
        contains(lookup.communicate(timeout=DEADLINE)[1].decode(), "Input/output error")
        equal(error_of(os.stat, f"{daemon.at}/t/batches/{PLAN}"), errno.EIO, "the next one")
        contains(log_text(f"log.{kind}"), "read failed: t: ")
        if kind == "gone":
            server.up()
        server.healthy()
        # Requests are repeated less and less often, so the first lookups may still fail.
        wait_until(lambda: os.path.isdir(f"{daemon.at}/t/batches/{PLAN}"), "it opens when the server is back")
        got = np.load(f"{daemon.at}/t/batches/{PLAN}/epoch=0/npz/000001.npz")
        equal(got["label"].tolist(), BIG[got["index"]].tolist(), "labels")
        equal(len(np.unique(got["index"])), 256, "no sample twice: each is less than one draw")
        stop(daemon)


def check_interrupt():
    """Ctrl-C and kill release the reader at once; the mount also ends at once."""
    with BadServer(WWW) as server:
        daemon = start_at("interrupt", f"{server.url}/big/",
                          f"{OPTIONS},patience=600,cache={PRIVATE}/cache-interrupt")
        server.script("*", stall())
        for sig in (signal.SIGINT, signal.SIGKILL):
            waiting = [subprocess.Popen(["stat", f"{daemon.at}/t/batches/{plan}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                       for plan in (PLAN, "batch=10,classes=5x2")]
            server.wait_stalled()
            with within(10, f"released by {sig.name}"):
                for w in waiting:
                    w.send_signal(sig)
                    equal(w.wait(DEADLINE), -sig, "the reader ended by the signal")
        with within(10, "the end"):
            stop(daemon)


check_fetched()
check_folders()
check_dead("gone")
check_dead("silent")
check_interrupt()
