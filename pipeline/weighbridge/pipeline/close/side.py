"""One side of a comparison: a closed month from its pack, or a month as the lake has it now; sums of its reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

import polars as pl

from weighbridge.pipeline.close import pins
from weighbridge.pipeline.close.batches import batches
from weighbridge.pipeline.close.exact import EXACT, NOTHING
from weighbridge.pipeline.close.figures import Entry, Figures, figures_of
from weighbridge.pipeline.close.month_figures import figures
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.replay import Replay
from weighbridge.pipeline.close.usage_figures import CLASSES, Batch, counted
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.table import price_rows
from weighbridge.pipeline.reconcile.money import Prices
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.enumerations import PriceStatus

# Tokens of a direction that its classes do not tell.
UNTOLD = "class_not_told"
CLASS_NAMES = (*CLASSES, UNTOLD)
PRICED = pl.col("status") == str(PriceStatus.PRICED)
Money = dict[str, Decimal]
Line = tuple[str, str, str]
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Side:
    """A month, somewhere.

    Attributes:
        name: what it is called: the month, and that its rows lie in the lake where they do.
        period: the month.
        records: where its rows lie.
        book: the prices it was priced with.
        prices: price id -> row, of those that were used.
        dialects: the facts of the dialects it was read by.
        figures: its figures; of a close, those it was closed with.
    """

    name: str
    period: str
    records: Records
    book: PriceBook
    prices: Mapping[str, PriceRow]
    dialects: list[dict[str, Any]]
    figures: Figures

    @classmethod
    def of_pack(cls, pack: Pack) -> Side:
        """A closed month.

        Raises:
            DamagedError: the pack cannot be read; verify it.
        """
        prices = price_rows(pack)
        book = pins.book_of(pack.pinned("prices"), prices)
        dialects = list(pack.pinned("rules")["dialects"])
        period = pack.manifest.period
        return cls(period, period, pack, book, prices, dialects, figures_of(pack.figures))

    @classmethod
    def of_lake(cls, lake: Records, period: str, book: PriceBook) -> Side:
        """A month as the lake has it now, priced with `book`."""
        prices = price_rows(lake)
        name = f"{period} in the lake now"
        return cls(name, period, lake, book, prices, pins.rules()["dialects"], figures(lake, period))

    def reports(self) -> Iterator[pl.DataFrame]:
        """Its reports, some days at a time (`usage_figures.Batch.reports`), with what their classes do not tell."""
        month = Month(Replay(self.records), self.period, Prices({}))
        for days in batches([self.records], ["reading"], *ends(self.period)):
            yield with_untold(counted(Batch(month, days).reports()))

    def days(self) -> Iterator[list[date]]:
        """The days it has usage reports of, a few at a time."""
        return batches([self.records], ["usage_report"], *ends(self.period))

    def amounts(self) -> Money:
        """Currency -> what its usage costs, as its figures say."""
        return {str(entry.about("currency")): amount for entry, amount in self._priced("money")}

    def by_model(self) -> dict[Line, Decimal]:
        """(provider, model, currency) -> what its usage costs, as its figures say."""
        return {
            (str(entry.about("provider")), str(entry.about("model")), str(entry.about("currency"))): amount
            for entry, amount in self._priced("money_by_model")
        }

    def adjustments(self) -> Money:
        """Currency -> what was booked in it for months closed before."""
        out: Money = {}
        for entry in self.figures.get("adjustments", ()):
            value, currency = entry.values["amount"], entry.about("currency")
            if isinstance(value, Decimal) and currency is not None:
                out[currency] = EXACT.add(out.get(currency, NOTHING), value)
        return out

    def adjusted_tokens(self) -> int:
        """Tokens that were booked in it for months closed before."""
        return sum(_whole(entry, "tokens") for entry in self.figures.get("adjustments", ()))

    def tokens(self) -> dict[str, int]:
        """Class -> tokens, as its figures say; what the classes do not tell stands under `UNTOLD`."""
        found = self.figures.get("usage", ())
        entry = found[0] if found else Entry((), {})
        told = {name: _whole(entry, name) for name in CLASSES}
        return {**told, UNTOLD: _whole(entry, "input_tokens") + _whole(entry, "output_tokens") - sum(told.values())}

    def unpriced(self) -> int:
        """Reports of unknown amount."""
        found = (entry for entry in self.figures.get("money", ()) if entry.about("status") != str(PriceStatus.PRICED))
        return sum(_whole(entry, "reports") for entry in found)

    def _priced(self, section: str) -> Iterator[tuple[Entry, Decimal]]:
        for entry in self.figures.get(section, ()):
            amount = entry.values["amount"]
            if entry.about("status") == str(PriceStatus.PRICED) and isinstance(amount, Decimal):
                yield entry, amount


def _whole(entry: Entry, name: str) -> int:
    value = entry.values.get(name)
    return value if isinstance(value, int) else 0


def with_untold(reports: pl.DataFrame) -> pl.DataFrame:
    """Reports with the tokens of either direction that their classes do not tell."""
    told, whole = (
        pl.sum_horizontal(pl.col(name).fill_null(0).cast(pl.Int128) for name in names)
        for names in (CLASSES, ("input_total", "output_total"))
    )
    return reports.with_columns((whole - told).alias(UNTOLD))


@dataclass(slots=True)
class Sums:
    """What some reports come to.

    Attributes:
        money: currency -> amount.
        priced: currency -> tokens of the reports that have an amount.
        classes: class -> tokens of all.
        models: (provider, model, currency) -> amount.
    """

    money: Money = field(default_factory=dict)
    priced: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASS_NAMES, 0))
    models: dict[Line, Decimal] = field(default_factory=dict)

    def add(self, reports: pl.DataFrame, sign: int = 1) -> None:
        """Add some reports, or take them away."""
        tokens = pl.sum_horizontal(pl.col(name).fill_null(0).cast(pl.Int128) for name in CLASS_NAMES)
        by = ("provider", "model", "currency")
        for row in reports.filter(PRICED).group_by(by).agg(pl.col("amount").sum(), tokens.sum().alias("n")).iter_rows():
            line, amount, held = row[:3], EXACT.multiply(row[3], Decimal(sign)), sign * int(row[4])
            self.models[line] = EXACT.add(self.models.get(line, NOTHING), amount)
            self.money[line[2]] = EXACT.add(self.money.get(line[2], NOTHING), amount)
            self.priced[line[2]] = self.priced.get(line[2], 0) + held
        for name in CLASS_NAMES:
            self.classes[name] += sign * int(reports[name].cast(pl.Int128).sum() or 0)


def less(left: Mapping[K, Decimal], right: Mapping[K, Decimal]) -> dict[K, Decimal]:
    """Amounts under the same names, the second taken off the first."""
    names = dict.fromkeys((*left, *right))
    return {name: EXACT.subtract(left.get(name, NOTHING), right.get(name, NOTHING)) for name in names}


def plus(left: Mapping[K, Decimal], right: Mapping[K, Decimal]) -> dict[K, Decimal]:
    """Amounts under the same names, added."""
    names = dict.fromkeys((*left, *right))
    return {name: EXACT.add(left.get(name, NOTHING), right.get(name, NOTHING)) for name in names}
