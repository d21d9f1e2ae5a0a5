#!/usr/bin/python3
"""Without fusermount3 a user cannot mount: the message says what to install."""

import os
import shutil
import subprocess

import users
from lib import PRIVATE, SOURCE, contains, equal, mount_type, small

users.may_mount(__file__)
small()
ann = users.User("ann")
program = os.path.realpath(shutil.which("fusermount3"))
empty = f"{PRIVATE}/empty"
with open(empty, "wb"):
    pass
ann.mount(SOURCE)
subprocess.run(["mount", "--bind", empty, program], check=True)
contains(ann.run("umount", ann.mountpoint, code=3), "sudo apt install fuse3")
subprocess.run(["umount", program], check=True)
ann.umount()
subprocess.run(["mount", "--bind", empty, program], check=True)
contains(ann.run("mount", SOURCE, ann.mountpoint, code=3), "sudo apt install fuse3")
equal(mount_type(ann.mountpoint), None, "mounted")
