#!/usr/bin/env python3
"""Build wheel and sdist of the module:  backend.py [--with-library] FOLDER     (pip calls the functions below: PEP 517)

With --with-library, the wheel is one for this machine: it has libepochfs.so.0 of $EPOCHFS_LIBRARY, or of build/release.

In place of setuptools: the module is a folder of Python files, so a wheel is a zip of it with four texts. This way `pip install`
of this folder or of the sdist works offline, in an empty venv of any Python since 3.9, where setuptools would first be
downloaded; and the same files make the same bytes.
"""

import base64
import gzip
import hashlib
import io
import os
import platform
import re
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
METADATA = """\
Metadata-Version: 2.1
Name: epochfs
Version: {version}
Summary: Mount machine-learning datasets as files, and read shuffled batches as arrays
Author-email: The epochfs maintainers <maintainers@epochfs.example>
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy >=1.20
Provides-Extra: torch
Requires-Dist: torch ; extra == 'torch'
Provides-Extra: sklearn
Requires-Dist: scikit-learn ; extra == 'sklearn'
Provides-Extra: xgboost
Requires-Dist: scipy ; extra == 'xgboost'
Requires-Dist: xgboost ; extra == 'xgboost'
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: epochfs\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
LIBRARY = "libepochfs.so.0"


def read(name):
    with open(os.path.join(HERE, name), "rb") as f:
        return f.read()


def module():
    """The files of the module, {name: bytes}."""
    names = sorted(n for n in os.listdir(os.path.join(HERE, "epochfs")) if n.endswith(".py") or n == "py.typed")
    return {f"epochfs/{name}": read(f"epochfs/{name}") for name in names}


def library():
    """The bytes of the library that was built."""
    path = os.environ.get("EPOCHFS_LIBRARY") or os.path.join(os.path.dirname(HERE), "build", "release", LIBRARY)
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError as e:
        sys.exit(f"{path}: {e.strerror}; build it first: cmake --preset release && cmake --build build/release")


def version():
    return re.search(rb'^__version__ = "([0-9.]+)"$', read("epochfs/__init__.py"), re.M)[1].decode()


def metadata():
    return METADATA.format(version=version()).encode() + read("README.md")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    stem = f"epochfs-{version()}"
    files = module()
    with_library = bool(config_settings and config_settings.get("with-library"))
    tag = f"py3-none-linux_{platform.machine()}" if with_library else "py3-none-any"
    if with_library:
        files[f"epochfs/{LIBRARY}"] = library()
    about = WHEEL.format(pure=str(not with_library).lower(), tag=tag)
    files.update({f"{stem}.dist-info/METADATA": metadata(), f"{stem}.dist-info/WHEEL": about.encode()})
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n".encode()
    wheel = f"{stem}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as archive:
        for name, data in files.items():
            member = zipfile.ZipInfo(name)  # of 1980, so the same each time
            member.external_attr = 0o100644 << 16
            archive.writestr(member, data, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    stem = f"epochfs-{version()}"
    files = {name: read(name) for name in ("README.md", "backend.py", "pyproject.toml")}
    files.update(module(), **{"PKG-INFO": metadata()})
    sdist = f"{stem}.tar.gz"
    with open(os.path.join(sdist_directory, sdist), "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{stem}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return sdist


def main():
    with_library = "--with-library" in sys.argv[1:2]
    words = sys.argv[1 + with_library:]
    if len(words) != 1 or words[0].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(words[0], exist_ok=True)
    for build in (build_wheel, build_sdist):
        print(os.path.join(words[0], build(words[0], {"with-library": with_library})))


if __name__ == "__main__":
    main()
