"""Folders for what does not fit into memory, gone when they are done with, those of killed processes included."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_HELD: Final = ".held"
_YOUNG_S: Final = 3600.0


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A folder of this process in the system's place for such, removed afterwards.

    Whoever makes one first removes those of the same purpose whose process was killed. A lock says whether somebody
    still has one: unlike a process id it means the same to containers that share the place.

    Args:
        purpose: word for its name, `weighbridge-PURPOSE-...`.
    """
    prefix = f"weighbridge-{purpose}-"
    _sweep(prefix)
    folder, handle = _held(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _held(prefix: str) -> tuple[Path, int]:
    """A new folder and the handle whose lock says that it is ours."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        handle = os.open(folder / _HELD, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Somebody who swept may have had the lock first.
        if (folder / _HELD).exists():
            return folder, handle
        os.close(handle)


def _sweep(prefix: str) -> None:
    """Remove what killed processes left; what cannot be looked at or removed stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            handle = os.open(folder / _HELD, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            # Just made, and about to be locked; or of a process killed in between.
            if _age_s(folder) > _YOUNG_S:
                shutil.rmtree(folder, ignore_errors=True)
            continue
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def _age_s(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0
