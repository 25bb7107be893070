"""From what was observed to what was reported."""

from __future__ import annotations

from weighbridge.pipeline.report import charts
from weighbridge.pipeline.report.query.gaps import REPORTED, cause_money, gap_by_model, outcomes, statuses, waterfall
from weighbridge.pipeline.report.query.matching import matches, residual_money
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import Direction


def blocks(view: View) -> tuple[Block, ...]:
    """Outcomes, the ledger from observed to reported and its pictures, what the causes cost, the gap by model."""
    ledger = view.get(waterfall)
    pictures = [
        charts.gap(ledger, str(direction))
        for direction in Direction
        if ledger.row(direction=str(direction), step=REPORTED)
    ]
    return (
        view.get(outcomes),
        *pictures,
        ledger,
        view.get(cause_money),
        view.get(residual_money),
        view.get(statuses),
        view.get(matches),
        view.get(gap_by_model),
    )


SECTION = Section(40, "Reconciliation", "reconciliation", blocks)
