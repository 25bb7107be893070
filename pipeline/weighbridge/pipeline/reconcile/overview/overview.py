"""Every attempt and report of the lake, or of a month, by tenant, model and outcome."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl

from weighbridge.pipeline.lake.committed import Committed
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import footer
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.reconcile.engines import Engine, using
from weighbridge.pipeline.reconcile.engines.engine import POLARS, SPARK
from weighbridge.pipeline.reconcile.frames import Frame
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.groups import SCHEMA, grouped, in_order
from weighbridge.pipeline.reconcile.overview.merged import Limits, merged
from weighbridge.pipeline.reconcile.overview.repeated import repeated
from weighbridge.pipeline.reconcile.period import ends, month_of
from weighbridge.schemas.tables import TABLES

_LEAD = "attempt_lo"


def overview(lake: Committed, *, month: str | None = None, engine: str = POLARS) -> pl.DataFrame:
    """Groups of tenant, model and kind (`pairs.KINDS`) with how many attempts, exact sums and the exact percentile.

    Args:
        lake: the lake; it is only read.
        month: `YYYY-MM`, the attempts and lone reports that are at home in that UTC month; the whole lake where null.
        engine: polars, duckdb or spark; the digits are the same.

    Returns:
        `groups.SCHEMA`, in the order of names. `input`, `output` are what was observed, the differences are reported
        minus observed; null where no row of the group knows one.

    Raises:
        SumError: a sum is beyond 64 bits.
        LakeError: a file cannot be read.
    """
    attempts, readings = lake.parts("attempt"), lake.parts("reading")
    if not attempts and not readings:
        return pl.DataFrame(schema=SCHEMA)
    with using(engine) as made, tempfile.TemporaryDirectory(prefix="weighbridge-overview-") as folder:
        if made.name == POLARS:
            return in_order(merged(lake, attempts, readings, month=month, limits=Limits(Path(folder))))
        return in_order(
            made.collected(grouped(_Whole(lake, made, {"attempt": attempts, "reading": readings}, month).rows()))
        )


@dataclass(frozen=True, slots=True)
class _Whole:
    """The same in one lazy frame, for engines that hold or spread it themselves."""

    lake: Committed
    engine: Engine
    sides: Mapping[str, Sequence[Part]]
    month: str | None

    def rows(self) -> Frame:
        """Every outcome: names, `kind`, `FIGURES`."""
        twice = self._twice()
        days = [day for day in self._days() if self.month in {None, month_of(day)}]
        joined = [self._paired(day, twice) for day in days] or [self._paired(None, twice)]
        paired = self.engine.kept(nw.concat(joined, how="vertical"))
        keys = [pairs.aside(paired), *([] if twice is None else [twice])]
        aside = self.engine.kept(nw.concat(keys, how="vertical").unique())
        whole = pairs.matched(
            self._set_aside("attempt", one.COLUMNS_READ, aside), self._set_aside("reading", many.COLUMNS_READ, aside)
        )
        if self.month is not None:
            first, last = ends(self.month)
            whole = whole.filter((nw.col("home") >= first) & (nw.col("home") <= last))
        plain = pairs.plain(paired)
        return nw.concat([plain, whole.select(*plain.collect_schema().names())], how="vertical")

    def _set_aside(self, table: str, columns: Sequence[str], keys: Frame) -> Frame:
        """All rows of some keys. They are few, and on one machine Polars reads no other column of all the others."""
        if self.engine.name == SPARK:
            return self.engine.kept(self._dated(table, columns).join(keys, on=_LEAD, how="semi"))
        wanted = self.engine.collected(keys)[_LEAD].implode()
        read = [rows.select(columns).filter(pl.col(_LEAD).is_in(wanted)) for _, rows in files(table, self.sides[table])]
        empty = self.lake.scan(table, columns=columns).clear()
        return self.engine.frame(pl.concat([empty.collect(), *pl.collect_all(read, engine="streaming")]))

    def _days(self) -> list[date]:
        return sorted({part.day for parts in self.sides.values() for part in parts if part.day is not None})

    def _paired(self, day: date | None, twice: Frame | None) -> Frame:
        known = self._scan("attempt", day, pairs.ATTEMPT_READ)
        told = self._scan("reading", day, pairs.READING_READ)
        if twice is not None:
            known, told = (side.join(twice, on=_LEAD, how="anti") for side in (known, told))
        return pairs.paired(pairs.attempt_side(known), pairs.reading_side(told))

    def _scan(self, table: str, day: date | None, columns: Sequence[str]) -> Frame:
        """The rows of one day; a frame without rows where it has none."""
        own = [part.address for part in self.sides[table] if part.day == day]
        if not own:
            return self.engine.frame(self.lake.scan(table, columns=columns).clear())
        return self.engine.scan(table, own, columns)

    def _dated(self, table: str, columns: Sequence[str]) -> Frame:
        """All days, with the column `day`, which files do not hold."""
        stored = [name for name in columns if name != "day"]
        days = [self._scan(table, day, stored).with_columns(day=nw.lit(day, dtype=nw.Date)) for day in self._days()]
        return nw.concat(days, how="vertical").select(*columns)

    def _twice(self) -> Frame | None:
        """Second halves of keys that a table has more than once; null where none is."""
        if self.engine.name == SPARK:
            keys = [
                nw.concat([self._scan(t, day, [_LEAD]) for day in self._days()], how="vertical") for t in self.sides
            ]
            counted = [
                each.group_by(_LEAD).agg(rows=nw.len()).filter(nw.col("rows") > 1).select(_LEAD) for each in keys
            ]
            return self.engine.kept(nw.concat(counted, how="vertical").unique())
        held = {t: [(part, footer(self.lake.place, TABLES[t], part)) for part in own] for t, own in self.sides.items()}
        found = np.unique(np.concatenate([repeated(table, parts) for table, parts in held.items()]))
        return self.engine.frame(pl.DataFrame({_LEAD: found})) if len(found) else None

    def _again(self, table: str) -> Frame:
        every = nw.concat([self._scan(table, day, [_LEAD]) for day in self._days()], how="vertical")
        return every.group_by(_LEAD).agg(rows=nw.len()).filter(nw.col("rows") > 1).select(_LEAD)
