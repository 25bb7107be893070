"""The overview on Polars: sorted days are merged, not hashed, a stretch at a time; memory does not grow with the rows.

    for each day    attempts and reports of the day, both sorted by the second half of the key, are merge-joined;
                    a day whose files are not known to be sorted, or of several runs, is hash-joined
    plain pairs     are added up at once (`packed`)
    set aside       what has no plain pair in its day is put beside what other days set aside, by bucket (`spill`)
    the long road   whatever is not one row of either side is matched as in the reconciliation, and added up too

A key that a table has more than once is set aside before anything is joined, so no join can multiply a row; that every
row of either side came out once is checked all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from weighbridge.pipeline.lake.committed import Committed
from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import Footer, checked, footer
from weighbridge.pipeline.lake.order import Order
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.reconcile.frames import Frame, collected, frame_of
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.groups import P95
from weighbridge.pipeline.reconcile.overview.names import WHO, Names
from weighbridge.pipeline.reconcile.overview.packed import AT_ONCE, Ints, Packed
from weighbridge.pipeline.reconcile.overview.repeated import LEAD, repeated
from weighbridge.pipeline.reconcile.overview.spill import HELD, Spill, tried
from weighbridge.pipeline.reconcile.period import month_of
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.tables import TABLES, UNASSIGNED

ATTEMPT, READING = "attempt", "reading"
_WIDE = {ATTEMPT: one.COLUMNS_READ, READING: many.COLUMNS_READ}
# Rows of one day without a plain pair in it: attempts, and reports.
ALONE, TOLD = "alone", "told"
_MISSING, _UNSEEN = pairs.KINDS.index(pairs.MISSING), pairs.KINDS.index(pairs.UNSEEN)
_EMPTY = {
    ALONE: pl.DataFrame(
        schema={
            LEAD: pl.Int64,
            "attempt_hi": pl.Int64,
            WHO: pl.Int64,
            "input": pl.Int64,
            "output": pl.Int64,
            "day": pl.Date,
        }
    ),
    TOLD: pl.DataFrame(
        schema={
            LEAD: pl.Int64,
            "attempt_hi": pl.Int64,
            "readable": pl.Boolean,
            "r_input": pl.Int64,
            "r_output": pl.Int64,
            "model": pl.String,
            "day": pl.Date,
        }
    ),
}
Sided = tuple[Part, Footer]
# Attempts and reports that have no key in common with other stretches, and whether both are sorted.
Stretch = tuple[pl.DataFrame, pl.LazyFrame, bool]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is held at a time.

    Attributes:
        folder: where what is too much goes; removed by whoever made it.
        rows: attempts of a day that are joined together.
        keys: keys that are looked through for repetitions together, and figures that are sorted together.
        held: rows that are set aside before they go to disk.
        trust: whether a file that says it is sorted is believed; if not, each is read and checked first.
    """

    folder: Path
    rows: int = 2_000_000
    keys: int = AT_ONCE
    held: int = HELD
    trust: bool = True


def merged(
    lake: Committed, attempts: Sequence[Part], readings: Sequence[Part], *, month: str | None, limits: Limits
) -> pl.DataFrame:
    """As `overview.overview`, from the files of both tables."""
    sides = {
        table: [(part, footer(lake.place, TABLES[table], part, pairs.ASKED)) for part in parts]
        for table, parts in ((ATTEMPT, attempts), (READING, readings))
    }
    found = [repeated(table, parts, limits.keys) for table, parts in sides.items()]
    work = _Work(lake, limits, np.unique(np.concatenate(found)), month)
    for day in sorted({part.day for parts in sides.values() for part, _ in parts if part.day is not None}):
        mine = {table: [each for each in parts if each[0].day == day] for table, parts in sides.items()}
        if month is None or month_of(day) == month:
            work.day(mine)
    outside = [] if month is None else [
        (table, part) for table, parts in sides.items() for part, _ in parts
        if part.day is not None and month_of(part.day) != month
    ]  # fmt: skip
    work.across(outside)
    work.rest({table: [part for part, _ in parts] for table, parts in sides.items()})
    return work.groups()


@dataclass(slots=True)
class _Work:
    """What is added up, day by day.

    Attributes:
        lake, limits: what is read, and how much at a time.
        twice: second halves of keys that a table has more than once.
        month: whose attempts are told; null where all are.
    """

    lake: Committed
    limits: Limits
    twice: Ints
    month: str | None
    names: Names = field(default_factory=Names)
    packed: Packed = field(init=False)
    spill: Spill = field(init=False)
    narrow: Spill = field(init=False)
    known: dict[str, pairs.Certain] = field(default_factory=dict)
    _aside: list[Ints] = field(default_factory=list)
    _long: list[Ints] = field(init=False)

    def __post_init__(self) -> None:
        """Everything that is too much goes into one folder."""
        self.packed = Packed(self.limits.folder, self.limits.keys)
        self.spill = Spill(self.limits.folder, self.limits.held)
        self.narrow = Spill(self.limits.folder, self.limits.held)
        self._long = [self.twice]

    def day(self, mine: dict[str, list[Sided]]) -> None:
        """Join a day, add up what is plain, and set the rest aside."""
        self.known = {table: pairs.certain([said for _, said in parts]) for table, parts in mine.items()}
        day = next(part.day for parts in mine.values() for part, _ in parts)
        for attempts, reports, is_sorted in self._stretches(mine):
            rest = tried(lambda a=attempts, r=reports, s=is_sorted: self._joined(a, r, s))  # type: ignore[misc]
            for name, rows in rest.items():
                if self.month is not None:
                    self._aside.append(rows[LEAD].to_numpy())
                self.narrow.add(name, rows.with_columns(day=pl.lit(day, pl.Date)))

    def across(self, outside: Sequence[tuple[str, Part]]) -> None:
        """What was set aside, beside what was set aside on all other days; the rest is for the long road.

        Args:
            outside: files of other months. A key that they have too takes the long road.
        """
        keys = np.unique(np.concatenate([np.zeros(0, np.int64), *self._aside]))
        if len(keys) and outside:
            wanted = pl.Series(keys).implode()
            for table, part in outside:
                for _, rows in files(table, [part]):
                    found = rows.select(LEAD).filter(pl.col(LEAD).is_in(wanted)).collect(engine="streaming")
                    self._long.append(found[LEAD].to_numpy())
        entangled = pl.Series(np.unique(np.concatenate(self._long)), dtype=pl.Int64).implode()
        for bucket in self.narrow.buckets(ALONE, TOLD):
            free = {name: rows.filter(~pl.col(LEAD).is_in(entangled)) for name, rows in bucket.items()}
            settled, long = tried(lambda held=free: self._settled(held))  # type: ignore[misc]
            self._long.append(long)
            self._add(settled)

    def rest(self, sides: dict[str, list[Part]]) -> None:
        """Match what takes the long road, a bucket at a time, and add it up."""
        keys = np.unique(np.concatenate(self._long))
        if not len(keys):
            return
        for table, parts in sides.items():
            self._set_aside(table, parts, keys)
        for bucket in self.spill.buckets(ATTEMPT, READING):
            rows = tried(lambda held=bucket: self._matched(held))  # type: ignore[misc]
            self._add(rows)

    def _add(self, rows: pl.DataFrame) -> None:
        for start in range(0, rows.height, self.limits.rows):
            self.packed.add(rows.slice(start, self.limits.rows))

    def _settled(self, bucket: dict[str, pl.DataFrame]) -> tuple[pl.DataFrame, Ints]:
        """Pairs over midnight, attempts without a report and reports without an attempt, where each has one row.

        They are what the long road would make of them: it is for attempts with several rows, reports that cannot be
        read, rows without names, and keys that have one half in common.
        """
        alone, told = (bucket.get(name, empty) for name, empty in ((ALONE, _EMPTY[ALONE]), (TOLD, _EMPTY[TOLD])))
        told = told.rename({LEAD: "r_lo", "attempt_hi": "r_hi", "day": "r_day", "model": "r_model"})
        both = collected(pairs.paired(frame_of(alone), frame_of(told), (WHO,)))
        if both[LEAD].count() != alone.height or both["r_lo"].count() != told.height:
            raise LakeError(
                "joining what was set aside lost or made rows; nothing is told. Run `weighbridge validate`."
            )
        single = pl.col("r_lo").is_null() & pl.col(WHO).is_not_null()
        lone = pl.col(LEAD).is_null()
        long = both.filter(~pl.col("plain") & ~single & ~lone)
        plain = collected(pairs.numbered(frame_of(both.filter("plain")), WHO)).select("group", *pairs.FIGURES)
        unknown = pl.lit(None, pl.Int64)
        missing = both.filter(single).select(
            (pl.col(WHO) * pairs.STEP + _MISSING).alias("group"),
            *("input", "output"),
            *(unknown.alias(f"{side}_difference") for side in ("input", "output")),
        )
        texts = both.filter(lone).select(tenant=pl.lit(UNASSIGNED), model="r_model")
        unseen = self.names.of_texts(texts).select(
            (pl.col(WHO) * pairs.STEP + _UNSEEN).alias("group"), *(unknown.alias(name) for name in pairs.FIGURES)
        )
        return pl.concat([plain, missing, unseen]), long[LEAD].to_numpy()

    def groups(self) -> pl.DataFrame:
        """The groups with their names."""
        told = self.packed.groups()
        who, kind = told["group"] // pairs.STEP, told["group"] % pairs.STEP
        tenants, models = zip(*self.names.pairs, strict=True) if self.names.pairs else ((), ())
        texts = {"tenant": tenants, "model": models, "kind": pairs.KINDS}
        columns = [
            pl.Series(n, texts[n], dtype=pl.String).gather(at) for n, at in zip(texts, (who, who, kind), strict=True)
        ]
        return told.with_columns(columns).rename({"p95": P95})

    def _matched(self, bucket: dict[str, pl.DataFrame]) -> pl.DataFrame:
        held = {name: bucket.get(name, self.lake.scan(name, columns=_WIDE[name]).clear().collect()) for name in _WIDE}
        rows = collected(pairs.matched(frame_of(held[ATTEMPT]), frame_of(held[READING])))
        if self.month is not None:
            rows = rows.filter(pl.col("home").dt.strftime("%Y-%m") == self.month)
        numbered = self.names.of_texts(rows)
        kind = pl.col("kind").replace_strict({name: n for n, name in enumerate(pairs.KINDS)}, return_dtype=pl.Int64)
        return numbered.select((pl.col(WHO) * pairs.STEP + kind).alias("group"), *pairs.FIGURES)

    def _set_aside(self, table: str, parts: Sequence[Part], keys: Ints) -> None:
        wanted = pl.Series(keys).implode()
        for _, rows in files(table, parts):
            own = rows.select(_WIDE[table]).filter(pl.col(LEAD).is_in(wanted))
            self.spill.add(table, own.collect(engine="streaming"))

    # --- one stretch of a day ------------------------------------------------------------------------------------

    def _joined(self, attempts: pl.DataFrame, asked: pl.LazyFrame, is_sorted: bool) -> dict[str, pl.DataFrame]:
        """Add up the plain pairs of a stretch, and give the rest of both sides."""
        reports = asked.collect(engine="streaming")
        if len(self.twice):
            once = ~pl.col(LEAD).is_in(pl.Series(self.twice).implode())
            attempts, reports = attempts.filter(once), reports.filter(once)
        rows = self._numbered(attempts.lazy(), reports.lazy(), is_sorted)
        if is_sorted and _attempts_of(rows) != attempts.height:
            # Whoever said that the rows are sorted was wrong. What is hashed needs no order.
            rows = self._numbered(attempts.lazy(), reports.lazy(), is_sorted=False)
        if _attempts_of(rows) != attempts.height:
            raise LakeError(
                f"{self.lake.root}: joining attempts and readings gave {_attempts_of(rows):,} rows for "
                f"{attempts.height:,} attempts; nothing is told. Run `weighbridge validate`: keys are repeated."
            )
        own = attempts.filter(pl.col(LEAD).is_in(rows["aside_attempt_lo"].drop_nulls().implode()))
        other = reports.filter(pl.col(LEAD).is_in(rows["aside_r_lo"].drop_nulls().implode()))
        sides = (pairs.attempt_side(frame_of(own), (WHO,), self.known[ATTEMPT]), self._told(other))
        rest = dict(zip((ALONE, TOLD), map(collected, sides), strict=True))
        rest[TOLD] = rest[TOLD].rename({"r_lo": LEAD, "r_hi": "attempt_hi"}).with_columns(other["model"])
        self.packed.add(rows.filter(pl.col("group").is_not_null()).select("group", *pairs.FIGURES))
        return rest

    def _told(self, reports: pl.DataFrame) -> Frame:
        return pairs.reading_side(frame_of(reports), self.known[READING])

    def _numbered(self, left: pl.LazyFrame, right: pl.LazyFrame, is_sorted: bool) -> pl.DataFrame:
        if is_sorted:
            left, right = left.set_sorted(LEAD), right.set_sorted(LEAD)
        known = pairs.attempt_side(frame_of(left), (WHO,), self.known[ATTEMPT])
        told = pairs.reading_side(frame_of(right), self.known[READING])
        return collected(pairs.numbered(pairs.paired(known, told, (WHO,)), WHO))

    def _stretches(self, mine: dict[str, list[Sided]]) -> Iterator[Stretch]:
        """A day in stretches of both sides that have the same keys, and whether each is sorted."""
        attempts, reports = mine[ATTEMPT], mine[READING]
        single = all(len(parts) <= 1 for parts in mine.values())
        is_sorted = single and all(self._is_sorted(t, each) for t, parts in mine.items() for each in parts)
        rows = sum(part.rows for part, _ in (*attempts, *reports))
        read = [*pairs.reading_read(self.known[READING]), "model"]
        told = [scan.select(read) for _, scan in files(READING, [part for part, _ in reports])]
        right = pl.concat(told) if told else pl.LazyFrame(schema=self._schema(READING, read))
        if rows <= 2 * self.limits.rows:
            yield self._attempts(attempts), right, is_sorted
        elif is_sorted and attempts:
            yield from self._ranges(attempts[0], right)
        else:
            yield from self._buckets(attempts, right)

    def _is_sorted(self, table: str, side: Sided) -> bool:
        part, said = side
        order = said.order if self.limits.trust else None
        return (order or checked(TABLES[table], part)) is not Order.NONE

    def _attempts(self, parts: Sequence[Sided], groups: Sequence[int] | None = None) -> pl.DataFrame:
        """Narrow attempts with the number of their names, in the order they lie in."""
        out = [self._empty_attempts()]
        for (part, said), (_, scan) in zip(parts, files(ATTEMPT, [part for part, _ in parts]), strict=True):
            wanted = list(range(len(said.stretches))) if groups is None else list(groups)
            if wanted:
                first, last = said.stretches[wanted[0]], said.stretches[wanted[-1]]
                rows = scan.select(pairs.attempt_read(self.known[ATTEMPT])).slice(
                    first.first, last.first + last.rows - first.first
                )
                who = self.names.of_rows(self.lake.place, part, wanted)
                out.append(rows.collect(engine="streaming").with_columns(who))
        return pl.concat(out)

    def _ranges(self, attempts: Sided, reports: pl.LazyFrame) -> Iterator[Stretch]:
        """Row groups of a sorted file, and the reports between their ends: no key lies in two stretches."""
        groups = attempts[1].stretches
        size = max(1, self.limits.rows // max(each.rows for each in groups))
        starts = [0, *(n for n in range(size, len(groups)) if n % size == 0 and groups[n].least != groups[n - 1].most)]
        for start, end in pairwise([*starts, len(groups)]):
            inside = pl.lit(value=True)
            if start:
                inside &= pl.col(LEAD) >= groups[start].least
            if end < len(groups):
                inside &= pl.col(LEAD) < groups[end].least
            yield self._attempts([attempts], range(start, end)), reports.filter(inside), True

    def _buckets(self, parts: Sequence[Sided], reports: pl.LazyFrame) -> Iterator[Stretch]:
        """A day that is too large and not sorted, bucket by bucket from disk."""
        folder = self.limits.folder / f"day-{len(list(self.limits.folder.glob('day-*')))}"
        folder.mkdir()
        spill = Spill(folder, self.limits.held)
        for part, said in parts:
            for group in range(len(said.stretches)):
                spill.add(ATTEMPT, self._attempts([(part, said)], [group]))
        for batch in reports.collect_batches(chunk_size=self.limits.held):
            spill.add(READING, batch)
        for bucket in spill.buckets(ATTEMPT, READING):
            own = bucket.get(READING, pl.DataFrame(schema=reports.collect_schema()))
            yield bucket.get(ATTEMPT, self._empty_attempts()), own.lazy(), False

    def _schema(self, table: str, columns: Sequence[str]) -> dict[str, pl.DataType]:
        types = polars_schema(table)
        return {name: types[name] for name in columns}

    def _empty_attempts(self) -> pl.DataFrame:
        return pl.DataFrame(schema={**self._schema(ATTEMPT, pairs.attempt_read(self.known[ATTEMPT])), WHO: pl.Int64()})


def _attempts_of(rows: pl.DataFrame) -> int:
    """How many attempts came out of a join: those of plain pairs, and those that were set aside."""
    return int(rows["group"].count() + rows["aside_attempt_lo"].count())
