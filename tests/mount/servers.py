"""Real servers for the cases of remotes: nginx and Ceph's S3 gateway, on free ports of 127.0.0.1
and below $PRIVATE; certificates; and the fetched bytes, from their logs.

    with Nginx(folder) as server:  server.url, server.log(), server.stop(), server.stall()
    with Ceph() as s3:             s3.endpoint, s3.environment, s3.aws(...), s3.log()

The scripted bad server is bad_server.py.
"""

import collections
import contextlib
import glob
import hashlib
import hmac
import http.client
import os
import random
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.parse
import urllib.request

from lib import (DEADLINE, PRIVATE, SLOW, content, equal, mount_type, run, skip, start, status,
                 text)

MiB = 1 << 20
PATIENT = 5 if SLOW else 1  # factor by which a sanitizer may be slower, for measured times
TRIES = 4  # for measurements that other users of the machine may disturb

# range: (first, last) as requested, None: the whole; sent: bytes of the body.
Request = collections.namedtuple("Request", "status sent range method path protocol",
                                 defaults=["HTTP/1.1"])


# ---- ports and processes ----

CHOSEN = []  # sockets with names that reserve our ports while this process lives


def free_port():
    """A port below those that the kernel gives to clients, so that a stopped server finds it free
    again, and that no other case chooses, bound or not."""
    for _ in range(1000):
        port = random.randrange(12000, 32000)
        with contextlib.ExitStack() as unless_free, contextlib.suppress(OSError):
            chosen = unless_free.enter_context(socket.socket(socket.AF_UNIX))
            chosen.bind(f"\0epochfs-port-{port}")
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("127.0.0.1", port))
            unless_free.pop_all()
            CHOSEN.append(chosen)
            return port
    raise AssertionError("no free port of 127.0.0.1")


@contextlib.contextmanager
def pidfd(pid):
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def ended(fd, seconds):
    """Does the process of that pidfd end within that many seconds?"""
    return bool(select.select([fd], [], [], seconds)[0])


def wait_until(condition, what, process=None, seconds=DEADLINE, progress=lambda: 0):
    """Wait until condition() is true; polls every 10 ms, since there is no event for it, or less often, so that looking
    takes a tenth of the time. Fails at once if the process ends before. The time counts from the last rise of progress()."""
    until, last = time.monotonic() + seconds, progress()
    with pidfd(process.pid if process else os.getpid()) as fd:
        while True:
            begin = time.monotonic()
            result = condition()
            if result:
                return result
            if ended(fd, min(max(0.01, 10 * (time.monotonic() - begin)), 0.3)):
                raise AssertionError(f"the process ended before: {what}")
            if (now := progress()) > last:
                until, last = time.monotonic() + seconds, now
            elif time.monotonic() > until:
                raise AssertionError(f"not in {seconds} s: {what}")


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def end_process(process):
    """End one of our processes, even a stopped one."""
    if process and process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(DEADLINE)


def took(seconds, what, limit):
    equal(seconds < limit * PATIENT, True, f"{what}: {seconds:.2f} s, expected less than "
          f"{limit * PATIENT} s")


@contextlib.contextmanager
def within(limit, what):
    """The block must not take longer, in seconds (a sanitizer may take more)."""
    begin = time.monotonic()
    yield
    took(time.monotonic() - begin, what, limit)


class Late(AssertionError):
    """A time limit was missed, perhaps because of load on the machine."""


def calmly(check, *arguments):
    """Others use this machine too: try again after Late. Other failures fail at once."""
    for attempt in range(TRIES):
        try:
            return check(*arguments)
        except Late as e:
            print(f"attempt {attempt}: {e}", flush=True)
            if attempt == TRIES - 1:
                raise


def timed(function, *arguments):
    """Call it, and print how long it took, to explain a case that misses its time limit."""
    begin = time.monotonic()
    result = function(*arguments)
    print(f"{function.__name__} {[a for a in arguments if isinstance(a, str)]}: "
          f"{time.monotonic() - begin:.1f} s", flush=True)
    return result


# ---- certificates ----

def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_ca(folder):
    """A private CA: folder/ca.pem and its key."""
    os.makedirs(folder, exist_ok=True)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem", "-days", "2",
            "-subj", "/CN=epochfs test CA", "-addext", "keyUsage=critical,keyCertSign")
    return f"{folder}/ca.pem"


def make_certificate(folder, name, alternatives):
    """folder/<name>.pem and .key, signed by that folder's CA, for the names in alternatives
    ("IP:127.0.0.1,DNS:localhost")."""
    base = f"{folder}/{name}"
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", f"{base}.key", "-out", f"{base}.csr", "-subj", f"/CN={name}")
    with open(f"{base}.ext", "w", encoding="ascii") as f:
        f.write(f"subjectAltName={alternatives}\n")
    openssl("x509", "-req", "-in", f"{base}.csr", "-CA", f"{folder}/ca.pem", "-CAkey",
            f"{folder}/ca.key", "-CAcreateserial", "-days", "2", "-extfile", f"{base}.ext",
            "-out", f"{base}.pem")
    return f"{base}.pem"


# ---- nginx ----

CONF = """
daemon off; master_process off; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections {connections}; }}
http {{
    log_format one '$status $body_bytes_sent "$http_range" $request_method $server_protocol $uri';
    access_log {dir}/access.log one;
    client_body_temp_path {dir}/t; proxy_temp_path {dir}/t; fastcgi_temp_path {dir}/t;
    uwsgi_temp_path {dir}/t; scgi_temp_path {dir}/t;
    server {{
        listen 127.0.0.1:{port}{tls_words};
        {tls}
        root {root}; autoindex {autoindex}; limit_rate {limit_rate};
        location = /.sync {{ access_log off; return 204; }}
        {more}
    }}
    {servers}
}}
"""


class Nginx:
    """nginx in one process, so that a signal can stop it and its log is in order.

    certificate: a .pem with its .key next to it; http2: offered there. limit_rate: bytes per second and
    connection. more: text for the server's block. connections: to it, at most."""

    count = 0

    def __init__(self, root, certificate=None, http2=False, autoindex=True, limit_rate=0, more="",
                 servers="", connections=512):
        if not shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"):
            skip("nginx is missing (package nginx-light)")
        Nginx.count += 1
        self.dir = f"{PRIVATE}/nginx{Nginx.count}"
        self.process = None
        self.port = None
        os.makedirs(self.dir)
        tls = f"ssl_certificate {certificate}; ssl_certificate_key {certificate[:-4]}.key;" \
            if certificate else ""
        self.settings = {"dir": self.dir, "root": root, "limit_rate": limit_rate, "tls": tls,
                         "tls_words": (" ssl" if tls else "") + (" http2" if http2 else ""),
                         "autoindex": "on" if autoindex else "off", "more": more,
                         "servers": servers, "connections": connections}
        for attempt in range(20):
            self.port = free_port()
            if self.start(attempt == 19):
                break
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, must=True):
        """Start it (again). False: its port is taken."""
        with open(f"{self.dir}/nginx.conf", "w", encoding="utf-8") as f:
            f.write(CONF.format(port=self.port, **self.settings))
        self.process = subprocess.Popen(
            ["nginx", "-c", f"{self.dir}/nginx.conf", "-e", f"{self.dir}/error.log"],
            env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: answers(self.port), "nginx answers", self.process)
        except AssertionError as e:
            error = content(f"{self.dir}/error.log").decode()
            if must or "Address already in use" not in error:
                raise AssertionError(f"{e}: {error}") from e
            return False
        return True

    def stop(self):
        """Stop it: open connections are reset, new ones refused."""
        end_process(self.process)
        self.process = None

    def stall(self):
        """Accept connections, but send nothing until resume()."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def log(self, data_only=True):
        """Its log. It has every request whose answer a client has received in full, because nginx
        handles one event after the other. data_only: without listings and sums."""
        if self.process:
            trusting = ssl.create_default_context()
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            with urllib.request.urlopen(f"{self.url}/.sync", timeout=DEADLINE, context=trusting):
                pass
        found = []
        with open(f"{self.dir}/access.log", encoding="utf-8", errors="surrogateescape") as f:
            for line in f:
                m = re.fullmatch(r'(\d+) (\d+) "([^"]*)" (\S+) (\S+) (.*)\n', line)
                equal(bool(m), True, f"a line of the access log: {line!r}")
                found.append(Request(int(m[1]), int(m[2]), parse_range(m[3]), m[4], m[6], m[5]))
        return [r for r in found if is_data(r)] if data_only else found

    def forget(self):
        """Empty the log."""
        os.truncate(f"{self.dir}/access.log", 0)


def parse_range(value):
    m = re.fullmatch(r"bytes=(\d+)-(\d*)", value or "")
    return (int(m[1]), int(m[2]) if m[2] else None) if m else None


def is_data(request):
    """Does the request deliver bytes of a file of the dataset?"""
    return request.method == "GET" and request.status in (200, 206) and \
        not request.path.endswith("/") and os.path.basename(request.path) != "SHA256SUMS"


# ---- fetched bytes ----

def merged(intervals):
    """Bytes in the union of [start, end)."""
    total, last = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, last))
        last = max(last, end)
    return total


def coverage(requests):
    """path -> (bytes sent, bytes of the file that were sent at least once)."""
    spans = collections.defaultdict(list)
    for r in requests:
        start = r.range[0] if r.range and r.status == 206 else 0
        spans[r.path].append((start, start + r.sent))
    return {path: (sum(e - s for s, e in found), merged(found)) for path, found in spans.items()}


def sent(requests):
    return sum(r.sent for r in requests)


def check_once(requests, sizes, what, spare=0):
    """Check that every byte of the files was sent once. sizes: path -> bytes. spare: bytes that may
    have been sent twice."""
    got = coverage(requests)
    equal(sorted(got), sorted(sizes), f"{what}: files that were fetched")
    for path, size in sizes.items():
        equal(got[path][1], size, f"{what}: different bytes of {path} that were fetched")
    total, want = sum(t for t, _ in got.values()), sum(sizes.values())
    equal(want <= total <= want + spare, True,
          f"{what}: {total} bytes fetched, expected {want}" + (f" + {spare} at most" if spare else ""))


def remote(at=None):
    """The numbers of the remote in status.json."""
    found = status(at) if at else status()
    equal("remote" in found, True, f"status.json has a remote: {found}")
    return found["remote"]


def wait_staged(daemon=None, total=None):
    """Wait until all is staged, or total bytes; returns the numbers of the remote. On a busy machine the background fetches one
    piece after the other, with rests: it may take any time, as long as it goes on."""
    at = daemon and daemon.at
    return wait_until(lambda: (r := remote(at))["staged_bytes"] == (total or r["total_bytes"]) and r, "all is staged", daemon,
                      progress=lambda: remote(at)["staged_bytes"])


def check_counters(requests, what, *remotes):
    """The counters of all mounts must agree with the server's log."""
    equal(sum(r["demand_bytes"] + r["background_bytes"] for r in remotes), sent(requests),
          f"{what}: bytes fetched by the counters, and by the server's log")


def sha256sums(folder, *names):
    """Write SHA256SUMS in the folder, for these files or for all below it."""
    names = names or sorted(os.path.relpath(os.path.join(at, name), folder)
                            for at, _, found in os.walk(folder) for name in found
                            if name != "SHA256SUMS")
    with open(f"{folder}/SHA256SUMS", "w", encoding="utf-8", errors="surrogateescape") as f:
        for name in names:
            f.write(f"{hashlib.sha256(content(folder, name)).hexdigest()}  {name}\n")


def place(folder, name, data):
    """A file that is served."""
    where = os.path.join(folder, name)
    os.makedirs(os.path.dirname(where), exist_ok=True)
    with open(where, "wb") as f:
        f.write(data)
    return where


# ---- mounts ----

def start_at(name, source, *options, **kwargs):
    """A mount at $PRIVATE/<name>, with a log of its own."""
    at = f"{PRIVATE}/{name}"
    os.makedirs(at, exist_ok=True)
    return start(source, *options, at=at, log=f"log.{name}", **kwargs)


def kill_mount(daemon):
    """kill -9 the daemon, and remove its dead mount."""
    daemon.kill()
    daemon.wait(DEADLINE)
    run("umount", daemon.at)
    equal(mount_type(daemon.at), None, "mounted after umount")


# ---- reads that reach the daemon ----

def read_anew(*parts, size=None, offset=0):
    """The bytes of a file of a mount, not from the kernel's cache."""
    fd = os.open(os.path.join(*parts), os.O_RDONLY)  # Python's open() makes an ioctl each time
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if size is not None:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            return os.pread(fd, size, offset)
        return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))
    finally:
        os.close(fd)


def error_of(function, *arguments, **kwargs):
    """The errno of the read; 0: success."""
    try:
        function(*arguments, **kwargs)
    except OSError as e:
        return e.errno
    return 0


def files_below(folder):
    """Regular files below a folder, without those that vanish meanwhile."""
    for at, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                yield os.path.join(at, name), os.lstat(os.path.join(at, name))


def disk_usage(folder):
    """Bytes of disk space that its files take."""
    return sum(st.st_blocks * 512 for _, st in files_below(folder))


def locks_in(folder):
    """Locks on its files that some process holds."""
    inodes = {(os.major(st.st_dev), os.minor(st.st_dev), st.st_ino)
              for _, st in files_below(folder)}
    found = []
    with open("/proc/locks", encoding="ascii") as f:
        for line in f:
            m = re.search(r" ([0-9a-f]+):([0-9a-f]+):(\d+) ", line)
            if m and (int(m[1], 16), int(m[2], 16), int(m[3])) in inodes:
                found.append(line.strip())
    return found


# ---- Ceph's S3 gateway ----

CEPH_CONF = """
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{mon_port}/0
mon initial members = a
ms bind msgr1 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = {dir}/admin.keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
osd objectstore = memstore
memstore device bytes = 1073741824
run dir = {dir}
log file = {dir}/$name.log
admin socket = {dir}/$name.$pid.asok
pid file = {dir}/$name.pid
mon data = {dir}/mon
osd data = {dir}/osd
rgw data = {dir}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw dns name = localhost
[mon]
keyring = {dir}/mon.keyring
[osd]
keyring = {dir}/osd.keyring
osd class dir = {classes}
"""


class Ceph:
    """One monitor, one OSD in memory, one gateway, and a user with the keys KEY and SECRET. Its cases need ceph and root."""

    KEY, SECRET = "TESTACCESSKEY", "testsecretkey+/with=signs"

    def __init__(self):
        self.dir = f"{PRIVATE}/ceph"
        os.makedirs(self.dir)
        for name in ("mon", "osd", "rgw"):
            os.mkdir(f"{self.dir}/{name}")
        self.processes = []
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.environment = {"AWS_ACCESS_KEY_ID": self.KEY, "AWS_SECRET_ACCESS_KEY": self.SECRET,
                            "AWS_DEFAULT_REGION": "default"}
        try:
            self.start()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def call(self, *arguments):
        with open(f"{self.dir}/up.log", "ab") as log:
            done = subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                  timeout=DEADLINE, check=False)
        equal(done.returncode, 0, f"{arguments}: {content(self.dir, 'up.log')[-2000:]}")

    def daemon(self, *arguments):
        with open(f"{self.dir}/up.log", "ab") as log:
            self.processes.append(subprocess.Popen([*arguments, "-f"], stdin=subprocess.DEVNULL,
                                                   stdout=log, stderr=log))

    def start(self):
        d, fsid, osd = self.dir, uuid(), uuid()
        conf, mon_port = f"{d}/ceph.conf", free_port()
        # That of Debian 13 looks for them below its current folder.
        classes = [*glob.glob("/usr/lib/*/rados-classes"), "/usr/lib/rados-classes"]
        with open(conf, "w", encoding="ascii") as f:
            f.write(CEPH_CONF.format(dir=d, fsid=fsid, port=self.port, mon_port=mon_port,
                                     classes=classes[0]))
        self.call("ceph-authtool", "--create-keyring", f"{d}/mon.keyring", "--gen-key", "-n",
                  "mon.", "--cap", "mon", "allow *")
        self.call("ceph-authtool", "--create-keyring", f"{d}/admin.keyring", "--gen-key", "-n",
                  "client.admin", "--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap",
                  "mgr", "allow *")
        self.call("ceph-authtool", "--create-keyring", f"{d}/osd.keyring", "--gen-key", "-n", "osd.0",
                  "--cap", "mon", "allow profile osd", "--cap", "osd", "allow *")
        for name in ("admin", "osd"):
            self.call("ceph-authtool", f"{d}/mon.keyring", "--import-keyring", f"{d}/{name}.keyring")
        self.call("monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{mon_port}]", "--fsid",
                  fsid, f"{d}/monmap")
        self.call("ceph-mon", "-c", conf, "--mkfs", "-i", "a", "--monmap", f"{d}/monmap",
                  "--keyring", f"{d}/mon.keyring")
        self.daemon("ceph-mon", "-c", conf, "-i", "a")
        self.call("ceph", "-c", conf, "osd", "new", osd, "0")
        self.call("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.daemon("ceph-osd", "-c", conf, "-i", "0")
        self.daemon("radosgw", "-c", conf, "-n", "client.admin")
        self.call("radosgw-admin", "-c", conf, "user", "create", "--uid=test",
                  "--display-name=test", f"--access-key={self.KEY}", f"--secret-key={self.SECRET}")
        wait_until(lambda: answers(self.port), "the gateway answers", self.processes[-1])

    def stop(self):
        for process in self.processes[::-1]:
            end_process(process)
        self.processes = []

    def aws(self, *arguments, code=0):
        """Run /usr/bin/aws with arguments; returns its output."""
        done = subprocess.run(
            ["/usr/bin/aws", "--endpoint-url", self.endpoint, *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, check=False,
            env=dict(os.environ, HOME=self.dir, AWS_EC2_METADATA_DISABLED="true",
                     **self.environment))
        equal(done.returncode, code, f"aws {arguments}: {done.stdout[-2000:]}")
        return done.stdout.decode(errors="replace")

    def send(self, method, path, body=b"", query="", **headers):
        """A signed request, for a tenth of the processor time of aws()."""
        where, now = urllib.parse.quote(path, safe="/-_.~"), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        signed = {"host": f"127.0.0.1:{self.port}", "x-amz-content-sha256": hashlib.sha256(body).hexdigest(), "x-amz-date": now, **headers}
        names, scope = sorted(signed), f"{now[:8]}/default/s3/aws4_request"
        asked = "\n".join([method, where, query, *(f"{n}:{signed[n]}" for n in names), "", ";".join(names), signed["x-amz-content-sha256"]])
        key = f"AWS4{self.SECRET}".encode()
        for word in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"):
            key = hmac.digest(key, word.encode(), "sha256")
        signed["authorization"] = f"AWS4-HMAC-SHA256 Credential={self.KEY}/{scope},SignedHeaders={';'.join(names)},Signature={key.hex()}"
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)) as connection:
            connection.request(method, where + (f"?{query}" if query else ""), body, signed)
            reply = connection.getresponse()
            equal(reply.status, 204 if method == "DELETE" else 200, f"{method} {where}: {reply.read()}")

    def put(self, folder, to, **headers):
        """The files of a folder as objects s3://<to>/..."""
        for file, _ in files_below(folder):
            self.send("PUT", f"/{to}/{os.path.relpath(file, folder)}", content(file), **headers)

    def log(self):
        """The gateway's log: the requests for objects that delivered bytes, including presigned
        ones."""
        found = []
        for line in text(self.dir, "client.admin.log").splitlines():
            m = re.search(r'beast: .*\] "(\S+) (\S+) HTTP/1.1" (\d+) (\d+) \S+ '
                          r'"[^"]*" (\S+) latency', line)
            if not m:
                continue
            path, _, query = m[2].partition("?")
            if not query or "X-Amz-Signature" in query:
                found.append(Request(int(m[3]), int(m[4]), parse_range(m[5]), m[1],
                                     urllib.parse.unquote(path)))
        return [r for r in found if is_data(r)]


def uuid():
    with open("/proc/sys/kernel/random/uuid", encoding="ascii") as f:
        return f.read().strip()


