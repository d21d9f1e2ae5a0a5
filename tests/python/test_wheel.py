#!/usr/bin/python3
"""python/backend.py: wheel and sdist have the module and nothing else, twice the same, and the version of CMake's project."""

import base64
import csv
import hashlib
import importlib.util
import os
import re
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODULE = os.path.join(ROOT, "python", "epochfs")


def load(file):
    spec = importlib.util.spec_from_file_location("backend", file)
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend


def content(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


class Wheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.backend = load(f"{ROOT}/python/backend.py")
        self.module = sorted(n for n in os.listdir(MODULE) if n != "__pycache__")

    def test_version(self):
        with open(f"{ROOT}/CMakeLists.txt", encoding="utf-8") as f:
            self.assertEqual(self.backend.version(), re.search(r"project\(epochfs VERSION (\S+)", f.read())[1])

    def test_library(self):
        """With the library the wheel is of this machine, and has it in the module's folder, where it is looked for first."""
        library = f"{self.folder}/built.so"
        with open(library, "wb") as f:
            f.write(b"the library")
        with mock.patch.dict(os.environ, EPOCHFS_LIBRARY=library):
            name = self.backend.build_wheel(self.folder, {"with-library": True})
        self.assertRegex(name, r"^epochfs-[0-9.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(f"{self.folder}/{name}") as wheel:
            self.assertEqual(wheel.read("epochfs/libepochfs.so.0"), b"the library")
            info = f"epochfs-{self.backend.version()}.dist-info"
            self.assertIn("Root-Is-Purelib: false\n", wheel.read(f"{info}/WHEEL").decode())
        with mock.patch.dict(os.environ, EPOCHFS_LIBRARY=f"{self.folder}/missing.so"):
            with self.assertRaisesRegex(SystemExit, "build it first"):
                self.backend.build_wheel(self.folder, {"with-library": True})

    def test_wheel(self):
        name = self.backend.build_wheel(self.folder)
        self.assertEqual(name, f"epochfs-{self.backend.version()}-py3-none-any.whl")
        info = f"epochfs-{self.backend.version()}.dist-info"
        with zipfile.ZipFile(f"{self.folder}/{name}") as wheel:
            self.assertIsNone(wheel.testzip())
            record = list(csv.reader(wheel.read(f"{info}/RECORD").decode().splitlines()))
            self.assertEqual(sorted(row[0] for row in record), sorted(wheel.namelist()))
            for path, digest, size in record[:-1]:
                data = wheel.read(path)
                want = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
                self.assertEqual((digest, int(size)), (want, len(data)), path)
            self.assertEqual(sorted(n for n in wheel.namelist() if not n.startswith(info)),
                             [f"epochfs/{n}" for n in self.module])
            for n in self.module:
                self.assertEqual(wheel.read(f"epochfs/{n}"), content(MODULE, n))

    def test_same_bytes(self):
        for build in (self.backend.build_wheel, self.backend.build_sdist):
            one = content(self.folder, build(self.folder))
            with mock.patch("time.time", return_value=2e9):
                self.assertEqual(content(self.folder, build(self.folder)), one)

    def test_sdist_builds_the_same_wheel(self):
        wheel = content(self.folder, self.backend.build_wheel(self.folder))
        with tarfile.open(f"{self.folder}/{self.backend.build_sdist(self.folder)}") as sdist:
            sdist.extractall(self.folder)
        inside = f"{self.folder}/epochfs-{self.backend.version()}"
        self.assertIn("pyproject.toml", os.listdir(inside))
        again = load(f"{inside}/backend.py")
        self.assertEqual(content(self.folder, again.build_wheel(self.folder)), wheel)


if __name__ == "__main__":
    sys.exit(unittest.main())
