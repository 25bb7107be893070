"""What requests of a tenant and task cost: what those of a new series of theirs are held against.

A run over many days asks it of many series, so the attempts of a tenant and task are read once for all of these days.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.baseline.costs import LATE, first_reports, merged, share
from weighbridge.pipeline.baseline.usage import BETWEEN, KEY, SERIES, label
from weighbridge.pipeline.lake.records import Records

_PAIR = ["tenant", "task"]
_ATTEMPT = (*KEY, "day", "attempt_number", "model_served", "model_requested", *(n for n in SERIES if n != "model"))
_AMOUNT = (*KEY, "day", "source", "child", "revision", "currency", "amount")


class Kindred:
    """The attempts of tenants and tasks on the days of a run, and their amounts."""

    def __init__(self, records: Records, first: date, last: date) -> None:
        """Nothing is read before it is asked for.

        Args:
            records: tables `attempt` and `priced_amount`.
            first, last: the days that are asked about, both inclusive.
        """
        self._records, self._first, self._last = records, first, last
        self._attempts: dict[tuple[object, ...], pl.DataFrame] = {}
        self._amounts: dict[tuple[object, ...], pl.DataFrame] = {}

    def read(self, pairs: pl.DataFrame) -> None:
        """Read several tenants and tasks at once; those that were read before are passed over.

        Args:
            pairs: columns tenant and task.
        """
        fresh = [pair for pair in pairs.drop_nulls().select(_PAIR).iter_rows() if pair not in self._attempts]
        if not fresh:
            return
        wanted = pl.DataFrame(fresh, schema=dict.fromkeys(_PAIR, pl.String), orient="row").lazy()
        rows = self._records.scan("attempt", first=self._first, last=self._last, columns=_ATTEMPT)
        named = rows.join(wanted, on=_PAIR, how="semi").with_columns(
            pl.coalesce("model_served", "model_requested").alias("model"),
            retry=(pl.col("attempt_number") > 1).fill_null(value=False),
        )
        attempts = named.select(*KEY, *_PAIR, "day", label(), "retry").collect(engine="streaming")
        of_keys = attempts.lazy().select(*KEY, *_PAIR).unique()
        reports = first_reports(self._records, self._first, self._last + LATE, _AMOUNT)
        amounts = reports.join(of_keys, on=KEY).with_columns(once=~pl.struct(KEY, *_PAIR).is_duplicated())
        self._attempts |= _by_pair(attempts, fresh)
        self._amounts |= _by_pair(amounts.collect(engine="streaming"), fresh)

    def cost(
        self, tenant: str, task: str, apart: Mapping[str, str | None], first: date, last: date
    ) -> tuple[Decimal, str] | None:
        """What a request cost on these days without one series, and in which currency.

        Args:
            tenant, task: whose requests.
            apart: the columns of `SERIES` of the series.
            first, last: both inclusive.

        Returns:
            Null where there was none, or a price is not known.
        """
        self.read(pl.DataFrame({"tenant": [tenant], "task": [task]}, schema=dict.fromkeys(_PAIR, pl.String)))
        pair = (tenant, task)
        if pair not in self._attempts:
            return None
        mine = BETWEEN.join(apart[name] or "" for name in SERIES)
        others = self._attempts[pair].filter(pl.col("day").is_between(first, last) & (pl.col("series") != mine))
        held = others.group_by(KEY).agg(pl.col("retry").any())
        booked = self._amounts[pair].filter(pl.col("day").is_between(first, last + LATE))
        booked = booked.join(held.select(KEY), on=KEY, how="semi")
        several = merged(booked.filter(~pl.col("once")), ["amount"], ["currency"])
        amounts = pl.concat(part.select("amount", "currency") for part in (booked.filter("once"), several))
        currencies = amounts["currency"].unique().to_list()
        requests = held.filter(~pl.col("retry")).height
        if not requests or amounts.is_empty() or len(currencies) != 1 or amounts["amount"].null_count():
            return None
        return share(Decimal(str(amounts["amount"].sum())), requests), currencies[0]


def _by_pair(rows: pl.DataFrame, pairs: list[tuple[object, ...]]) -> dict[tuple[object, ...], pl.DataFrame]:
    parts = rows.partition_by(_PAIR, as_dict=True, include_key=False)
    return {pair: parts.get(pair, rows.clear().drop(_PAIR)) for pair in pairs}
