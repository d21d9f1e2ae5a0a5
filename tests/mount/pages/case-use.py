#!/usr/bin/python3
# needs: dataset-fashion-mnist
# slow: the commands of two pages
"""The line of /etc/fstab in docs/install.md, and memory.md and spec/local.md, done as by a reader with the real
images."""

import os

import pages
from lib import contains, run
from page_blocks import take

world = pages.World()
world.fashion()
os.makedirs("/mnt/mnist")
MOUNT = "epochfs mount /data/mnist /mnt/mnist\n"
line = take("docs/install.md", "ro,allow_other").split()
world.file("/etc/fstab", " ".join(line).encode() + b"\n")
os.symlink(os.environ["EPOCHFS"], "/usr/sbin/mount.epochfs")
os.system("mount /mnt/mnist && test -e '/mnt/mnist/train/batches/batch=128,seed=7' && umount /mnt/mnist") == 0 or os.sys.exit(1)

world.run("docs/internals/memory.md", before=MOUNT)

world.file("linked/a", b"\0\0\x08\x01\0\0\0\x02\x01\x02")
os.symlink("/etc", f"{world.folder('linked')}/etc")
contains(run("info", world.folder("linked")), take("docs/spec/local.md", "etc: a link").strip())
