"""Whether the files of a table are as they were written: the engine that reads them does not say which one is not.

A file that was cut short makes the engine give up with words of its own, about its own source. So before a table is
scanned each of its files is asked for its size, which the table's log has, too. A file of the right size with other
bytes is met while it is read; `damaged` then tells which it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.schemas.errors import LakeError

_ENDS_WITH, _TAIL = b"PAR1", 8
# So many bytes of files are read to find the one that is damaged; of larger lakes only the footers and the first ones.
_READ_AT_MOST = 4 * 2**30
_BATCH = 65_536


def check_sizes(root: str, files: Iterable[tuple[Path, int]]) -> None:
    """See that files are there and as long as they were written.

    Args:
        root: the lake, for the message.
        files: each with its size in bytes, as the log of its table says.

    Raises:
        LakeError: names the first one that is not.
    """
    for path, size in files:
        try:
            found = os.stat(path).st_size  # noqa: PTH116 - asked very often
        except FileNotFoundError:
            raise LakeError(_told(root, path, "is not there")) from None
        except OSError as error:
            raise LakeError(_told(root, path, f"cannot be looked at ({type(error).__name__})")) from None
        if found != size:
            raise LakeError(_told(root, path, f"has {found:,} bytes and was written with {size:,}"))


def check_end(root: str, path: Path) -> None:
    """See that a file ends as a data file does.

    Raises:
        LakeError: it does not, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            tail = file.read(_TAIL)
    except FileNotFoundError:
        raise LakeError(_told(root, path, "is not there")) from None
    except OSError as error:
        raise LakeError(_told(root, path, f"cannot be read ({type(error).__name__})")) from None
    if len(tail) < _TAIL or tail[4:] != _ENDS_WITH or int.from_bytes(tail[:4], "little") > size - _TAIL:
        raise LakeError(_told(root, path, "is cut off or damaged"))


def damaged(root: str, files: Iterable[Path]) -> LakeError | None:
    """The error about the first file that cannot be read to its end; null where all can, as far as they were read."""
    held = list(files)
    for path in held:
        try:
            pq.read_metadata(path)
        except (OSError, pa.ArrowException, ValueError):
            return LakeError(_told(root, path, "is damaged"))
    left = _READ_AT_MOST
    for path in held:
        left -= path.stat().st_size
        if left < 0:
            return None
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for _ in file.iter_batches(_BATCH, use_threads=False):
                    pass
        except (OSError, pa.ArrowException, ValueError):
            return LakeError(_told(root, path, "is damaged"))
    return None


def _told(root: str, path: Path, what: str) -> str:
    named = str(path).removeprefix(f"{root}/")
    return (
        f"{root}: the file {named} {what}; nothing of this call was committed. Run `weighbridge doctor`; restore the "
        "file from a backup of the lake, then run the command again"
    )
