"""Calls whose reports contradict themselves, by cell, with the limits of what they may have been charged.

They have no counts, so they are in no sum. What their leaves add up to is more than any reading of them could count,
and the dearest price of their model on their day more than a token of theirs could cost: up to that, and from nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weighbridge.pipeline.invoice.cells import Grouping
from weighbridge.pipeline.invoice.ledger import MILLION
from weighbridge.pipeline.invoice.ours.prices import Pricing
from weighbridge.pipeline.invoice.sides import Spoiled
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey


def limits(
    calls: pl.DataFrame, grouping: Grouping, spans: Sequence[Span], pricing: Pricing
) -> dict[tuple[Span, str | None], Spoiled]:
    """(period, model; null where cells name none) -> its contradictory calls; those that failed are in none.

    Args:
        calls: rows of `usage.contradictory_calls`.
        grouping, spans: the cells.
        pricing: the price book.
    """
    found: dict[tuple[Span, str | None], Spoiled] = {}
    starts = [start for start, _ in spans]
    for row in calls.filter(~pl.col("failed")).iter_rows(named=True):
        place = bisect_right(starts, row["at"]) - 1
        if place < 0 or row["at"] >= spans[place][1]:
            continue
        about = spans[place], row["named"] if "model" in grouping.named else None
        one = _limit(row, pricing)
        found[about] = one if about not in found else both(found[about], one)
    return found


def _limit(row: Mapping[str, Any], pricing: Pricing) -> Spoiled:
    rows = [each for each in pricing.serving([(row["provider"], row["model"])]) if each.holds_on(row["day"])]
    prices = [price for each in rows for bracket in each.brackets for price in bracket.prices.values()]
    currencies = {each.currency for each in rows}
    known = row["most"] is not None and len(currencies) == 1 and bool(prices)
    return Spoiled(
        1, row["most"], max(prices) * row["most"] / MILLION if known else None,
        currencies.pop() if known else None, (AttemptKey(row["attempt_hi"], row["attempt_lo"]).to_hex(),),
        (row["segment"],) if row["segment"] else (),
    )  # fmt: skip


def both(one: Spoiled, other: Spoiled) -> Spoiled:
    """Two lots of contradictory calls as one."""
    same = one.currency == other.currency and None not in {one.money, other.money}
    money = one.money + other.money if same and one.money is not None and other.money is not None else None
    return Spoiled(
        one.calls + other.calls,
        None if one.tokens is None or other.tokens is None else one.tokens + other.tokens,
        money,
        one.currency if same else None,
        tuple(sorted({*one.attempts, *other.attempts}))[:EVIDENCE_ROWS],
        tuple(sorted({*one.segments, *other.segments}))[:EVIDENCE_ROWS],
    )
