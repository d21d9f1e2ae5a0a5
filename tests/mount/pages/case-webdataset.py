#!/usr/bin/python3
# needs: module:webdataset python3-pil
"""The loader of docs/shards.md with the real webdataset: its samples are those of the epoch, in its order. Debian has no such package,
so this runs where it is installed for /usr/bin/python3."""

import io
import subprocess
import sys

import numpy as np
from PIL import Image

import pages
from lib import equal, run
from page_blocks import take
from tar_model import shard

SHARD = 800  # samples
rng = np.random.default_rng(6)
world = pages.World()


def jpeg():
    out = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)).save(out, "jpeg")
    return out.getvalue()


pictures = [jpeg() for _ in range(7)]
for first in range(0, 3 * SHARD, SHARD):
    world.file(f"/data/shards/{first:06}.tar", shard([(f"{i:06}.{ext}", data) for i in range(first, first + SHARD) for ext, data in
                                                   (("jpg", pictures[i % 7]), ("cls", b"%d" % i))]))
run("mount", "/data/shards", "/mnt")
loader = world.file("loader.py", take("docs/shards.md", "webdataset.WebDataset").encode() + b"""
import numpy, PIL.Image
assert len(urls) == 2, urls
index = numpy.concatenate([numpy.load(url.replace('tar', 'npz'))['index'] for url in sorted(urls)])
for i, (picture, label) in zip(index, data, strict=True):
    stored = numpy.asarray(PIL.Image.open(f'/mnt/all/samples/raw/{i:06}.jpg'))
    assert label == i and numpy.array_equal(numpy.asarray(picture), stored), (i, label)
""")
equal(subprocess.run([sys.executable, loader], check=False).returncode, 0, "exit code of the page's loader")
run("umount", "/mnt")
