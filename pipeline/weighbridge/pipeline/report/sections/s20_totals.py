"""How much there was, and how it moved from day to day."""

from __future__ import annotations

from weighbridge.pipeline.report import charts
from weighbridge.pipeline.report.facts import currencies, money_column
from weighbridge.pipeline.report.query.earlier import compared, models, money, usage
from weighbridge.pipeline.report.query.totals import amounts, daily, totals
from weighbridge.pipeline.report.sheet import Block, Section, Sheet
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Totals, money, earlier months, and the daily trend as pictures and as a table."""
    trend = view.get(daily)
    amounts_by_day = [charts.daily_amount(trend, money_column(name), name) for name in view.get(currencies)]
    pictures = [charts.daily_tokens(trend), *amounts_by_day] if any(trend.cells("attempts")) else []
    return (view.get(totals), view.get(amounts), *_earlier(view), *pictures, trend)


def _earlier(view: View) -> tuple[Sheet, ...]:
    """Where nobody asked for closes, a range of days or the library, earlier months are not spoken of."""
    if not view.closes:
        return ()
    return (view.get(compared), view.get(usage), view.get(money), view.get(models))


SECTION = Section(20, "Totals and daily trend", "totals", blocks)
