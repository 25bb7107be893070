"""What was found about bills."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.invoice.compare import MonthResult
from weighbridge.pipeline.invoice.findings.cells import of_causes, of_status
from weighbridge.pipeline.invoice.findings.left_out import of_contradictory, of_grain, of_pages
from weighbridge.pipeline.invoice.findings.lines import of_details, of_doubles, of_lines
from weighbridge.pipeline.invoice.findings.words import CODES, NOT_CHARGED, PROVISIONAL, UNEXPLAINED, UNKNOWN
from weighbridge.schemas.finding import Finding

__all__ = ["CODES", "NOT_CHARGED", "PROVISIONAL", "UNEXPLAINED", "UNKNOWN", "findings_of", "of_details", "of_pages"]


def findings_of(result: MonthResult) -> Iterator[Finding]:
    """Everything that was found in a month with a provider."""
    yield from of_causes(result)
    yield from of_status(result)
    yield from of_contradictory(result)
    yield from of_grain(result)
    yield from of_doubles(result)
    lines = result.notes.get("lines")
    if isinstance(lines, pl.DataFrame):
        yield from of_lines(result, lines)
