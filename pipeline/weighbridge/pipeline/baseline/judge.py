"""One day: every cell's limits, how the day stands to them, and which cells stand out among all."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.count_rows import request_rows, retries_of, retry_rows
from weighbridge.pipeline.baseline.day_counts import count_scores
from weighbridge.pipeline.baseline.discovery import reported
from weighbridge.pipeline.baseline.history import Ints, Mask
from weighbridge.pipeline.baseline.own_rows import SelfTest
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.siblings import rank_p_values
from weighbridge.pipeline.baseline.spans import Floats
from weighbridge.pipeline.baseline.token_rows import TokenRows
from weighbridge.pipeline.baseline.tokens import token_cells
from weighbridge.pipeline.baseline.window import Window

# The self-test is a test too: of the cells it doubts, at most this share is doubted wrongly.
DOUBT = Fraction(1, 100)
# Days of cells that are judged so, below which the days of all cells are compared with.
_ENOUGH_DAYS = 1000


def judged(window: Window, policy: BaselinePolicy) -> pl.DataFrame:
    """Rows of `baseline` of one day, without money and drivers.

    Returns:
        Columns of the table, `series` (the number of the series), and `reported` where the statistics say so: whether
        it is large enough in money is still to be seen.
    """
    day = window.history.first + timedelta(days=window.today)
    classes = [token_cells(window, name, policy.request_rate) for name in window.history.classes]
    retries = retries_of(window)
    kept, free = _kept([*(cells.own.test for cells in classes), retries.test], window.kin.family)
    counts = count_scores(window.past("requests"), window.counted)
    judgements = [
        TokenRows(window, cells, keeps, by_rows, policy)
        for cells, keeps, by_rows in zip(classes, kept, free, strict=False)
    ]
    # Retries come in bursts: where they do, whole days are compared, as those of requests are.
    by_day = count_scores(window.past("retries"), window.counted)
    bursty = np.where(~free[-1] & (retries.tries > 0), by_day.today, np.nan)
    by_rows = [each.p_rows for each in judgements] + [np.where(free[-1], retries.p_value, np.nan)]
    by_days = [*_by_days(judgements), rank_p_values(bursty, by_day.past)]
    by_counts = rank_p_values(counts.today, counts.past)
    found = reported([_joined(by_rows), _joined(by_days), by_counts], policy.false_share)
    series = window.history.series
    row_hits, day_hits = found[0].reshape(-1, series), found[1].reshape(-1, series)
    frames = [
        each.frame(day, days_p, row_hit | day_hit)
        for each, days_p, row_hit, day_hit in zip(judgements, by_days, row_hits, day_hits, strict=False)
    ]
    p_retries = np.where(free[-1], retries.p_value, by_days[-1])
    frames.append(retry_rows(window, day, retries, kept[-1], free[-1], p_retries, row_hits[-1] | day_hits[-1]))
    frames.append(request_rows(window, day, counts, by_counts, found[2]))
    return pl.concat(frames, how="diagonal")


def _joined(values: list[Floats]) -> Floats:
    return np.concatenate(values) if values else np.empty(0)


def _kept(tests: list[SelfTest], family: Ints) -> tuple[list[Mask], list[Mask]]:
    """Which cells kept the promise on their reference window, and which of them may be judged by their rows.

    The second leaves out what did not keep it, and every cell, task or class whose days scatter more than rows with
    nothing in common could make them: with many cells, that shows where no cell alone can show it.
    """
    kept = [~no for no in _doubted([test.disagreement() for test in tests])]
    steady = [own & ~no for own, no in zip(kept, _doubted([test.scattered() for test in tests]), strict=True)]
    # What is doubted already is no reason to doubt the others.
    rest = [test.without(~own) for test, own in zip(tests, steady, strict=True)]
    of_task = _doubted([test.together(family).scattered() for test in rest])
    everybody = np.zeros(len(family), np.int64)
    of_class = _doubted([test.together(everybody).scattered() for test in rest])
    free = [
        own & ~tasks[family] & ~every[everybody] for own, tasks, every in zip(steady, of_task, of_class, strict=True)
    ]
    return kept, free


def _doubted(chances: list[Floats]) -> list[Mask]:
    found = reported([_joined(chances), np.empty(0), np.empty(0)], DOUBT)[0]
    return np.split(found, np.cumsum([len(values) for values in chances])[:-1])


def _by_days(judgements: list[TokenRows]) -> list[Floats]:
    """P-values by whole days, beside the days of all cells judged so; beside all cells where those are too few."""
    pool = _joined([each.scores[each.shared, :-1].ravel() for each in judgements])
    if np.isfinite(pool).sum() < _ENOUGH_DAYS:
        pool = _joined([each.scores[:, :-1].ravel() for each in judgements])
    past = np.sort(pool[np.isfinite(pool)])
    return [rank_p_values(np.where(each.shared, each.scores[:, -1], np.nan), past) for each in judgements]
