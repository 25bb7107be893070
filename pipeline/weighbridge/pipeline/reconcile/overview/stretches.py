"""A day cut into stretches: attempts, and the reports that have their keys, as many at a time as may be held.

A day that fits is one stretch. Of a larger one whose row groups say that they do not overlap, some row groups are read
at a time with the reports between their ends; any other one goes to disk by bucket of the key. What row groups say is
believed only until their rows are here: a stretch that has keys of another one is refused (`Misplaced`), and whoever
asked starts again without believing that file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import Footer
from weighbridge.pipeline.lake.footer import Stretch as Group
from weighbridge.pipeline.lake.order import Order
from weighbridge.pipeline.lake.place import Place
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.keys import LEAD, whole
from weighbridge.pipeline.reconcile.overview.limits import Limits
from weighbridge.pipeline.reconcile.overview.names import WHO, Names
from weighbridge.pipeline.reconcile.overview.numbers.columns import Rising
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints
from weighbridge.pipeline.reconcile.overview.pairs import Certain
from weighbridge.pipeline.reconcile.overview.spill import Spill

ATTEMPT, READING = "attempt", "reading"
Sided = tuple[Part, Footer]


class Misplaced(Exception):  # noqa: N818 - no error of the user's: the work is done another way
    """A file has rows outside the ends that its row groups say they have; its address."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Attempts and reports of a day that have no key in common with other stretches of it.

    Attributes:
        attempts: their keys, figures and the number of their names (`WHO`).
        reports: their keys, what `pairs.reading_side` needs, and `model`.
        source: the file whose row groups say so; null where nothing had to be believed.
        least, until: the ends all keys of the attempts lie between, the second one excluded; null where there is none.
    """

    attempts: pl.DataFrame
    reports: pl.LazyFrame
    source: str | None = None
    least: int | None = None
    until: int | None = None

    def check(self, keys: Sequence[Ints]) -> None:
        """See that the attempts, whose keys are these, rising, in pieces, lie where the file says.

        Raises:
            Misplaced: they do not.
        """
        held = [piece for piece in keys if len(piece)]
        if self.source is None or not held:
            return
        first, last = int(held[0][0]), int(held[-1][-1])
        if (self.least is not None and first < self.least) or (self.until is not None and last >= self.until):
            raise Misplaced(self.source)


@dataclass(frozen=True, slots=True)
class Cutter:
    """What a day is cut with.

    Attributes:
        place: the lake.
        names: the names met so far.
        limits: how much is held at a time.
        doubted: addresses of files whose row groups are not believed.
    """

    place: Place
    names: Names
    limits: Limits
    doubted: frozenset[str] = frozenset()

    def stretches(
        self, attempts: Sequence[Sided], reports: Sequence[Sided], known: dict[str, Certain]
    ) -> Iterator[Stretch]:
        """The stretches of a day.

        Args:
            attempts, reports: the files of that day.
            known: table -> what their footers say.
        """
        read = [*pairs.reading_read(known[READING]), "model"]
        told = [scan.select(read) for _, scan in files(READING, [part for part, _ in reports])]
        right = pl.concat(told) if told else pl.LazyFrame(schema=_schema(READING, read))
        inside = self._in_order(attempts) and self._in_order(reports)
        size = self.limits.stretch if inside else self.limits.rows
        if sum(part.rows for part, _ in (*attempts, *reports)) <= 2 * size:
            yield Stretch(self._attempts(attempts, known[ATTEMPT]), right)
        elif self._in_order(attempts):
            yield from self._ranges(attempts[0], reports, right, known[ATTEMPT], size)
        else:
            yield from self._buckets(attempts, right, known[ATTEMPT])

    def _in_order(self, parts: Sequence[Sided]) -> bool:
        """Whether the rows are one file whose row groups do not overlap, as far as is known."""
        return len(parts) == 1 and parts[0][0].address not in self.doubted and _apart(parts[0][1])

    def _attempts(self, parts: Sequence[Sided], known: Certain, groups: Sequence[int] | None = None) -> pl.DataFrame:
        """Narrow attempts with the number of their names, in the order they lie in."""
        out = [_no_attempts(known)]
        for (part, said), (_, scan) in zip(parts, files(ATTEMPT, [part for part, _ in parts]), strict=True):
            wanted = list(range(len(said.stretches))) if groups is None else list(groups)
            if wanted:
                first, last = said.stretches[wanted[0]], said.stretches[wanted[-1]]
                rows = scan.select(pairs.attempt_read(known)).slice(first.first, last.first + last.rows - first.first)
                who = self.names.of_rows(self.place, part, wanted, known.absent)
                out.append(rows.collect(engine="streaming").with_columns(who))
        return pl.concat(out) if len(out) > 2 else out[-1]

    def _ranges(
        self, attempts: Sided, reports: Sequence[Sided], told: pl.LazyFrame, known: Certain, rows_at_once: int
    ) -> Iterator[Stretch]:
        """Row groups one after the other, and the reports between their ends."""
        part, said = attempts
        groups = said.stretches
        size = max(1, rows_at_once // max(each.rows for each in groups))
        inside = self._in_order(reports)
        following = _Following(told, list(reports[0][1].stretches)) if inside else None
        found = 0
        starts = [0, *(n for n in range(size, len(groups)) if n % size == 0 and groups[n].least != groups[n - 1].most)]
        for start, end in pairwise([*starts, len(groups)]):
            least = groups[start].least if start else None
            until = groups[end].least if end < len(groups) else None
            rows = self._attempts([attempts], known, range(start, end))
            held = _between(told, least, until) if following is None else following.before(until)
            found += held.height
            yield Stretch(rows, held.lazy(), part.address, least, until)
            # Nothing of it is held while the next one is read.
            del rows, held
        if found != sum(part.rows for part, _ in reports):
            raise Misplaced(reports[0][0].address)

    def _buckets(self, parts: Sequence[Sided], reports: pl.LazyFrame, known: Certain) -> Iterator[Stretch]:
        """Bucket by bucket from disk."""
        folder = self.limits.folder / f"day-{len(list(self.limits.folder.glob('day-*')))}"
        folder.mkdir()
        spill = Spill(folder, self.limits.held)
        for part, said in parts:
            for group in range(len(said.stretches)):
                spill.add(ATTEMPT, whole(self._attempts([(part, said)], known, [group])))
        for batch in reports.collect_batches(chunk_size=self.limits.held):
            spill.add(READING, whole(batch))
        for bucket in spill.buckets(ATTEMPT, READING):
            own = bucket.get(READING, pl.DataFrame(schema=reports.collect_schema()))
            yield Stretch(bucket.get(ATTEMPT, _no_attempts(known)), own.lazy())
        shutil.rmtree(folder)


def _apart(said: Footer) -> bool:
    """Whether every row group says where its keys end, none reaches into the next, and the file says no other."""
    ends = [(each.least, each.most) for each in said.stretches if each.least is not None and each.most is not None]
    told = said.order is not Order.NONE and len(ends) == len(said.stretches)
    return told and all(most <= least for (_, most), (least, _) in pairwise(ends))


def _between(rows: pl.LazyFrame, least: int | None, until: int | None) -> pl.DataFrame:
    """The rows whose keys are in a range."""
    if least is not None:
        rows = rows.filter(pl.col(LEAD) >= least)
    if until is not None:
        rows = rows.filter(pl.col(LEAD) < until)
    return rows.collect(engine="streaming")


@dataclass(slots=True)
class _Following:
    """The rows of a file in order, whose row groups are read once, as far as they are asked for.

    Attributes:
        rows: all of them.
        groups: the row groups that were not read yet.
    """

    rows: pl.LazyFrame
    groups: list[Group]
    _left: pl.DataFrame | None = None

    def before(self, until: int | None) -> pl.DataFrame:
        """The rows below a key that were not given yet; all others where it is null.

        Wherever a row lies, it is given once. One that lies where it should not comes too late to meet its attempt,
        and both are set aside then.
        """
        own = [each for each in self.groups if until is None or each.least is None or each.least < until]
        held = [] if self._left is None else [self._left]
        if own:
            first, last = own[0], own[-1]
            self.groups = self.groups[self.groups.index(last) + 1 :]
            held.append(self.rows.slice(first.first, last.first + last.rows - first.first).collect(engine="streaming"))
        rows = whole(pl.concat(held) if held else pl.DataFrame(schema=self.rows.collect_schema()))
        if until is None:
            self._left = None
            return rows
        keys = Rising.of(rows[LEAD])
        if keys.rise():
            (place,) = keys.places([until])
            mine, self._left = rows[:place], rows[place:]
        else:
            mine, self._left = rows.filter(pl.col(LEAD) < until), rows.filter(pl.col(LEAD) >= until)
        return mine


def _no_attempts(known: Certain) -> pl.DataFrame:
    return pl.DataFrame(schema={**_schema(ATTEMPT, pairs.attempt_read(known)), WHO: pl.Int64()})


def _schema(table: str, columns: Sequence[str]) -> dict[str, pl.DataType]:
    types = polars_schema(table)
    return {name: types[name] for name in columns}
