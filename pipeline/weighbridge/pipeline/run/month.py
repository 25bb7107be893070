"""The end of a month: everything of it once more, with the dialects and prices of now, and then its close.

    read > validate > price > reconcile > invoice > baseline > audit > adjust > share > report > publish > close
           refused where its gate is shut                                    refused where one of its gates is

A close takes a month as it stands, so it is brought up to date first. A month that is closed already is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from weighbridge.pipeline.close.adjust import adjust
from weighbridge.pipeline.close.close import CloseResult, close_month
from weighbridge.pipeline.close.closed import closes
from weighbridge.pipeline.close.gates import ClosePolicy
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.reconcile.period import checked, ends
from weighbridge.pipeline.run.changes import notice
from weighbridge.pipeline.run.failure import spoken
from weighbridge.pipeline.run.forgotten import BILLED, forgotten
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import all_months
from weighbridge.pipeline.run.step import Span, Step, Work
from weighbridge.pipeline.run.steps import ANEW, REPORT, settle
from weighbridge.pipeline.run.turn import patiently, turn
from weighbridge.pipeline.run.walk import walk

_DAY = timedelta(days=1)
_WEEK = 7


@dataclass(frozen=True, slots=True)
class Month:
    """What was done with a month.

    Attributes:
        month: `YYYY-MM`, UTC.
        close: what became of its close; null where a gate refused before it came to that.
        report: its page, null where none was made.
        work: step -> what it did, in the order they ran; none where it was closed before.
        refused: the step whose gate refused, null where none did.
    """

    month: str
    close: CloseResult | None
    report: Path | None
    work: Mapping[str, Work]
    refused: str | None = None


def monthly(home: Home, month: str, *, by: str, now: datetime, early: str | None = None, wait_s: float = 0) -> Month:
    """Bring a month up to date and close it.

    Args:
        home: the installation.
        month: the UTC month, `YYYY-MM`.
        by: who closes, a name without blanks.
        now: the time.
        early: why it is closed before its time, where it is.
        wait_s: how long to wait for another run, or for another writer of the lake, seconds.

    Raises:
        ConfigError: there is no such month.
        LakeBusyError: something else was writing for longer than `wait_s`; running it again finishes it.
        DiskFullError: running it again finishes it.
    """
    with turn(home, wait_s=wait_s):
        patiently(lambda: settle(home), wait_s)
        today = now.astimezone(UTC).date()
        done = walk(home, steps_of(home, month), today=today, span=span_of_month(month), wait_s=wait_s)
        closed = None
        if not done.refused:
            closed = patiently(lambda: close_books(home, month, by=by, now=now, early=early), wait_s)
    return Month(month, closed, done.work.get(REPORT.name, Work()).files.get(month), done.work, done.refused)


def steps_of(home: Home, month: str) -> tuple[Step, ...]:
    """The steps that bring a month up to date; none where it is closed."""
    return () if checked(month) in closes(home.lake()) else ANEW


def close_books(home: Home, month: str, *, by: str, now: datetime, early: str | None = None) -> CloseResult:
    """Book what came late for months closed before, then close this one, or say what holds it back.

    Raises:
        ConfigError: the month, the name or the reason cannot be used.
        LakeBusyError: another process is writing.
    """
    settings = home.settings
    matters = Materiality.of(settings.material)
    policy = ClosePolicy(**settings.close, ids_grace_days=settings.ids_grace_days, materiality=matters)
    lake = home.lake()
    notice(home, now)
    with spoken(f"closing {month}"), lake.lock():
        closed = closes(lake)
        if month not in closed:
            adjust(lake, packs=settings.closes, months=[each for each in closed if each < month], period=month)
        return close_month(
            lake,
            period=month,
            packs=settings.closes,
            book=PriceBook.load(settings.prices),
            key=home.key,
            by=by,
            now=now,
            policy=policy,
            settings=policy.plain(),
            early=early,
        )


def span_of_month(month: str) -> Span:
    """The days of a month.

    Raises:
        ConfigError: it is no month.
    """
    return Span(*ends(checked(month)))


def months_due(home: Home, now: datetime) -> tuple[str, ...]:
    """The months that a schedule tries to close today, oldest first: all that are over and not closed, within bounds.

    A month is tried every day of the first week after its days of grace, then once a week, so one that a gate holds
    back is closed when what held it is mended. Only the newest year is tried, and no month of which retention took
    rows: a close of what is left would pass for one of the month. Either is closed where somebody names it.
    """
    lake, newest = home.lake(), month_due(home, now)
    closed, gone = closes(lake), forgotten(home)
    first = f"{int(newest[:4]) - 1:04d}{newest[4:]}"
    last = _last_day(home, now)
    return tuple(
        month
        for month in all_months(lake)
        if first < month <= newest and month not in closed and not gone.month(month, BILLED) and _tried(month, last)
    )


def _tried(month: str, last: date) -> bool:
    days = (last - ends(month)[1]).days - 1  # 0 on the first one
    return days < _WEEK or days % _WEEK == 0


def month_due(home: Home, now: datetime) -> str:
    """The last UTC month that is over, its days of grace included."""
    return last_month_over(_last_day(home, now))


def _last_day(home: Home, now: datetime) -> date:
    """The UTC day of `now` less the days of grace."""
    return now.astimezone(UTC).date() - _DAY * int(home.settings.close["grace_days"])


def last_month_over(today: date) -> str:
    """The last month that has no day from `today` on."""
    return f"{today.replace(day=1) - _DAY:%Y-%m}"
