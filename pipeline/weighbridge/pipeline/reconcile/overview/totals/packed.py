"""Sums and exact percentiles of many rows in groups that are numbers, with memory that does not grow with the rows.

No engine streams an exact quantile: all rows of all groups are held, or it is guessed. Here figures that come often are
counted (`tally`); of the others group and figure are packed into one whole number, which sorts ten times as fast as
rows do, and beyond `AT_ONCE` of them sorted runs go to disk. Both are put together a range of groups at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.engines.sums import beyond
from weighbridge.pipeline.reconcile.overview.numbers.runs import (
    NONE,
    Ints,
    Run,
    cut,
    each_once,
    in_order,
    merged,
    values_between,
)
from weighbridge.pipeline.reconcile.overview.pairs import FIGURES
from weighbridge.pipeline.reconcile.overview.totals.percentiles import (
    BITS,
    MOST_GROUPS,
    SHIFT,
    Counted,
    counted,
    percentiles,
    together,
)
from weighbridge.pipeline.reconcile.overview.totals.percentiles import packed as packed_as_one
from weighbridge.pipeline.reconcile.overview.totals.summed import Few, Plain, Summed
from weighbridge.pipeline.reconcile.overview.totals.tally import Tally

# Packed numbers held at a time, 8 bytes each, and as many again while they are sorted.
AT_ONCE = 2_000_000
_LARGEST_SUM = 2**63
# Rows of sums that are held before they are added up.
_SUMS = 2**16
_KNOWN = tuple(f"known_{name}" for name in FIGURES)
_COUNTED = ("attempts", *FIGURES, *_KNOWN)
_WIDE = {"group": pl.Int64, **dict.fromkeys(_COUNTED, pl.Int128)}
# Rows as `Packed.add` takes them, none of them.
NO_ROWS = pl.DataFrame(schema={"group": pl.Int64, **dict.fromkeys(FIGURES, pl.Int64)})


@dataclass(slots=True)
class Packed:
    """Rows in groups, added up as they come.

    Attributes:
        folder: where runs are put once there are too many numbers.
        at_once: how many numbers are held at a time.
        tally: where figures that come often are counted.
    """

    folder: Path
    at_once: int = AT_ONCE
    tally: Tally = field(default_factory=Tally)
    _plain: Summed = field(default_factory=Summed)
    _sums: list[pl.DataFrame] = field(default_factory=list)
    # What they were added up to so far, as 128-bit numbers.
    _summed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_WIDE))
    _held: list[Ints] = field(default_factory=list)
    _size: int = 0
    _runs: list[Run] = field(default_factory=list)
    _back: list[Ints] = field(default_factory=list)

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows: `group`, a number below `MOST_GROUPS`, and `FIGURES`, null where unknown; no group, no row.

        No more than four million rows at a time, so that their sums fit into 64 bits whatever plausible figures they
        have; larger figures than `figures.LARGEST` in amount are refused.

        Raises:
            SumError: a figure is too large to be added to others.
        """
        held = rows.drop_nulls("group") if rows["group"].null_count() else rows
        if held.is_empty():
            return
        if any(held[name].null_count() for name in FIGURES):
            self._sum(_added(held))
            self._count(*_known(held))
        else:
            group, *figures = (held[name].to_numpy() for name in ("group", *FIGURES))
            self.add_plain(Plain(group, figures[0], figures[1], Few.of(figures[2]), Few.of(figures[3])))

    def add_plain(self, rows: Plain) -> None:
        """The same of rows of which every figure is known."""
        if not len(rows.group):
            return
        if not self._plain.add(rows):
            self._drain()
            if not self._plain.add(rows):
                self._sum(_added(rows.frame()))
        self._count(rows.group, rows.output)

    def _count(self, group: Ints, output: Ints) -> None:
        """Count figures, or hold them until they are sorted."""
        rest = self.tally.add(group, output)
        self._held.append(packed_as_one(group[rest], output[rest]))
        self._size += len(rest)
        if self._size >= self.at_once:
            self._put_away()

    def take_back(self, rows: pl.DataFrame) -> None:
        """Undo `add` for some rows that were added, in whatever pieces."""
        if rows.is_empty():
            return
        self._sum(_added(rows).select("group", -pl.all().exclude("group")))
        self._back.append(packed_as_one(*_known(rows)))

    def groups(self) -> pl.DataFrame:
        """group, attempts, the sums of `FIGURES` (null where none is known) and `p95` in hundredths (likewise).

        Raises:
            SumError: a sum is beyond 64 bits.
        """
        self._drain()
        self._sum_up()
        sums = self._summed.filter(pl.col("attempts") != 0)
        for name in ("attempts", *FIGURES):
            ends = (sums[name].min(), sums[name].max())
            if any(isinstance(end, int) and not -_LARGEST_SUM <= end < _LARGEST_SUM for end in ends):
                raise beyond()
        told = sums.select(
            "group",
            pl.col("attempts").cast(pl.Int64),
            *(pl.when(pl.col(f"known_{name}") > 0).then(pl.col(name).cast(pl.Int64)).alias(name) for name in FIGURES),
        )
        return told.join(self._percentiles(), on="group", how="left").sort("group")

    def _drain(self) -> None:
        held = self._plain.drained()
        known = dict.fromkeys(_KNOWN, held["attempts"])
        self._sum(pl.DataFrame(held | known, schema=dict.fromkeys(("group", *_COUNTED), pl.Int64)))

    def _sum(self, sums: pl.DataFrame) -> None:
        """Add the sums of some rows; as many are held as there are groups, or a few more."""
        self._sums.append(sums)
        if sum(each.height for each in self._sums) > max(_SUMS, self._summed.height):
            self._sum_up()

    def _sum_up(self) -> None:
        wide = [each.cast(_WIDE) for each in self._sums]  # type: ignore[arg-type]
        self._summed = pl.concat([self._summed, *wide]).group_by("group").agg(pl.col(_COUNTED).sum())
        self._sums = []

    def _put_away(self) -> None:
        """Sorted numbers to disk."""
        path = self.folder / f"run-{len(self._runs):05d}.i64"
        self._runs.append(Run.put_away(in_order(np.concatenate([NONE, *self._held])), path))
        self._held, self._size = [], 0

    def _percentiles(self) -> pl.DataFrame:
        back = in_order(np.concatenate([NONE, *self._back]))
        if self._runs:
            self._put_away()
        runs = self._runs or [Run.held(in_order(np.concatenate([NONE, *self._held])))]
        pieces = -(-sum(run.size for run in runs) // self.at_once)
        # A group is never cut: one that has more numbers than may be held is a piece of its own.
        cuts = each_once(np.concatenate([values_between(runs, pieces) >> BITS, self.tally.cuts()]))
        ends = [0, *cuts.tolist(), MOST_GROUPS]
        found = []
        for parts, (first, until) in zip(cut(runs, cuts << BITS), pairwise(ends), strict=True):
            taken = counted(back[slice(*np.searchsorted(back, _ends_of(first, until)))])
            group, figure, counts = self.tally.counted(first, until)
            several = [counted(merged(parts)), Counted(packed_as_one(group, figure), counts)]
            found.append(percentiles(together([*several, Counted(taken.numbers, -taken.counts)])))
        groups, values = (np.concatenate(column) for column in zip(*found, strict=True))
        return pl.DataFrame({"group": groups, "p95": values}, schema={"group": pl.Int64, "p95": pl.Int64})


def _ends_of(first: int, until: int) -> list[int]:
    """Where the numbers of some groups begin and end; the end of all groups has no number."""
    return [first << BITS, min(until << BITS, 2**63 - 1)]


def _known(rows: pl.DataFrame) -> tuple[Ints, Ints]:
    """Group and output of each row whose output is known."""
    told = rows.select("group", "output")
    told = told.drop_nulls("output") if told["output"].null_count() else told
    return told["group"].to_numpy(), told["output"].to_numpy()


def _added(rows: pl.DataFrame) -> pl.DataFrame:
    """What rows, of which some figures may be unknown, come to by group.

    Raises:
        SumError: a figure is too large to be added to others.
    """
    ends = rows.select(*(end for name in FIGURES for end in _ends(name))).row(0)
    # Not as 64-bit numbers: the least of them has no positive.
    if any(end is not None and abs(end) >= SHIFT for end in ends):
        raise beyond()
    sums = [pl.col(name).cast(pl.Int64).sum() for name in FIGURES]
    known = [pl.col(name).count().cast(pl.Int64).alias(f"known_{name}") for name in FIGURES]
    added = rows.lazy().group_by("group").agg(pl.len().cast(pl.Int64).alias("attempts"), *sums, *known)
    return added.select("group", *_COUNTED).collect()


def _ends(name: str) -> tuple[pl.Expr, pl.Expr]:
    return pl.col(name).min().alias(f"least_{name}"), pl.col(name).max()
