"""The figures that months are compared by: as a month was closed with them, or as the rows of the reported one give.

Closes are of UTC months, so the reported month is counted in UTC here as well, whatever the zone of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.report.earlier import Entry, Place, State
from weighbridge.pipeline.report.exact import CONTEXT, amount, tokens
from weighbridge.pipeline.report.facts import REPORT, UNKNOWN, amounts, facts, priced, readable, readings
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas.enumerations import PriceStatus

Number = int | Decimal | None
# Model, provider, currency.
Line = tuple[str, str, str]
_COUNTS = {
    "input_tokens": "input_total",
    "output_tokens": "output_total",
    "tokens": "total",
    "cache_read": "cache_read",
    "reasoning": "reasoning",
}


@dataclass(frozen=True, slots=True)
class MonthFigures:
    """One month.

    Attributes:
        usage: `days` with attempts, `attempts`, `reports`, `unpriced` reports, tokens; null is unknown.
        models: what the priced reports of a model cost.
        open_models: (model, provider) with reports whose price is not known.
    """

    usage: Mapping[str, Number]
    models: Mapping[Line, Decimal]
    open_models: frozenset[tuple[str, ...]]

    @property
    def currencies(self) -> set[str]:
        """The currencies anything is priced in."""
        return {currency for _, _, currency in self.models}

    def amount(self, currency: str) -> Decimal | None:
        """What usage cost in a currency. Nothing is nothing only where no price is missing."""
        if currency not in self.currencies:
            return None if self.usage["unpriced"] else Decimal(0)
        return _sum(value for line, value in self.models.items() if line[2] == currency)

    def of_model(self, line: Line) -> Decimal | None:
        """What a model cost in a currency."""
        return self.models.get(line, None if line[:2] in self.open_models else Decimal(0))


def months(view: View) -> dict[Place, MonthFigures]:
    """The reported month, and of the earlier ones those that are closed.

    A reported month that is closed has the figures it was closed with, also where rows were erased since.
    """
    told = {place: closed(each.figures) for place, each in view.closes.items() if each.state is State.CLOSED}
    return told if Place.THIS in told else {Place.THIS: counted(view), **told}


def closed(figures: Mapping[str, Sequence[Entry]]) -> MonthFigures:
    """A month as it was closed."""
    usage, attempts = (_values(figures.get(name, ())) for name in ("usage", "attempts"))
    entries = figures.get("money_by_model", ())
    rest = [entry for entry in entries if entry.about("status") != str(PriceStatus.PRICED)]
    days = [entry for entry in figures.get("attempts_by_day", ()) if entry.values["attempts"]]
    return MonthFigures(
        usage={
            "days": len(days),
            "attempts": attempts.get("attempts", 0),
            "reports": usage.get("reports", 0),
            "unpriced": sum(int(entry.values["reports"] or 0) for entry in rest),
            **{name: usage.get(name, 0) for name in _COUNTS},
        },
        models={
            (*_model(entry), str(entry.about("currency"))): value
            for entry in entries
            if entry not in rest and isinstance(value := entry.values["amount"], Decimal)
        },
        open_models=frozenset(_model(entry) for entry in rest),
    )


def counted(view: View) -> MonthFigures:
    """The reported month from its rows, by UTC days."""
    utc = view if view.period.utc else View(view.lake, replace(view.period, zone="UTC"))
    seen = utc.get(facts).filter("observed")
    about = ("provider", "model", "verdict", *_COUNTS.values())
    told = readings(utc, about).with_columns(
        pl.when(readable()).then(pl.col(name)).alias(name) for name in _COUNTS.values()
    )
    usage = collect(told.select(pl.len().cast(pl.Int64).alias("reports"), *(tokens(n) for n in _COUNTS.values())))
    named = told.select(*REPORT, pl.col("model", "provider").fill_null(UNKNOWN))
    costs = amounts(utc, ("amount",)).select(*REPORT, "currency", "amount", known=priced())
    by_model = collect(
        costs.join(named, on=list(REPORT), how="inner")
        .group_by("model", "provider", "currency", "known")
        .agg(amount(pl.col("amount")), pl.len().alias("reports"))
    )
    row = usage.row(0, named=True)
    rest = by_model.filter(~pl.col("known"))
    return MonthFigures(
        usage={
            "days": seen["on"].n_unique(),
            "attempts": seen.height,
            "reports": row["reports"],
            "unpriced": int(rest["reports"].cast(pl.Int64).sum()),
            **{name: row[column] for name, column in _COUNTS.items()},
        },
        models={
            (model, provider, currency): value
            for model, provider, currency, value in by_model.filter("known")
            .select("model", "provider", "currency", "amount")
            .iter_rows()
        },
        open_models=frozenset(rest.select("model", "provider").rows()),
    )


def _values(entries: Sequence[Entry]) -> Mapping[str, Number]:
    return entries[0].values if entries else {}


def _model(entry: Entry) -> tuple[str, str]:
    return str(entry.about("model")), str(entry.about("provider"))


def _sum(values: Iterable[Decimal]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = CONTEXT.add(total, value)
    return total
