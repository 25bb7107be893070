"""What requests of a tenant and task cost: what those of a new series of theirs are held against.

A run over many days asks it of many series, so the attempts of a tenant and task are read once for all of these days.
Of what is read only sums are kept, by day and series. An attempt is kept as it is where the days that are asked about
decide what of it counts: it was told for two days or two series, or one of its amounts was booked too late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.baseline.costs import LATE, first_reports, merged, share
from weighbridge.pipeline.baseline.usage import BATCH, BETWEEN, KEY, SERIES, label
from weighbridge.pipeline.lake.records import Records

_PAIR = ["tenant", "task"]
_OWN = [*KEY, "pair"]
_ATTEMPT = (*KEY, "day", "attempt_number", "model_served", "model_requested", *(n for n in SERIES if n != "model"))
_AMOUNT = (*KEY, "day", "source", "child", "revision", "currency", "amount")
# What is kept of a series, day and currency.
_SUMS = ("requests", "told", "unknown", "amount")


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of one or more tenants and tasks, which the column `pair` numbers.

    Attributes:
        sums: by day, series and currency: requests, attempts with an amount (told), those whose amount is not known
            (unknown), and the sum of the others (amount).
        rows: attempts that are in no sum, one row per day and series they were told for.
        amounts: those of these attempts, with the day they were booked on.
    """

    sums: pl.DataFrame
    rows: pl.DataFrame
    amounts: pl.DataFrame


class Kindred:
    """What the attempts of tenants and tasks cost on the days of a run."""

    def __init__(self, records: Records, first: date, last: date) -> None:
        """Nothing is read before it is asked for.

        Args:
            records: tables `attempt` and `priced_amount`.
            first, last: the days that are asked about, both inclusive.
        """
        self._records, self._first, self._last = records, first, last
        self._held: dict[tuple[object, ...], _Read] = {}

    @property
    def held(self) -> int:
        """How many rows are kept."""
        return sum(part.height for each in self._held.values() for part in (each.sums, each.rows, each.amounts))

    def read(self, pairs: pl.DataFrame) -> None:
        """Read several tenants and tasks at once; those that were read before are passed over.

        Args:
            pairs: columns tenant and task.
        """
        fresh = [pair for pair in pairs.drop_nulls().select(_PAIR).iter_rows() if pair not in self._held]
        if not fresh:
            return
        wanted = pl.DataFrame(fresh, schema=dict.fromkeys(_PAIR, pl.String), orient="row").with_row_index("pair")
        rows = self._records.scan("attempt", first=self._first, last=self._last, columns=_ATTEMPT)
        mine = rows.join(wanted.lazy(), on=_PAIR)
        # All rows of an attempt are in one part, and a part is small.
        parts = mine.select(pl.len()).collect(engine="streaming").item() // BATCH + 1
        read = [self._part(mine, pl.col("attempt_lo") % parts == part) for part in range(parts)]
        sums = pl.concat(each.sums for each in read)
        whole = [
            _by_pair(sums.group_by("pair", "day", "series", "currency").agg(pl.col(_SUMS).sum())),
            _by_pair(pl.concat(each.rows for each in read)),
            _by_pair(pl.concat(each.amounts for each in read)),
        ]
        for number, pair in enumerate(fresh):
            self._held[pair] = _Read(*(parts.get(number, empty) for parts, empty in whole))

    def _part(self, rows: pl.LazyFrame, wanted: pl.Expr) -> _Read:
        named = rows.filter(wanted).with_columns(
            pl.coalesce("model_served", "model_requested").alias("model"),
            retry=(pl.col("attempt_number") > 1).fill_null(value=False),
        )
        placed = (
            named.select(*_OWN, "day", label(), "retry").group_by(*_OWN, "day", "series").agg(pl.col("retry").any())
        )
        attempts = placed.collect(engine="streaming")
        once = ~pl.struct(_OWN).is_duplicated()
        amounts = self._amounts(attempts, wanted)
        apart = pl.concat([attempts.filter(~once).select(_OWN), _booked_apart(amounts, attempts)]).unique()
        alone = amounts.select(pl.struct(KEY).is_unique()).to_series()
        costs = pl.concat(
            [
                amounts.filter(alone).select(*KEY, "amount", "currency"),
                merged(amounts.filter(~alone), ["amount"], ["currency"]),
            ]
        ).with_columns(told=True)
        summed = attempts.join(apart, on=_OWN, how="anti").join(costs, on=KEY, how="left")
        return _Read(
            summed.group_by("pair", "day", "series", "currency").agg(
                requests=(~pl.col("retry")).sum().cast(pl.Int64),
                told=pl.col("told").sum().cast(pl.Int64),
                unknown=(pl.col("told") & pl.col("amount").is_null()).sum().cast(pl.Int64),
                amount=pl.col("amount").sum(),
            ),
            attempts.join(apart, on=_OWN, how="semi"),
            amounts.join(apart, on=KEY),
        )

    def _amounts(self, attempts: pl.DataFrame, wanted: pl.Expr) -> pl.DataFrame:
        reports = first_reports(self._records, self._first, self._last + LATE, _AMOUNT).filter(wanted)
        booked = reports.rename({"day": "booked"})
        return booked.join(attempts.lazy().select(KEY), on=KEY, how="semi").collect(engine="streaming")

    def cost(
        self, tenant: str, task: str, apart: Mapping[str, str | None], first: date, last: date
    ) -> tuple[Decimal, str] | None:
        """What a request cost on these days without one series, and in which currency.

        Args:
            tenant, task: whose requests.
            apart: the columns of `SERIES` of the series.
            first, last: both inclusive, and among those of the run.

        Returns:
            Null where there was none, or a price is not known.
        """
        self.read(pl.DataFrame({"tenant": [tenant], "task": [task]}, schema=dict.fromkeys(_PAIR, pl.String)))
        held = self._held.get((tenant, task))
        if held is None:
            return None
        mine = BETWEEN.join(apart[name] or "" for name in SERIES)
        others = pl.col("day").is_between(first, last) & (pl.col("series") != mine)
        sums = held.sums.filter(others)
        single = held.rows.filter(others).group_by(KEY).agg(pl.col("retry").any())
        booked = held.amounts.filter(pl.col("booked").is_between(first, last + LATE))
        several = merged(booked.join(single, on=KEY, how="semi"), ["amount"], ["currency"])
        told = sums.filter(pl.col("told") > 0)
        amounts = pl.concat(part.select("amount", "currency") for part in (told, several))
        currencies = amounts["currency"].unique().to_list()
        requests = int(sums["requests"].sum()) + single.filter(~pl.col("retry")).height
        unknown = int(sums["unknown"].sum()) + several["amount"].null_count()
        if not requests or unknown or len(currencies) != 1:
            return None
        return share(Decimal(str(amounts["amount"].sum())), requests), currencies[0]


def _booked_apart(amounts: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The attempts with an amount that does not count whenever their day does."""
    booked = attempts.select(*_OWN, "day").join(amounts.select(*KEY, "booked"), on=KEY)
    return booked.filter(~pl.col("booked").is_between(pl.col("day"), pl.col("day") + LATE)).select(_OWN)


def _by_pair(rows: pl.DataFrame) -> tuple[dict[object, pl.DataFrame], pl.DataFrame]:
    """The rows of each pair, and those of one that has none."""
    parts = rows.partition_by("pair", as_dict=True, include_key=False)
    return {number: part for (number,), part in parts.items()}, rows.clear().drop("pair")
