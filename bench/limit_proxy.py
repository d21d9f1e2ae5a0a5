#!/usr/bin/python3
"""A TCP proxy on 127.0.0.1 with one bandwidth for all its connections: a distant remote.

    limit_proxy.py PORT BYTES_PER_SECOND [HOSTS [DELAY]]

Connects to PORT of 127.0.0.1. Prints a free port for each of HOSTS (1), and serves until its stdin
ends. Bytes to the server are not limited; bytes from it pass in turns of PIECE bytes among the
connections that have some. Hosts with bytes at the same time get equal shares, however many
connections each has; 0 bytes per second is no limit. DELAY: seconds that bytes travel, in each
direction; the first bytes of a new connection wait two of them first, as if the connection were
made over that distance.

A line on stdin is answered by one of JSON: connections, requests (of HTTP: GET or HEAD), bytes.
"""

import collections
import heapq
import itertools
import json
import os
import selectors
import socket
import sys
import time

PIECE = 32 << 10
BURST = 64 << 10  # bytes that may come at once after a rest
LATE = 0.05  # seconds that this process may be late without losing bandwidth
BUFFER = 64 << 10  # of a socket to a client: what the kernel keeps is counted as delivered
WINDOW = 8 << 20  # of a connection: bytes that may be under way


class Host:
    def __init__(self, limited):
        self.limited = limited
        self.budget = BURST
        self.waiting = {}  # ways with bytes from the server that wait for budget


class Way:
    """One direction of a connection."""

    def __init__(self, source, target, host, ready):
        self.source, self.target, self.host, self.ready = source, target, host, ready
        self.queue = collections.deque()  # (when, bytes; none: the end)
        self.size = 0  # bytes in it
        self.stuck = False  # its target takes no more
        self.other = None

    def reads(self, delay):
        return self.size < (WINDOW if delay else 1) and \
            not (self.host and self in self.host.waiting)


class Proxy:
    def __init__(self, port, rate, hosts, delay):
        self.port, self.rate, self.delay = port, rate, delay
        self.when = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.hosts = [Host(rate > 0) for _ in range(hosts)]
        self.listeners = []
        for host in self.hosts:
            listener = socket.create_server(("127.0.0.1", 0), backlog=128)
            self.selector.register(listener, selectors.EVENT_READ, host)
            self.listeners.append(listener)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        self.due = []  # heap of (when, number, way)
        self.numbers = itertools.count()
        self.seen = {"connections": 0, "requests": 0, "bytes": 0}

    def accept(self, listener, host):
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", self.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        for s in (client, server):
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ready = time.monotonic() + 2 * self.delay
        down, up = Way(server, client, host, 0), Way(client, server, None, ready)
        down.other, up.other = up, down
        self.watch(down)
        self.watch(up)
        self.seen["connections"] += 1

    def watch(self, way):
        """Watch each socket: for reading as the source of its way, for writing while its target
        takes no more."""
        for s, mine, to in ((way.source, way, way.other), (way.target, way.other, way)):
            events = selectors.EVENT_READ if mine.reads(self.delay) else 0
            events |= selectors.EVENT_WRITE if to.stuck else 0
            key = self.selector.get_map().get(s)
            if not events:
                if key:
                    self.selector.unregister(s)
            elif not key:
                self.selector.register(s, events, (mine, to))
            elif key.events != events:
                self.selector.modify(s, events, (mine, to))

    def close(self, way):
        for s in (way.source, way.target):
            if s.fileno() >= 0 and self.selector.get_map().get(s):
                self.selector.unregister(s)
            s.close()
        for w in (way, way.other):
            w.queue.clear()
            if w.host:
                w.host.waiting.pop(w, None)

    def refill(self):
        """Give the budget of the time since the last refill to the ways that wait for it."""
        now = time.monotonic()
        more, self.when = (now - self.when) * self.rate, now
        busy = [h for h in self.hosts if h.waiting] or self.hosts
        for host in self.hosts:
            if host in busy:
                host.budget += more / len(busy)
            host.budget = min(host.budget, max(BURST, self.rate * LATE) if host.waiting else BURST)
            if host.budget > 0 and host.waiting:
                waiting, host.waiting = host.waiting, {}
                for way in waiting:
                    self.watch(way)

    def move(self, way):
        """Read once and pass it on."""
        host = way.host
        if host and host.limited and host.budget <= 0:
            host.waiting[way] = True
            self.watch(way)
            return
        try:
            data = way.source.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            self.close(way)
            return
        if not host:
            self.seen["requests"] += data.count(b"GET /") + data.count(b"HEAD /")
        else:
            host.budget -= len(data)
            self.seen["bytes"] += len(data)
        when = max(time.monotonic(), way.ready) + self.delay if self.delay else 0
        way.queue.append((when, data))
        way.size += len(data)
        if self.delay:
            heapq.heappush(self.due, (when, next(self.numbers), way))
            self.watch(way)
        else:
            self.flush(way)

    def flush(self, way):
        """Send the bytes whose delay has passed."""
        now = time.monotonic()
        way.stuck = False
        while way.queue and way.queue[0][0] <= now:
            when, data = way.queue[0]
            if not data:
                self.close(way)
                return
            try:
                sent = way.target.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.close(way)
                return
            way.size -= sent
            if sent < len(data):
                way.queue[0] = (when, data[sent:])
                way.stuck = True
                break
            way.queue.popleft()
        self.watch(way)

    def rest(self):
        """Seconds until the next work that no socket event starts; None: there is none."""
        times = []
        busy = [h for h in self.hosts if h.waiting]
        if busy:
            times.append(max(0.0005, min(-h.budget for h in busy) * len(busy) / self.rate))
        if self.due:
            times.append(max(0, self.due[0][0] - time.monotonic()))
        return min(times, default=None)

    def arrive(self):
        now = time.monotonic()
        while self.due and self.due[0][0] <= now:
            way = heapq.heappop(self.due)[2]
            if way.target.fileno() >= 0 and not way.stuck:
                self.flush(way)

    def run(self):
        print(*(s.getsockname()[1] for s in self.listeners), flush=True)
        while True:
            self.refill()
            self.arrive()
            for key, events in self.selector.select(self.rest()):
                if key.fileobj is sys.stdin:
                    if not os.read(0, 4096):
                        return
                    print(json.dumps(self.seen), flush=True)
                elif isinstance(key.data, Host):
                    self.accept(key.fileobj, key.data)
                else:
                    mine, to = key.data
                    if events & selectors.EVENT_WRITE and to.stuck and to.target.fileno() >= 0:
                        self.flush(to)
                    if events & selectors.EVENT_READ and mine.source.fileno() >= 0:
                        self.move(mine)


def main(port, rate, hosts="1", delay="0"):
    Proxy(int(port), float(rate), int(hosts), float(delay)).run()


main(*sys.argv[1:])
