"""Second halves of keys that a table has more than once, over all its files; memory does not grow with the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.footer import Footer
from weighbridge.pipeline.lake.words import files
from weighbridge.pipeline.reconcile.overview.packed import Ints

LEAD = "attempt_lo"
# Keys held at a time, 8 bytes each; they are sorted in place.
AT_ONCE = 16_000_000


def repeated(table: str, parts: Sequence[tuple[Part, Footer]], at_once: int = AT_ONCE) -> Ints:
    """The second halves that more than one row has, each once, in order.

    Args:
        table: the table.
        parts: its files; the ends of their row groups say which of them a range of keys has to be looked for in.
        at_once: how many keys are held at a time.
    """
    found = [_twice(keys) for keys in _ranges(table, parts, at_once)]
    return np.concatenate([np.zeros(0, np.int64), *found])


def _twice(keys: Ints) -> Ints:
    keys.sort()
    again: Ints = np.unique(keys[1:][keys[1:] == keys[:-1]])
    return again


def _ranges(table: str, parts: Sequence[tuple[Part, Footer]], at_once: int) -> Iterator[Ints]:
    """All keys, a range of them at a time; ranges rise."""
    total = sum(part.rows for part, _ in parts)
    scans = [rows.select(LEAD) for _, rows in files(table, [part for part, _ in parts])]
    if not scans:
        return
    cuts = _cuts(parts, -(-total // at_once)) if total > at_once else []
    for low, high in zip([None, *cuts], [*cuts, None], strict=True):
        inside = pl.lit(value=True)
        if low is not None:
            inside &= pl.col(LEAD) >= low
        if high is not None:
            inside &= pl.col(LEAD) < high
        held = [scan.filter(inside).collect(engine="streaming")[LEAD].to_numpy() for scan in scans]
        yield np.concatenate(held)


def _cuts(parts: Sequence[tuple[Part, Footer]], pieces: int) -> list[int]:
    """Where to cut the keys into pieces of about the same size, from the ends of the row groups.

    Rows of a group are taken to be spread evenly between its ends. That only decides how large a piece is.
    """
    ends = sorted(
        (each.least + (each.most - each.least) * place // 8, each.rows / 8)
        for _, footer in parts
        for each in footer.stretches
        if each.least is not None and each.most is not None
        for place in range(8)
    )
    weights = np.cumsum([weight for _, weight in ends])
    if not len(weights):
        return []
    marks = [int(np.searchsorted(weights, weights[-1] * piece / pieces)) for piece in range(1, pieces)]
    return sorted({ends[min(mark, len(ends) - 1)][0] for mark in marks})
