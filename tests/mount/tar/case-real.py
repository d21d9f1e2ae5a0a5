#!/usr/bin/python3
# needs: data:tar
"""Archives of the wild (WebDataset's and DALI's tests, the test data of Go's and Rust's tar libraries)
against what other readers found in them, where ../shared/data has both."""

import ast
import errno
import hashlib
import os
import re
import shutil

from lib import SOURCE, contains, content, equal, expect_error, mounted, path, run, text
from tar_model import KEY, META, escaped

SHARED = os.environ.get("SHARED_DATA", "/nowhere")

FILE = re.compile(r"(\S+?/\S+): \d+ B, raw headers")
GROUPS = re.compile(r"    webdataset grouping: (\d+) samples")
SAMPLE = re.compile(r"    sample (\d+): key ('.*?') (\S+ at .*)")
MEMBER = re.compile(r"(\S+) at (\d+) (\d+) B sha (\w{16})")
# Where epochfs differs from those readers, and why.
REFUSED = {"tar-rs/pax.tar": "Cargo.toml",            # a project
           "go-archive-tar/pax-nul-path.tar": "NUL",  # they cut the name there
           "go-archive-tar/writer-big-long.tar": "cut short"}
FAULTY = {"made/duplicate_field.tar": {"a"}, "go-archive-tar/pax-nil-sparse-data.tar": {"sparse"},
          "go-archive-tar/gnu-nil-sparse-data.tar": {"sparse"}}
SAMPLES = {"made/keys.tar": 5,  # not `dir/.hidden`
           "made/duplicate_field.tar": 2}


def expected():
    """file -> (samples or None, {number: (key, [(ext, place, size, sha)])})."""
    found, name = {}, None
    for line in text(SHARED, "EXPECTED-collections.md").splitlines():
        if match := FILE.match(line):
            name = match[1]
            found[name] = [None, {}]
        elif line.startswith("## "):
            name = None
        elif name and (match := GROUPS.match(line)):
            found[name][0] = int(match[1])
        elif name and (match := SAMPLE.match(line)):
            found[name][1][int(match[1])] = (ast.literal_eval(match[2]), MEMBER.findall(match[3]))
    return {name: row for name, row in found.items() if os.path.exists(f"{SHARED}/tar/{name}")}


def shown(name):
    """The name of a file's dataset, or of the folder that says why there is none."""
    base = name[:-3] if name.endswith(".gz") else name
    return base if os.path.isdir(path(base)) else name


def check_file(name, samples, found):
    at = path(shown(name))
    wrong = REFUSED.get(name) or (" " if not samples else None)
    if wrong:
        contains(text(at, "ERROR.txt"), wrong)
        return
    faulty = FAULTY.get(name, set())
    count = SAMPLES.get(name, samples)
    page = text(at, "dataset.json")
    equal(int(re.search(r'"samples": (\d+)', page)[1]), count, f"{name}: samples")
    keys = content(at, "batches/batch=all/npy/000000.key.txt").split(b"\n")[:-1]
    for number, (key, members) in found.items():
        if key in faulty:
            shown_key = escaped(os.fsdecode(keys[number]))
            for ext, *_ in members:
                expect_error(errno.EIO, content, at, "samples/raw", f"{shown_key}.{ext}")
            continue
        if count == samples == len(keys):  # no key has a line end
            key = os.fsdecode(keys[number])  # ~2 where it repeats
        if not KEY.match(f"{key}.x") or META.match(key):
            continue
        for ext, place, size, sha in members:
            file = f"{at}/samples/raw/{escaped(key)}.{ext}"
            body = content(file)
            equal((len(body), hashlib.sha256(body).hexdigest()[:16]), (int(size), sha), file)
            if int(size) and not name.endswith(("gz", "tgz")):
                where = os.getxattr(file, "user.epochfs.source").decode()
                equal(where.endswith(f":{place}+{size}"), True, f"{file} is at {where}")


rows = expected()
equal(len(rows) > 30, True, f"{len(rows)} files")
shutil.rmtree(SOURCE)
shutil.copytree(f"{SHARED}/tar", SOURCE)
with mounted():
    for name, (samples, found) in rows.items():
        check_file(name, samples, found)
run("info", "--json", SOURCE)
