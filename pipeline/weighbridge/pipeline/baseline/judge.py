"""One day: every cell's limits, how the day stands to them, and which cells stand out among all."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from weighbridge.pipeline.baseline.count_rows import request_rows, retries_of, retry_rows
from weighbridge.pipeline.baseline.day_counts import count_scores
from weighbridge.pipeline.baseline.discovery import reported
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.baseline.siblings import rank_p_values
from weighbridge.pipeline.baseline.spans import Floats
from weighbridge.pipeline.baseline.token_rows import TokenRows
from weighbridge.pipeline.baseline.tokens import token_cells
from weighbridge.pipeline.baseline.trust import trust
from weighbridge.pipeline.baseline.window import Window

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
    *trusts, of_retries = trust([*(cells.own.test for cells in classes), retries.test], window.kin.family)
    counts = count_scores(window.past("requests"), window.counted)
    judgements = [TokenRows(window, cells, each, policy) for cells, each in zip(classes, trusts, strict=True)]
    # Retries come in bursts: where they do, whole days are compared, as those of requests are.
    by_day = count_scores(window.past("retries"), window.counted)
    bursty = np.where(~of_retries.by_rows & (retries.tries > 0), by_day.today, np.nan)
    p_retries = np.where(of_retries.by_rows, retries.p_value(of_retries.cluster), np.nan)
    by_rows = [*(each.p_rows for each in judgements), p_retries]
    by_days = [*_by_days(judgements), rank_p_values(bursty, by_day.past)]
    by_counts = rank_p_values(counts.today, counts.past)
    found = reported([_joined(by_rows), _joined(by_days), by_counts], policy.false_share)
    series = window.history.series
    row_hits, day_hits = found[0].reshape(-1, series), found[1].reshape(-1, series)
    frames = [
        each.frame(day, days_p, row_hit | day_hit)
        for each, days_p, row_hit, day_hit in zip(judgements, by_days, row_hits, day_hits, strict=False)
    ]
    p_retries = np.where(of_retries.by_rows, p_retries, by_days[-1])
    frames.append(retry_rows(window, day, retries, of_retries, p_retries, row_hits[-1] | day_hits[-1]))
    frames.append(request_rows(window, day, counts, by_counts, found[2]))
    return pl.concat(frames, how="diagonal")


def _joined(values: list[Floats]) -> Floats:
    return np.concatenate(values) if values else np.empty(0)


def _by_days(judgements: list[TokenRows]) -> list[Floats]:
    """P-values by whole days, beside the days of all cells judged so; beside all cells where those are too few."""
    pool = _joined([each.scores[each.shared, :-1].ravel() for each in judgements])
    if np.isfinite(pool).sum() < _ENOUGH_DAYS:
        pool = _joined([each.scores[:, :-1].ravel() for each in judgements])
    past = np.sort(pool[np.isfinite(pool)])
    return [rank_p_values(np.where(each.shared, each.scores[:, -1], np.nan), past) for each in judgements]
