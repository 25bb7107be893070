"""Drafts that a killed run left beside pages and notes: nothing reads them, and retention would not know them.

A file is written under a hidden name that ends in the number of its process, and renamed when it is whole.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from weighbridge.pipeline.run.home import Home

_DRAFT = re.compile(r"\..+\.([0-9]{1,10})\.(?:tmp|draft)")


def sweep(home: Home) -> None:
    """Delete the drafts of processes that are no more. The caller holds the turn, so no run is writing."""
    for path in (*home.reports.rglob(".*"), *home.state.glob(".*")):
        draft = _DRAFT.fullmatch(path.name)
        if draft and not _alive(int(draft[1])):
            _gone(path)


def _gone(path: Path) -> None:
    """What cannot be deleted stops no run: it would meet the same folder when it writes there, and say so."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def _alive(process: int) -> bool:
    """Whether there is such a process, that of another user included."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
