#!/usr/bin/python3
"""Files beside the data that no format takes: what is wanted is said once for those that follow one another, and each has its
own ERROR.txt with what was found in it."""

from lib import contains, equal, log_text, mounted, path, small, text, write

small()
UNKNOWN = {"LICENSE": b"MIT\n", "README.md": b"# A page\n", "src/a b.py": b"import os\n", "src/c.py": b"def c():\n    pass\n"}
for name, data in UNKNOWN.items():
    write(name, data)
write("empty", b"")
with mounted():
    errors = {name: text(path(name, "ERROR.txt")).strip() for name in (*UNKNOWN, "empty")}
    contains(text(path("README.txt")), *(f"  {name}\n" for name in errors))
for name, data in UNKNOWN.items():
    contains(errors[name], f"{name}: byte 0: want 00 00 (IDX) or ", f", found {data[:4].hex(' ')}")
equal(errors["empty"], "empty: byte 0: want data, found an empty file")
said = [line.removeprefix("epochfs: ") for line in log_text().splitlines() if "not used" in line]
equal(said, [f"not used: {errors['LICENSE']}", "not used, for the same reason: README.md", f"not used: {errors['empty']}",
             f"not used: {errors['src/a b.py']}", "not used, for the same reason: src/c.py"], "what the mount says")
