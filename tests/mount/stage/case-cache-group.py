#!/usr/bin/python3
# slow: several users, one after the other
"""A cache folder of mode 2770 serves all users of its group, whatever their umasks are: each byte is
fetched once for all of them, even if one is killed; cache_size= counts once; a user outside the
group gets nothing, and what a file's rights forbid is reported by its name."""

import base64
import json
import os
import stat
import subprocess

import numpy as np

import users
from bad_server import BadServer, stall, status
from lib import DEADLINE, PRIVATE, contains, equal, idx_bytes
from page_blocks import take
from servers import (MiB, check_once, disk_usage, ended, files_below, pidfd, place, sent, sha256sums,
                     wait_until)
from users import GROUP, User

N, BATCH = 4096, 32
users.may_mount(__file__)
WWW = f"{PRIVATE}/www"
SHARED = f"{PRIVATE}/shared"
IMAGES = np.random.default_rng(22).integers(0, 256, (N, 64, 64), dtype=np.uint8)
DATA = idx_bytes(IMAGES)  # 16 MiB
place(WWW, "big-data", DATA)
sha256sums(WWW)
np.save(f"{PRIVATE}/images.npy", IMAGES)
ann = User("ann", [GROUP], "077")
bob = User("bob", [GROUP], "022")
eve = User("eve")
LOOK = (0, 0)
OPTIONS = f"cache={SHARED},block=16K"

# Reads epochs, and compares every sample.
READER = """
import sys, numpy as np
mountpoint, first, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
images = np.load(sys.argv[4])
for epoch in range(first, end):
    folder = f"{mountpoint}/big-data/batches/batch=%d,seed=3/epoch={epoch}/npy"
    seen = []
    for i in range(len(images) // %d):
        index = np.load(f"{folder}/{i:06d}.index.npy")
        assert np.array_equal(np.load(f"{folder}/{i:06d}.image.npy"), images[index]), (epoch, i)
        seen += index.tolist()
    assert sorted(seen) == list(range(len(images))), epoch
    print("right", epoch, flush=True)
""" % (BATCH, BATCH)


def fetched(server):
    """Requests for data, without the byte by which each user asks for the version."""
    return [r for r in server.data() if r.range != LOOK]


def read_epochs(user, first=0, end=3):
    return user.python(READER, user.mountpoint, str(first), str(end), f"{PRIVATE}/images.npy")


def check_reader(reader, first=0, end=3):
    said = reader.communicate()[0]
    equal((reader.returncode, said), (0, "".join(f"right {e}\n" for e in range(first, end))),
          "epochs that were read")


def make_shared():
    """As an administrator makes it."""
    made = take("docs/spec/cache-format.md", "install -d").replace("GROUP", str(GROUP)).replace("/local/epochfs", SHARED)
    subprocess.run(["sh", "-ec", made], check=True)
    equal(oct(stat.S_IMODE(os.stat(SHARED).st_mode)), "0o2770", "mode of the folder")


def check_rights():
    """All files and folders are the group's, whichever user made them."""
    owners = set()
    for at, folders, names in os.walk(SHARED):
        for name in folders:
            st = os.stat(f"{at}/{name}")
            equal((oct(stat.S_IMODE(st.st_mode)), st.st_gid), ("0o2770", GROUP), f"{at}/{name}")
        for name in names:
            st = os.stat(f"{at}/{name}")
            equal((oct(stat.S_IMODE(st.st_mode)), st.st_gid), ("0o660", GROUP), f"{at}/{name}")
            owners.add(st.st_uid)
    return owners


def status_of(user):
    return json.loads(user.read(".epochfs/status.json"))


def stored(*these):
    """Bytes that the daemons of these users have fetched and stored."""
    return sum(status_of(user)["remote"]["distinct_bytes"] for user in these)


def check_two_users(server):
    """Both read three epochs at the same time; the daemon of one is killed within the first. It holds
    claims then, of blocks that were requested and did not come, and all that came is stored: what is
    on the way to a process that is killed is lost."""
    server.script("*", lambda reply: None if reply.request.range == LOOK else stall()(reply), first=5)
    for user in (ann, bob):
        user.mount(f"{server.url}/", f"{OPTIONS},jobs=2")
    daemon = status_of(ann)["pid"]
    readers = [read_epochs(user) for user in (ann, bob)]
    server.wait_stalled()
    wait_until(lambda: stored(ann, bob) == sent(fetched(server)), "all that was sent is stored")
    equal(0 < stored(ann) < len(DATA), True, f"{stored(ann)} bytes were fetched by ann's daemon")
    with pidfd(daemon) as fd:
        os.kill(daemon, 9)
        equal(ended(fd, DEADLINE), True, "the daemon ends")
    server.healthy()
    equal(readers[0].wait() != 0, True, "a reader whose daemon was killed fails")
    readers[0].communicate()
    check_reader(readers[1])
    ann.run("umount", ann.mountpoint)
    ann.mount(f"{server.url}/", OPTIONS)
    check_reader(read_epochs(ann))
    share = sent(fetched(server)) / len(DATA)
    print(f"origin bytes / dataset bytes: {share:.4f}")
    equal(f"{share:.2f}", "1.00", "the origin sent each byte once, for both")
    check_rights()
    for user in (ann, bob):
        user.umount()


def check_limit(server):
    """cache_size= is of the folder, not of each user."""
    place(WWW, "more-data", DATA[:16] + DATA[:15:-1])
    sha256sums(WWW)
    for user in (ann, bob):
        user.mount(f"{server.url}/", f"{OPTIONS},cache_size=20M")
    for user, name in ((ann, "big-data"), (bob, "more-data"), (ann, "more-data")):
        said = user.do("md5sum", f"{user.mountpoint}/{name}/source/{name}")
        equal(len(said.split()[0]), 32, "read")
    equal(disk_usage(SHARED) <= 20 * MiB, True, f"{disk_usage(SHARED)} bytes, cache_size=20M")
    # What one user has counted is there for the other.
    wait_until(lambda: len({status_of(user)["remote"]["cache_used_bytes"] for user in (ann, bob)}) == 1,
               "both see one count")
    for user in (ann, bob):
        user.umount()
    os.unlink(f"{WWW}/more-data")
    sha256sums(WWW)


def check_records(server):
    """Other records than blocks: unpacked files, indexes, and the list of users."""
    place(WWW, "rows.txt", b"".join(b"%d 1:%d\n" % (i % 3, i) for i in range(5000)))
    sha256sums(WWW)
    server.forget()
    for user in (bob, ann):
        user.mount(f"{server.url}/", OPTIONS)
        equal(user.read("rows.txt/source/rows.txt"), open(f"{WWW}/rows.txt").read(), "rows")
        user.umount()
    check_once([r for r in fetched(server) if "rows" in r.path],
               {"/rows.txt": os.path.getsize(f"{WWW}/rows.txt")}, "rows")
    equal(check_rights(), {61001, 61002}, "files of both")
    for user in (ann, bob):
        listed = json.loads(user.run("cache", "list", "--json", SHARED))
        names = {f["user"] for f in listed["files"]}
        equal(names, {"ann", "bob"}, "users of the entries")
        contains(user.run("cache", "list", SHARED), " ann ", " bob ", "user")
        user.run("cache", "verify", SHARED)
    said = bob.run("cache", "prune", "--all", SHARED)
    contains(said, "removed", "0 files in use")
    equal([path for path, _ in files_below(f"{SHARED}/staged")], [], "any member may remove")


def check_outside(server):
    """Another user gets nothing, and is told why; so is a member that cannot open a file."""
    source = f"{server.url}/big-data"
    bob.run("cache", "prune", "--all", SHARED)
    ann.run("stage", "-o", OPTIONS, source)
    for arguments in (("stage", "-o", OPTIONS, source), ("info", "-o", OPTIONS, source),
                      ("mount", "-o", OPTIONS, source, eve.mountpoint)):
        contains(eve.run(*arguments, code=4), SHARED, f"expected a user in group {GROUP}", "user 61003")
    contains(eve.run("cache", "list", SHARED, code=4), SHARED, "Permission denied")
    eve.do("ls", SHARED, code=2)
    # A file that its user keeps to himself.
    [content] = [p for p, _ in files_below(f"{SHARED}/staged") if p.endswith(".content")]
    os.chmod(content, 0o600)
    said = bob.run("stage", "-o", OPTIONS, source, code=2)
    contains(said, content, f"group {GROUP} may read and write", "user 61001", "mode 0600")
    contains(bob.run("cache", "list", SHARED), "in use")
    os.chmod(content, 0o660)
    server.forget()
    bob.run("stage", "-o", OPTIONS, source)
    equal(fetched(server), [], "bob fetches nothing")
    # The same with a folder.
    os.chmod(f"{SHARED}/staged", 0o700)
    contains(bob.run("stage", "-o", OPTIONS, source, code=4), f"{SHARED}/staged", "mode 2770",
             "mode 0700")
    os.chmod(f"{SHARED}/staged", 0o2770)


def check_refused(server):
    """What ann has staged is not for bob if the remote refuses him: whatever it answers, even if it
    answers HEAD to everybody, and if it is dead."""
    source = f"{server.url}/big-data"
    ann.run("stage", "-o", OPTIONS, source)
    for user in (ann, bob):
        with open(f"{user.home}/.netrc", "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(f"machine 127.0.0.1 login {user.name} password word\n")
        os.chown(f"{user.home}/.netrc", user.uid, user.uid)
    his = "Basic " + base64.b64encode(b"bob:word").decode()

    def refuse(code, methods):
        def act(reply):
            if reply.request.headers.get("authorization") == his and reply.request.method in methods:
                status(code)(reply)
        return act

    for code in (401, 403, 404):
        for methods in (("HEAD", "GET"), ("GET",)):
            server.healthy()
            server.script("*", refuse(code, methods), method=None)
            for arguments in (("stage", "-o", OPTIONS, source), ("mount", "-o", OPTIONS, source, bob.mountpoint)):
                contains(bob.run(*arguments, code=2), f"expected status 200, got {code}")
        ann.run("stage", "-o", OPTIONS, source)
    server.healthy()
    server.gone()
    contains(bob.run("stage", "-o", f"{OPTIONS},patience=2", source, code=2), "big-data")
    server.up()
    for user in (ann, bob):
        os.unlink(f"{user.home}/.netrc")


def check_root(server):
    """Root uses no folder that others may write to, and makes it no folder of its own."""
    from lib import run
    contains(run("stage", "-o", OPTIONS, f"{server.url}/", code=4), SHARED, "root's alone",
             f"group {GROUP}")
    equal(oct(os.stat(SHARED).st_mode & 0o7777), "0o2770", "the folder's mode")
    contains(run("cache", "list", SHARED), " ann ")


def check_others(server):
    """Folders that are not such: private ones stay private, and those that all may write to are
    refused as ever."""
    for mode, gid in ((0o700, 61001), (0o750, GROUP), (0o770, GROUP)):
        folder = f"{ann.home}/cache.{mode:o}"
        os.mkdir(folder)
        os.chown(folder, 61001, gid)
        os.chmod(folder, mode)
        ann.run("stage", "-o", f"cache={folder}", f"{server.url}/big-data")
        equal({oct(stat.S_IMODE(st.st_mode)) for _, st in files_below(folder)}, {"0o600"}, folder)
        equal(oct(stat.S_IMODE(os.stat(folder).st_mode)), "0o700", folder)
    folder = f"{PRIVATE}/no-set-group-id"
    os.mkdir(folder)
    os.chown(folder, 0, GROUP)
    os.chmod(folder, 0o770)
    bob.run("stage", "-o", f"cache={folder}", f"{server.url}/big-data")
    contains(ann.run("stage", "-o", f"cache={folder}", f"{server.url}/big-data", code=4),
             "a folder that a group shares has the mode 2770 before it is used, got 0770")


make_shared()
with BadServer(WWW) as origin:
    check_two_users(origin)
    check_records(origin)
    check_limit(origin)
    check_outside(origin)
    check_refused(origin)
    check_root(origin)
    check_others(origin)
