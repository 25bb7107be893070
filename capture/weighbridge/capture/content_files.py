"""The content files of one process: one at a time, followed by the next when it is large or old, to be sealed."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from pathlib import Path

from weighbridge.capture.content import SUFFIX, ContentWriter
from weighbridge.capture.guard import Guard
from weighbridge.capture.journal import JournalUnavailableError, new_path, reason_of
from weighbridge.capture.limits import Limits
from weighbridge.capture.quota import Quota
from weighbridge.schemas.enumerations import GapReason

_WAIT_S = 1.0  # for its turn in the spool


class ContentFiles:
    """At most one file is written at a time. Only the keeper, and whoever closes the recorder, comes here.

    Args:
        opening: the first frame of each file.
        quota: the bound of the spool.
    """

    def __init__(
        self, spool: Path, installation: str, limits: Limits, opening: Callable[[], bytes], quota: Quota
    ) -> None:
        self._spool = spool
        self._installation = installation
        self._limits = limits
        self._opening = opening
        self._quota = quota
        self._ordinals = itertools.count()
        self._present: ContentWriter | None = None

    def append(self, frame: bytes) -> GapReason | None:
        """Append one encrypted block; the reason where that cannot be done."""
        try:
            with self._quota.room(len(frame), _WAIT_S):
                if self._present is None:
                    self._present = self._made()
                self._present.append(frame)
        except JournalUnavailableError as error:
            return error.reason
        except OSError as error:
            return reason_of(error)
        return None

    def roll(self) -> None:
        """Go on in the next file where the present one is full, or old and not empty."""
        old = self._present
        if old is not None and old.blocks and (
            old.size >= self._limits.content_bytes or time.monotonic() - old.since > self._limits.content_roll_s
        ):  # fmt: skip
            # The next one is there before the last one is let go: a reader sees that the process lives.
            with contextlib.suppress(OSError):
                self._present = self._made()
                old.close()

    def _made(self) -> ContentWriter:
        path = new_path(self._spool, self._installation, next(self._ordinals)).with_suffix(SUFFIX)
        return ContentWriter(path, self._opening())

    def close(self) -> None:
        """Close the present file."""
        last, self._present = self._present, None
        if last is not None:
            with Guard("content.close"):
                last.close()

    def forget(self) -> None:
        """In a forked child: drop the parent's file."""
        if self._present is not None:
            with contextlib.suppress(OSError):
                self._present.forget()
