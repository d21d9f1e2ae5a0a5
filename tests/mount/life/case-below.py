#!/usr/bin/python3
# needs: root
"""open=pass where the kernel refuses the files as backing files, because they lie on a file system that lies on
another one: an overlay, and a mount of FUSE. Every read is right through the daemon, and the log says why, once."""

import os
import random
import subprocess

from lib import MOUNTPOINT, PRIVATE, SOURCE, content, equal, log_text, mounted, path, skip, status, stop, write
from servers import start_at


WHY = "its file system lies on another one; it is read through epochfs"
rng = random.Random(20)
DATA = {f"{i}.jpg": rng.randbytes((3 << 20) + i) for i in range(4)}
for name, data in DATA.items():
    write(f"c/{name}", data)


def check(folder, what):
    with mounted(folder, "open=pass", log=f"log.{what}"):
        if status()["open"]["mode"] != "pass":
            skip(status()["open"]["reason"])
        for _ in range(2):
            for name, data in DATA.items():
                equal(content(path("all/samples/raw", name)) == data, True, f"{name} on {what}")
        equal(status()["open"]["passed"], 0, f"opens that were passed on, on {what}")
        equal(log_text(f"log.{what}").count(WHY), 1, log_text(f"log.{what}"))


# An overlay over a tmpfs: two file systems deep.
below, over = f"{PRIVATE}/below", f"{PRIVATE}/over"
os.mkdir(below)
os.mkdir(over)
subprocess.run(["mount", "-t", "tmpfs", "below", below], check=True)
for name in ("upper", "work"):
    os.mkdir(f"{below}/{name}")
layers = f"lowerdir={SOURCE},upperdir={below}/upper,workdir={below}/work"
if subprocess.run(["mount", "-t", "overlay", "over", "-o", layers, over], check=False).returncode:
    subprocess.run(["umount", below], check=True)
    skip("this kernel or container mounts no overlay")
try:
    check(over, "overlay")
finally:
    subprocess.run(["umount", over], check=True)
    subprocess.run(["umount", below], check=True)

# Another mount of ours.
daemon = start_at("lower", SOURCE)
check(f"{daemon.at}/all/samples/raw", "fuse")
stop(daemon)
