"""A backfill: a range of days read, priced, reconciled and reported anew, with the dialects and prices of now.

Rows that come out as they were are not written. What was released for everybody stays as it was unless that is asked
for too: whoever holds both releases can subtract one from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path

from weighbridge.pipeline.run.changes import notice
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.step import Span, Step, Work
from weighbridge.pipeline.run.steps import ANEW, READ, RECONCILE, REPORT, SHARE, SHARE_AGAIN, settle
from weighbridge.pipeline.run.turn import patiently, turn
from weighbridge.pipeline.run.walk import walk
from weighbridge.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill did.

    Attributes:
        days: the UTC days that were read anew.
        months: the UTC months that were reconciled: all that these days touch.
        reports: month -> its page.
        work: step -> what it did, in the order they ran.
        refused: the step whose gate refused, null where none did.
    """

    days: tuple[str, ...]
    months: tuple[str, ...]
    reports: Mapping[str, Path]
    work: Mapping[str, Work]
    refused: str | None = None


def backfill(
    home: Home, first: date, last: date, *, today: date | None = None, release_again: bool = False, wait_s: float = 0
) -> Backfill:
    """Do everything anew that rests on the evidence of these days.

    Args:
        home: the installation.
        first, last: UTC days, both inclusive.
        today: the UTC day it is; null asks the clock.
        release_again: also the histograms for everybody that were released before.
        wait_s: how long to wait for another run, or for another writer of the lake, seconds.

    Raises:
        ConfigError: the first day is after the last, or still to come.
        LakeBusyError: something else was writing for longer than `wait_s`; running it again finishes it.
        DiskFullError: running it again finishes it.
    """
    today = today or datetime.now(UTC).date()
    span = span_of(first, last, today)
    with turn(home, wait_s=wait_s):
        patiently(lambda: settle(home), wait_s)
        patiently(lambda: notice(home, datetime.combine(today, time.min, UTC)), wait_s)
        done = walk(home, steps_of(release_again=release_again), today=today, span=span, wait_s=wait_s)
    return Backfill(
        days=done.units.get(READ.name, ()),
        months=done.units.get(RECONCILE.name, ()),
        reports=done.work.get(REPORT.name, Work()).files,
        work=done.work,
        refused=done.refused,
    )


def steps_of(*, release_again: bool) -> tuple[Step, ...]:
    """The steps of a backfill."""
    return tuple(SHARE_AGAIN if release_again and step is SHARE else step for step in ANEW)


def span_of(first: date, last: date, today: date) -> Span:
    """A range of days, that may reach beyond `today` but not begin there.

    Raises:
        ConfigError: the first day is after the last, or still to come.
    """
    if first > last:
        raise ConfigError(f"the first day {first} is after the last day {last}; give them in order")
    if first > today:
        raise ConfigError(f"the first day {first} is still to come: it is {today} in UTC; give days that have begun")
    return Span(first, last)
