"""What can go wrong on disk, said in words that end in the next step."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl
import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from weighbridge.schemas.errors import LakeBusyError, LakeError, Transient

_OS_ERROR = re.compile(r"os error (\d+)")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Less than this, in bytes, is no room for any file of a table.
_NO_ROOM = 2**20
_REFUSED = {errno.EACCES, errno.EROFS, errno.EPERM}


class LakeFullError(LakeError, Transient):
    """The disk of the lake is full. Nothing was committed; the same call succeeds once there is room."""


@contextmanager
def told(action: str, where: str) -> Iterator[None]:
    """Turn errors of the disk and of the table format into a `LakeError` about `action` at `where`.

    Theirs is not shown beside it: the text of an engine's error may quote the value it stumbled over.
    """
    try:
        yield
    except CommitFailedError:
        raise LakeBusyError(
            f"{where}: another writer won the race while {action}; nothing of this call was committed, run it again"
        ) from None
    except (OSError, DeltaError, pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise _spoken(error, action, where) from None


def _spoken(error: BaseException, action: str, where: str) -> LakeError:
    found = _code(error) or (errno.ENOSPC if _no_room(where) else None)
    if found in _FULL:
        return LakeFullError(
            f"{where}: the disk is full or a file size limit was reached while {action}; nothing of this call was "
            "committed. Make room, then run it again; `weighbridge doctor` shows what the lake takes."
        )
    if found in _REFUSED:
        return LakeError(
            f"{where}: writing or reading is not permitted while {action}. Give this user access to the folder "
            "(it belongs to the user who made the lake, mode 0700), or mount it writable."
        )
    return LakeError(
        f"{where}: {type(error).__name__} while {action}; nothing of this call was committed. "
        "Run `weighbridge doctor`; restore the folder from a backup if it was damaged."
    )


def _code(error: BaseException) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    named = _OS_ERROR.search(str(error))
    return int(named.group(1)) if named else None


def _no_room(where: str) -> bool:
    """Whether the lake's own disk is full. Polars' writer may lose the number of the error, so the disk is asked."""
    path = where.removeprefix("file://")
    if "://" in path:
        return False
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _NO_ROOM
