"""Figures of all that stands beside usage: comparisons, causes, findings, losses, files, corrections, invoices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weighbridge.pipeline.close.exact import amount, count, tokens
from weighbridge.pipeline.close.figures import Entry, entries
from weighbridge.pipeline.reconcile.found.quarantine import PLACE, records
from weighbridge.pipeline.reconcile.life.status import life
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.enumerations import Confidence

COMPARED = ("observed", "reported", "gap", "explained", "residual")
FILES = ("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")
_ROWS = pl.len().cast(pl.Int64)


def sections(month: Month, files: Sequence[str], periods: Sequence[str]) -> dict[str, list[Entry]]:
    """Every section but those of usage.

    Args:
        month: the month.
        files: digests of the files its rows came from.
        periods: the periods whose findings belong to it.
    """
    return {
        **_comparisons(month),
        "findings": _findings(month, periods),
        "losses": _losses(month),
        "quarantine": _quarantine(month),
        "files": _files(month, files),
        "adjustments": _adjustments(month),
        "invoices": _invoices(month),
    }


def _comparisons(month: Month) -> dict[str, list[Entry]]:
    by = ("direction", "provider", "model", "status", "grade")
    sides = (
        month.dated("reconciled", [*by, *COMPARED])
        .with_columns(compared=pl.when(pl.col("gap").is_null()).then(pl.lit("no")).otherwise(pl.lit("yes")))
        .group_by(*by, "compared")
        .agg(comparisons=_ROWS, **{name: tokens(pl.col(name)) for name in COMPARED})
    )
    causes = month.dated("gap_cause", ["direction", "cause", "currency", "tokens", "confidence", "amount"])
    certain = pl.col("confidence") == str(Confidence.CERTAIN)
    summed = causes.group_by("direction", "cause", "currency").agg(
        comparisons=_ROWS, certain=count(certain), tokens=tokens(pl.col("tokens")), amount=amount(pl.col("amount"))
    )
    return {
        "comparisons": _collected(sides, (*by, "compared")),
        "causes": _collected(summed, ("direction", "cause", "currency")),
    }


def _findings(month: Month, periods: Sequence[str]) -> list[Entry]:
    """Findings in the state they have when the month ends: a waiver that ended before is over."""
    by = ("origin", "code", "severity", "state", "unit", "currency")
    held = life(month.lake, ends(month.period)[1]).filter(pl.col("period").is_in(periods))
    summed = held.group_by(by).agg(
        findings=_ROWS,
        rows=tokens(pl.col("rows")),
        difference=tokens(pl.col("difference")),
        amount=amount(pl.col("amount")),
    )
    return entries(summed, by)


def _losses(month: Month) -> list[Entry]:
    by = ("source", "reason")
    frame = month.dated("gap", [*by, "attempts", "tokens"]).group_by(by)
    return _collected(
        frame.agg(records=_ROWS, attempts=tokens(pl.col("attempts")), tokens=tokens(pl.col("tokens"))), by
    )


def _quarantine(month: Month) -> list[Entry]:
    by = ("importer", "reason")
    frame = records(month.dated("quarantine", ["day", *by, *PLACE]), by).group_by(by)
    return _collected(frame.agg(rows=_ROWS), by)


def _files(month: Month, files: Sequence[str]) -> list[Entry]:
    frame = month.lake.scan("segment").filter(pl.col("segment").is_in(list(files))).group_by("importer")
    return _collected(frame.agg(files=_ROWS, **{name: tokens(pl.col(name)) for name in FILES}), ("importer",))


def _adjustments(month: Month) -> list[Entry]:
    by = ("corrects", "reason", "provider", "model", "tenant", "task", "currency")
    frame = month.lake.scan("adjustment").filter(pl.col("period") == month.period).group_by(by)
    sums = {"rows": tokens(pl.col("rows")), "tokens": tokens(pl.col("tokens")), "amount": amount(pl.col("amount"))}
    return _collected(frame.agg(adjustments=_ROWS, **sums), by)


def _invoices(month: Month) -> list[Entry]:
    first, last = ends(month.period)
    by = ("provider", "category", "currency")
    lines = month.lake.scan("invoice_line")
    latest = lines.sort("revision").group_by("provider", "invoice_id", "line_id").last()
    inside = (pl.col("period_start").dt.date() <= last) & (
        pl.col("period_end") > pl.datetime(first.year, first.month, first.day, time_zone="UTC")
    )
    return _collected(latest.filter(inside).group_by(by).agg(lines=_ROWS, amount=amount(pl.col("amount"))), by)


def _collected(frame: pl.LazyFrame, by: Sequence[str]) -> list[Entry]:
    return entries(frame.collect(engine="streaming"), by)


SOURCES: Mapping[str, tuple[str, ...]] = {
    "comparisons": ("reconciled",),
    "causes": ("gap_cause",),
    "findings": ("finding", "finding_status"),
    "losses": ("gap",),
    "quarantine": ("quarantine",),
    "files": ("segment", "attempt", "reading", "usage_report", "gap", "quarantine"),
    "adjustments": ("adjustment",),
    "invoices": ("invoice_line",),
}
