"""Prices that a bill may have been made at: those of another day, tier or length, for calls as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import partial

import polars as pl

from weighbridge.pipeline.invoice.usage import AMOUNTS
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import Modality

# Changes of prices further from a month than this are not taken for its own.
NEAR = timedelta(days=400)
Reprice = Callable[[pl.DataFrame], pl.DataFrame]
_PRICED = (*AMOUNTS, "amount", "amount_fees", "currency", "price_id")


@dataclass(frozen=True, slots=True)
class Pricing:
    """The price book, asked about calls of one provider."""

    book: PriceBook

    def reprice(self, calls: pl.DataFrame) -> pl.DataFrame:
        """The calls with what they cost as they are now."""
        return repriced(calls, self.book)

    def turns(self, calls: pl.DataFrame, month: tuple[date, date]) -> tuple[date, ...]:
        """Days whose prices may stand for those of others: beside each change, near a month, of what models cost."""
        rows = self._serving(calls)
        changes = {day for row in rows for day in (row.valid_from, row.valid_to) if day is not None}
        near = sorted(day for day in changes if month[0] - NEAR <= day <= month[1] + NEAR)
        return tuple(sorted({each for day in near for each in (day - timedelta(days=1), day)}))

    def tiers(self, calls: pl.DataFrame) -> tuple[str, ...]:
        """Service tiers the models of these calls have prices on; a batch job is one."""
        terms = [row.terms for row in self._serving(calls)]
        named = ["batch" if each.batch else each.service_tier for each in terms]
        return tuple(sorted({name for name in named if name is not None}))

    def lengths(self, calls: pl.DataFrame) -> dict[str, Reprice]:
        """Ways to price calls as if all of them lay above, or below, every threshold of context; none without any."""
        if not any(len(row.brackets) > 1 for row in self._serving(calls)):
            return {}
        books = {
            name: PriceBook([[row.within(row.brackets[place]) for row in layer] for layer in self.book.layers])
            for name, place in (("as_above", -1), ("as_below", 0))
        }
        return {name: partial(repriced, book=book) for name, book in books.items()}

    def _serving(self, calls: pl.DataFrame) -> list[PriceRow]:
        named = calls.select("provider", "model").unique().drop_nulls().rows()
        return [row for row in self.book.rows if any(row.provider == p and row.serves(m) for p, m in named)]

    def by_id(self) -> dict[str, dict[str, Decimal]]:
        """Id of a row -> class -> what a million tokens of its text cost."""
        text = str(Modality.TEXT)
        return {
            row.price_id: {str(name): price for (name, modality), price in row.prices.items() if modality == text}
            for row in self.book.rows
        }


def repriced(calls: pl.DataFrame, book: PriceBook) -> pl.DataFrame:
    """The calls with what they cost by a book, as they are now."""
    priced = price_readings(calls, book, calls)
    return calls.with_columns(priced[name] for name in _PRICED)
