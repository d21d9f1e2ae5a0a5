#!/usr/bin/python3
# needs: python3-scipy
# slow: the commands of five pages
"""docs/use.md, memory.md, status.md, local.md and containers.md, done as by a reader: with the real pictures, libsvm text and
a Kaldi data directory."""

import os
import re
import shutil

import numpy as np

import kaldi_dirs
import pages
from lib import SOURCE, contains, equal, run
from page_blocks import take

world = pages.World()
world.fashion()
world.fashion("/data/small", "t10k")
objects = {f"{folder}/{name}": open(f"/data/small/{name}", "rb").read()
           for folder in ("mnist", "more") for name in os.listdir("/data/small")}
world.s3(objects)
world.file("train.txt", "".join(f"{i % 2} {i % 50}:0.5 {50 + i % 9}:{i}\n" for i in range(2000)).encode())
kaldi_dirs.Folder(np.random.default_rng(4), "speech", 40, 3).write()
shutil.move(f"{SOURCE}/speech", world.folder(""))
os.makedirs("/mnt/mnist")
os.makedirs("/mnt/more")
MOUNT = "epochfs mount /data/mnist /mnt/mnist\n"
REMOUNT = "epochfs umount {}\nepochfs mount {} /mnt\n"
world.run("docs/use.md", then={
    "epochfs audit": MOUNT,
    "cd /mnt/mnist": "test \"$(cat samples/png/000007.label.cls)\" = 2\ntest $(ls batches/batch=128,seed=7/epoch=0/npz | wc -l) = 469",
    "image01": "import subprocess\nassert one.shape == (28, 28) and x.shape == (128, 28, 28) and y.shape == (128, 10)\n"
               "subprocess.run('epochfs umount /mnt/mnist && epochfs mount train.txt /mnt', shell=True, check=True)",
    "load_npz": "import subprocess\nassert x.shape == (1024, 59) and label.shape == (1024,)\n"
                "subprocess.run('epochfs umount /mnt && epochfs mount speech /mnt', shell=True, check=True)",
    "feats_len": "import subprocess\nassert len(x) == 32 == len(lengths)\n"
                 "subprocess.run('epochfs umount /mnt', shell=True, check=True)",
    "cache_size=20G": "ls /mnt/more/t10k/samples/png | wc -l",
})
line = take("docs/use.md", "ro,allow_other").split()
world.file("/etc/fstab", " ".join(line).encode() + b"\n")
os.symlink(os.environ["EPOCHFS"], "/usr/sbin/mount.epochfs")
os.system("mount /mnt/mnist && test -e '/mnt/mnist/train/batches/batch=128,seed=7' && umount /mnt/mnist") == 0 or os.sys.exit(1)

world.run("docs/internals/memory.md", before=MOUNT)
kinds = {"JSON": "json.load(open({0!r}))", "Prometheus text": "assert open({0!r}).read().startswith('# HELP ')"}
looks = ""
for line in take("docs/status.md", "MOUNTPOINT/.epochfs/status.json").splitlines():
    name, kind = line.split(None, 1)
    looks += kinds[re.split("[,:]", kind)[0]].format(name.replace("MOUNTPOINT", "/mnt/mnist")) + "\n"
equal(looks.count("\n"), 3, "files that status.md names")
looks = world.file("looks.py", b"import json\n" + looks.encode())
world.run("docs/status.md", then={"--html": f"grep -q '</html>' status.html\npython3 {looks}"}, before=MOUNT)
world.run("docs/containers.md", then={"allow_other": "test -e /mnt/mnist/t10k/dataset.json"})

world.file("linked/a", b"\0\0\x08\x01\0\0\0\x02\x01\x02")
os.symlink("/etc", f"{world.folder('linked')}/etc")
contains(run("info", world.folder("linked")), take("docs/local.md", "etc: a link").strip())
