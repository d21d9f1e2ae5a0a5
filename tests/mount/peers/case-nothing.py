#!/usr/bin/python3
# slow: waits for members that hang
"""A front that is alive, and whose ring gives nothing for data: readers get their bytes from the origin, whatever
timeout= is, within 2 s if members do not answer, and within 5 s if they do. While all that the ring gives takes long, because the origin is slow, the origin is not asked
next to it; and a request whose member is alive is not sent again, but one whose member has been replaced is."""

import http.server
import itertools
import re
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np

from lib import DEADLINE, PRIVATE, equal, idx_bytes, log_text, stop
from servers import PATIENT, Late, MiB, Nginx, calmly, place, read_anew, start_at

WWW = f"{PRIVATE}/www"
DATA = idx_bytes(np.random.default_rng(3).integers(0, 256, (20000, 32, 32), dtype=np.uint8))
PIECE = 64 << 10
LIMITS = {False: 4, True: 20}  # seconds, if members answer: 2 or 5, and what the machine takes
TRY = itertools.count()
ONE, OTHER = "10.0.0.1:20001", "10.0.0.2:20001"
place(WWW, "one-data", DATA)


class Front(http.server.ThreadingHTTPServer):
    """Passes requests on to the origin. late: seconds before each reply with data; mute: such a reply never
    comes, until the end; dead: nor an answer of a member. held: of the next such reply only the head comes, the rest when it has been asked after the
    member so often; asking is answered in the name of answering."""

    daemon_threads = True
    request_queue_size = 128  # with the 5 of Python a connection may wait for a second

    def __init__(self, origin):
        self.origin, self.late, self.mute, self.dead = origin, 0, False, False
        self.asked, self.over = 0, threading.Event()
        self.held, self.answering, self.probes, self.probed = 0, ONE, 0, threading.Condition()
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def probe(self):
        with self.probed:
            self.probes += 1
            self.probed.notify_all()

    def hold(self):
        with self.probed:
            last, self.held = self.probes + self.held, 0
            self.probed.wait_for(lambda: self.probes >= last or self.over.is_set(), timeout=DEADLINE)

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
        if self.headers["X-Epochfs-Slice"]:
            self.server.hold()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        front = self.server
        if front.dead and self.path == "/.epochfs-peers/member":
            front.over.wait()
        elif self.path.startswith("/.epochfs-peers/"):
            self.answer(204, [("X-Epochfs-Member", front.answering)], b"")
            if self.path.endswith("/member"):
                front.probe()
        else:
            self.pass_on(front)

    def pass_on(self, front):
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
                self.answer(reply.status, [*reply.headers.items(), ("X-Epochfs-Member", ONE)], reply.read())
        except urllib.error.HTTPError as e:
            self.answer(e.code, e.headers.items(), e.read())

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def mount(name, origin, front, *more):
    return start_at(name, f"{origin.url}/", f"cache={PRIVATE}/cache.{name},stage=off,timeout=60,via={front.url}", *more)


def read(daemon, at):
    equal(read_anew(daemon.at, "one-data/source/one-data", size=PIECE, offset=at) == DATA[at:at + PIECE], True, f"at {at}")


def check_mute(origin, front, dead):
    name = f"{'dead' if dead else 'mute'}{next(TRY)}"
    daemon = mount(name, origin, front)
    front.asked = 0
    for k in range(16):
        read(daemon, k * MiB)
    equal(front.asked >= 16, True, f"requests for data at the front: {front.asked}")
    front.mute, front.dead, longest = True, dead, 0
    for at in (16 * MiB, 18 * MiB):
        begin = time.monotonic()
        read(daemon, at)
        longest = max(longest, time.monotonic() - begin)
    print(f"{name}: {longest:.2f} s", flush=True)
    equal("gives nothing; the origin is asked in their place" in log_text(f"log.{name}"), True, "the log")
    front.mute = front.dead = False
    stop(daemon)
    if longest > LIMITS[not dead] * PATIENT:
        raise Late(f"{name}: a read while the ring gives nothing: {longest:.2f} s")


def check_slow(origin, front):
    """Each reply takes longer than it takes to send a request again."""
    front.late, front.asked, name = 1.5, 0, f"slow{next(TRY)}"
    daemon = mount(name, origin, front)
    before = len(origin.log())
    for k in range(2):
        read(daemon, k * MiB)
    asked, at_origin = front.asked, len(origin.log()) - before
    stop(daemon)
    # The front is a program in Python, and so late that little is left until it counts as one that gives nothing.
    if "gives nothing" in log_text(f"log.{name}"):
        raise Late("a slow ring was not waited for")
    equal(at_origin <= asked, True, f"requests at the origin: {at_origin}, of the front: {asked}")


def check_alive(origin, front):
    """Its member has sent a head, and answers: it waits for the origin."""
    front.late = 0
    daemon = mount(f"alive{next(TRY)}", origin, front)
    front.held, before, at_origin = 6, front.asked, len(origin.log())
    read(daemon, 0)
    asked, at_origin = front.asked - before, len(origin.log()) - at_origin
    front.answering = f"{ONE}, {OTHER}"  # from now on the front takes another member
    front.held, before = 6, front.asked
    read(daemon, 4 * MiB)
    stop(daemon)
    if (asked, at_origin) != (1, 1):  # an answer of the member may have come late
        raise Late(f"requests for data: {asked} of the front, {at_origin} of the origin, expected one of each")
    equal(front.asked - before >= 2, True, f"requests for data whose member was replaced: {front.asked - before}")


with Nginx(WWW) as the_origin:
    the_front = Front(the_origin.url)
    try:
        calmly(check_mute, the_origin, the_front, False)
        calmly(check_mute, the_origin, the_front, True)
        calmly(check_slow, the_origin, the_front)
        calmly(check_alive, the_origin, the_front)
    finally:
        the_front.over.set()
        the_front.shutdown()
