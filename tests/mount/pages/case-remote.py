#!/usr/bin/python3
# needs: awscli
"""README.md, docs/remote.md, cache.md, index-format.md and cluster.md, done as by a reader: a web server with HTTPS, a bucket, and the
site cache that the page sets up."""

import os
import subprocess

import pages
from lib import content, equal
from tar_model import shard

world = pages.World()
world.fashion("/data/mnist", "train")
world.fashion("/data/small", "t10k")
small = {name: content("/data/small", name) for name in os.listdir("/data/small")}
shards = {f"set-{s}.tar": shard([(f"{100 * s + i:06}.cls", b"%d" % i) for i in range(100)]) for s in range(3)}
for name, data in shards.items():
    world.file(f"/data/shards/{name}", data)
objects = {f"{folder}/{name}": data for folder in ("mnist", "prefix") for name, data in small.items()}
objects |= {f"shards/{name}": data for name, data in shards.items()}
objects |= {f"clothes/train/{name}/{i}.jpg": b"\xff\xd8\xff\xe0 an image" for i, name in enumerate(("boot", "dress", "boot"))}
s3 = world.s3(objects)
world.web({"mnist": "/data/mnist", "data": "/data/small", "shards": "/data/shards"})
for name in ("mnist", "data", "prefix"):
    os.makedirs(f"/mnt/{name}")

world.run("README.md", then={"s3://bucket/clothes ~/mnt-s3": "test $(ls ~/mnt-s3/train/samples/npy/*.image.npy | wc -l) = 3; epochfs umount ~/mnt-s3"})
os.environ["EPOCHFS_CACHE"] = "/local/cache"  # new, as the page has it
world.run("docs/remote.md", then={
    "https://host/data/": "cmp /mnt/data/t10k/samples/raw/000009.image.raw /mnt/prefix/t10k/samples/raw/000009.image.raw",
    "stage --verify": "test $(du -sm $EPOCHFS_CACHE | cut -f 1) -ge 44",
    "policy.json": "python3 -m json.tool policy.json",
    "aws s3 cp": "test -s .epochfs/index.txt"})
world.run("docs/cache.md", then={"cache_size=20G": "ls /mnt/mnist/t10k/batches"})
world.run("docs/spec/index-format.md", then={"/data/shards/.epochfs": "test -s /data/shards/.epochfs/index.txt"})
equal(s3.data("shards/.epochfs/index.txt"), content(world.folder(".epochfs"), "index.txt"), "what was uploaded")

# The machine has no systemd: its nginx is started.
world.file("/usr/local/bin/systemctl", b"#!/bin/sh\ntest \"$*\" = 'reload nginx' && nginx\n")
os.chmod("/usr/local/bin/systemctl", 0o755)
subprocess.run("rm -f /etc/nginx/sites-enabled/*; ip address add 10.0.0.1/8 dev lo", shell=True, check=True)
world.file("/etc/fstab", b"")
os.symlink(os.environ["EPOCHFS"], "/usr/sbin/mount.epochfs")
world.run("docs/cluster.md", then={"fstab-line": "test -e '/mnt/mnist/train/batches/batch=128,seed=7'",
                              "http://10.0.0.1": "cmp /mnt/mnist/train/source/train-labels-idx1-ubyte /data/mnist/train-labels-idx1-ubyte"})
