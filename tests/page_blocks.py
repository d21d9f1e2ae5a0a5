#!/usr/bin/python3
"""The blocks of the pages: README.md and docs/**/*.md, except docs/internals.

A block is fenced, or indented by four spaces below an empty line. The line above it may be a mark, which readers of the page
do not see:

    <!-- run by FILE -->                              a file of tests/, which takes the block with take(PAGE, WORDS);
                                                      in the shell with run_block of tests/fresh.sh
    <!-- run by FILE where PROGRAM is installed -->   the same, but Debian does not have PROGRAM; elsewhere FILE skips
    <!-- until Ctrl-C -->                             run, and stopped as by Ctrl-C when it has printed a line

A block without a mark, or with the last one, is run by the case of its page or of its section (tests/mount/tutorials.py).

    page_blocks.py PAGE WORDS      prints what take(PAGE, WORDS) returns: for scripts of the shell
"""

import collections
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNTIL = "until Ctrl-C"
MARK = re.compile(r"<!-- (?:run by (?P<taker>\S+)(?: where (?P<foreign>\S+) is installed)?|(?P<until>until Ctrl-C)|(?:end of )?table \S+) -->")

# page: below ROOT. line: of its first line of text. language: of the fence; None: indented. mark: a match of MARK, or None.
# sections: the headings above it, the nearest last.
Block = collections.namedtuple("Block", "page line language text mark sections")
HEADING = re.compile(r"(#+) (.+)")


def pages():
    found = [f"{ROOT}/README.md", *glob.glob(f"{ROOT}/docs/**/*.md", recursive=True)]
    return sorted(os.path.relpath(page, ROOT) for page in found if "/internals/" not in page)


def blocks(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        lines = f.read().split("\n") + [""]
    found, at, sections = [], 0, []
    while at < len(lines):
        heading = HEADING.fullmatch(lines[at])
        if heading:
            sections = [(level, name) for level, name in sections if level < len(heading[1])] + [(len(heading[1]), heading[2])]
        names = tuple(name for _, name in sections)
        above = lines[at - 1].strip() if at else ""
        mark = MARK.fullmatch(above)
        fence = re.fullmatch(r"```(\w*)", lines[at])
        if fence:
            end = lines.index("```", at + 1)
            found.append(Block(page, at + 2, fence[1], "\n".join(lines[at + 1:end]) + "\n", mark, names))
        elif lines[at].startswith("    ") and (not above or mark):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end]):
                end += 1
            body = "\n".join(line[4:] for line in lines[at:end]).rstrip("\n") + "\n"
            found.append(Block(page, at + 1, None, body, mark, names))
            end -= 1
        else:
            end = at
        at = end + 1
    return found


def section(page, name=None):
    """The blocks below that heading, or all."""
    found = [block for block in blocks(page) if name is None or name in block.sections]
    if not found:
        raise AssertionError(f"{page}: there is no block below a heading {name!r}")
    return found


def take(page, words):
    """The text of the one block of the page that has these words."""
    having = [block.text for block in blocks(page) if words in block.text]
    if len(having) != 1:
        raise AssertionError(f"{page}: {len(having)} blocks have {words!r}, expected one")
    return having[0]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: page_blocks.py PAGE WORDS")
    try:
        sys.stdout.write(take(*sys.argv[1:]))
    except (AssertionError, OSError) as error:
        sys.exit(f"page_blocks.py: {error}")


if __name__ == "__main__":
    main()
