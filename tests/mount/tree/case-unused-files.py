#!/usr/bin/python3
"""Files next to the data that no format reads: the reason is said once for those that follow one another, and each has an
ERROR.txt of its own. What programs leave for themselves (checksums, marks that a job is done) is not even that."""

import os

from lib import MOUNTPOINT, contains, equal, log_text, mounted, path, small, text, write

small()
UNKNOWN = {"LICENSE": b"MIT License\n", "NOTES.md": b"# A page\n", "src/a b.py": b"import os\n", "src/c.py": b"def c():\n    pass\n"}
ZEROS = {"zeros": bytes(5000), "zeros.jpg": bytes(16)}
for name, data in UNKNOWN.items():
    write(name, data)
for name, data in ZEROS.items():
    write(f"zeros/{name}", data)
write("empty", b"")
for name in ("_SUCCESS", "_committed_123", "_started_123", "LICENSE.crc", "LICENSE.md5", "MD5SUMS", "Thumbs.db", "README.md"):
    write(name, b"")
with mounted():
    equal(sorted(os.listdir(MOUNTPOINT)), [".epochfs", "LICENSE", "NOTES.md", "README.txt", "empty", "src", "train", "zeros"], "names")
    errors = {name: text(path(name, "ERROR.txt")).strip() for name in (*UNKNOWN, "empty")}
    zeros = [text(path("zeros", name, "ERROR.txt")).strip() for name in ZEROS]
    contains(text(path("README.txt")), *(f"  {name}\n" for name in errors))
for name, data in UNKNOWN.items():
    equal(errors[name], f"{name}: is text of no format that epochfs knows; texts are read as JSON lines, or as files in class folders")
equal(errors["empty"], "empty: is empty")
equal(zeros, ["zeros/zeros: begins with 5000 zeros, as a file does whose content was never written. Copy it again",
              "zeros/zeros.jpg: begins with 16 zeros, as a file does whose content was never written. Copy it again"], "no IDX file")
said = [line.removeprefix("epochfs: ") for line in log_text().splitlines() if "not used" in line and "zeros" not in line]
equal(said, [f"not used: {errors['LICENSE']}", "not used, for the same reason: NOTES.md", f"not used: {errors['empty']}",
             f"not used: {errors['src/a b.py']}", "not used, for the same reason: src/c.py"], "what the mount says")
