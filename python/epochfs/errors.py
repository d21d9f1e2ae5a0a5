"""The errors, and how the module finds their reasons."""

from __future__ import annotations

import errno
import json
import os
from typing import Any


class Error(OSError):
    """The base of all errors of a mount. `errno` and `filename` are set where they are known."""

    def __str__(self) -> str:
        text = super().__str__() if self.strerror is None else self.strerror
        return text if self.filename is None else f"{self.filename}: {text}"


class MountError(Error):
    """`epochfs mount`, `epochfs umount` or `load()` failed; the message has the reason."""


class DeadMountError(Error):
    """The daemon has died, nothing is mounted, or the source is closed."""


class StaleSourceError(Error):
    """The source has changed since it was mounted."""


class PlanError(Error):
    """The plan does not open, or has no batches; the message has the mount's reason."""


class BadBatchError(Error):
    """A file is shorter than its header says, or is not a file of a mount."""


DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.ESHUTDOWN)
NOT_OF_READS = (errno.ENOENT, errno.EMFILE, errno.ENFILE)  # the mount's last failed read does not explain these


def status(root: str) -> dict[str, Any]:
    """The mount's status.json. Raises DeadMountError if there is no mount that answers, and Error if it cannot be read."""
    path = os.path.join(root, ".epochfs", "status.json")
    try:
        with open(path, "rb") as f:
            return json.loads(f.read())
    except OSError as e:
        if e.errno in DEAD:
            raise dead(root, e.errno) from e
        if e.errno in (errno.ENOENT, errno.ENOTDIR):
            raise DeadMountError(errno.ENOENT, "no epochfs is mounted there (any more)", root) from e
        advice = "; is it another user's mount, without allow_other?" if e.errno == errno.EACCES else ""
        raise Error(e.errno, os.strerror(e.errno or 0) + advice, root) from e
    except ValueError as e:
        raise Error(None, f"expected the JSON of a mount's status, got {e}", path) from e


def dead(root: str, number: int) -> DeadMountError:
    return DeadMountError(number, "the daemon of this mount has died; run `epochfs umount`, then mount again", root)


def explain(error: OSError, root: str, path: str) -> Error:
    """The error that tells why the mount at root refused to open, list or read path."""
    number = error.errno or errno.EIO
    if number in DEAD:
        return dead(root, number)
    try:
        now = status(root)
    except DeadMountError as e:
        return e
    except Error:
        now = {}
    if number == errno.ESTALE:
        return StaleSourceError(number, "the source has changed since it was mounted; mount it again"
                                + because(now.get("last_read_error")), path)
    reason = None if number in NOT_OF_READS else now.get("last_read_error")
    return Error(number, os.strerror(number) + because(reason), path)


def because(reason: object) -> str:
    return f": {reason}" if reason else ""
