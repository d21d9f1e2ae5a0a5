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

NAMED_MAX = 10  # datasets that the message of a wrong name names
# $0 is epochfs, $1 a temporary mountpoint. Its mount is unmounted if stdin ends without a line.
GUARD = 'trap "" INT TERM HUP; read -r line || { "$0" umount "$1"; command -p rmdir "$1"; }'


class Field(NamedTuple):
    """What a sample has of a name."""

    dtype: np.dtype
    shape: tuple[int | None, ...]
    """of one sample; None: differs from sample to sample"""
    derived: bool
    """made from other fields, and not in npz files unless it is `index` or `key`"""
    stored_as: str | None = None
    """what the source calls the numbers whose bits dtype shows, as numpy has no such type: BF16"""


class Missing(NamedTuple):
    """A part that a dataset lacks."""

    name: str
    reason: str


class Dataset:
    """A dataset of a mount: `mount["train"]`. `len()` is its number of samples; `dataset[i]` a sample.

    Its files are read anew each time; the object keeps a path and what dataset.json says.
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
        """what to know about it, such as bytes that are not read"""
        self.missing: list[Missing] = [Missing(m["name"], m["reason"]) for m in self.info["missing"]]
        """the parts of its set that are not in it, such as a shard that was not found"""
        self._keys: list[str] | None = None

    def __repr__(self) -> str:
        return f"<epochfs.Dataset {self.path}: {len(self)} samples>"

    def __len__(self) -> int:
        return self.info["samples"]

    def __getitem__(self, sample: int | str | bytes) -> dict[str, np.ndarray]:
        """A sample by its number, as in a list, or by its key, as `key` of a batch has it: its stored fields as arrays.

        Shapes are those of `fields`; rows of libsvm text are a CSR matrix of one row (`csr()`).
        Raises IndexError or KeyError if it is not there (keys above 180 bytes: take the number), and what
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
        """Is there a sample of this key?"""
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
        encoding: the folder that is read. "npz": what is stored; "npy": derived fields too, as image01 and label1h, and
        padded ones; "csc": sparse rows by columns; "csc_value": their entries sorted by value.
        Raises PlanError if the plan does not open, with the mount's reason, or has no batches, TypeError and ValueError for an
        epoch that is none and a start that is not in it; `Batches.read()` says what reading raises."""
        return self.batches_of(plan, epoch, start, fields, encoding)

    def batches_of(self, *arguments: Any) -> Batches:
        """For epochfs.torch: the batches that go with this kind of dataset, by the arguments of `Batches`."""
        return Batches(self, *arguments)

    def _read(self, name: str, missing: Exception) -> dict[str, np.ndarray]:
        try:
            return self.mount.arrays(os.path.join(self.path, "samples", "npz", f"{name}.npz"))
        except Error as e:
            if e.errno == errno.ENOENT and type(e) is Error:
                raise missing from e
            raise

    def _name(self, number: int) -> str:
        """Samples are named by their numbers, or by keys, which may be numbers too: then the listing has them in order."""
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

    `mount["train"]` reads dataset.json, and waits until the mount knows the dataset. Listing all names walks through the
    folders of the mount. Datasets pickle, so workers may have them.
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
        """Raises KeyError if there is no such dataset, and Error with the reason if it cannot be used: that of its ERROR.txt, or
        why it could not be indexed."""
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
        """Is it a dataset that can be used?"""
        if not _is_name(name):
            return False
        try:
            return "error" not in json.loads(self.text(os.path.join(self.path, str(name), "dataset.json")))
        except Error as e:
            if type(e) is Error and e.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise

    def __iter__(self) -> Iterator[str]:
        """The names of all datasets; those of folders are like "audio/train"."""
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
            log.warning("%s", e)  # and the exception that ends the block goes on

    def close(self) -> None:
        """Unmount what `mount()` has mounted; else nothing. Raises MountError."""
        if self._close:
            close, self._close = self._close, None
            close()

    def status(self) -> dict[str, Any]:
        """The mount's status.json: docs/reference/status.md describes it. Raises DeadMountError, and Error for another user's mount."""
        return errors.status(self.path)

    def read(self, function: Callable[..., Value], path: str, *arguments: Any) -> Value:
        """function(path, *arguments), whose OSError become errors of this module, with the mount's reasons."""
        try:
            return function(path, *arguments)
        except Error:
            raise
        except OSError as e:
            raise explain(e, self.path, path) from e

    # ---- what is read of a mount: `Library` reads the same without one ----

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name, which must exist."""
        return Dataset(self, name)

    def text(self, path: str) -> str:
        """The text of a file."""
        return self.read(_load_text, path)

    def names(self, path: str) -> list[str]:
        """The entries of a folder."""
        return self.read(os.listdir, path)

    def attribute(self, path: str, name: str) -> bytes:
        """An extended attribute; OSError as it comes."""
        return os.getxattr(path, name)

    def is_folder(self, path: str) -> bool:
        """Is it a folder?"""
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
    """The mount at path, which somebody else mounts and unmounts.

    Raises DeadMountError if none answers there, and Error if it is another user's, without allow_other."""
    found = Mount(os.path.realpath(os.fsdecode(path)))
    found.status()
    return found


def mount(source: AnyPath, mountpoint: AnyPath | None = None, **options: object) -> Mount:
    """Mount source: a file, a folder or an address (http, https, s3). A context manager that unmounts at its end.

    mountpoint: an empty folder; the folders of its path that are missing are made, and removed at the end. None: a temporary
    one. options are those of `epochfs mount -o`: image_size="224x224", no_sign_request=True, plan="batch=128,seed=7", plan=[...] for several.
    Runs $EPOCHFS, else `epochfs`. Without `with`, `close()` or the end of the process unmounts. A process that is killed
    leaves a mountpoint that was given mounted, and `epochfs umount` ends it; a temporary one goes with it all the same.

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
    except BaseException:  # Ctrl-C, while the command is at work or thereafter
        now = _daemon(where)
        _unmount(os.getpid(), None if now == before else now, program, where, made, None)
        raise
    return found


def _make(folder: str, made: list[str]) -> None:
    """Make the folder, and those of its path that are missing; made gets them, the innermost first."""
    if not os.path.isdir(folder):
        _make(os.path.dirname(folder), made)
        try:
            os.mkdir(folder)
        except FileExistsError:
            return  # another process was faster, or it is a dead mount or a file: the command says what to do
        made.insert(0, folder)


def _remove(made: list[str]) -> None:
    """Remove folders that were made, until one is in use."""
    try:
        for folder in made:
            os.rmdir(folder)
    except OSError as e:
        if e.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EBUSY):
            raise


def _guard(program: str, where: str) -> subprocess.Popen[bytes] | None:
    """Unmounts a temporary mount if this process ends without that, as by kill -9: a shell that waits for the end of a pipe.
    Children that were forked have the pipe, too, and are waited for."""
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
    """The process that answers there."""
    try:
        return int(errors.status(where)["pid"])
    except Error:
        return None


def _is_there(where: str, daemon: int | None) -> bool:
    """Is the mount of this daemon there, dead or alive, and not one of another?"""
    try:
        return bool(errors.status(where)["pid"] == daemon)
    except DeadMountError as e:
        return e.errno != errno.ENOENT
    except Error:
        return os.path.ismount(where)


def option_words(options: dict[str, object]) -> Iterator[str]:
    """The words that -o joins by commas."""
    for name, values in options.items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            text = os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)
            text = text.replace(",", "+") if name == "plan" else text.replace("\\", r"\\").replace(",", r"\,")
            if value is not None and value is not False:
                yield name if value is True else f"{name}={text}"


def _program() -> str:
    """The command, by a path that holds when the process has gone to another folder."""
    program = os.environ.get("EPOCHFS") or "epochfs"
    found = shutil.which(program)
    return os.path.abspath(found) if found else program


def _run(program: str, *arguments: str) -> str:
    """Run epochfs; what it says on stderr. Raises MountError."""
    with tempfile.TemporaryFile() as said:  # and no pipe: the daemon has it, too
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
    """What a command says although it succeeds: files that are not used, processes that still use the mount."""
    for line in notes.splitlines():
        log.warning("%s", line)


def _names_of_key(key: str | bytes) -> Iterator[str]:
    """How the mount may call the files of the sample with this key: some formats escape all points, as theirs end names."""
    raw = os.fsencode(key)
    for dots in (False, True):
        begins = b"__" if dots and len(raw) > 1 else b"."
        yield os.fsdecode(b"".join(
            b"%%%02X" % byte if byte in b"/\0%" or byte == ord(".") and (dots or at == 0) or
            at == 0 and raw.startswith(begins) else bytes([byte]) for at, byte in enumerate(raw)))


def _is_name(name: object) -> bool:
    """Can it be the name of a dataset: folders, and what is in them?"""
    return isinstance(name, str) and "\0" not in name and not {"", ".", ".."} & {*name.split("/")}


def _load_text(path: str) -> str:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), encoding="utf-8", errors="replace") as f:
        return f.read()
