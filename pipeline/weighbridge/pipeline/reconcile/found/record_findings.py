"""Findings about the records themselves: reports, attempts, what could not be read, and what was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weighbridge.pipeline.reconcile.found import of_attempts, of_files, of_reports
from weighbridge.pipeline.reconcile.found.asked import Asked
from weighbridge.schemas.finding import Finding

_KINDS: tuple[Callable[[Asked], Iterator[Finding]], ...] = (
    of_reports.contradictory_usage,
    of_reports.unknown_usage,
    of_reports.assumed_usage,
    of_reports.flags,
    of_reports.report_revised,
    of_reports.price_unknown,
    of_attempts.implausible_count,
    of_reports.implausible_price,
    of_attempts.undated_records,
    of_attempts.foreign_key_rows,
    of_attempts.ambiguous_match,
    of_files.quarantined_rows,
    of_files.gap_records,
    of_attempts.ids_missing,
    of_reports.output_limit_exceeded,
    of_attempts.ids_differ_from_count,
    of_reports.recount_constant_moved,
)
CODES = (
    *(kind.__name__ for kind in _KINDS if kind is not of_reports.flags),
    of_attempts.unassigned_tenant.__name__,
    of_attempts.empty_month.__name__,
)


def of_records(asked: Asked) -> list[Finding]:
    """All of them."""
    return [finding for kind in _KINDS for finding in kind(asked)]
