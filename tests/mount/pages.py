"""A root of its own for the blocks of a page, so that they run as they are written: /data, /mnt and /etc are the case's, and
the servers of the page answer.

    world = World()                     everything below / can be used, changes are thrown away; no network but loopback
    world.web({"mnist": FOLDER})        http:// and https:// of HOSTS show these folders, and epochfs trusts their certificate: an Nginx
    world.s3({"mnist/a": bytes})        s3://bucket has these objects
    world.run("docs/tables.md")            the blocks that have no mark, in their order; then={words of a block: more to run}

It is also the command that ends another:  pages.py until-ctrl-c COMMAND...
"""

import ctypes
import os
import re
import signal
import subprocess
import sys

import page_blocks
import tutorials
from fake_s3 import FakeS3
from lib import PRIVATE, equal, need_fashion, skip
from servers import Nginx, make_ca, make_certificate

HOSTS = ("host", "example.org", "data.example.org")
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"
# Before a block that mounts: nothing of the blocks above it is mounted.
UNMOUNT = r"""cd
for at in $(sed -n 's|^\S* \S* \S* \S* \(/mnt\S*\) .* fuse\.epochfs .*|\1|p' /proc/self/mountinfo); do epochfs umount "$at"; done
"""


def command(*arguments):
    subprocess.run(arguments, check=True)


def mountpoints():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        return [line.split()[4] for line in f]


class World:
    def __init__(self):
        if os.geteuid() != 0:
            skip("a root of its own needs root")
        libc = ctypes.CDLL(None, use_errno=True)
        equal(libc.unshare(CLONE_NEWNS | CLONE_NEWNET), 0, "unshare")
        command("mount", "--make-rprivate", "/")
        command("ip", "link", "set", "lo", "up")
        place = f"{PRIVATE}/world"
        os.makedirs(place)
        others = [m for m in mountpoints() if m != "/" and "\\" not in m]
        command("mount", "-t", "tmpfs", "tmpfs", place)
        for name in ("upper", "work", "root"):
            os.mkdir(f"{place}/{name}")
        root = f"{place}/root"
        command("mount", "-t", "overlay", "-o", f"lowerdir=/,upperdir={place}/upper,workdir={place}/work", "overlay", root)
        top = [m for m in others if not any(m.startswith(o + "/") for o in others)]
        for m in top:
            command("mount", "--rbind", m, root + m)
        if not any(PRIVATE.startswith(m + "/") for m in top):
            command("mount", "--bind", PRIVATE, root + PRIVATE)
        os.chroot(root)
        os.chdir(PRIVATE)
        for folder in ("/data", "/mnt"):
            os.makedirs(folder, exist_ok=True)
            command("mount", "-t", "tmpfs", "tmpfs", folder)
        with open("/etc/hosts", "w", encoding="ascii") as f:
            f.write(f"127.0.0.1 localhost {' '.join(HOSTS)}\n")
        os.makedirs(tutorials.HOME)
        os.symlink(f"{page_blocks.ROOT}/mount-scripts", f"{tutorials.HOME}/mount-scripts")

    def folder(self, name):
        """A new folder of the reader's home, or anywhere."""
        made = os.path.join(tutorials.HOME, name)
        os.makedirs(made, exist_ok=True)
        return made

    def file(self, name, data):
        where = os.path.join(tutorials.HOME, name)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as f:
            f.write(data)
        return where

    def fashion(self, where="/data/mnist", *names):
        """The real pictures, unpacked, or those of its files whose names begin with names."""
        need_fashion()
        os.makedirs(where)
        for name in os.listdir("/usr/share/datasets/fashion-mnist"):
            if name.endswith(".gz") and (not names or name.startswith(names)):
                with open(f"{where}/{name[:-3]}", "wb") as f:
                    subprocess.run(["zcat", f"/usr/share/datasets/fashion-mnist/{name}"], stdout=f, check=True)
        return where

    def web(self, folders):
        for name, folder in folders.items():
            os.makedirs("/srv/web", exist_ok=True)
            os.symlink(folder, f"/srv/web/{name}")
        authority = make_ca(f"{PRIVATE}/authority")
        certificate = make_certificate(f"{PRIVATE}/authority", "web", ",".join(f"DNS:{host}" for host in HOSTS))
        with open(TRUSTED, "a", encoding="ascii") as f, open(authority, encoding="ascii") as more:
            f.write(more.read())
        return Nginx("/srv/web", servers=f"""
    server {{ listen 80; listen 443 ssl; ssl_certificate {certificate}; ssl_certificate_key {certificate[:-4]}.key;
              root /srv/web; autoindex on; }}""")

    def s3(self, objects):
        s3 = FakeS3(objects, bucket="bucket").__enter__()
        tutorials.environment()  # makes the folder of tools
        aws = self.file(f"{PRIVATE}/tools/aws", b'#!/bin/sh\nexec /usr/bin/aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"\n')
        os.chmod(aws, 0o755)  # Debian 12's does not know AWS_ENDPOINT_URL
        os.environ.update(AWS_ENDPOINT_URL=s3.endpoint, AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret",
                          AWS_DEFAULT_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true",
                          AWS_REQUEST_CHECKSUM_CALCULATION="when_required")  # so that a body of a PUT is the object
        return s3

    def run(self, page, section=None, then=None, before=""):
        """The page, or what stands below that heading. before: commands that the page takes for done."""
        then, script, ran = dict(then or {}), tutorials.Script(), 0
        script.do(before)
        for block in page_blocks.section(page, section):
            if block.mark and not block.mark["until"]:
                continue
            script.text += "cd\n"
            if re.search(r"^(\$ )?(epochfs )?mount ", block.text, re.M):
                script.text += UNMOUNT
            words = [w for w in then if w in block.text]
            script.block(block, "".join(then.pop(w) + "\n" for w in words))
            ran += 1
        equal(list(then), [], f"{page}: blocks with these words")
        script.do(UNMOUNT)
        script.run(page)
        print(f"{page}: {ran} blocks")


def until_ctrl_c(arguments):
    """Run it until it has printed a line, then stop it as a terminal does."""
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True)
    first = process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    rest = process.communicate()[0]
    print((first + rest).decode(), end="")
    return 0 if first and process.returncode in (0, -signal.SIGINT, 128 + signal.SIGINT) else 1


if __name__ == "__main__":
    if sys.argv[1:2] != ["until-ctrl-c"] or len(sys.argv) < 3:
        sys.exit("usage: pages.py until-ctrl-c COMMAND...")
    sys.exit(until_ctrl_c(sys.argv[2:]))
