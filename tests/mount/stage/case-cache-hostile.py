#!/usr/bin/python3
# slow: each file of a cache, in each way
"""A member of the group that shares a cache folder does to it what he can: links, pipes, folders and
hard links in the place of files and folders, cut and overwritten files, also of mapped indexes. He
never gets at other files of the user who mounts: they are neither read nor changed. Her reads are
right, or errors; her daemon lives on; her commands say what they found, by name."""

import os
import random
import stat

import numpy as np

import users
from bad_server import BadServer
from lib import DEADLINE, PRIVATE, SLOW, contains, equal, idx_bytes
from servers import place, sha256sums
from users import GROUP, User

SEED = int(os.environ.get("DAMAGE_SEED", "22"))
ROUNDS = int(os.environ.get("DAMAGE_ROUNDS", "1" if SLOW else "3"))
users.may_mount(__file__)
print(f"seed {SEED}, {ROUNDS} rounds", flush=True)
chance = random.Random(SEED)
SHARED = f"{PRIVATE}/shared"
os.mkdir(SHARED)
os.chown(SHARED, 0, GROUP)
os.chmod(SHARED, 0o2770)
WWW = f"{PRIVATE}/www"
rng = np.random.default_rng(SEED)
DATA = idx_bytes(rng.integers(0, 256, (300, 50, 40), dtype=np.uint8))
ROWS = "".join(f"{i % 5} 1:{i} 2:{i * 3}\n" for i in range(3000)).encode()
place(WWW, "big-data", DATA)
place(WWW, "rows.svm", ROWS)
sha256sums(WWW)
OPTIONS = f"cache={SHARED},block=16K,patience=5"
ann, bob = User("ann", [GROUP], "077"), User("bob", [GROUP])
OWN = f"{ann.home}/own"
SECRET = b"precious " * 1000
BATCH = "rows.svm/batches/batch=10,seed=1,draw=3000:balanced/epoch=0/svm/000000.svm"


def own_files():
    """What ann keeps to herself."""
    found = {}
    for at, folders, names in os.walk(OWN):
        for name in folders + names:
            st = os.lstat(f"{at}/{name}")
            data = open(f"{at}/{name}", "rb").read() if stat.S_ISREG(st.st_mode) else None
            found[f"{at}/{name}"] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, data)
    return found


def make_own():
    """Files of hers with the names that those of the cache folder have."""
    os.mkdir(OWN, 0o700)
    for at, folders, names in os.walk(SHARED):
        below = os.path.relpath(at, SHARED)
        for name in names:
            file = f"{OWN}/{below}/{name}"
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "wb") as f:
                f.write(SECRET)
            os.chmod(file, 0o600)
    for at, folders, names in os.walk(OWN):
        for name in ["."] + folders + names:
            os.chown(f"{at}/{name}", ann.uid, ann.uid)


def files():
    return sorted(os.path.relpath(f"{at}/{name}", SHARED) for at, _, names in os.walk(SHARED)
                  for name in names)


def away(name):
    """Put aside what has that name: a member may rename what others made."""
    os.rename(f"{SHARED}/{name}", f"{PRIVATE}/aside.{random.random()}")


# What bob does. Root does it for him, so that no setting of the system (protected_hardlinks) is in the way.
def link(name):
    away(name)
    os.symlink(f"{OWN}/{name}", f"{SHARED}/{name}")


def hard_link(name):
    away(name)
    os.link(f"{OWN}/{name}", f"{SHARED}/{name}")


def pipe(name):
    away(name)
    os.mkfifo(f"{SHARED}/{name}", 0o660)
    os.chown(f"{SHARED}/{name}", bob.uid, GROUP)


def folder(name):
    away(name)
    os.mkdir(f"{SHARED}/{name}")
    os.chown(f"{SHARED}/{name}", bob.uid, GROUP)


def cut(name):
    os.truncate(f"{SHARED}/{name}", chance.randrange(os.path.getsize(f"{SHARED}/{name}") + 1))


def overwrite(name):
    """All of it, but content that a mount has compared: docs/cache.md says what holds for that."""
    if name.endswith(".content"):
        return
    with open(f"{SHARED}/{name}", "r+b") as f:
        f.write(chance.randbytes(os.path.getsize(f"{SHARED}/{name}")))


def remove(name):
    os.unlink(f"{SHARED}/{name}")


def swap_link(name):
    """The folder of a file becomes a link to ann's."""
    sub = os.path.dirname(name)
    if sub:
        away(sub)
        os.symlink(f"{OWN}/{sub}", f"{SHARED}/{sub}")


def swap_folder(mode, gid):
    def act(name):
        """The folder of a file becomes one of bob's, full of hard links to ann's files."""
        sub = os.path.dirname(name)
        if sub:
            away(sub)
            os.mkdir(f"{SHARED}/{sub}")
            os.chown(f"{SHARED}/{sub}", bob.uid, gid)
            os.chmod(f"{SHARED}/{sub}", mode)
            for own in os.listdir(f"{OWN}/{sub}") if os.path.isdir(f"{OWN}/{sub}") else []:
                os.link(f"{OWN}/{sub}/{own}", f"{SHARED}/{sub}/{own}")
    return act


ACTS = {act.__name__: act for act in (link, hard_link, pipe, folder, cut, overwrite, remove, swap_link)}
ACTS |= {"swap_folder 0777": swap_folder(0o777, GROUP), "swap_folder 2770": swap_folder(0o2770, GROUP),
         "swap_folder of bob": swap_folder(0o2770, bob.uid)}


def undo():
    """What an administrator would do: remove what is no file of the group, and make the marker."""
    for at, folders, names in os.walk(SHARED, topdown=False):
        for name in folders + names:
            st = os.lstat(f"{at}/{name}")
            if st.st_gid != GROUP or st.st_uid == bob.uid or not stat.S_IMODE(st.st_mode) & 0o060 or \
                    not (stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode)):
                os.rename(f"{at}/{name}", f"{PRIVATE}/aside.{random.random()}")
    with open(f"{SHARED}/EPOCHFS", "wb") as f:
        f.write(MARKER)
    os.chown(f"{SHARED}/EPOCHFS", ann.uid, GROUP)
    os.chmod(f"{SHARED}/EPOCHFS", 0o660)


def check_reads(what):
    for name, want in (("big-data/source/big-data", DATA), ("rows.svm/source/rows.svm", ROWS)):
        with ann.start("sh", "-c", 'md5sum <"$1" | cut -c 1-32', "sh", f"{ann.mountpoint}/{name}") as p:
            got = p.communicate()[0].splitlines()
        with ann.start("md5sum", f"{WWW}/{name.rpartition('/')[2]}") as p:
            right = p.communicate()[0].split()[0]
        equal(got == [right] or any("rror" in line or "tale" in line or "denied" in line or "permitted" in line
                                    for line in got), True, f"{what}: {name}: {got}")
    with ann.start("cat", f"{ann.mountpoint}/{BATCH}") as p:
        got = p.communicate()[0]
        equal(p.returncode or got == the_batch, True if not p.returncode else p.returncode, f"{what}: {BATCH}: {got}")
    contains(ann.read(".epochfs/status.json"), '"pid"')


def check_commands(what):
    for command in (["stage", "-o", OPTIONS, f"{server.url}/"], ["info", "-o", OPTIONS, f"{server.url}/rows.svm"],
                    ["cache", "list", SHARED], ["cache", "verify", SHARED], ["cache", "prune", SHARED],
                    ["cache", "list", "--json", SHARED]):
        with ann.start(ann.binary, *command) as p:
            said = p.communicate(timeout=DEADLINE)[0]
        equal(p.returncode in (0, 2, 4), True, f"{what}: {command}: {p.returncode}: {said}")
        equal("precious" in said, False, f"{what}: {command} shows her file: {said}")


with BadServer(WWW) as server:
    ann.mount(f"{server.url}/", OPTIONS)
    the_batch = ann.read(BATCH)
    contains("".join(files()), "labels/", "rows/", "staged/")
    ann.umount()
    ann.run("stage", "-o", OPTIONS, f"{server.url}/")
    with open(f"{SHARED}/EPOCHFS", "rb") as f:
        MARKER = f.read()
    make_own()
    before = own_files()
    for turn in range(ROUNDS):
        for name, act in ACTS.items():
            ann.mount(f"{server.url}/", OPTIONS)
            check_reads("before")
            hit = chance.choice([f for f in files() if "/" in f or not name.startswith("swap")])
            print(turn, name, hit, flush=True)
            act(hit)
            check_reads(f"{name} {hit}, under a mount")
            equal(own_files() == before, True, f"{name} {hit}: ann's own files, by a mount")
            check_commands(f"{name} {hit}")
            equal(own_files() == before, True, f"{name} {hit}: ann's own files, by commands")
            ann.umount()
            undo()
