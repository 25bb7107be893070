"""What calls are like."""

from __future__ import annotations

from weighbridge.pipeline.report.query import shared
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Percentiles on the page, every histogram in the files."""
    return (view.get(shared.spread), view.get(shared.bins))


SECTION = Section(40, "How values spread", "spread", blocks)
