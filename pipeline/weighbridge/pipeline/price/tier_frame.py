"""Readings of one price row in its brackets: the rules of `tier` and `amount`, for a whole frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import polars as pl

from weighbridge.pipeline.price.amount import OBSTACLES
from weighbridge.pipeline.price.bill import AMOUNTS, COUNTS, MONEY, TOKENS, bill, unpriced
from weighbridge.pipeline.price.fee_frame import charged
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import PriceStatus
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES

_RANKS = {str(status): rank for rank, status in enumerate(OBSTACLES)}
_NONE = pl.lit(0).cast(TOKENS)
_COMMON = (*AMOUNTS, "amount_fees", "price_tier")


def in_brackets(readings: pl.DataFrame, row: PriceRow) -> pl.DataFrame:
    """The readings priced, each in the bracket it lies in; they have the columns of `fee_frame.with_fees`."""
    if len(row.brackets) == 1:
        return _in_bracket(readings, row, 0)
    fewest, most = _counted_between(row)
    low, high = _bracket_of(row, fewest), _bracket_of(row, most)
    placed = readings.with_columns(_low=low, _high=pl.max_horizontal(low, high))
    exact = (fewest == most).fill_null(value=False)
    by_input = pl.col("input_total").is_null()
    placed = placed.with_columns(_exact=exact, _untold=by_input)
    priced = []
    names = ["_low", "_high", "_exact", "_untold"]
    for (low, high, sure, untold), part in placed.partition_by(names, as_dict=True, include_key=False).items():
        otherwise = PriceStatus.NO_COUNTS if untold else PriceStatus.SPLIT_UNKNOWN
        if row.marginal and high:
            priced.append(_in_slices(part, row, int(high)) if sure else _unpriced(part, otherwise))
        else:
            priced.append(agreed([_in_bracket(part, row, at) for at in range(int(low), int(high) + 1)], otherwise))
    return pl.concat(priced) if priced else _in_bracket(readings, row, 0)


def agreed(priced: Sequence[pl.DataFrame], otherwise: PriceStatus) -> pl.DataFrame:
    """What readings cost where each of these may be it, row by row: as `amount.agreed`."""
    first, *others = priced
    if not others:
        return first
    told = first
    named = [name for name in ("currency",) if name in first.columns]
    for number, other in enumerate(others):
        names = (*_COMMON, "amount", "status", *named)
        told = told.with_columns(other.select(pl.col(names).name.suffix(f"_{number}")))

    def alike(names: Sequence[str]) -> pl.Expr:
        numbers = range(len(others))
        return pl.all_horizontal(
            pl.col(name).eq_missing(pl.col(f"{name}_{number}")) for name in names for number in numbers
        )

    same = alike(["amount", "status", *named])
    common = [pl.when(alike([name])).then(name).alias(name) for name in (*_COMMON, *named)]
    unsure = [pl.when(same).then(name).alias(name) for name in ("price_id",) if name in first.columns]
    out = told.with_columns(
        *common,
        *unsure,
        amount=pl.when(same).then("amount"),
        status=pl.when(same).then("status").otherwise(pl.lit(str(otherwise))),
    )
    return out.select(first.columns)


def _counted_between(row: PriceRow) -> tuple[pl.Expr, pl.Expr]:
    """The fewest and the most tokens that can count; null where there is no most."""
    total = pl.col("input_total").cast(TOKENS)
    if not row.counted:
        return total.fill_null(0), total
    least = reduce(add, (_tokens(name) for name in row.counted))
    others = [_tokens(name) for name in INPUT_CLASSES if name not in row.counted]
    most = total - reduce(add, others, pl.lit(0, dtype=TOKENS))
    known = pl.all_horizontal(pl.col(name).is_not_null() for name in row.counted)
    return least, pl.when(known).then(least).otherwise(most)


def _tokens(name: str) -> pl.Expr:
    return pl.col(name).fill_null(0).cast(TOKENS)


def _bracket_of(row: PriceRow, counted: pl.Expr) -> pl.Expr:
    below = [(counted > bracket.beyond).cast(pl.Int64) for bracket in row.brackets[1:]]
    return reduce(add, below, pl.lit(0, dtype=pl.Int64)).fill_null(len(row.brackets) - 1)


def _in_bracket(readings: pl.DataFrame, row: PriceRow, at: int) -> pl.DataFrame:
    bracket = row.brackets[at]
    if not bracket.prices:
        return _unpriced(readings, PriceStatus.CLASS_UNPRICED)
    return charged(bill(row.within(bracket)).of(_tiered(readings, row, at)))


def _unpriced(readings: pl.DataFrame, status: PriceStatus) -> pl.DataFrame:
    nothing = pl.lit(None, dtype=pl.Int64).alias("price_tier")
    return charged(unpriced(status).of(readings.with_columns(nothing)))


def _tiered(readings: pl.DataFrame, row: PriceRow, at: int) -> pl.DataFrame:
    tier = row.brackets[at].tier if row.above else None
    return readings.with_columns(price_tier=pl.lit(tier, dtype=pl.Int64))


def _in_slices(readings: pl.DataFrame, row: PriceRow, highest: int) -> pl.DataFrame:
    """Readings that reach into this bracket, slice by slice; all that counts is known of them."""
    counted = [str(name) for name in row.counted]
    mixed = [cell.name for cell in CROSSED_CELLS if cell.token_class in row.counted]
    negative = pl.any_horizontal(pl.col(name) < 0 for name in counted)
    several = pl.any_horizontal((pl.col(name).fill_null(0) != 0) for name in mixed) if mixed else pl.lit(value=False)
    out = []
    marked = readings.with_columns(_negative=negative, _several=several)
    for (below, split), part in marked.partition_by("_negative", "_several", as_dict=True, include_key=False).items():
        if below or split:
            told = PriceStatus.CONTRADICTORY if below else PriceStatus.SPLIT_UNKNOWN
            out.append(_unpriced(part, told))
        else:
            out.append(_added(part, row, highest, [*counted, *mixed]))
    return pl.concat(out)


def _added(readings: pl.DataFrame, row: PriceRow, highest: int, own: list[str]) -> pl.DataFrame:
    """The sum of the slices of readings, each a bill of its own."""
    counts = readings.with_columns(pl.col(COUNTS).cast(TOKENS))
    before: dict[str, pl.Expr] = {}
    so_far = _NONE
    for name in row.counted:
        before[str(name)] = so_far
        so_far = so_far + pl.col(name)
    kept = reduce(add, (pl.col(name) for name in row.counted))
    slices = []
    ends = [bracket.beyond for bracket in row.brackets[1:]]
    for at, (bracket, end) in enumerate(zip(row.brackets, [*ends, None], strict=True)):
        begin = max(bracket.beyond, 0)
        inside = [_between(before[str(name)], pl.col(name), begin, end).alias(str(name)) for name in row.counted]
        part = counts.with_columns(_whole=kept).with_columns(inside)
        if at == 0:
            part = part.with_columns(input_total=pl.col("input_total") - (pl.col("_whole") - kept))
        else:
            part = part.with_columns(_NONE.alias(name) for name in COUNTS if name not in own)
            part = part.with_columns(input_total=kept)
        slices.append(bill(row.within(bracket)).of(part))
    first, *others = slices
    numbers = range(len(others))
    for number, other in enumerate(others):
        first = first.with_columns(other.select(pl.col(*AMOUNTS, "amount", "status").name.suffix(f"_{number}")))
    ranks = (
        pl.col(name).replace_strict(_RANKS, default=len(_RANKS), return_dtype=pl.Int64)
        for name in ("status", *(f"status_{number}" for number in numbers))
    )
    worst = pl.min_horizontal(*ranks).replace_strict(
        {rank: name for name, rank in _RANKS.items()}, default=str(PriceStatus.PRICED), return_dtype=pl.String
    )
    sums = [
        reduce(add, (pl.col(f"{name}_{number}") for number in numbers), pl.col(name)).cast(MONEY).alias(name)
        for name in (*AMOUNTS, "amount")
    ]
    summed = first.with_columns(*sums, status=worst)
    return charged(_tiered(readings.with_columns(summed.select("status", "dark", *AMOUNTS, "amount")), row, highest))


def _between(before: pl.Expr, count: pl.Expr, begin: int, end: int | None) -> pl.Expr:
    """How many of `count` tokens, after those before them, lie between two thresholds."""
    after = before + count
    stop = after if end is None else pl.min_horizontal(after, pl.lit(end).cast(TOKENS))
    inside = stop - pl.max_horizontal(before, pl.lit(begin).cast(TOKENS))
    return pl.max_horizontal(inside, _NONE)
