"""The ledger of a month with one provider: their lines and our calls in the same cells, however they are billed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.invoice.billing import Billing, Figure, Part, Sum, discounted, rounded
from weighbridge.pipeline.invoice.cells import Grouping, Key
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.grain import Lacking
from weighbridge.pipeline.invoice.ours.bundle import DIRECTIONS, TEXT, Bundle, Slot
from weighbridge.pipeline.invoice.ours.bundles import Bundles
from weighbridge.pipeline.invoice.ours.prices import Pricing
from weighbridge.pipeline.invoice.rates import Rates, converted
from weighbridge.pipeline.invoice.sides import Charged, Spoiled
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.invoice.sums import countable, payable
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, span_of
from weighbridge.schemas.enumerations import ChargedBy, LineKind

MILLION = Decimal(10) ** 6
_NOTHING = Decimal(0)
# Sums of so many bundles, as they are and as changed, are kept while others are worked out.
_KEPT = 30_000


@dataclass(frozen=True, slots=True)
class Ledger:
    """One month with one provider.

    Attributes:
        contract, month, against: what is compared.
        grouping, spans: the cells.
        charged: cell -> their side.
        calls: our side, in bundles.
        currency: what they charge in; null where they charge tokens only.
        rates: of currencies.
        pricing: prices calls anew after something of them was changed.
        month_end: the UTC moment the month ends at, by the billing zone.
        turns: days whose prices may have been taken for others: beside each change of a price.
        tiers: service tiers that are priced at all.
        by_length: whether any model has other prices above a length of context.
        counted: cell -> tokens the provider's usage page counts in it, where that is known.
        lacking: what the bill states and could not be compared by.
        spoiled: (period, model, tenant), the last two null where cells do not tell them -> contradictory calls.
    """

    contract: Contract
    month: str
    against: ChargedBy
    grouping: Grouping
    spans: Sequence[Span]
    charged: Mapping[Key, Charged]
    calls: Bundles
    currency: str | None
    rates: Rates
    pricing: Pricing
    month_end: datetime
    turns: tuple[date, ...] = ()
    tiers: tuple[str, ...] = ()
    by_length: bool = False
    counted: Mapping[Key, int] = field(default_factory=dict)
    lacking: Sequence[Lacking] = ()
    spoiled: Mapping[tuple[Span, str | None], Spoiled] = field(default_factory=dict)
    _sums: dict[tuple[Bundle, str, bool], list[tuple[int, int | None, Decimal | None]]] = field(default_factory=dict)
    _numbers: dict[Sum, int] = field(default_factory=dict)
    _used: dict[Key, int] = field(default_factory=dict)

    @property
    def agreed(self) -> Billing:
        """How the provider bills by contract."""
        contract, calls = self.contract, self.calls.all
        if self.against is ChargedBy.USAGE_PAGE:
            return Billing(calls)
        return Billing(calls, rates_on=contract.rates_on, discounts=contract.discounts, rounding=contract.rounding)

    def contradictory(self, key: Key) -> Spoiled | None:
        """The contradictory calls that a cell may be charged for."""
        return self.spoiled.get(((key.start, key.end), key.model)) if key.kind == LineKind.TOKENS else None

    def used(self, key: Key) -> bool:
        """Whether any call of ours is in a cell, as the provider bills by contract."""
        if not self._used:
            self._used.update(self.attempts(self.agreed))
        return key in self._used

    def predicted(self, billing: Billing) -> dict[Key, Figure]:
        """Cell -> what it would be charged this way; cells without any call are left out."""
        sums: defaultdict[Key, list[Part]] = defaultdict(list)
        for part in self.parts(billing):
            sums[part.key].append(part)
        for key in billing.added:
            sums.setdefault(key, [])
        return {key: self._figure(key, parts, billing) for key, parts in sums.items()}

    def attempts(self, billing: Billing) -> dict[Key, int]:
        """Cell -> how many calls it has."""
        found: defaultdict[Key, int] = defaultdict(int)
        by_class = "token_class" in self.grouping.named
        for bundle in charged_calls(billing):
            span = bundle.places[billing.clock].span
            if span < 0:
                continue
            own: dict[Key, int] = {}
            for slot in self.slots(bundle):
                if slot.tokens != 0 or slot.money != 0:
                    told = bundle.told[slot.column] if slot.modality != TEXT else None
                    told = bundle.told.get(self.grouping.folded[slot.token_class]) if told is None else told
                    key = self.grouping.of_slot(bundle, slot, self.spans[span])
                    own[key] = (told or bundle.calls) if by_class else bundle.calls
            for key, calls in own.items():
                found[key] += calls
        return dict(found)

    def slots(self, bundle: Bundle, *, apart: bool | None = None) -> list[Slot]:
        """The slots of a bundle as this bill groups them; one of all its tokens where it names no classes."""
        named = "token_class" in self.grouping.named
        apart = ("modality" in self.grouping.fine) if apart is None else apart
        if not named and not apart:
            known = None not in bundle.counts.values()
            tokens = sum(count or 0 for count in bundle.counts.values()) if known else bundle.total
            first = next(iter(bundle.counts))
            money = None if bundle.amount is None else bundle.amount - (bundle.fees or _NOTHING)
            return [Slot("total", first, TEXT, tokens, money)]
        if apart:
            bundle = self.pricing.detailed(bundle)
        folded = self.grouping.folded
        wholes = {
            total: not named or all(folded[name] == classes[0] for name in classes)
            for total, classes in DIRECTIONS.items()
        }
        return list(bundle.slots(wholes, apart=apart))

    def parts(self, billing: Billing) -> list[Part]:
        """The sums of every cell, by day, model and class."""
        sums: dict[int, tuple[int | None, Decimal | None]] = {}
        # Sums go by number: to hash what they are about, a million times, is what would take the time.
        for bundle in charged_calls(billing):
            for number, tokens, money in self._of(bundle, billing):
                held = sums.get(number)
                sums[number] = (tokens, money) if held is None else (_add(held[0], tokens), _add(held[1], money))
        for about, tokens, money in billing.cuts:
            before = sums.get(self._number(about), (0, _NOTHING))
            sums[self._number(about)] = _add(before[0], tokens), _add(before[1], money)
        names = list(self._numbers)
        parts = []
        for number, (tokens, money) in sums.items():
            key, day, model, token_class, currency = names[number]
            parts.append(Part(key, day, model, token_class, tokens, money, currency))
        return [*parts, *self._fees(billing)] if self.against is ChargedBy.INVOICE else parts

    def _number(self, about: Sum) -> int:
        return self._numbers.setdefault(about, len(self._numbers))

    def _of(self, bundle: Bundle, billing: Billing) -> list[tuple[int, int | None, Decimal | None]]:
        """What a bundle adds to the sums."""
        asked = bundle, billing.clock, billing.fees_inside
        if asked not in self._sums:
            if len(self._sums) > _KEPT:
                self._sums.clear()
            place = bundle.places[billing.clock]
            made: list[tuple[int, int | None, Decimal | None]] = []
            for slot in self.slots(bundle) if place.span >= 0 else ():
                if slot.tokens == 0 and slot.money == 0:
                    continue
                key = self.grouping.of_slot(bundle, slot, self.spans[place.span])
                money = slot.money
                if billing.fees_inside and key.token_class is None:
                    money = bundle.amount
                about = Sum(key, place.day, bundle.named, key.token_class, bundle.currency)
                made.append((self._number(about), slot.tokens, money))
            self._sums[asked] = made
        return self._sums[asked]

    def _fees(self, billing: Billing) -> Iterator[Part]:
        """What is charged by use, beside tokens: one cell of the month."""
        if billing.fees_inside and "token_class" not in self.grouping.named:
            return
        whole = Key(LineKind.TOOL_FEE.value, *span_of(self.month, self.contract.zone))
        paid: dict[tuple[date, str | None], Decimal | None] = {}
        for bundle in charged_calls(billing):
            place = bundle.places[billing.clock]
            # A use without a price is not free: what uses of its day cost is not known.
            if place.span < 0 or not (bundle.fees or (bundle.fees is None and bundle.uses)):
                continue
            about = place.day, bundle.currency
            paid[about] = _add(paid.get(about, _NOTHING), bundle.fees)
        for (day, currency), fees in sorted(paid.items(), key=repr):
            yield Part(whole, day, None, None, None, fees, currency)

    def _figure(self, key: Key, parts: Sequence[Part], billing: Billing) -> Figure:
        """A cell's tokens, and its money after currency, discounts and rounding."""
        extra = billing.added.get(key, Figure(0, _NOTHING))
        tokens = _sum([*(part.tokens for part in parts), extra.tokens or 0])
        tokens = None if tokens is None else countable(int(tokens))
        if not self.currency:
            return Figure(tokens, None)
        if billing.rounding is None and not billing.discounts and all(p.currency == self.currency for p in parts):
            money = _sum(
                [*(part.money for part in parts), extra.money or _NOTHING, billing.off_list.get(key, _NOTHING)]
            )
            return Figure(tokens, None if money is None else payable(Decimal(money)))
        by_day: dict[date, Decimal | None] = defaultdict(Decimal)
        for part in parts:
            by_day[part.day] = _add(by_day[part.day], self._in_currency(key, part, billing))
        how = billing.rounding
        if how is not None and how.per == "day":
            by_day = {day: None if paid is None else rounded(paid, how) for day, paid in by_day.items()}
        money = _sum([*by_day.values(), extra.money or _NOTHING, billing.off_list.get(key, _NOTHING)])
        if money is not None and how is not None and how.per == "line":
            money = rounded(Decimal(money), how)
        return Figure(tokens, None if money is None else payable(Decimal(money)))

    def _in_currency(self, key: Key, part: Part, billing: Billing) -> Decimal | None:
        """What a part costs in the currency of the bill, after discounts."""
        paid = discounted(part, billing.discounts)
        if paid is None or part.currency is None:
            return None if paid is None or paid else paid
        return self.in_currency(key, part.day, paid, part.currency, billing)

    def in_currency(self, key: Key, day: date, paid: Decimal, currency: str, billing: Billing) -> Decimal | None:
        """An amount of a day of a cell in the currency of the bill; null where it has none, or no rate is known."""
        if self.currency is None:
            return None if paid else paid
        on = self.rate_day(key, day, billing.rates_on)
        if on is None:
            return None
        nearest = self.contract.rates_missing == "nearest_before"
        rate = self.rates.rate(currency, self.currency, on, nearest_before=nearest)
        return None if rate is None else converted(paid, rate)

    def more(self, key: Key, tokens: int, billing: Billing) -> list[Decimal]:
        """What so many tokens more may cost in a cell, like any that are there, in the currency of the bill.

        Nothing where the cell has several models that discounts, or several days that discounts or rates, tell apart.
        """
        if key.token_class is None:
            return []
        span = next((number for number, each in enumerate(self.spans) if each == (key.start, key.end)), -1)
        own = [each for each in billing.calls if each.places[billing.clock].span == span >= 0]
        own = own if key.model is None else [each for each in own if each.named == key.model]
        zone, models = self.contract.zone, {each.named for each in own}
        first, last = day_of(key.start, zone), last_day_of(key.start, key.end, zone)
        model = key.model if key.model is not None else (models.pop() if len(models) == 1 else None)
        found: list[Decimal] = []
        priced = {(each.price_id, each.currency) for each in own if each.price_id and each.currency}
        for row, currency in sorted(priced, key=repr):
            price = self.pricing.text_price(row, key.token_class)
            dated = currency != self.currency or any(each.first or each.end for each in billing.discounts)
            if price is None or (dated and first != last) or (billing.discounts and model is None):
                continue
            part = Part(key, first, model, key.token_class, tokens, price * tokens / MILLION, currency)
            paid = self._in_currency(key, part, billing)
            found += [] if paid is None or paid in found else [paid]
        return found

    def rate_day(self, key: Key, day: date, on: str) -> date | None:
        """The day whose rate converts a part; null where that is not known."""
        if on == "charge_day":
            return day
        if on == "period_end":
            return day_of(self.month_end - timedelta(microseconds=1), self.contract.zone)
        their = self.charged.get(key)
        return None if their is None else their.issued_on


def charged_calls(billing: Billing) -> Iterator[Bundle]:
    """The calls that are charged."""
    for bundle in billing.calls:
        if (billing.failed or not bundle.failed) and (billing.superseded or not bundle.superseded or bundle.failed):
            yield bundle


def _add(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def _sum(values: Sequence[Any]) -> Any:
    """The sum, unknown where any part of it is."""
    total: Any = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
