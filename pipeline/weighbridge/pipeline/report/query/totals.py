"""How much there was: reported, billed, observed, computed and attended side by side, in total and by day; money."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.report.exact import AMOUNT_PLACES, CONTEXT, amount, ratio, tokens
from weighbridge.pipeline.report.facts import currencies, facts, money_column
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet, rows_of
from weighbridge.pipeline.report.view import ATTEMPT, View, collect
from weighbridge.schemas.enumerations import Direction

MILLION = Decimal(1_000_000)

TOTALS = (
    Column("measure", "Measure", Kind.TEXT),
    Column("input", "Input", Kind.COUNT),
    Column("output", "Output", Kind.COUNT),
    Column("total", "Total", Kind.COUNT),
    Column("unit", "Unit", Kind.TEXT),
    Column("attempts_known", "Attempts with the figure", Kind.COUNT),
    Column("attempts", "of attempts", Kind.COUNT),
)
AMOUNTS = (
    Column("currency", "Currency", Kind.TEXT),
    Column("amount", "Amount", Kind.MONEY, currency_in="currency", adds=True),
    Column("attempts", "Attempts", Kind.COUNT),
    Column("tokens", "Tokens", Kind.COUNT),
    Column("amount_per_million_tokens", "Per million tokens", Kind.MONEY, currency_in="currency"),
    Column("amount_per_attempt", "Per attempt", Kind.MONEY, currency_in="currency"),
)
DAILY = (
    Column("day", "Day", Kind.DAY),
    Column("attempts", "Attempts", Kind.COUNT, adds=True),
    Column("reported_input_tokens", "Reported input", Kind.COUNT, adds=True),
    Column("reported_output_tokens", "Reported output", Kind.COUNT, adds=True),
    Column("billed_tokens", "Billed", Kind.COUNT, adds=True),
    Column("observed_tokens", "Observed", Kind.COUNT, adds=True),
    Column("computed_tokens", "Computed", Kind.COUNT, adds=True),
    Column("attended_keys", "Attended (keys)", Kind.COUNT, adds=True),
)


def whole_price() -> pl.Expr:
    """Whether every usage report of an attempt is priced."""
    return (pl.col("priced") > 0) & (pl.col("unpriced") == 0)


def amount_in(currency: str) -> pl.Expr:
    """The amount of a group of attempts in one currency.

    Null where none is known; 0 only where every report is priced, and none of them in this currency.
    """
    name = money_column(currency)
    elsewhere = (pl.col("priced").sum() > 0) & (pl.col("unpriced").sum() == 0)
    known = amount(pl.col(name))
    return pl.coalesce(known, pl.when(elsewhere).then(pl.lit(0, dtype=known_type()))).alias(name)


def known_type() -> pl.Decimal:
    """The type of exact amounts."""
    return pl.Decimal(38, 18)


def money_columns(view: View) -> tuple[Column, ...]:
    """One amount column per currency of the period."""
    return tuple(
        Column(money_column(name), f"Amount, {name}", Kind.MONEY, currency=name, adds=True)
        for name in view.get(currencies)
    )


def compared_sums(view: View, by: Sequence[str]) -> pl.DataFrame:
    """From the reconciliation: observed tokens and attempts that have them, grouped."""
    frame = view.dated("reconciled", [*ATTEMPT, "day", "direction", "observed"])
    known = pl.col("observed").is_not_null().sum().cast(pl.Int64).alias("known")
    return collect(frame.group_by(list(by)).agg(tokens("observed"), known))


def totals(view: View) -> Sheet:
    """One row per measure. Each says for how many attempts it is known; nothing is filled in for the others."""
    frame = view.get(facts)
    count = frame.height
    rows: list[Row] = [
        _measure("reported", frame, "input", "output", count),
        _measure("billed", frame.filter(whole_price()), "input", "output", count),
        _observed(view, count),
        _measure("computed", frame, "input_computed", "output_computed", count),
        _measure("delivered", frame, None, "output_delivered", count),
        _measure("recounted", frame, "input_recounted", "output_recounted", count),
        _attended(frame, count),
    ]
    return Sheet(
        name="totals",
        title="Totals by measure",
        columns=TOTALS,
        rows=tuple(rows),
        sources=("attempt", "reading", "priced_amount", "reconciled"),
        empty="Nothing was observed or reported in this period.",
        note="Each measure adds up the attempts that have it; the others are unknown, not zero. "
        "Attended counts keys read by attention, which is work, and is not comparable with tokens.",
    )


def _measure(name: str, frame: pl.DataFrame, into: str | None, out: str | None, count: int) -> Row:
    sides = [side for side in (into, out) if side]
    known = frame.filter(pl.any_horizontal(pl.col(side).is_not_null() for side in sides)).height
    entered = _sum(frame, into, count) if into else None
    left = _sum(frame, out, count) if out else None
    known_sides = [value for value in (entered, left) if value is not None]
    return (name, entered, left, sum(known_sides) if known_sides else None, "tokens", known, count)


def _sum(frame: pl.DataFrame, column: str, count: int) -> int | None:
    """The sum of what is known; null where there are attempts and none has the figure."""
    if frame.is_empty():
        return None if count else 0
    value: int | None = frame.select(tokens(column)).item()
    return value


def _observed(view: View, count: int) -> Row:
    sums = {row[0]: row[1:] for row in compared_sums(view, ["direction"]).rows()}
    entered, left = (sums.get(str(direction), (None if count else 0, 0)) for direction in Direction)
    known = [value for value in (entered[0], left[0]) if value is not None] if count else [0]
    either = pl.col("observed").is_not_null().any()
    frame = view.dated("reconciled", [*ATTEMPT, "day", "observed"]).group_by(ATTEMPT).agg(either)
    attempts = collect(frame.select(pl.col("observed").sum().cast(pl.Int64))).item()
    return ("observed", entered[0], left[0], sum(known) if known else None, "tokens", attempts, count)


def _attended(frame: pl.DataFrame, count: int) -> Row:
    known = frame["attended"].count()
    return ("attended", None, None, _sum(frame, "attended", count), "keys", known, count)


def amounts(view: View) -> Sheet:
    """Money by currency: what usage costs at the prices of its days. Currencies are never added together."""
    frame = view.get(facts)
    rows: list[Row] = []
    for currency in view.get(currencies):
        name = money_column(currency)
        here = frame.filter(pl.col(name).is_not_null())
        total, used = here.select(pl.col(name).sum(), tokens("tokens")).row(0)
        per_million = ratio(CONTEXT.multiply(total, MILLION), used, AMOUNT_PLACES)
        rows.append((currency, total, here.height, used, per_million, ratio(total, here.height, AMOUNT_PLACES)))
    return Sheet(
        name="amounts",
        title="Reported usage at the prices of its days",
        columns=AMOUNTS,
        rows=tuple(rows),
        sources=("priced_amount", "reading", "price"),
        empty="Nothing in this period is priced.",
    )


def daily(view: View) -> Sheet:
    """The trend: every day of the period, days without attempts included."""
    frame = (
        pl.DataFrame({"day": view.period.days}, schema={"day": pl.Date})
        .join(_by_day(view), left_on="day", right_on="on", how="left")
        .join(_observed_by_day(view), left_on="day", right_on="on", how="left")
        .sort("day")
    )
    columns = (*DAILY, *money_columns(view), Column("attempts_without_price", "Without price", Kind.COUNT, adds=True))
    quiet = pl.col("attempts").is_null()
    filled = frame.with_columns(
        pl.when(quiet).then(0).otherwise(pl.col(column.name)).alias(column.name) for column in columns if column.numeric
    )
    return Sheet(
        name="daily",
        title="Daily trend",
        columns=columns,
        rows=rows_of(filled, columns),
        unit="tokens, except attended",
        sources=("attempt", "reading", "priced_amount", "reconciled"),
        empty="The period has no days.",
        shown=31,
    )


def _by_day(view: View) -> pl.DataFrame:
    frame = view.get(facts)
    billed = frame.select("on", "input", "output", "priced", "unpriced").filter(whole_price())
    sums = billed.group_by("on").agg(_both("input", "output").alias("billed_tokens"))
    by_day = frame.group_by("on").agg(
        pl.len().cast(pl.Int64).alias("attempts"),
        tokens("input").alias("reported_input_tokens"),
        tokens("output").alias("reported_output_tokens"),
        _both("input_computed", "output_computed").alias("computed_tokens"),
        tokens("attended").alias("attended_keys"),
        *(amount_in(name) for name in view.get(currencies)),
        without_price().alias("attempts_without_price"),
    )
    return by_day.join(sums, on="on", how="left")


def without_price() -> pl.Expr:
    """How many attempts have a usage report that could not be priced."""
    return (pl.col("unpriced") > 0).sum().cast(pl.Int64)


def _both(into: str, out: str) -> pl.Expr:
    """Input and output together: what is known of either, null where neither is."""
    entered, left = tokens(into), tokens(out)
    return pl.when(entered.is_not_null() | left.is_not_null()).then(entered.fill_null(0) + left.fill_null(0))


def _observed_by_day(view: View) -> pl.DataFrame:
    return compared_sums(view, ["on"]).select("on", pl.col("observed").alias("observed_tokens"))
