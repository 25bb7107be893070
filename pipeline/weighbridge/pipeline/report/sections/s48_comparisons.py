"""What sparse strategies took, what they cost in quality, and which one is recommended."""

from __future__ import annotations

from weighbridge.pipeline.report import charts
from weighbridge.pipeline.report.query.comparisons import comparison, recommendations, strategies
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Billed, computed and attended by strategy; the curve of the latest comparison; what became of its advice."""
    latest = view.get(comparison)
    picture = [charts.comparison(latest)] if latest.rows else []
    return (view.get(strategies), *picture, latest, view.get(recommendations))


SECTION = Section(48, "Strategies", "strategies", blocks)
