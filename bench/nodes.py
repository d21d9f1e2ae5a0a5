#!/usr/bin/python3
"""Nodes of a job that start with empty caches and train at once; the links are limited.

    nodes.py [--quick] [--write-docs]      (by bench/run nodes)

Jobs:
  ranks  the nodes share the dataset: node K reads batches of rank K of N, one epoch
  all    each node reads all of the dataset, in an order of its own, one epoch

Ways to fetch:
  own    each node's mount has a cache of its own, and asks the origin
  site   the same through a site cache (mount-scripts/site-cache), a machine with the link of a node
  peers  the nodes are one cache (mount-scripts/peers)

A node computes on a batch as long as the origin's link needs to send it: the rate of one node. A node's link has
LINKS times that. Rates are so low that the processor is not the limit: the share of it that was busy is shown.
All nodes of a run mount at the same time; times count from the first command, so they include mounting.
`epochfs plan --nodes` predicts each run with peers.

Nodes that read all of it, each in an order of its own, cannot be as fast as one node: least() says why, and by how much.

Prints the rows of bench/run; --write-docs: also docs/bench/nodes.md and docs/bench/nodes.svg. $EPOCHFS_BENCH_RESULTS: a file of
runs that have been measured already, to which others are added: so it can be done in several parts.
"""

import network

network.enter()

import collections
import concurrent.futures
import contextlib
import json
import os
import subprocess
import sys
import time

import bars
import nodes_page
from bars import FAST, WWW, calm, dataset, empty, row, say, seconds, warm
from lib import DEADLINE, EPOCHFS, PRIVATE, equal, stop
from network import ORIGIN, SITE
from servers import Nginx, sent, start_at, wait_until

QUICK = "--quick" in sys.argv
RESULTS = os.environ.get("EPOCHFS_BENCH_RESULTS")
TRAIN = os.environ["TRAIN"]
TOOLS = os.path.join(bars.HERE, "../mount-scripts")
SHAPE = (224, 224, 3)
SAMPLE = 224 * 224 * 3
HEAD = 20
BATCH, SEED = 32, 7
LINKS = 4
PORT = 20000
WAYS = nodes_page.WAYS

# rate: of one node, and of the origin's link, in bytes per second.
Job = collections.namedtuple("Job", "name mb rate")
RANKS = Job("ranks", *((200, 40_000_000) if QUICK else (1000, 40_000_000)))
ALL = Job("all", *((200, 20_000_000) if QUICK else (600, 20_000_000)))

# One run. first, epoch: seconds of the slowest node; link: name -> [bytes in, bytes out]; busy, machine: share of the
# processors that our processes used, and all of the machine.
Run = collections.namedtuple("Run", "first epoch origin link busy machine")


def pace(job):
    """Seconds that a batch computes."""
    return BATCH * SAMPLE / job.rate


def samples(job):
    return job.mb * 1000000 // SAMPLE


def size_of(job):
    return HEAD + samples(job) * SAMPLE


def make_data(job):
    os.makedirs(f"{WWW}/{job.name}", exist_ok=True)
    with open(f"{WWW}/{job.name}/pixels", "wb") as f:
        f.write(bytes([0, 0, 8, 4]) + b"".join(v.to_bytes(4, "big") for v in (samples(job), *SHAPE)))
        for _ in range(samples(job)):
            f.write(os.urandom(SAMPLE))


def busy():
    """Seconds that all our processes, those of the nodes and of the origin, have worked."""
    ticks = 0
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", "rb") as f:
            ticks += sum(int(word) for word in f.read().rpartition(b")")[2].split()[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def machine():
    """The same of all processes of the machine, and the seconds of all processors."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in f.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


class Ring:
    """Peers on the first n nodes."""

    def __init__(self, net, n, origin):
        self.net, self.n = net, n
        self.folder = f"{PRIVATE}/ring"
        os.makedirs(self.folder)
        self.secret = f"{self.folder}/secret"
        with open(self.secret, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(os.urandom(32).hex() + "\n")
        self.nodes, self.origin = ",".join(net.address(i) for i in range(n)), origin

    def tool(self, i, *arguments):
        return subprocess.Popen([*self.net.prefix(f"node{i}"), f"{TOOLS}/peers", *arguments, "--folder",
                                 f"{self.folder}/{i}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def __enter__(self):
        starting = [self.tool(i, "up", "--nodes", self.nodes, "--self", self.net.address(i), "--size", "4g", "--secret",
                              self.secret, "--port", str(PORT), "--wait", str(DEADLINE), "--origin", self.origin)
                    for i in range(self.n)]
        for i, process in enumerate(starting):
            out = process.communicate(timeout=DEADLINE)[0].decode()
            equal((process.returncode, out), (0, self.options(i) + "\n"), f"peers up of node {i}")
        return self

    def __exit__(self, *_):
        for process in [self.tool(i, "down") for i in range(self.n)]:
            equal((process.communicate(timeout=DEADLINE)[0], process.returncode), (b"", 0), "peers down")
        empty(self.folder)

    def options(self, i):
        return f"peers=http://127.0.0.1:{PORT},peers_secret={self.folder}/{i}/secret"


class Site:
    """A site cache on its machine."""

    CONF = "daemon off; pid {dir}/pid; error_log {dir}/error.log; user root;\nevents {{ worker_connections 1024; }}\n" \
           "http {{ access_log off; sendfile on; {temp}\n{conf}}}\n"

    def __init__(self, net, origin):
        self.folder = f"{PRIVATE}/site"
        os.makedirs(f"{self.folder}/cache")
        conf = subprocess.run([f"{TOOLS}/site-cache/make-conf", "-l", f"{SITE}:8080", "-d", f"{self.folder}/cache", "-s", "4g",
                               origin], stdout=subprocess.PIPE, check=True, text=True).stdout
        temp = " ".join(f"{k}_temp_path {self.folder}/t;" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(f"{self.folder}/conf", "w", encoding="utf-8") as f:
            f.write(self.CONF.format(dir=self.folder, conf=conf, temp=temp))
        self.net, self.process, self.url = net, None, f"http://{SITE}:8080"

    def __enter__(self):
        self.process = subprocess.Popen([*self.net.prefix("site"), "nginx", "-c", f"{self.folder}/conf", "-e",
                                         f"{self.folder}/error.log"], stdin=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(f"{self.folder}/pid"), "the site cache runs", self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(DEADLINE)
        empty(self.folder)


class Experiment:
    def __init__(self):
        self.server, self.net = None, None
        self.url = f"http://{ORIGIN}"
        self.begin = 0
        # "ranks8peers" -> Run; checksums; bytes a second of a warm read; what was predicted.
        self.runs, self.sums, self.warm, self.predicted = {}, {}, None, {}
        if RESULTS and os.path.exists(RESULTS):
            with open(RESULTS, encoding="utf-8") as f:
                found = json.load(f)
            self.runs = {name: Run(*values) for name, values in found["runs"].items()}
            self.sums, self.warm, self.predicted = found["sums"], found["warm"], found["predicted"]

    def save(self):
        if RESULTS:
            with open(RESULTS, "w", encoding="utf-8") as f:
                json.dump({"runs": self.runs, "sums": self.sums, "warm": self.warm, "predicted": self.predicted}, f)

    def plan(self, job, i, n):
        return f"batch={BATCH},rank={i}of{n},seed={SEED}" if job is RANKS else f"batch={BATCH},seed={SEED + i}"

    def predict(self, job, n):
        """What epochfs plan says of it."""
        out = subprocess.run([EPOCHFS, "plan", "--json", "-o", f"cache_dir={PRIVATE}/cache.plan,plan={self.plan(job, 0, n).replace(',', '+')}",
                              "--epochs=1", f"--compute={pace(job):.6f}", f"--nodes={n}", f"--node-rate={LINKS * job.rate}",
                              f"--origin-rate={job.rate}", f"{self.server.url}/{job.name}/"], stdout=subprocess.PIPE, check=True)
        return json.loads(out.stdout)["plans"][0]["nodes"]

    def node(self, job, i, n, source, options):
        """Mount and train on a node. Returns seconds until the first batch and the end, and the checksum."""
        plan, count = self.plan(job, i, n), samples(job)
        if job is RANKS:
            count = -(-(count - i) // n)
        daemon = start_at(f"mount{i}", source, f"cache_dir={PRIVATE}/cache.{i},plan={plan.replace(',', '+')}{options}",
                          prefix=self.net.prefix(f"node{i}"))
        mounted = time.monotonic() - self.begin
        out = subprocess.run([TRAIN, "files", "-g", str(int(1e6 * pace(job))), f"{dataset(daemon.at)}/batches/{plan}",
                              "epoch=@/npy/######.data.npy", str(-(-count // BATCH))], stdout=subprocess.PIPE, check=True,
                             text=True)
        words = out.stdout.split()
        return daemon, mounted + float(words[4]) / 1e6, time.monotonic() - self.begin, words[3]

    def measure(self, job, n, way):
        for i in range(n):
            empty(f"{PRIVATE}/cache.{i}")
        calm()
        warm(f"{job.name}/pixels")
        if way == "peers":
            with Ring(self.net, n, self.url) as ring:
                self.train(job, n, way, self.url, lambda i: f",{ring.options(i)}")
                if job is ALL:
                    self.warm_read(job, ring)
        elif way == "site":
            with Site(self.net, self.url) as site:
                self.train(job, n, way, site.url, lambda _: "")
        else:
            self.train(job, n, way, self.url, lambda _: "")
        self.save()

    def train(self, job, n, way, url, options):
        self.server.forget()
        traffic, worked, all_worked, self.begin = self.net.traffic(), busy(), machine(), time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            found = [pool.submit(self.node, job, i, n, f"{url}/{job.name}/", options(i)) for i in range(n)]
            found = [f.result() for f in found]
        took, worked = time.monotonic() - self.begin, busy() - worked
        all_worked = [after - before for before, after in zip(all_worked, machine())]
        link = {name: [a - b for a, b in zip(after, traffic[name])] for name, after in self.net.traffic().items()}
        for daemon, *_ in found:
            stop(daemon)
        sums = [f[3] for f in found]
        equal(sums, self.sums.setdefault(f"{job.name}{n}", sums), f"{job.name}, {n} nodes, {way}: checksums of what was read")
        run = Run(max(f[1] for f in found), max(f[2] for f in found), sent(self.server.log(data_only=False)) / size_of(job),
                  link, worked / took / os.cpu_count(), all_worked[0] / all_worked[1])
        self.runs[f"{job.name}{n}{way}"] = run
        say(f"{job.name}, {n} nodes, {WAYS[way]}: first batch {run.first:.2f} s, epoch {run.epoch:.2f} s, origin "
            f"{run.origin:.2f} x, processors {100 * run.busy:.0f} %, of the whole machine {100 * run.machine:.0f} %")

    def warm_read(self, job, ring):
        """A node with an empty cache reads what the ring keeps."""
        empty(f"{PRIVATE}/cache.0")
        calm()
        daemon = start_at("mount0", f"{self.url}/{job.name}/", f"cache_dir={PRIVATE}/cache.0,evict=never,{ring.options(0)}",
                          prefix=self.net.prefix("node0"))
        before = self.net.traffic()["node0"][0]
        took = seconds("dd", f"if={dataset(daemon.at)}/source/pixels", "of=/dev/null", "bs=1M", "count=400", "status=none")
        self.warm = (self.net.traffic()["node0"][0] - before) / took
        stop(daemon)


def least(x, n):
    """Seconds that the first epoch of n nodes takes at least that read all, each in an order of its own: after a share of
    it they have needed 1 - (1 - share)^n of the samples, of which the origin sends all in the time of one node; then
    the rest is computed."""
    one, compute = x.runs[f"{ALL.name}1own"].epoch, samples(ALL) / BATCH * pace(ALL)
    return max(one * (1 - (1 - k / 1000)**n) + (1 - k / 1000) * compute for k in range(1001))


def cells():
    yield RANKS, 1, "own"
    for n in 2, 4, 8:
        for way in WAYS:
            yield RANKS, n, way
    yield ALL, 1, "own"
    yield ALL, 8, "peers"


def rows(x):
    for job in RANKS, ALL:
        one, many, plan = x.runs[f"{job.name}1own"], x.runs[f"{job.name}8peers"], x.predicted[f"{job.name}8peers"]
        what = "sharing the data" if job is RANKS else "reading all each"
        row(f"origin bytes, 8 nodes {what}", f"{many.origin:.3f} x", "the dataset", many.origin, "<=", 1.02)
        if job is RANKS:
            row(f"epoch 1, 8 nodes {what}", f"{many.epoch:.2f} s", f"1 node {one.epoch:.2f} s", many.epoch / one.epoch, "<=", 1.15)
        else:
            row(f"epoch 1, 8 nodes {what}", f"{many.epoch:.2f} s", f"the least for 8 orders {least(x, 8):.2f} s",
                many.epoch / least(x, 8), "<=", 1.25)
            row("  against one node alone", f"{many.epoch:.2f} s", f"{one.epoch:.2f} s", many.epoch / one.epoch, "-", 0)
        for name, found, want, unit in (
                ("origin bytes", many.origin * size_of(job) / 1e6, plan["origin_bytes"] / 1e6, "MB"),
                ("epoch 1", many.epoch, plan["first_epoch_seconds"], "s")):
            row(f"{name}, 8 nodes {what}", f"{found:.4g} {unit}", f"epochfs plan {want:.4g} {unit}", abs(found / want - 1),
                "<=", 0.1)
    row("warm read through peers", f"{x.warm / 1e6:.1f} MB/s", f"a node's link, {LINKS * ALL.rate / 1e6:.0f} MB/s",
        x.warm / (LINKS * ALL.rate), ">=", 0.8)


def main():
    x = Experiment()
    for job in RANKS, ALL:
        missing = [(n, way) for j, n, way in cells() if j is job and f"{job.name}{n}{way}" not in x.runs]
        if not missing:
            continue
        make_data(job)
        with network.Network(8, LINKS * job.rate, job.rate) as x.net, \
                Nginx(WWW, more=f"{FAST} keepalive_requests 1000000; listen {ORIGIN}:80;", connections=1024) as x.server:
            for n, way in missing:
                if way == "peers":
                    x.predicted[f"{job.name}{n}{way}"] = x.predict(job, n)
                x.measure(job, n, way)
        empty(f"{WWW}/{job.name}")
    rows(x)
    if "--write-docs" in sys.argv:
        nodes_page.write(x, list(cells()), RANKS, ALL, LINKS, least(x, 8))


main()
