"""Month-to-date accrual: what a month costs so far, what of it was invoiced, and what is still to come on a bill.

Accrued is what was used and stands on no line yet: the expected money of cells without lines, and what lines so far
leave of cells that are still open. It comes from cells that were compared, so a month in which nothing was charged, the
present one or a past one, has no bill to be compared with and is told by its usage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.ours.usage import call_days
from weighbridge.pipeline.invoice.sums import exactly
from weighbridge.pipeline.invoice.zones import month_of, span_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import ChargedBy, LineKind, Status

_DAY, _LEAST = timedelta(days=1), timedelta(microseconds=1)
_OF_USE = (str(LineKind.TOKENS), str(LineKind.TOOL_FEE))


@dataclass(frozen=True, slots=True)
class Accrual:
    """One month with one provider in one currency.

    Attributes:
        expected: what its calls cost so far; null where a price is missing.
        invoiced: what lines of use charge so far.
        accrued: what was used and is on no line yet; null where a price is missing.
        other: lines that are no use: credits, commitments, taxes.
        open_cells: cells that may still change.
    """

    period: str
    provider: str
    currency: str
    expected: Decimal | None
    invoiced: Decimal
    accrued: Decimal | None
    other: Decimal
    open_cells: int


@exactly
def accruals(lake: Records, contracts: Mapping[str, Contract]) -> list[Accrual]:
    """The accruals of all months with bills, and of all months with priced usage that have none.

    Args:
        lake: with `invoice_gap` up to date.
        contracts: provider -> contract, for its billing zone.
    """
    cells = (
        lake.scan("invoice_gap")
        .filter(pl.col("against") == str(ChargedBy.INVOICE), pl.col("unit") != "tokens", _of_models())
        .collect()
    )
    found = [_of(rows) for _, rows in sorted(cells.partition_by("period", "provider", "unit", as_dict=True).items())]
    told = {(each.period, each.provider) for each in found}
    used = lake.scan("reading", columns=["provider", "day"]).drop_nulls().unique().collect(engine="streaming")
    for (name,), own in used.partition_by("provider", as_dict=True).items():
        provider = str(name)
        contract = contracts.get(provider) or Contract(provider)
        for month in sorted(_months(own["day"], contract.zone)):
            if (month, provider) not in told:
                found += _unbilled(lake, contract, month)
    return sorted(found, key=lambda each: (each.period, each.provider, each.currency))


def _months(days: Iterable[date], zone: str) -> set[str]:
    """The months of a billing zone that calls of these UTC days may lie in: a day may be of two."""
    begins = [datetime.combine(day, time(), UTC) for day in days]
    return {month_of(moment, zone) for begin in begins for moment in (begin, begin + _DAY - _LEAST)}


def _of_models() -> pl.Expr:
    """What is no service of its own beside models."""
    return (pl.col("kind") != str(LineKind.OTHER_SERVICE)).fill_null(value=True)


def _of(cells: pl.DataFrame) -> Accrual:
    use = pl.col("kind").is_in(_OF_USE).fill_null(value=False)
    own, other = cells.filter(use), cells.filter(~use)
    first = cells.row(0, named=True)
    # A month-to-date line of a period that is open charges part of what its cell costs: the rest is still to come.
    waiting = own.filter((pl.col("lines") == 0) | (pl.col("status") == str(Status.PROVISIONAL)))
    expected, charged = _sum(waiting["expected"]), _sum(waiting["charged"])
    return Accrual(
        period=first["period"],
        provider=first["provider"],
        currency=first["unit"],
        expected=_sum(own["expected"]),
        invoiced=_sum(own["charged"].drop_nulls()) or Decimal(0),
        accrued=None if expected is None or charged is None else expected - charged,
        other=_sum(other["charged"].drop_nulls()) or Decimal(0),
        open_cells=cells.filter(pl.col("status") == str(Status.PROVISIONAL)).height,
    )


def _unbilled(lake: Records, contract: Contract, month: str) -> list[Accrual]:
    """A month without any line: all that was used is accrued."""
    sums: dict[str, Decimal | None] = {}
    unpriced = False
    for rows in call_days(lake, contract.provider, span_of(month, contract.zone), contract.models, ("total",)):
        kept = rows.filter(~pl.col("failed") & ~pl.col("superseded"))
        # A call without a price may cost anything, in any currency: no sum of its month is known.
        unpriced |= kept.filter(pl.col("currency").is_null(), pl.col("amount").is_null()).height > 0
        for (currency,), own in kept.drop_nulls("currency").partition_by("currency", as_dict=True).items():
            before, more = sums.get(str(currency), Decimal(0)), _sum(own["amount"])
            sums[str(currency)] = None if before is None or more is None else before + more
    found = sorted((currency, None if unpriced else used) for currency, used in sums.items())
    return [Accrual(month, contract.provider, name, used, Decimal(0), used, Decimal(0), 0) for name, used in found]


def _sum(values: pl.Series) -> Decimal | None:
    """The sum; null where any part of it is."""
    if values.null_count():
        return None
    return sum((Decimal(str(value)) for value in values), start=Decimal(0))
