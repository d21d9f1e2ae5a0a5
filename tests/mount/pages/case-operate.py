#!/usr/bin/python3
# slow: the commands of five pages
"""docs/reference, performance.md and containers.md, done as by a reader, with the outputs that they show."""

import os

import pages
from lib import content
from tar_model import shard

world = pages.World()
world.fashion("/data/mnist", "t10k")
world.s3({f"mnist/{name}": content("/data/mnist", name) for name in os.listdir("/data/mnist")})
for s in range(3):
    world.file(f"/data/shards/set-{s}.tar", shard([(f"{100 * s + i:06}.cls", b"%d" % i) for i in range(100)]))
world.fashion(f"{pages.tutorials.HOME}/images", "t10k")
os.makedirs("/mnt/mnist")
world.folder("mnt")
os.environ["EPOCHFS_CACHE"] = "/local/cache"
world.run("docs/reference/commands.md")
world.run("docs/performance.md")
world.run("docs/containers.md", then={"allow_other": "test -e /mnt/mnist/t10k/dataset.json"})
world.run("docs/reference/options.md")
world.run("docs/reference/status.md", then={"--html": "grep -q '</html>' status.html"})
