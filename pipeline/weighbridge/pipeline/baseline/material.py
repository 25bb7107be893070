"""What stands out among all cells, with its money and its driver; what is too small in money is let go.

The excess of a cell is what the day had more than its rows would have had at the reference's mean. What it costs is
counted for a direction as a whole: tokens that left the cache cost what they cost now, less what they cost before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline import drivers
from weighbridge.pipeline.baseline.costs import UNPRICED, SeriesCost, series_costs, times
from weighbridge.pipeline.baseline.drivers import Requests
from weighbridge.pipeline.baseline.kindred import Kindred
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.usage import KEY, SERIES
from weighbridge.pipeline.baseline.window import Window
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.schemas.enumerations import Driver, Measure, TokenClass
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.lattice import direction_of

Row = dict[str, Any]
# An unpriced series that is new takes at least this part of its tenant's and task's requests to be reported.
_NEW_SHARE = 10


@dataclass(frozen=True)
class Weighing:
    """The means to tell what a row is about.

    Attributes:
        records: the lake.
        kindred: what other requests cost.
        window: the day and its past.
        policy: what is asked.
        rows: all rows of the day, as `judge.judged` gives them.
    """

    records: Records
    kindred: Kindred
    window: Window
    policy: BaselinePolicy
    rows: pl.DataFrame

    def weighed(self) -> pl.DataFrame:
        """The rows with `reported`, driver, key, amount, currency and evidence as they are written."""
        chosen = self.rows.with_row_index("at").filter(pl.col("reported") | self._new)
        schema: dict[str, pl.DataType] = {"at": pl.UInt32(), "reported": pl.Boolean(), "driver": pl.String()}
        schema |= {name: polars_schema("baseline")[name] for name in ("key", "amount", "currency", "evidence")}
        told = pl.DataFrame(list(self._told(chosen)), schema=schema, orient="row")
        kept = self.rows.drop("reported").with_row_index("at").join(told, on="at", how="left", maintain_order="left")
        return kept.with_columns(pl.col("reported").fill_null(value=False)).drop("at")

    @property
    def _new(self) -> pl.Expr:
        """Series that have no baseline yet, of a tenant and task that has one."""
        young = self._requests_only & pl.col("centre").is_null() & (pl.col("day_rows") > 0)
        known = self.rows.filter(self._requests_only & pl.col("centre").is_not_null() & (pl.col("expected") > 0))
        return young & pl.struct("tenant", "task").is_in(
            known.select(pl.struct("tenant", "task")).to_series().implode()
        )

    @property
    def _requests_only(self) -> pl.Expr:
        return pl.col("measure") == str(Measure.REQUESTS)

    def _told(self, chosen: pl.DataFrame) -> Iterator[tuple[object, ...]]:
        if chosen.is_empty():
            return
        day = self.window.today
        of_day = self.window.history.judged.filter(pl.col("day") == day)
        attempts = of_day.join(chosen.select("series").unique(), on="series", how="semi")
        costs = series_costs(self.records, attempts, self._date(0))
        requests = self._requests()
        new = chosen.filter(self._requests_only)
        self.kindred.read(new.select("tenant", "task").unique())
        for row in chosen.iter_rows(named=True):
            cost = costs.get(row["series"], UNPRICED)
            driver, key, amount = self._weigh(row, cost, requests)
            if self._material(row, amount):
                own = attempts.filter(pl.col("series") == row["series"])
                evidence = _evidence(own, row, key, self.records, self._date(0))
                currency = None if amount is None else cost.currency
                yield row["at"], True, str(driver), key, amount, currency, evidence

    def _weigh(self, row: Row, cost: SeriesCost, requests: Requests) -> tuple[Driver, str | None, Decimal | None]:
        measure = Measure(row["measure"])
        if measure is Measure.RETRIES:
            excess = row["observed"] - (row["expected"] or 0)
            part = None if cost.retries is None else times(excess, cost.retries / row["observed"])
            return Driver.RETRIES, None, part
        if measure is Measure.TOKENS:
            driver = drivers.of_tokens(self.window, row["series"], TokenClass(row["token_class"]))
            return driver, None, self._of_direction(row, cost)
        excess = row["observed"] - (row["expected"] or 0)
        if row["centre"] is None or requests.moved_elsewhere(self.window, row["series"]):
            return Driver.MODEL_MIX, None, self._of_mix(row, cost, excess)
        amount = None if cost.request is None else times(excess, cost.request)
        key = drivers.burst_key(
            self.records,
            {name: row[name] for name in SERIES},
            self._date(0),
            self._date(-self.policy.reference_days),
            float(row["rows"]),
            float(row["expected"]),
        )
        return Driver.REQUEST_VOLUME if key is None else Driver.KEY_BURST, key, amount

    def _of_direction(self, row: Row, cost: SeriesCost) -> Decimal | None:
        """Cost of the excess of all classes of the direction; null where it is not known of any that has one."""
        direction = direction_of(TokenClass(row["token_class"]))
        mine = self.rows.filter((pl.col("series") == row["series"]) & (pl.col("measure") == str(Measure.TOKENS)))
        total = Decimal(0)
        for name, expected, observed in mine.select("token_class", "expected", "observed").iter_rows():
            if direction_of(TokenClass(name)) is not direction:
                continue
            excess = observed - (0 if expected is None else expected)
            if excess and name not in cost.token:
                return None
            total += times(excess, cost.token.get(name, Decimal(0)))
        return total

    def _of_mix(self, row: Row, cost: SeriesCost, excess: int) -> Decimal | None:
        """What requests that came here cost more than requests of the tenant and task used to."""
        names: Mapping[str, str | None] = {name: row[name] for name in SERIES}
        first, last = self._date(-self.policy.reference_days), self._date(-1)
        before = self.kindred.cost(row["tenant"], row["task"], names, first, last)
        if cost.request is None or before is None or before[1] != cost.currency:
            return None
        return times(excess, cost.request - before[0])

    def _material(self, row: Row, amount: Decimal | None) -> bool:
        if amount is not None:
            return amount >= self.policy.floor
        # What costs nobody knows how much cannot be called small; a new series has to be a part that matters.
        return bool(row["reported"]) or row["observed"] * _NEW_SHARE >= self._requests_of_parent(row)

    def _requests_of_parent(self, row: Row) -> int:
        kin = self.window.kin.parent
        return int(self.window.day("requests")[kin == kin[row["series"]]].sum())

    def _requests(self) -> Requests:
        rows = self.rows.filter(self._requests_only)
        expected = np.full(self.window.history.series, np.nan)
        expected[rows["series"].to_numpy()] = rows["expected"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return Requests(self.window.day("requests"), expected)

    def _date(self, offset: int) -> date:
        return self.window.history.first + timedelta(days=self.window.today + offset)


def _evidence(own: pl.DataFrame, row: Row, key: str | None, records: Records, day: date) -> list[str]:
    """Ids of attempts that show it, lowest first: the largest of the class, the retries, or those of the key."""
    measure = Measure(row["measure"])
    if measure is Measure.TOKENS:
        first = own.filter(~pl.col("retry")).drop_nulls(row["token_class"])
        shown = first.sort([row["token_class"], *KEY], descending=[True, False, False])
    elif measure is Measure.RETRIES:
        shown = own.filter("retry").sort(KEY)
    else:
        shown = own.filter(~pl.col("retry")).sort(KEY)
        if key is not None:
            name, _, value = key.partition("=")
            keys = records.scan("attempt", first=day, last=day, columns=[*KEY, name])
            by_key = keys.filter(pl.col(name).cast(pl.String) == value).select(KEY).unique().collect()
            shown = shown.join(by_key, on=KEY, how="semi", maintain_order="left")
    ids = shown.head(EVIDENCE_ROWS).select("attempt_hi", "attempt_lo").iter_rows()
    return sorted(AttemptKey(hi, lo).to_hex() for hi, lo in ids)
