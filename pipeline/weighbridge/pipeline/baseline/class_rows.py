"""The rows of one class of a history, in the order of days: a stretch of days is a slice of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weighbridge.pipeline.baseline.history import HOURS, NO_HOUR, UNKNOWN, Ints, Mask, Rows, Small

DAY_HOURS = 24
# Places of a series in a table of seasons: the hours of the week, and one for rows without a time.
PLACES = HOURS + 1


@dataclass(frozen=True, slots=True)
class ClassRows:
    """Rows whose figure is known; arrays as in `Rows`."""

    series: Small
    day: NDArray[np.int16]
    hour: NDArray[np.uint8]
    y: Small

    @classmethod
    def of(cls, rows: Rows, name: str, first: int, last: int, out: Mask | None) -> ClassRows:
        """The rows of a class on the days first..last.

        Args:
            rows: the rows.
            name: the class.
            first, last: days, both inclusive.
            out: series x day: rows that do not count; null: all do. Those of the last day always do.
        """
        stretch = slice(*np.searchsorted(rows.day, [first, last + 1]).tolist())
        found = cls(rows.series[stretch], rows.day[stretch], rows.hour[stretch], rows.y[name][stretch])
        held = found.y != UNKNOWN
        if out is not None:
            held &= ~out[found.series, found.day] | (found.day == last)
        return found if held.all() else found._at(np.flatnonzero(held))

    def place(self, day: int) -> int:
        """The first row of a day, or of those after it."""
        return int(np.searchsorted(self.day, day))

    def days(self, first: int, last: int) -> ClassRows:
        """The rows of the days first..last - 1."""
        return self._at(slice(self.place(first), self.place(last)))

    def timed(self) -> ClassRows:
        """Those of which the time is known."""
        known = self.hour != NO_HOUR
        return self if known.all() else self._at(np.flatnonzero(known))

    def by_hour_of_day(self) -> Ints:
        """Series and hour of the day as one number."""
        found: Ints = self.series.astype(np.int64) * DAY_HOURS + self.hour % DAY_HOURS
        return found

    def by_hour_of_week(self) -> Ints:
        """Series and hour of the week as one number; the hour has to be known."""
        found: Ints = self.series.astype(np.int64) * HOURS + self.hour
        return found

    def places(self) -> Ints:
        """The place of each row in a table of series x `PLACES`."""
        found: Ints = self.series.astype(np.int64) * PLACES + np.minimum(self.hour, HOURS)
        return found

    def _at(self, places: Any) -> ClassRows:
        return ClassRows(self.series[places], self.day[places], self.hour[places], self.y[places])
