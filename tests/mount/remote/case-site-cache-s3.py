#!/usr/bin/python3
# needs: ceph root
"""A bucket behind the site cache: for two nodes that read it unsigned the gateway sends each byte
once. A presigned URL works, and is not kept. Requests that nodes sign themselves are refused, with a
message."""

import os
import subprocess

from lib import EPOCHFS, PRIVATE, SOURCE, contains, content, equal, small, start, stop
from servers import Ceph, check_once, place, sent, start_at, timed, wait_staged, wait_until
from site_cache import site_cache

images, labels = small(400, side=60)
UP = f"{PRIVATE}/up"
SIZES = {f"/public/mnist/{n}": os.path.getsize(f"{SOURCE}/{n}") for n in os.listdir(SOURCE)}


def upload(s3):
    for name in os.listdir(SOURCE):
        place(f"{UP}/mnist", name, content(SOURCE, name))
    for bucket, acl in (("public", {"x-amz-acl": "public-read"}), ("private", {})):
        s3.send("PUT", f"/{bucket}")
        s3.put(f"{UP}/mnist", f"{bucket}/mnist", **acl)
    s3.send("PUT", "/public", query="acl=", **{"x-amz-acl": "public-read"})


def wait_logged(s3, due, since=0):
    """The gateway writes its log after the answer."""
    wait_until(lambda: sent(s3.log()[since:]) >= due, f"the gateway has logged {due} bytes")


def check_public(s3, site):
    options = f"endpoint={site.at},anonymous"
    nodes = [start_at(f"node{i}", "s3://public/mnist", f"cache={PRIVATE}/cache.{i},{options}")
             for i in range(2)]
    for node in nodes:
        equal(content(node.at, "train/batches/batch=all/raw/000000.image.raw") == images.tobytes(),
              True, "all images")
        wait_staged(node)
    for node in nodes:
        stop(node)
    wait_logged(s3, sum(SIZES.values()))
    check_once(s3.log(), SIZES, "two nodes")


def check_presigned(s3, site):
    name = "train-images-idx3-ubyte"
    url = s3.aws("s3", "presign", f"s3://private/mnist/{name}").strip()
    url = url.replace(s3.endpoint, site.at)
    before = len(s3.log())
    for i in range(2):
        node = start(url, f"cache={PRIVATE}/cache.signed{i}")
        equal(content(node.at, "train-images-idx3-ubyte/source/train-images-idx3-ubyte") ==
              content(SOURCE, name), True, "a presigned object")
        stop(node)
    wait_logged(s3, 2 * os.path.getsize(f"{SOURCE}/{name}"), since=before)


def check_signed(s3, site):
    done = subprocess.run([EPOCHFS, "info", "-o", f"endpoint={site.at}", "s3://private/mnist"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False,
                          env=dict(os.environ, **s3.environment))
    equal(done.returncode, 2, f"exit code: {done.stdout}")
    contains(done.stdout.decode(), "SignatureDoesNotMatch")


with Ceph() as the_s3:
    timed(upload, the_s3)
    with site_cache(the_s3.endpoint) as the_site:
        timed(check_public, the_s3, the_site)
        timed(check_presigned, the_s3, the_site)
        timed(check_signed, the_s3, the_site)
