#!/usr/bin/python3
# needs: python3-pil python3-torch dataset-fashion-mnist
"""The first pages of a user, done as by a reader: docs/quickstart.md, migration.md and cheat-sheet.md, with image folders, here and in a
bucket."""

import os

import clothes
import pages
from lib import content

world = pages.World()
home = world.folder("")
clothes.make(f"{home}/clothes")
bucket = {f"clothes/train/{name}/{image}": content(home, "clothes/train", name, image)
          for name in clothes.CLASSES for image in os.listdir(f"{home}/clothes/train/{name}")}
images = {name.replace("clothes", "images"): data for name, data in list(bucket.items())[::30]}
for name, data in images.items():
    world.file(f"/data/{name}", data)
world.s3(bucket | images)
world.run("docs/quickstart.md")
world.run("docs/migration.md")
world.run("docs/cheat-sheet.md", then={"epochfs stage": "test $(ls ~/mnt/train/samples/raw | grep -c jpg) = 30; epochfs umount ~/mnt"})
