"""How far the report can be trusted."""

from __future__ import annotations

from weighbridge.pipeline.report.query import quality
from weighbridge.pipeline.report.query.checks import checks
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Coverage, verdicts, prices, quarantine, losses, files, and the report's checks on itself."""
    return (
        view.get(quality.coverage),
        view.get(quality.verdicts),
        view.get(quality.flags),
        view.get(quality.price_statuses),
        view.get(quality.quarantine),
        view.get(quality.gap_records),
        view.get(quality.segments),
        view.get(checks),
    )


SECTION = Section(80, "Data quality", "quality", blocks)
