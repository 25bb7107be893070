"""Prices that a bill may have been made at: those of another day, tier or length, for bundles of calls as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.invoice.ours.bundle import Bundle
from weighbridge.pipeline.price.amount import Priced, agreed, price_reading, unpriced
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.bounds import within
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.terms import Served
from weighbridge.schemas.enumerations import Modality, PriceStatus, TokenClass, Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

# Changes of prices further from a month than this are not taken for its own.
NEAR = timedelta(days=400)
# Lengths beyond, and below, every threshold of context.
LONGEST, SHORTEST = 2**63, 0
_MILLION, _NOTHING = Decimal(10) ** 6, Decimal(0)
_CLASS = {str(name): name for name in REPORTED_CLASSES}
_WITHIN = {
    name: [(str(cell.name), (cell.token_class, cell.modality)) for cell in CROSSED_CELLS if cell.token_class == name]
    for name in _CLASS
}


@dataclass(frozen=True, slots=True)
class Pricing:
    """The price book, asked about calls of one provider; what it was asked before is kept."""

    book: PriceBook
    _rows: dict[tuple[Any, ...], tuple[PriceRow | None, ...]] = field(default_factory=dict)
    _within: dict[tuple[str, int], PriceRow] = field(default_factory=dict)
    _by_id: dict[str, PriceRow] = field(default_factory=dict)
    _served: dict[tuple[str | None, str | None], Sequence[PriceRow]] = field(default_factory=dict)

    def priced(self, bundle: Bundle) -> Bundle:
        """The bundle with what it costs as it is now; as `price.frame.price_readings`, to which a test holds it."""
        found, currency, price_id = self._cost(bundle)
        if found.status is PriceStatus.NO_PRICE and bundle.empty:
            return bundle
        return replace(
            bundle, costs=found.by_class, by_cell=found.by_cell, amount=found.amount, fees=found.fees,
            currency=currency, price_id=price_id,
        )  # fmt: skip

    def detailed(self, bundle: Bundle) -> Bundle:
        """The bundle with the cost of each modality, where the book still gives what its classes cost."""
        if bundle.by_cell is not None or not bundle.split:
            return bundle
        told = self.priced(bundle)
        same = told.amount == bundle.amount and all(told.costs[name] == cost for name, cost in bundle.costs.items())
        return replace(bundle, by_cell=told.by_cell if same else {})

    def _cost(self, bundle: Bundle) -> tuple[Priced, str | None, str | None]:
        about = (bundle.provider, bundle.model, bundle.day, bundle.service_tier, bundle.batch, bundle.region,
                 bundle.minute)  # fmt: skip
        if about not in self._rows:
            served = Served(bundle.service_tier, bundle.batch, bundle.region, bundle.minute)
            self._rows[about] = self.book.possible(bundle.provider, bundle.model, bundle.day, served)
        rows = self._rows[about]
        if not rows:
            known = self.book.knows(bundle.provider, bundle.model, bundle.day)
            return unpriced(PriceStatus.TERMS_UNPRICED if known else PriceStatus.NO_PRICE), None, None
        found = [self._at(bundle, row) for row in rows]
        currencies = {None if row is None else row.currency for row in rows}
        if len(currencies) > 1:
            return unpriced(PriceStatus.TERMS_UNKNOWN), None, None
        one = rows[0] if len(rows) == 1 else None
        told = agreed(found, PriceStatus.TERMS_UNKNOWN)
        return told, currencies.pop(), None if one is None else one.price_id

    def _at(self, bundle: Bundle, row: PriceRow | None) -> Priced:
        if row is not None and len(row.brackets) > 1 and bundle.length is not None:
            place = row.bracket_of(bundle.length)
            if not row.brackets[place].prices:
                return unpriced(PriceStatus.CLASS_UNPRICED)
            if (row.price_id, place) not in self._within:
                self._within[row.price_id, place] = row.within(row.brackets[place])
            row = self._within[row.price_id, place]
        plain = _plainly(bundle, row)
        if plain is not None:
            return plain
        totals = bundle.totals["input_total"], bundle.totals["output_total"]
        return price_reading(
            bundle.counts, bundle.cells, *totals, Verdict.ASSUMED, row, bundle.uses, whole=bundle.whole
        )

    def turns(self, models: Iterable[tuple[str | None, str | None]], month: tuple[date, date]) -> tuple[date, ...]:
        """Days whose prices may stand for those of others: beside each change, near a month, of what models cost."""
        changes = {day for row in self.serving(models) for day in (row.valid_from, row.valid_to) if day is not None}
        near = sorted(day for day in changes if month[0] - NEAR <= day <= month[1] + NEAR)
        return tuple(sorted({each for day in near for each in (day - timedelta(days=1), day)}))

    def tiers(self, models: Iterable[tuple[str | None, str | None]]) -> tuple[str, ...]:
        """Service tiers these models have prices on; a batch job is one."""
        terms = [row.terms for row in self.serving(models)]
        named = ["batch" if each.batch else each.service_tier for each in terms]
        return tuple(sorted({name for name in named if name is not None}))

    def by_length(self, models: Iterable[tuple[str | None, str | None]]) -> bool:
        """Whether any of these models has other prices above a length of context."""
        return any(len(row.brackets) > 1 for about in models for row in self._serving(about))

    def serving(self, models: Iterable[tuple[str | None, str | None]]) -> Sequence[PriceRow]:
        """The rows that are for any of these (provider, model)."""
        held = [row for about in dict.fromkeys(models) for row in self._serving(about)]
        return list({row.price_id: row for row in held}.values())

    def _serving(self, about: tuple[str | None, str | None]) -> Sequence[PriceRow]:
        if about not in self._served:
            provider, model = about
            told = self.book.rows if model is not None else ()
            self._served[about] = [row for row in told if row.provider == provider and row.serves(str(model))]
        return self._served[about]

    def text_price(self, price_id: str, token_class: str) -> Decimal | None:
        """What a million tokens of the text of a class cost at a row."""
        if not self._by_id:
            self._by_id.update({row.price_id: row for row in self.book.rows})
        row = self._by_id.get(price_id)
        return None if row is None else row.prices.get((TokenClass(token_class), Modality.TEXT))


def _plainly(bundle: Bundle, row: PriceRow | None) -> Priced | None:
    """What text of known classes costs at a row without tiers and fees, as `price_reading`; null for all else."""
    if row is None or len(row.brackets) > 1 or row.fees or bundle.uses or bundle.split:
        return None
    costs: dict[str, Decimal | None] = {}
    for name, tokens in bundle.counts.items():
        if tokens is None or tokens < 0:
            return None
        price = row.prices.get((_CLASS[name], Modality.TEXT))
        if tokens and (price is None or any(bundle.cells[c] is None and row.prices.get(k, price) != price
                                            for c, k in _WITHIN[name])):  # fmt: skip
            return None
        costs[name] = tokens * price / _MILLION if price is not None and tokens else _NOTHING
    # A write of which nobody knows the lifetime may have several prices.
    if bundle.counts[TokenClass.CACHE_WRITE_UNKNOWN]:
        return None
    whole = sum((cost for cost in costs.values() if cost is not None), start=_NOTHING)
    return Priced(within(whole, "costs of a reading"), costs, costs, PriceStatus.PRICED, _NOTHING)
