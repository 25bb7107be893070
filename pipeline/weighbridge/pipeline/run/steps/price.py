"""Readings to amounts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import date

from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import priced_in, set_prices
from weighbridge.pipeline.run.step import Step, Work, hashed, marks_by_day
from weighbridge.pipeline.run.steps.units import days_in


def price_marks(home: Home, _today: date) -> dict[str, str]:
    """Days with readings, marked by them and by the prices that hold on that day."""
    lake = home.lake()
    prices = prices_by_day(PriceBook.load(home.settings.prices))
    days = dict.fromkeys(lake.days("priced_amount"), "") | marks_by_day(lake, ("reading",))
    return {day.isoformat(): hashed([mark, prices(day)]) for day, mark in days.items()}


def prices_by_day(book: PriceBook) -> Callable[[date], str]:
    """A function that marks a day by the rows of the book that hold on it, in their layers."""
    rows = [(number, row) for number, layer in enumerate(book.layers) for row in layer]
    turns = sorted({turn for _, row in rows for turn in (row.valid_from, row.valid_to) if turn})
    marks = [
        hashed(f"{number} {row.price_id}" for number, row in rows if row.holds_on(begin))
        for begin in (date.min, *turns)
    ]
    return lambda day: marks[bisect_right(turns, day)]


def _price(home: Home, units: Sequence[str], _today: date) -> Work:
    days = days_in(units)
    return Work({"readings": set_prices(home, days), "priced": priced_in(home, days)})


STEP = Step("price", price_marks, _price)
