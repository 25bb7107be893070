"""The bounds of the agent: what it may take of disk, memory and time."""

from __future__ import annotations

from dataclasses import dataclass

from weighbridge.capture.journal import SEGMENT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Each is a hard one, unless it says otherwise.

    Attributes:
        spool_bytes: of the whole spool, sealed segments and the files of other processes included; see `quota`.
        buffer_bytes: of records in the queue of the fallback, and of token ids that wait.
        wait_s: the longest a finish waits for the fallback, or for its turn to make a file where none is ready.
        keeper_s: between two rounds of the keeper.
        journal_bytes: of a journal; a quiet process gets smaller ones.
        journal_roll_s: a journal that has held a record for so long is followed by the next one, to be sealed.
        content_bytes, content_roll_s: likewise of a content file, which is followed in the round after.
        mapped: False takes the fallback at once; where nothing can be mapped it is taken anyway.
    """

    spool_bytes: int = 4 << 30
    buffer_bytes: int = 16 << 20
    wait_s: float = 0.005
    keeper_s: float = 1.0
    journal_bytes: int = SEGMENT_BYTES
    journal_roll_s: float = 900.0
    content_bytes: int = 16 << 20
    content_roll_s: float = 900.0
    mapped: bool = True
