#!/usr/bin/python3
# needs: root
# slow: several users, one after the other
"""With allow_other users can read through the mount only what the kernel lets them read in SOURCE,
and learn no other names or counts: permissions of folders count, also with different owners."""

import gzip
import os
import shutil
import subprocess

import numpy as np

from lib import (MOUNTPOINT, PRIVATE, SOURCE, contains, content, equal, idx_bytes, mounted, path,
                 start, stop, write)

ALICE, BOB, TEAM, OTHER_TEAM = 2001, 2002, 3001, 3002
USERS = {"alice": (ALICE, [TEAM]), "bob": (BOB, [TEAM]), "nobody": (65534, [])}
if any(subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "test", "-x", folder])
       .returncode for folder in (PRIVATE, SOURCE)):
    os.chmod(PRIVATE, 0o755)
os.chmod(SOURCE, 0o755)


def as_user(name, *command):
    uid, groups = USERS[name]
    return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}",
                           f"--groups={','.join(map(str, groups))}" if groups else
                           "--clear-groups", *command],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def put(name, folder_owner, folder_mode, file_owner, file_mode, bad=False):
    """SOURCE/name/values, and its folder."""
    data = b"secret content, and no dataset" if bad else idx_bytes(np.arange(77, dtype=np.uint8))
    write(f"{name}/values-data", data)
    os.chown(f"{SOURCE}/{name}", *folder_owner)
    os.chmod(f"{SOURCE}/{name}", folder_mode)
    os.chown(f"{SOURCE}/{name}/values-data", *file_owner)
    os.chmod(f"{SOURCE}/{name}/values-data", file_mode)


os.makedirs(f"{SOURCE}/deep")
for args in (("open", (0, 0), 0o755, (0, 0), 0o644),
             ("closed", (0, 0), 0o700, (0, 0), 0o644),
             ("blind", (0, 0), 0o711, (0, 0), 0o644),
             ("team", (ALICE, TEAM), 0o750, (ALICE, TEAM), 0o644),
             ("mixed", (BOB, TEAM), 0o750, (ALICE, OTHER_TEAM), 0o644),
             ("deep/cellar", (0, 0), 0o755, (0, 0), 0o644),
             ("broken", (0, 0), 0o755, (0, 0), 0o600, True),
             ("acl", (0, 0), 0o755, (0, 0), 0o644)):
    os.makedirs(f"{SOURCE}/{args[0]}", exist_ok=True)
    put(*args)
os.chmod(f"{SOURCE}/deep", 0o700)
has_acl = shutil.which("setfacl") and subprocess.run(
    ["setfacl", "-m", "u:65534:---", f"{SOURCE}/acl/values-data"],
    stderr=subprocess.DEVNULL).returncode == 0
if not has_acl:
    print("without ACLs: setfacl cannot make one here")


def files_of(top):
    """Every file and folder that epochfs shows for a folder of SOURCE."""
    return [os.path.join(folder, name) for folder, folders, files in os.walk(top)
            for name in folders + files]


def check(where, options):
    with mounted(where, "allow_other", *options):
        names = [n for n in os.listdir(SOURCE)]
        for user in USERS:
            for name in names:
                top = f"{name}/cellar" if name == "deep" else name
                source = f"{SOURCE}/{top}/values-data"
                may_read = as_user(user, "cat", source).returncode == 0
                may_list = as_user(user, "ls", os.path.dirname(source)).returncode == 0
                shown = path(top)
                if as_user(user, "ls", shown).returncode == 0:
                    equal(may_list, True, f"{user} lists {shown}")
                some = files_of(shown)
                equal(len(some) > 1, True, f"root sees {shown}")
                read = as_user(user, "cksum", *filter(os.path.isfile, some)).stdout.decode().splitlines()
                if not may_read:
                    equal(read, [], f"{user} cannot read {source}")
                elif name != "mixed" and (name != "acl" or not has_acl):
                    equal(len(read) > 3, True, f"{user} reads {source}: {read}")
        for file in ("README.txt", ".epochfs/status.json", ".epochfs/metrics"):
            seen = as_user("nobody", "cat", path(file)).stdout.decode()
            for name in ("closed", "cellar", "mixed", "broken", "blind"):
                equal(name in seen, False, f"{file} tells nobody of {name}: {seen}")
        contains(as_user("nobody", "cat", path("README.txt")).stdout.decode(), "open/")
        equal(as_user("nobody", "cat", path(".epochfs/status.json")).returncode, 1, "the status")
        contains(content(path("broken/values-data/ERROR.txt")).decode(), "is text of no format")


check(SOURCE, [])
check(SOURCE, [f"cache={PRIVATE}/cache"])

# ---- nothing is hidden: everybody reads the status ----
daemon = start(f"{SOURCE}/open", "allow_other")
equal(as_user("nobody", "cat", path(".epochfs/status.json")).returncode, 0, "the status")
contains(as_user("nobody", "cat", path("README.txt")).stdout.decode(), "77 samples", "cd ")
stop(daemon)

# ---- SOURCE itself counts, and a file's folder ----
for where in ("closed", "closed/values-data"):
    daemon = start(f"{SOURCE}/{where}", "allow_other")
    equal(as_user("nobody", "ls", MOUNTPOINT).returncode, 2, f"nobody lists the mount of {where}")
    equal(as_user("nobody", "cat", path("README.txt")).returncode, 1, where)
    stop(daemon)

# ---- packed files, and a link that is followed: the folders of both ----
with open(f"{SOURCE}/open/packed-data.gz", "wb") as f:
    f.write(gzip.compress(idx_bytes(np.arange(50, dtype=np.int16))))
os.symlink("../closed/values-data", f"{SOURCE}/open/linked-data")
os.symlink("../open/values-data", f"{SOURCE}/closed/linked-data")
with mounted(SOURCE, "allow_other", f"cache={PRIVATE}/cache"):
    for name, may in (("open/packed-data", True), ("open/linked-data", False),
                      ("closed/linked-data", False)):
        page = [f for f in files_of(path(os.path.dirname(name))) if f.endswith("dataset.json") and
                os.path.basename(name).split("-")[0] in f]
        equal(len(page), 1, f"{name}: {page}")
        equal(as_user("nobody", "cat", page[0]).returncode == 0, may, f"nobody reads {page[0]}")
