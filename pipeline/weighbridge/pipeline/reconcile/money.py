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

from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.price.table import rows_of
from weighbridge.pipeline.reconcile.found.tally import MONEY
from weighbridge.pipeline.reconcile.frames import KEY, collected, frame_of
from weighbridge.pipeline.reconcile.match import reports
from weighbridge.schemas.enumerations import Direction, Modality, TokenClass
from weighbridge.schemas.lattice import INPUT_CLASSES, OUTPUT_CLASSES

REPORT = (*KEY, "source", "child", "report")
PRICED_READ = (*REPORT, "price_id", "currency", "amount", *(f"amount_{c}" for c in (*INPUT_CLASSES, *OUTPUT_CLASSES)))
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
    def of(cls, price: pl.DataFrame, used: Iterable[str]) -> Prices:
        """From rows of the table `price`, only those whose id is among `used`."""
        return cls(rows_of(price, set(used)))

    def find(self, provider: str | None, model: str | None, day: date) -> PriceRow | None:
        """The one used row that is for this model on this day; null where none is, or several fit equally well."""
        if provider is None or model is None:
            return None
        place = (provider, model, day)
        if place not in self._found:
            fit = [r for r in self.rows.values() if r.provider == provider and r.serves(model) and r.holds_on(day)]
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
    whole = pl.col("cause").is_in(WHOLE_REPORTS)
    reports_of = parts.filter(whole).with_columns(again=pl.col("cause") == AGAIN)
    by_report = reports_of.join(
        _of_reports(readings, amounts), on=[*KEY, "direction", "again"], how="left", maintain_order="left"
    )
    return pl.concat([by_report.drop("again"), _by_class(parts.filter(~whole), amounts, prices)])


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
    ends: list[pl.DataFrame] = []
    for direction, classes in ((Direction.INPUT, INPUT_CLASSES), (Direction.OUTPUT, OUTPUT_CLASSES)):
        own = left.filter(pl.col("direction") == str(direction)).rename({"residual": "tokens"})
        shown = (own.with_columns(priced_as=pl.lit(str(token_class))) for token_class in classes)
        ends += [_by_class(each, amounts, prices) for each in shown]
    known = (
        pl.concat(ends)
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
    marked = collected(reports.marked(frame_of(readings))).select(*REPORT, "again")
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
        rest = pl.when(full[other]).then(pl.col("amount") - sums[other])
        cost = pl.when(full[direction]).then(sums[direction]).otherwise(rest)
        out.append(amounts.select(*KEY, "again", "currency", direction=pl.lit(str(direction)), amount=cost.cast(MONEY)))
    return pl.concat(out)


def _by_class(parts: pl.DataFrame, amounts: pl.DataFrame, prices: Prices) -> pl.DataFrame:
    """Tokens at the price of their class."""
    rows = amounts.group_by(KEY).agg(
        price_id=pl.when(pl.col("price_id").n_unique() == 1).then(pl.col("price_id").min())
    )
    named = parts.join(rows, on=list(KEY), how="left", maintain_order="left")
    place = ["price_id", "provider", "model", "day", "priced_as"]
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
    if row is None or cell["priced_as"] is None:
        return None, None, None
    value = row.prices.get((TokenClass(cell["priced_as"]), Modality.TEXT))
    return value, None if value is None else row.currency, row.up_to_input_tokens
