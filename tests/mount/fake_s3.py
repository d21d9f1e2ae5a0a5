"""A bucket of S3 that is made up: any number of objects, whose keys, bytes and listings are made when
they are asked for.

    with FakeS3({key: bytes}) as s3:                 or FakeS3(list of keys): each has its key as bytes
        s3.endpoint                                  of the bucket "data", or bucket=; no credentials are wanted
        s3.lists, s3.objects                         requests for listings, and for objects, so far
        s3.put(key, bytes), s3.remove(key)
        s3.signers, s3.bearers                       the keys by which requests were signed; tokens that were sent
        s3.packed                                    keys of objects that are stored with Content-Encoding: gzip

For bytes may stand any object with a length and slices; with an attribute `tag`, that is its ETag.
"""

import bisect
import gzip
import hashlib
import http.server
import re
import socket
import sys
import threading
import urllib.parse

PAGE = 1000
SKEWED = b"<?xml version='1.0'?><Error><Code>RequestTimeTooSkewed</Code><Message>other time</Message></Error>"
ROW = ("<Contents><Key>{}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;{}&quot;</ETag>"
       "<Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>")


def tag_of(data):
    return getattr(data, "tag", None) or hashlib.md5(data).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def answer(self, status, body, headers=()):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        if self.command == "HEAD":  # without a time, s3fs makes bytes of its own
            self.send_header("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        s3 = self.server.s3
        s3.bearers.add(self.headers.get("Authorization", "").partition("Bearer ")[2])
        s3.signers.update(re.findall("Credential=([^/]*)/", self.headers.get("Authorization", "")))
        if s3.skewed and "Authorization" in self.headers:
            self.answer(403, SKEWED)
            return
        if query:
            wanted = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            self.answer(200, s3.page(wanted), [("Content-Type", "application/xml")])
            return
        with s3.lock:
            s3.objects += 1
        key = s3.key(path)
        data = s3.data(key)
        if data is None or key in s3.forbidden:
            self.answer(404 if data is None else 403, b"")
            return
        tag = f'"{tag_of(data)}"'
        if self.headers.get("If-Match", tag) != tag:
            self.answer(412, b"")
            return
        tag_header = [("ETag", tag)] + [("Content-Encoding", "gzip")] * (key in s3.packed)
        if key in s3.packed and "gzip" not in self.headers.get("Accept-Encoding", ""):
            self.send_response_only(200)  # as Google's: unpacked, without a length, whatever range was asked for
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(gzip.decompress(data))
            self.close_connection = True
            return
        span = self.headers.get("Range")
        if not span:
            self.answer(200, data, tag_header)
            return
        first, last = span[len("bytes="):].split("-")
        part = data[int(first):int(last) + 1 if last else None]
        self.answer(206, part, [*tag_header, ("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")])

    def do_PUT(self):
        s3 = self.server.s3
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with s3.lock:
            s3.put(s3.key(self.path), body)
        self.answer(200, b"", [("ETag", f'"{tag_of(body)}"')])

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that goes away may
            super().handle_error(request, client_address)


class FakeS3:
    def __init__(self, objects, bucket="data"):
        self.bucket = bucket
        self.bytes = dict(objects) if isinstance(objects, dict) else {}
        self.keys = sorted(objects)
        self.lists = self.objects = 0
        self.forbidden = set()
        self.signers, self.bearers = set(), set()
        self.packed = set()  # keys of objects that were stored with Content-Encoding: gzip
        self.skewed = False  # signatures are of another time
        self.lock = threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.s3 = self
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def key(self, path):
        return urllib.parse.unquote(path[len(f"/{self.bucket}/"):])

    def data(self, key):
        if key in self.bytes:
            return self.bytes[key]
        at = bisect.bisect_left(self.keys, key)
        return key.encode() if at < len(self.keys) and self.keys[at] == key else None

    def put(self, key, data):
        if self.data(key) is None:
            bisect.insort(self.keys, key)
        self.bytes[key] = data

    def remove(self, key):
        del self.keys[bisect.bisect_left(self.keys, key)]
        self.bytes.pop(key, None)

    def row(self, key):
        data = self.data(key)
        return ROW.format(urllib.parse.quote(key), tag_of(data), len(data))

    def page(self, wanted):
        with self.lock:
            self.lists += 1
        prefix, delimiter = wanted.get("prefix", ""), wanted.get("delimiter")
        after = wanted.get("continuation-token", wanted.get("start-after", ""))
        at = max(bisect.bisect_right(self.keys, after), bisect.bisect_left(self.keys, prefix))
        most, rows, last = int(wanted.get("max-keys", PAGE)), [], after
        while at < len(self.keys) and self.keys[at].startswith(prefix) and len(rows) < most:
            last = self.keys[at]
            cut = last.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                last = last[:cut + 1] + "\U0010ffff"
                rows.append(f"<CommonPrefixes><Prefix>{urllib.parse.quote(last[:-1])}</Prefix></CommonPrefixes>")
                at = bisect.bisect_right(self.keys, last)
            else:
                rows.append(self.row(last))
                at += 1
        more = at < len(self.keys) and self.keys[at].startswith(prefix)
        token = f"<NextContinuationToken>{urllib.parse.quote(last)}</NextContinuationToken>" if more else ""
        return (f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>{self.bucket}</Name><EncodingType>url'
                f"</EncodingType><IsTruncated>{'true' if more else 'false'}</IsTruncated>{token}{''.join(rows)}"
                "</ListBucketResult>").encode()
