"""Which files the evidence of findings came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.schemas.finding import EVIDENCE_ROWS, Finding
from weighbridge.schemas.identity import AttemptKey

_LINK = {"finding_id": pl.String(), "attempt_hi": pl.Int64(), "attempt_lo": pl.Int64()}


def with_segments(month: Month, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with the digests of the files their attempts and reports came from, at most EVIDENCE_ROWS each."""
    links = [(f.finding_id, *AttemptKey.from_hex(text)) for f in findings for text in f.evidence]
    if not links:
        return list(findings)
    link = pl.DataFrame(links, schema=_LINK, orient="row").lazy()
    keys = link.select(KEY).unique()
    origins = pl.concat(
        month.read(table, [*KEY, "segment"]).join(keys, on=list(KEY), how="semi") for table in ("attempt", "reading")
    )
    files = (
        link.join(origins.drop_nulls("segment").unique(), on=list(KEY))
        .group_by("finding_id")
        .agg(pl.col("segment").unique().sort().head(EVIDENCE_ROWS))
        .collect(engine="streaming")
    )
    named = {finding_id: tuple(segments) for finding_id, segments in files.rows()}
    return [replace(f, segments=named.get(f.finding_id, f.segments)) for f in findings]
