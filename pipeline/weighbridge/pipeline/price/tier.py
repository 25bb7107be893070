"""Prices above a length of input: which of a row's prices hold for a reading of so many tokens.

    cliff     above the threshold every token pays the higher price: 200,001 x 2.5
    marginal  only the tokens beyond it do: 200,000 x 1.25 + 1 x 2.5

A row with tiers is some rows without: one for each *bracket* between two thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from weighbridge.pipeline.price.keys import PriceKey, digits
from weighbridge.schemas.enumerations import TierRule, TokenClass
from weighbridge.schemas.lattice import INPUT_CLASSES

# All of input, in the words of a price file and of the table.
ALL_INPUT = "input_total"


@dataclass(frozen=True, slots=True)
class Tier:
    """Prices above one length.

    Attributes:
        above: they hold where more tokens than this are counted.
        rule: which tokens pay them.
        counted: classes whose tokens count, in the order in which they are counted; empty: all of input, as reported.
        prices: (class, modality) -> price of a million tokens. What is not in it costs what it does below.
    """

    above: int
    rule: TierRule
    counted: tuple[TokenClass, ...]
    prices: Mapping[PriceKey, Decimal]

    @property
    def content(self) -> list[str]:
        """What makes two tiers different ones."""
        prices = sorted((*key, digits(value)) for key, value in self.prices.items())
        return ["above", str(self.above), self.rule, self.counts, *(part for item in prices for part in item)]

    @property
    def counts(self) -> str:
        """The classes that count, in one text."""
        return "+".join(self.counted) or ALL_INPUT


@dataclass(frozen=True, slots=True)
class Bracket:
    """What holds between two thresholds of a row.

    Attributes:
        beyond: it holds where more tokens than this are counted; -1 for the first.
        tier: the threshold of the highest tier that holds in it, 0 for none.
        prices: of the cells that have one.
    """

    beyond: int
    tier: int
    prices: Mapping[PriceKey, Decimal]


def brackets(prices: Mapping[PriceKey, Decimal], above: Sequence[Tier], limit: int | None) -> tuple[Bracket, ...]:
    """The brackets of a row, lowest first.

    Args:
        prices: those of the row itself.
        above: its tiers, lowest first.
        limit: beyond so many tokens its own prices do not hold; null: they always do.
    """
    turns = sorted({-1, *(tier.above for tier in above), *(() if limit is None else (limit,))})
    return tuple(_bracket(turn, prices, above, limit) for turn in turns)


def _bracket(beyond: int, prices: Mapping[PriceKey, Decimal], above: Sequence[Tier], limit: int | None) -> Bracket:
    held: dict[PriceKey, Decimal] = dict(prices) if limit is None or beyond < limit else {}
    highest = 0
    for tier in above:
        if tier.above <= beyond:
            held |= tier.prices
            highest = tier.above
    return Bracket(beyond, highest, held)


def counted_between(
    counted: Sequence[TokenClass], counts: Mapping[str, int | None], input_total: int | None
) -> tuple[int, int | None]:
    """The fewest and the most tokens of a reading that can count; null where there is no most."""
    if not counted:
        return (0, None) if input_total is None else (input_total, input_total)
    known = [counts.get(name) for name in counted]
    least = sum(count or 0 for count in known)
    if None not in known:
        return least, least
    if input_total is None:
        return least, None
    others = sum(counts.get(name) or 0 for name in INPUT_CLASSES if name not in counted)
    return least, input_total - others


def slices(
    row_brackets: Sequence[Bracket], counted: Sequence[TokenClass], counts: Mapping[str, int]
) -> list[dict[str, int]]:
    """How many tokens of each counted class lie in each bracket, filled up in the order in which they count."""
    out: list[dict[str, int]] = []
    ends: list[int | None] = [bracket.beyond for bracket in row_brackets[1:]]
    for bracket, end in zip(row_brackets, [*ends, None], strict=True):
        begin, before, inside = max(bracket.beyond, 0), 0, {}
        for name in counted:
            after = before + counts[name]
            stop = after if end is None else min(after, end)
            inside[str(name)] = max(stop - max(before, begin), 0)
            before = after
        out.append(inside)
    return out
