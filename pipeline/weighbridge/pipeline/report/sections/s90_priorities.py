"""What to do next month."""

from __future__ import annotations

from weighbridge.pipeline.report.query.findings import priorities
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Cures of the open findings, ranked."""
    return (view.get(priorities),)


SECTION = Section(90, "Next priorities", "priorities", blocks)
