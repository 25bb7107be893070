"""Findings whose evidence is a file, because there is no attempt: what could not be read, and what was lost.

Each function that makes findings of one code is named after that code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from weighbridge.pipeline.reconcile.found import quarantine
from weighbridge.pipeline.reconcile.found.asked import Asked
from weighbridge.pipeline.reconcile.found.tally import Kind, findings, tallied
from weighbridge.schemas.enumerations import GapReason, Severity
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding

_NO_KEY = (pl.lit(None, dtype=pl.Int64).alias("attempt_lo"), pl.lit(None, dtype=pl.Int64).alias("attempt_hi"))
# Of the gaps in which no attempt is lost.
_GAP_CURES = {
    str(GapReason.NEVER_CALLED): "If calls were made in that time, the model runs in another process: install the "
    "adapter there. `weighbridge doctor` names the processes.",
    str(GapReason.AMBIGUOUS): "One client id was used for several calls at once, with one limit: give each call an id "
    "of its own.",
}


def quarantined_rows(asked: Asked) -> Iterator[Finding]:
    """Records that could not be read."""
    kind = Kind(
        code="quarantined_rows",
        severity=Severity.WARNING,
        unit="rows",
        cure="Mend these records at their source (`weighbridge explain` shows file and row), then ingest them again.",
    )
    by = ("importer", "reason")
    rows = quarantine.records(asked.month.dated("quarantine", ["day", *by, *quarantine.PLACE]), by)
    yield from _of_files(kind, rows.with_columns(observed=pl.lit(1, dtype=pl.Int64)), by, asked.month.period)


def gap_records(asked: Asked) -> Iterator[Finding]:
    """What agents say they lost."""
    kind = Kind(
        code="gap_records",
        severity=Severity.NOTICE,
        unit="attempts",
        cure="The agent says why it lost these; give it more buffer, disk or a newer version. A known loss is no gap.",
    )
    by = ("source", "reason")
    rows = asked.month.dated("gap", ["day", *by, "attempts", "segment"]).rename({"attempts": "observed"})
    for finding in _of_files(kind, rows, by, asked.month.period):
        cure = _GAP_CURES.get(finding.subject["reason"])
        yield finding if cure is None else replace(finding, cure=cure)


def _of_files(kind: Kind, rows: pl.LazyFrame, by: tuple[str, ...], period: str) -> Iterator[Finding]:
    """Findings whose evidence is a file, because there is no attempt."""
    held = rows.collect()
    files = held.group_by(by).agg(pl.col("segment").drop_nulls().unique().sort().head(EVIDENCE_ROWS))
    named = {row[:-1]: tuple(row[-1]) for row in files.rows()}
    tally = tallied(held.lazy().with_columns(_NO_KEY).with_columns(expected=pl.lit(0, dtype=pl.Int64)), by)
    for row, finding in zip(tally.iter_rows(named=True), findings(kind, tally, by, period), strict=True):
        yield replace(finding, segments=named[tuple(row[name] for name in by)])
