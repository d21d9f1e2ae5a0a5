#!/usr/bin/python3
"""A TCP proxy on a free port of 127.0.0.1 whose connections share one bandwidth: a remote far away.

    limit_proxy.py PORT BYTES_PER_SECOND

Connects to PORT of 127.0.0.1. Prints its own port, serves until its stdin ends. Bytes to the
server are not limited; those from it come in turns of PIECE bytes, whoever has some.
"""

import selectors
import socket
import sys
import time

PIECE = 32 << 10
BURST = 256 << 10  # bytes that may come at once after a rest
BUFFER = 64 << 10  # of a socket to a client: what the kernel keeps is counted as delivered


class Way:
    """One direction of a connection."""

    def __init__(self, source, target, limited):
        self.source, self.target, self.limited = source, target, limited
        self.pending = b""
        self.other = None


class Proxy:
    def __init__(self, port, rate):
        self.port, self.rate = port, rate
        self.budget, self.when = BURST, time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.selector.register(self.listener, selectors.EVENT_READ, "new")
        self.selector.register(sys.stdin, selectors.EVENT_READ, "end")
        self.waiting = {}  # limited ways whose server has bytes, while there is no budget

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(("127.0.0.1", self.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        for s in (client, server):
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        down, up = Way(server, client, True), Way(client, server, False)
        down.other, up.other = up, down
        self.watch(down)
        self.watch(up)

    def watch(self, way):
        """Of each socket its own way is watched: readable where it is the source, writable while
        something is pending to it."""
        for s, mine, to in ((way.source, way, way.other), (way.target, way.other, way)):
            events = 0 if mine.pending or mine in self.waiting else selectors.EVENT_READ
            events |= selectors.EVENT_WRITE if to.pending else 0
            try:
                self.selector.unregister(s)
            except KeyError:
                pass
            if events:
                self.selector.register(s, events, (mine, to))

    def close(self, way):
        for s in (way.source, way.target):
            try:
                self.selector.unregister(s)
            except KeyError:
                pass
            s.close()
        self.waiting.pop(way, None)
        self.waiting.pop(way.other, None)

    def refill(self):
        now = time.monotonic()
        self.budget = min(BURST, self.budget + (now - self.when) * self.rate)
        self.when = now

    def move(self, way):
        """Read once and pass it on."""
        if way.limited and self.budget <= 0:
            self.waiting[way] = True
            self.watch(way)
            return
        try:
            way.pending = way.source.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            self.close(way)
            return
        if not way.pending:
            self.close(way)
            return
        if way.limited:
            self.budget -= len(way.pending)
        self.flush(way)

    def flush(self, way):
        had = way.pending
        try:
            way.pending = had[way.target.send(had):]
        except BlockingIOError:
            pass
        except OSError:
            self.close(way)
            return
        self.watch(way)

    def run(self):
        print(self.listener.getsockname()[1], flush=True)
        while True:
            self.refill()
            if self.waiting and self.budget > 0:
                for way in list(self.waiting):
                    del self.waiting[way]
                    self.watch(way)
            rest = max(0.0005, -self.budget / self.rate) if self.waiting else None
            for key, events in self.selector.select(rest):
                if key.data == "end":
                    return
                if key.data == "new":
                    self.accept()
                    continue
                mine, to = key.data
                if events & selectors.EVENT_WRITE and to.pending:
                    self.flush(to)
                if events & selectors.EVENT_READ and mine.source.fileno() >= 0 and \
                        not mine.pending:
                    self.move(mine)


Proxy(int(sys.argv[1]), float(sys.argv[2])).run()
