"""Days of series that were reported, and those of them that somebody confirmed.

Rows of a confirmed incident are no measure of what is ordinary, so they are left out of every past. An incident is
confirmed once its finding was acknowledged, disputed, credited or closed. One that is waived is the new ordinary, and
one that nobody has looked at is not confirmed: both still count. Whether a reference window kept its promise is asked
without any reported day: a day that stood out is an answer to another question.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.found import exceeded_id
from weighbridge.pipeline.baseline.history import History, Mask
from weighbridge.pipeline.baseline.usage import SERIES
from weighbridge.pipeline.lake.life import states
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import BaselineMethod, FindingState

CONFIRMED = (FindingState.ACKNOWLEDGED, FindingState.DISPUTED, FindingState.CREDITED, FindingState.CLOSED)
_NEEDED = ["day", *SERIES, "method", "driver", "key", "reported"]


class Incidents:
    """What earlier days reported; the days of a run are added one after the other.

    Attributes:
        confirmed, reported: series x day of the history.
    """

    confirmed: Mask
    reported: Mask

    def __init__(self, records: Records, history: History, judged: Collection[date]) -> None:
        """Read what the lake knows.

        Args:
            records: tables `baseline` and `finding_status`.
            history: the days and series.
            judged: days that are judged in this run, of which the lake's rows are out of date.
        """
        self._history = history
        self._ids = _confirmed_ids(records)
        self._places = history.labels.with_row_index("place")
        self.confirmed = np.zeros((history.series, history.length), bool)
        self.reported = self.confirmed.copy()
        rows = records.scan("baseline", first=history.first, columns=_NEEDED)
        self.add(rows.filter(pl.col("reported") & ~pl.col("day").is_in(list(judged))).collect())

    def add(self, rows: pl.DataFrame) -> None:
        """Take in rows of `baseline` of one or more days."""
        hits = rows.filter(pl.col("reported") & (pl.col("method") != str(BaselineMethod.TASK_TABLE))).select(_NEEDED)
        known = hits.join(self._places, on=list(SERIES), how="inner", nulls_equal=True)
        for row in known.iter_rows(named=True):
            day = self._history.index(row["day"])
            if 0 <= day < self._history.length:
                self.reported[row["place"], day] = True
                if self._ids and exceeded_id(row, f"{row['day']:%Y-%m}") in self._ids:
                    self.confirmed[row["place"], day] = True


def _confirmed_ids(records: Records) -> set[str]:
    # Whether a waiver has ended makes no difference here, so any day will do.
    last = states(records, date.max)
    return set(last.filter(pl.col("state").is_in([str(state) for state in CONFIRMED]))["finding_id"])
