"""Rates of currencies by day, exact: one that is not known is null, and never that of another day unless so agreed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal

from weighbridge.pipeline.lake.records import Records

# With `nearest_before`: the rate of a day at most so many days before stands in (week-ends, holidays).
NEAREST_DAYS = 7
# Currencies that a cross rate is taken over, the first that knows both.
OVER = ("EUR", "USD")
PLACES = Decimal(1).scaleb(-18)
WIDE = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Rates:
    """(base, quote, day) -> how many of quote one of base was; last revisions only."""

    known: Mapping[tuple[str, str, date], Decimal]

    @classmethod
    def of(cls, lake: Records) -> Rates:
        """Every rate of a lake."""
        rows = lake.scan("currency_rate").collect().sort("base", "quote", "rate_day", "revision")
        names = ("base", "quote", "rate_day", "rate")
        held = {
            (base, quote, day): rate for base, quote, day, rate in rows.select(names).iter_rows() if rate is not None
        }
        return cls(held)

    def rate(self, base: str, quote: str, day: date, *, nearest_before: bool = False) -> Decimal | None:
        """One `base` in `quote` on a day: as told, else by its inverse, else over euro or dollar.

        An inverse or a cross rate is rounded half-even to 18 places.
        """
        for back in range(NEAREST_DAYS + 1 if nearest_before else 1):
            found = self._on(base, quote, day - timedelta(days=back))
            if found is not None:
                return found
        return None

    def _on(self, base: str, quote: str, day: date) -> Decimal | None:
        if base == quote:
            return Decimal(1)
        told = self.known.get((base, quote, day))
        if told is not None:
            return told
        inverse = self.known.get((quote, base, day))
        if inverse:
            return WIDE.divide(Decimal(1), inverse).quantize(PLACES, ROUND_HALF_EVEN, context=WIDE)
        for over in OVER:
            first, second = self.known.get((over, base, day)), self.known.get((over, quote, day))
            if first and second:
                return WIDE.divide(second, first).quantize(PLACES, ROUND_HALF_EVEN, context=WIDE)
        return None


def converted(paid: Decimal, rate: Decimal) -> Decimal:
    """An amount in another currency, rounded half-even to 18 places."""
    return WIDE.multiply(paid, rate).quantize(PLACES, ROUND_HALF_EVEN, context=WIDE)
