"""Whether the bill is right."""

from __future__ import annotations

from weighbridge.pipeline.report.query.invoices import bills, reasons
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Bills beside priced usage, and why they differ."""
    return (view.get(bills), view.get(reasons))


SECTION = Section(46, "Invoices", "invoices", blocks)
