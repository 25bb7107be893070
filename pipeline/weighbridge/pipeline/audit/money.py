"""What the gaps of a cell cost, at the price each answer was priced at; exact, and null where any of it is unknown."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.audit.cell import Cell
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import AuditMeasure, Modality, TokenClass

_KEY = ["attempt_lo", "attempt_hi"]
_CLASS = {
    AuditMeasure.INPUT: TokenClass.INPUT_UNCACHED,
    AuditMeasure.OUTPUT: TokenClass.OUTPUT_VISIBLE,
    AuditMeasure.HIDDEN_REASONING: TokenClass.REASONING,
    AuditMeasure.UNCACHED_INPUT: TokenClass.INPUT_UNCACHED,
}
_MILLION = Decimal(1_000_000)


def at_stake(lake: Records, cell: Cell, rows: pl.DataFrame) -> tuple[Decimal | None, str | None]:
    """The gaps of these answers at their prices, and the currency.

    Null where an answer with a gap has no price, several prices or another currency: half a sum is no sum.

    Args:
        lake: amounts and prices.
        cell: whose answers they are.
        rows: attempt_lo, attempt_hi, day, gap.
    """
    off = rows.filter(pl.col("gap") != 0).select(*_KEY, "day", "gap")
    first, last = off["day"].min(), off["day"].max()
    if not isinstance(first, date) or not isinstance(last, date):
        return None, None
    amounts = lake.scan(
        "priced_amount", first=first, last=last + timedelta(days=3), columns=[*_KEY, "price_id", "report"]
    )
    paid = (
        amounts.filter(pl.col("report") == 0)
        .join(off.lazy().select(_KEY), on=_KEY, how="semi")
        .group_by(_KEY)
        .agg(price_id=pl.when(pl.col("price_id").n_unique() == 1).then(pl.col("price_id").min()))
        .collect()
    )
    per_token = _prices(lake, AuditMeasure(cell.measure), paid["price_id"].drop_nulls().unique())
    summed = off.join(paid, on=_KEY, how="left").group_by("price_id").agg(pl.col("gap").sum())
    total, currencies = Decimal(0), set()
    for price_id, gap in summed.iter_rows():
        found = per_token.get(price_id)
        if found is None:
            return None, None
        total += found[0] * gap
        currencies.add(found[1])
    return (total, currencies.pop()) if len(currencies) == 1 else (None, None)


def _prices(lake: Records, measure: AuditMeasure, ids: pl.Series) -> dict[str, tuple[Decimal, str]]:
    """Price id -> what a token of the gap costs; left out where a class has no price, or several."""
    wanted = [str(_CLASS[measure]), *([str(TokenClass.CACHE_READ)] if measure is AuditMeasure.UNCACHED_INPUT else [])]
    rows = lake.scan("price", columns=["price_id", "token_class", "modality", "per_million", "currency"]).filter(
        pl.col("price_id").is_in(ids.to_list()),
        pl.col("token_class").is_in(wanted),
        pl.col("modality") == str(Modality.TEXT),
        pl.col("per_million").is_not_null(),
    )
    held: dict[str, dict[str, list[tuple[Decimal, str]]]] = {}
    for price_id, token_class, _, price, currency in rows.collect().iter_rows():
        held.setdefault(price_id, {}).setdefault(token_class, []).append((price, currency))
    out = {}
    for price_id, classes in held.items():
        if len(classes) != len(wanted) or any(len(each) != 1 for each in classes.values()):
            continue
        price, currency = classes[wanted[0]][0]
        # What was charged as fresh would have cost the cached price.
        less = sum((classes[name][0][0] for name in wanted[1:]), Decimal(0))
        out[price_id] = ((price - less) / _MILLION, currency)
    return out
