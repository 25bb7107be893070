"""What the parts of gaps cost, exactly, or null where that is not known.

Repeated reports, and reports of attempts that no agent saw, cost what those very reports were priced at. Every other
part costs its tokens at the price its class has in the row of the price book that priced the attempt's report. An
attempt without a report takes the row that prices its model that day, if one was used in the lake and fits alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.table import price_rows
from weighbridge.pipeline.price.terms import Terms
from weighbridge.pipeline.reconcile.found.tally import MONEY
from weighbridge.pipeline.reconcile.frames import KEY, collected, frame_of
from weighbridge.pipeline.reconcile.match import reports
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.schemas.enumerations import Direction, Modality, TokenClass
from weighbridge.schemas.lattice import INPUT_CLASSES, OUTPUT_CLASSES

REPORT = (*KEY, "source", "child", "report")
_AMOUNTS = tuple(f"amount_{name}" for name in (*INPUT_CLASSES, *OUTPUT_CLASSES))
PRICED_READ = (*REPORT, "price_id", "price_tier", "currency", "amount", "amount_fees", *_AMOUNTS)
AGAIN = "duplicate_report"
# Causes whose tokens are whole reports: repetitions, and reports of attempts that nobody here observed.
WHOLE_REPORTS = (AGAIN, "capture_gap", "retry", "fallback", "speculative_request")
LIMITS = {
    **dict.fromkeys(KEY, pl.Int64()),
    "direction": pl.String(),
    **dict.fromkeys(("residual_amount", "residual_low", "residual_high"), MONEY),
    "residual_currency": pl.String(),
}
_MILLION = Decimal(10) ** 6


@dataclass(frozen=True, slots=True)
class Prices:
    """The rows of the price book that priced anything in the lake."""

    rows: Mapping[str, PriceRow]
    _found: dict[tuple[str, str, date], PriceRow | None] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Records, used: Iterable[str]) -> Prices:
        """From the tables of prices, only those whose id is among `used`."""
        return cls(price_rows(records, set(used)))

    def find(self, provider: str | None, model: str | None, day: date) -> PriceRow | None:
        """The one used row that is for this model on this day; null where none is, or several fit equally well."""
        if provider is None or model is None:
            return None
        place = (provider, model, day)
        if place not in self._found:
            plain = [r for r in self.rows.values() if r.provider == provider and r.terms == Terms()]
            fit = [r for r in plain if r.serves(model) and r.holds_on(day)]
            most = max((row.specificity for row in fit), default=None)
            best = [row for row in fit if row.specificity == most]
            self._found[place] = best[0] if len(best) == 1 else None
        return self._found[place]


def priced(parts: pl.DataFrame, readings: pl.DataFrame, amounts: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """The parts with `amount` and `currency`.

    Args:
        parts: `rows.parts`.
        readings: rows of `reading` about the attempts of the parts.
        amounts: rows of `priced_amount` about them, with at least `PRICED_READ`.
        prices: the rows of the book.
    """
    if parts.is_empty():
        return parts.with_columns(amount=pl.lit(None, dtype=MONEY), currency=pl.lit(None, dtype=pl.String))
    whole = pl.col("cause").is_in(WHOLE_REPORTS)
    if parts.filter(whole).is_empty():
        return _by_class(parts, amounts, prices)
    reports_of = parts.filter(whole).with_columns(again=pl.col("cause") == AGAIN)
    by_report = reports_of.join(
        _of_reports(readings, amounts), on=[*KEY, "direction", "again"], how="left", maintain_order="left"
    )
    return pl.concat([by_report.drop("again"), _by_class(parts.filter(~whole), amounts, prices)])


_NO_LIMITS = pl.DataFrame(
    schema=dict.fromkeys(KEY, pl.Int64())
    | {"direction": pl.String(), "residual_low": MONEY, "residual_high": MONEY, "residual_currency": pl.String()}
    | {"residual_amount": MONEY}
)


def limits(left: pl.DataFrame, amounts: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """What residuals may cost: their class is not known, so from the cheapest class their price row has to the dearest.

    Args:
        left: `KEY`, day, direction, provider, model, residual, input_size of rows with a residual.
        amounts: rows of `priced_amount` about them, with at least `PRICED_READ`.
        prices: the rows of the book.

    Returns:
        `KEY`, direction, residual_amount (null where low and high differ), residual_low, residual_high,
        residual_currency; all null where no price is known.
    """
    if left.is_empty():
        return _NO_LIMITS
    shown: list[pl.DataFrame] = []
    for direction, classes in ((Direction.INPUT, INPUT_CLASSES), (Direction.OUTPUT, OUTPUT_CLASSES)):
        own = left.filter(pl.col("direction") == str(direction)).rename({"residual": "tokens"})
        shown += [own.with_columns(priced_as=pl.lit(str(token_class))) for token_class in classes]
    known = (
        _by_class(pl.concat(shown), amounts, prices)
        .group_by(*KEY, "direction")
        .agg(
            residual_low=pl.col("amount").min(),
            residual_high=pl.col("amount").max(),
            residual_currency=pl.col("currency").min(),
        )
    )
    one = pl.col("residual_low") == pl.col("residual_high")
    return known.with_columns(residual_amount=pl.when(one).then("residual_low")).select(list(LIMITS))


def _of_reports(readings: pl.DataFrame, amounts: pl.DataFrame) -> pl.DataFrame:
    """Per attempt and direction the cost of the reports that are repetitions (`again`), and of those that are not."""
    marked = collected(by_recipe(reports.marked, frame_of(readings))).select(*REPORT, "again")
    sides = _by_direction(marked.join(amounts, on=list(REPORT), how="left"))
    known = (pl.col("amount").null_count() == 0) & (pl.col("currency").n_unique() == 1)
    return (
        sides.group_by(*KEY, "direction", "again")
        .agg(known=known, amount=pl.col("amount").sum(), currency=pl.col("currency").min())
        .select(
            *KEY,
            "direction",
            "again",
            amount=pl.when("known").then("amount"),
            currency=pl.when("known").then("currency"),
        )
    )


def _by_direction(amounts: pl.DataFrame) -> pl.DataFrame:
    """The cost of each report by direction: the sum of its classes, or what the other direction leaves."""
    sums = {
        direction: pl.sum_horizontal(f"amount_{name}" for name in classes)
        for direction, classes in ((Direction.INPUT, INPUT_CLASSES), (Direction.OUTPUT, OUTPUT_CLASSES))
    }
    full = {
        direction: pl.all_horizontal(pl.col(f"amount_{name}").is_not_null() for name in classes)
        for direction, classes in ((Direction.INPUT, INPUT_CLASSES), (Direction.OUTPUT, OUTPUT_CLASSES))
    }
    out = []
    for direction, other in ((Direction.INPUT, Direction.OUTPUT), (Direction.OUTPUT, Direction.INPUT)):
        # What was charged by use is of neither direction.
        tokens = pl.col("amount") - pl.col("amount_fees").fill_null(0)
        rest = pl.when(full[other]).then(tokens - sums[other])
        cost = pl.when(full[direction]).then(sums[direction]).otherwise(rest)
        out.append(amounts.select(*KEY, "again", "currency", direction=pl.lit(str(direction)), amount=cost.cast(MONEY)))
    return pl.concat(out)


def _by_class(parts: pl.DataFrame, amounts: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """Tokens at the price of their class."""
    alone = (pl.col("price_id").n_unique() == 1) & (pl.col("price_tier").n_unique() == 1)
    rows = amounts.group_by(KEY).agg(pl.when(alone).then(pl.col(name).min()) for name in ("price_id", "price_tier"))
    named = parts.join(rows, on=list(KEY), how="left", maintain_order="left")
    place = ["price_id", "price_tier", "provider", "model", "day", "priced_as"]
    cells = named.select(place).unique()
    known = [_price(cell, prices) for cell in cells.iter_rows(named=True)]
    schema = {"per_million": MONEY, "currency": pl.String(), "up_to": pl.Int64()}
    table = pl.concat([cells, pl.DataFrame(known, schema=schema, orient="row")], how="horizontal")
    found = named.join(table, on=place, how="left", nulls_equal=True, maintain_order="left")
    fits = pl.col("up_to").is_null() | (pl.col("input_size") <= pl.col("up_to")).fill_null(value=False)
    usable = fits & pl.col("tokens").is_not_null()
    cost = pl.col("tokens").cast(pl.Decimal(38, 0)) * pl.col("per_million") / pl.lit(_MILLION, dtype=pl.Decimal(38, 0))
    return found.with_columns(
        amount=pl.when(usable).then(cost.cast(MONEY)),
        currency=pl.when(usable & pl.col("per_million").is_not_null()).then("currency"),
    ).select(*parts.columns, "amount", "currency")


def _price(cell: Mapping[str, Any], prices: Prices) -> tuple[Decimal | None, str | None, int | None]:
    row = prices.rows.get(cell["price_id"]) or prices.find(cell["provider"], cell["model"], cell["day"])
    tier = cell["price_tier"]
    # Where a row has tiers, the price of a class is that of the tier the report lies in; of a marginal one two hold.
    if row is None or cell["priced_as"] is None or (row.above and (tier is None or (tier and row.marginal))):
        return None, None, None
    key = (TokenClass(cell["priced_as"]), Modality.TEXT)
    value = next((bracket.prices.get(key) for bracket in row.brackets if bracket.tier == (tier or 0)), None)
    of_tier = any(key in each.prices for each in row.above if each.above <= (tier or 0))
    return value, None if value is None else row.currency, None if of_tier else row.up_to_input_tokens
