"""What engines counted beside their attempts."""

from __future__ import annotations

from weighbridge.pipeline.report.query.engines import engine_causes, engine_counters
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Counters and causes."""
    return (view.get(engine_counters), view.get(engine_causes))


SECTION = Section(45, "Engines", "engines", blocks)
