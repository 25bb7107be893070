"""How much there was, and how it moved from day to day."""

from __future__ import annotations

from weighbridge.pipeline.report import charts
from weighbridge.pipeline.report.facts import currencies, money_column
from weighbridge.pipeline.report.query.totals import amounts, daily, totals
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Totals, money, and the daily trend as pictures and as a table."""
    trend = view.get(daily)
    money = [charts.daily_amount(trend, money_column(name), name) for name in view.get(currencies)]
    pictures = [charts.daily_tokens(trend), *money] if any(trend.cells("attempts")) else []
    return (view.get(totals), view.get(amounts), *pictures, trend)


SECTION = Section(20, "Totals and daily trend", "totals", blocks)
