#!/usr/bin/python3
"""docs/reference/status.md describes all that status.json and metrics have, and nothing else, with the right
types; and the metrics keep Prometheus' rules, whatever names are in them, at every moment."""

import json
import os
import threading

import numpy as np

import kaldi_dirs as kd
import prometheus
from lib import (PRIVATE, SOURCE, content, equal, idx_bytes, small, start, status, stop,
                 write)
from servers import (Nginx, error_of, place, read_anew, remote, start_at, timed, wait_until)
from status_page import FIELDS, METRICS, SAME

TYPES = {"text": (str,), "integer": (int,), "number": (float,), "list": (list,), "object": (dict,),
         "null": (type(None),)}
WHEN = {"always", "stage", "plan", "read"}
seen_fields, seen_metrics, seen_types = set(), set(), set()


def is_there(when, parts):
    equal(when in WHEN, True, f"'when' in docs/reference/status.md: {when}")
    return when == "always" or when in parts


# ---- what mounts say ----

def fields_of(value, name=""):
    """(path, value) of everything in it."""
    if name:
        yield name, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields_of(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for inner in value:
            yield from fields_of(inner, f"{name}[]")


def check_json(found, parts):
    there = {path for path, _ in fields_of(found) if not path.endswith("[]")}
    for path, value in fields_of(found):
        if path.endswith("[]"):
            continue
        equal(path in FIELDS, True, f"{path} stands in docs/reference/status.md")
        words = FIELDS[path][0]
        kinds = [kind for word in words for kind in TYPES[word]]
        equal(type(value) in kinds, True, f"{path} is {words}, got {value!r}")
        seen_types.add((path, "null" if value is None else words[0]))
    equal({path for path, row in FIELDS.items() if is_there(row[1], parts)}, there,
          f"fields of a mount that has {parts}")
    seen_fields.update(there)


def check_metrics(families, parts):
    want = {name for name, row in METRICS.items() if row[2] != "stage" or "stage" in parts}
    equal(want, set(families), f"metrics of a mount that has {parts}")
    for name, family in families.items():
        kind, labels, when = METRICS[name]
        equal(family.type, kind, f"type of {name}")
        equal(bool(family.samples), is_there(when, parts), f"samples of {name}")
        for _, found in family.samples:
            if found or kind != "histogram":
                equal(sorted(label for label, _ in found),
                      sorted(labels), f"labels of {name}")
        if family.samples:
            seen_metrics.add(name)


def same_numbers(found, families):
    """(metric, its value, the value of its documented field), of numbers that reading does not
    change."""
    for name in SAME.keys() & families.keys() - {"epochfs_plans_opened_total"}:
        value = found
        for word in SAME[name].split("."):
            value = value[word]
        yield name, prometheus.value_of(families, name), value


def take(at):
    """Both files, of one moment: nothing changed while they were read."""
    def look():
        before, text, after = status(at), content(at, ".epochfs/metrics"), status(at)
        return all(before.get(name) == after.get(name) for name in ("push", "remote")) and \
            (after, text)
    return wait_until(look, "a moment in which nothing happens")


def check_now(at, *parts):
    """Check the present status. Returns both files."""
    found, text = take(at)
    families = prometheus.parse(text)
    prometheus.promtool(text)
    check_json(found, parts)
    check_metrics(families, parts)
    compared = list(same_numbers(found, families))
    equal(len(compared) > 10, True, f"{len(compared)} metrics were compared")
    for name, got, want in compared:
        equal(got, want, f"{name}, as in status.json")
    return found, families


def in_pieces(*parts, size=4096):
    """A file, read with small buffers."""
    pieces = []
    with open(os.path.join(*parts), "rb", buffering=0) as f:
        while not pieces or pieces[-1]:
            pieces.append(f.read(size))
    return b"".join(pieces)


class Looker:
    """Two readers read both files repeatedly, in both ways: each text is whole and of one moment,
    whatever the other one reads."""

    def __init__(self, at):
        self.at, self.over, self.error = at, threading.Event(), None
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(2)]

    def run(self):
        try:
            before, looks = None, 0
            while not self.over.is_set() or looks < 10:
                look = content if looks % 2 else in_pieces
                families = prometheus.parse(look(self.at, ".epochfs/metrics"))
                if before:
                    prometheus.grown(before, families)
                before = families
                json.loads(look(self.at, ".epochfs/status.json"))
                looks += 1
        except (AssertionError, OSError, ValueError) as e:
            self.error = e

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.error:
            raise self.error


def check_blanks():
    """A fresh mount's file is text; its size is that of the moment of opening."""
    small(40)
    daemon = start(SOURCE)
    for name in ("status.json", "metrics"):
        text = content(daemon.at, ".epochfs", name)
        blanks = sum(text.count(c) for c in (b" ", b"\n"))
        equal(blanks <= max(512, len(text) / 4), True, f"{blanks} blanks in {len(text)} bytes of {name}")
        with open(os.path.join(daemon.at, ".epochfs", name), "rb") as f:
            equal(len(f.read()), os.fstat(f.fileno()).st_size, f"size of {name}")
    stop(daemon)


def read(at, *names):
    for name in names:
        content(at, name)


def batches(at, dataset, plan, epoch, n):
    folder = f"{dataset}/batches/{plan}/{f'epoch={epoch}/' if epoch is not None else ''}npz"
    read(at, *(f"{folder}/{i:06d}.npz" for i in range(n)))


# ---- mounts ----

ODD = [b'quo"te', b"back\\slash", b"li\nne", b"ta\tb", b"\xff", b"\xfe", "\u00e4\u20ac".encode(),
       b"{le=\"1\"}", b"#comma, blank"]


def check_odd_names():
    """Names of datasets, SOURCE and the mount with everything that must be escaped, and two names
    that become equal as UTF-8."""
    source = f'{PRIVATE}/so"ur\\ce\n\udcff'
    numbers = idx_bytes(np.arange(20, dtype=np.uint8))
    for name in ODD:
        place(os.fsencode(source), name + b"-data", numbers)
    daemon = start_at('mount "of\\it', source)
    check_now(daemon.at)
    with Looker(daemon.at):
        for name in ODD[:-1]:
            batches(daemon.at, os.fsdecode(name) + "-data", "batch=5", None, 4)
    found, families = check_now(daemon.at, "plan", "read")
    equal(sorted({p["dataset"] for p in found["plans"]}),
          sorted({n.decode(errors="replace") + "-data" for n in ODD[:-1]}), "names in status.json")
    labels = {dict(key)["dataset"] for _, key in families["epochfs_plan_batch"].samples}
    equal(labels, {p["dataset"] for p in found["plans"]}, "names in metrics")
    (_, info), = families["epochfs_info"].samples
    info = dict(info)
    equal((info["source"], info["mountpoint"], info["version"]),
          (found["source"], found["mountpoint"], found["version"]), "epochfs_info")
    contains_all = source.replace("\udcff", "\ufffd")
    equal(info["source"], contains_all, "SOURCE")
    stop(daemon)


def check_local():
    """Several plans, more than are shown; single samples; text and Kaldi tables with their
    promises; a read that fails; and no stage."""
    small(40)
    write("rows.txt", b"".join(b"%d 1:%d 7:2\n" % (i % 2, i) for i in range(500)))
    kd.table("t", [(f"u{i}", b" [ 1 2 3 ]\n") for i in range(6)])
    write("bad-images-idx3-ubyte", b"\0\0\x08\x03\0\0")
    daemon = start(SOURCE, "plan=batch=10+seed=1", "kaldi=o,cs")
    with Looker(daemon.at):
        for seed in range(9):
            batches(daemon.at, "train", f"batch=8,seed={seed}", seed, 5)
        batches(daemon.at, "rows.txt", "batch=100", None, 5)
        read(daemon.at, *(f"train/samples/npz/{i:06d}.npz" for i in range(40)))
        for i in (0, 1, 2, 0, 1):
            read_anew(daemon.at, f"t.scp/batches/batch=2/npz/{i:06d}.npz")
        os.truncate(f"{SOURCE}/rows.txt", 100)
        error_of(read_anew, daemon.at, "rows.txt/source/rows.txt")
    found, families = check_now(daemon.at, "plan", "read")
    equal((len(found["plans"]), len(families["epochfs_plan_batch"].samples)), (8, 8), "plans")
    equal(any(plan["plan"] is None for plan in found["plans"]), True, "single samples")
    equal([(plan["batch"], plan["batches"], plan["seconds_left"]) for plan in found["plans"]
           if plan["plan"] in (None, "batch=8,seed=8")], [(40, 40, 0), (5, 5, 0)], "what is finished")
    for name in ("read_twice", "read_backwards", "read_errors", "unusable_files"):
        equal(found[name] > 0, True, f"{name} counts")
    for name in ("last_read_error", "last_broken_promise"):
        equal(found[name] != "", True, f"{name} says something")
    stop(daemon)


def check_stage():
    """A remote that works, then fails; a local source with a cache that is too small."""
    www = f"{PRIVATE}/www"
    data = idx_bytes(np.random.default_rng(2).integers(0, 256, (3000, 20, 20), dtype=np.uint8))
    place(www, "one-data", data)
    place(www, "two-data", data)
    with Nginx(www) as server:
        daemon = start_at("remote", f"{server.url}/", "patience=1,timeout=1,stage=off",
                          "plan=batch=100")
        found, _ = check_now(daemon.at, "stage", "plan")
        equal([plan[f"seconds_{name}"] for plan in found["plans"]
               for name in ("since_first_read", "since_last_read", "left")], [None] * 6,
              "what was announced and not read")
        with Looker(daemon.at):
            batches(daemon.at, "one-data", "batch=100,seed=4", 2, 9)
        check_now(daemon.at, "stage", "plan", "read")
        server.stop()
        error_of(read_anew, daemon.at, "two-data/source/two-data")
        found, families = check_now(daemon.at, "stage", "plan", "read")
        equal((found["remote"]["last_error"] != "",
               prometheus.value_of(families, "epochfs_remote_failing")), (True, 1), "it fails")
        equal(prometheus.value_of(families, "epochfs_remote_bytes_total", why="demand") +
              prometheus.value_of(families, "epochfs_remote_bytes_total", why="background"),
              found["remote"]["demand_bytes"] + found["remote"]["background_bytes"], "bytes")
        counts = {float(dict(labels)["le"]): value for (name, labels), value in
                  families["epochfs_remote_wait_seconds"].samples.items() if labels}
        equal({None if le == float("inf") else round(le * 1000): n for le, n in counts.items()},
              {c["le_ms"]: c["count"] for c in found["remote"]["wait_histogram"]}, "the histogram")
        stop(daemon)
    daemon = start_at("small", www, f"cache={PRIVATE}/cache.small,cache_size=600K,keep=pin")
    with Looker(daemon.at):
        for epoch in range(3):
            batches(daemon.at, "one-data", "batch=300,seed=1", epoch, 10)
    wait_until(lambda: remote(daemon.at)["refused_inserts"] + remote(daemon.at)["evictions"] > 0,
               "the cache is full", daemon)
    check_now(daemon.at, "stage", "plan", "read")
    stop(daemon)


def check_checker():
    """The rules themselves: each fails on a text that breaks it."""
    head = b"# HELP epochfs_a Text.\n# TYPE epochfs_a gauge\n"
    total = b"# HELP epochfs_a_total Text.\n# TYPE epochfs_a_total counter\n"
    prometheus.parse(head + b"epochfs_a 1\n#   \n" + total + b'epochfs_a_total{x="\\"\\\\\\n"} 1\n')
    for text, word in ((head + b"epochfs_a 1", "end of a line"), (b"epochfs_a 1\n", "come before"),
                       (head + head, "one HELP"), (head + b"epochfs_b 1\n", "behind their HELP"),
                       (head + b"epochfs_a 1\nepochfs_a 2\n", "once"),
                       (head + b"epochfs_a one\n", "a number"), (head + b"\n", "empty"),
                       (head + b'epochfs_a{x="\\t"} 1\n', "labels"),
                       (head + b'epochfs_a{x="a"b"} 1\n', "labels"),
                       (head + b'epochfs_a{x="1",x="2"} 1\n', "once"),
                       (head.replace(b"_a", b"_A") + b"epochfs_A 1\n", "a name"),
                       (head.replace(b"_a", b"_a_ms"), "words in"),
                       (head.replace(b"_a", b"_a_total"), "for counters"),
                       (total.replace(b"_total", b""), "for counters"),
                       (total + b"epochfs_a_total -1\n", "a count")):
        prometheus.must_fail(text, word)


timed(check_checker)
timed(check_blanks)
timed(check_odd_names)
timed(check_local)
timed(check_stage)
equal(seen_fields, set(FIELDS), "fields of docs/reference/status.md that a mount has")
equal(seen_metrics, set(METRICS), "metrics of docs/reference/status.md that have samples in a mount")
for field, (words, _) in FIELDS.items():
    for word in words:
        equal((field, word) in seen_types, True, f"{field} has been {word}")
