"""Why one month comes to another figure than another, or than itself in the lake: exact parts that add up.

    difference = prices + traffic + mix + rules + data

Of two months:
    rules     the earlier month's reports read by the later one's dialects, at its own prices, less what they cost
    traffic   that amount times the change of tokens, rounded half-even to 18 places
    prices    what the later month's reports cost, less what they would have cost at the earlier month's prices
    mix       what is left: other models, classes, tenants and sizes for the same number of tokens
    data      adjustments booked in either month, and rows that were erased from a close

Of one month in two places, report by report: prices and rules as they differ, data as it came, was revised or went.
Amounts that are unknown are in no part; how many reports have none is told beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from weighbridge.pipeline.close.exact import EXACT, NOTHING, total
from weighbridge.pipeline.close.one_month import one_month
from weighbridge.pipeline.close.parts import NAMES, Parts
from weighbridge.pipeline.close.side import CLASS_NAMES, Side, less, plus
from weighbridge.pipeline.close.two_months import two_months

ADJUSTED = "adjustments"


@dataclass(frozen=True, slots=True)
class MoneyPart:
    """The amounts of one currency.

    Attributes:
        before, after: usage, and the adjustments booked in the month.
        parts: part -> amount; they add up to the difference.
    """

    currency: str
    before: Decimal
    after: Decimal
    parts: Mapping[str, Decimal]

    @property
    def difference(self) -> Decimal:
        """after - before."""
        return EXACT.subtract(self.after, self.before)


@dataclass(frozen=True, slots=True)
class TokenPart:
    """The tokens of one class; `adjustments` is what was booked for other months, which is in no class.

    Attributes:
        before, after: tokens.
        parts: part -> tokens; they add up to the difference.
    """

    token_class: str
    before: int
    after: int
    parts: Mapping[str, int]

    @property
    def difference(self) -> int:
        """after - before."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class ModelPart:
    """What one model costs.

    Attributes:
        before, after: its usage.
        prices: what prices alone changed of that.
    """

    provider: str
    model: str
    currency: str
    before: Decimal
    after: Decimal
    prices: Decimal


@dataclass(frozen=True, slots=True)
class MonthDifference:
    """How two months, or one month in two places, are apart.

    Attributes:
        before, after: what they are called.
        money: by currency.
        tokens: by class.
        models: by provider, model and currency, the largest difference first.
        unpriced: reports of unknown amount, before and after.
        notes: what the parts leave open.
    """

    before: str
    after: str
    money: tuple[MoneyPart, ...]
    tokens: tuple[TokenPart, ...]
    models: tuple[ModelPart, ...]
    unpriced: tuple[int, int]
    notes: tuple[str, ...] = ()


def diff(before: Side, after: Side) -> MonthDifference:
    """Explain the difference of two sides.

    Raises:
        DamagedError: the rows of a pack cannot be read, or its pins cannot be used; verify it.
    """
    parts = one_month(before, after) if before.period == after.period else two_months(before, after)
    parts.add_money("data", less(after.adjustments(), before.adjustments()))
    return MonthDifference(
        before.name,
        after.name,
        tuple(_money(before, after, parts)),
        tuple(_tokens(before, after, parts)),
        tuple(_models(before, after, parts)),
        (before.unpriced(), after.unpriced()),
        tuple(parts.notes),
    )


def _money(before: Side, after: Side, parts: Parts) -> list[MoneyPart]:
    one, other = (plus(side.amounts(), side.adjustments()) for side in (before, after))
    names = sorted({*one, *other, *(name for part in parts.money.values() for name in part)})
    found = [
        MoneyPart(
            name,
            one.get(name, NOTHING),
            other.get(name, NOTHING),
            {part: parts.money[part].get(name, NOTHING) for part in NAMES},
        )
        for name in names
    ]
    assert all(total(each.parts.values()) == each.difference for each in found), "the parts of an amount add up"
    return found


def _tokens(before: Side, after: Side, parts: Parts) -> list[TokenPart]:
    one, other = before.tokens(), after.tokens()
    found = [
        TokenPart(name, one[name], other[name], {part: parts.tokens[part].get(name, 0) for part in NAMES})
        for name in CLASS_NAMES
    ]
    booked = (before.adjusted_tokens(), after.adjusted_tokens())
    found.append(TokenPart(ADJUSTED, *booked, {p: booked[1] - booked[0] if p == "data" else 0 for p in NAMES}))
    assert all(sum(each.parts.values()) == each.difference for each in found), "the parts of tokens add up"
    return found


def _models(before: Side, after: Side, parts: Parts) -> list[ModelPart]:
    one, other = before.by_model(), after.by_model()
    found = [
        ModelPart(*line, one.get(line, NOTHING), other.get(line, NOTHING), parts.models.get(line, NOTHING))
        for line in sorted({*one, *other})
    ]
    return sorted(found, key=lambda each: -abs(each.after - each.before))
