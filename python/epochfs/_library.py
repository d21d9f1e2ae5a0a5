"""Sources that are read in this process, by libepochfs: `load()`."""

from __future__ import annotations

import ctypes
import errno
import json
import operator
import os
import warnings
import weakref
from collections.abc import Collection, Iterator
from typing import Any, Callable

import numpy as np

from . import _plan
from ._batches import Batches, names_of
from ._mount import AnyPath, Dataset, Mount, log, option_words
from ._read import Allocate, read_npz
from .errors import BadBatchError, DeadMountError, Error, MountError, PlanError, StaleSourceError

NAME = "libepochfs.so.0"
PIECE = 1 << 16  # bytes that are read to find out how large a text is
INSTALL = ("install epochfs with its library (the Debian package epochfs, `make install`, or a wheel made by "
           "`python3 python/backend.py --with-library`), or set $EPOCHFS_LIBRARY to its path; "
           "epochfs.mount() needs /dev/fuse in place of it")


class _Error(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("code", ctypes.c_int), ("message", ctypes.c_char * 1024)]


class _Stat(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("bytes", ctypes.c_uint64), ("inode", ctypes.c_uint64),
                ("mtime_ns", ctypes.c_int64), ("mode", ctypes.c_uint32), ("padding", ctypes.c_uint32)]


class _Plan(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dataset", ctypes.c_char_p), ("plan", ctypes.c_char_p),
                ("epoch", ctypes.c_uint64), ("fields", ctypes.c_char_p), ("encoding", ctypes.c_char_p)]


class _Array(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("descr", ctypes.c_char_p),
                ("shape", ctypes.POINTER(ctypes.c_uint64)), ("ndim", ctypes.c_uint32), ("padding", ctypes.c_uint32),
                ("bytes", ctypes.c_uint64), ("data", ctypes.c_void_p)]


EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
ERROR = ctypes.POINTER(_Error)
FUNCTIONS: dict[str, tuple[Any, ...]] = {  # result, arguments
    "version": (ctypes.c_char_p,),
    "open": (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ERROR),
    "close": (ctypes.c_int, ctypes.c_void_p, ERROR),
    "notes": (ctypes.c_int, ctypes.c_void_p, EACH, ctypes.c_void_p, ERROR),
    "stat": (ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(_Stat), ERROR),
    "list": (ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, EACH, ctypes.c_void_p, ERROR),
    "read": (ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ERROR),
    "attribute": (ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ERROR),
    "batches_open": (ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_Plan), ERROR),
    "batches_close": (None, ctypes.c_void_p),
    "batches_count": (ctypes.c_uint64, ctypes.c_void_p),
    "batches_take": (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ERROR),
    "batch_give": (None, ctypes.c_void_p),
    "batch_count": (ctypes.c_size_t, ctypes.c_void_p),
    "batch_array": (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Array)),
}

_loaded: dict[str, Any] = {}


def _encode(text: AnyPath) -> bytes:
    """The bytes of a path or of options, for C. Raises ValueError where they would end early."""
    found = os.fsencode(text)
    if b"\0" in found:
        raise ValueError(f"expected text without NUL characters, got {text!r}")
    return found


def _functions() -> dict[str, Any]:
    """The functions of the library, by their names. Raises MountError where there is none."""
    if not _loaded:
        beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)
        program = os.environ.get("EPOCHFS", "")
        built = os.path.join(os.path.dirname(program), NAME) if "/" in program else ""
        named = os.environ.get("EPOCHFS_LIBRARY")
        name = named or next((path for path in (beside, built) if path and os.path.exists(path)), NAME)
        try:
            library = ctypes.CDLL(name)
            for function, (result, *arguments) in FUNCTIONS.items():
                found = getattr(library, f"epochfs_{function}")
                found.restype, found.argtypes = result, arguments
                _loaded[function] = found
        except (OSError, AttributeError) as e:
            _loaded.clear()
            raise MountError(getattr(e, "errno", None), f"the library cannot be loaded: {e}; {INSTALL}", name) from e
    return _loaded


def _raise(error: _Error, path: str | None = None) -> Any:
    """Raise the error of the library."""
    text = error.message.decode(errors="replace")
    kind = {errno.ESTALE: StaleSourceError, errno.ESHUTDOWN: DeadMountError, errno.ECHILD: DeadMountError}.get(error.code, Error)
    raise kind(error.code, text, None if path and text.startswith(path) else path)


def _close(pid: int, handle: int) -> None:
    if pid == os.getpid():  # not in a forked child
        _functions()["close"](handle, None)


def _close_batches(pid: int, handle: int) -> None:
    if pid == os.getpid():
        _functions()["batches_close"](handle)


class _File:
    """A file of the library, as `_read.read_npz()` needs it."""

    def __init__(self, library: Library, path: str) -> None:
        self.path, self.library = path, library
        self.size = library.stat_of(path).bytes

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def bytes(self, offset: int, size: int) -> bytes:
        """Up to size bytes, fewer where the file ends."""
        memory = bytearray(max(min(size, self.size - offset), 0))
        self._fill((ctypes.c_char * len(memory)).from_buffer(memory), len(memory), offset)
        return bytes(memory)

    def into(self, array: np.ndarray, offset: int) -> None:
        """Fill the array with the bytes that begin at offset."""
        self._fill(array.ctypes.data, array.nbytes, offset)

    def _fill(self, memory: Any, size: int, offset: int) -> None:
        n = self.library.read_into(self.path, offset, memory, size)
        if n != size:
            raise BadBatchError(None, f"the file ends at byte {offset + n}, expected {self.size} bytes", self.path)


class LoadedBatches(Batches):
    """The batches of a plan in one epoch, made by threads of this process.

    The arrays of a batch share memory, which the library reuses when you keep none of them. Arrays that you keep never change.
    """

    dataset: LoadedDataset

    def __init__(self, dataset: LoadedDataset, plan: str, epoch: int = 0, start: int = 0,
                 fields: Collection[str] | None = None, encoding: str = "npz", memory: Allocate = np.empty) -> None:
        self._handle: tuple[int, int, int] | None = None  # the process, the handle of the source, the handle of the batches
        super().__init__(dataset, plan, epoch, start, fields, encoding, memory)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None, "_end": None}

    def _open(self) -> int:
        """The handle, in this process."""
        source = self.dataset.mount.handle()
        if self._handle is None or self._handle[:2] != (os.getpid(), source):
            _plan.folder(self.plan, self.epoch)  # checks both
            error = _Error(ctypes.sizeof(_Error))
            for name in self.fields or ():
                if not name or "," in name:  # the library takes names with commas between them
                    raise KeyError(f"{name}: expected the name of a field, without a comma")
            fields = None if self.fields is None else _encode(",".join(self.fields))
            plan = _Plan(ctypes.sizeof(_Plan), _encode(self.dataset.name), _encode(self.plan), self.epoch, fields,
                         _encode(self.encoding))
            found = _functions()["batches_open"](source, plan, error)
            if not found:
                self._refuse(error)
            self._handle = os.getpid(), source, found
            self._end = weakref.finalize(self, _close_batches, os.getpid(), found)
        return self._handle[2]

    def _refuse(self, error: _Error) -> None:
        text = error.message.decode(errors="replace")
        if error.code == errno.ENOENT and text.startswith("field ") and ": expected one of " in text:
            raise KeyError(text[len("field "):])
        if error.code in (errno.ENOENT, errno.EINVAL):
            raise PlanError(error.code, f"the plan {self.plan!r} does not open: {text}", self._folder)
        _raise(error, self._folder)

    def _list(self) -> tuple[int, int, tuple[str, ...]]:
        if self._listed is None:
            self._listed = _functions()["batches_count"](self._open()), 6, ()
        return self._listed

    def read(self, k: int) -> dict[str, np.ndarray]:
        """As `Batches.read()`."""
        count = self._list()[0]
        k = operator.index(k)
        if not 0 <= k < count:
            raise IndexError(f"batch {k} of {count}")
        functions, error = _functions(), _Error(ctypes.sizeof(_Error))
        taken = functions["batches_take"](self._open(), k, error)
        if not taken:
            _raise(error, os.path.join(self._folder, str(k)))
        owner = _Taken(taken)
        batch = dict(owner.arrays())
        if self._memory is not np.empty:
            for name, array in batch.items():
                batch[name] = self._memory(array.shape, array.dtype)
                batch[name][...] = array
        return batch


class _Taken:
    """A batch of the library, which is given back with its last array."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.pid = os.getpid()

    def __del__(self, getpid: Callable[[], int] = os.getpid, functions: dict[str, Any] = _loaded) -> None:
        if self.pid == getpid():  # modules may be gone when the interpreter ends
            functions["batch_give"](self.handle)

    def arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """The arrays by their names; each one keeps the batch alive."""
        array = _Array(ctypes.sizeof(_Array))
        for i in range(_loaded["batch_count"](self.handle)):
            _loaded["batch_array"](self.handle, i, array)
            dtype, shape = np.dtype(array.descr.decode()), tuple(array.shape[:array.ndim])
            if array.bytes:
                memory = (ctypes.c_char * array.bytes).from_address(array.data)
                memory.owner = self  # type: ignore[attr-defined]
                yield os.fsdecode(array.name), np.ndarray(shape, dtype, memory)
            else:
                yield os.fsdecode(array.name), np.zeros(shape, dtype)


class LoadedDataset(Dataset):
    """A dataset of a source that `load()` has opened."""

    mount: Library

    def batches(self, plan: str, *, epoch: int = 0, start: int = 0, fields: Collection[str] | None = None,
                encoding: str = "npz") -> Batches:
        """As `Dataset.batches()`."""
        return self.batches_of(plan, epoch, start, names_of(fields), encoding)

    def batches_of(self, *arguments: Any) -> Batches:
        """As `Dataset.batches_of()`."""
        return LoadedBatches(self, *arguments)


class Library(Mount):
    """A source that is open in this process: a mapping from names to datasets. `load()` makes it.

    It can be pickled. Each process, and each forked child, opens the source itself. They share the cache directory.
    """

    def __init__(self, source: str, options: str) -> None:
        super().__init__("")
        self.source = source
        self.options = options
        self._open: tuple[int, int] | None = None
        self._is_closed = False
        self.handle()

    def __repr__(self) -> str:
        return f"<epochfs.Library {self.source}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Library, (self.source, self.options))

    def handle(self) -> int:
        """The handle of this process."""
        if self._is_closed:
            raise DeadMountError(errno.ESHUTDOWN, "this source is closed", self.source)
        if self._open is None or self._open[0] != os.getpid():
            error = _Error(ctypes.sizeof(_Error))
            handle = _functions()["open"](_encode(self.source), _encode(self.options), error)
            if not handle:
                raise MountError(error.code, error.message.decode(errors="replace"))
            self._open = os.getpid(), handle
            self._close = weakref.finalize(self, _close, os.getpid(), handle)
        return self._open[1]

    def close(self) -> None:
        """Close the source. Arrays of its batches remain valid."""
        self._is_closed = True
        super().close()

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, which must exist."""
        return LoadedDataset(self, name)

    def status(self) -> dict[str, Any]:
        """What status.json of a mount has: docs/reference/status.md describes it."""
        return json.loads(self.text(".epochfs/status.json"))

    def notes(self) -> list[str]:
        """Warnings and errors that a mount would have logged: files that are not used, rows that are skipped."""
        found: list[str] = []

        def each(_: Any, line: bytes) -> int:
            found.append(line.decode("utf-8", "replace"))
            return 0

        error = _Error(ctypes.sizeof(_Error))
        if _functions()["notes"](self.handle(), EACH(each), None, error) < 0:
            _raise(error, self.source)
        return found

    # ---- reads that Mount does through the file system ----

    def text(self, path: str) -> str:
        """The text of a file."""
        memory, found = ctypes.create_string_buffer(PIECE), b""
        while True:
            if path.startswith(".epochfs/"):  # it changes with each call
                found, memory = b"", ctypes.create_string_buffer(2 * len(memory))
            n = self.read_into(path, len(found), memory, len(memory))
            found += memory.raw[:n]
            if n < len(memory):
                return found.decode("utf-8", "replace")

    def names(self, path: str) -> list[str]:
        """The entries of a directory."""
        found: list[str] = []

        def each(_: Any, name: bytes) -> int:
            found.append(os.fsdecode(name))
            return 0

        error = _Error(ctypes.sizeof(_Error))
        if _functions()["list"](self.handle(), _encode(path), EACH(each), None, error) < 0:
            _raise(error, path)
        return found

    def attribute(self, path: str, name: str) -> bytes:
        """An extended attribute. Raises OSError."""
        memory, error = ctypes.create_string_buffer(PIECE), _Error(ctypes.sizeof(_Error))
        n = _functions()["attribute"](self.handle(), _encode(path), _encode(name), memory, PIECE, error)
        if n < 0:
            raise OSError(error.code, error.message.decode(errors="replace"), path)
        return memory.raw[:n]

    def is_folder(self, path: str) -> bool:
        """Is it a directory?"""
        return self._mode(path) == 0o040000

    def is_file(self, path: str) -> bool:
        """Is it a file?"""
        return self._mode(path) == 0o100000

    def arrays(self, path: str) -> dict[str, np.ndarray]:
        """The arrays of a .npz file."""
        return read_npz(path, opener=lambda name: _File(self, name))

    def _mode(self, path: str) -> int:
        try:
            return self.stat_of(path).mode & 0o170000
        except Error as e:
            if e.errno in (errno.ENOENT, errno.ENOTDIR):
                return 0
            raise

    def stat_of(self, path: str) -> _Stat:
        """Size, type and times of a file."""
        found, error = _Stat(ctypes.sizeof(_Stat)), _Error(ctypes.sizeof(_Error))
        if _functions()["stat"](self.handle(), _encode(path), found, error) < 0:
            _raise(error, path)
        return found

    def read_into(self, path: str, offset: int, memory: Any, size: int) -> int:
        """Read bytes of a file into memory, fewer at its end. Returns how many."""
        error, done = _Error(ctypes.sizeof(_Error)), 0
        address = memory if isinstance(memory, int) else ctypes.addressof(memory)
        while done < size:
            n = _functions()["read"](self.handle(), _encode(path), offset + done, address + done, size - done, error)
            if n < 0:
                _raise(error, path)
            if n == 0:
                break
            done += n
        return done


def load(source: AnyPath, **options: object) -> Library:
    """Open source in this process: a file, a directory or a URL. A context manager that closes it.

    The result is used like that of `mount()`, but needs neither /dev/fuse nor a privilege. options are those of `epochfs mount -o`;
    options that only a mount has are errors. Threads of this process make batches ahead, in memory of up to readahead= ("256M").

    Lines that a mount would log, for example about unused files, are warnings (UserWarning) and in `notes()`.

    Raises MountError with the reason, for example if the library is not installed."""
    words = ",".join(option_words(options))
    log.debug("load %s %s", os.fsdecode(source), words)
    library = Library(os.fsdecode(source), words)
    for note in library.notes():
        warnings.warn(note, stacklevel=2)
    return library
