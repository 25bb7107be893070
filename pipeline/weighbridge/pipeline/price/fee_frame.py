"""What is charged by use, for readings of one price row: the arithmetic of `fee`, for a whole frame."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.price.amount import OBSTACLES
from weighbridge.pipeline.price.bill import AMOUNTS, MONEY, TOKENS, uncounted
from weighbridge.pipeline.price.bounds import EXACT, LARGEST_MONEY, within
from weighbridge.pipeline.price.fee import SIZED
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import FeeKind, PriceStatus, Verdict

USED = ("fee_kinds", "fee_counts")
_RANKS = {str(status): rank for rank, status in enumerate(OBSTACLES)}
_PRICED = len(OBSTACLES)
# Amounts below this add up to one that fits.
_NEAR = float(LARGEST_MONEY) / 10


def with_fees(readings: pl.DataFrame, row: PriceRow) -> pl.DataFrame:
    """The readings with `amount_fees`, and with `in_the_way`: why they are not known; null where they are."""
    none = readings.with_columns(amount_fees=pl.lit(Decimal(0), dtype=MONEY), in_the_way=pl.lit(None, dtype=pl.String))
    uses = _uses(readings, row)
    if uses.is_empty():
        return none
    prices = pl.DataFrame(
        {"kind": [str(kind) for kind in row.fees], "each": [price.scaleb(-3) for price in row.fees.values()]},
        schema={"kind": pl.String, "each": MONEY},
    )
    uses = uses.join(prices, on="kind", how="left", maintain_order="left")
    negative, bare = (pl.col("count") < 0).any(), (pl.col("each").is_null() & (pl.col("count") != 0)).any()
    contradictory, bare_fee = (pl.lit(str(each)) for each in (PriceStatus.CONTRADICTORY, PriceStatus.FEE_UNPRICED))
    obstacle = pl.when(negative).then(contradictory).otherwise(pl.when(bare).then(bare_fee))
    uses = uses.with_columns(in_the_way=obstacle.over("_at"))
    known = uses.filter(pl.col("in_the_way").is_null())
    _fit(known)
    cost = (pl.col("count").cast(TOKENS) * pl.col("each")).sum().cast(MONEY)
    costs = known.group_by("_at").agg(cost.alias("amount_fees"))
    of_rows = uses.select("_at", "in_the_way").unique().join(costs, on="_at", how="left")
    found = readings.with_row_index("_at").join(of_rows.with_columns(found=True), on="_at", how="left")
    zero = pl.when(pl.col("found").is_null()).then(pl.lit(Decimal(0), dtype=MONEY)).otherwise("amount_fees")
    return found.sort("_at").with_columns(amount_fees=zero).drop("_at", "found")


def charged(billed: pl.DataFrame) -> pl.DataFrame:
    """Billed readings with their fees in `amount`, `status` and the classes (columns of `Bill.of` and `with_fees`)."""
    dark = pl.col("dark")
    ranks = (
        pl.col(name).replace_strict(_RANKS, default=_PRICED, return_dtype=pl.Int64) for name in ("status", "in_the_way")
    )
    worst = pl.min_horizontal(*ranks).replace_strict(
        dict(enumerate(map(str, OBSTACLES))), default=str(PriceStatus.PRICED), return_dtype=pl.String
    )
    status = pl.when(dark).then("status").otherwise(worst)
    billed = billed.with_columns(status=status)
    out = dark | (pl.col("status") == str(PriceStatus.CONTRADICTORY))
    billed = billed.with_columns(
        *(pl.when(~out).then(name).alias(name) for name in (*AMOUNTS, "amount_fees", "price_tier")), dark=out
    )
    whole = pl.col("amount") + pl.col("amount_fees")
    priced = pl.col("status") == str(PriceStatus.PRICED)
    for tokens, fees in _large(billed, priced, ("amount", "amount_fees")).iter_rows():
        within(EXACT.add(tokens, fees), "costs of a reading")
    billed = billed.with_columns(amount=pl.when(priced).then(whole))
    # However a reading was billed, its columns stand in one order.
    return billed.select(sorted(billed.columns))


def _large(rows: pl.DataFrame, where: pl.Expr, columns: tuple[str, str]) -> pl.DataFrame:
    """Those of which either column may lie near what a column of money holds; all fit where there are none."""
    near = pl.any_horizontal(pl.col(name).cast(pl.Float64).abs() > _NEAR for name in columns)
    return rows.filter(where & near).select(columns)


def _fit(uses: pl.DataFrame) -> None:
    """Every reading's fees are an amount that the lake holds; the sums of a frame would wrap or stop without a cure."""
    rough = pl.col("count").cast(pl.Float64) * pl.col("each").cast(pl.Float64)
    near = uses.filter(rough.sum().over("_at") > _NEAR)
    totals: dict[int, Decimal] = {}
    for at, count, each in near.select("_at", "count", "each").iter_rows():
        cost = EXACT.multiply(Decimal(count), each or Decimal(0))
        totals[at] = EXACT.add(totals.get(at, Decimal(0)), cost)
    for total in totals.values():
        within(total, "fees of a reading")


def _uses(readings: pl.DataFrame, row: PriceRow) -> pl.DataFrame:
    """_at, kind, count: each use of each reading that is one, with the request itself where it has a price."""
    # Of a reading nothing of which is priced, no fee is, and none of its counts is a fault.
    nothing = uncounted() | (pl.col("verdict") == str(Verdict.CONTRADICTORY))
    numbered = readings.select("child", *USED, nothing=nothing.fill_null(value=False)).with_row_index("_at")
    told = numbered.filter((pl.col("fee_kinds").list.len() > 0) & ~pl.col("nothing"))
    uses = told.select("_at", pl.col("fee_kinds").alias("kind"), pl.col("fee_counts").alias("count")).explode(
        "kind", "count"
    )
    schema = uses.schema
    own: list[pl.DataFrame] = [uses]
    wholes = numbered.filter(pl.col("child") == 0)
    if FeeKind.REQUEST in row.fees:
        own.append(_one(wholes, FeeKind.REQUEST, schema))
    sized: Sequence[FeeKind] = [kind for kind in SIZED if kind in row.fees]
    if sized:
        named = uses.filter(pl.col("kind").is_in([str(kind) for kind in SIZED]) & (pl.col("count") != 0))
        unsized = wholes.join(named.select("_at").unique(), on="_at", how="anti")
        same = len(sized) == len(SIZED) and len({row.fees[kind] for kind in sized}) == 1
        # A kind that no row prices stands for the request whose size was not told.
        own.append(_one(unsized, SIZED[0] if same else "", schema))
    return pl.concat(own)


def _one(readings: pl.DataFrame, kind: str, schema: pl.Schema) -> pl.DataFrame:
    one = readings.select("_at", kind=pl.lit(str(kind)), count=pl.lit(1, dtype=pl.Int64))
    return one.cast(dict(schema))  # type: ignore[arg-type]
