"""What agents say they lost, as days and counts that a report without an attempt can be held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta

import polars as pl

from weighbridge.schemas.enumerations import GapReason

# After these the level-1 record is there; only token ids are missing.
KEPT_COUNTS = frozenset({GapReason.NO_KEY, GapReason.IDS_MISSING})

Span = tuple[date, date, int]


def spans(gaps: Iterable[Mapping[str, object]]) -> list[Span]:
    """First day, last day and attempts lost of each stretch of known loss; stretches that share a day are one.

    Args:
        gaps: rows of the table `gap`. A row that names its attempt is left out: it covers that attempt and no other.
    """
    merged: list[Span] = []
    for first, last, lost in sorted(_span(row) for row in gaps if row["attempt_lo"] is None and _lost_record(row)):
        if merged and first <= merged[-1][1]:
            begun, ended, before = merged[-1]
            merged[-1] = (begun, max(ended, last), before + lost)
        else:
            merged.append((first, last, lost))
    return merged


def losses(gaps: pl.DataFrame) -> pl.DataFrame:
    """day, cover, lost: one row per day that a stretch of known loss covers."""
    rows = [
        (first + timedelta(days=offset), cover, lost)
        for cover, (first, last, lost) in enumerate(spans(gaps.iter_rows(named=True)))
        for offset in range((last - first).days + 1)
    ]
    return pl.DataFrame(rows, schema={"day": pl.Date, "cover": pl.Int64, "lost": pl.Int64}, orient="row")


def named_losses(gaps: pl.DataFrame) -> pl.DataFrame:
    """attempt_lo, attempt_hi of the attempts that an agent says it lost."""
    named = gaps.filter(
        pl.col("attempt_lo").is_not_null()
        & pl.col("attempt_hi").is_not_null()
        & ~pl.col("reason").is_in([str(reason) for reason in KEPT_COUNTS])
    )
    return named.select("attempt_lo", "attempt_hi").unique(maintain_order=False)


def _lost_record(row: Mapping[str, object]) -> bool:
    return row["reason"] not in KEPT_COUNTS


def _span(row: Mapping[str, object]) -> Span:
    day, began, ended = row["day"], row["began_at"], row["ended_at"]
    assert isinstance(day, date)
    first = began.date() if isinstance(began, datetime) else day
    last = ended.date() if isinstance(ended, datetime) else day
    lost = row["attempts"]
    assert isinstance(lost, int)
    return min(first, day), max(last, day), lost
