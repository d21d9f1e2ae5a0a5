#!/usr/bin/python3
# slow: jobs by the clock
"""epochfs plan: its forecast of a job comes true, by the clock and by the server's log; exit codes
and messages."""

import json
import threading
import time

import numpy as np

from bad_server import BadServer
from lib import PRIVATE, SLOW, contains, content, equal, idx_bytes, mounted, path, run
from servers import Late, MiB, calmly, place, remote, sent, sha256sums, wait_until

RATE = 4 * MiB
BLOCK = 16 << 10
N, SIDE = 6000, 64
rng = np.random.default_rng(61)
IMAGES = idx_bytes(rng.integers(0, 256, (N, SIDE, SIDE), dtype=np.uint8))
LABELS = idx_bytes(rng.integers(0, 10, N, dtype=np.uint8))
TOTAL = len(IMAGES) + len(LABELS)
WWW = f"{PRIVATE}/www"
place(WWW, "train-images-idx3-ubyte", IMAGES)
place(WWW, "train-labels-idx1-ubyte", LABELS)
sha256sums(WWW)
CACHES = iter(range(100))
UNDER_WAY = 8 * BLOCK  # bytes of last blocks that stopped transfers may have fetched


def fresh(*options):
    return ",".join([f"cache={PRIVATE}/cache.{next(CACHES)}", "block=16K", *options])


def plan(source, *arguments):
    found = json.loads(run("plan", "--json", *arguments, source))
    equal(sorted(found), ["cache", "default_plan", "not_planned", "plans", "rate", "source"],
          "members of the whole")
    return found


def near(found, want, share, what):
    equal(abs(found - want) <= share * want, True, f"{what}: {found}, expected {want}, +- {share:.0%}")


def by_clock(found, want, share, what):
    try:
        near(found, want, share, what)
    except AssertionError as e:
        raise Late(e) from e


def check_true(server):
    """A measured forecast, then staging through the same limit: the rate, the time, and no byte
    twice."""
    options = fresh()
    found = plan(f"{server.url}/", "-o", options + ",plan=batch=100", "--compute=0.5")
    rate, (x,) = found["rate"], found["plans"]
    measured, heads = rate["measured_bytes"], found["cache"]["staged_bytes"]
    equal(rate["from"], "measured", "where the rate is from")
    by_clock(rate["bytes_per_second"], RATE, 0.25, "the rate that was measured")
    by_clock(rate["measured_seconds"], 3, 0.4, "seconds of measuring")
    equal(heads >= measured - UNDER_WAY > 0, True, f"{measured} bytes came, {heads} are staged")
    equal(found["cache"]["source_bytes"], TOTAL, "bytes of the source")
    equal((x["dataset"], x["plan"], x["samples"], x["batches"]), ("train", "batch=100", N, 60),
          "the plan")
    equal(x["epoch_block_bytes"], TOTAL, "bytes of an epoch")
    near(x["missing_bytes"], TOTAL - heads, 0.001, "missing")
    near(x["staging_seconds"], (TOTAL - heads) / rate["bytes_per_second"], 0.01, "by the rate")
    equal((x["fits"], x["hides"], x["cache_share_pin"]), (True, True, 1), "it fits and hides")
    near(x["total_seconds"], 10 * 60 * 0.5 + x["first_batch_seconds"], 0.001, "ten epochs")
    equal(x["copy_first_seconds"] > x["total_seconds"], True, "copying first takes longer")
    wait_until(lambda: not server.connections, "those connections have ended")
    server.forget()
    began = time.monotonic()
    run("stage", "-o", options, f"{server.url}/")
    by_clock(time.monotonic() - began, x["staging_seconds"], 0.5 if SLOW else 0.25,
             "staging, for real")
    equal(sent(server.data()), TOTAL - heads, "what was measured with is not fetched again")
    server.forget()
    found = plan(f"{server.url}/", "-o", options)
    equal((found["rate"], found["default_plan"]), (None, True), "all is staged")
    equal(found["plans"][0]["missing_bytes"], 0, "all is staged")
    equal(found["plans"][0]["staging_seconds"], 0, "all is staged")
    equal(server.data(), [], "fetched by a plan of what is staged")


def check_epoch(server):
    """A job with staging that compute cannot hide: its first epochs, by the clock."""
    compute = 0.05
    options = fresh("plan=batch=100")
    (x,) = plan(f"{server.url}/", "-o", options, f"--rate={RATE}", f"--compute={compute}",
                "--epochs=2")["plans"]
    equal((x["hides"], x["epochs"]), (False, 2), "it does not hide")
    pause = threading.Event()
    took = []
    with mounted(f"{server.url}/", options):
        for _ in range(2):
            began = time.monotonic()
            for batch in range(60):
                content(path("train/batches/batch=100/npz", f"{batch:06}.npz"))
                pause.wait(compute)
            took.append(time.monotonic() - began)
    by_clock(took[0], x["first_epoch"]["seconds"], 0.9 if SLOW else 0.3,
             "the first epoch, for real")
    equal(x["later_epoch"]["wait_seconds"], 0, "the second epoch waits")
    if not SLOW:  # the time of the job's own reading comes on top
        by_clock(took[1] / x["later_epoch"]["seconds"], 1.4, 0.3, "the second epoch, for real")


def check_measure_ends_early(server):
    server.rate = 0
    found = plan(f"{server.url}/", "-o", fresh())
    seconds = found["rate"]["measured_seconds"]
    if seconds >= 1.9:
        raise Late(f"it ends when all is here: {seconds} s")
    equal(found["plans"][0]["missing_bytes"], 0, "all is here")
    # A small cache: what it has, what it can hold, and what later epochs find there.
    found = plan(f"{server.url}/", "-o", fresh("cache_size=12M,plan=batch=100,plan=batch=100+seed=1"))
    cache, (ordered, shuffled) = found["cache"], found["plans"]
    equal(cache["limit_bytes"], 12 * MiB, "the limit")
    equal(cache["used_bytes"] <= 12 * MiB, True, f"{cache['used_bytes']} bytes in use")
    for x in (ordered, shuffled):
        equal(x["fits"], False, "it does not fit")
        if x["cache_holds_bytes"] < 0.9 * 12 * MiB:
            raise Late(f"blocks came while they were counted: {x['cache_holds_bytes']} bytes of 12 MiB")
        near(x["cache_holds_bytes"], 12 * MiB, 0.1, "what the cache holds")
        near(x["cache_share_pin"], 12 * MiB / TOTAL, 0.1, "share of later epochs")
    equal(ordered["cache_share_plan"], ordered["cache_share_pin"], "keep=plan, in stored order")
    equal(shuffled["cache_share_plan"] > shuffled["cache_share_pin"], True, "keep=plan, shuffled")
    server.rate = RATE


def check_once(server):
    """keep=once: announced epochs find what the first has fetched; others fetch it again."""
    server.rate = 0
    for epochs in (1, 2):
        options = fresh("keep=once,plan=batch=100+seed=5", f"epochs={epochs}")
        (x,) = plan(f"{server.url}/", "-o", options, f"--rate={RATE}", "--epochs=2")["plans"]
        with mounted(f"{server.url}/", options):
            fetched = []
            for epoch in range(2):
                for batch in range(60):
                    content(path(f"train/batches/batch=100,seed=5/epoch={epoch}/npz",
                                 f"{batch:06}.npz"))
                if epoch + 1 >= epochs:
                    wait_until(lambda: remote()["staged_bytes"] < TOTAL / 20, "all was dropped")
                fetched.append(remote()["demand_bytes"] + remote()["background_bytes"])
        near(fetched[0], x["first_epoch"]["fetched_bytes"], 0.02, f"epochs={epochs}: the first")
        near(fetched[1] - fetched[0], x["later_epoch"]["fetched_bytes"], 0.02,
             f"epochs={epochs}: the second")
    server.rate = RATE


def check_rates(server):
    """The rate is given, not measured."""
    server.forget()
    for arguments, bytes_per_second, where in (
            (("--rate=8M",), 8 * MiB, "--rate"),
            (("-o", "rate=2M"), 2 * MiB, "rate"),
            (("--rate=8M", "-o", "rate=2M"), 2 * MiB, "rate"),
            (("--rate=1K", "-o", "rate=2M"), 1024, "--rate")):
        found = plan(f"{server.url}/", "-o", fresh(), *arguments)
        equal((found["rate"]["bytes_per_second"], found["rate"]["from"]),
              (bytes_per_second, where), f"{arguments}")
        x = found["plans"][0]
        near(x["staging_seconds"], x["missing_bytes"] / bytes_per_second, 0.001, f"{arguments}")
        equal((x["compute_seconds"], x["hides"], x["total_seconds"]), (None, None, None),
              "without --compute")
        equal(x["hides_at_compute_seconds"] > 0, True, "from when on it hides")
    equal(sent(server.data()) < MiB, True, f"{sent(server.data())} bytes fetched to plan")


def check_people(server):
    options = fresh("plan=batch=64+rank=1of4+seed=3+tail=drop,plan=batch=100+part=0of2")
    said = run("plan", "-o", options, "--rate=1M", "--compute=60", f"{server.url}/")
    contains(said, "by --assume-rate=", "the cache can hold all",
             "train, plan batch=64,rank=1of4,seed=3,tail=drop\n",
             "1472 of 6000 an epoch: 23 batches of 64", "yes: the job waits only for the first batch",
             "train, plan batch=100,part=0of2\n", "3000 of 6000 an epoch: 30 batches of 100",
             "for 10 epochs; copy first, then train: ", "no staging: ")
    said = run("plan", "-o", fresh(), "--rate=1M", f"{server.url}/")
    contains(said, "plan batch=128 (no -o plan= was given)", "if a batch takes ")
    # In place.
    said = run("plan", "--compute=0.5", WWW)
    contains(said, "read in place, nothing is staged", "47 batches of 128", "for 10 epochs")
    found = plan(WWW)
    equal((found["cache"], found["rate"]), (None, None), "in place")
    equal("staging_seconds" in found["plans"][0], False, "in place")


def check_unknown_rate(server):
    """No measuring: no data are fetched, and each sentence says that the rate is not known. So does a cache without
    space. Where it is measured, that is said before."""
    full = fresh("cache_size=60K")
    for arguments, reason in ((("--dry-run", "-o", fresh()), "--dry-run fetches nothing to measure it. Give --assume-rate="),
                              (("-o", full), "the cache has no space for bytes that measure it. Give --assume-rate=")):
        server.forget()
        said = run("plan", *arguments, "--compute=0.5", f"{server.url}/")
        contains(said, f"rate     not known: {reason}", " must be fetched, at a rate that is not known\n",
                 "hides    not known, because the rate is not known\n", "first    not known, because the rate", "compute  24 s per epoch")
        for false in ("takes 0 s", "take 0 s", "takes not", "for not known", "after not known", "of not known", "total", "could be fetched"):
            equal(false in said, False, f"{false!r} in {said}")
        equal("measuring" in said, arguments[1] == full, said)
        equal(sent(server.data()) < 200_000, True, f"{sent(server.data())} bytes fetched")
        (x,) = plan(f"{server.url}/", *arguments)["plans"]
        equal((x["hides_at_compute_seconds"], x["hides"]), (None, None), "hides")
    contains(run("plan", "-o", fresh(), f"{server.url}/"), "epochfs: measuring the remote for 2 s", "--assume-rate= and --dry-run\n")


def check_not_ready(server):
    """Text with rows that are unknown until it is staged."""
    place(WWW, "rows.txt", b"".join(b"%d 1:0.5 %d:1\n" % (i % 2, i % 90 + 2)
                                     for i in range(2_000_000)))
    sha256sums(WWW)
    found = plan(f"{server.url}/", "-o", fresh(), "--rate=1M")
    equal([x["dataset"] for x in found["plans"]], ["train"], "what is known")
    equal([x["name"] for x in found["not_planned"]], ["rows.txt"], "what is not")
    contains(found["not_planned"][0]["reason"], "read and indexed")
    contains(run("plan", "-o", fresh(), "--rate=1M", f"{server.url}/rows.txt", code=2),
             "no dataset could be planned")


def check_errors(server):
    for arguments, piece in ((("--rate=fast", WWW), "rate=fast"), (("--rate=0", WWW), "rate=0"),
                             (("--compute=-1", WWW), "compute=-1"),
                             (("--compute=", WWW), "compute="),
                             (("--compute=1e3", WWW), "compute=1e3"),
                             (("--epochs=0", WWW), "epochs=0"), ((), "expected SOURCE, or --bytes="),
                             ((WWW, WWW), "expected [SOURCE], got 2"), (("--jason", WWW), "--jason"),
                             (("-o", "plan=batch=0", WWW), "batch")):
        said = run("plan", *arguments, code=1)
        contains(said, piece)
        equal(said.count("\n"), 1, f"lines of {said!r}")
    contains(run("plan", f"{PRIVATE}/missing", code=2), "No such file")
    place(PRIVATE, "a-file", b"x")
    run("plan", "-o", f"cache={PRIVATE}/a-file/x", WWW, code=4)
    server.gone()
    run("plan", "-o", fresh("patience=1"), f"{server.url}/", code=2)


with BadServer(WWW, rate=RATE, sendbuf=64 << 10) as http:
    calmly(check_true, http)
    calmly(check_epoch, http)
    calmly(check_measure_ends_early, http)
    check_once(http)
    check_rates(http)
    check_unknown_rate(http)
    check_people(http)
    check_not_ready(http)
    check_errors(http)
