"""The cells of one token class as rows of the table: which stand alone, which beside siblings, what is expected."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.cells import Columns, cell_rows, of_test
from weighbridge.pipeline.baseline.history import SCALE, Ints, Mask
from weighbridge.pipeline.baseline.limits import REFUSED, tokens_at
from weighbridge.pipeline.baseline.own_rows import BAND, FEWEST
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.siblings import day_scores, past_of, pooled_limits, shrunk, without_week
from weighbridge.pipeline.baseline.spans import Floats
from weighbridge.pipeline.baseline.tokens import TokenCells
from weighbridge.pipeline.baseline.trust import Trust
from weighbridge.pipeline.baseline.window import Window
from weighbridge.schemas.enumerations import BaselineMethod, Measure, Season

_SEASONS = np.array([str(Season.NONE), str(Season.HOUR_OF_DAY), str(Season.HOUR_OF_WEEK)])


class TokenRows:
    """One token class on one day.

    Attributes:
        alone: cells judged by their own rows.
        shared: cells judged by whole days.
        p_rows: of the former; NaN elsewhere.
        scores: cell x day of the season: day scores, of all cells that have tokens of the class.
    """

    def __init__(self, window: Window, cells: TokenCells, trust: Trust, policy: BaselinePolicy) -> None:
        self.window, self.cells, self.trust = window, cells, trust
        self.n, self.x = window.past(f"n_{cells.name}"), window.past(f"x_{cells.name}")
        own = cells.own
        self.active = self.x.sum(axis=1) > 0
        self.alone = (own.reference.sizes >= FEWEST) & trust.by_rows
        self.shared = ~self.alone & self.active
        self.p_own = own.p_value(trust.cluster)
        self.p_rows = np.where(self.alone & cells.moving, self.p_own, np.nan)
        y = without_week(self.n, window.past(f"y_{cells.name}"), window.kin)
        past, found = past_of(self.n, y, own.reference.spread(), window.kin, reference=window.reference_days)
        self.scores = np.full(self.n.shape, np.nan)
        self.scores[self.active] = day_scores(self.n, y, past, found, self.active)
        now = past.of(slice(None), -1)
        self.expects = shrunk(now, found)
        self.pooled = pooled_limits(cells.few_cell, cells.few_y, own.reference, now, found, (BAND, policy.request_rate))
        self.mean = now.mean

    def frame(self, day: date, by_days: Floats, hits: Mask) -> pl.DataFrame:
        """The rows of the table."""
        cells, own = self.cells, self.cells.own
        few = own.reference.sizes < FEWEST
        limit, lower, upper = self._limits(few)
        over, beyond = self._pooled_over()
        columns: Columns = {
            "method": self._method(upper),
            "season": np.where(cells.level >= 0, _SEASONS[cells.level], _SEASONS[0]),
            "rows": own.reference.sizes,
            "days": own.days,
            "centre": np.where(few, self.expects.centre, cells.centre / SCALE),
            "lower": lower,
            "upper": upper,
            "promise": np.where(upper >= 0, float(BAND), np.nan),
            "limit": limit,
            "day_rows": own.rows,
            "exceeding": np.where(upper < 0, -1, np.where(few, over, own.exceeding)),
            "beyond_limit": np.where(limit < 0, -1, np.where(few, beyond, cells.beyond)),
            "median": tokens_at(np.where(own.rows > 0, cells.median.median(), 0), own.rows > 0),
            "expected": self.expected(),
            "observed": self.x[:, -1],
            "p_value": np.where(self.alone, self.p_own, by_days),
            "reported": hits,
            "cluster": np.where(self.alone, self.trust.cluster, np.nan),
            **of_test(own.test, self.trust.kept),
        }
        there = self.active & ((own.reference.sizes > 0) | (own.rows > 0))
        return cell_rows(self.window.history.labels, day, Measure.TOKENS, cells.name, there, columns)

    def expected(self) -> Ints:
        """Tokens the day's rows would have had at the reference's mean, moved by the season; -1 where unknown."""
        inside = slice(-1 - self.window.reference_days, -1)
        rows, tokens = self.n[:, inside].sum(axis=1), self.x[:, inside].sum(axis=1)
        mean = np.where(rows > 0, tokens / np.maximum(rows, 1), np.nan) * np.exp(self.cells.shift / SCALE)
        borrowed = np.expm1(self.expects.centre) * _skew(tokens, self.mean, rows)
        per_row = np.where(rows >= FEWEST, mean, borrowed)
        known = np.isfinite(per_row)
        return np.where(known, np.rint(np.where(known, per_row, 0.0) * self.n[:, -1]), -1).astype(np.int64)

    def _limits(self, few: Mask) -> tuple[Ints, Ints, Ints]:
        """Limit of single requests, lower and upper end of the band, in tokens; -1 where they are refused."""
        own, pooled = self.cells.own, self.pooled

        def tokens(score: Ints, shared: Floats) -> Ints:
            alone = ~few & (score != REFUSED) & np.isfinite(self.cells.centre)
            centre = np.where(np.isfinite(self.cells.centre), self.cells.centre, 0.0)
            mine = tokens_at(centre + np.where(alone, score, 0), alone)
            together = tokens_at(shared * SCALE, few & np.isfinite(shared))
            return np.where(few, together, mine)

        return (
            tokens(self.cells.limit, pooled.limit),
            tokens(own.lower, pooled.lower),
            tokens(own.upper, pooled.upper),
        )

    def _pooled_over(self) -> tuple[Ints, Ints]:
        """Per cell with few rows: rows of the day above the upper end, and above the limit of single requests."""
        cell, y = self.cells.new_cell, self.cells.new_y / SCALE

        def over(limit: Floats) -> Ints:
            bound = np.where(np.isfinite(limit), limit, np.inf)
            return np.bincount(cell[y > bound[cell]], minlength=self.window.history.series)

        return over(self.pooled.upper), over(self.pooled.limit)

    def _method(self, upper: Ints) -> NDArray[np.generic]:
        usable = (upper >= 0) | np.isfinite(self.scores[:, -1])
        shared = np.where(usable, str(BaselineMethod.SIBLINGS), str(BaselineMethod.REFUSED))
        return np.where(self.alone, str(BaselineMethod.OWN_ROWS), shared)


def _skew(tokens: Ints, mean: Floats, rows: Ints) -> float:
    """How far the mean of a class lies above what its mean logarithm says, over all cells: distributions are skewed."""
    flat = float((rows * np.expm1(np.where(rows > 0, mean, 0.0))).sum())
    return float(tokens.sum()) / flat if flat > 0 else 1.0
