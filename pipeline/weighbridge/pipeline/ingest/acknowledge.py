"""The word that a sealed segment is in the lake: an empty file `<digest>.ack` beside it, or in a folder of its own.

The spool on the serving host deletes a segment on the strength of it and of nothing else, so it is written after the
segment's account is committed, and not where nothing of the segment could be read: another mapping or a mended agent
may read it yet. A folder that cannot be written gets none; the segment then stays in the spool.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from weighbridge.schemas.segment import SUFFIX

ACK = ".ack"


def acknowledge(segment: Path, digest: str, folder: Path | None = None) -> Path | None:
    """Acknowledge one segment whose account is committed.

    Args:
        segment: where it was read.
        digest: its digest.
        folder: where the word goes; null means beside the segment.

    Returns:
        The file, or null where none could be written.
    """
    if segment.suffix != SUFFIX:
        return None
    path = (folder or segment.absolute().parent) / f"{digest}{ACK}"
    with contextlib.suppress(OSError):
        if not path.exists():  # the first word counts: its age says how long the segment has been in the lake
            path.touch()
        return path
    return None
