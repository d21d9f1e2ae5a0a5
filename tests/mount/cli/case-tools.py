#!/usr/bin/python3
"""Commands that are written in Python: which Python and which modules they use, and what they say where these are missing."""

import os
import shutil
import site
import subprocess

from lib import EPOCHFS, PRIVATE, contains, equal, run


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, mode)


HOSTILE, RAN, NONE = f"{PRIVATE}/hostile", f"{PRIVATE}/ran", ("audit", f"{PRIVATE}/none", "batch=8")
USER = site.getusersitepackages().replace(os.path.expanduser("~"), HOSTILE)
for name in ("numpy.py", "json.py", "hashlib.py", "sitecustomize.py", "epochfs/__init__.py", "epochfs/_audit.py", "epochfs/_human.py",
             "python/__main__.py"):
    for folder in (HOSTILE, USER):
        write(f"{folder}/{name}", f"open({RAN!r}, 'w')\n")
write(f"{USER}/usercustomize.py", f"open({RAN!r}, 'w')\n")
write(f"{HOSTILE}/python3", f"#!/bin/sh\n: >{RAN}\n", 0o755)
kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EPOCHFS_PYTHON"))}
hostile = {**kept, "PYTHONPATH": HOSTILE, "PYTHONSTARTUP": f"{HOSTILE}/json.py", "PYTHONUSERBASE": USER, "PYTHONHOME": HOSTILE,
           "HOME": HOSTILE, "PATH": f".::{HOSTILE}:/usr/bin:/bin"}
contains(run(*NONE, code=3, cwd=HOSTILE, env=hostile), "none: No such file")
equal(os.path.exists(RAN), False, "modules of the working directory, of PYTHONPATH and of the user were imported")

write(f"{PRIVATE}/bare", '#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n', 0o755)  # has no modules but its own
contains(run(*NONE, code=6, env={**kept, "EPOCHFS_PYTHON": f"{PRIVATE}/bare"}), "lacks the module numpy: install NumPy", "EPOCHFS_PYTHON")
for python in (f"{PRIVATE}/no-such", "python3", "./python3"):
    contains(run(*NONE, code=6, cwd=HOSTILE, env={**kept, "EPOCHFS_PYTHON": python}), f"needs Python 3 with NumPy, and {python} is no program")
closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", EPOCHFS, *NONE], env=kept, stderr=subprocess.PIPE, check=False)
equal((closed.returncode, closed.stderr), (6, b"epochfs: standard output: Bad file descriptor\n"), "no standard output")
alone = shutil.copy(EPOCHFS, f"{PRIVATE}/epochfs")
done = subprocess.run([alone, *NONE], env=kept, stderr=subprocess.PIPE, check=False)
equal(done.returncode, 6, "exit code of a program whose tools are not installed")
contains(done.stderr.decode(), "audit: its Python files are missing")

# The first python3 of PATH is another environment, which would lack NumPy.
write(f"{PRIVATE}/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
os.makedirs(f"{PRIVATE}/venv/bin")
os.symlink("/usr/bin/python3", f"{PRIVATE}/venv/bin/python3")
contains(run(*NONE, code=3, env={**kept, "PATH": f"{PRIVATE}/venv/bin:/usr/bin:/bin"}), "none: No such file")
contains(run(*NONE, code=6, env={**kept, "EPOCHFS_PYTHON": f"{PRIVATE}/venv/bin/python3"}), "lacks the module numpy")

# Files next to a copy of the program, which another user has made.
write(f"{PRIVATE}/python/__main__.py", f"open({RAN!r}, 'w')\n", 0o666)
done = subprocess.run([alone, *NONE], env=kept, stderr=subprocess.PIPE, check=False)
equal((done.returncode, os.path.exists(RAN)), (6, False), "files that everybody may write")
