"""Requests and retries of every series as rows of the table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.cells import Columns, cell_rows, of_test
from weighbridge.pipeline.baseline.day_counts import CountScores
from weighbridge.pipeline.baseline.history import Ints, Mask
from weighbridge.pipeline.baseline.own_rows import FEWEST, SelfTest, days_beside_all, squared_deviations, tested
from weighbridge.pipeline.baseline.spans import Floats
from weighbridge.pipeline.baseline.tails import hypergeometric_tail
from weighbridge.pipeline.baseline.trust import Trust
from weighbridge.pipeline.baseline.window import Window
from weighbridge.schemas.enumerations import BaselineMethod, Measure


@dataclass(frozen=True, slots=True)
class Retries:
    """Attempts that were not the first of their request; one item per series."""

    tries: Ints
    retries: Ints
    day_tries: Ints
    day_retries: Ints
    usable: Mask
    test: SelfTest

    def p_value(self, cluster: Floats) -> Floats:
        """Of the day; NaN where there are too few tries, or nothing was ever tried again.

        Args:
            cluster: per series how many tries count as one; see `OwnRows.p_value`.
        """
        out = np.full(len(self.tries), np.nan)
        at = np.flatnonzero(self.usable & (self.retries + self.day_retries > 0))
        size = cluster[at]
        now, among = np.floor(self.day_retries[at] / size), np.ceil(self.day_tries[at] / size)
        before, beside = np.floor(self.retries[at] / size), np.floor(self.tries[at] / size)
        figures = (now, among, now + before, among + np.maximum(beside, before))
        out[at] = hypergeometric_tail(*(figure.astype(np.int64) for figure in figures))
        return out


def retries_of(window: Window) -> Retries:
    """The retries of the day and of the reference window, with the exact test of their share."""
    inside = slice(-1 - window.reference_days, -1)
    tries, retries = window.past("tries"), window.past("retries")
    before, again = tries[:, inside].sum(axis=1), retries[:, inside].sum(axis=1)
    now, now_again = tries[:, -1], retries[:, -1]
    usable = (before >= FEWEST) & (now > 0)
    quiet_tries, quiet_retries = tries[:, inside] * window.quiet, retries[:, inside] * window.quiet
    beside, scatter = days_beside_all(quiet_retries, quiet_tries), squared_deviations(quiet_retries, quiet_tries)
    test = tested(beside, [scatter], (quiet_tries > 0) & (before >= FEWEST)[:, None])
    return Retries(before, again, now, now_again, usable, test)


def retry_rows(window: Window, day: date, found: Retries, trust: Trust, p_value: Floats, hits: Mask) -> pl.DataFrame:
    """The rows of the table.

    Args:
        window: the day and its past.
        day: its date.
        found: the retries.
        trust: which series may be judged by their rows.
        p_value: of the day.
        hits: what was found.
    """
    share = np.where(found.tries > 0, found.retries / np.maximum(found.tries, 1), np.nan)
    known = np.isfinite(share)
    columns: Columns = {
        "method": np.where(
            np.where(trust.by_rows, found.tries >= FEWEST, np.isfinite(p_value)),
            np.where(trust.by_rows, str(BaselineMethod.SHARE), str(BaselineMethod.DAY_COUNTS)),
            str(BaselineMethod.REFUSED),
        ),
        "rows": found.tries,
        "days": window.reference_days_with("tries"),
        "day_rows": found.day_tries,
        "exceeding": found.day_retries,
        "expected": np.where(known, np.rint(np.where(known, share, 0.0) * found.day_tries), -1).astype(np.int64),
        "observed": found.day_retries,
        "p_value": p_value,
        "reported": hits,
        "cluster": np.where(trust.by_rows, trust.cluster, np.nan),
        **of_test(found.test, trust.kept),
    }
    there = (found.tries > 0) | (found.day_tries > 0)
    return cell_rows(window.history.labels, day, Measure.RETRIES, None, there, columns)


def request_rows(window: Window, day: date, found: CountScores, p_value: Floats, hits: Mask) -> pl.DataFrame:
    """The rows of the table; arguments as of `retry_rows`."""
    observed, before = window.day("requests"), window.reference("requests")
    known = np.isfinite(found.centre)
    expected = np.where(known, np.rint(np.expm1(np.where(known, found.centre, 0.0))), -1).astype(np.int64)
    columns: Columns = {
        "method": np.where(found.settled, str(BaselineMethod.DAY_COUNTS), str(BaselineMethod.REFUSED)),
        "rows": before,
        "days": window.reference_days_with("requests"),
        "centre": found.centre,
        "day_rows": observed,
        "expected": expected,
        "observed": observed,
        "p_value": p_value,
        "reported": hits,
    }
    return cell_rows(window.history.labels, day, Measure.REQUESTS, None, (observed > 0) | (before > 0), columns)
