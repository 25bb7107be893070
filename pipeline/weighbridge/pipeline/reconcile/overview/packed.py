"""Sums and exact percentiles of many rows in groups that are numbers, with memory that does not grow with the rows.

No engine streams an exact quantile: all rows of all groups are held, or it is guessed. Here group and figure are packed
into one whole number, which sorts ten times as fast as rows do, and the percentile of a group is read from its place in
the sorted numbers. Beyond `AT_ONCE` of them, sorted runs go to disk and are merged group by group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.engines.sums import beyond
from weighbridge.pipeline.reconcile.overview.groups import PERCENT
from weighbridge.pipeline.reconcile.overview.pairs import FIGURES
from weighbridge.pipeline.reconcile.overview.runs import Ints, Run, cut, merged, values_between
from weighbridge.schemas.errors import LakeError

# Packed numbers held at a time, 8 bytes each, and as many again while they are sorted.
AT_ONCE = 16_000_000
_BITS = 42
# Figures lie within this on both sides of nought: `figures.LARGEST` is half of it.
_SHIFT = 2 ** (_BITS - 1)
MOST_GROUPS = 2 ** (63 - _BITS)
_LARGEST_SUM = 2**63
# Whole numbers below this are exact as floats.
_EXACT = 2**53
_NEAR = 2**16


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
    _runs: list[Run] = field(default_factory=list)
    _back: list[Ints] = field(default_factory=list)

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows: `group`, a number below `MOST_GROUPS`, and `FIGURES`, null where unknown; no group, no row.

        No more than four million rows at a time, so that their sums fit into 64 bits whatever plausible figures they
        have; larger figures than `figures.LARGEST` in amount are refused.

        Raises:
            SumError: a figure is too large to be added to others.
        """
        if not rows["group"].count():
            return
        added = _at_once(rows) or _added(rows.filter(pl.col("group").is_not_null()))
        self._sums.append(added.sums)
        self._held.append(added.packed)
        self._size += len(self._held[-1])
        if self._size >= self.at_once:
            self._put_away()

    def take_back(self, rows: pl.DataFrame) -> None:
        """Undo `add` for some rows that were added, in whatever pieces."""
        if rows.is_empty():
            return
        added = _added(rows)
        self._sums.append(added.sums.select("group", -pl.all().exclude("group")))
        self._back.append(added.packed)

    def groups(self) -> pl.DataFrame:
        """group, attempts, the sums of `FIGURES` (null where none is known) and `p95` in hundredths (likewise).

        Raises:
            SumError: a sum is beyond 64 bits.
        """
        counts = self._sums or [pl.DataFrame(schema=dict.fromkeys(("group", "attempts", *FIGURES, *_KNOWN), pl.Int64))]
        wide = [pl.col(name).cast(pl.Int128) for name in ("attempts", *FIGURES, *_KNOWN)]
        sums = pl.concat(counts).group_by("group").agg(each.sum() for each in wide).filter(pl.col("attempts") != 0)
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
        path = self.folder / f"run-{len(self._runs):05d}.i64"
        self._runs.append(Run.put_away(_sorted(self._held), path))
        self._held, self._size = [], 0

    def _percentiles(self) -> pl.DataFrame:
        found: list[tuple[Ints, Ints]] = []
        back = _sorted(self._back)
        if not self._runs:
            found.append(_percentiles(_without(_sorted(self._held), back)))
        else:
            self._put_away()
            pieces = -(-sum(run.size for run in self._runs) // self.at_once)
            # A group is never cut: one that has more numbers than may be held is a piece of its own.
            cuts = np.unique(values_between(self._runs, pieces) >> _BITS) << _BITS
            found += [_percentiles(_without(merged(parts), back)) for parts in cut(self._runs, cuts)]
        groups = np.concatenate([group for group, _ in found]) if found else np.zeros(0, np.int64)
        values = np.concatenate([value for _, value in found]) if found else np.zeros(0, np.int64)
        return pl.DataFrame({"group": groups, "p95": values}, schema={"group": pl.Int64, "p95": pl.Int64})


_KNOWN = tuple(f"known_{name}" for name in FIGURES)


class _Added(NamedTuple):
    """What some rows come to: counts and sums by group, and group and output of each row as one number."""

    sums: pl.DataFrame
    packed: Ints


def _added(rows: pl.DataFrame) -> _Added:
    """Rows of which some figures may be unknown.

    Raises:
        SumError: a figure is too large to be added to others.
    """
    ends = rows.select(*(end for name in FIGURES for end in _ends(name))).row(0)
    # Not as 64-bit numbers: the least of them has no positive.
    if any(end is not None and abs(end) >= _SHIFT for end in ends):
        raise beyond()
    sums = [pl.col(name).cast(pl.Int64).sum() for name in FIGURES]
    known = [pl.col(name).count().cast(pl.Int64).alias(f"known_{name}") for name in FIGURES]
    added = rows.lazy().group_by("group").agg(pl.len().cast(pl.Int64).alias("attempts"), *sums, *known)
    told = rows.filter(pl.col("output").is_not_null())
    packed = told.select(pl.col("group") * (2 * _SHIFT) + pl.col("output") + _SHIFT).to_series()
    return _Added(added.select("group", "attempts", *FIGURES, *_KNOWN).collect(), packed.to_numpy())


def _ends(name: str) -> tuple[pl.Expr, pl.Expr]:
    return pl.col(name).min().alias(f"least_{name}"), pl.col(name).max()


def _at_once(rows: pl.DataFrame) -> _Added | None:
    """The same in one pass, groups being places; null where a figure is unknown, or a sum too large to be exact."""
    size = int(rows["group"].max()) + 1  # type: ignore[arg-type]
    # As many rows at a time as stay near the processor, but never fewer than there are places.
    step, largest = max(_NEAR, size), 0
    told = {name: np.zeros(size) for name in ("attempts", *FIGURES)}
    packed, count = np.empty(rows.height, np.int64), 0
    for start in range(0, rows.height, step):
        near = rows.slice(start, step).drop_nulls("group")
        if any(near[name].null_count() for name in FIGURES):
            return None
        if near.is_empty():
            continue
        group = near["group"].to_numpy()
        packed[count : count + len(group)] = (group << _BITS) + near["output"].to_numpy() + _SHIFT
        count += len(group)
        told["attempts"] += np.bincount(group, minlength=size)
        for name in FIGURES:
            figures, own = near[name].to_numpy(), group
            largest = max(largest, int(figures.max()), -int(figures.min()))
            if name.endswith("difference"):
                # Nearly all of them are nought.
                other = np.flatnonzero(figures)
                figures, own = figures[other], group[other]
            told[name] += np.bincount(own, figures, size)
    if largest >= _SHIFT or largest * rows.height >= _EXACT:
        return None
    met = np.flatnonzero(told["attempts"])
    out: dict[str, Ints] = {"group": met, **{name: sums[met].astype(np.int64) for name, sums in told.items()}}
    out |= dict.fromkeys(_KNOWN, out["attempts"])
    return _Added(pl.DataFrame(out, schema=dict.fromkeys(out, pl.Int64)), packed[:count])


def _sorted(numbers: list[Ints]) -> Ints:
    """All numbers in order."""
    held = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
    held.sort()
    return held


def _without(numbers: Ints, back: Ints) -> Ints:
    """Sorted numbers without those that are taken back, each as often as it is among them.

    Args:
        numbers: all numbers of some groups.
        back: sorted ones of any group.
    """
    if not len(numbers) or not len(back):
        return numbers
    ends = [int(numbers[0]) >> _BITS << _BITS, ((int(numbers[-1]) >> _BITS) + 1 << _BITS) - 1]
    own = back[np.searchsorted(back, ends[0]) : np.searchsorted(back, ends[1], "right")]
    nth = np.arange(len(own)) - np.searchsorted(own, own)
    places = np.searchsorted(numbers, own) + nth
    if len(own) and (places[-1] >= len(numbers) or not np.array_equal(numbers[places], own)):
        raise LakeError("keys were taken back that were never added; nothing is told. Run `weighbridge validate`.")
    return np.delete(numbers, places)


def _percentiles(numbers: Ints) -> tuple[Ints, Ints]:
    """Group and percentile in hundredths of each group of sorted packed numbers."""
    if not len(numbers):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    groups, starts = _groups(numbers)
    sizes = np.diff(np.append(starts, len(numbers)))
    whole, part = np.divmod(PERCENT * (sizes - 1), 100)
    below = _figure(numbers[starts + whole])
    above = _figure(numbers[starts + np.minimum(whole + 1, sizes - 1)])
    return groups, below * 100 + (above - below) * part


def _groups(numbers: Ints) -> tuple[Ints, Ints]:
    """The groups of sorted packed numbers, and where each begins; few groups are looked for, many are met."""
    first, last = int(numbers[0]) >> _BITS, int(numbers[-1]) >> _BITS
    if last - first < len(numbers) // 64:
        every = np.arange(first, last + 1)
        edges = np.append(np.searchsorted(numbers, every << _BITS), len(numbers))
        met = np.flatnonzero(edges[1:] > edges[:-1])
        return every[met], edges[met]
    group = numbers >> _BITS
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    return group[starts], starts


def _figure(numbers: Ints) -> Ints:
    figures: Ints = (numbers & (2 * _SHIFT - 1)) - _SHIFT
    return figures
