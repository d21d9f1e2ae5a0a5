"""Pages as tests: the blocks of a page, or of a section of it, done as by a reader (see also pages.py).

    sh       commands: one bash runs them all, and stops at the first that fails
    console  the same behind $, and the lines that they print; another number is the same line
    text     what the sh block above it prints, among other lines; ... stands for anything
    others   a file, named by the comment in its first line; Python without a name runs in its place

Blocks with a mark are left to others: page_blocks.py. The reader has an empty home, except for the case's own files.
"""

import glob
import os
import random
import re
import subprocess
import sys

import page_blocks
from lib import EPOCHFS, PRIVATE, equal, text

CASES = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.join(PRIVATE, "home")
LONG = 300  # seconds; the runner's limit comes first


def file_name(block):
    """The file that a comment in the first line names: # train.py, // a.go or /* means.c */; None: it has none."""
    named = re.fullmatch(r"(?:#|//|/\*) (\w+\.\w+)(?: \*/)?", block.split("\n")[0])
    return named[1] if named else None


def environment():
    """A shell's, in which `epochfs` and `python3` are those of the test."""
    tools = os.path.join(PRIVATE, "tools")
    os.makedirs(tools, exist_ok=True)
    for name, target in (("epochfs", EPOCHFS), ("python3", sys.executable)):
        if not os.path.lexists(f"{tools}/{name}"):
            os.symlink(target, f"{tools}/{name}")
    # One thread: those of small sums wait for each other, and that costs more processor time than the sums.
    return dict(os.environ, HOME=HOME, PATH=f"{tools}:{os.environ['PATH']}", OMP_NUM_THREADS="1")


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


def pattern_of(line, numbers):
    """For a line as the page has it. numbers: any number may be in a number's place."""
    pieces = [re.escape(piece) for piece in line.rstrip().split("...")]
    if numbers:
        pieces = [re.sub(r"\d+(?:\\\.\d+)?(?:\\ [KMGT]iB)?", r"\\d+(?:\\.\\d+)?(?: [KMGT]?i?B)?", piece) for piece in pieces]
    return ".*".join(pieces)


def check_printed(printed, wanted, numbers=False):
    """printed must have the lines of wanted, in that order."""
    lines = iter(printed.splitlines())
    for want in wanted.splitlines():
        if not any(re.fullmatch(pattern_of(want, numbers), line.rstrip()) for line in lines):
            raise AssertionError(f"expected a line {want!r}, in order, in:\n{printed}")


def commands_of(console):
    """The commands of a block with $, and the lines of output."""
    commands = re.sub(r"^(?!\$ ).*\n", "", console, flags=re.M)
    return re.sub(r"^\$ ", "", commands, flags=re.M), re.sub(r"^\$ .*\n", "", console, flags=re.M)


class Script:
    """One bash for the blocks of a page; each sh block prints into a file of its own."""

    def __init__(self):
        self.text, self.wanted = "set -eu\n", []  # (lines, are numbers free?)

    def do(self, commands, wanted="", numbers=False):
        self.text += f"exec >{PRIVATE}/printed.{len(self.wanted)}\n{commands}"
        self.wanted.append((wanted, numbers))

    def write(self, name, content):
        where = os.path.join(HOME, name)
        with open(where, "w", encoding="utf-8") as f:
            f.write(content)
        return where

    def block(self, block, then=""):
        """then: more of the same language, which checks what the block has done."""
        if block.mark and block.mark["until"]:
            until = self.write(f".{len(self.wanted)}.sh", commands_of(block.text)[0])
            self.do(f"python3 {CASES}/pages.py until-ctrl-c bash {until}\n{then}")
        elif block.mark:
            return
        elif block.language == "sh":
            self.do(block.text + then)
        elif block.language == "console":
            commands, wanted = commands_of(block.text)
            self.do(f"{{\n{commands}}} 2>&1\n{then}", wanted, True)
        elif block.language == "text":
            self.wanted[-1] = (self.wanted[-1][0] + block.text, False)
        elif block.language == "python" and not file_name(block.text):
            self.do(f"python3 {self.write(f'.{len(self.wanted)}.py', block.text + then)}\n")
        else:
            equal(bool(file_name(block.text)), True, f"a name in the first line of:\n{block.text}")
            self.write(file_name(block.text), block.text)

    def run(self, page):
        done = subprocess.run(["bash", "-c", self.text], cwd=HOME, env=environment(), timeout=LONG,
                              stdin=subprocess.DEVNULL)
        last = max(glob.glob(f"{PRIVATE}/printed.*"), key=lambda name: os.stat(name).st_mtime_ns)
        equal(done.returncode, 0, f"exit code of the commands of {page}, which printed last:\n{text(last)}")
        for i, (wanted, numbers) in enumerate(self.wanted):
            check_printed(text(PRIVATE, f"printed.{i}"), wanted, numbers)


def run_page(page, section=None, then=None):
    """All of it, or what stands below that heading. then: {words of a block: more of its language}, as in pages.py."""
    os.makedirs(HOME, exist_ok=True)
    script = Script()
    for block in page_blocks.section(page, section):
        equal("glob." in block.text, False, f"{page} uses glob, which takes a dead mount for an empty one")
        script.block(block, "".join(more for words, more in (then or {}).items() if words in block.text))
    script.run(page)
