"""The --help of a binary, for tests that compare other texts with it."""

import re
import subprocess


def said(epochfs, *words):
    """Its output on stdout and stderr, whatever its exit code."""
    return subprocess.run([epochfs, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60).stdout


def squeezed(text):
    return " ".join(text.split())


def usage(text):
    """The lines after 'usage:' of a help text, without that word and 'epochfs'."""
    part = next(p for p in text.split("\n\n") if p.startswith("usage:"))
    part = squeezed(part).removeprefix("usage: ").replace("; epochfs", " epochfs")
    return [line.strip() for line in re.split(r"(?:^| )epochfs (?=[a-z-]|COMMAND)", part) if line]


def commands(epochfs):
    return [line.split()[0] for line in usage(said(epochfs, "--help")) if line[0].islower()]


def flags(line):
    """The flags of a line of usage, with their arguments; some are not in brackets."""
    return sorted(re.findall(r"(?:\[|[A-Z] )(-[^]]*?)(?:\]| (?=\[))", line))


def options(epochfs):
    """The options of -o, as name or name=FORM, each with its description."""
    found, name = {}, None
    table = said(epochfs, "mount", "--help", "all").split("OPTIONS, joined by commas:\n")[1]
    for line in table.split("\n"):
        begin = re.fullmatch(r" {4}([a-z_0-9]+(?:=[A-Zx]+(?:=[A-Z]+)?)?) +(\S.*)", line)
        if begin and begin.start(2) == 28:
            name = begin[1]
            found[name] = begin[2]
        elif line.startswith(" " * 12):
            found[name] = squeezed(found[name] + " " + line)
        elif re.match("A SIZE", line):
            break
    return found


def default(text):
    """The default in an option's description; None: there is none."""
    found = re.search(r"\(default: (.*?)(?:; range: [^()]*)?\)$", text)
    return found[1] if found else None


def limits(text):
    """The range in an option's description, such as "1 to 64"; None: there is none."""
    found = re.search(r"[(; ]range: ([^()]*)\)$", text)
    return found[1] if found else None


def foreign_options(epochfs, title):
    """The names after that title, which ends with a colon."""
    text = said(epochfs, "mount", "--help", "all")
    names = re.search(re.escape(title) + r"[^:]*: ((?:.|\n {7})+)", text)[1]
    return squeezed(names).split(", ")


def words(epochfs, option):
    """The only words that the option takes as its value; [] if it takes others too."""
    text = said(epochfs, "mount", "-o", f"{option}=@", "/nowhere/source", "/nowhere/mountpoint")
    listed = re.search(r"; one of: (.*?)\)$", options(epochfs).get(option + "=NAME", ""))  # format=
    if listed:
        return listed[1].split(", ")
    found = re.search(r": expected ((?:[\w-]+, )*[\w-]+ or [\w-]+)$", text.strip())
    return re.split(", | or ", found[1]) if found else []


def exit_codes(epochfs):
    """Number: word."""
    told = said(epochfs, "--help").split("exit codes:\n")[1]
    return dict(re.findall(r"^ {4}(\d)  (\w+)", told, re.MULTILINE))
