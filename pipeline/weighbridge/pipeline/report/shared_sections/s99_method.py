"""How the figures were made, and what the words mean."""

from __future__ import annotations

from weighbridge.pipeline.report.query import shared
from weighbridge.pipeline.report.sheet import Block, Heading, Section, Words
from weighbridge.pipeline.report.view import View

WORDS: tuple[tuple[str, str], ...] = tuple(
    {
        "Attempt": "One API call that was sent, failed ones included.",
        "Reported, observed": "What usage reports state; what was counted beside them by an engine or a recount.",
        "At least, about, at most": "Each attempt counted with the lower bound, the geometric middle and the upper "
        "bound of its row.",
        "Not told": "The value is not known, or there were too few like it to be named; it counts nothing.",
        "All others": "Cells with fewer than 11 attempts on a day are told together, and with the smallest cell beside "
        "them where that is needed: so none of them can be had by subtraction.",
        "Released once": "A day is told when it is some days old and then stays as it was told. What came later is in "
        "the billing edition.",
    }.items()
)


def blocks(view: View) -> tuple[Block, ...]:
    """Versions and period, definitions."""
    return (view.get(shared.about), Heading("What the words mean"), Words(WORDS))


SECTION = Section(99, "Method", "method", blocks)
