"""A recorder whose keeper works only when a test calls it, and what its journals hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weighbridge.capture import layout, reader, seal
from weighbridge.capture.binding import Binding
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus
from weighbridge.schemas.segment import read_table

DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
COUNTS = ("input_computed", "output_computed")
USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
KEY = bytes(range(32))


def started(spool: Path, **limits: Any) -> Recorder:
    """A recorder whose keeper works only when a test calls it."""
    return Recorder.start(spool, installation="test-1", key=KEY, limits=Limits(**{"keeper_s": 3600.0, **limits}))


def bound(recorder: Recorder) -> Binding:
    return recorder.bind(Context(provider="openai", task="chat"), counts=COUNTS)


def finished(binding: Binding, number: int) -> bool:
    return binding.begin().finish(DONE, (number, 2), USAGE)


def rows(recorder: Recorder, out: Path, table: str) -> list[dict[str, Any]]:
    """Close, seal every journal, and return the rows of one table."""
    recorder.close()
    found: list[dict[str, Any]] = []
    for path in reader.journals(recorder.spool):
        segment = seal.seal(path, out / table)
        if (segment / f"{table}.parquet").exists():
            found += read_table(segment, table).to_pylist()
    return found


def gaps(recorder: Recorder, out: Path) -> dict[str, int]:
    told: dict[str, int] = {}
    for row in rows(recorder, out, "gap"):
        told[row["reason"]] = told.get(row["reason"], 0) + row["attempts"]
    return told
