#!/usr/bin/python3
"""In a cache folder of a group, what one user has staged is given to another only if the remote lets
him read it: each is asked with his own rights, of web servers, of S3, also where a list names the
versions, and of paths. Who may read it fetches nothing again."""

import hashlib
import os

import numpy as np

import users
from fake_s3 import FakeS3
from lib import PRIVATE, contains, equal, idx_bytes
from servers import Nginx, place, sent, sha256sums
from users import GROUP, User

users.may_mount(__file__)
SHARED = f"{PRIVATE}/shared"
os.mkdir(SHARED)
os.chown(SHARED, 0, GROUP)
os.chmod(SHARED, 0o2770)
OPTIONS = f"cache={SHARED},block=4K"
ann, bob = User("ann", [GROUP], "077"), User("bob", [GROUP])
rng = np.random.default_rng(5)
DATA = [idx_bytes(rng.integers(0, 256, (50, 40, 40), dtype=np.uint8)) for _ in range(3)]
PICTURES = {f"pictures/{c}/{i:03d}.jpg": f"{c}{i:03d}-".encode() * 50 for c in "xy" for i in range(16)}


def digest(user, *parts, code=0):
    return user.do("md5sum", "/".join([user.mountpoint, *parts]), code=code).split()[0]


def digest_of(data):
    return hashlib.md5(data).hexdigest()


def what_has(user, text):
    """Files of the pictures that have a text. Errors of single files are passed over."""
    with user.start("grep", "-r", "-l", "-s", text, f"{user.mountpoint}/pictures") as grep:
        return grep.communicate()[0].split()


def check_web():
    """A server with passwords: for a folder, and for one file of a folder that all may list."""
    www = f"{PRIVATE}/www"
    for name, data in zip(("locked/a-data", "open/b-data", "open/c-data"), DATA):
        place(www, name, data)
    for folder in ("locked", "open"):
        sha256sums(f"{www}/{folder}")
    with open(f"{PRIVATE}/passwords", "w", encoding="ascii") as f:
        f.write("ann:{PLAIN}one\nbob:{PLAIN}two\n")
    lock = f'auth_basic "locked"; auth_basic_user_file {PRIVATE}/passwords;'
    with open(f"{ann.home}/.netrc", "w", encoding="ascii") as f:
        f.write("machine 127.0.0.1 login ann password one\n")
    os.chown(f"{ann.home}/.netrc", ann.uid, ann.uid)
    with Nginx(www, more=f"location /locked/ {{ {lock} }} location = /open/c-data {{ {lock} }}") as server:
        for folder in ("locked", "open"):
            ann.run("stage", "-o", OPTIONS, f"{server.url}/{folder}/")
        server.forget()
        for command in ("info", "stage"):
            contains(bob.run(command, "-o", OPTIONS, f"{server.url}/locked/", code=2), "401")
            contains(bob.run(command, "-o", OPTIONS, f"{server.url}/locked/a-data", code=2), "401")
        bob.mount(f"{server.url}/open/", OPTIONS)
        equal(digest(bob, "b-data/source/b-data"), digest_of(DATA[1]), "an open file")
        contains(bob.read("c-data/ERROR.txt"), "c-data", "401")
        equal(bob.do("ls", f"{bob.mountpoint}/c-data").split(), ["ERROR.txt"], "of a locked one")
        bob.umount()
        equal(sent(r for r in server.log() if r.range != (0, 0)), 0, "bytes that bob fetched")
        # With a password of his own he has all, and it is not fetched again.
        with open(f"{bob.home}/.netrc", "w", encoding="ascii") as f:
            f.write("machine 127.0.0.1 login bob password two\n")
        os.chown(f"{bob.home}/.netrc", bob.uid, bob.uid)
        bob.mount(f"{server.url}/open/", OPTIONS)
        equal(digest(bob, "c-data/source/c-data"), digest_of(DATA[2]), "a locked file, by password")
        bob.umount()
        bob.run("stage", "-o", OPTIONS, f"{server.url}/locked/")
        equal(sent(r for r in server.log() if r.range != (0, 0)), 0, "bytes that bob fetched, with his password")


def check_bucket():
    """Who may list a bucket may perhaps not read its objects: one large, many small."""
    objects = {"set/a-data": DATA[0], "set/b-data": DATA[1]}
    objects |= {f"set/{name}": data for name, data in PICTURES.items()}
    with FakeS3(objects) as s3:
        options = f"{OPTIONS},anonymous,endpoint={s3.endpoint}"
        said = ann.run("stage", "-o", options, "s3://data/set/")
        contains(said, "complete and correct")
        bob.run("stage", "-o", options, "s3://data/set/")
        s3.forbidden = set(objects)
        for source in ("s3://data/set/", "s3://data/set/a-data"):
            said = bob.run("stage", "-o", options, source, code=2)
            contains(said, "403")
        s3.forbidden = {"set/b-data", "set/pictures/x/007.jpg"}
        bob.mount("s3://data/set/", options)
        equal(digest(bob, "a-data/source/a-data"), digest_of(DATA[0]), "an object that he may read")
        contains(bob.read("b-data/ERROR.txt"), "403")
        contains(bob.run("info", "-o", options, "s3://data/set/"), "pictures: cannot be shown without a file that",
                 "pictures/x/007.jpg: expected status 200, got 403")
        equal(what_has(bob, "x007-x007"), [], "where bob sees the object that he may not read")
        bob.umount()


def check_path():
    """Files of a path: of one alone, and of one among others."""
    folder = f"{PRIVATE}/files"
    place(folder, "alone-data", DATA[0])
    for name, data in PICTURES.items():
        place(folder, name, data)
    mine = [f"{folder}/alone-data", f"{folder}/pictures/x/007.jpg"]
    for file in mine:
        os.chown(file, ann.uid, ann.uid)
        os.chmod(file, 0o600)
    contains(ann.run("stage", "-o", OPTIONS, folder), "complete and correct")
    for command in ("stage", "info"):
        contains(bob.run(command, "-o", OPTIONS, mine[0], code=2), "Permission denied")
    bob.mount(folder, OPTIONS)
    contains(bob.read("alone-data/ERROR.txt"), "Permission denied")
    equal(what_has(bob, "x007-x007"), [], "where bob sees ann's file")
    equal(len(what_has(bob, "x008-x008")) >= 1, True, "where bob sees another one")
    bob.umount()
    for file in mine:
        os.chmod(file, 0o644)
    contains(bob.run("stage", "-o", OPTIONS, folder), "complete and correct")


check_web()
check_bucket()
check_path()
