#!/usr/bin/python3
"""A member that waits for a slow origin is alive: while it fetches a slice of which a reader has got its part already, it
answers other requests of that reader's node at once, so that none asks another member, which would fetch again."""

import http.client
import http.server
import threading

from lib import DEADLINE, equal, text
from ring import SLICE, Ring, address, rings_calmly
from servers import Late

DATA = bytes(range(256)) * (SLICE // 256)
HALF = SLICE // 2
PART = 64 << 10
NODES = 4


class Origin(http.server.ThreadingHTTPServer):
    """Sends half of a slice; the rest when go is set."""

    daemon_threads = True

    def __init__(self):
        self.go, self.asked = threading.Event(), []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.headers["Range"])
        first, last = (int(word) for word in self.headers["Range"].removeprefix("bytes=").split("-"))
        self.send_response_only(206)
        self.send_header("ETag", '"v"')
        self.send_header("Content-Range", f"bytes {first}-{last}/{NODES * 4 * SLICE}")
        self.send_header("Content-Length", str(SLICE))
        self.end_headers()
        self.wfile.write(DATA[:HALF])
        self.server.go.wait()
        self.wfile.write(DATA[HALF:])

    def log_message(self, *_):
        pass


def ask(ring, path, slice_, **more):
    """Ask the front of node 0. Returns the reply, of which the body has been read."""
    connection = http.client.HTTPConnection(address(0), ring.port, timeout=DEADLINE)
    headers = {"X-Epochfs-Secret": text(ring.at(0), "secret").strip(), "X-Epochfs-Key": "0" * 64,
               "X-Epochfs-Slice": str(slice_), **more}
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    reply.bytes = reply.read()
    connection.close()
    return reply


def check():
    origin, members = Origin(), []
    with Ring(NODES, origin.url) as ring:
        try:
            ask_for_all(origin, ring, members)
        finally:
            origin.go.set()
            origin.shutdown()
    if any("," in m for m in members):
        raise Late(f"a member did not answer within 0.8 s, perhaps for want of a processor: {members}")
    equal(len(set(members)) > 1, True, f"several members: {members}")
    equal(len(origin.asked), len(members), f"slices that the origin was asked for: {origin.asked}")


def ask_for_all(origin, ring, members):
    slices = range(NODES * 4)
    for k in slices:
        reply = ask(ring, "/one", k, **{"X-Epochfs-Origin": origin.url, "If-Match": '"v"',
                                        "Range": f"bytes={k * SLICE}-{k * SLICE + PART - 1}"})
        equal((reply.status, reply.bytes == DATA[:PART]), (206, True), f"a part of slice {k}")
        reply = ask(ring, "/.epochfs-peers/member", k)
        equal(reply.status, 204, f"the member that fetches slice {k}")
        members.append(reply.headers["X-Epochfs-Member"])


rings_calmly(check)
