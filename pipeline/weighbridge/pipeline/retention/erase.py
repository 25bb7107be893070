"""Erasing a tenant, one bucket of its data subjects, or single attempts, and looking whether it is all gone.

keys        of (tenant, subject bucket, month, class) are destroyed
rows        of every table go or are cleared; billing counts stay unless they are asked for too
the past    of every table that lost rows goes from the disk
spool       segments go or are written anew; what is not sealed yet is named, and waited for
pages       that show the tenant go where billing goes, and are named otherwise
receipts    one per table; the request itself is remembered by hashes, so that nothing comes back
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from weighbridge.pipeline.retention import holds as holding
from weighbridge.pipeline.retention import spool
from weighbridge.pipeline.retention.beside import keeps_packs, pages_of, parted
from weighbridge.pipeline.retention.erasure import Erasing
from weighbridge.pipeline.retention.facts import FACTS, Erasure
from weighbridge.pipeline.retention.folders import Sealed, open_files, segments
from weighbridge.pipeline.retention.found import OF_LEDGER, of_ledger, tell
from weighbridge.pipeline.retention.keepers import keepers
from weighbridge.pipeline.retention.known import check_known
from weighbridge.pipeline.retention.ledger import ERASURES
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.receipts import Receipt
from weighbridge.pipeline.retention.repeat import attempts_elsewhere, carry_out, held_by, rows_left
from weighbridge.pipeline.retention.request import Request, new_request, remember, remember_traces, request_of
from weighbridge.pipeline.retention.search import Found
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.pipeline.retention.trace import look_for, needles_of
from weighbridge.pipeline.retention.work import Work
from weighbridge.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What an erasure did, or would do.

    Attributes:
        erasure_id: what receipts call it; null of a dry run.
        rows: table -> rows that go or are cleared.
        keys: names of the keys that are destroyed.
        kept: table -> rows of the subject that stay as billing counts.
        held: table -> rows that a hold keeps, and how many `keys`, `closes` (packs) and `reports` (pages); they go when
            it is released and `apply` runs.
        held_segments: segments of the spool that a hold keeps.
        not_yet: files of the spool that are not sealed yet and may hold more; seal them, then run it again.
        pages: pages that show the subject: gone where billing is erased too, else named only.
        held_pages: pages that should go and that a hold keeps, as they show its days.
        holds: the holds that keep any of it.
        receipts: the receipts that were written.
        failed: what could not be deleted, and why; `apply` tries it again.
        left: what the search found that should be gone; null where nobody searched.
        unsearched: what could not be searched for.
    """

    erasure_id: str | None
    rows: Mapping[str, int]
    keys: tuple[str, ...]
    kept: Mapping[str, int]
    held: Mapping[str, int]
    held_segments: tuple[Path, ...] = ()
    not_yet: tuple[Path, ...] = ()
    pages: tuple[Path, ...] = ()
    held_pages: tuple[Path, ...] = ()
    holds: tuple[holding.Hold, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    failed: tuple[str, ...] = ()
    left: tuple[Found, ...] | None = None
    unsearched: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing of the subject that should go is left, as far as anybody looked."""
        return not (self.held or self.held_segments or self.held_pages or self.not_yet or self.failed or self.left)


def preview(
    places: Places, subject: Subject, *, now: datetime, billing_too: bool = False, only_known: bool = False
) -> Erased:
    """See what an erasure would take, and what a hold would keep; nothing is changed. See `erase` for the arguments.

    Raises:
        ConfigError: the subject names nobody, or a bucket without its tenant, or nobody who is known here.
        KeyUnavailableError: keys cannot be listed.
    """
    request = _asked(subject, billing_too=billing_too, by="nobody", now=now)
    sealed = segments(places.spools, places.acks, places.lake)
    if only_known:
        check_known(places, subject, sealed)
    more = attempts_elsewhere(places, subject, request, sealed)
    erasing = Erasing(places, request, subject, holding.standing(places.ledger), more)
    rows, kept, _ = _counted(erasing)
    goes, holds = _stopped(erasing, sealed)
    return Erased(
        erasure_id=None,
        rows=rows,
        keys=_keys(erasing),
        kept=kept,
        held=held_by(erasing),
        held_segments=tuple(erasing.held_segments),
        not_yet=tuple(open_files(places.spools)),
        pages=tuple(goes),
        held_pages=tuple(erasing.held_pages),
        holds=holds,
    )


def erase(
    places: Places,
    subject: Subject,
    *,
    by: str,
    now: datetime,
    billing_too: bool = False,
    look: bool = True,
    only_known: bool = False,
) -> Erased:
    """Erase somebody.

    Killed anywhere, it is finished by running it again, or by the next `apply`.

    Args:
        places: where things lie; the lake's lock is held until it ends.
        subject: whom; up to and including the UTC day of `now`.
        by: who asked, for receipts.
        now: when.
        billing_too: billing counts go as well.
        look: search every place afterwards for what was erased.
        only_known: refuse a tenant, or a bucket of one, of which nothing is known here (`check_known`).

    Raises:
        ConfigError: the subject names nobody, or a bucket without its tenant, or nobody who is known here.
        LakeBusyError: somebody else is writing; nothing was done.
        LakeError: the lake cannot be written; running it again finishes it.
        KeyUnavailableError: keys cannot be listed; nothing of this request was done.
    """
    request = _asked(subject, billing_too=billing_too, by=by, now=now)
    with places.lake.lock():
        work = Work(places, by=by, now=now)
        spool.settle(places.spools)
        work.resume()
        known = places.ledger.entry(ERASURES, request.erasure_id)
        if known is not None:
            request = replace(request_of(request.erasure_id, known), keys=None)
        holds = holding.standing(places.ledger)
        sealed = segments(places.spools, places.acks, places.lake)
        if only_known:
            check_known(places, subject, sealed)
        before = Erasing(places, request, subject, holds, attempts_elsewhere(places, subject, request, sealed))
        rows, kept, _ = _counted(before)
        keys, (goes, keeping) = _keys(before), _stopped(before, sealed)
        needles, unsearched = needles_of(before)
        waits = tuple(path.name for path in open_files(places.spools))
        going = (*goes, *before.held_pages) if billing_too else ()
        request = replace(request, waits=waits, pages=tuple(path.name for path in going))
        erasing = carry_out(work, request, holds, sealed, subject)
        assert erasing is not None
        receipts = work.finish()
        if subject.tenant is not None and subject.bucket is None:
            holding.mask(places.ledger, subject.tenant)
        held = held_by(erasing)
        remember(places.ledger, request.erasure_id, left=rows_left(held, erasing))
        left, elsewhere = look_for(places, needles) if look else (None, [])
        if left is not None:
            files = {*erasing.held_segments, *before.held_pages}  # named as held, so no trace of what has gone
            left = [each for each in left if files.isdisjoint((each.path, *each.path.parents))]
            remember_traces(places.ledger, request, len(left))
        tell(places, list(of_ledger(places.ledger)), OF_LEDGER)
        return Erased(
            erasure_id=request.erasure_id,
            rows=rows,
            keys=keys,
            kept=kept,
            held=held,
            held_segments=tuple(erasing.held_segments),
            not_yet=tuple(open_files(places.spools)),
            pages=tuple(goes),
            held_pages=tuple(before.held_pages),
            holds=keeping,
            receipts=tuple(receipts),
            failed=tuple(work.failed),
            left=None if left is None else tuple(left),
            unsearched=(*unsearched, *elsewhere),
        )


def _asked(subject: Subject, *, billing_too: bool, by: str, now: datetime) -> Request:
    if subject.tenant is None and subject.attempts is None and subject.bucket is not None:
        raise ConfigError(
            f"nobody is named: a bucket needs --tenant; name the tenant whose bucket {subject.bucket} is meant"
        )
    if subject.tenant is None and subject.attempts is None:
        raise ConfigError("nobody is named: name a tenant, a tenant and one of its buckets, or a file of attempt ids")
    if subject.attempts is not None and (subject.tenant is not None or subject.bucket is not None):
        raise ConfigError("attempts are named one by one; leave the tenant and the bucket out")
    if subject.attempts is not None and subject.attempts.is_empty():
        raise ConfigError("the file names no attempt; one id of 32 hexadecimal digits is expected per line")
    return new_request(subject, last=now.astimezone(UTC).date(), billing_too=billing_too, by=by, now=now)


def _counted(erasing: Erasing) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Table -> rows that go or are cleared; rows that stay as billing counts; rows that a hold keeps."""
    goes: dict[str, int] = {}
    stays: dict[str, int] = {}
    held: dict[str, int] = {}
    for fact in FACTS.values():
        if fact.erasure is Erasure.STAYS:
            continue
        free, stopped = erasing.counts(fact)
        if erasing.erases(fact):
            goes[fact.table] = free + erasing.whole(fact).height
            held[fact.table] = stopped
        else:
            stays[fact.table] = free + stopped
    return tuple({table: rows for table, rows in told.items() if rows} for told in (goes, stays, held))  # type: ignore[return-value]


def _stopped(erasing: Erasing, sealed: Sequence[Sealed]) -> tuple[list[Path], tuple[holding.Hold, ...]]:
    """The pages that show the subject and are not held, and the holds that keep any of it; told in `erasing` too."""
    goes, erasing.held_pages = _shown(erasing)
    erasing.held_segments = spool.held_by(erasing, sealed)
    keeps_packs(erasing)
    return goes, keepers(erasing)


def _shown(erasing: Erasing) -> tuple[list[Path], list[Path]]:
    """The pages that show the subject, and those of them that should go and that a hold keeps."""
    shown = pages_of(erasing)
    return parted(shown, [hold for hold, _ in erasing.holds]) if erasing.request.billing_too else (shown, [])


def _keys(erasing: Erasing) -> tuple[str, ...]:
    return tuple(sorted(name for names in erasing.keys.values() for name in names))
