"""Where the audit of one cell stands in a month: carried from night to night as one row of `audit_cell`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weighbridge.pipeline.audit import process
from weighbridge.pipeline.audit.process import Standing
from weighbridge.pipeline.audit.rate import GRID, Rate
from weighbridge.pipeline.audit.scales import NAMES, Floats, Ints
from weighbridge.pipeline.audit.tolerance import Tolerance

_OF_PROCESS, _OF_RATE = ("sums", "squares", "over", "under"), ("above", "below", "out_below", "out_above")
_SEEN = 3
LENGTH = len(_OF_PROCESS) * len(NAMES) + _SEEN + len(_OF_RATE) * len(GRID)


@dataclass(frozen=True, slots=True)
class CellMonth:
    """A cell since its month began.

    Attributes:
        standing: of its processes.
        rate: of its interval.
        over, under: logarithm of its bets at their highest, 0 before the first answer.
        broken: answers whose gap is not 0.
        gap, observed: tokens, added up.
        pinned, incomplete: answers that were left out.
    """

    standing: Standing
    rate: Rate
    over: float = 0.0
    under: float = 0.0
    broken: int = 0
    gap: int = 0
    observed: int = 0
    pinned: int = 0
    incomplete: int = 0

    @classmethod
    def start(cls) -> CellMonth:
        """Before the first answer of a month."""
        return cls(Standing.start(), Rate.start())

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> CellMonth:
        """From a row of `audit_cell`."""
        values = np.array(row["state"], dtype=np.float64)
        own = len(_OF_PROCESS) * len(NAMES)
        scales = np.split(values[:own], len(_OF_PROCESS))
        grids = np.split(values[own + _SEEN :], len(_OF_RATE))
        names = ("over", "under", "broken", "gap", "observed", "pinned", "incomplete")
        return cls(
            Standing(np.int64(row["rows"]) + np.zeros((), np.int64), *scales),
            Rate(values[own : own + _SEEN], *grids),
            **{name: row[name] for name in names},
        )

    def further(self, gaps: Ints, sizes: Ints, tolerance: Tolerance) -> CellMonth:
        """After some more answers, in the order of their arrival."""
        if not len(gaps):
            return self
        course = process.advance(self.standing, gaps, sizes, tolerance.over, tolerance.under)
        return replace(
            self,
            standing=course.standing,
            rate=self.rate.further(gaps, sizes),
            over=max(self.over, float(course.over.max())),
            under=max(self.under, float(course.under.max())),
            broken=self.broken + int((gaps != 0).sum()),
            gap=self.gap + int(gaps.sum()),
            observed=self.observed + int(sizes.sum()),
        )

    def without(self, pinned: int, incomplete: int) -> CellMonth:
        """With so many more answers left out."""
        return replace(self, pinned=self.pinned + pinned, incomplete=self.incomplete + incomplete)

    def row(self, alpha: float) -> dict[str, Any]:
        """The columns of `audit_cell` that tell where it stands."""
        lower, upper = self.rate.interval(alpha)
        rows = int(self.standing.rows)
        arrays: Sequence[Floats] = [
            *(getattr(self.standing, name) for name in _OF_PROCESS),
            self.rate.seen,
            *(getattr(self.rate, name) for name in _OF_RATE),
        ]
        return {
            "rows": rows,
            "pinned": self.pinned,
            "incomplete": self.incomplete,
            "broken": self.broken,
            "gap": self.gap,
            "observed": self.observed,
            "over": self.over,
            "under": self.under,
            "rate_lower": lower,
            "rate_upper": upper,
            "alpha": alpha,
            "state": np.concatenate(arrays).tolist(),
        }
