#!/usr/bin/python3
# needs: ceph root
"""Buckets of Ceph's S3 gateway: long listings, odd keys, both styles of addresses, profiles,
anonymous access, wrong keys; and the secret appears nowhere else."""

import json
import os

import numpy as np

from lib import (PRIVATE, SOURCE, contains, content, equal, idx_bytes, log_text, mounted, path, run,
                 small, start, stop)
from servers import (Ceph, check_once, files_below, place, remote, sent, start_at, timed,
                     wait_until)

UP = f"{PRIVATE}/up"
images, labels = small(400, side=60)
ODD = idx_bytes(np.arange(200, dtype=np.uint8))
ODD_KEYS = ["with space", "plus+and%25percent", "100%", "ümlaut", "hash#tag", "what?", "a&b=c",
            "semi;colon", "quote'\"s", "[brackets]", "star*", "tilde~", "at@sign", "dollar$", "a:b",
            "back`tick", "(round)", "excl!amation", "less<more>"]
VECTOR = np.arange(5, dtype="<f4")
LITTLE = 1300  # objects, more than one page of a listing has


def upload(s3):
    for name in os.listdir(SOURCE):
        place(f"{UP}/data/mnist", name, content(SOURCE, name))
    for name in ODD_KEYS:
        place(f"{UP}/data/odd", name, ODD)
    for i in range(LITTLE):
        place(f"{UP}/data/many/{i % 7}", f"v{i:04d}", idx_bytes(np.array([i, i % 9], np.int32)))
    place(f"{UP}/data/beside", "feats.scp", b"u1 sub/feats.ark:3\n")  # which names another object
    place(f"{UP}/data/beside", "sub/feats.ark",
          b"u1 \0BFV \4" + len(VECTOR).to_bytes(4, "little") + VECTOR.tobytes())
    for bucket in ("data", "public"):
        s3.send("PUT", f"/{bucket}")
    s3.put(f"{UP}/data", "data")
    s3.send("PUT", "/data/mnist/")  # as consoles make folders
    s3.put(f"{UP}/data/mnist", "public/mnist", **{"x-amz-acl": "public-read"})
    s3.send("PUT", "/public", query="acl=", **{"x-amz-acl": "public-read"})


def check_mnist(at=None):
    at = at or path()
    for i in range(0, 400, 9):
        equal(content(at, f"train/samples/raw/{i:06d}.image.raw"), images[i].tobytes(),
              f"image {i}")
    equal(content(at, "train/batches/batch=all/raw/000000.image.raw") == images.tobytes(), True,
          "all images")
    equal(content(at, "train/batches/batch=all/raw/000000.label.raw"), labels.tobytes(), "labels")


def fresh(*options):
    fresh.count += 1
    return ",".join([f"cache={PRIVATE}/cache.{fresh.count}", *options])


fresh.count = 0


def check_once_fetched(s3, options):
    """Two mounts: each byte of the bucket's prefix once, and the counters say so."""
    daemon = start("s3://data/mnist", options)
    other = start_at("other", "s3://data/mnist/", options)
    check_mnist()
    check_mnist(other.at)
    numbers = [remote(daemon.at), remote(other.at)]
    stop(daemon)
    stop(other)
    fetched = sum(r["demand_bytes"] + r["background_bytes"] for r in numbers)
    wait_until(lambda: sent(s3.log()) >= fetched, f"the gateway has logged {fetched} bytes")
    requests = s3.log()
    check_once(requests, {f"/data/mnist/{n}": os.path.getsize(f"{SOURCE}/{n}")
                          for n in os.listdir(SOURCE)}, "two mounts of a bucket")
    equal(fetched, sent(requests), "bytes fetched by the counters")


def check_listing(options):
    """More keys than a page has, and keys of all kinds; their folders."""
    found = json.loads(run("info", "--json", "-o", f"{options},stage=off", "s3://data/many/"))
    equal(len(found["datasets"]), LITTLE, "datasets of more than one page")
    with mounted("s3://data/odd/", options):
        listed = sorted(n for n in os.listdir(path()) if n not in (".epochfs", "README.txt"))
        equal(listed, sorted(ODD_KEYS), "odd keys")
        for name in ODD_KEYS:
            equal(content(path(name, "source", name)), ODD, name)
    with mounted("s3://data/odd/what?", fresh(options.partition(",")[2])):
        equal(content(path("what?/source/what?")), ODD, "an object on its own")
    with mounted("s3://data/beside/feats.scp", options):
        equal(np.load(path("feats.scp/samples/npy/u1.data.npy")).tolist(), VECTOR.tolist(),
              "what an object on its own names")
    contains(run("info", "-o", options, "s3://data/nothing-here/", code=2), "nothing-here")
    contains(run("info", "-o", options, "s3://no-such-bucket/x", code=2), "no-such-bucket")


def check_access(s3, options):
    """Access that is allowed, and the messages where it is refused."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    bare.update(HOME=f"{PRIVATE}/nobody", AWS_EC2_METADATA_DISABLED="true")
    keys = {"AWS_ACCESS_KEY_ID": s3.KEY}
    for name, env in (
            ("a wrong secret", {**bare, **keys, "AWS_SECRET_ACCESS_KEY": "wrong"}),
            ("an unknown key", {**bare, "AWS_ACCESS_KEY_ID": "NOBODY",
                                "AWS_SECRET_ACCESS_KEY": "wrong"}),
            ("no credentials", bare)):
        said = run("info", "-o", options, "s3://data/mnist/", code=2, env=env)
        equal(any(word in said for word in ("403", "orbidden", "denied", "redentials")), True,
              f"{name}: {said}")
    unsigned = f"{fresh('anonymous')},{options.partition(',')[2]}"
    contains(run("info", "-o", unsigned, "s3://data/mnist/", code=2, env=bare), "s3://")
    contains(run("info", "-o", unsigned, "s3://public/mnist/", env=bare), "train",
             "credentials  anonymous")
    # The shared files, by default and by profile=.
    home = f"{PRIVATE}/home"
    place(home, ".aws/credentials", f"""# a comment
[default]
aws_access_key_id = NOBODY
aws_secret_access_key = nothing

[right]
aws_access_key_id={s3.KEY}
aws_secret_access_key = {s3.SECRET}
""".encode())
    place(home, ".aws/config", f"[profile right]\nregion = default\n"
          f"endpoint_url = {s3.endpoint}\n".encode())
    env = {**bare, "HOME": home}
    run("info", "-o", options, "s3://data/mnist/", code=2, env=env)
    said = run("info", "-o", f"profile=right,{options}", "s3://data/mnist/", env=env)
    contains(said, "train")
    contains(run("info", "-o", options, "s3://data/mnist/", env={**env, "AWS_PROFILE": "right"}),
             "train")
    contains(run("info", "-o", options, "s3://data/mnist/",
                 env={**bare, "AWS_SHARED_CREDENTIALS_FILE": f"{home}/.aws/credentials",
                      "AWS_PROFILE": "right"}), "train")
    contains(run("info", "-o", f"profile=none-such,{options}", "s3://data/mnist/", code=2, env=env),
             "none-such")
    equal(s3.SECRET in said, False, f"info names the secret: {said}")
    contains(said, "credentials  profile right of ")
    said = run("info", "--json", "-o", f"profile=right,{options}", "s3://data/mnist/", env=env)
    contains(json.loads(said)["credentials"], "profile right of ")
    equal(s3.SECRET in said or s3.KEY in said, False, f"info names the secret: {said}")
    # The endpoint from the environment.
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        contains(run("info", "-o", fresh(), "s3://data/mnist/",
                     env={**bare, **s3.environment, name: s3.endpoint}), "train")


def check_secret(s3, options):
    """It is in no argument, message, log, status or file of the cache folder."""
    for option in (f"secret={s3.SECRET}", f"endpoint=http://a:{s3.SECRET}@127.0.0.1/",
                   f"aws_secret_access_key={s3.SECRET}"):
        said = run("info", "-o", option, "s3://data/mnist", code=1)
        equal(s3.SECRET in said, False, f"-o {option} is refused without showing it: {said}")
    daemon = start("s3://data/mnist", options, log="log.secret")
    check_mnist()
    places = {"argv": content("/proc", str(daemon.pid), "cmdline"),
              "status": content(path(".epochfs/status.json")),
              "metrics": content(path(".epochfs/metrics")),
              "README": content(path("README.txt")),
              "status by command": run("status", path()).encode(),
              "info": run("info", "-o", options, "s3://data/mnist").encode(),
              "mounts": content("/proc/self/mountinfo")}
    stop(daemon)
    places["log"] = log_text("log.secret").encode(errors="surrogateescape")
    for file, _ in files_below(PRIVATE):
        if "/ceph/" not in file and "/home/" not in file and "/mountpoint/" not in file:
            places[file] = content(file)
    for where, found in places.items():
        for word in (s3.SECRET.encode(), b"X-Amz-Signature"):
            equal(word in found, False, f"{where} has {word!r}")


with Ceph() as gateway:
    timed(upload, gateway)
    os.environ.update(gateway.environment, AWS_EC2_METADATA_DISABLED="true", HOME=f"{PRIVATE}/none")
    AT = f"endpoint={gateway.endpoint},region=default"
    timed(check_once_fetched, gateway, f"{fresh()},{AT}")
    timed(check_listing, f"{fresh()},{AT}")
    timed(check_access, gateway, f"{fresh()},{AT}")
    timed(check_secret, gateway, f"{fresh()},{AT}")
    with mounted("s3://data/mnist", f"{fresh()},{AT},virtual_host".replace("127.0.0.1",
                                                                        "localhost")):
        check_mnist()
    with mounted("s3://public/mnist", f"{fresh()},{AT},anonymous"):
        check_mnist()
    # The gateway goes away, and reads fail in time.
    late = start("s3://data/many", f"{fresh()},{AT},stage=off,patience=2,timeout=1")
    gateway.stop()
    contains(run("stage", "-o", f"{fresh()},{AT},patience=1,timeout=1", "s3://data/mnist", code=2),
             "127.0.0.1")
    stop(late)
