"""The Hugging Face Hub, made up: repositories with commits, trees in pages, small files from the Hub
itself, large ones from another server that signs its URLs.

    with FakeHub({"owner/name": {path: bytes}}) as hub:
        hub.endpoint                         for HF_ENDPOINT
        hub.env(home)                        the environment of a user of it
        hub.token = "hf_x"                   what a private or gated repository wants; hub.private, hub.gated: names
        hub.large                            bytes from which a file is large
        hub.page                             entries in a page of a tree
        hub.requests                         (method, path, headers) so far, of the Hub; hub.storage: of the other server
        hub.limited = n                      the next n requests get 429
        hub.commit(name, files)              a new commit on main
"""

import hashlib
import http.server
import json
import os
import secrets
import sys
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def reply(self, status, body=b"", **headers):
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def part(self, data, tag, **headers):
        span = self.headers.get("Range")
        if not span:
            self.reply(200, data, ETag=tag, **headers)
            return
        first, last = span[len("bytes="):].split("-")
        part = data[int(first):int(last) + 1 if last else None]
        self.reply(206, part, ETag=tag, Content_Range=f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}", **headers)

    def log_message(self, *_):
        pass


class Storage(Handler):
    """Gets no token, and gives only what was signed."""

    def do_GET(self):
        hub, (path, _, query) = self.server.hub, self.path.partition("?")
        with hub.lock:
            hub.storage.append((self.command, self.path, dict(self.headers)))
            known = query in hub.signed
        if "Authorization" in self.headers:
            self.reply(400, b"<Error><Code>InvalidArgument</Code></Error>")
        elif not known:
            self.reply(403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
        else:
            self.part(hub.blobs[path[1:]], '"of-the-storage"')


class Hub(Handler):
    def error(self, status, code, message):
        self.reply(status, json.dumps({"error": message}).encode(), X_Error_Code=code, X_Error_Message=message)

    def allowed(self, name):
        hub = self.server.hub
        right = self.headers.get("Authorization") == f"Bearer {hub.token}"
        if name in hub.renamed:
            self.reply(307, Location=self.path.replace(name, hub.renamed[name]))
        elif name not in hub.commits or (name in hub.private and not right):
            self.error(404 if right else 401, "RepoNotFound", "Repository not found")
        elif name in hub.gated and not right:
            self.error(403 if "Authorization" in self.headers else 401, "GatedRepo", "Access to it is restricted")
        else:
            return True
        return False

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.command, self.path, dict(self.headers)))
            limited = hub.limited > 0
            hub.limited -= limited
        if limited:
            self.reply(429, b"", RateLimit='"api";r=0;t=0', RateLimit_Policy='"fixed window";"api";q=500;w=300')
            return
        path, _, query = self.path.partition("?")
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "datasets"] and len(parts) > 5 and self.allowed("/".join(parts[2:4])):
            self.api("/".join(parts[2:4]), parts[4], urllib.parse.unquote(parts[5]),
                     urllib.parse.unquote("/".join(parts[6:])), dict(urllib.parse.parse_qsl(query)))
        elif parts[0] == "datasets" and parts[3] == "resolve":
            if self.allowed("/".join(parts[1:3])):
                self.resolve("/".join(parts[1:3]), parts[4], urllib.parse.unquote("/".join(parts[5:])))
        elif parts[:2] == ["api", "resolve-cache"]:
            data = hub.blobs[parts[2]]
            self.part(data, f'W/"{parts[2]}"')
        elif parts[:2] != ["api", "datasets"]:
            self.reply(404)

    def api(self, name, what, revision, folder, query):
        hub = self.server.hub
        commit = hub.revision(name, revision)
        if not commit:
            self.error(404, "RevisionNotFound", "Invalid rev id")
        elif what == "revision":
            self.reply(200, json.dumps({"id": name, "sha": commit, "siblings": [], "private": False}).encode())
        else:
            self.tree(hub.commits[name][commit], folder, query)

    def tree(self, files, folder, query):
        hub = self.server.hub
        prefix = f"{folder}/" if folder else ""
        below = sorted(p for p in files if p.startswith(prefix))
        if not below and folder:
            self.error(404, "EntryNotFound", "does not exist")
            return
        recursive = query["recursive"] == "true"
        folders = {p[:i] for p in below for i in range(len(prefix), len(p)) if p[i] == "/"}
        names = sorted(folders | set(below))
        if not recursive:
            names = [n for n in names if "/" not in n[len(prefix):]]
        at = int(query.get("cursor", 0))
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": n} if n in folders
                   else hub.entry(n, files[n]) for n in names[at:at + hub.page]]
        more = {}
        if at + hub.page < len(names):
            url = f"{hub.link_to}{self.path.partition('?')[0]}?recursive={query['recursive']}&expand=false&cursor={at + hub.page}"
            more["Link"] = f'<{hub.endpoint}/docs>; rel="help", <{url}>; rel="next"'
        self.reply(200, json.dumps(entries).encode(), **more)

    def resolve(self, name, commit, path):
        hub = self.server.hub
        data = hub.commits[name].get(commit, {}).get(path)
        if data is None:
            self.error(404, "EntryNotFound", "Entry not found")
            return
        digest = hub.keep(data)
        if len(data) < hub.large:
            self.reply(307, Location=f"/api/resolve-cache/{digest}", X_Repo_Commit=commit)
            return
        with hub.lock:
            signed = f"Expires=4102444800&Signature={secrets.token_hex(8)}"
            hub.signed.add(signed)
        self.reply(302, Location=f"{hub.storage_url}/{digest}?{signed}", X_Linked_Size=str(len(data)),
                   X_Linked_ETag=f'"{digest}"', X_Repo_Commit=commit)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the 5 of Python a connection may wait for a second

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that goes away may
            super().handle_error(request, client_address)


class FakeHub:
    def __init__(self, repositories):
        self.lock = threading.Lock()
        self.page, self.large, self.limited, self.token = 1000, 2000, 0, None
        self.private, self.gated, self.renamed = set(), set(), {}
        self.requests, self.storage, self.signed = [], [], set()
        self.commits, self.heads, self.blobs = {}, {}, {}
        self.servers = [Server(("127.0.0.1", 0), kind) for kind in (Hub, Storage)]
        for server in self.servers:
            server.hub = self
        self.endpoint, self.storage_url = (f"http://127.0.0.1:{s.server_address[1]}" for s in self.servers)
        self.link_to = self.endpoint
        for name, files in repositories.items():
            self.commit(name, files)

    def __enter__(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def env(self, home):
        """Nothing of the user's own is found."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
        return {**env, "HF_ENDPOINT": self.endpoint, "HF_HOME": home}

    def keep(self, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    def entry(self, path, data):
        oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        if len(data) < self.large:
            return {"type": "file", "oid": oid, "size": len(data), "path": path}
        return {"type": "file", "oid": "1" * 40, "size": len(data), "path": path, "xetHash": "2" * 64,
                "lfs": {"oid": self.keep(data), "size": len(data), "pointerSize": 134}}

    def commit(self, name, files):
        commits = self.commits.setdefault(name, {})
        commit = hashlib.sha1(f"{name} {len(commits)}".encode()).hexdigest()
        commits[commit] = dict(files)
        self.heads[name] = commit
        return commit

    def revision(self, name, revision):
        if revision == "main":
            return self.heads[name]
        return revision if revision in self.commits[name] else None
