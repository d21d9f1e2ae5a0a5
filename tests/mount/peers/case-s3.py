#!/usr/bin/python3
# needs: ceph root
"""S3 through peers: epochfs signs for the gateway and connects to the front, and the gateway sends each
byte and each listing once to three nodes; the same with a presigned URL. No signature and no secret is
in a file of the ring but its configuration. Requests without the job's secret are refused."""

import os
import re
import shutil
import subprocess
import time
import urllib.request

from lib import DEADLINE, EPOCHFS, PRIVATE, SOURCE, contains, content, equal, small, start, stop, text
from ring import Ring, address
from servers import Ceph, check_once, files_below, place, remote, sent, start_at, timed, wait_staged, wait_until

NODES = 3
images, labels = small(900, side=60)
UP = f"{PRIVATE}/up"
SIZES = {f"/private/mnist/{n}": os.path.getsize(f"{SOURCE}/{n}") for n in os.listdir(SOURCE)}
TOTAL = sum(SIZES.values())
# A gateway sends these for each request that is not for an object.
LISTING = re.compile(r'"GET /private\S*list-type=2\S* HTTP/1.1" 200 ')


def upload(s3):
    for name in os.listdir(SOURCE):
        place(f"{UP}/mnist", name, content(SOURCE, name))
    s3.send("PUT", "/private")
    s3.put(f"{UP}/mnist", "private/mnist")


def wait_logged(s3, due, since=0):
    """The gateway writes its log after the answer."""
    wait_until(lambda: sent(s3.log()[since:]) >= due, f"the gateway has logged {due} bytes")


def listings(s3):
    return len(LISTING.findall(text(s3.dir, "client.admin.log")))


def check_signed(s3, ring):
    os.environ.update(s3.environment)
    before, begin = listings(s3), time.time()
    nodes = [start_at(f"node{i}", "s3://private/mnist", f"cache={PRIVATE}/cache.{i},endpoint={s3.endpoint}," +
                      ring.options(i)) for i in range(NODES)]
    for node in nodes:
        equal(content(node.at, "train/batches/batch=all/raw/000000.image.raw") == images.tobytes(), True, "all images")
        wait_staged(node, TOTAL)
        equal(remote(node.at)["peers_trouble"], "", "trouble with peers")
    for node in nodes:
        stop(node)
    wait_logged(s3, TOTAL)
    check_once(s3.log(), SIZES, f"{NODES} nodes")
    times = int(time.time() / 10) - int(begin / 10) + 1
    one = listings(s3) - before
    print(f"{NODES} mounts: {one} listings, {sent(s3.log()) / TOTAL:.2f} of the bytes", flush=True)
    # A mount sends a few: each once per 10 s.
    mounts = subprocess.run([EPOCHFS, "info", "-o", f"cache={PRIVATE}/cache.alone,endpoint={s3.endpoint}",
                             "s3://private/mnist"], stdout=subprocess.PIPE, check=True, timeout=DEADLINE)
    contains(mounts.stdout.decode(), "900")
    wait_until(lambda: one <= (listings(s3) - before - one) * times, f"{one} listings are at most those of {times} mounts")


def signed_sizes(s3):
    """The bytes of each reply to a request that has a signature in its URL."""
    return [int(n) for n in re.findall(r'beast: .*\] "GET \S*X-Amz-Signature=\S* HTTP/1.1" 20[06] (\d+) ',
                                       text(s3.dir, "client.admin.log"))]


def check_presigned(s3, ring):
    name = "train-images-idx3-ubyte"
    url = s3.aws("s3", "presign", f"s3://private/mnist/{name}").strip()
    for i in range(NODES):
        node = start(url, f"cache={PRIVATE}/cache.signed{i},{ring.options(i)}")
        equal(content(node.at, "train-images-idx3-ubyte/source/train-images-idx3-ubyte") == content(SOURCE, name),
              True, "a presigned object")
        stop(node)
    # The gateway logs requests later than it answers them: those with a signature, until the last one is logged.
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Range": "bytes=3-9"}), timeout=DEADLINE) as reply:
        last = len(reply.read())
    sizes = wait_until(lambda: (found := signed_sizes(s3)) and last in found and found, "the last request is logged")
    got = sum(sizes) - last
    # The ring has all slices of this version: it was read with another signature.
    equal(got <= 10, True, f"bytes that the gateway sent: {got}")
    return re.search(r"X-Amz-Signature=(\w+)", url)[1]


def check_errors_name_no_query(s3, ring, signature):
    """What nginx writes about a failure names the file, and neither query nor signature."""
    origin = f"http://127.0.0.1:{s3.port}"
    ring.kill(1)
    for k in range(40):  # some are for the dead node
        subprocess.run(["curl", "-s", "-o", f"{PRIVATE}/answer", "--proxy", ring.front(0), "-H",
                        f"X-Epochfs-Secret: {text(ring.secret).strip()}", "-H", f"X-Epochfs-Origin: {origin}", "-H",
                        f"X-Epochfs-Key: {k}", f"{origin}/some-file?X-Amz-Signature={signature}"], check=True,
                       timeout=DEADLINE)
    wait_until(lambda: "some-file" in text(ring.at(0), "error.log"), "nginx has logged it")
    ring.start(1)


def check_no_secrets(s3, ring, signature):
    secret = text(ring.secret).strip()
    for i in range(NODES):
        for path, _ in files_below(ring.at(i)):
            data = content(path)
            for what, word in (("signature", signature), ("secret key", s3.SECRET), ("header", "AWS4-HMAC")):
                equal(word.encode() in data, False, f"{path} has the {what}")
            if os.path.basename(path) not in ("secret", "nginx.conf"):
                equal(secret.encode() in data, False, f"{path} has the secret of the job")
            equal(os.stat(path).st_mode & 0o077, 0, f"others may not read {path}")
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            equal(secret.encode() in content(f"/proc/{pid}/cmdline"), False, f"the command line of {pid}")
        except (FileNotFoundError, ProcessLookupError):
            pass


def ask(url, *more):
    """The status."""
    return subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *more, url], timeout=DEADLINE,
                          stdout=subprocess.PIPE, check=True).stdout.decode()


def check_refused(s3, ring):
    good = ["-H", f"X-Epochfs-Secret: {text(ring.secret).strip()}"]
    equal(ask(f"{ring.front(0)}/private/mnist/x"), "403", "the front, without the secret")
    equal(ask(f"{ring.front(0)}/.epochfs-peers/front", "-H", "X-Epochfs-Secret: 0123456789abcdef"), "403", "another secret")
    equal(ask(f"{ring.front(0)}/.epochfs-peers/front", *good), "204", "the front")
    equal(ask(f"{ring.back(0)}/.epochfs-peers/list", "--interface", address(1)), "403", "a back, without the secret")
    equal(ask(f"{ring.back(0)}/.epochfs-peers/list", "--interface", address(1), *good), "204", "a node of the ring")
    equal(ask(f"{ring.back(0)}/.epochfs-peers/list", "--interface", address(NODES), *good), "403",
          "a node that is not of the job")
    # A mount with another secret, or of another user, who cannot read it.
    wrong = f"{PRIVATE}/wrong"
    with open(wrong, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write("0" * 64)
    before = sum(len(ring.log(i)) for i in range(NODES))
    out = subprocess.run([EPOCHFS, "stage", "-o", f"cache={PRIVATE}/cache.wrong,endpoint={s3.endpoint},"
                          f"via={ring.front(0)},via_secret={wrong}", "s3://private/mnist"], timeout=DEADLINE,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout.decode()
    contains(out, "refuses the secret of this job; the origin is asked in their place", "complete and correct")
    equal(sum(len(ring.log(i)) for i in range(NODES)), before, "requests that backs answered")
    if os.geteuid() == 0:
        shutil.copy(EPOCHFS, f"{PRIVATE}/epochfs")
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"{PRIVATE}/epochfs",
                               "info", "-o", ring.options(0), f"{s3.endpoint}/private/mnist/"], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, cwd="/",
                              env={"HOME": "/", "TMPDIR": "/tmp", "PATH": os.environ["PATH"]})
        equal(done.returncode != 0, True, f"another user: {done.stdout}")
        contains(done.stdout.decode(), "Permission denied")
    os.chmod(wrong, 0o644)
    done = subprocess.run([EPOCHFS, "info", "-o", f"via={ring.front(0)},via_secret={wrong}", "http://127.0.0.1:1/"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=DEADLINE)
    equal(done.returncode, 2, f"a secret that others can read: {done.stdout}")
    contains(done.stdout.decode(), "only its owner can read (mode 600), got mode 644")


with Ceph() as the_s3:
    timed(upload, the_s3)
    with Ring(NODES, the_s3.endpoint) as the_ring:
        timed(check_signed, the_s3, the_ring)
        the_signature = timed(check_presigned, the_s3, the_ring)
        timed(check_errors_name_no_query, the_s3, the_ring, the_signature)
        timed(check_no_secrets, the_s3, the_ring, the_signature)
        timed(check_refused, the_s3, the_ring)
