"""docs/bench/nodes.md and docs/bench/nodes.svg: what bench/nodes.py has measured, and what epochfs plan says of a thousand nodes."""

import os
import platform
import subprocess

import bars
from lib import EPOCHFS

DOCS = os.path.join(bars.HERE, "..", "docs")
THOUSAND = ["plan", "--nodes=1000", "--node-rate=10Gbit", "--origin-rate=20Gbit", "--dead=10", "--bytes=100T"]
WAYS = {"own": "own caches", "site": "site cache", "peers": "peers"}
COLORS = {"own": "#b9bec6", "site": "#e0a458", "peers": "#2f6fb3"}

PAGE = """# Nodes that start with empty caches

Written by `bench/run nodes --write-docs` ({version}, {cores} cores, Linux {kernel}). Do not edit.

![seconds of the first epoch, and what the origin sends](nodes.svg)

Each node is a network namespace of one machine, with a link to one switch that tc limits in each direction, as is the link of the
origin, a web server. All nodes mount at once and read the first epoch of a plan of batches of {batch} pictures of 150 KB. A batch
computes as long as the origin's link needs to send it: that is the rate of one node. A node's link has {links} times the rate. The
scale: {mb} MB at {rate} MB/s (origin) and {node_rate} MB/s (nodes), so low that the processors of this one machine need not be the limit;
the last column is what nodes, origin and caches used of them, and what the whole machine used, other work included.

* **own caches**: each node asks the origin. **site cache**: all ask `mount-scripts/site-cache`, on a machine with the link of a node.
  **peers**: the nodes are one cache, `mount-scripts/peers`.
* Times are those of the slowest node, from the first command on, so they include mounting. All ways read the same bytes (checksums).
* Where the second number of processors is near 100 %, other work shared the machine, and times are longer than the links need.

## The nodes share the data

Node K reads `batch={batch},rank=KofN,seed=7`.

{ranks}

## Each node reads all of it

Node K reads `batch={batch},seed=7+K` of {all_mb} MB at {all_rate} MB/s; links of nodes have {all_node_rate} MB/s.

{all}

Afterwards a node with an empty cache reads what its peers keep at {warm:.1f} MB/s of its link's {all_node_rate}.

## What to make of it

* With caches of their own, nodes fetch whole blocks of which they read a part, and go on with the rest of the data in the
  background: the origin sends more than the data, and N times the data if the job has many epochs.
* Peers fetch slices of 1 MiB. In a shuffled order the first batches of 8 nodes touch up to 256 slices, a quarter of this data, and all
  come at the same time, with some that later batches need: so the first batch is late. Of larger data it is a smaller part.
* Where nodes read all of the data in orders of their own, no cache can make the first epoch as short as that of one node: after a
  share x of it {nodes} nodes have read 1 - (1 - x)^{nodes} of the samples, and the origin needs its time to send them. That is {least:.0f} s
  at least, {least_ratio:.1f} times one node. Slices, of which each has several samples, cost the rest. Nodes with the same seed
  read in the same order, so they wait for none of this.
* A site cache does the same with slices; its own link carries what all nodes read.

## What epochfs plan says

`epochfs plan --nodes` computes the same from the links ([commands.md](../reference/commands.md#plan)). With peers:

{predicted}

A thousand nodes, 100 TiB, one node in a hundred dead:

<!-- run by tests/mount/cli/case-plan-nodes.py -->
    $ epochfs {command}
{thousand}
Nobody has measured that here. Two things to know:

* The origin answers 8 requests of 1 MiB of each node at once, and more where it is far away. Nodes that get nothing through the ring
  for 5 s ask the origin themselves ([cluster.md](../cluster.md#peers)), which the plan does not count.
* The first look of all nodes, listings and sizes, is one look for each 10 s.
"""


def table(x, cells, job):
    yield "| nodes | | first batch | end of epoch 1 | origin sends | origin's link | in by a node's link | out by it | processors |"
    yield "|" + "---|" * 9
    for j, n, way in cells:
        if j is not job:
            continue
        r = x.runs[f"{job.name}{n}{way}"]
        ins, outs = ([r.link[f"node{i}"][k] / 1e6 for i in range(n)] for k in (0, 1))
        site = f" (site: {r.link['site'][1] / 1e6:.0f} MB out)" if way == "site" else ""
        yield (f"| {n} | {WAYS[way]} | {r.first:.1f} s | {r.epoch:.1f} s | {r.origin:.2f} x | {r.link['origin'][1] / 1e6:.0f} MB{site} | "
               f"{spread(ins)} | {spread(outs)} | {100 * r.busy:.0f} of {100 * r.machine:.0f} % |")


def spread(values):
    low, high = min(values), max(values)
    return f"{low:.0f} MB" if round(low) == round(high) else f"{low:.0f} to {high:.0f} MB"


def predicted(x, cells):
    yield "| | nodes | origin sends, measured | predicted | epoch 1, measured | predicted | first batch, measured | predicted |"
    yield "|" + "---|" * 8
    for job, n, way in cells:
        if way != "peers":
            continue
        r, p = x.runs[f"{job.name}{n}{way}"], x.predicted[f"{job.name}{n}{way}"]
        size = job.mb * 1e6
        yield (f"| {'share the data' if job.name == 'ranks' else 'read all each'} | {n} | {r.origin:.2f} x | "
               f"{p['origin_bytes'] / size:.2f} x | {r.epoch:.1f} s | {p['first_epoch_seconds']:.1f} s | {r.first:.1f} s | "
               f"{p['first_batch_seconds']:.1f} s |")


def said(*arguments):
    return subprocess.run([EPOCHFS, *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout


def figure(x, cells, job):
    """Two groups of bars: seconds of epoch 1, and what the origin sends, by the number of nodes."""
    counts = sorted({n for j, n, _ in cells if j is job})
    panels = [("end of epoch 1, seconds", lambda r: r.epoch), ("the origin sends, x the data", lambda r: r.origin)]
    bar, height, base, wide = 22, 220, 280, 380
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * wide + 20} 330" width="{2 * wide + 20}" height="330" '
           'font-family="sans-serif" font-size="12">')
    yield f'<rect width="{2 * wide + 20}" height="330" fill="#ffffff"/><g fill="#222222">'
    at = 50
    for way, color in COLORS.items():
        yield f'<rect x="{at}" y="14" width="12" height="12" fill="{color}"/><text x="{at + 17}" y="24">{WAYS[way]}</text>'
        at += 110
    for k, (title, value) in enumerate(panels):
        left = 50 + k * wide
        found = {(n, way): value(x.runs[f"{job.name}{n}{way}"]) for j, n, way in cells if j is job}
        top = max(found.values()) * 1.1
        yield f'<text x="{left}" y="46" font-weight="bold">{title}</text>'
        for line in range(5):
            y = base - line / 4 * height
            yield f'<line x1="{left}" x2="{left + wide - 70}" y1="{y}" y2="{y}" stroke="#dddddd"/>'
            yield f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{top * line / 4:.3g}</text>'
        at = left + 10
        for n in counts:
            first = at
            for way, color in COLORS.items():
                if (n, way) in found:
                    y = base - found[n, way] / top * height
                    yield (f'<rect x="{at}" y="{y:.1f}" width="{bar - 2}" height="{base - y:.1f}" fill="{color}">'
                           f'<title>{n} nodes, {WAYS[way]}: {found[n, way]:.2f}</title></rect>')
                    at += bar
            yield f'<text x="{(first + at) / 2}" y="{base + 16}" text-anchor="middle">{n}</text>'
            at += 18
        yield f'<text x="{left + (wide - 70) / 2}" y="{base + 36}" text-anchor="middle">nodes that share {job.mb} MB</text>'
    yield "</g></svg>"


def write(x, cells, ranks, every, links, least):
    """least: seconds of the first epoch that the last of cells, nodes that read all each, must take."""
    thousand = "".join(f"    {line}\n" for line in said(*THOUSAND).splitlines())
    with open(f"{DOCS}/bench/nodes.md", "w", encoding="utf-8") as f:
        f.write(PAGE.format(
            version=said("--version").split("\n", maxsplit=1)[0], cores=os.cpu_count(), kernel=platform.release(), batch=32,
            links=links, mb=ranks.mb, rate=ranks.rate // 1000000, node_rate=links * ranks.rate // 1000000, all_mb=every.mb,
            all_rate=every.rate // 1000000, all_node_rate=links * every.rate // 1000000, warm=x.warm / 1e6,
            nodes=cells[-1][1], least=least, least_ratio=least / x.runs[f"{every.name}1own"].epoch,
            ranks="\n".join(table(x, cells, ranks)), all="\n".join(table(x, cells, every)),
            predicted="\n".join(predicted(x, cells)), command=" ".join(THOUSAND), thousand=thousand))
    with open(f"{DOCS}/bench/nodes.svg", "w", encoding="utf-8") as f:
        f.write("\n".join(figure(x, cells, ranks)) + "\n")
