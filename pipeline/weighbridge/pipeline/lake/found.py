"""Findings in the lake: each room replaces its own, of the periods it looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.finding import Finding


def write_findings(
    lake: Lake,
    found: Sequence[Finding],
    *,
    origin: FindingOrigin,
    periods: Collection[str] | None,
    where: pl.Expr | None = None,
) -> None:
    """Replace the findings of one origin and these periods; all others stay. Nothing is written where nothing changed.

    Args:
        found: what was found; each has this origin, and one of these periods.
        periods: UTC months, or `all`; null: every period of this origin.
        where: of those, only findings for which this holds are replaced; null: all.

    Raises:
        ValueError: a finding of another origin or period; nothing was written.
        LakeBusyError: another process is writing.
    """
    for finding in found:
        if finding.origin is not origin or (periods is not None and finding.period not in periods):
            raise ValueError(f"{finding.code} of {finding.period} by {finding.origin} is not among what is replaced")
    frame = pl.DataFrame([finding.row() for finding in found], schema=polars_schema("finding"))
    replaced = pl.col("origin") == origin
    if periods is not None:
        replaced &= pl.col("period").is_in(list(periods))
    if where is not None:
        replaced &= where.fill_null(value=False)
    with lake.lock():
        kept = lake.scan("finding").filter(~replaced).collect()
        lake.replace("finding", pl.concat([kept, frame]), days=None)
