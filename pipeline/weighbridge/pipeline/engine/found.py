"""Findings about engines: one per cause and server of a month, and one for what no cause explains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

import polars as pl

from weighbridge.pipeline.engine.cause import all_causes
from weighbridge.schemas.enumerations import Confidence, FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

PREFIX = "engine_"
UNEXPLAINED = "engine_gap_unexplained"
_CURE = (
    "Look at the windows with `weighbridge engine --unexplained`, and attach the agent or read the engine's records "
    "where figures are missing."
)
# Where attempts of the model stand under names that do not say this engine: these come before any search.
_FIRST = (
    "First see whose server the calls of this model were said to be: some stand under another provider or under no "
    "framework, and `weighbridge ingest --provider ENGINE` says that they are this engine's. "
)
_OPEN = frozenset({"unobserved"})
# Told once: by the counter that says most about each cause. Other counters show the same tokens again.
_SHOWN = ("prompt_tokens", "generation_tokens", "prefix_cache_queries", "recomputed", "requests_finished")
_SUBJECT = ("engine", "model", "instance", "counter", "source")


def finding_codes() -> frozenset[str]:
    """The codes of the findings of this room."""
    return frozenset({UNEXPLAINED, *(PREFIX + cause.code for cause in all_causes())})


def findings(
    gaps: pl.DataFrame,
    causes: pl.DataFrame,
    period: str,
    doubted: Collection[tuple[str, str | None, str | None]] = (),
) -> list[Finding]:
    """The findings of a month.

    Args:
        gaps, causes: its rows of `engine_gap` and `engine_gap_cause`.
        period: `YYYY-MM`.
        doubted: engine, model and instance of servers some of whose attempts may be told under other names.
    """

    def cure(text: str, row: Mapping[str, Any]) -> str:
        return _FIRST + text if (row["engine"], row["model"], row["instance"]) in doubted else text

    window = ["day", "source", "engine", "model", "instance", "counter", "label", "until"]
    shown = pl.col("counter").is_in(_SHOWN)
    told = causes.filter(shown).join(gaps.select(*window, "counted", "unit"), on=window, nulls_equal=True)
    titled = {cause.code: cause for cause in all_causes()}
    found = []
    for row in _summed(told, ["cause", *_SUBJECT], "tokens"):
        cause = titled.get(row["cause"])
        if cause is not None:
            told_to_do = cure(cause.cure, row) if cause.code in _OPEN else cause.cure
            found.append(_finding(PREFIX + cause.code, cause.severity, told_to_do, row, period, cause.code))
    left = gaps.filter((pl.col("residual") != 0) & shown).with_columns(
        cause=pl.lit(None, dtype=pl.String), tokens="residual", confidence=pl.lit(str(Confidence.NONE))
    )
    found += [
        _finding(UNEXPLAINED, Severity.WARNING, cure(_CURE, row), row, period, None)
        for row in _summed(left, list(_SUBJECT), "tokens")
    ]
    return found


def _summed(rows: pl.DataFrame, by: list[str], amount: str) -> Iterator[Mapping[str, Any]]:
    ranks = {str(confidence): rank for rank, confidence in enumerate(Confidence)}
    grouped = rows.group_by(by, maintain_order=True).agg(
        rows=pl.len().cast(pl.Int64),
        amount=pl.col(amount).sum(),
        counted=pl.col("counted").sum(),
        unit=pl.col("unit").first(),
        weak=pl.col("confidence").replace_strict(ranks, return_dtype=pl.Int64).max(),
        first=pl.col("day").min(),
        last=pl.col("day").max(),
    )
    return grouped.sort(by, nulls_last=True).iter_rows(named=True)


def _finding(
    code: str, severity: Severity, cure: str, row: Mapping[str, Any], period: str, cause: str | None
) -> Finding:
    """Expected is what would have been counted without it."""
    first, last = row["first"], row["last"]
    assert isinstance(first, date), "a window has a day"
    return Finding(
        code=code,
        severity=severity,
        period=period,
        subject={name: str(row[name]) for name in _SUBJECT if row[name] is not None},
        rows=row["rows"],
        expected=row["counted"] - row["amount"],
        observed=row["counted"],
        difference=row["amount"],
        unit=row["unit"],
        cause=cause,
        confidence=list(Confidence)[row["weak"]],
        first_day=first,
        last_day=last,
        cure=cure,
        origin=FindingOrigin.ENGINE,
    )


def in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first, then by code and id."""
    ranks = list(Severity)
    return tuple(sorted(found, key=lambda each: (-ranks.index(each.severity), each.code, each.finding_id)))
