#!/usr/bin/python3
# needs: python3-venv
"""`make python`, then pip install of the wheel and of the sdist into empty venvs: offline, without a compiler; then it mounts."""

import os
import shutil
import subprocess
import sys

from lib import EPOCHFS, PRIVATE, SOURCE, contains, equal, small
from page_blocks import take

ROOT = os.path.dirname(os.path.dirname(os.environ["CASES"]))
TOOLS = f"{PRIVATE}/tools"
EMPTY = f"{PRIVATE}/venv"  # pip takes seconds to come into a venv: one is enough
PROGRAM = f"""
import importlib.metadata, epochfs
with epochfs.mount({SOURCE!r}) as mount:
    samples = sum(len(batch['label']) for batch in mount['train'].batches('batch=8,seed=7'))
print(importlib.metadata.version('epochfs'), samples, epochfs.__file__)
"""



def run(*command):
    """In a system that has no compiler, no network and no module of this checkout; what it prints."""
    env = {"PATH": TOOLS, "HOME": PRIVATE, "EPOCHFS": EPOCHFS, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TMPDIR": PRIVATE,
           "EPOCHFS_CACHE": os.environ["EPOCHFS_CACHE"]}
    done = subprocess.run(command, cwd=PRIVATE, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    equal(done.returncode, 0, f"exit code of {command}: {done.stdout}")
    return done.stdout


def main():
    small(30)
    os.mkdir(TOOLS)
    for tool in ("fusermount3", "mount", "umount"):
        if shutil.which(tool):
            os.symlink(shutil.which(tool), f"{TOOLS}/{tool}")
    run(sys.executable, "-m", "venv", EMPTY)
    built = run(sys.executable, f"{ROOT}/python/backend.py", f"{PRIVATE}/built").split()
    equal([os.path.basename(b).partition("-")[0] for b in built], ["epochfs"] * 2, "what is built")
    contains(open(f"{ROOT}/Makefile", encoding="utf-8").read(), "python3 python/backend.py build/python")
    for n, package in enumerate(built):
        venv = f"{PRIVATE}/venv{n}"
        # NumPy is Debian's: pip could not fetch it here. The pip of the other venv installs into this one.
        run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", venv)
        pip = [f"{EMPTY}/bin/python", "-m", "pip", "--python", f"{venv}/bin/python", "install", "--no-index"]
        run(*pip, "--ignore-installed", "--no-deps", package)
        said = run(f"{venv}/bin/python", "-c", PROGRAM).split()
        equal(said[1], "30", "samples")
        contains(said[2], venv)
        contains(run(*pip, "epochfs"), "already satisfied: numpy")
    as_a_page_says("readme", take("README.md", "pip install ./python"))
    as_a_page_says("install", take("docs/install.md", "pip install build/python"))


def as_a_page_says(name, lines):
    """The block of a page, in a copy of the checkout and the venv without it; what pip would fetch is omitted."""
    checkout = f"{PRIVATE}/checkout-{name}"
    shutil.copytree(f"{ROOT}/python", f"{checkout}/python", ignore=shutil.ignore_patterns("__pycache__"))
    env = {"PATH": f"{EMPTY}/bin:{os.path.dirname(shutil.which('sh'))}", "HOME": PRIVATE, "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1",
           "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(["sh", "-ec", lines], cwd=checkout, env=env, check=True)
    contains(run(f"{EMPTY}/bin/python", "-m", "pip", "uninstall", "--yes", "epochfs"), "Successfully uninstalled")


main()
