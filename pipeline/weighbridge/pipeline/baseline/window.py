"""The facts of a judged day and of the days before it, as sums per series."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.history import History, Ints, Mask
from weighbridge.pipeline.baseline.medians import Sorted
from weighbridge.pipeline.baseline.siblings import Kin


@dataclass(frozen=True)
class Window:
    """A judged day with its past.

    Attributes:
        history: what the lake knows.
        today: the day, as its number in the history.
        reference_days, season_days: how long the reference and the season are.
        out: series x day of the history: confirmed incidents. They count in no past; the judged day always counts.
        reported: series x day of the history: reported days, which the self-test leaves out.
        run: what was sorted for the days that were judged before it; null where it is the only one.
    """

    history: History
    today: int
    reference_days: int
    season_days: int
    out: Mask
    reported: Mask
    run: Sorted | None = None

    @property
    def start(self) -> int:
        """The first day of the season."""
        return max(self.today - self.season_days, 0)

    def past(self, name: str) -> Ints:
        """Series x day: one fact on every day of the season, the judged day last; 0 in confirmed incidents."""
        found: Ints = self.history.grid[name][:, self.start : self.today + 1] * self._kept
        return found

    def reference(self, name: str) -> Ints:
        """Per series the sum of one fact over the reference window."""
        found: Ints = self.past(name)[:, :-1][:, -self.reference_days :].sum(axis=1)
        return found

    def reference_days_with(self, name: str) -> Ints:
        """Per series the days of the reference window on which one fact is more than 0."""
        found: Ints = (self.past(name)[:, :-1][:, -self.reference_days :] > 0).sum(axis=1)
        return found

    @property
    def quiet(self) -> Mask:
        """Series x day of the reference window: days that were not reported."""
        found: Mask = ~self.reported[:, max(self.today - self.reference_days, self.start) : self.today]
        return found

    def day(self, name: str) -> Ints:
        """Per series one fact of the judged day."""
        found: Ints = self.history.grid[name][:, self.today]
        return found

    @cached_property
    def counted(self) -> Mask:
        """Series x day of the season: days that say how many requests there are.

        Not those before a series was first seen, nor days of which the lake knows nothing, nor confirmed incidents, nor
        any of a series that has rested for a whole reference window.
        """
        attempts = self.history.grid["attempts"][:, : self.today + 1]
        seen = np.cumsum(attempts > 0, axis=1)[:, self.start :] > 0
        alive = attempts.sum(axis=0)[self.start :] > 0
        lively = self.day("attempts") + self.reference("attempts") > 0
        found: Mask = seen & alive[None, :] & self._kept & lively[:, None]
        return found

    @cached_property
    def kin(self) -> Kin:
        """Which series are of one task, and which of one tenant and task."""
        return Kin(parent=self._groups("tenant", "task"), family=self._groups("task"))

    @cached_property
    def _kept(self) -> Mask:
        keep = ~self.out[:, self.start : self.today + 1]
        keep[:, -1] = True
        return keep

    def _groups(self, *names: str) -> Ints:
        ranks = self.history.labels.select(pl.struct(names).rank("dense").cast(pl.Int64) - 1)
        found: Ints = ranks.to_series().to_numpy()
        return found
