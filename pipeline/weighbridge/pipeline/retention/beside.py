"""What an erasure takes beside the lake and the spools: pages that show somebody, and rows of close packs.

Pages show everybody, so a hold that touches the days of one keeps it, whoever is to be erased; it stays as it is and is
named. A pack is rows, of which a hold keeps its own. Which pages have to go is written down with the request before any
row goes: afterwards nobody could tell that they show somebody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, timedelta
from pathlib import Path

import polars as pl

from weighbridge.pipeline.retention import packs
from weighbridge.pipeline.retention.erasure import Erasing
from weighbridge.pipeline.retention.folders import dated, holds_page, period_of
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.request import RULE, Request, remember
from weighbridge.pipeline.retention.subject import KEY, NO_ATTEMPTS
from weighbridge.pipeline.retention.trace import pages, shown_by
from weighbridge.pipeline.retention.work import Work


def parted(found: Iterable[Path], holds: Collection[Hold]) -> tuple[list[Path], list[Path]]:
    """The pages that go, and those that a hold keeps."""
    every = list(found)
    kept = [path for path in every if any(holds_page(hold, path) for hold in holds)]
    return [path for path in every if path not in kept], kept


def forget_pages(work: Work, request: Request, holds: Collection[Hold], more: Iterable[Path] = ()) -> list[Path]:
    """Delete the pages that a request names; those that a hold keeps, which stay named.

    Args:
        work: the work it is part of.
        request: what was asked for.
        holds: the holds that stand.
        more: pages that it does not name, and that go too.
    """
    places = work.places
    if not request.billing_too:
        return []
    named = [path for name in request.pages for path in _places_of(places, name)]
    goes, kept = parted(dict.fromkeys([*named, *more]), holds)
    work.files("reports", goes, rule=RULE, scope=request.scope)
    left = [path.name for path in (*goes, *kept) if path.exists()]
    if left != list(request.pages):
        remember(places.ledger, request.erasure_id, pages=left)
    return kept


def pages_of(erasing: Erasing) -> list[Path]:
    """The pages that show whom an erasure is about; those of later days may show it, as may those of others."""
    found = pages(erasing.places, shown_by(erasing))
    return [path for path in found if (period_of(path.name) or (date.min,))[0] <= erasing.request.last]


def _places_of(places: Places, name: str) -> list[Path]:
    return [folder / name for folder in places.reports if (folder / name).exists()]


def forget_closed(work: Work, erasing: Erasing, *, again: bool) -> None:
    """Take rows out of the packs of closed months, but for those that a hold keeps.

    Args:
        work: the work it is part of.
        erasing: the erasure.
        again: it is done again: of a month that was closed since the request, the rows of before were gone already.
    """
    places, request = erasing.places, erasing.request
    if places.closes is None or places.forget_closed is None or not places.closes.is_dir():
        return
    attempts = _free(erasing)
    if attempts is None:
        return
    through = request.last.replace(day=1) - timedelta(days=1) if again else request.last
    places.forget_closed(
        places.closes,
        places.lake,
        attempts=attempts,
        tenant=erasing.reach.subject.tenant if erasing.all_of_tenant else None,
        counts=request.billing_too,
        through=f"{through:%Y-%m}",
        rule=RULE,
        by=work.by,
        now=work.now,
    )


def keeps_packs(erasing: Erasing) -> bool:
    """Whether a hold keeps packs, or rows of packs, of an erasure; how many is in `held_closes` then."""
    closes = erasing.places.closes
    if closes is not None and erasing.places.forget_closed is not None and closes.is_dir():
        _free(erasing)
    return erasing.held_closes > 0


def _free(erasing: Erasing) -> pl.DataFrame | None:
    """The attempts that leave the packs, null where a hold keeps them all; `held_closes` is how many packs it keeps."""
    closes, attempts = erasing.places.closes, erasing.reach.attempts
    assert closes is not None
    about = [(hold, reach) for hold, reach in erasing.holds if hold.covers("closes")]
    if erasing.all_of_tenant:
        if not any(hold.tenant in {None, erasing.reach.subject.tenant} for hold, _ in about):
            return attempts
        erasing.held_closes = len(dated([closes]))
        return None
    if not about:
        return attempts
    told = [each for hold, reach in about for each in (reach.attempts, packs.attempts(closes, hold.subject))]
    stopped = attempts.join(pl.concat([NO_ATTEMPTS, *told]), on=KEY, how="semi")
    erasing.held_closes = packs.count(closes, stopped)
    return attempts.join(stopped, on=KEY, how="anti")
