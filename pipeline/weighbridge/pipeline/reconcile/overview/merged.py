"""The overview on one machine: days are joined a stretch at a time; memory does not grow with the rows.

    for each day    attempts and reports are read a stretch at a time (`stretches`) and their keys looked at (`keys`);
                    the two sides are put beside each other by the order of their keys (`meeting`), or joined on DuckDB
    plain pairs     are added up at once (`packed`)
    set aside       what has no plain pair in its day is put beside what other days set aside, by bucket (`spill`)
    the long road   whatever is not one row of either side is matched as in the reconciliation, and added up too

A key that a stretch has more than once is set aside before anything is joined, so no join can multiply a row; that
every row of either side came out once is checked all the same. A key that turns out to be in two stretches or on two
days is taken back from what was added up, and takes the long road.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl

from weighbridge.pipeline.lake.committed import Committed
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import footer
from weighbridge.pipeline.lake.shape import empty
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.pipeline.reconcile.overview import aside, pairs
from weighbridge.pipeline.reconcile.overview.aside import ALONE, TOLD
from weighbridge.pipeline.reconcile.overview.groups import P95
from weighbridge.pipeline.reconcile.overview.joined import joined, numbered
from weighbridge.pipeline.reconcile.overview.keys import LEAD, look
from weighbridge.pipeline.reconcile.overview.limits import Limits
from weighbridge.pipeline.reconcile.overview.names import WHO, Names
from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints, each_once
from weighbridge.pipeline.reconcile.overview.pairs import Certain
from weighbridge.pipeline.reconcile.overview.repeats import Repeats
from weighbridge.pipeline.reconcile.overview.spill import Spill, tried
from weighbridge.pipeline.reconcile.overview.stretches import ATTEMPT, READING, Cutter, Misplaced, Sided, Stretch
from weighbridge.pipeline.reconcile.overview.totals.packed import Packed
from weighbridge.pipeline.reconcile.period import month_of
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.tables import TABLES

_WIDE = {ATTEMPT: one.COLUMNS_READ, READING: many.COLUMNS_READ}


def merged(
    lake: Committed, attempts: Sequence[Part], readings: Sequence[Part], *, month: str | None, limits: Limits
) -> pl.DataFrame:
    """As `overview.overview`, from the files of both tables."""
    sides = {
        table: [(part, footer(lake.place, TABLES[table], part, pairs.ASKED)) for part in parts]
        for table, parts in ((ATTEMPT, attempts), (READING, readings))
    }
    doubted: frozenset[str] = frozenset()
    while True:
        place = Path(tempfile.mkdtemp(dir=limits.folder))
        try:
            return _Work(lake, replace(limits, folder=place), month, doubted).told(sides)
        except Misplaced as found:
            if str(found) in doubted:
                raise LakeError(
                    f"{found} has other rows than its commit says, or rows without {LEAD}; nothing is told. Put the "
                    "file back as it was, from a backup of the lake, or run `weighbridge validate`."
                ) from None
            doubted |= {str(found)}
        finally:
            shutil.rmtree(place)


@dataclass(slots=True)
class _Work:
    """What is added up, day by day.

    Attributes:
        lake, limits: what is read, and how much at a time.
        month: whose attempts are told; null where all are.
        doubted: addresses of files whose row groups are not believed.
    """

    lake: Committed
    limits: Limits
    month: str | None
    doubted: frozenset[str]
    names: Names = field(default_factory=Names)
    packed: Packed = field(init=False)
    narrow: Spill = field(init=False)
    repeats: Repeats = field(init=False)
    _aside: list[Ints] = field(default_factory=list)
    _long: list[Ints] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Everything that is too much goes into one folder."""
        folder = self.limits.folder
        self.packed = Packed(folder, self.limits.figures)
        self.narrow = Spill(folder, self.limits.aside)
        self.repeats = Repeats(folder, self.limits.keys)

    def told(self, sides: dict[str, list[Sided]]) -> pl.DataFrame:
        """The groups with their names, from table -> files and their footers."""
        days = sorted({part.day for parts in sides.values() for part, _ in parts if part.day is not None})
        mine = [day for day in days if self.month is None or month_of(day) == self.month]
        for day in mine:
            self._day({table: [each for each in parts if each[0].day == day] for table, parts in sides.items()})
        outside = [(table, part) for table, parts in sides.items() for part, _ in parts if part.day not in mine]
        self._beside(outside)
        again = self.repeats.found()
        self._across(again)
        self._rest({table: [part for part, _ in parts] for table, parts in sides.items()}, again)
        return self._named()

    def _day(self, mine: dict[str, list[Sided]]) -> None:
        """Join a day, add up what is plain, and set the rest aside."""
        known = {table: pairs.certain([said for _, said in parts]) for table, parts in mine.items()}
        day = next(part.day for parts in mine.values() for part, _ in parts)
        cutter = Cutter(self.lake.place, self.names, self.limits, self.doubted)
        for stretch in cutter.stretches(mine[ATTEMPT], mine[READING], known):
            self._stretch(stretch, known, day)
            # The next one is read before the name is given to it.
            del stretch

    def _stretch(self, stretch: Stretch, known: dict[str, Certain], day: date | None) -> None:
        found = joined(stretch, known, self.packed)
        stretch.check(found.each)
        alone, told = (found.rest[name][LEAD].to_numpy() for name in (ALONE, TOLD))
        self.repeats.add(found.each, alone, np.concatenate([told, found.again]))
        self._long.append(found.again)
        for name, rows in found.rest.items():
            if self.month is not None:
                self._aside.append(rows[LEAD].to_numpy())
            self.narrow.add(name, rows.with_columns(day=pl.lit(day, pl.Date)))

    def _beside(self, outside: Sequence[tuple[str, Part]]) -> None:
        """Look at the keys of other months. One that was set aside here takes the long road."""
        wanted = each_once(np.concatenate([NONE, *self._aside]))
        for table, part in outside:
            ((_, rows),) = files(table, [part])
            for batch in rows.select(LEAD).collect_batches(chunk_size=self.limits.rows):
                seen = look(batch).each
                self.repeats.add_beside(seen)
                self._long.append(seen[np.isin(seen, wanted)])

    def _across(self, again: Ints) -> None:
        """What was set aside, beside what was set aside on all other days; the rest is for the long road."""
        self._long.append(again)
        entangled = pl.Series(each_once(np.concatenate(self._long))).implode()
        for bucket in self.narrow.buckets(ALONE, TOLD):
            free = {name: rows.filter(~pl.col(LEAD).is_in(entangled)) for name, rows in bucket.items()}
            settled, long = tried(lambda held=free: aside.settled(held, self.names))  # type: ignore[misc]
            self._long.append(long)
            self._add(settled)

    def _rest(self, sides: dict[str, list[Part]], again: Ints) -> None:
        """Match what takes the long road, a bucket at a time, and add it up.

        Args:
            sides: the files of each table.
            again: of that, what may have been added up already.
        """
        keys = each_once(np.concatenate(self._long))
        if not len(keys):
            return
        spill = Spill(self.limits.folder, self.limits.held)
        wanted = pl.Series(keys).implode()
        for table, parts in sides.items():
            for _, rows in files(table, parts):
                own = rows.select(_WIDE[table]).filter(pl.col(LEAD).is_in(wanted))
                spill.add(table, own.collect(engine="streaming"))
        for bucket in spill.buckets(ATTEMPT, READING):
            matched, before = tried(lambda held=bucket: (self._matched(held), self._before(held, again)))  # type: ignore[misc]
            self._add(matched)
            self.packed.take_back(before)

    def _add(self, rows: pl.DataFrame) -> None:
        for start in range(0, rows.height, self.limits.rows):
            self.packed.add(rows.slice(start, self.limits.rows))

    def _named(self) -> pl.DataFrame:
        told = self.packed.groups()
        who, kind = told["group"] // pairs.STEP, told["group"] % pairs.STEP
        tenants, models = zip(*self.names.pairs, strict=True) if self.names.pairs else ((), ())
        texts = {"tenant": tenants, "model": models, "kind": pairs.KINDS}
        columns = [
            pl.Series(n, texts[n], dtype=pl.String).gather(at) for n, at in zip(texts, (who, who, kind), strict=True)
        ]
        return told.with_columns(columns).rename({"p95": P95})

    def _matched(self, bucket: dict[str, pl.DataFrame]) -> pl.DataFrame:
        held = {name: bucket.get(name, empty(name).select(_WIDE[name])) for name in _WIDE}
        rows = collected(pairs.matched(frame_of(held[ATTEMPT]), frame_of(held[READING])))
        if self.month is not None:
            rows = rows.filter(pl.col("home").dt.strftime("%Y-%m") == self.month)
        numbered = self.names.of_texts(rows)
        kind = pl.col("kind").replace_strict({name: n for n, name in enumerate(pairs.KINDS)}, return_dtype=pl.Int64)
        return numbered.select((pl.col(WHO) * pairs.STEP + kind).alias("group"), *pairs.FIGURES)

    def _before(self, bucket: dict[str, pl.DataFrame], again: Ints) -> pl.DataFrame:
        """The plain pairs of some keys as they were added up day by day, before it was known that they repeat."""
        wanted = pl.col(LEAD).is_in(pl.Series(again).implode())
        held = {name: rows.filter(wanted) for name, rows in bucket.items()}
        out = [pl.DataFrame(schema={"group": pl.Int64, **dict.fromkeys(pairs.FIGURES, pl.Int64)})]
        if len(held) < len(_WIDE):
            return out[0]
        named = self.names.of_texts(held[ATTEMPT].with_columns(model=pl.coalesce("model_served", "model_requested")))
        both_names = pl.all_horizontal(pl.col(name).is_not_null() for name in pairs.NAMES)
        held[ATTEMPT] = named.with_columns(pl.when(both_names).then(WHO).alias(WHO))
        for day in sorted(set(held[ATTEMPT]["day"]) & set(held[READING]["day"])):
            if self.month is None or month_of(day) == self.month:
                own = {name: rows.filter(day=day) for name, rows in held.items()}
                crowded = pl.Series(np.concatenate([look(rows).again for rows in own.values()])).implode()
                attempts, reports = (own[name].filter(~pl.col(LEAD).is_in(crowded)) for name in _WIDE)
                rows = numbered(attempts, reports, dict.fromkeys(_WIDE, pairs.NOTHING))
                out.append(rows.select("group", *pairs.FIGURES).drop_nulls("group"))
        return pl.concat(out)
