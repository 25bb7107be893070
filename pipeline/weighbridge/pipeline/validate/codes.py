"""The codes of the findings of this room, each with its cure in one sentence."""

from __future__ import annotations

from weighbridge.pipeline.validate.rule import Gravity, Kind
from weighbridge.schemas.enumerations import Severity

_MEND = (
    "Mend what wrote these rows and read their file again with `weighbridge quarantine retry`, or say why they may "
    "stand with `weighbridge quarantine release`."
)
_COMPARE = "compare what wrote these rows, and its version, with what is supported."
CURES: dict[Kind, str] = {
    Kind.NULL: _MEND,
    Kind.MINIMUM: _MEND,
    Kind.FINITE: _MEND,
    Kind.WORD: "A later version may know this word: upgrade, or mend what wrote it and read its file again.",
    Kind.PATTERN: "Text may have got in where a name belongs: find what wrote these rows, mend it, and erase them.",
    Kind.LEAVES: _MEND,
    Kind.IDENTITY: f"The figures of these rows contradict each other: {_COMPARE}",
    Kind.ORDER: f"A part of these rows exceeds its whole: {_COMPARE}",
    Kind.DAY: "These rows lie under another day than their time says: find what set it, and read their file again.",
    Kind.KEY: "Rows stand twice and would count twice: find the file that was taken in under two names, and erase one.",
    Kind.FILE: "A file was not taken in to its end: run the same `weighbridge ingest` again, which completes it.",
    Kind.ACCOUNT: "The account of a file does not add up: take the file in again into an empty lake and compare.",
    Kind.MISSING: "Rows of these files are gone without a receipt: restore the lake from a backup.",
    Kind.SURPLUS: "The lake has more rows of these files than were stored: restore the lake from a backup.",
    Kind.LOW: "Far fewer rows than this source's days have had: look for files that did not arrive, and ingest them.",
    Kind.HIGH: "Far more rows than this source's days have had: look for a loop of retries, or a file taken in twice.",
    Kind.FRESH: "This source has been silent for longer than is usual: see that its agent or export still runs.",
    Kind.AHEAD: "A clock was ahead where these rows were written, or is behind here: set it, and read them again.",
}
CODES = frozenset(map(str, CURES))
SEVERITY = {Gravity.CRITICAL: Severity.ERROR, Gravity.WARNING: Severity.WARNING}
