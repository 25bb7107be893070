"""The overview in one lazy frame, for engines that spread it over hosts themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import narwhals as nw

from weighbridge.pipeline.lake.committed import Committed
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.reconcile.engines import Engine
from weighbridge.pipeline.reconcile.frames import Frame
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.keys import LEAD
from weighbridge.pipeline.reconcile.period import ends, month_of


@dataclass(frozen=True, slots=True)
class Whole:
    """Both tables, joined day by day in one frame.

    Attributes:
        lake: the lake.
        engine: what computes.
        sides: table -> its files; at least one of them has any.
        month: whose attempts are told; null where all are.
    """

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
        aside = self.engine.kept(nw.concat([pairs.aside(paired), twice], how="vertical").unique())
        whole = pairs.matched(
            self._set_aside("attempt", one.COLUMNS_READ, aside), self._set_aside("reading", many.COLUMNS_READ, aside)
        )
        if self.month is not None:
            first, last = ends(self.month)
            whole = whole.filter((nw.col("home") >= first) & (nw.col("home") <= last))
        plain = pairs.plain(paired)
        return nw.concat([plain, whole.select(*plain.collect_schema().names())], how="vertical")

    def _set_aside(self, table: str, columns: Sequence[str], keys: Frame) -> Frame:
        """All rows of some keys."""
        return self.engine.kept(self._dated(table, columns).join(keys, on=LEAD, how="semi"))

    def _days(self) -> list[date]:
        return sorted({part.day for parts in self.sides.values() for part in parts if part.day is not None})

    def _paired(self, day: date | None, twice: Frame) -> Frame:
        known = self._scan("attempt", day, pairs.ATTEMPT_READ).join(twice, on=LEAD, how="anti")
        told = self._scan("reading", day, pairs.READING_READ).join(twice, on=LEAD, how="anti")
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

    def _twice(self) -> Frame:
        """Second halves of keys that a table has more than once."""
        keys = [nw.concat([self._scan(t, day, [LEAD]) for day in self._days()], how="vertical") for t in self.sides]
        counted = [each.group_by(LEAD).agg(rows=nw.len()).filter(nw.col("rows") > 1).select(LEAD) for each in keys]
        return self.engine.kept(nw.concat(counted, how="vertical").unique())
