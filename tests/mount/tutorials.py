"""Pages as tests: the fenced blocks of docs/tutorials/<page>.md, done as by a reader.

    sh       commands: one bash runs them all, and stops at the first that fails
    text     what the sh block above it prints, among other lines; ... stands for anything
    others   a file, named by the comment in its first line

The reader has an empty home, except for the case's own files.
"""

import glob
import os
import random
import re
import subprocess
import sys

from lib import EPOCHFS, PRIVATE, contains, equal, text

CASES = os.path.dirname(os.path.abspath(__file__))
PAGES = os.path.join(os.path.dirname(os.path.dirname(CASES)), "docs", "tutorials")
HOME = os.path.join(PRIVATE, "home")
LONG = 300  # seconds; the runner's limit comes first


def blocks(page):
    """(language, text) of each fenced block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)


def file_name(block):
    """Of a comment in the first line: # train.py, // a.go or /* means.c */."""
    named = re.fullmatch(r"(?:#|//|/\*) (\w+\.\w+)(?: \*/)?", block.split("\n")[0])
    equal(bool(named), True, f"a name in the first line of:\n{block}")
    return named[1]


def environment():
    """A shell's, in which `epochfs` and `python3` are those of the test."""
    tools = os.path.join(PRIVATE, "tools")
    os.makedirs(tools)
    for name, target in (("epochfs", EPOCHFS), ("python3", sys.executable)):
        os.symlink(target, f"{tools}/{name}")
    return dict(os.environ, HOME=HOME, PATH=f"{tools}:{os.environ['PATH']}")


def write_rows(name, count):
    """Rows of libsvm text in the reader's home: mostly a row is as its label tells."""
    rng = random.Random(8)
    os.makedirs(HOME, exist_ok=True)
    with open(os.path.join(HOME, name), "w", encoding="ascii") as f:
        for row in range(count):
            label = rng.randint(0, 1)
            any_one = rng.sample(range(60), 9 if row < count / 3 else 2)
            telling = rng.sample(range(60 + 40 * label, 100 + 40 * label), 4)
            told = label if rng.random() < 0.97 else 1 - label
            f.write(f"{told} {' '.join(f'{i}:{rng.uniform(0.5, 1.5):.4f}' for i in sorted(any_one + telling))}\n")


def check_printed(printed, wanted):
    """printed must have the lines of wanted, in that order."""
    lines = iter(printed.splitlines())
    for want in wanted.splitlines():
        pattern = ".*".join(re.escape(piece) for piece in want.split("..."))
        if not any(re.fullmatch(pattern, line) for line in lines):
            raise AssertionError(f"want a line {want!r}, in order, in:\n{printed}")


def check_pages():
    """Every page has a case, and none uses glob, which takes a dead mount for an empty one."""
    pages = {os.path.basename(page)[:-len(".md")] for page in glob.glob(f"{PAGES}/*.md")}
    cases = {re.search("case-(.*).py", case)[1]
             for case in glob.glob(f"{CASES}/tutorials/case-*.py")}
    equal(cases, pages, "cases for the pages of docs/tutorials")
    for page in sorted(pages):
        for _, block in blocks(text(PAGES, f"{page}.md")):
            equal("glob." in block, False, f"{page}.md uses glob")


def run(name):
    """A page of docs/tutorials."""
    check_pages()
    contains(text(PAGES, f"{name}.md"), "epochfs mount", "epochfs umount")
    run_page(f"{PAGES}/{name}.md")


def run_page(file):
    page = text(file)
    os.makedirs(HOME, exist_ok=True)
    script, wanted = "set -eu\n", []
    for language, block in blocks(page):
        if language == "sh":
            wanted.append("")
            script += f"exec >{PRIVATE}/printed.{len(wanted) - 1}\n{block}"
        elif language == "text":
            wanted[-1] += block
        else:
            with open(os.path.join(HOME, file_name(block)), "w", encoding="utf-8") as f:
                f.write(block)
    done = subprocess.run(["bash", "-c", script], cwd=HOME, env=environment(), timeout=LONG,
                          stdin=subprocess.DEVNULL)
    equal(done.returncode, 0, f"exit code of the commands of {os.path.basename(file)}")
    for i, want in enumerate(wanted):
        check_printed(text(PRIVATE, f"printed.{i}"), want)
