#!/usr/bin/python3
# needs: chromium
"""epochfs status --html: a page that a browser shows without an error, readable on a phone and on a wide screen."""

import os
import re
import resource
import signal
import subprocess

from browser import LOOK, browser
from lib import MOUNTPOINT, PRIVATE, contains, equal, mounted, path, run, small, text

def check(b, file, drawings, name):
    for width in (360, 1440):
        for scheme in ("light", "dark"):
            b.ask("POST", "/goog/cdp/execute", cmd="Emulation.setEmulatedMedia",
                  params={"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            b.open(file, width)
            found = b.run(LOOK)
            equal(found["bad"], [], f"{name} at {width} pixels, {scheme}")
            equal(found["seen"] > 10, True, f"{found['seen']} texts were looked at")
            equal(len(found["drawings"]), drawings, "drawings")
            equal(all(h > 90 for h in found["drawings"]), True, "they have a height")
            equal((found["scripts"], found["fetched"]), (0, []), "scripts, and what was fetched")
            equal(b.messages(), [], f"the console of {name}")
            if os.environ.get("KEEP_PICTURES"):
                b.picture(f"{os.environ['KEEP_PICTURES']}/{name}-{width}-{scheme}.png")


def others():
    """What is no file stays what it is: a link, a pipe, a device (seen by a link to it)."""
    link, target, pipe, device = (f"{PRIVATE}/{name}" for name in ("link.html", "target.html", "pipe", "device"))
    os.symlink(target, link)
    run("status", f"--html={link}", MOUNTPOINT)
    equal(os.readlink(link), target, "the link")
    contains(text(target), "</html>")
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/cat", pipe], stdout=subprocess.PIPE) as reader:
        run("status", f"--html={pipe}", MOUNTPOINT)
        contains(reader.communicate()[0].decode(), "</html>")
    os.symlink("/dev/full", device)
    contains(run("status", f"--html={device}", MOUNTPOINT, code=3), "device: No space left on device")
    equal(os.readlink(device), "/dev/full", "the link to a device")


def names():
    """What bears the name under which a page is written first belongs to no page, and a page that cannot be written is no loss."""
    page, new = f"{PRIVATE}/kept.html", f"{PRIVATE}/kept.html.new"
    before = set(os.listdir(PRIVATE)) | {"kept.html", "kept.html.new"}
    for target in (new, f"{PRIVATE}/linked"):
        with open(target, "w", encoding="ascii") as f:
            f.write("somebody else's")
        if target != new:
            os.remove(new)
            os.symlink(target, new)
            before.add("linked")
        run("status", f"--html={page}", MOUNTPOINT, umask=0o027)
        equal(os.path.islink(page), False, "the page is a file")
        equal(oct(os.stat(page).st_mode & 0o777), "0o640", "its permissions")
        equal(text(new), "somebody else's", "what had a name like it")
    os.chmod(page, 0o604)
    run("status", f"--html={page}", MOUNTPOINT)
    equal(oct(os.stat(page).st_mode & 0o777), "0o604", "permissions of a page that was there")
    was = text(page)

    def no_bytes():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    contains(run("status", f"--html={page}", MOUNTPOINT, code=3, preexec_fn=no_bytes, restore_signals=False), "kept.html: File too large")
    equal(text(page), was, "the page, when there is no place for another")
    equal(set(os.listdir(PRIVATE)) - before, set(), "what is left")


small(200)
PAGE = f"{PRIVATE}/page.html"
made = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python/test_status_page.py")
with mounted():
    for name in sorted(os.listdir(path("train/batches/batch=16,seed=1/epoch=0/npz"))):
        with open(path("train/batches/batch=16,seed=1/epoch=0/npz", name), "rb") as f:
            f.read()
    equal(run("status", f"--html={PAGE}", MOUNTPOINT), "", "what it prints")
    equal(run("status", "--html=-", MOUNTPOINT).startswith("<!DOCTYPE html>"), True, "to the standard output")
    contains(text(PAGE), MOUNTPOINT, "batch=16,seed=1")
    equal([name for name in os.listdir(PRIVATE) if name.startswith("page.html.")], [], "the file under its first name is gone")
    contains(run("status", f"--html={PRIVATE}/none/x.html", MOUNTPOINT, code=3), "none/x.html: No such file")
    others()
    names()
    contains(run("status", "--html=x", "--json", MOUNTPOINT, code=1), "expected --html alone")
    contains(text(MOUNTPOINT, ".epochfs/history.json"), '"interval_seconds": 10', '"batches_per_second"')
with browser() as b:
    check(b, PAGE, 0, "mount")
    subprocess.run([made, f"{PRIVATE}/made.html"], check=True)
    check(b, f"{PRIVATE}/made.html", 5, "made")
    b.ask("POST", "/goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params={"features": []})
    blue = re.compile(rb"\.18\d* \.43\d* \.74\d* rg")  # var(--mark), as bars and lines are
    printed, whole = (len(blue.findall(b.pdf(backgrounds))) for backgrounds in (False, True))
    equal((printed, printed > 5), (whole, True), "bars are printed, as lines are")
    equal(b.run("return document.title"), "epochfs /mnt/<b>x", "the title of the made one")
