#!/usr/bin/python3
# needs: python3-scipy
"""What newcomers type works: README.txt of mounts of each format. The chart in README.md and docs/tree.svg are up to date. Links
of README.md and docs/ lead somewhere, and docs/README.md lists every page."""

import glob
import os
import re
import subprocess

import numpy as np

import kaldi_dirs
import tutorials
from lib import (DEADLINE, EPOCHFS, FASHION, MOUNTPOINT, PRIVATE, SOURCE, contains, equal, mount_type,
                 need_fashion, start, text, write)

need_fashion()
TOP = os.path.dirname(os.path.dirname(tutorials.CASES))
ENVIRONMENT = tutorials.environment()


def do(program, script):
    """Its output; it must succeed."""
    done = subprocess.run([*program, script], env=ENVIRONMENT, cwd=PRIVATE, timeout=DEADLINE,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def bash(script):
    return do(["bash", "-euc"], script)


def python(script):
    return do(["python3", "-c"], script)


def unindented(lines, columns):
    return "".join(line[columns:] for line in lines.splitlines(keepends=True))


def unmount(daemon, command):
    """Unmount. The daemon ends by itself, but not while a mount namespace made meanwhile, for
    example by another test, has a copy of the mount."""
    bash(command)
    equal(mount_type(MOUNTPOINT), None, f"mounted after {command}")
    try:
        daemon.wait(5)
    except subprocess.TimeoutExpired:
        daemon.terminate()
    equal(daemon.wait(DEADLINE), 0, "the daemon's exit code")


# ---- README.txt ----

def check_readme(source, dataset, enough, *shown):
    """Type what README.txt says; enough: Python that checks what its lines have read."""
    daemon = start(source)
    readme = text(MOUNTPOINT, "README.txt")
    contains(readme, dataset, *shown)
    shell = re.search(r"^  cd .*?(?=^\s*$)", readme, re.M | re.S)[0]
    listed = bash(unindented(shell, 2))
    contains(listed, "dataset.json", "batches", '"samples"', "000000.npz")
    code = re.search(r"^  import numpy.*?(?=^\s*$)", readme, re.M | re.S)[0]
    python(unindented(code, 2) + enough)
    for name in re.findall(r"scp:(\S+)", readme):
        os.stat(f"{MOUNTPOINT}/{dataset}/{name}")
    equal(os.path.exists(f"{MOUNTPOINT}/{dataset}/batches/batch=4,sed=7"), False, "a plan with a slip opens")
    contains(bash(re.search("epochfs status .*", readme)[0]), "'sed' is not a parameter of a plan")
    unmount(daemon, re.search("epochfs umount .*", readme)[0])


kaldi_dirs.Folder(np.random.default_rng(4), "speech", 40, 3).write()
write("rows/train.txt", b"".join(b"%d %d:0.5 %d:2\n" % (i % 2, i % 7, 7 + i % 5) for i in range(300)))
check_readme(FASHION, "train", "assert x.shape == (128, 28, 28) and one.shape == (28, 28)\n"
             "assert index.shape == y.shape == (128,)\n", "60000 samples", "10000 samples", "uint8, 28 x 28")
check_readme(f"{SOURCE}/rows", "train.txt", "assert x.shape == (128, 12) and label.shape == (128,)\n"
             "assert line.startswith('0 0:0.5')\n", "300 samples")
check_readme(f"{SOURCE}/speech", "all", "assert x.shape[0] == 32 and x.shape[2] == 5\n"
             "assert lengths.shape == (32,) and one.ndim == 2\n", "40 samples")


# ---- README.md and docs/ ----

def check_readme_md():
    """README.md: its bars exist, and its chart has the figures of docs/bench/overlap.md. The other picture is up to date."""
    for group, bar in re.findall(r"`bench/run (\w+) ?(\w*)`", text(TOP, "README.md")):
        contains(re.search(r"^BARS=\((.*)\)", text(TOP, f"bench/groups/{group}.sh"), re.M)[1], bar)
    row = re.search(r"^\| 1000 MB \| 1 \| 1 \|  \|(.*)", text(TOP, "docs/bench/overlap.md"), re.M)[1]
    transfer, _, loader, _, copy, ours = [cell.strip(" *") for cell in row.split("|")[:6]]
    equal(re.findall(r"([\d.]+) s\b", text(TOP, "docs/bench/performance.svg")), [copy, loader, ours, transfer], "seconds of the chart")
    widths = re.findall(r'class="(?:other|ours)".* width="([\d.]+)"', text(TOP, "docs/bench/performance.svg"))
    equal([float(w) for w in widths], [round(20 * float(n), 1) for n in (copy, loader, ours)], "bars: 20 pixels a second")
    contains(text(TOP, "README.md"), f"download, then train {copy}; loader without prefetch {loader}; epochfs {ours}")
    do([f"{TOP}/docs/tree.py", EPOCHFS], f"{PRIVATE}/tree.svg")
    equal(text(PRIVATE, "tree.svg"), text(TOP, "docs/tree.svg"), "docs/tree.svg, and what docs/tree.py draws")


def check_links():
    for page in [f"{TOP}/README.md", *glob.glob(f"{TOP}/docs/**/*.md", recursive=True)]:
        prose = re.sub(r"^```.*?^```$", "", text(page), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            where = os.path.join(os.path.dirname(page), link)
            equal(os.path.exists(where), True, f"{page}: {link}")
    index = text(TOP, "docs/README.md")
    for page in glob.glob(f"{TOP}/docs/**/*.md", recursive=True):
        name = os.path.relpath(page, f"{TOP}/docs")
        if name != "README.md" and not name.startswith("internals/"):
            contains(index, f"]({name})")


check_readme_md()
check_links()
