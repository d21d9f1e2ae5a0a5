#!/usr/bin/python3
# needs: python3-mypy
"""mypy finds nothing wrong in the module's types, by the rules of Python 3.9."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OTHERS = ("scipy", "scipy.*", "sklearn.*", "xgboost")  # which have no types in Debian


class Types(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.config = os.path.join(self.folder, "mypy.ini")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write("[mypy]\npython_version = 3.9\ndisallow_untyped_defs = True\ndisallow_incomplete_defs = True\n")
            f.write("".join(f"[mypy-{name}]\nignore_missing_imports = True\n" for name in OTHERS))
            f.write("[mypy-torch.*]\nfollow_imports = skip\n")  # a minute for PyTorch's own types

    def mypy(self, *arguments):
        done = subprocess.run([sys.executable, "-m", "mypy", "--config-file", self.config, "--cache-dir", f"{self.folder}/cache",
                               *arguments], cwd=os.path.join(ROOT, "python"), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_module_and_user(self):
        """The module is right, and who uses it gets its types."""
        code, said = self.mypy("-p", "epochfs")
        self.assertEqual(code, 0, said)
        for number, (line, wrong) in enumerate((("x: int = len(epochfs.open('/mnt')['train'])", False),
                            ("x: str = len(epochfs.open('/mnt')['train'])", True),
                            ("epochfs.open('/mnt')['train'].batches('batch=1', epoc=1)", True))):
            file = os.path.join(self.folder, f"user{number}.py")  # of its own: mypy goes by time and size
            with open(file, "w", encoding="utf-8") as f:
                f.write(f"import epochfs\n{line}\n")
            code, said = self.mypy(file)
            self.assertEqual(code != 0, wrong, said)


if __name__ == "__main__":
    sys.exit(unittest.main())
