"""Retention on an installation: what is past its time goes from every place it has, with receipts.

Rows that go say nothing new about those that stay, so nothing becomes due by it; and a page that goes because its
time is over is not made again (`forgotten`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from weighbridge.pipeline.close.forget import forget
from weighbridge.pipeline.content.provider import key_provider
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.apply import Applied, apply
from weighbridge.pipeline.retention.clock import check_clock
from weighbridge.pipeline.retention.erase import Erased, erase
from weighbridge.pipeline.retention.ledger import Ledger
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.plan import RetentionPlan, plan
from weighbridge.pipeline.retention.policy import RetentionPolicy
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.pipeline.run.changes import notice
from weighbridge.pipeline.run.failure import spoken
from weighbridge.pipeline.run.forgotten import LEDGER
from weighbridge.pipeline.run.home import COMPARISONS, Home
from weighbridge.pipeline.run.step import no_news
from weighbridge.pipeline.run.steps import NIGHT, REPORT, settle
from weighbridge.pipeline.run.turn import turn


@dataclass(frozen=True, slots=True)
class Retained:
    """What a run of retention did.

    Attributes:
        plan: what was due and held.
        applied: what was deleted.
    """

    plan: RetentionPlan
    applied: Applied


def places_of(home: Home, lake: Lake | None = None) -> Places:
    """Where the data of an installation lies.

    Args:
        lake: the lake, where the caller has it open.

    Raises:
        ConfigError: the keys of token ids cannot be used as the settings name them.
    """
    settings = home.settings
    return Places(
        lake=lake or home.lake(),
        ledger=Ledger(home.root / LEDGER),
        spools=(home.spool,),
        acks=settings.acks,
        reports=tuple(path for path in (home.reports, home.reports / "shared") if path.is_dir()),
        closes=settings.closes,
        forget_closed=forget,
        keys=key_provider(settings, to_open=False),
        searched=(home.state, home.root / COMPARISONS),
    )


def planned(home: Home, today: date, lake: Lake | None = None) -> RetentionPlan:
    """What is due on this UTC day; nothing is changed.

    Raises:
        ConfigError: the keys of token ids cannot be used as the settings name them, or the ledger is damaged.
    """
    return plan(places_of(home, lake), RetentionPolicy.of(home.settings.retention), today)


def retain(
    home: Home, *, today: date, now: datetime, by: str, accept_clock: bool = False, wait_s: float = 0
) -> Retained:
    """Delete what is due.

    Args:
        home: the installation.
        today: the UTC day it is.
        now: the time, for receipts.
        by: who asked, for receipts.
        accept_clock: the clock may be as far ahead as it is of everything known here.
        wait_s: how long to wait for another run, seconds.

    Raises:
        ConfigError: as `planned` and `checked_clock`; nothing was deleted.
        LakeBusyError: something else was writing; running it again finishes it.
        DiskFullError: running it again finishes it.
    """
    with turn(home, wait_s=wait_s):
        return deleted(home, today=today, now=now, by=by, accept_clock=accept_clock)


def deleted(home: Home, *, today: date, now: datetime, by: str, accept_clock: bool = False) -> Retained:
    """As `retain`, for a caller that holds the turn."""
    notice(home, now)
    lake = home.lake()
    with spoken("deleting what is past its time"), lake.lock():
        if not accept_clock:
            checked_clock(home, now, today=today, lake=lake)
        with no_news(home, NIGHT, today):
            due = planned(home, today, lake)
            done = apply(due, by=by, now=now)
        due.places.ledger.ran(now)
    return Retained(due, done)


def erase_from(
    home: Home,
    places: Places,
    subject: Subject,
    *,
    by: str,
    now: datetime,
    billing_too: bool = False,
    only_known: bool = False,
    accept_clock: bool = False,
    wait_s: float = 0,
) -> Erased:
    """Erase somebody from an installation (`erase`).

    Rows that go say nothing new about those of others, so nothing is weighed or judged anew because of it. Pages are
    another matter: those of which rows or evidence went are made again by the next night, without whoever was erased.

    Args:
        home: the installation.
        places: where its data lies (`places_of`), and whatever else is to be emptied or searched.
        subject: whom; up to and including the UTC day of `now`.
        by: who asked, for receipts.
        now: when.
        billing_too: billing counts go as well.
        only_known: refuse a tenant, or a bucket of one, of which nothing is known here.
        accept_clock: the clock may be as far ahead as it is of everything known here.
        wait_s: how long to wait for another run, seconds.

    Raises:
        ConfigError: the subject names nobody, or nobody known, or the clock is ahead; nothing was erased.
        LakeBusyError: something else was writing; nothing was erased.
        KeyUnavailableError: keys cannot be listed; nothing of this request was done.
    """
    with turn(home, wait_s=wait_s):
        if not accept_clock:
            checked_clock(home, now)
        settle(home)
        today = now.astimezone(UTC).date()
        with places.lake.lock(), no_news(home, [step for step in NIGHT if step is not REPORT], today):
            return erase(places, subject, by=by, now=now, billing_too=billing_too, only_known=only_known)


def checked_clock(home: Home, now: datetime, *, today: date | None = None, lake: Lake | None = None) -> None:
    """Refuse a clock that is further ahead of everything known here than the settings allow.

    Args:
        now: what the clock says.
        today: the UTC day that decides what is due; that of the clock where left out.
        lake: the lake, where the caller has it open.

    Raises:
        ConfigError: it is further ahead.
    """
    check_clock(
        lake or home.lake(),
        Ledger(home.root / LEDGER),
        now,
        today=today or now.astimezone(UTC).date(),
        ahead_days=home.settings.clock_days,
    )
