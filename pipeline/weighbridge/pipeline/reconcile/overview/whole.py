"""The overview in one lazy frame, for engines that spread it over hosts themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import narwhals as nw

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.shape import empty
from weighbridge.pipeline.reconcile.engines import Engine
from weighbridge.pipeline.reconcile.frames import Frame
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.keys import LEAD
from weighbridge.pipeline.reconcile.period import ends, month_of


@dataclass(frozen=True, slots=True)
class Whole:
    """Both tables, joined in one frame.

    Of a key that either has twice nothing is joined, so days need not be kept apart: a plan with a join for each day
    takes longer to make than the join does.

    Attributes:
        engine: what computes.
        sides: table -> its files; at least one of them has any.
        month: whose attempts are told; null where all are.
    """

    engine: Engine
    sides: Mapping[str, Sequence[Part]]
    month: str | None

    def rows(self) -> Frame:
        """Every outcome: names, `kind`, `FIGURES`."""
        twice = self._twice()
        days = [day for day in self._days() if self.month in {None, month_of(day)}]
        paired = self.engine.kept(self._paired(days, twice))
        aside = self.engine.kept(nw.concat([pairs.aside(paired), twice], how="vertical").unique())
        known = self._set_aside("attempt", one.COLUMNS_READ, aside)
        told = self._set_aside("reading", many.COLUMNS_READ, aside)
        whole = pairs.matched(known, told, kept=self.engine.kept)
        if self.month is not None:
            first, last = ends(self.month)
            whole = whole.filter((nw.col("home") >= first) & (nw.col("home") <= last))
        plain = pairs.plain(paired)
        return nw.concat([plain, whole.select(*plain.collect_schema().names())], how="vertical")

    def _set_aside(self, table: str, columns: Sequence[str], keys: Frame) -> Frame:
        """All rows of some keys."""
        return self.engine.kept(self._scan(table, self._days(), columns).join(keys, on=LEAD, how="semi"))

    def _days(self) -> list[date]:
        return sorted({part.day for parts in self.sides.values() for part in parts if part.day is not None})

    def _paired(self, days: Sequence[date], twice: Frame) -> Frame:
        known = self._scan("attempt", days, pairs.ATTEMPT_READ).join(twice, on=LEAD, how="anti")
        told = self._scan("reading", days, pairs.READING_READ).join(twice, on=LEAD, how="anti")
        return pairs.paired(pairs.attempt_side(known), pairs.reading_side(told))

    def _scan(self, table: str, days: Sequence[date], columns: Sequence[str]) -> Frame:
        """The rows of some days; a frame without rows where they have none."""
        own = [part.address for part in self.sides[table] if part.day in days]
        if not own:
            return self.engine.frame(empty(table).select(columns))
        return self.engine.scan(table, own, columns)

    def _twice(self) -> Frame:
        """Second halves of keys that a table has more than once."""
        keys = [self._scan(table, self._days(), [LEAD]) for table in self.sides]
        counted = [each.group_by(LEAD).agg(rows=nw.len()).filter(nw.col("rows") > 1).select(LEAD) for each in keys]
        return self.engine.kept(nw.concat(counted, how="vertical").unique())
