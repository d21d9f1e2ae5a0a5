#!/usr/bin/python3
"""A front that is alive, and whose ring gives nothing for data: readers get their bytes from the origin within 5 s,
whatever timeout= is. While all that the ring gives takes long, because the origin is slow, the origin is not asked
beside it."""

import http.server
import re
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np

from lib import PRIVATE, equal, idx_bytes, log_text, stop
from servers import MiB, Nginx, place, read_anew, start_at, within

WWW = f"{PRIVATE}/www"
DATA = idx_bytes(np.random.default_rng(3).integers(0, 256, (20000, 32, 32), dtype=np.uint8))
PIECE = 64 << 10
LIMIT = 6  # seconds: 5, and what the machine takes
place(WWW, "one-data", DATA)


class Front(http.server.ThreadingHTTPServer):
    """Passes requests on to the origin. late: seconds before each reply with data; mute: such a reply never
    comes, until the end."""

    daemon_threads = True

    def __init__(self, origin):
        self.origin, self.late, self.mute = origin, 0, False
        self.asked, self.over = 0, threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a request that was sent again was left
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, headers, body):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", dict(headers).get("Content-Length") or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        front = self.server
        if self.path.startswith("/.epochfs-peers/"):
            self.answer(204, [], b"")
            return
        if self.headers["X-Epochfs-Slice"]:
            front.asked += 1
            if front.mute:
                front.over.wait()
                return
            front.over.wait(front.late)
        path = re.sub(r"^http://[^/]*", "", self.path)
        wanted = {name: self.headers[name] for name in ("Range", "If-Match") if self.headers[name]}
        asked = urllib.request.Request(front.origin + path, headers=wanted, method=self.command)
        try:
            with urllib.request.urlopen(asked) as reply:
                self.answer(reply.status, reply.headers.items(), reply.read())
        except urllib.error.HTTPError as e:
            self.answer(e.code, e.headers.items(), e.read())

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def mount(name, origin, front, *more):
    return start_at(name, f"{origin.url}/", f"cache={PRIVATE}/cache.{name},stage=off,timeout=60,via={front.url}", *more)


def read(daemon, at):
    equal(read_anew(daemon.at, "one-data/source/one-data", size=PIECE, offset=at) == DATA[at:at + PIECE], True, f"at {at}")


def check_mute(origin, front):
    daemon = mount("mute", origin, front)
    for k in range(16):
        read(daemon, k * MiB)
    equal(front.asked >= 16, True, f"requests for data at the front: {front.asked}")
    front.mute = True
    for at in (16 * MiB, 18 * MiB):
        begin = time.monotonic()
        with within(LIMIT, f"a read at {at} while the ring gives nothing"):
            read(daemon, at)
        print(f"{time.monotonic() - begin:.2f} s", flush=True)
    equal("gives nothing; the origin is asked in their place" in log_text("log.mute"), True, "the log")
    front.mute = False
    stop(daemon)


def check_slow(origin, front):
    """Each reply takes longer than it takes to send a request again."""
    front.late, front.asked = 1.5, 0
    daemon = mount("slow", origin, front)
    before = len(origin.log())
    for k in range(2):
        read(daemon, k * MiB)
    asked, at_origin = front.asked, len(origin.log()) - before
    stop(daemon)
    equal("gives nothing" in log_text("log.slow"), False, "a slow ring is waited for")
    equal(at_origin <= asked, True, f"requests at the origin: {at_origin}, of the front: {asked}")


with Nginx(WWW) as the_origin:
    the_front = Front(the_origin.url)
    try:
        check_mute(the_origin, the_front)
        check_slow(the_origin, the_front)
    finally:
        the_front.over.set()
        the_front.shutdown()
