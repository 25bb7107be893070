"""What is different between two price books, line by line, and what that changes on the amounts of a month.

A line is a provider, the text its models are matched with, the terms, and the day it begins. What both books have is
held against each other price by price: those of the row, those above lengths of input, and charges by use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Decimal
from enum import StrEnum
from typing import NamedTuple

from weighbridge.pipeline.price.keys import cell_name
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.terms import Terms

_Line = tuple[str, str, str, Terms, date | None]


class Change(StrEnum):
    """What became of a price."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    TERMS = "terms"  # no price: a limit, a day, a rule, a currency


@dataclass(frozen=True, slots=True)
class PriceDifference:
    """One difference.

    Attributes:
        change: what became of it.
        provider, match, model, terms, valid_from: the line.
        item: the priced cell, `fee ...`, `... above N`, or what else changed; empty for a whole line.
        before, after: the figures as they are written; null where there is none.
        percent: how much more it is than before, to two places (half to even); null where nothing can be said.
    """

    change: Change
    provider: str
    match: str
    model: str
    terms: str
    valid_from: date | None
    item: str = ""
    before: str | None = None
    after: str | None = None
    percent: Decimal | None = None


class Unclaimed(NamedTuple):
    """How many models of a provider only one book has a row of: removed where the second lacks them, added else."""

    change: Change
    provider: str
    models: int


def rows_on(rows: Iterable[PriceRow], day: date | None) -> list[PriceRow]:
    """The rows that hold on a day, without the days they hold on; all as they are where null."""
    return [row for row in rows if day is None or row.holds_on(day)]


def differences(before: Iterable[PriceRow], after: Iterable[PriceRow], *, dated: bool = True) -> list[PriceDifference]:
    """Every difference, in the order of the lines.

    Args:
        before, after: rows of two books.
        dated: whether a line that begins on another day is another line; else it is the same one, as for two days.
    """
    one, other = (_by_line(rows, dated=dated) for rows in (before, after))
    found: list[PriceDifference] = []
    for line in sorted(one.keys() | other.keys(), key=_order):
        left, right = one.get(line), other.get(line)
        if left is None or right is None:
            found.append(_differs(line, Change.REMOVED if right is None else Change.ADDED))
        elif left.price_id != right.price_id:
            found += _changed(line, left, right)
    return found


def claimed_by_both(
    found: Iterable[PriceDifference], before: Iterable[PriceRow], after: Iterable[PriceRow]
) -> tuple[list[PriceDifference], list[Unclaimed]]:
    """The differences of models that both books have a row of, and how many models only one of them has.

    A file of a few models says nothing of all others, so that it lacks them is no difference of prices.

    Args:
        found: what `differences` gives.
        before, after: the same rows.
    """
    one, other = ({(row.provider, str(row.match), row.model) for row in rows} for rows in (before, after))
    shared = [each for each in found if (each.provider, each.match, each.model) in one & other]
    counts = Counter((provider, Change.REMOVED) for provider, *_ in one - other)
    counts.update((provider, Change.ADDED) for provider, *_ in other - one)
    return shared, [Unclaimed(change, provider, models) for (provider, change), models in sorted(counts.items())]


def _by_line(rows: Iterable[PriceRow], *, dated: bool) -> dict[_Line, PriceRow]:
    out: dict[_Line, PriceRow] = {}
    for row in rows:
        # Of two rows of one line the first goes before: an own file before the shipped book, as in finding.
        out.setdefault((row.provider, row.match, row.model, row.terms, row.valid_from if dated else None), row)
    return out


def _order(line: _Line) -> tuple[str, ...]:
    return (*line[:3], str(line[3]), str(line[4] or ""))


def _changed(line: _Line, before: PriceRow, after: PriceRow) -> Iterator[PriceDifference]:
    one, other = _figures(before), _figures(after)
    for item in sorted(one.keys() | other.keys()):
        old, new = one.get(item), other.get(item)
        if old != new:
            change = Change.ADDED if old is None else Change.REMOVED if new is None else Change.CHANGED
            yield _differs(line, change, item, old, new)
    left, right = _beside(before), _beside(after)
    for item in left:
        if left[item] != right[item]:
            yield PriceDifference(Change.TERMS, *_named(line), item, left[item], right[item])


def _figures(row: PriceRow) -> dict[str, Decimal]:
    out = {cell_name(cell): price for cell, price in row.prices.items()}
    out |= {f"{cell_name(cell)} above {t.above}": price for t in row.above for cell, price in t.prices.items()}
    return out | {f"fee {kind}": price for kind, price in row.fees.items()}


def _beside(row: PriceRow) -> dict[str, str | None]:
    rules = sorted({f"{tier.rule} of {tier.counts}" for tier in row.above})
    facts: Mapping[str, object] = {
        "currency": row.currency,
        "up_to_input_tokens": row.up_to_input_tokens,
        "valid_to": row.valid_to,
        "above": ", ".join(rules) or None,
    }
    return {name: None if fact is None else str(fact) for name, fact in facts.items()}


def _named(line: _Line) -> tuple[str, str, str, str, date | None]:
    return line[0], str(line[1]), line[2], str(line[3]), line[4]


def _differs(
    line: _Line, change: Change, item: str = "", old: Decimal | None = None, new: Decimal | None = None
) -> PriceDifference:
    percent = None
    if old and new is not None:
        percent = ((new - old) * 100 / old).quantize(Decimal("0.01"), rounding=ROUND_HALF_EVEN)
    told, now = (None if each is None else format(each, "f") for each in (old, new))
    return PriceDifference(change, *_named(line), item, told, now, percent)
