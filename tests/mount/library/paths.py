"""Every path of a mount against the library: the same names, attributes and bytes, and the same errors."""

import ctypes
import errno
import itertools
import os
import stat
import sys

from lib import EPOCHFS, MOUNTPOINT, SLOW, equal, expect_error, mounted, run, skip
from page_blocks import ROOT

sys.path.insert(0, f"{ROOT}/python")
import epochfs  # noqa: E402
from epochfs import _library  # noqa: E402

if SLOW or not os.path.exists(f"{os.path.dirname(EPOCHFS)}/libepochfs.so.0"):
    skip("the library is not built, or with a sanitizer, which a program would have to bring")

HERE = MOUNTPOINT.encode()
LISTED = 3000  # entries of a folder, at most


def compare_source(source, words, most=None):
    """Mount the source with options and compare; or both say why not. Returns how many files were read."""
    try:
        data = epochfs.load(source, **words)
    except epochfs.MountError as e:
        options = [word for option in epochfs._mount.option_words(words) for word in ("-o", option)]
        equal(run("mount", *options, source, MOUNTPOINT, code=2).splitlines()[-1], f"epochfs: {e}", source)
        return 0
    with data, mounted(source, *epochfs._mount.option_words(words)):
        paths = Paths(data, most)
        paths.compare()
    print(f"{source} {words}: {paths.files} files")
    return paths.files


class Paths:
    """Compares the mount on MOUNTPOINT with data, an open source of the library.

    most: how many files of a folder are read, also the last; the others are only listed. None: all.
    """

    def __init__(self, data, most=None):
        self.data, self.most = data, most
        self.memory = ctypes.create_string_buffer(1 << 20)
        self.files = 0

    def compare(self, folder=""):
        try:
            names = self._names(folder)
        except epochfs.Error as e:
            equal("Input/output error" in str(e), False, f"{folder}, without a reason: {e}")
            expect_error(e.errno, os.listdir, os.path.join(MOUNTPOINT, folder))
            return
        with os.scandir(os.path.join(MOUNTPOINT, folder)) as entries:
            equal(names, [entry.name for entry in itertools.islice(entries, LISTED)], f"names of {folder}")
        folders, files = [], []
        for name in names:
            (files if "." in name[1:] else folders).append(os.path.join(folder, name))  # most names say which it is
        step = max(len(files) // self.most, 1) if self.most else 1
        for path in {*files[::step], *files[-1:]}:
            self._compare_path(path)
        for path in folders:
            if path != ".epochfs":
                self._compare_path(path)

    def _names(self, folder):
        found, error = [], _library._Error(ctypes.sizeof(_library._Error))

        def each(_, name):
            found.append(os.fsdecode(name))
            return len(found) == LISTED

        if _library._functions()["list"](self.data.handle(), os.fsencode(folder), _library.EACH(each), None, error) < 0:
            _library._raise(error, folder)
        return found

    def _compare_path(self, path):
        try:
            fd = os.open(os.path.join(MOUNTPOINT, path), os.O_RDONLY)
        except OSError as e:
            self._compare_error(path, e)
            return
        try:
            st = os.fstat(fd)
            mine = self.data.stat_of(path)
            equal(mine.mode, st.st_mode, path)
            if not self.most:  # large sets get the numbers of a dataset when it is prepared
                equal(mine.inode, st.st_ino, path)
            if stat.S_ISDIR(st.st_mode):
                self.compare(path)
            else:
                self._compare_file(path, fd, st, mine)
        finally:
            os.close(fd)

    def _compare_file(self, path, fd, st, mine):
        self.files += 1
        try:
            want = b""
            while more := os.read(fd, st.st_size + 1):  # until the end, or the bytes that cannot be read
                want += more
        except OSError as e:
            self._compare_error(path, e)
            return
        if self.most and path == "README.txt":
            return  # it says what was prepared when the source was opened, and large sets take longer
        if HERE in want:
            want = want.replace(HERE, b"")
        else:
            # A file that is made has the time of the mount.
            dated = "/" in path and "batches" not in path and not path.endswith("ERROR.txt")
            equal((mine.bytes, mine.mtime_ns if dated else 0), (st.st_size, st.st_mtime_ns if dated else 0), path)
        if len(want) >= len(self.memory):
            self.memory = ctypes.create_string_buffer(2 * len(want))
        n = self.data.read_into(path, 0, self.memory, len(want) + 1)
        if n != len(want) or memoryview(self.memory)[:n] != want:
            equal(self.memory.raw[:n], want, path)

    def _compare_error(self, path, error):
        try:
            self.data.read_into(path, 0, self.memory, len(self.memory))
        except OSError as e:
            # The kernel gets EIO for malformed data, and for a remote that fails.
            equal(errno.EIO if e.errno in (errno.EBADMSG, errno.EREMOTEIO) else e.errno, error.errno, path)
        else:
            raise AssertionError(f"{path}: the library reads it; the mount: {error}")
