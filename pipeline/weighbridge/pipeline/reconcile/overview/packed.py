"""Sums and exact percentiles of many rows in groups that are numbers, with memory that does not grow with the rows.

No engine streams an exact quantile: all rows of all groups are held, or it is guessed. Here group and figure are packed
into one whole number, which sorts ten times as fast as rows do, and the percentile of a group is read from its place in
the sorted numbers. Beyond `AT_ONCE` of them, sorted runs go to disk and are merged group by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.engines.sums import beyond
from weighbridge.pipeline.reconcile.overview.groups import PERCENT
from weighbridge.pipeline.reconcile.overview.pairs import FIGURES

Ints = np.ndarray[Any, np.dtype[np.int64]]

# Packed numbers held at a time, 8 bytes each, and as many again while they are sorted.
AT_ONCE = 16_000_000
_BITS = 42
# Figures lie within this on both sides of nought: `figures.LARGEST` is half of it.
_SHIFT = 2 ** (_BITS - 1)
MOST_GROUPS = 2 ** (63 - _BITS)
_LARGEST_SUM = 2**63


@dataclass(slots=True)
class Packed:
    """Rows in groups, added up as they come.

    Attributes:
        folder: where runs are put once there are too many numbers.
        at_once: how many numbers are held at a time.
    """

    folder: Path
    at_once: int = AT_ONCE
    _sums: list[pl.DataFrame] = field(default_factory=list)
    _held: list[Ints] = field(default_factory=list)
    _size: int = 0
    _runs: list[Path] = field(default_factory=list)

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows: `group`, a number below `MOST_GROUPS`, and `FIGURES`, null where unknown.

        No more than four million rows at a time, so that their sums fit into 64 bits whatever plausible figures they
        have; larger figures than `figures.LARGEST` in amount are refused.

        Raises:
            SumError: a figure is too large to be added to others.
        """
        if rows.is_empty():
            return
        extremes = rows.select(pl.max_horizontal(pl.col(FIGURES).max(), -pl.col(FIGURES).min())).item()
        if extremes is not None and extremes >= _SHIFT:
            raise beyond()
        whole = [name for name in FIGURES if not rows[name].null_count()]
        self._sums.append(_added(rows.lazy(), whole))
        known = rows.filter(pl.col("output").is_not_null()) if rows["output"].null_count() else rows
        packed = known.select(pl.col("group") * (2 * _SHIFT) + pl.col("output") + _SHIFT).to_series()
        self._held.append(packed.to_numpy())
        self._size += packed.len()
        if self._size >= self.at_once:
            self._put_away()

    def groups(self) -> pl.DataFrame:
        """group, attempts, the sums of `FIGURES` (null where none is known) and `p95` in hundredths (likewise).

        Raises:
            SumError: a sum is beyond 64 bits.
        """
        counts = self._sums or [
            _added(pl.LazyFrame(schema={"group": pl.Int64, **dict.fromkeys(FIGURES, pl.Int64)}), ())
        ]
        wide = [pl.col(name).cast(pl.Int128) for name in ("attempts", *FIGURES, *_KNOWN)]
        sums = pl.concat(counts).group_by("group").agg(each.sum() for each in wide)
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

    def _put_away(self) -> None:
        """Sorted numbers to disk."""
        run = self.folder / f"run-{len(self._runs):05d}.i64"
        _sorted(self._held).tofile(run)
        self._runs.append(run)
        self._held, self._size = [], 0

    def _percentiles(self) -> pl.DataFrame:
        found: list[tuple[Ints, Ints]] = []
        if not self._runs:
            found.append(_percentiles(_sorted(self._held)))
        else:
            self._put_away()
            runs = [
                np.memmap(run, np.int64, mode="r") if run.stat().st_size else np.zeros(0, np.int64)
                for run in self._runs
            ]
            found += [_percentiles(_sorted(slices)) for slices in _stretches(runs, self.at_once)]
        groups = np.concatenate([group for group, _ in found]) if found else np.zeros(0, np.int64)
        values = np.concatenate([value for _, value in found]) if found else np.zeros(0, np.int64)
        return pl.DataFrame({"group": groups, "p95": values}, schema={"group": pl.Int64, "p95": pl.Int64})


_KNOWN = tuple(f"known_{name}" for name in FIGURES)


def _added(rows: pl.LazyFrame, whole: Sequence[str]) -> pl.DataFrame:
    """Counts and sums by group; of the figures in `whole` every row knows one."""
    sums = [pl.col(name).cast(pl.Int64).sum() for name in FIGURES]
    own = [name for name in FIGURES if name not in whole]
    known = [pl.col(name).count().cast(pl.Int64).alias(f"known_{name}") for name in own]
    added = rows.group_by("group").agg(pl.len().cast(pl.Int64).alias("attempts"), *sums, *known)
    same = {f"known_{name}": pl.col("attempts") for name in whole}
    return added.with_columns(**same).select("group", "attempts", *FIGURES, *_KNOWN).collect()


def _sorted(numbers: list[Any]) -> Ints:
    held = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
    held.sort()
    return held


def _percentiles(numbers: Ints) -> tuple[Ints, Ints]:
    """Group and percentile in hundredths of each group of sorted packed numbers."""
    if not len(numbers):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    group = numbers >> _BITS
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    sizes = np.diff(np.append(starts, len(numbers)))
    whole, part = np.divmod(PERCENT * (sizes - 1), 100)
    below = _figure(numbers[starts + whole])
    above = _figure(numbers[starts + np.minimum(whole + 1, sizes - 1)])
    return group[starts], below * 100 + (above - below) * part


def _figure(numbers: Ints) -> Ints:
    figures: Ints = (numbers & (2 * _SHIFT - 1)) - _SHIFT
    return figures


def _stretches(runs: list[Any], at_once: int) -> list[list[Any]]:
    """The runs cut at the same groups, so that each stretch of all of them has about `at_once` numbers.

    A group is never cut: one that has more numbers than that is a stretch of its own.
    """
    total = sum(len(run) for run in runs)
    pieces = max(1, -(-total // at_once))
    longest = max(runs, key=len)
    marks = (
        [int(longest[len(longest) * piece // pieces]) >> _BITS for piece in range(1, pieces)] if len(longest) else []
    )
    cuts = [np.unique(np.array(marks, np.int64)) << _BITS]
    edges = [np.concatenate([[0], np.searchsorted(run, cuts[0]), [len(run)]]) for run in runs]
    out = []
    for piece in range(len(cuts[0]) + 1):
        parts = [run[edge[piece] : edge[piece + 1]] for run, edge in zip(runs, edges, strict=True)]
        out.append([part for part in parts if len(part)])
    return [piece for piece in out if piece]
