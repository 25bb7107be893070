"""One month, a few days at a time, and a large day by slices of its keys: memory depends on neither.

All that is worked out of an attempt rests on rows of its own key, and on what is known of the month as a whole (links,
losses, lessons). So a day may be cut by key like a month is by day. What is written is gathered: a day is one commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property

import polars as pl

from weighbridge.pipeline.ingest.readings import REPORT_READ
from weighbridge.pipeline.lake.records import Records, Tables
from weighbridge.pipeline.reconcile import money
from weighbridge.pipeline.reconcile.engines import current, on_driver
from weighbridge.pipeline.reconcile.engines.engine import SPARK
from weighbridge.pipeline.reconcile.explain import late, template
from weighbridge.pipeline.reconcile.explain.explanation import (
    is_open,
    lessons_of,
    searched,
    settled,
    with_structural,
)
from weighbridge.pipeline.reconcile.frames import KEY, Frame, collected, frame_of
from weighbridge.pipeline.reconcile.match import attempts, coverage, match, matched, reports, shares
from weighbridge.pipeline.reconcile.match.lateness import Lateness
from weighbridge.pipeline.reconcile.match.links import NOTHING, Links, linked
from weighbridge.pipeline.reconcile.match.members import groups, of_groups, undecided
from weighbridge.pipeline.reconcile.match.placement import Placement, placed
from weighbridge.pipeline.reconcile.match.side import side
from weighbridge.pipeline.reconcile.period import ends, month_of
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.schemas.enumerations import Direction

# Days are taken together up to about so many attempts and readings.
BATCH_ROWS = 400_000
# A day of more is cut into slices of so many; each of them reads what it needs of the day anew.
SLICE_ROWS = 2_000_000
# A cluster has the memory for more, and every slice is a plan of its own, which costs more than its rows.
_CLUSTER_ROWS = 2 * SLICE_ROWS
# A slice is of some of the 64 buckets that the low six bits of a key tell.
BUCKETS = 64


@dataclass(frozen=True)
class Month:
    """The rows of one UTC month as they lie in the lake.

    Attributes:
        lake: where they lie.
        period: `YYYY-MM`.
        prices: the rows of the price book that were used in the lake.
        as_of: the day it is, on which something may still come; null where everything is final.
        lateness: until when it may.
        whole: the month that this is a slice of; null where it is whole.
        bucket, of: of a slice: the keys whose bucket leaves this remainder.
    """

    lake: Tables
    period: str
    prices: money.Prices
    as_of: date | None = None
    lateness: Lateness = field(default_factory=Lateness)
    whole: Month | None = None
    bucket: int = 0
    of: int = 1

    @cached_property
    def days(self) -> list[date]:
        """The days of the month that have attempts or readings."""
        return [day for day in days_of(self.lake, ("attempt", "reading")) if month_of(day) == self.period]

    @cached_property
    def placement(self) -> Placement:
        """Which of its rows belong to another day, and which reports have no attempt."""
        others = len(days_of(self.lake, ("attempt", "reading"))) > len(self.days)
        keys = [*KEY, "day"]
        known, told = (self.links.rekeyed(self.lake.scan(table, columns=keys)) for table in ("attempt", "reading"))
        return placed(known, told, self.days, others=others)

    def read(self, table: str, columns: Sequence[str], days: Sequence[date] | None = None) -> pl.LazyFrame:
        """Rows of a table by attempt that are at home on these days, by default on any of the month."""
        wanted = list(dict.fromkeys([*columns, *KEY, "day"]))
        rows = self.links.rekeyed(self.lake.scan(table, columns=wanted))
        at_home = self.placement.rows(rows, self.days if days is None else days)
        return self._own(at_home).select(columns)

    def slices(self, days: Sequence[date]) -> Sequence[Month]:
        """The month, or where these days have too many rows to be worked on at once, slices of it by key."""
        most = _CLUSTER_ROWS if current().name == SPARK else SLICE_ROWS
        number = min(BUCKETS, -(-sum(self._sizes.get(day, 0) for day in days) // most))
        return [self._slice(bucket, number) for bucket in range(number)] if number > 1 else (self,)

    def _slice(self, bucket: int, of: int) -> Month:
        """Rows of some keys; what is known of the month as a whole is worked out once."""
        made = replace(self, whole=self, bucket=bucket, of=of)
        made.__dict__.update({name: getattr(self, name) for name in _OF_MONTH})
        return made

    def _own(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows if self.of == 1 else rows.filter((pl.col("attempt_lo") & (BUCKETS - 1)) % self.of == self.bucket)

    @cached_property
    def links(self) -> Links:
        """Which attempts of the month are the same, and which are tries of one request."""
        few = of_groups(self._groups, self.near)
        found = linked(few) if few.height else NOTHING
        return found.with_undecided(undecided(self._groups, self.near))

    @cached_property
    def grouped(self) -> pl.DataFrame:
        """attempt_lo, attempt_hi of all attempts that links were looked for between."""
        return self._groups.select(KEY).unique()

    @cached_property
    def _groups(self) -> pl.DataFrame:
        return groups(self.near)

    def near(self, table: str, columns: Sequence[str]) -> pl.LazyFrame:
        """Rows of a table by their own day, those of a day before and after the month too."""
        first, last = ends(self.period)
        begin = first if first == date.min else first - timedelta(days=1)
        end = last if last == date.max else last + timedelta(days=1)
        return self.lake.scan(table, first=begin, last=end, columns=columns)

    def dated(self, table: str, columns: Sequence[str] | None = None) -> pl.LazyFrame:
        """Rows of a table by their own day."""
        first, last = ends(self.period)
        return self.lake.scan(table, first=first, last=last, columns=columns)

    @cached_property
    def unseen(self) -> pl.DataFrame:
        """The reports without an attempt and how they stand to known losses (`match.held_against`)."""
        gaps = self.lake.scan("gap").collect()
        with on_driver():
            return collected(
                by_recipe(
                    match.held_against,
                    frame_of(self.placement.unseen),
                    frame_of(coverage.losses(gaps)),
                    frame_of(coverage.named_losses(gaps)),
                )
            )

    @cached_property
    def speakers(self) -> pl.DataFrame:
        """Who sent usage reports."""
        return collected(by_recipe(match.speakers, frame_of(self.read("reading", ["provider", "api"]))))

    def batches(self) -> Sequence[list[date]]:
        """The days of the month, a few at a time."""
        return self._batches

    @cached_property
    def _batches(self) -> list[list[date]]:
        return list(self._taken_together())

    @cached_property
    def _sizes(self) -> dict[date, int]:
        """Day -> its attempts and readings."""
        sizes: dict[date, int] = {}
        for table in ("attempt", "reading"):
            counted = self.dated(table, ["day"]).group_by("day").len().collect()
            for day, rows_of_day in counted.iter_rows():
                sizes[day] = sizes.get(day, 0) + rows_of_day
        return sizes

    def _taken_together(self) -> Iterator[list[date]]:
        sizes = self._sizes
        batch: list[date] = []
        for day in self.days:
            if batch and sum(sizes.get(each, 0) for each in [*batch, day]) > BATCH_ROWS:
                yield batch
                batch = []
            batch.append(day)
        if batch:
            yield batch

    def compared(self, days: Sequence[date]) -> pl.DataFrame:
        """The attempts of these days beside their reports (`match.compared`)."""
        written = self.read("attempt", attempts.COLUMNS_READ, days)
        told = pl.concat([written, shares.as_attempts(self.read("engine_share", shares.READ, days), written)])
        left = collected(by_recipe(attempts.one_per_attempt, frame_of(told)))
        right = collected(by_recipe(reports.per_attempt, frame_of(self.read("reading", reports.COLUMNS_READ, days))))
        speaking, unseen = frame_of(self.speakers), frame_of(self.unseen.select(*KEY, "loss"))
        related = self.links.related
        both = by_recipe(
            match.compared,
            frame_of(left),
            frame_of(right),
            speaking,
            unseen,
            self._waiting(left, right),
            frame_of(related) if related.height else None,
        )
        return collected(both)

    def _waiting(self, left: pl.DataFrame, right: pl.DataFrame) -> Frame | None:
        """Until when what is missing of these days may still come."""
        if self.as_of is None:
            return None
        names = pl.concat([left["provider"], right["r_provider"]]).unique().to_list()
        open_days = self.lateness.waiting(self.as_of, names, self.days)
        return None if open_days is None else frame_of(open_days)

    @cached_property
    def lessons(self) -> pl.DataFrame:
        """What the month teaches about templates. It is read twice only if there is anything to learn from."""
        if self.whole is not None:
            return self.whole.lessons
        pupils = [
            collected(by_recipe(lessons_of, by_recipe(side, frame_of(part.compared(days)), Direction.INPUT)))
            for days in (self.batches() if self._may_learn() else ())
            for part in self.slices(days)
        ]
        seen = pl.concat(pupils) if pupils else template.NO_POINTS
        with on_driver():
            return collected(by_recipe(template.learnt, frame_of(seen)))

    def _may_learn(self) -> bool:
        wanted = ["input_recounted", "recount_template", "recount_has_template"]
        bare = pl.col("recount_template").is_null() & ~pl.col("recount_has_template")
        found = self.read("attempt", wanted).filter(bare & pl.col("input_recounted").is_not_null())
        return bool(found.head(1).collect().height)

    def explained(self, compared: pl.DataFrame, direction: Direction, days: Sequence[date]) -> pl.DataFrame:
        """One direction of them with its causes (`explanation.explained`); most days leave nothing to search for."""
        sided = by_recipe(side, frame_of(compared), direction)
        known = collected(by_recipe(with_structural, sided, direction))
        plain = collected(by_recipe(settled, frame_of(known), direction))
        if plain.height == compared.height:
            return plain
        lessons = self.lessons
        # The few that are left are here already, and a search is many small joins: nothing to bother a cluster with.
        with on_driver():
            left = frame_of(collected(frame_of(known).filter(is_open())))
            children = collected(by_recipe(late.of_children, frame_of(self.read("child", late.CHILD_READ, days))))
            running = self._running(collected(left.select(*KEY)), days)
            found = collected(by_recipe(searched, left, direction, frame_of(lessons), frame_of(children), running))
        return pl.concat([plain, found])

    def _running(self, keys: pl.DataFrame, days: Sequence[date]) -> Frame | None:
        """What streams reported more than once, of those with something left to explain; null where none did."""
        parts = self.read("usage_report", ["part"], days).filter(pl.col("part") > 0).select(pl.len())
        if not parts.collect(engine="streaming").item():
            return None
        told = self.read("usage_report", REPORT_READ, days).join(keys.lazy(), on=list(KEY), how="semi").collect()
        return frame_of(late.of_running(told))

    def priced(self, parts: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
        """Parts of gaps with what they cost."""
        keys = parts.lazy().select(KEY).unique()
        readings = self.read("reading", reports.COLUMNS_READ, days).join(keys, on=list(KEY), how="semi")
        amounts = self.read("priced_amount", money.PRICED_READ, days).join(keys, on=list(KEY), how="semi")
        held, costs = pl.collect_all([readings, amounts], engine="streaming")
        with on_driver():
            return money.priced(parts, held, costs, self.prices)

    def matched(self, reconciled: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
        """Rows of `reconciled` with how their sides met, and those of attempts compared under another key."""
        rows = matched.told(reconciled, self.links, lambda table, columns: self.read(table, columns, days))
        if self.links.twins.is_empty():
            return rows
        keys = self.links.twins.lazy().select(KEY)
        raw = self.dated("attempt", list(attempts.COLUMNS_READ)).join(keys, on=list(KEY), how="semi")
        own = collected(by_recipe(attempts.one_per_attempt, frame_of(self._own(raw))))
        away = matched.moved(self.links, own, days).select(rows.columns).cast(rows.schema)
        return pl.concat([rows, away])

    def limits(self, left: pl.DataFrame, days: Sequence[date]) -> pl.DataFrame:
        """What residuals may cost (`money.limits`)."""
        keys = left.lazy().select(KEY).unique()
        amounts = self.read("priced_amount", money.PRICED_READ, days).join(keys, on=list(KEY), how="semi")
        with on_driver():
            return money.limits(left, amounts.collect(engine="streaming"), self.prices)


_OF_MONTH = ("days", "placement", "links", "unseen", "speakers")


def days_of(lake: Records, tables: Sequence[str]) -> list[date]:
    """The days on which any of these tables has rows."""
    return sorted({day for table in tables for day in lake.days(table)})
