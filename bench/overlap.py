#!/usr/bin/python3
"""Staging while a job trains, against no staging and against copying first.

    overlap.py [--quick] [--write-docs]      (by bench/run overlap)

The experiment of runtime file staging: a remote of RATE bytes per second, a job that reads the
batches of a shuffled plan and computes for a given time after each. The ways to load, with what the
job waits for:

  loader  no staging: a request for each sample, 8 at once, when the batch is needed; again in every
          epoch. ahead: the same, but 2 batches are fetched while one computes
  copy    curl of the file to the disk, then training from there (epochfs over the copy)
  ours    epochfs with a cache

Contended: another host transfers through the same limit all the time, and gets half while both
transfer. Times run from the first command (curl, mount, the loader) to the end of the last batch.
transfer: the file alone, under the same conditions; compute: all batches. All variants read the
same bytes, which is checked by checksums. Each begins with an empty cache and an empty page cache
(root), but the server has the file in memory.

Prints the rows of bench/run; --write-docs: also docs/bench/overlap.md and docs/bench/overlap.svg.
"""

import collections
import contextlib
import os
import platform
import statistics
import subprocess
import sys
import time

import bars
import orders
from bars import WWW, Far, block_of, calm, dataset, empty, mount, row, say, seconds, warm
from lib import EPOCHFS, PRIVATE, equal
from servers import MiB, Nginx, sent
import numpy as np

QUICK = "--quick" in sys.argv
DOCS = os.path.join(bars.HERE, "..", "docs")
TRAIN = os.environ["TRAIN"]
# Rounds of the cells that most bars use; the others are measured once.
ROUNDS = int(os.environ.get("EPOCHFS_BENCH_ROUNDS", "2" if QUICK else "3"))
RATE = 80_000_000
SIZES = (16, 32, 64) if QUICK else (40, 100, 1000)
SMALL, MIDDLE, LARGE = SIZES
RATIOS = (0.5, 1, 2)
SHAPE = (224, 224, 3)
SAMPLE = 224 * 224 * 3
HEAD = 20
BATCH = 32
SEED = 7
WINDOW = 16
CACHE, COPY = f"{PRIVATE}/cache", f"{PRIVATE}/copy"
VARIANTS = {"loader": "loader, no staging", "ahead": "loader, 2 batches ahead",
            "copy": "copy first", "ours": "epochfs", "ours16": "epochfs, block_size=16K"}

# ratio: of compute to transfer, of one epoch.
Cell = collections.namedtuple("Cell", "mb ratio epochs contended window", defaults=[False])
Run = collections.namedtuple("Run", "took waited fetched sums")


def samples_in(mb):
    return mb * 1000000 // SAMPLE


def batches_in(mb):
    return -(-samples_in(mb) // BATCH)


def size_of(mb):
    return HEAD + samples_in(mb) * SAMPLE


def make_data():
    os.makedirs(WWW)
    for mb in SIZES:
        n = samples_in(mb)
        with open(f"{WWW}/pixels-{mb}", "wb") as f:
            f.write(bytes([0, 0, 8, 4]) + b"".join(v.to_bytes(4, "big") for v in (n, *SHAPE)))
            for _ in range(n):
                f.write(os.urandom(SAMPLE))
    with open(f"{WWW}/load", "wb") as f:
        f.write(os.urandom(64 * MiB))


def cells():
    """Each cell with its measured variants."""
    usual = ("loader", "copy", "ours")
    for contended in False, True:
        for mb in SIZES:
            for ratio in RATIOS:
                if ratio != 1 and (mb == LARGE and (contended or QUICK) or mb == SMALL and QUICK):
                    continue
                more = ("ahead",) if mb == MIDDLE else ()
                more += ("ours16",) if (mb, ratio) == (MIDDLE, 1) else ()
                yield Cell(mb, ratio, 1, contended), usual + more
    yield Cell(MIDDLE, 1, 1, False, True), ("copy", "ours")
    if not QUICK:
        yield Cell(SMALL, 1, 10, False), usual
    for ratio in RATIOS:
        if ratio == 1 or not QUICK:
            yield Cell(SMALL, ratio, 10, True), usual
    if not QUICK:
        yield Cell(MIDDLE, 1, 10, True), usual


class Experiment:
    def __init__(self, server, far):
        self.server, self.far = server, far
        self.transfers = {}  # (mb, contended) -> seconds
        self.runs = collections.defaultdict(list)  # (cell, variant) -> Runs
        self.sums = {}

    @contextlib.contextmanager
    def load(self, contended):
        """Another host that transfers all the time."""
        if not contended:
            yield
            return
        process = subprocess.Popen(["curl", "-s", "-Z", "--parallel-max", "4", "-o", "/dev/null",
                                    f"{self.far.urls[1]}/load?[1-10000]"],
                                   stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)

    def transfer(self, mb, contended):
        """Seconds of the transfer alone: by curl, or over 8 connections in pieces of 1 MB,
        whichever is faster."""
        if (mb, contended) not in self.transfers:
            warm(f"pixels-{mb}")
            pieces, order = size_of(mb) // 1000000, f"{PRIVATE}/order"
            np.arange(pieces, dtype=np.uint64).tofile(order)
            whole = ["curl", "-s", "-o", "/dev/null", f"{self.far.urls[0]}/pixels-{mb}"]
            parts = [TRAIN, "http", "-a", "3", "-b", "8", str(self.far.ports[0]), f"/pixels-{mb}",
                     "0", "1000000", order]
            with self.load(contended):
                times = [[seconds(*command) for _ in range(ROUNDS)] for command in (whole, parts)]
            times[1] = [t * size_of(mb) / pieces / 1e6 for t in times[1]]
            self.transfers[mb, contended] = min(statistics.median(t) for t in times)
            say(f"{mb} MB{', contended' if contended else ''}: transfer alone, curl, 8 connections",
                *(f"{statistics.median(t):.2f} s" for t in times))
        return self.transfers[mb, contended]

    def pace(self, cell):
        """Microseconds that a batch computes."""
        alone = self.transfer(cell.mb, cell.contended)
        return int(1e6 * cell.ratio * alone / batches_in(cell.mb))

    def compute(self, cell):
        return self.pace(cell) * batches_in(cell.mb) * cell.epochs / 1e6

    def bound(self, cell):
        """The lower bound for transferring once and computing."""
        return max(self.transfer(cell.mb, cell.contended), self.compute(cell))

    def train(self, cell, at):
        plan = f"batch={BATCH},seed={SEED}" + (f",shuffle=window:{WINDOW}" if cell.window else "")
        return ["files", "-e", str(cell.epochs), "-g", str(self.pace(cell)),
                f"{dataset(at)}/batches/{plan}", "epoch=@/npy/######.data.npy",
                str(batches_in(cell.mb))]

    def loader(self, cell, ahead):
        n, name = samples_in(cell.mb), f"{PRIVATE}/order"
        np.concatenate([orders.full(SEED, e, n) for e in range(cell.epochs)]).tofile(name)
        return ["http", "-e", str(cell.epochs), "-g", str(self.pace(cell)), "-b", str(BATCH), "-a",
                str(ahead), str(self.far.ports[0]), f"/pixels-{cell.mb}", str(HEAD), str(SAMPLE),
                name]

    def measure(self, cell, variant):
        source, plan = f"{self.far.urls[0]}/pixels-{cell.mb}", f"batch={BATCH}+seed={SEED}"
        plan += f"+shuffle=window:{WINDOW}" if cell.window else ""
        empty(CACHE)
        empty(COPY)
        os.mkdir(COPY)
        calm()
        warm(f"pixels-{cell.mb}")
        warm("load")
        self.transfer(cell.mb, cell.contended)
        arguments = self.loader(cell, 2 if variant == "ahead" else 0) \
            if variant in ("loader", "ahead") else None
        with self.load(cell.contended), contextlib.ExitStack() as stack:
            self.server.forget()
            begin = time.monotonic()
            if variant == "copy":
                seconds("curl", "-s", "-o", f"{COPY}/pixels-{cell.mb}", source)
                at = stack.enter_context(mount(COPY, f"plan={plan}")).at
                arguments = self.train(cell, at)
            elif not arguments:
                at = stack.enter_context(mount(
                    source, f"plan={plan},cache_dir={CACHE}" +
                    (",block_size=16K" if variant == "ours16" else ""))).at
                arguments = self.train(cell, at)
            lines = subprocess.run([TRAIN, *arguments], stdout=subprocess.PIPE, check=True,
                                   text=True).stdout.splitlines()
            took = time.monotonic() - begin
            fetched = sent([r for r in self.server.log() if r.path == f"/pixels-{cell.mb}"])
        epochs = [line.split() for line in lines]
        run = Run(took, sum(float(e[1]) for e in epochs) / 1e6, fetched, [e[3] for e in epochs])
        want = self.sums.setdefault((cell.mb, cell.epochs, cell.window), run.sums)
        equal(run.sums, want, f"{variant}, {cell}: the bytes that were read")
        self.runs[cell, variant].append(run)
        say(f"{cell.mb} MB, compute {cell.ratio} x transfer, {cell.epochs} epochs"
            f"{', contended' if cell.contended else ''}{', window' if cell.window else ''}: "
            f"{variant} {took:.2f} s, waited {run.waited:.2f}; at least {self.bound(cell):.2f}")

    def run(self):
        for cell, variants in cells():
            rounds = ROUNDS if (cell.mb, cell.ratio, cell.epochs) == (MIDDLE, 1, 1) else 1
            for i in range(rounds):
                for k in range(len(variants)):
                    self.measure(cell, variants[(k + i) % len(variants)])

    def took(self, cell, variant):
        """The median; None: not measured."""
        runs = self.runs.get((cell, variant))
        return statistics.median(r.took for r in runs) if runs else None

    def fetched(self, cell, variant):
        """The bytes fetched, in multiples of the data's size."""
        return max(r.fetched for r in self.runs[cell, variant]) / size_of(cell.mb)

    def floor(self, cell, block):
        """The least seconds that ours takes with blocks of that size, if only blocks are
        transferred, in the order of need."""
        rate = size_of(cell.mb) / self.transfer(cell.mb, cell.contended)
        here, come, done = set(), 0, 0
        n = samples_in(cell.mb)
        order = [orders.REFERENCE.order(SEED, 0, n, i, WINDOW * cell.window) for i in range(n)]
        for first in range(0, n, BATCH):
            for sample in order[first:first + BATCH]:
                begin = HEAD + sample * SAMPLE
                need = set(range(begin // block, (begin + SAMPLE - 1) // block + 1)) - here
                here |= need
                come += len(need) * block / rate
            done = max(done, come) + self.pace(cell) / 1e6
        return done + self.compute(cell) * (cell.epochs - 1) / cell.epochs


# ---- the bars ----

def rows(x):
    c = Cell(MIDDLE, 1, 1, False)
    for mb in SIZES:
        found = [(x.took(c, "ours") / x.bound(c), c) for c, _ in cells()
                 if c.mb == mb and c.epochs == 1 and not (c.contended or c.window)]
        against_larger(x, f"{mb} MB", max(found)[1], "ours", block_of(size_of(mb)))
    against_larger(x, f"{MIDDLE} MB, block_size=16K", c, "ours16", 16384)
    against_larger(x, f"{MIDDLE} MB, window:{WINDOW}", c._replace(window=True), "ours",
                   block_of(size_of(MIDDLE)))
    versus(x, "transfer = compute", c, "copy", 0.6)
    versus(x, "contended, transfer = compute", c._replace(contended=True), "loader", 0.75)
    versus(x, "the same", c._replace(contended=True), "ahead", None)
    for contended in False, True:
        c = Cell(SMALL, 1, 10, contended)
        what = "10 epochs" + (", contended" if contended else "")
        if not x.took(c, "ours"):
            continue
        versus(x, what, c, "copy", None)
        versus(x, what, c, "loader", 0.75 if contended else None)


def against_larger(x, what, cell, variant, block):
    took, bound, floor = x.took(cell, variant), x.bound(cell), x.floor(cell, block)
    what = f"{what}, compute {cell.ratio:g} x transfer"
    row(what, f"{took:.2f} s", f"max(T, C) {bound:.2f} s", (took - block / RATE) / bound, "<=",
        1.05)
    row(what, f"{took:.2f} s", f"floor of blocks {floor:.2f} s", took / floor, "<=", 1.05)


def versus(x, what, cell, variant, bound):
    ratio = x.took(cell, "ours") / x.took(cell, variant)
    row(f"{what}, {cell.mb} MB", f"{x.took(cell, 'ours'):.2f} s",
        f"{VARIANTS[variant].split(',')[0]}{', ahead' if variant == 'ahead' else ''} "
        f"{x.took(cell, variant):.2f} s", ratio, "<=" if bound else "-", bound or 0)


# ---- the page ----

def write_page(x):
    version = subprocess.run([EPOCHFS, "--version"], stdout=subprocess.PIPE, check=True,
                             text=True).stdout.split("\n", maxsplit=1)[0]
    with open(f"{DOCS}/bench/overlap.md", "w", encoding="utf-8") as f:
        f.write(PAGE.format(version=version, cores=os.cpu_count(), kernel=platform.release(),
                            rate=RATE // 1000000, quick=" --quick" if QUICK else "",
                            rounds=ROUNDS, table="\n".join(table(x))))
    with open(f"{DOCS}/bench/overlap.svg", "w", encoding="utf-8") as f:
        f.write("\n".join(figure(x)) + "\n")


PAGE = """# Staging while a job trains

Written by `bench/run overlap{quick} --write-docs` ({version}, {cores} cores, Linux {kernel}). Do not edit.

![times over the larger of transfer and compute](overlap.svg)

A web server behind a limit of {rate} MB/s serves pictures of 224 x 224 x 3 bytes. A job reads all batches
of 32 of a shuffled plan, and each batch computes for a given time after it was read (time passes, no core
is busy). Contended: another host pulls through the same limit all the time; each gets half while both want
some. The limit adds no delay, which favours the loader.

* **loader**: no staging. A range request for each sample, 8 at once on connections that stay, when the batch
  is needed, in every epoch again. **2 ahead**: the same, while one batch computes the next two are fetched.
* **copy**: `curl` of the file to the disk, then training from there, through epochfs over the copy.
* **epochfs**: mounted with an empty cache, and read at once. **16K**: with `block_size=16K`.

Seconds, from the first command to the end of the last batch:

{table}

* **transfer** is the time to transfer the file alone under the same conditions, by curl or over 8 connections, whichever
  is faster; **compute** is the compute time of all batches. A job that transfers the file once takes at least the larger of
  the two.
* **floor** is the least that epochfs can reach: blocks (`block_size=auto`: 4 KiB of files up to 1 GiB) arrive without a pause in the
  order of their first need, and a batch computes when the last of its blocks is here.
* **fetched** is what the server sent for the file, over its size, to the loader and to epochfs.
* All variants read the same bytes (checksums). The rows of {mid} are medians of {rounds} runs, the others single
  runs. The server, the limit and the job share the cores.
""".replace("{mid}", f"{MIDDLE} MB with one epoch and a ratio of 1")


def table(x):
    yield ("| data | epochs | compute / transfer | | transfer | compute | loader | 2 ahead | copy "
           "| **epochfs** | 16K | floor | epochfs / larger | / copy | / loader | fetched |")
    yield "|" + "---|" * 16
    for c, _ in cells():
        took = {v: x.took(c, v) for v in VARIANTS}
        floor = x.floor(c, block_of(size_of(c.mb)))

        def text(value, form=".2f"):
            return f"{value:{form}}" if value else ""

        def over(variant, took=took):
            return f"{took['ours'] / took[variant]:.2f}" if took[variant] else ""

        notes = ["contended"] * c.contended + [f"window:{WINDOW}"] * c.window
        fetched = " / ".join(f"{x.fetched(c, v):.2f}" for v in ("loader", "ours") if took[v])
        cols = [f"{c.mb} MB", c.epochs, c.ratio, ", ".join(notes),
                text(x.transfer(c.mb, c.contended)), text(x.compute(c)), *(text(took[v]) for v in ("loader", "ahead", "copy")),
                f"**{text(took['ours'])}**", text(took["ours16"]), text(floor),
                text(took["ours"] / x.bound(c)), over("copy"), over("loader"), fetched]
        yield "| " + " | ".join(str(v) for v in cols) + " |"


COLORS = {"loader": "#b9bec6", "ahead": "#8a94a3", "copy": "#e0a458", "ours": "#2f6fb3"}


def figure(x):
    """Three groups of bars: one epoch, one epoch contended, ten epochs; time over the larger of
    transfer and compute."""
    ratios = [r for r in RATIOS if (Cell(SMALL, r, 10, True), "ours") in x.runs]
    panels = [(f"1 epoch, {MIDDLE} MB", [Cell(MIDDLE, r, 1, False) for r in RATIOS]),
              (f"1 epoch, {MIDDLE} MB, contended",
               [c for c in (Cell(MIDDLE, r, 1, True) for r in RATIOS) if (c, "ours") in x.runs]),
              (f"10 epochs, {SMALL} MB, contended", [Cell(SMALL, r, 10, True) for r in ratios])]
    values = [x.took(c, v) / x.bound(c) for _, found in panels for c in found for v in COLORS
              if x.took(c, v)]
    top = -(-max(values) * 2 // 1) / 2
    bar, gap, height, left, base = 16, 22, 240, 56, 300
    bars_in = [sum(bool(x.took(c, v)) for c in found for v in COLORS) for _, found in panels]
    width = left + 14 + sum(max(count * bar + len(found) * gap + 18, 230)
                            for count, (_, found) in zip(bars_in, panels))

    def y(value):
        return base - value / top * height

    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 378" width="{width}" '
           'height="378" font-family="sans-serif" font-size="12">')
    yield f'<rect width="{width}" height="378" fill="#ffffff"/>'
    yield '<g fill="#222222">'
    yield f'<text x="{left}" y="20" font-weight="bold">Time / max(transfer, compute)</text>'
    at = left
    for name, color in COLORS.items():
        yield f'<rect x="{at}" y="32" width="12" height="12" fill="{color}"/>'
        yield f'<text x="{at + 17}" y="42">{VARIANTS[name]}</text>'
        at += 32 + 7 * len(VARIANTS[name])
    for half in range(int(top * 2) + 1):
        value = half / 2
        stroke = 'stroke="#555555" stroke-dasharray="4 3"' if value == 1 else 'stroke="#dddddd"'
        yield (f'<line x1="{left}" x2="{width - 10}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
               f'{stroke}/>')
        yield f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
    at = left + 14
    for title, found in panels:
        begin = at
        for c in found:
            first = at
            for name, color in COLORS.items():
                took = x.took(c, name)
                if took:
                    value = took / x.bound(c)
                    yield (f'<rect x="{at}" y="{y(value):.1f}" width="{bar - 2}" '
                           f'height="{base - y(value):.1f}" fill="{color}">'
                           f'<title>{VARIANTS[name]}: {took:.2f} s</title></rect>')
                    at += bar
            yield (f'<text x="{(first + at) / 2}" y="{base + 16}" text-anchor="middle">{c.ratio:g}'
                   '</text>')
            at += gap
        yield (f'<text x="{(begin + at - gap) / 2}" y="{base + 52}" text-anchor="middle" '
               f'font-weight="bold">{title}</text>')
        yield (f'<text x="{(begin + at - gap) / 2}" y="{base + 32}" text-anchor="middle">compute / '
               'transfer</text>')
        at = max(at + 18, begin + 230)
    yield "</g></svg>"


def main():
    make_data()
    orders.check()
    with Nginx(WWW, more=bars.FAST + " keepalive_requests 1000000;") as server, \
            Far(server, RATE, 2) as far:
        x = Experiment(server, far)
        x.run()
    rows(x)
    if "--write-docs" in sys.argv:
        write_page(x)


main()
