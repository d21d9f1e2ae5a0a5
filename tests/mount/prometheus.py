"""A strict parser of Prometheus text: a line that breaks the format, or the rules for names and
types, is an AssertionError.

    families = parse(text)       families["epochfs_requests_total"].samples[labels] = value
    grown(before, after)         no counter has gone down
    promtool(text)               its own opinion, where it is installed
"""

import collections
import math
import re
import shutil
import subprocess

from lib import DEADLINE, contains, equal

NAME = re.compile(r"epochfs(_[a-z0-9]+)+")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?[ \t]+(\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\n"])*)"(?:,|$)')
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?|NaN|\+Inf")
TYPES = ("counter", "gauge", "histogram")
# Units that are not base units, or that the type implies.
WRONG_WORDS = {"ms", "us", "ns", "milliseconds", "minutes", "hours", "kb", "kib", "mb", "mib",
               "kilobytes", "megabytes", "bits", "percent", "share", "count", "counter", "gauge",
               "histogram"}


class Family:
    def __init__(self, name):
        self.name, self.help, self.type, self.samples = name, None, None, {}


def labels_of(text, line):
    found, at = [], 0
    while at < len(text):
        m = LABEL.match(text, at)
        equal(bool(m), True, f"labels in {line!r}, from {text[at:]!r} on")
        value = re.sub(r"\\(.)", lambda e: {"n": "\n"}.get(e[1], e[1]), m[2])
        found.append((m[1], value))
        at = m.end()
    equal(len({name for name, _ in found}), len(found), f"labels that are there once: {line!r}")
    return tuple(sorted(found))


def take_comment(line, families):
    """HELP begins a family, # TYPE follows at once."""
    words = line.split(" ", 3)
    last = families[list(families)[-1]] if families else None
    if len(words) < 3 or words[1] not in ("HELP", "TYPE"):
        equal(line.strip("# "), "", "a comment that says nothing")
    elif words[1] == "HELP":
        equal(words[2] in families, False, f"one HELP for each metric: {line!r}")
        families[words[2]] = Family(words[2])
        families[words[2]].help = words[3]
        equal(bool(words[3].strip()), True, f"HELP says something: {line!r}")
        equal(re.search(r"\\[^\\n]", words[3]), None, f"escapes in {line!r}")
    else:
        equal((last and last.name, last and last.type, last and last.samples),
              (words[2], None, {}), f"TYPE follows HELP: {line!r}")
        equal(words[3] in TYPES, True, f"a type: {line!r}")
        last.type = words[3]


def take_sample(line, families):
    m = SAMPLE.fullmatch(line)
    equal(bool(m), True, f"a sample: {line!r}")
    family = families[list(families)[-1]] if families else None
    equal(bool(family and family.type), True, f"HELP and TYPE come before {line!r}")
    names = {family.name} if family.type != "histogram" else {
        f"{family.name}_bucket", f"{family.name}_sum", f"{family.name}_count"}
    equal(m[1] in names, True, f"samples stand behind their HELP: {line!r} in {family.name}")
    equal(bool(NUMBER.fullmatch(m[3])), True, f"a number: {line!r}")
    key = (m[1], labels_of(m[2] or "", line))
    equal(key in family.samples, False, f"series are there once: {line!r}")
    family.samples[key] = float(m[3])


def check_name(family):
    equal(bool(NAME.fullmatch(family.name)), True, f"a name: {family.name}")
    words = family.name.split("_")
    equal(WRONG_WORDS & set(words), set(), f"words in {family.name}")
    equal(words[-1] == "total", family.type == "counter", f"_total is for counters: {family.name}")
    for unit in ("seconds", "bytes", "ratio"):
        if unit in words and words[-2:] != ["per", "second"]:
            equal(unit in words[-2:], True, f"the unit ends the name: {family.name}")
    if words[-1] == "info":
        equal(set(family.samples.values()), {1.0}, f"{family.name} is 1")


def check_histogram(family):
    """For each set of labels but le."""
    found = collections.defaultdict(lambda: {"buckets": []})
    for (name, labels), value in family.samples.items():
        one = found[tuple(pair for pair in labels if pair[0] != "le")]
        if name.endswith("_bucket"):
            one["buckets"].append((float(dict(labels)["le"]), value))
        else:
            one[name.removeprefix(family.name)] = value
    for one in found.values():
        buckets = one["buckets"]
        counts = [value for _, value in buckets]
        equal(len(buckets) > 2 and buckets == sorted(buckets), True, f"le in order: {buckets}")
        equal(counts, sorted(counts), f"counts of {family.name} are cumulative")
        equal(buckets[-1], (math.inf, one["_count"]), f"+Inf of {family.name} is all")
        equal(one["_sum"] >= 0, True, f"the sum of {family.name}")


def check_family(family):
    check_name(family)
    for (name, labels), value in family.samples.items():
        if family.type == "counter":
            equal(value >= 0 and value == int(value), True, f"a count: {name}{labels} {value}")
        equal(any(label == "le" for label, _ in labels),
              family.type == "histogram" and name.endswith("_bucket"), f"le is of buckets: {name}")
    if family.type == "histogram":
        check_histogram(family)


def parse(text):
    """name -> Family. text: bytes."""
    lines = text.decode("utf-8").split("\n")
    equal(lines.pop(), "", "the end of the text is the end of a line")
    families = {}
    for line in lines:
        equal(line != "", True, "a line that is empty")
        (take_comment if line.startswith("#") else take_sample)(line, families)
    for family in families.values():
        equal(family.type is not None, True, f"TYPE of {family.name}")
        check_family(family)
    return families


def counts(families):
    """(name, labels) -> value, of everything that only grows."""
    return {key: value for family in families.values() if family.type != "gauge"
            for key, value in family.samples.items()}


def grown(before, after):
    before, after = counts(before), counts(after)
    equal(sorted(before), sorted(after), "the series that count")
    for key, value in before.items():
        equal(after[key] >= value, True, f"{key} goes from {value} to {after[key]}")


def value_of(families, name, **labels):
    return families[name].samples[(name, tuple(sorted(labels.items())))]


def promtool(text):
    program = shutil.which("promtool")
    if not program:
        return
    done = subprocess.run([program, "check", "metrics"], input=text, timeout=DEADLINE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    equal((done.returncode, done.stdout.decode()), (0, ""), "promtool check metrics")


def must_fail(text, *words):
    """For the test of this file: the text must be refused for that reason."""
    try:
        parse(text)
    except AssertionError as e:
        contains(str(e), *words)
        return
    raise AssertionError(f"expected an error, got none: {text!r}")
