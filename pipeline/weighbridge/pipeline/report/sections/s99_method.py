"""How the figures were made, of what, and what the words mean."""

from __future__ import annotations

from weighbridge.pipeline.report.query.provenance import about, price_rows, prices_used, tables_read
from weighbridge.pipeline.report.sheet import Block, Heading, Section, Words
from weighbridge.pipeline.report.view import View
from weighbridge.pipeline.report.words import DEFINITIONS


def blocks(view: View) -> tuple[Block, ...]:
    """Versions and period, prices, tables, definitions."""
    return (
        view.get(about),
        view.get(price_rows),
        view.get(prices_used),
        view.get(tables_read),
        Heading("What the words mean"),
        Words(DEFINITIONS),
    )


SECTION = Section(99, "Method and provenance", "method", blocks)
