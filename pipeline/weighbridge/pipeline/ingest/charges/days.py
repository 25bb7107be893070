"""Days of a zone: the UTC moments they begin and end at.

A local midnight that does not exist (a clock that is put forward at midnight) is the first moment after it; of one
that exists twice the earlier is meant. So days of 23, 24, 25 hours, or 23.5 hours, leave no hole and do not overlap.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
# A line whose times were local ones says so in its notes, as in `zone:Europe/Berlin`.
ZONE = "zone:"


def begin_of(day: date, zone: str) -> datetime:
    """The UTC moment a day begins at in a zone."""
    local = datetime.combine(day, time(), ZoneInfo(zone))
    moment = local.astimezone(UTC)
    # A local time that does not exist maps to a moment whose local time is another one: go on to the first that is.
    while moment.astimezone(ZoneInfo(zone)).date() < day:
        moment += _MINUTE
    return moment


def a_day_after(start: datetime, zone: str) -> datetime:
    """The UTC moment a day later by the clock of a zone: of the beginning of a day, the beginning of the next one."""
    local = start.astimezone(ZoneInfo(zone))
    following = local.date() + _DAY
    if start == begin_of(local.date(), zone):
        return begin_of(following, zone)
    return datetime.combine(following, local.time(), ZoneInfo(zone)).astimezone(UTC)
