"""Mounts and the datasets in them."""

from __future__ import annotations

import errno
import itertools
import json
import logging
import operator
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any, Callable, Collection, Iterator, NamedTuple, TypeVar, Union

import numpy as np

from . import errors
from ._batches import Batches
from .errors import DeadMountError, Error, MountError, explain
from ._read import read_npz

AnyPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Value = TypeVar("Value")
log = logging.getLogger("epochfs")

NAMED_MAX = 10  # datasets in the message about a wrong name
# $0 is epochfs, $1 a temporary mountpoint. Its mount is unmounted if stdin ends without a line.
GUARD = 'trap "" INT TERM HUP; read -r line || { "$0" umount "$1"; command -p rmdir "$1"; }'


class Field(NamedTuple):
    """A field of a dataset."""

    dtype: np.dtype
    shape: tuple[int | None, ...]
    """of one sample; None: it differs from sample to sample"""
    derived: bool
    """made from other fields; npz files have only `index` and `key` of these"""
    stored_as: str | None = None
    """the type in the source, if numpy lacks it and dtype shows only its bits: BF16"""


class Missing(NamedTuple):
    """A part that is missing in a dataset."""

    name: str
    reason: str


class Dataset:
    """A dataset of a mount: `mount["train"]`. `len()` is its number of samples; `dataset[i]` a sample.

    Each access reads its files again. The object keeps a path and the content of dataset.json.
    """

    def __init__(self, mount: Mount, name: str) -> None:
        self.mount = mount
        self.name = name
        self.path: str = os.path.join(mount.path, name)
        self.info: dict[str, Any] = json.loads(mount.text(os.path.join(self.path, "dataset.json")))
        """all of dataset.json"""
        if "error" in self.info:
            raise Error(None, self.info["error"], self.path)
        self.fields: dict[str, Field] = {f["name"]: Field(np.dtype(f["descr"]), tuple(f["shape"]), f["derived"], f.get("stored_as"))
                       for f in self.info["fields"]}
        self.notes: list[str] = self.info["notes"]
        """notes about it, such as bytes that are not read"""
        self.missing: list[Missing] = [Missing(m["name"], m["reason"]) for m in self.info["missing"]]
        """parts of its set that are missing, such as a shard that was not found"""
        self._keys: list[str] | None = None

    def __repr__(self) -> str:
        return f"<epochfs.Dataset {self.path}: {len(self)} samples>"

    def __len__(self) -> int:
        return self.info["samples"]

    def __getitem__(self, sample: int | str | bytes) -> dict[str, np.ndarray]:
        """The stored fields of a sample as arrays. sample: its number, as in a list, or its key, as `key` of a batch has it.

        Shapes are those of `fields`. Rows of libsvm text are a CSR matrix of one row (`csr()`).
        Raises IndexError or KeyError if there is no such sample (keys above 180 bytes: use the number), and what
        `Batches.read()` raises."""
        if isinstance(sample, (str, bytes)):
            for name in _names_of_key(sample):
                try:
                    return self._read(name, KeyError(sample))
                except KeyError:
                    pass
            raise KeyError(sample)
        number = operator.index(sample)
        number += len(self) if number < 0 else 0
        if not 0 <= number < len(self):
            raise IndexError(f"sample {sample} of {len(self)}")
        return self._read(self._name(number), IndexError(sample))

    def __contains__(self, key: object) -> bool:
        """Does a sample have this key?"""
        if not isinstance(key, (str, bytes)):
            raise TypeError(f"expected a key of a sample, got {key!r}")
        try:
            self[key]
        except KeyError:
            return False
        return True

    def batches(self, plan: str, *, epoch: int = 0, start: int = 0, fields: Collection[str] | None = None,
                encoding: str = "npz") -> Batches:
        """The batches of a plan ("batch=128,seed=7") in an epoch, from batch number start on.

        fields: names of the arrays to read; None: all of the file.
        encoding: "npz": the stored fields; "npy": also derived fields, such as image01 and label1h, and padded ones; "csc": sparse
        rows by columns; "csc_value": their entries sorted by value.
        Raises PlanError with the mount's reason if the plan does not open or has no batches, and TypeError or ValueError for an
        invalid epoch or start. `Batches.read()` says what reading raises."""
        return self.batches_of(plan, epoch, start, fields, encoding)

    def batches_of(self, *arguments: Any) -> Batches:
        """For epochfs.torch: `Batches` of this kind of dataset, with the arguments of `Batches`."""
        return Batches(self, *arguments)

    def _read(self, name: str, missing: Exception) -> dict[str, np.ndarray]:
        try:
            return self.mount.arrays(os.path.join(self.path, "samples", "npz", f"{name}.npz"))
        except Error as e:
            if e.errno == errno.ENOENT and type(e) is Error:
                raise missing from e
            raise

    def _name(self, number: int) -> str:
        """Samples are named by numbers or by keys, which may also be numbers: then the listing has them in order."""
        name = f"{number:0{max(6, len(str(len(self) - 1)))}d}"
        if self._keys is None:
            path = os.path.join(self.path, "samples", "npz", f"{name}.npz")
            try:
                if int(self.mount.attribute(path, "user.epochfs.index")) == number:
                    return name
            except OSError as e:
                if e.errno not in (errno.ENOENT, errno.ENODATA, errno.ENOTSUP):
                    raise explain(e, self.mount.path, path) from e
            folder = os.path.dirname(path)
            self._keys = [file[:-len(".npz")] for file in self.mount.names(folder)]
        return self._keys[number]


class Mount(Mapping):
    """A mount: a mapping from names to datasets. `open()` and `mount()` make it.

    `mount["train"]` reads dataset.json, and waits until the mount knows the dataset. A list of all names walks through the
    directories of the mount. Datasets can be pickled, for example for workers.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._close: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<epochfs.Mount {self.path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Mount, (self.path,))  # the process that has mounted unmounts

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __getitem__(self, name: str) -> Dataset:
        """Raises KeyError if there is no such dataset. If it cannot be used, raises Error with the reason: the text of its ERROR.txt,
        or why it could not be indexed."""
        if not _is_name(name):
            raise self._missing(name)
        path = os.path.join(self.path, name)
        if self.is_file(os.path.join(path, "ERROR.txt")):
            raise Error(None, self.text(os.path.join(path, "ERROR.txt")).strip(), path)
        try:
            return self.dataset(name)
        except Error as e:
            if type(e) is Error and e.errno in (errno.ENOENT, errno.ENOTDIR):
                raise self._missing(name) from e
            raise

    def _missing(self, name: object) -> KeyError:
        some = list(itertools.islice(self, NAMED_MAX + 1))
        return KeyError(f"{name}: no such dataset, expected one of {', '.join(some[:NAMED_MAX])}" + ", ..." * (len(some) > NAMED_MAX))

    def __contains__(self, name: object) -> bool:
        """Is there a dataset of this name that can be used?"""
        if not _is_name(name):
            return False
        try:
            return "error" not in json.loads(self.text(os.path.join(self.path, str(name), "dataset.json")))
        except Error as e:
            if type(e) is Error and e.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise

    def __iter__(self) -> Iterator[str]:
        """The names of all datasets; in directories they are like "audio/train"."""
        return self._walk("")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __enter__(self) -> Mount:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            self.close()
        except MountError as e:
            if kind is None:
                raise
            log.warning("%s", e)  # and the exception that ended the block continues

    def close(self) -> None:
        """Unmount if `mount()` has mounted it. Raises MountError."""
        if self._close:
            close, self._close = self._close, None
            close()

    def status(self) -> dict[str, Any]:
        """The mount's status.json: docs/reference/status.md describes it. Raises DeadMountError, and Error for another user's mount."""
        return errors.status(self.path)

    def read(self, function: Callable[..., Value], path: str, *arguments: Any) -> Value:
        """function(path, *arguments). Its OSError become errors of this module, with the mount's reasons."""
        try:
            return function(path, *arguments)
        except Error:
            raise
        except OSError as e:
            raise explain(e, self.path, path) from e

    # ---- reads of a mount; `Library` overrides them ----

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, which must exist."""
        return Dataset(self, name)

    def text(self, path: str) -> str:
        """The text of a file."""
        return self.read(_load_text, path)

    def names(self, path: str) -> list[str]:
        """The entries of a directory."""
        return self.read(os.listdir, path)

    def attribute(self, path: str, name: str) -> bytes:
        """An extended attribute. Raises the OSError of the system."""
        return os.getxattr(path, name)

    def is_folder(self, path: str) -> bool:
        """Is it a directory?"""
        return os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        """Is it a file?"""
        return os.path.isfile(path)

    def arrays(self, path: str) -> dict[str, np.ndarray]:
        """The arrays of a .npz file."""
        return self.read(read_npz, path)

    def _walk(self, folder: str) -> Iterator[str]:
        names = self.names(os.path.join(self.path, folder))
        if "dataset.json" in names:
            yield folder
        elif "ERROR.txt" not in names:
            for name in names:
                if name != ".epochfs" and self.is_folder(os.path.join(self.path, folder, name)):
                    yield from self._walk(os.path.join(folder, name))


def open(path: AnyPath) -> Mount:
    """The existing mount at path. It stays mounted.

    Raises DeadMountError if none answers there, and Error if it is another user's, without allow_other."""
    found = Mount(os.path.realpath(os.fsdecode(path)))
    found.status()
    return found


def mount(source: AnyPath, mountpoint: AnyPath | None = None, **options: object) -> Mount:
    """Mount source: a file, a directory or a URL. A context manager that unmounts at its end.

    mountpoint: an empty directory. Missing directories of its path are created, and removed at the end. None: a temporary
    directory. options are those of `epochfs mount -o`: image_size="224x224", no_sign_request=True, plan="batch=128,seed=7";
    a list gives an option several times. Runs $EPOCHFS, or `epochfs`.

    Without `with`, `close()` or the end of the process unmounts. If the process is killed, a temporary mountpoint disappears with
    it. Another mountpoint stays mounted: end it with `epochfs umount`.

    Raises MountError with the command's message."""
    name = os.fsdecode(source)
    words = [word for option in option_words(options) for word in ("-o", option)]
    made: list[str] = []
    try:
        if mountpoint is None:
            made.append(os.path.realpath(tempfile.mkdtemp(prefix="epochfs-")))
        elif not os.fspath(mountpoint):
            raise FileNotFoundError(errno.ENOENT, "mountpoint: expected a folder, got an empty name")
        where = os.path.realpath(made[0] if mountpoint is None else os.fsdecode(mountpoint))
        _make(where, made)
    except OSError as e:
        _remove(made)
        raise MountError(e.errno, e.strerror, e.filename) from e
    program, before = _program(), _daemon(where)
    try:
        _log(_run(program, "mount", *words, f"./{name}" if name.startswith("-") else name, where))
        found = Mount(where)
        daemon = found.status()["pid"]
        guard = _guard(program, where) if mountpoint is None else None
        found._close = weakref.finalize(found, _unmount, os.getpid(), daemon, program, where, made, guard)
    except MountError:
        _remove(made)
        raise
    except BaseException:  # Ctrl-C, while the command runs or later
        now = _daemon(where)
        _unmount(os.getpid(), None if now == before else now, program, where, made, None)
        raise
    return found


def _make(folder: str, made: list[str]) -> None:
    """Create the directory and the missing ones of its path; made gets them, the innermost first."""
    if not os.path.isdir(folder):
        _make(os.path.dirname(folder), made)
        try:
            os.mkdir(folder)
        except FileExistsError:
            return  # another process was faster, or it is a dead mount or a file: the command says what to do
        made.insert(0, folder)


def _remove(made: list[str]) -> None:
    """Remove created directories, until one is in use."""
    try:
        for folder in made:
            os.rmdir(folder)
    except OSError as e:
        if e.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EBUSY):
            raise


def _guard(program: str, where: str) -> subprocess.Popen[bytes] | None:
    """A shell that waits for the end of a pipe. It unmounts a temporary mount if this process ends without unmounting, for
    example by kill -9. Forked children also hold the pipe, so the shell waits for them."""
    try:
        return subprocess.Popen(["/bin/sh", "-c", GUARD, program, where], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, cwd="/", start_new_session=True)
    except OSError as e:
        log.warning("%s stays mounted if this process is killed: %s", where, e)
        return None


def _unmount(pid: int, daemon: int | None, program: str, where: str, made: list[str],
             guard: subprocess.Popen[bytes] | None) -> None:
    if pid != os.getpid():  # a child that was forked
        if guard:
            guard.returncode = 0  # it is no child of this process
            guard.stdin.close()  # type: ignore[union-attr]
        return
    if _is_there(where, daemon):
        _log(_run(program, "umount", where))
    if guard:
        guard.communicate(b"unmounted\n")
    _remove(made)


def _daemon(where: str) -> int | None:
    """The process id of the daemon that answers at where."""
    try:
        return int(errors.status(where)["pid"])
    except Error:
        return None


def _is_there(where: str, daemon: int | None) -> bool:
    """Is it the mount of this daemon, dead or alive, and not of another daemon?"""
    try:
        return bool(errors.status(where)["pid"] == daemon)
    except DeadMountError as e:
        return e.errno != errno.ENOENT
    except Error:
        return os.path.ismount(where)


def option_words(options: dict[str, object]) -> Iterator[str]:
    """The words that -o joins with commas."""
    for name, values in options.items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            text = os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)
            text = text.replace(",", "+") if name == "plan" else text.replace("\\", r"\\").replace(",", r"\,")
            if value is not None and value is not False:
                yield name if value is True else f"{name}={text}"


def _program() -> str:
    """The path of the command, which remains valid if the process changes its directory."""
    program = os.environ.get("EPOCHFS") or "epochfs"
    found = shutil.which(program)
    return os.path.abspath(found) if found else program


def _run(program: str, *arguments: str) -> str:
    """Run epochfs and return its stderr. Raises MountError."""
    with tempfile.TemporaryFile() as said:  # a pipe would stay open in the daemon
        try:
            code = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, stdout=said, stderr=said).returncode
        except OSError as e:
            raise MountError(e.errno, "cannot be run; install epochfs, or set $EPOCHFS to its path", program) from e
        said.seek(0)
        text = said.read().decode("utf-8", "replace").strip()
    if code:
        raise MountError(text or f"{program} {' '.join(arguments)}: exit code {code}")
    return text


def _log(notes: str) -> None:
    """Log the notes of a successful command: files that are not used, processes that still use the mount."""
    for line in notes.splitlines():
        log.warning("%s", line)


def _names_of_key(key: str | bytes) -> Iterator[str]:
    """The possible file names of the sample with this key. Some formats escape all dots, because dots end their keys."""
    raw = os.fsencode(key)
    for dots in (False, True):
        begins = b"__" if dots and len(raw) > 1 else b"."
        yield os.fsdecode(b"".join(
            b"%%%02X" % byte if byte in b"/\0%" or byte == ord(".") and (dots or at == 0) or
            at == 0 and raw.startswith(begins) else bytes([byte]) for at, byte in enumerate(raw)))


def _is_name(name: object) -> bool:
    """Can it be the name of a dataset, with its directories?"""
    return isinstance(name, str) and "\0" not in name and not {"", ".", ".."} & {*name.split("/")}


def _load_text(path: str) -> str:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), encoding="utf-8", errors="replace") as f:
        return f.read()
