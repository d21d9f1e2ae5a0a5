#!/usr/bin/python3
"""The module is written in the Python of 3.9, and each newer one that is here imports it, where it has NumPy, or compiles it."""

import ast
import glob
import os
import shutil
import subprocess
import sys
import unittest

MODULE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "python", "epochfs")
FILES = sorted(glob.glob(f"{MODULE}/*.py"))
COMPILE = "import sys\nfor f in sys.argv[1:]: compile(open(f, 'rb').read(), f, 'exec')"


def pythons():
    found = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")) + [sys.executable]
    found += filter(None, (shutil.which(f"python3.{minor}") for minor in range(9, 14)))
    return sorted({os.path.realpath(p) for p in found})


class Syntax(unittest.TestCase):
    def test_of_3_9(self):
        self.assertGreater(len(FILES), 5)
        for file in FILES:
            with open(file, encoding="utf-8") as f:
                tree = ast.parse(f.read(), file, feature_version=(3, 9))
            names = {n for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
                     for n in (a.name for a in node.names)}
            if not file.endswith("__init__.py"):
                self.assertIn("annotations", names, f"{file}: `int | None` is no type in 3.9 without it")

    def test_compiles(self):
        tried = []
        for python in pythons():
            version = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True,
                                     text=True).stdout.split()
            if version and (3, 9) <= tuple(map(int, version)):
                subprocess.run([python, "-W", "error::SyntaxWarning", "-c", COMPILE, *FILES], check=True)
                tried.append(".".join(version))
        print("compiled by", *sorted(set(tried)))

    def test_docstrings(self):
        """Whatever has a name without an underscore says what it is."""
        for file in FILES:
            with open(file, encoding="utf-8") as f:
                tree = ast.parse(f.read())
            for node in [tree] + [n for top in tree.body for n in (top, *getattr(top, "body", []))]:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                    if file.endswith(("_read.py", "_plan.py", "errors.py")) and isinstance(node, ast.FunctionDef):
                        continue
                    self.assertTrue(ast.get_docstring(node), f"{file}: {node.name} has no docstring")


if __name__ == "__main__":
    sys.exit(unittest.main())
