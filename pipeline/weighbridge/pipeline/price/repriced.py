"""What another price book changes on the amounts of a month: findings, and no amount is touched.

closed at 2,472.81, at the new prices 1,923.92    price_changed: 548.89 less; the month stays as it was
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.arrival import arrivals_of
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.bounds import EXACT, summable
from weighbridge.pipeline.price.frame import READING_COLUMNS, price_readings
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

CHANGED, MISSING = "price_changed", "price_missing"
NOT_REPRICED = "closed_period_not_repriced"
_CODES = (CHANGED, MISSING)
_BY = ("provider", "model", "currency")
_CURES = {
    CHANGED: "Check the new prices against their source. A closed month keeps its amounts: book the difference in an "
    "open one.",
    MISSING: "The new book has no price for what the old one priced: add the row, or keep the old one for these days.",
}


@dataclass(frozen=True, slots=True)
class Repriced:
    """An amount when prices changed after it was made.

    Attributes:
        amount: what counts.
        difference: what the new prices would make of it, less what it was: a finding where the amount is kept.
        kept: whether it stays although the new prices give another one.
    """

    amount: Decimal
    difference: Decimal
    kept: bool = False

    @classmethod
    def of(cls, before: Decimal, after: Decimal, *, closed: bool) -> Repriced:
        """A closed period keeps what it was closed with; an open one takes the new prices."""
        return cls(before if closed else after, EXACT.subtract(after, before), kept=closed and before != after)


def write_repriced(
    lake: Lake, month: str, before: PriceBook, after: PriceBook, *, partial: bool = False
) -> list[Finding]:
    """The findings of a month at two books, which replace those of an earlier comparison of it.

    Args:
        lake: whose readings are priced, and where the findings are written.
        month: the UTC month.
        before, after: the books.
        partial: whether `after` says nothing of models it has no row for: that it lacks them is no finding then.

    Raises:
        LakeError: the lake cannot be read or written.
        ConfigError: a book is ambiguous for a model that was used.
        SumError: the month comes to more than the lake holds.
    """
    found = repriced(lake, month, before, after, partial=partial)
    where = pl.col("code").is_in(_CODES)
    write_findings(lake, found, origin=FindingOrigin.PRICE, periods=[month], where=where)
    return found


def repriced(
    records: Records, month: str, before: PriceBook, after: PriceBook, *, partial: bool = False
) -> list[Finding]:
    """The same, without writing them: one for each provider, model and currency whose amounts come out otherwise."""
    sums = [_sums(records, day, before, after) for day in records.days("reading") if f"{day:%Y-%m}" == month]
    if not sums:
        return []
    whole = (
        pl.concat(sums)
        .pipe(summable, ("before", "after"), "amounts of a month")
        .group_by(_BY)
        .agg(pl.col("rows", "lost", "before", "after").sum(), pl.col("day").min(), last=pl.col("day").max())
        .sort(_BY, nulls_last=True)
    )
    found = [finding for row in whole.iter_rows(named=True) for finding in _findings(month, row)]
    return [each for each in found if not partial or each.code != MISSING or _names(after, each)]


def _names(book: PriceBook, finding: Finding) -> bool:
    return book.names(finding.subject.get("provider"), finding.subject.get("model"))


def _sums(records: Records, day: date, before: PriceBook, after: PriceBook) -> pl.DataFrame:
    readings = records.scan("reading", first=day, last=day, columns=list(READING_COLUMNS)).collect()
    told = readings.select("day", "provider", "model")
    for name, book in (("before", before), ("after", after)):
        priced = price_readings(readings, book, arrivals_of(records, book))
        amounts = priced.select(pl.col("amount").alias(name), pl.col("currency").alias(f"currency_{name}"))
        told = pl.concat([told, amounts], how="horizontal")
    lost = pl.col("before").is_not_null() & pl.col("after").is_null()
    both = pl.all_horizontal(pl.col("before", "after").is_not_null())
    alike = both & (pl.col("currency_before") == pl.col("currency_after"))
    return (
        told.with_columns(lost=lost.cast(pl.Int64), currency=pl.col("currency_before"))
        .filter(lost | (alike & (pl.col("before") != pl.col("after"))))
        .pipe(summable, ("before", "after"), "amounts of a day")
        .group_by(*_BY, "day")
        .agg(
            (1 - pl.col("lost")).sum().alias("rows"),
            pl.col("lost").sum(),
            pl.col("before", "after").filter(pl.col("after").is_not_null()).sum(),
        )
    )


def _findings(month: str, row: dict[str, object]) -> Iterator[Finding]:
    subject = {name: str(row[name]) for name in ("provider", "model") if row[name] is not None}
    shared = {"period": month, "subject": subject, "unit": "reports", "origin": FindingOrigin.PRICE}
    days = {"first_day": row["day"], "last_day": row["last"]}
    if row["rows"]:
        difference = EXACT.subtract(Decimal(str(row["after"])), Decimal(str(row["before"])))
        money = {"amount": difference, "currency": row["currency"]}
        yield Finding(
            code=CHANGED, severity=Severity.NOTICE, rows=int(str(row["rows"])), cure=_CURES[CHANGED],
            **shared, **days, **money,  # type: ignore[arg-type]
        )  # fmt: skip
    if row["lost"]:
        yield Finding(
            code=MISSING, severity=Severity.WARNING, rows=int(str(row["lost"])), cure=_CURES[MISSING],
            **shared, **days,  # type: ignore[arg-type]
        )  # fmt: skip
