"""The bytes of a journal. Writer and reader share this page and nothing else.

A journal file is
    page 0      header: magic, sizes, clocks, process; then JSON (installation, versions, role, rank, policy, key id)
                with its length and CRC-32; at CLOSING the closing record
    checks      per page of slots 8 bytes: CRC-32 of the page with bit 32 set, 0 where it was not computed yet
    slots       512 bytes each, eight to a page; never truncated, only renamed or unlinked

A slot is a row of signed 64-bit integers, zero padding, and the commit word last: the slot's own offset in the file.
A slot whose commit word is 0 was not finished. Integer formats are a privacy wall: text cannot get into a record. Words
go into dictionary slots, once, before the first record that uses them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from weighbridge.schemas.enumerations import (
    AttemptStatus,
    Ended,
    FinishReason,
    MarkedBy,
    MarkReason,
    ReportPart,
    Script,
)

MAGIC: Final = b"WBJRNL01"
PAGE: Final = 4096
SLOT: Final = 512
SLOTS_PER_PAGE: Final = PAGE // SLOT
COMMIT: Final = SLOT - 8
CLOSING: Final = 3072
CHECKED: Final = 1 << 32

# magic, layout version, slot bytes, offset of checks, offset of slots, slots, wall ns, monotonic ns, pid, ordinal
HEADER: Final = struct.Struct("<8s9q")
LAYOUT_VERSION: Final = 1
# closed (1) or rolled (2), slots taken, records written, records lost, crc32 of the four before
CLOSE: Final = struct.Struct("<5q")

# The last slots of a mapped file, one per gap reason: losses go there when no further file can be made.
RESERVE: Final = 16
WORDS: Final = COMMIT // 8  # 63 integers before the commit word
NULL: Final = -1


class Kind(IntEnum):
    """What a slot holds; the lowest 8 bits of its first integer."""

    ATTEMPT = 1
    CHILD = 2
    RECOUNT = 3
    DICTIONARY = 4
    GAP = 5
    STARTED = 6
    SCOPE = 7
    USAGE = 8
    VOID = 9  # taken, and then not needed
    TRACE = 10  # a trace of this attempt follows: key, child, how many, arrival
    COUNTER = 11  # what the steps of an engine have come to


# Set in the kind of an attempt whose key is still as it was made: Unix nanoseconds and serial number in the places of
# its two halves, from which the reader makes the UUIDv7 and the time of arrival. The request path is spared the sums.
FRESH: Final = 0x80
# The first ten integers of an attempt slot.
HEAD: Final = (
    "tag",  # kind | plan << 8 | context << 32
    "attempt_hi",
    "attempt_lo",
    "request_hi",  # 0 and 0: no request
    "request_lo",
    "arrived_us",  # Unix microseconds
    "parameters",  # dictionary id of the generation parameters, -1 none
    "outcome",  # status | finish << 8 | http << 16 | level << 32 | marked reason << 40 | marked by << 46 | part kind
    #             << 52 | how the answer ended << 56
    "place",  # scope | attempt number << 32
    "ids_expected",  # ids that follow off the path, -1 none
)
# The fixed histogram of accepted lengths: verify steps with a draft that accepted 0, 1, ... 7, 8 to 15, 16 and more.
ACCEPTED_STEPS: Final = (
    *(f"accepted_steps_{length}" for length in range(8)),
    "accepted_steps_8_15",
    "accepted_steps_16",
)
COUNTS: Final = (
    "input_computed",
    "cached_local",
    "cached_external",
    "prefill_computed",
    "output_computed",
    "output_delivered",
    "reasoning_computed",
    "withheld_end_token",
    "withheld_stop_trimmed",
    "withheld_aborted",
    "withheld_truncated",
    "drafted",
    "accepted",
    "rejected",
    "bonus",
    "undrafted",
    "recomputed",
    "verify_width",
    "padding",
    "forward",
    "attended",
    "attended_dense",
    "kv_appended",
    "kv_evicted",
    "kv_merged",
    "kv_kept",
    *ACCEPTED_STEPS,
)
TIMES: Final = ("queue_us", "prefill_us", "first_token_us", "decode_us", "total_us")
RECOUNTS: Final = (
    "input_recounted",
    "recount_template",
    "recount_special",
    "output_recounted",
    "recount_flags",
)

# In `recount_flags`, beside 1 and 2 for template and special tokens; -1 is that of earlier writers, for no prompt.
RECOUNT_NO_INPUT: Final = 4
RECOUNT_SCRIPT_SHIFT: Final = 8
SCRIPTS: Final = (None, *Script)

STATUSES: Final = tuple(AttemptStatus)
FINISHES: Final = (None, *FinishReason)
REASONS: Final = (None, *MarkReason)
MARKERS: Final = (None, *MarkedBy)
PARTS: Final = (None, *ReportPart)
ENDS: Final = tuple(Ended)
_STATUS = {member: code for code, member in enumerate(STATUSES)}
_FINISH = {member: code << 8 for code, member in enumerate(FINISHES)}
_REASON = {member: code << 40 for code, member in enumerate(REASONS)}
_MARKER = {member: code << 46 for code, member in enumerate(MARKERS)}
_PART = {member: code << 52 for code, member in enumerate(PARTS)}
_END = {member: code << 56 for code, member in enumerate(ENDS)}


def fresh_key(now_ns: int, serial: int, tail: int) -> tuple[int, int]:
    """The UUIDv7 of an attempt: milliseconds, version, 12 bits of its serial number; then the process's random tail."""
    return (now_ns // 1_000_000) << 16 | 0x7000 | serial & 0xFFF, tail ^ serial


def outcome_word(
    status: AttemptStatus,
    finish: FinishReason | None = None,
    http: int = 0,
    *,
    part: ReportPart | None = None,
    ended: Ended = Ended.COMPLETE,
) -> int:
    """How an attempt ended, as one integer. `http` 0 means none. Level and marks are added by the recorder."""
    return _STATUS[status] | _FINISH[finish] | (http & 0xFFFF) << 16 | _PART[part] | _END[ended]


def level_word(level: int, reason: MarkReason | None = None, by: MarkedBy | None = None) -> int:
    """The bits of the outcome word that hold the capture level and the caller's mark."""
    return (level & 0xFF) << 32 | _REASON[reason] | _MARKER[by]


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome word, taken apart."""

    status: AttemptStatus
    finish: FinishReason | None
    http: int | None
    level: int
    reason: MarkReason | None
    by: MarkedBy | None
    part: ReportPart | None
    ended: Ended

    @classmethod
    def of(cls, word: int) -> Outcome:
        """Take an outcome word apart.

        Raises:
            IndexError: a field holds a number no member has; the slot is damaged or of a later layout.
        """
        return cls(
            STATUSES[word & 0xFF],
            FINISHES[word >> 8 & 0xFF],
            (word >> 16 & 0xFFFF) or None,
            word >> 32 & 0xFF,
            REASONS[word >> 40 & 0x3F],
            MARKERS[word >> 46 & 0x3F],
            PARTS[word >> 52 & 0xF],
            ENDS[word >> 56 & 0xF],
        )
