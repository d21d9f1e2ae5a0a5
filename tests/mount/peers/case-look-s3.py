#!/usr/bin/python3
# needs: ceph root
"""The first look of a thousand nodes at a bucket that only signed requests may read: each signs for itself, with its
own time, so no two requests are equal; but the ring asks the gateway once per 10 s of the clock. A
wrong signature is refused, and no other reader gets that refusal."""

import concurrent.futures
import datetime
import hashlib
import hmac
import http.client
import os
import re
import subprocess
import threading
import time

from lib import DEADLINE, EPOCHFS, PRIVATE, SLOW, SOURCE, contains, content, equal, small, text
from ring import Ring, address
from servers import Ceph, place, timed, wait_until

NODES = 4
LOOKS = 1000
COMMANDS = 6 if SLOW else 24
EMPTY = hashlib.sha256(b"").hexdigest()
small(200)


def sign(s3, method, path, query, host, moment, secret):
    """The headers of a request that is signed as AWS does, version 4."""
    when = moment.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{when[:8]}/default/s3/aws4_request"
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = f"{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{EMPTY}\nx-amz-date:{when}\n\n{names}\n{EMPTY}"
    to_sign = f"AWS4-HMAC-SHA256\n{when}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
    return {"Host": host, "x-amz-date": when, "x-amz-content-sha256": EMPTY,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={s3.KEY}/{scope}, SignedHeaders={names}, Signature={signature}"}


def look(s3, ring, i, method, path, query, start, secret=Ceph.SECRET):
    """One node's look, as epochfs sends it. Returns the status, the length of the body, and the ETag."""
    host = f"127.0.0.1:{s3.port}"
    moment = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=i % 300)
    name = "\n".join([f"http://{host}", path, *(query.split("&") if query else [])])
    connection = http.client.HTTPConnection(address(i % NODES), ring.port, timeout=DEADLINE)
    start.wait()
    connection.request(method, f"http://{host}{path}" + (f"?{query}" if query else ""), headers={
        **sign(s3, method, path, query, host, moment, secret), "X-Epochfs-Secret": text(ring.secret).strip(),
        "X-Epochfs-Origin": f"http://{host}", "X-Epochfs-Key": hashlib.sha256(name.encode()).hexdigest()})
    reply = connection.getresponse()
    found = reply.status, len(reply.read()), reply.headers["ETag"]
    connection.close()
    return found


def asked(s3):
    """"GET /private?list-type=2..." -> how often the gateway was asked."""
    counts = {}
    for line in re.findall(r'beast: .*\] "(\S+ \S+) HTTP/1.1" ', text(s3.dir, "client.admin.log")):
        counts[line] = counts.get(line, 0) + 1
    return counts


def more(s3, before):
    """The counts that have grown since then."""
    return {what: n - before.get(what, 0) for what, n in asked(s3).items() if n > before.get(what, 0)}


def at_most(begin):
    """How often the gateway may be asked for one thing since then."""
    return int(time.time() / 10) - int(begin / 10) + 1


def check_thousand(s3, ring):
    for method, path, query in (("GET", "/private", "list-type=2&prefix=mnist%2F"),
                                ("HEAD", "/private/mnist/train-images-idx3-ubyte", "")):
        what = f"{method} {path}" + (f"?{query}" if query else "")
        before, start, begin = asked(s3), threading.Event(), time.time()
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            under_way = [pool.submit(look, s3, ring, i, method, path, query, start) for i in range(LOOKS)]
            start.set()
            found = {f.result() for f in under_way}
        equal(len(found), 1, f"{what}: all have the same answer: {found}")
        equal(list(found)[0][0], 200, f"{what}: status")
        wait_until(lambda w=what, b=before: w in more(s3, b), "the gateway has logged it")
        n = more(s3, before)[what]
        print(f"{LOOKS} times {what}, each with its own signature: {found}, the gateway was asked {n} times", flush=True)
        equal(1 <= n <= at_most(begin), True, f"requests at the gateway: {n}")


def check_refused(s3, ring):
    """Bytes that no mount has asked for yet, with a wrong key, then with the right one."""
    start, query = threading.Event(), "list-type=2&prefix=mnist%2Ft"
    start.set()
    equal(look(s3, ring, 0, "GET", "/private", query, start, secret="wrong")[0], 403, "with a wrong key")
    equal(look(s3, ring, 0, "GET", "/private", query, start)[0], 200, "with the right key, just after it")


def check_commands(s3, ring):
    """The same with epochfs itself: many nodes that mount at once, each with its own cache."""
    def info(i, options):
        return subprocess.Popen([EPOCHFS, "info", "-o", f"cache={PRIVATE}/c{i},endpoint={s3.endpoint}{options}",
                                 "s3://private/mnist"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=dict(os.environ, **s3.environment))

    def listings(before):
        return sum(n for what, n in more(s3, before).items() if "list-type=2" in what)

    before = asked(s3)
    contains(info("alone", "").communicate(timeout=DEADLINE)[0].decode(), "200")
    s3.send("GET", "/private", query="marker=last")
    wait_until(lambda: "GET /private?marker=last" in asked(s3) and listings(before), "the gateway has logged all")
    alone, before, begin = more(s3, before), asked(s3), time.time()
    processes = [info(i, f",{ring.options(i % NODES)}") for i in range(COMMANDS)]
    for process in processes:
        out = process.communicate(timeout=DEADLINE)[0].decode()
        equal((process.returncode, "in their place" in out), (0, False), f"epochfs info: {out}")
    found = more(s3, before)
    print(f"one epochfs info: {alone}; {COMMANDS} through the ring: {found}", flush=True)
    for what, n in found.items():
        equal(n <= alone.get(what, 1) * at_most(begin), True, f"{what}: {n} times, {alone.get(what)} for one alone")


with Ceph() as the_s3:
    for file in os.listdir(SOURCE):
        place(f"{PRIVATE}/up", file, content(SOURCE, file))
    the_s3.send("PUT", "/private")
    the_s3.put(f"{PRIVATE}/up", "private/mnist")
    with Ring(NODES, the_s3.endpoint) as the_ring:
        timed(check_thousand, the_s3, the_ring)
        check_refused(the_s3, the_ring)
        timed(check_commands, the_s3, the_ring)
