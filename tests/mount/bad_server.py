"""An HTTP server that misbehaves as a test scripts it: HTTP/1.1, keep-alive, a thread for each
connection.

    with BadServer(folder) as server:
        server.script("/file", status(503), times=3)     the next 3 requests of that path
        server.script("*", reset(after=1000), first=2)   from the 2nd request on, for ever
        ...
        server.log                                       a Request for each one answered

A client that has received the end of an answer finds the request in the log: log, data() and
forget() wait until all requests are logged, except stalled ones.

An action is a function that changes a Reply. Several scripts of a path apply in the order in which
they were set. Nothing sleeps: delays and the bandwidth wait on events, which the server's end sets.
"""

import collections
import contextlib
import email.utils
import gzip
import hashlib
import itertools
import os
import select
import socket
import struct
import threading
import time
import urllib.parse

from lib import DEADLINE
from servers import Request, free_port, parse_range

PIECE = 16 << 10


class Reply:
    """The planned answer. body: the bytes after the headers; end: what happens after `cut` bytes of
    it ("close", "reset", "stall"), None: all of it is sent and the connection is kept."""

    def __init__(self, server, request):
        data, tag = server.file(request.path)
        self.server, self.request, self.data = server, request, data
        self.status, self.headers, self.body = 404, {"Content-Type": "text/plain"}, b"no such file"
        self.cut, self.end, self.chunked, self.delay, self.raw = None, None, False, 0, None
        self.stall_first = False
        self.drip, self.drip_head = 0, False
        if data is not None:
            self.headers = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes",
                            "ETag": tag,
                            "Last-Modified": email.utils.formatdate(server.mtime, usegmt=True)}
            self.serve(request.range)

    def serve(self, span):
        """Serve the file, or the part (first, last) of it."""
        size = len(self.data)
        match = self.request.headers.get("if-match")
        if match and match not in ("*", self.headers["ETag"]):
            self.status, self.body = 412, b""
        elif span is None or self.request.headers.get("if-range", self.headers["ETag"]) != \
                self.headers["ETag"]:
            self.status, self.body = 200, self.data
        elif span[0] >= size:
            self.status, self.body = 416, b""
            self.headers["Content-Range"] = f"bytes */{size}"
        else:
            last = size - 1 if span[1] is None else min(span[1], size - 1)
            self.status, self.body = 206, self.data[span[0]:last + 1]
            self.headers["Content-Range"] = f"bytes {span[0]}-{last}/{size}"


# ---- actions ----

def status(code, retry_after=None):
    """An error with a body of its own."""
    def act(reply):
        reply.status, reply.body = code, b"<html>this is not the file</html>" * 20
        reply.headers = {"Content-Type": "text/html"}
        if retry_after is not None:
            reply.headers["Retry-After"] = str(retry_after)
    return act


def cut(after, end="close"):
    """After that many bytes of the body close or reset the connection, or send nothing more until
    server.release is set."""
    def act(reply):
        reply.cut, reply.end = after, end
    return act


def reset(after):
    return cut(after, "reset")


def stall(after=None):
    """Send nothing, or nothing more after that many bytes of the body."""
    def act(reply):
        if after is None:
            reply.stall_first = True
        else:
            reply.cut, reply.end = after, "stall"
    return act


def drip(seconds=0.3, head=False):
    """Send a byte every so many seconds: of the body, or of the head, where a line counts as
    one."""
    def act(reply):
        reply.drip, reply.drip_head = seconds, head
    return act


def hang_up():
    """Close the connection without an answer."""
    def act(reply):
        reply.raw, reply.end = b"", "close"
    return act


def garbage(data=b"\x16\x03\x01 this is not HTTP\r\n\r\n"):
    def act(reply):
        reply.raw, reply.end = data, "close"
    return act


def content_range(shift=0, total=0, size_too=False):
    """Another start or total in Content-Range. size_too: the body fits the other start."""
    def act(reply):
        span = reply.request.range
        if reply.status != 206:
            return
        first = span[0] + shift
        last = first + len(reply.body) - 1
        reply.headers["Content-Range"] = f"bytes {first}-{last}/{len(reply.data) + total}"
        if size_too:
            reply.body = (reply.data[first:] + reply.data)[:len(reply.body)]
    return act


def no_content_range():
    def act(reply):
        reply.headers.pop("Content-Range", None)
    return act


def whole():
    """Ignore ranges: 200 and all of the file."""
    def act(reply):
        if reply.data is not None:
            reply.status, reply.body = 200, reply.data
            reply.headers.pop("Content-Range", None)
            reply.headers.pop("Accept-Ranges", None)
    return act


def longer(more):
    """Send more bytes than requested, with a Content-Length to match."""
    def act(reply):
        reply.body = bytes(reply.body) + b"\xee" * more
    return act


def etag(value):
    """Another version, by its ETag only."""
    def act(reply):
        reply.headers["ETag"] = value
        if reply.request.headers.get("if-match") not in (None, "*", value):
            reply.status, reply.body = 412, b""
            reply.headers.pop("Content-Range", None)
    return act


def other(data):
    """Another content under the real file's ETag, so that only a checksum can tell."""
    def act(reply):
        reply.data = data
        reply.headers.pop("Content-Range", None)
        reply.serve(reply.request.range)
    return act


def flip(at):
    """Flip a bit of the file's byte `at` on the way."""
    def act(reply):
        start = reply.request.range[0] if reply.status == 206 else 0
        if reply.status in (200, 206) and start <= at < start + len(reply.body):
            body = bytearray(reply.body)
            body[at - start] ^= 0x20
            reply.body = bytes(body)
    return act


def chunked():
    """No Content-Length."""
    def act(reply):
        reply.chunked = True
    return act


def redirect(to, code=302):
    def act(reply):
        reply.status, reply.body = code, b"it has moved"
        reply.headers = {"Location": to(reply.request.path) if callable(to) else to}
    return act


def packed():
    """Pack the body with gzip, though the request did not allow it."""
    def act(reply):
        if reply.status in (200, 206):
            reply.body = gzip.compress(reply.body, 1)
            reply.headers["Content-Encoding"] = "gzip"
    return act


def delay(seconds):
    def act(reply):
        reply.delay += seconds
    return act


def without(*names):
    """Omit these headers."""
    def act(reply):
        for name in names:
            reply.headers.pop(name, None)
    return act


# ---- the server ----

class BadRequest(collections.namedtuple("BadRequest", "method path headers")):
    @property
    def range(self):
        return parse_range(self.headers.get("range"))


class BadServer:
    """rate: bytes per second over all connections, 0: no limit. sendbuf: about how many sent and
    not yet received bytes the kernel may hold. latency: seconds before each answer."""

    mtime = 1_600_000_000

    def __init__(self, folder, rate=0, sendbuf=None, latency=0):
        self.folder, self.rate, self.sendbuf, self.latency = folder, rate, sendbuf, latency
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.release = threading.Event()  # set: stalled answers continue
        self.logged, self.scripts, self.seen = [], [], collections.Counter()
        self.times = []  # arrival times of the requests in the log
        self.arrived = threading.Condition(self.lock)
        self.under_way = 0  # requests read and not yet in the log
        self.stalled = []  # of each waiting request, its event
        self.connections, self.listener, self.next_free = {}, None, 0.0
        self.files = {}
        self.life, self.death, self.died = None, None, None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.up()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.lock:
            self.over.set()
            self.release.set()
            self.arrived.notify_all()
        self.gone()

    # -- there or not --

    def up(self):
        listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.listener = listener
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def gone(self):
        """Refuse new connections and reset open ones, until up()."""
        listener, self.listener = self.listener, None
        if listener:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self.lock:
            open_now = list(self.connections.values())
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if self.sendbuf:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.sendbuf)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections[id(connection)] = connection
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def dies(self, life, death):
        """Die when that many bytes were sent, where a request counts as 500; None: never. death: "gone", or
        "silent": it accepts connections, and sends nothing more."""
        with self.lock:
            self.life, self.death, self.died = life, death, None

    def spend(self, n):
        """How many of n bytes may still be sent."""
        with self.lock:
            if self.life is None:
                return n
            n = min(n, self.life)
            self.life -= n
            dies = self.life == 0 and self.died is None
            if dies:
                self.died = time.monotonic()
        if dies and self.death == "gone":
            self.gone()
        return n

    # -- what the test says --

    def script(self, path, action, times=None, first=1, method="GET"):
        """Apply action to requests number first, first + 1, ... (times of them; None: all) of path
        from now on; "*": any path but listings. method None: any."""
        with self.lock:
            self.scripts.append({"path": path, "action": action, "times": times, "skip": first - 1,
                                 "method": method})

    def healthy(self):
        """Remove all scripts and end stalled answers."""
        with self.lock:
            self.scripts = []
            self.release.set()
            self.release = threading.Event()

    def count_stalled(self):
        """The number of requests that wait for an event that is not set. Call with the lock."""
        return sum(not event.is_set() for event in self.stalled)

    def wait_logged(self):
        """Wait until the log has all requests that are not stalled. Call with the lock."""
        if not self.arrived.wait_for(lambda: self.under_way <= self.count_stalled() or
                                     self.over.is_set(), DEADLINE):
            raise AssertionError(f"not in {DEADLINE} s: {self.under_way - self.count_stalled()} "
                                 "answers, which are not stalled, come to their end")

    @property
    def log(self):
        with self.lock:
            self.wait_logged()
            return list(self.logged)

    def forget(self):
        """Empty the log."""
        with self.lock:
            self.wait_logged()
            self.logged, self.times = [], []

    def data(self):
        """The logged requests that delivered bytes of files."""
        return [r for r in self.log if r.method == "GET" and r.status in (200, 206) and
                not r.path.endswith("/") and not r.path.endswith("SHA256SUMS")]

    def wait_requests(self, n, seconds=DEADLINE):
        """Wait until n requests have arrived, answered or not."""
        with self.lock:
            if not self.arrived.wait_for(lambda: self.seen["*"] >= n, seconds):
                raise AssertionError(f"{self.seen['*']} requests came, expected {n}")

    def wait_stalled(self, n=1, seconds=DEADLINE):
        """Wait until n requests are stalled."""
        with self.lock:
            if not self.arrived.wait_for(lambda: self.count_stalled() >= n, seconds):
                raise AssertionError(f"{self.count_stalled()} requests are stalled, expected {n}")

    def actions(self, request):
        listing = request.path.endswith("/") or request.path.endswith("SHA256SUMS")
        found = []
        with self.lock:
            self.seen["*"] += 1
            self.arrived.notify_all()
            for s in self.scripts:
                if s["path"] != request.path and (s["path"] != "*" or listing):
                    continue
                if s["method"] not in (None, request.method):
                    continue
                if s["skip"] > 0:
                    s["skip"] -= 1
                elif s["times"] is None or s["times"] > 0:
                    found.append(s["action"])
                    if s["times"] is not None:
                        s["times"] -= 1
        return found

    # -- a connection --

    def file(self, path):
        """The bytes of a file and its ETag; None, None: there is none."""
        where = os.path.join(self.folder, urllib.parse.unquote(path.split("?")[0]).lstrip("/"))
        try:
            st = os.stat(where)
            with self.lock:
                known = self.files.get(where)
                if known and known[0] == (st.st_mtime_ns, st.st_size, st.st_ino):
                    return known[1]
            with open(where, "rb") as f:
                data = f.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
            return None, None
        found = data, f'"{hashlib.md5(data).hexdigest()}"'
        with self.lock:
            self.files[where] = ((st.st_mtime_ns, st.st_size, st.st_ino), found)
        return found

    def serve(self, connection):
        reader = connection.makefile("rb")
        try:
            while not self.over.is_set():
                request = read_request(reader)
                if not request or not self.answer(connection, request):
                    break
        except OSError:
            pass
        finally:
            with self.lock:
                self.connections.pop(id(connection), None)
            with contextlib.suppress(OSError):
                reader.close()
            connection.close()

    def answer(self, connection, request):
        """False: the connection must not be used any more."""
        with self.lock:
            self.under_way += 1
        try:
            return self.answer_and_log(connection, request)
        finally:
            with self.lock:
                self.under_way -= 1
                self.arrived.notify_all()

    def answer_and_log(self, connection, request):
        came = time.monotonic()
        if self.spend(500) < 500:
            self.wait_release()
            return False
        reply = Reply(self, request)
        reply.delay = self.latency
        for act in self.actions(request):
            act(reply)
        if reply.delay:
            self.over.wait(reply.delay)
        if reply.stall_first:
            self.wait_release()
        n = 0
        try:
            if reply.raw is not None:
                connection.sendall(reply.raw)
            else:
                n = self.send(connection, request, reply)
        finally:
            with self.lock:
                self.logged.append(Request(reply.status, n, request.range, request.method,
                                           urllib.parse.unquote(request.path)))
                self.times.append(came)
        if reply.end == "reset":  # closing it then also drops unsent bytes
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return reply.end is None and "close" not in request.headers.get("connection", "")

    def send(self, connection, request, reply):
        """Returns the number of body bytes sent."""
        lines = [f"HTTP/1.1 {reply.status} whatever"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        lines.append("Transfer-Encoding: chunked" if reply.chunked else
                     f"Content-Length: {len(reply.body)}")
        if reply.drip_head:
            connection.sendall((lines[0] + "\r\n").encode("latin-1"))
            self.send_drops(connection, (b"X: y\r\n" for _ in itertools.count()), reply.drip)
            return 0
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if request.method == "HEAD":
            return 0
        body = memoryview(reply.body)
        end = len(body) if reply.cut is None else min(reply.cut, len(body))
        if reply.drip:
            return self.send_drops(connection, (body[i:i + 1] for i in range(len(body))),
                                   reply.drip, reply.chunked)
        done = self.send_pieces(connection, body[:end], reply.chunked)
        if reply.end == "stall":
            self.wait_release()
        elif reply.chunked and reply.end is None:
            connection.sendall(b"0\r\n\r\n")
        return done

    def send_pieces(self, connection, body, in_chunks):
        """Returns the number of bytes sent before the client went away."""
        done = 0
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        piece = min(PIECE, self.sendbuf or PIECE) if self.rate else max(PIECE, len(body) // 8)
        try:
            while done < len(body) and not self.over.is_set():
                part = body[done:done + piece]
                self.pace(len(part))
                if self.rate and poll.poll(0):
                    break  # the client is gone
                part = part[:self.spend(len(part))]
                if not part:
                    self.wait_release()
                    break
                connection.sendall(b"%x\r\n%b\r\n" % (len(part), part) if in_chunks else part)
                done += len(part)
        except OSError:
            pass
        return done

    def send_drops(self, connection, drops, seconds, in_chunks=False):
        """Send one byte every so many seconds, until the client is gone. Returns the number
        sent."""
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        n = 0
        for drop in drops:
            if self.over.is_set() or poll.poll(seconds * 1000):
                break
            connection.sendall(b"1\r\n%b\r\n" % drop if in_chunks else drop)
            n += 1
        return n

    def pace(self, n):
        if not self.rate:
            return
        with self.lock:
            now = time.monotonic()
            self.next_free = max(self.next_free, now) + n / self.rate
            wait = self.next_free - now
        self.over.wait(wait)

    def wait_release(self):
        with self.lock:
            if self.died is not None and self.death == "gone":
                return
            release = self.release
            self.stalled.append(release)
            self.arrived.notify_all()
        release.wait()
        with self.lock:
            self.stalled.remove(release)


def read_request(reader):
    line = reader.readline(65536)
    words = line.split()
    if len(words) != 3:
        return None
    headers = {}
    while True:
        line = reader.readline(65536)
        if line in (b"\r\n", b"\n", b""):
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return BadRequest(words[0].decode("latin-1"), words[1].decode("latin-1"), headers)
