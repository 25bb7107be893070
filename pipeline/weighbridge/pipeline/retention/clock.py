"""Whether the clock can be right: a deletion cannot be taken back, so a clock that jumped ahead must not decide one.

The clock is held against what is known of time without it: the days of the data, which other hosts wrote, the closes
and receipts of before, and the last run of retention that did its work.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.ledger import Ledger
from weighbridge.schemas.errors import ConfigError

_BY_DAY = ("attempt", "request_scope", "usage_report")
_BY_TIME = (("close", "closed_at"), ("receipt", "erased_at"))


def newest_evidence(lake: Lake, ledger: Ledger, ahead_days: int) -> date | None:
    """The newest UTC day that something else than the clock speaks for; null where nothing does.

    Days that lie further than `ahead_days` after all before them speak for nothing, as a record with a wrong time would
    do: data that comes more rarely than that makes the guard refuse, never pass. The last run of retention speaks for
    itself: its clock was held against the same, or somebody vouched for it.
    """
    days = {day for table in _BY_DAY for day in lake.days(table)}
    for table, column in _BY_TIME:
        days.update(lake.scan(table, columns=[column]).select(pl.col(column).dt.date().unique()).collect()[column])
    known = sorted(days)
    while len(known) > 1 and (known[-1] - known[-2]).days > ahead_days:
        known.pop()
    last = ledger.last_run()
    return max([*known[-1:], *([] if last is None else [last.date()])], default=None)


def check_clock(lake: Lake, ledger: Ledger, now: datetime, *, today: date, ahead_days: int) -> None:
    """Refuse a clock that is further ahead than may be.

    Args:
        lake, ledger: where evidence of time is.
        now: what the clock says.
        today: the UTC day that decides what is due.
        ahead_days: so many days the clock may be after the newest evidence.

    Raises:
        ConfigError: it is further ahead; nothing was changed.
    """
    newest = newest_evidence(lake, ledger, ahead_days)
    day = max(today, now.astimezone(UTC).date())
    if newest is not None and (day - newest).days > ahead_days:
        raise ConfigError(
            f"the clock says {now.astimezone(UTC):%Y-%m-%d %H:%M} UTC and what is due is asked for {day}, but the "
            f"newest thing known here is of {newest}, {(day - newest).days} days before (days more than {ahead_days} "
            "after all others do not count). A clock that jumped ahead would delete too much, so nothing was deleted. "
            f"Set the clock right; or, where it is right and nothing came for more than {ahead_days} days (clock_days "
            "in the settings), say so with --accept-clock"
        )
