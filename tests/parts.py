#!/usr/bin/python3
"""For tests/run: what tests need to be built, and how a run of them has ended.

    parts.py targets BUILD NAME...   the targets of the tests whose names contain a NAME, one a line
    parts.py counts FILE [HINT]      of the tests in a file of ctest --output-junit: passed, failed, skipped and why;
                                     HINT: what is said of those skipped
"""

import collections
import glob
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

WORD = re.compile(r'\[=\[(.*?)\]=\]|"((?:[^"\\]|\\.)*)"')


def commands(build):
    """Test -> all words of its command and its properties, of CTestTestfile.cmake. ctest itself does not tell the command of
    a program that is not built yet."""
    found = collections.defaultdict(list)
    for file in glob.glob(f"{build}/**/CTestTestfile.cmake", recursive=True):
        with open(file, encoding="utf-8") as f:
            for line in f:
                if line.startswith(("add_test(", "set_tests_properties(")):
                    name, *words = [raw or quoted for raw, quoted in WORD.findall(line)]
                    found[name] += words
    return found


def targets(build, *names):
    build = os.path.abspath(build)
    with open(f"{build}/build.ninja", encoding="utf-8") as f:
        makes = {line[len("build "):].split(": ")[0].split(" | ")[0] for line in f if line.startswith("build ")}
    tests = {test: words for test, words in commands(build).items() if any(name in test for name in names)}
    if not tests:
        sys.exit(f"tests/run: no test has a name that contains {' or '.join(names)}: ctest --test-dir {build} -N lists them")
    found = set()
    for words in tests.values():
        for path in re.findall(re.escape(build) + r"[^;\s]*", " ".join(words)):
            below = os.path.relpath(path, build)
            found.add(below if below in makes else "docs/man/all" if below == "docs/man" else "epochfs")
    print("\n".join(sorted(found)))


def counts(file, hint=""):
    passed, failed, left = 0, [], collections.defaultdict(list)
    for test in ElementTree.parse(file).getroot().iter("testcase"):
        said = test.findtext("system-out") or ""
        message = test.find("skipped").get("message") if test.find("skipped") is not None else ""
        if test.get("status") == "run":
            passed += 1
        elif message.startswith("SKIP_RETURN_CODE"):
            why = re.findall(r"^skipped: (.*)", said, re.M)
            left[why[-1] if why else "without a reason"].append(test.get("name"))
        elif test.get("status") == "disabled":
            left["says nothing in this build"].append(test.get("name"))
        else:
            failed.append(test.get("name"))
    print(f"\npassed {passed}, failed {len(failed)}, left out {sum(map(len, left.values()))}" + (hint if left else ""))
    for why, names in sorted(left.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"{len(names):5}  {why}" + (f": {names[0]}" if len(names) == 1 else ""))
    for name in failed:
        print(f"FAILED: {name}")


if __name__ == "__main__":
    {"targets": targets, "counts": counts}[sys.argv[1]](*sys.argv[2:])
