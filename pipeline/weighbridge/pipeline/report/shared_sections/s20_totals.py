"""What it adds up to."""

from __future__ import annotations

from weighbridge.pipeline.report.query import shared
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Tokens and times, and money."""
    return (view.get(shared.totals), view.get(shared.amounts))


SECTION = Section(20, "Totals", "totals", blocks)
