"""The cells of one token class on one day, each by its own rows as far as it has them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from weighbridge.pipeline.baseline.history import Ints, Mask
from weighbridge.pipeline.baseline.limits import Ordered, above, ordered
from weighbridge.pipeline.baseline.own_rows import FEWEST, OwnRows, by_own_rows
from weighbridge.pipeline.baseline.season import CELL, HOUR_OF_DAY, HOUR_OF_WEEK, Centred, centred
from weighbridge.pipeline.baseline.spans import Floats
from weighbridge.pipeline.baseline.window import Window


@dataclass(frozen=True, slots=True)
class TokenCells:
    """One class; arrays with one item per series.

    Attributes:
        name: the class.
        own: by own rows.
        limit: score of the limit of single requests; REFUSED where there are too few rows.
        beyond: rows of the day above it.
        centre: mean seasonal centre of the day's rows, units of y, else of the reference's; NaN without rows.
        shift: how far the day's mean centre lies above the reference's, in the same units; 0 where either has none.
        level: finest season that was taken off; -1 without rows.
        median: median y of the day's rows; REFUSED where it has none.
        few_cell, few_y: rows of the reference that belong to cells with few rows: their cell and y.
        new_cell, new_y: such cells' rows of the day.
        moving: cells whose rows of reference and day are not all alike; the others can show nothing.
    """

    name: str
    own: OwnRows
    limit: Ints
    beyond: Ints
    centre: Floats
    shift: Floats
    level: Ints
    median: Ordered
    few_cell: Ints
    few_y: Ints
    new_cell: Ints
    new_y: Ints
    moving: Mask


def token_cells(window: Window, name: str, request_rate: Fraction) -> TokenCells:
    """Centre the rows of a class and order them.

    Args:
        window: the day and its past.
        name: the class.
        request_rate: how many single requests may lie beyond their limit.
    """
    cells, today = window.history.series, window.today
    first = today - window.reference_days
    rows = centred(
        window.history.rows,
        name,
        cells,
        start=window.start,
        since=max(first, window.start),
        today=today,
        out=window.out,
        run=window.run,
    )
    own = by_own_rows(rows, cells, today=today, reference_days=window.reference_days, quiet=window.quiet)
    begin = rows.place(today)
    new, past = slice(begin, None), slice(begin)
    limit = own.reference.upper(request_rate)
    now, then = _means(rows, new, cells), _means(rows, past, cells)
    both = np.isfinite(now) & np.isfinite(then)
    few = np.flatnonzero((own.reference.sizes < FEWEST)[rows.series])
    few_old, few_new = few[few < begin], few[few >= begin]
    return TokenCells(
        name=name,
        own=own,
        limit=limit,
        beyond=above(rows.series[new], rows.score[new], limit, cells),
        centre=np.where(np.isfinite(now), now, then),
        shift=np.where(both, now - then, 0.0),
        level=_finest(rows, cells),
        median=ordered(rows.series[new], rows.y[new], cells),
        few_cell=rows.series[few_old].astype(np.int64),
        few_y=rows.y[few_old].astype(np.int64),
        new_cell=rows.series[few_new].astype(np.int64),
        new_y=rows.y[few_new].astype(np.int64),
        moving=_moving(rows, cells),
    )


def _means(rows: Centred, part: slice, cells: int) -> Floats:
    series = rows.series[part]
    # Whole numbers of units: sums below 2**53 are exact in any order.
    sums = np.bincount(series, weights=rows.centre[part], minlength=cells)
    counts = np.bincount(series, minlength=cells)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _finest(rows: Centred, cells: int) -> Ints:
    """The finest season that was taken off any row of each cell; -1 without rows."""
    found = np.full(cells, -1, np.int64)
    found[rows.series] = CELL
    for level in (HOUR_OF_DAY, HOUR_OF_WEEK):
        found[rows.series[np.flatnonzero(rows.level == level)]] = level
    return found


def _moving(rows: Centred, cells: int) -> Mask:
    any_of_it = np.zeros(cells, rows.y.dtype)
    any_of_it[rows.series] = rows.y  # of several the last: whichever, for the others are held against it
    found = np.zeros(cells, bool)
    found[rows.series[np.flatnonzero(rows.y != any_of_it[rows.series])]] = True
    return found
