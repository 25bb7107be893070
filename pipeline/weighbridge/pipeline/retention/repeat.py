"""Erasures of before, held against the lake as it is: what came back goes again.

A lake or a key folder restored from a backup has what was erased since; a segment that arrives late may bring rows of
a day an erasure was about. Requests are taken from the ledger, and from receipts where the ledger was lost: those tell
the tenant's hash, the bucket and the day. An erasure is looked at again only where a day it is about has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention import packs, spool
from weighbridge.pipeline.retention.became import Repeated, became_of
from weighbridge.pipeline.retention.beside import forget_closed, forget_pages, pages_of
from weighbridge.pipeline.retention.deletion import masked
from weighbridge.pipeline.retention.erasure import Erasing
from weighbridge.pipeline.retention.folders import Sealed, open_files, segments
from weighbridge.pipeline.retention.holds import Hold, standing
from weighbridge.pipeline.retention.ledger import ERASURES
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.recall import attempts_of, evidence_of, tenant_of
from weighbridge.pipeline.retention.receipts import receipts
from weighbridge.pipeline.retention.request import RULE, Request, remember, request_of
from weighbridge.pipeline.retention.subject import NO_ATTEMPTS, Subject
from weighbridge.pipeline.retention.work import Work
from weighbridge.schemas.identity import erased
from weighbridge.schemas.keys import KEY_NAME, KeyUnavailableError
from weighbridge.schemas.tables import TABLES


def repeat(work: Work) -> Repeated:
    """Hold every erasure against the places again, and finish those of which something was left."""
    places = work.places
    spool.settle(places.spools)
    asked = requests(places)
    if not asked:
        return Repeated()
    holds = standing(places.ledger)
    sealed = segments(places.spools, places.acks, places.lake)
    checked, marks = places.ledger.checked(), _marks(places.lake)
    told: dict[str, list[str]] = {}
    for request in asked:
        before, seen = work.made, checked.get(request.erasure_id, {})
        _wait(places, request)
        try:
            if seen.get("days") != _days(places, request, sealed, holds, marks):
                erasing = carry_out(work, request, holds, sealed)
                if erasing is None:  # nothing is left of it but pages, where a hold kept some
                    kept = len(forget_pages(work, request, holds))
                else:
                    kept = rows_left(held_by(erasing), erasing)
                remember(places.ledger, request.erasure_id, left=kept)
            elif seen.get("evidence") != _evidence(places):
                _clear_evidence(work, request, holds)
        except KeyUnavailableError as error:
            remember(places.ledger, request.erasure_id, left=max(1, request.left))
            work.failed.append(f"erasure {request.erasure_id[:8]}: {error}")
        if became := became_of(places, request, made=work.made != before):
            told.setdefault(became, []).append(request.erasure_id)
    if not work.failed:
        left, marks = segments(places.spools, places.acks, places.lake), _marks(places.lake)
        places.ledger.check(
            {
                request.erasure_id: {"days": _days(places, request, left, holds, marks), "evidence": _evidence(places)}
                for request in asked
            }
        )
    return Repeated(**{name: tuple(ids) for name, ids in told.items()})


def held_by(erasing: Erasing) -> dict[str, int]:
    """Table, `keys`, `closes` or `reports` -> rows, keys, packs or pages of an erasure that a hold keeps."""
    beside = {"keys": erasing.held_keys, "closes": erasing.held_closes, "reports": len(erasing.held_pages)}
    held = erasing.held_rows() | beside
    return {name: count for name, count in held.items() if count}


def rows_left(held: Mapping[str, int], erasing: Erasing) -> int:
    """How much a hold keeps of it, segments of the spool included."""
    return sum(held.values()) + len(erasing.held_segments)


def _wait(places: Places, request: Request) -> None:
    """Files that were not sealed yet are waited for until they are: what they bring is a segment then, or rows."""
    if request.waits:
        there = {path.name for path in open_files(places.spools)}
        remember(places.ledger, request.erasure_id, waits=[name for name in request.waits if name in there])


def _clear_evidence(work: Work, request: Request, holds: Sequence[Hold]) -> None:
    """Findings that were made since may list what was erased, where billing counts were kept."""
    if request.attempts:
        found = evidence_of(work.places, request)
        subject = Subject(attempts=found) if found.height else None
    else:
        tenant = tenant_of(work.places.lake, request)
        subject = None if tenant is None else Subject(tenant=tenant, bucket=request.bucket)
    if subject is not None:
        Erasing(work.places, request, subject, holds).carry_out(work, tables=["finding"])


def requests(places: Places) -> list[Request]:
    """Every erasure that was carried out, in the order they were asked for."""
    known = {name: request_of(name, content) for name, content in places.ledger.entries(ERASURES).items()}
    for receipt in receipts(places.lake):
        name = receipt.scope.get("erasure")
        if receipt.rule != RULE or name is None or name in known or "tenant" not in receipt.scope:  # or of a pack
            continue
        lost = request_of(
            name,
            {
                "tenant": receipt.scope["tenant"],
                "bucket": int(receipt.scope["bucket"]) if "bucket" in receipt.scope else None,
                "attempts": [],
                "last": receipt.scope["to"],
                "billing_too": receipt.scope["billing"] == "erased",
                "keys": [],
                "by": receipt.erased_by,
                "at": receipt.erased_at.isoformat(),
            },
        )
        of_it = [other for other in receipts(places.lake) if other.scope.get("erasure") == name]
        known[name] = replace(lost, keys=frozenset(key for other in of_it for key in other.key_ids))
    return sorted(known.values(), key=lambda request: (request.at, request.erasure_id))


def carry_out(
    work: Work, request: Request, holds: Sequence[Hold], sealed: Sequence[Sealed], subject: Subject | None = None
) -> Erasing | None:
    """Carry out an erasure, in the lake and in spools; null where there is nobody it could be about.

    Args:
        work: the work it is part of.
        request: what was asked for.
        holds: the holds that stand.
        sealed: the segments of the spools.
        subject: whom it is about, where that is known by name; else it is found by its hash.

    Raises:
        KeyUnavailableError: keys cannot be listed.
    """
    found = subject or _subject(work.places, request, sealed)
    if found is None:
        return None
    erasing = Erasing(work.places, request, found, holds, attempts_elsewhere(work.places, found, request, sealed))
    if request.keys is None:
        request = erasing.decide()
        known = work.places.ledger.entry(ERASURES, request.erasure_id) or {}
        keys = {*(request.keys or ()), *(known.get("keys") or ())}
        # Until all of it is done, one that is cut off is unfinished; `left` is told at its end.
        left = request.left if known else 1
        work.places.ledger.write(ERASURES, request.erasure_id, request.content() | {"keys": sorted(keys), "left": left})
    before = work.made
    erasing.carry_out(work)
    erasing.held_segments = spool.erase(work, erasing, sealed)
    spool.forget_expected(work.places.spools, erasing.reach.hexes)
    forget_closed(work, erasing, again=subject is None)
    come_back = subject is None and work.made > before
    erasing.held_pages = forget_pages(work, request, holds, pages_of(erasing) if come_back else ())
    return erasing


def attempts_elsewhere(places: Places, subject: Subject, request: Request, sealed: Sequence[Sealed]) -> pl.DataFrame:
    """The attempts of a subject that spools and packs name: attempt_hi, attempt_lo."""
    if subject.attempts is not None:
        return NO_ATTEMPTS
    until = replace(subject, last=request.last)
    return spool.attempts(sealed, until).vstack(packs.attempts(places.closes, until)).unique()


def _subject(places: Places, request: Request, sealed: Sequence[Sealed]) -> Subject | None:
    if request.attempts:
        beside = spool.hashed(sealed, request.attempts).vstack(packs.hashed(places.closes, request.attempts))
        both = attempts_of(places, request).vstack(beside).unique()
        return Subject(attempts=both) if both.height or request.keys else None
    tenant = tenant_of(places.lake, request)
    if tenant is None:
        tenant = next((name for name in sorted(spool.tenants(sealed)) if erased(name) == request.tenant), None)
    if tenant is None and request.keys and places.keys is not None:
        tenant = _tenant_of_keys(places, request)
    return None if tenant is None else Subject(tenant=tenant, bucket=request.bucket)


def _tenant_of_keys(places: Places, request: Request) -> str | None:
    names = places.keys.names() if places.keys is not None else None
    return next((name.split(".")[0] for name in names or () if erased(name.split(".")[0]) == request.tenant), None)


def _days(
    places: Places, request: Request, sealed: Sequence[Sealed], holds: Sequence[Hold], marks: Sequence[tuple[date, str]]
) -> str:
    """A mark of all an erasure is held against but findings: days up to its own, segments, holds, keys.

    Raises:
        KeyUnavailableError: keys cannot be listed.
    """
    names = places.keys.names() if places.keys is not None and places.keys.erases else None
    keys = [name for name in names or () if KEY_NAME.fullmatch(name) and masked(name) in (request.keys or ())]
    closed = (
        [] if places.closes is None else [*places.closes.glob("*/manifest.json"), *places.closes.glob("*/erasures/*")]
    )
    parts = [
        *sorted(map(str, closed)),
        *(mark for day, mark in marks if day <= request.last),
        *(one.digest for one in sealed),
        *(hold.hold_id for hold in holds),
        *keys,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _evidence(places: Places) -> str | None:
    return places.lake.marks("finding").get(None)


def _marks(lake: Lake) -> list[tuple[date, str]]:
    """Every day of every table by day, and what changes with its files."""
    return sorted(
        (day, f"{table} {day} {mark}")
        for table, about in TABLES.items()
        if about.daily
        for day, mark in lake.marks(table).items()
        if day is not None
    )
