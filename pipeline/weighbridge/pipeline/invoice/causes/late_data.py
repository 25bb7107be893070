"""Calls a provider had not counted yet when its page or bill was made, or that it counted in the period after theirs.

Providers close their figures hours after a period. What is missing then is the end of it: all calls of a cell from some
moment on. Where exactly these make up the difference, and the moment lies within the hours of lateness the contract
names, they are late. Calls of the cell before that are charged in this one are those same calls, later.

Worked example (the last two calls are not there yet):

    calls (in order)    10  20  30  40   charged | late_data
    tokens                               30      |       -70
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from weighbridge.pipeline.invoice.billing import Billing, Figure
from weighbridge.pipeline.invoice.cause import Cause
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.tail import cuts, tail
from weighbridge.schemas.enumerations import ChargedBy, LineKind, Severity

# Where money went through currencies, discounts or rounding, calls are told by their tokens alone.
_PLAIN = ("discounts", "rounding", "off_list")


def _closing(ledger: Ledger, billing: Billing, left: Mapping[Key, Figure]) -> Billing | None:
    given = ledger.predicted(billing)
    late = timedelta(hours=ledger.contract.lateness_hours)
    # A cell without any line is not late but not charged; while its period is open, it is provisional.
    keys = {key for key in left if key.kind == LineKind.TOKENS and key in ledger.charged}
    priced = {each.currency for each in ledger.calls} - {None}
    plain = not any(getattr(billing, name) for name in _PLAIN) and priced <= {ledger.currency}
    by_money = ledger.against is ChargedBy.INVOICE and plain
    missing = {
        key: _gap(target, given[key], by_money=by_money) for key, target in left.items() if key in keys and key in given
    }
    dropped = tail(ledger, billing, {key: (_negative(gap), key.end - late) for key, gap in missing.items()}, given)
    ends = _ends(given)
    beside = {key: _before(key, ends) for key in missing if key not in dropped}
    wanted = {key: source for key, source in beside.items() if source is not None}
    # A cell may be the one before of one other at most, so what is asked of it is one thing.
    begins = {source: (missing[key], source.end - late) for key, source in wanted.items()}
    since = tail(ledger, billing, begins, given)
    moved = {
        key: (source, since[source])
        for key, source in wanted.items()
        if source in since and _lacks(ledger, dropped, source, since[source])
    }
    made = tuple(cuts(ledger, billing, dropped, moved))
    return replace(billing, cuts=made) if made else None


def _lacks(ledger: Ledger, dropped: Mapping[Key, object], source: Key, since: datetime) -> bool:
    """Whether the calls of a cell from a moment on are not charged in it: what is there, too, is charged twice."""
    if source not in ledger.charged:
        return True
    from_then = dropped.get(source)
    return isinstance(from_then, datetime) and from_then <= since


def _gap(target: Figure, ours: Figure, *, by_money: bool) -> Figure:
    tokens = None if target.tokens is None or ours.tokens is None else target.tokens - ours.tokens
    money = None if target.money is None or ours.money is None or not by_money else target.money - ours.money
    return Figure(tokens, money)


def _negative(gap: Figure) -> Figure:
    return Figure(None if gap.tokens is None else -gap.tokens, None if gap.money is None else -gap.money)


def _ends(given: Iterable[Key]) -> dict[Key, list[Key]]:
    """What cells are about, without their periods -> these cells, in the order of their ends."""
    found: defaultdict[Key, list[Key]] = defaultdict(list)
    for key in sorted(given, key=lambda each: each.end):
        found[_about(key)].append(key)
    return found


def _about(key: Key) -> Key:
    return key._replace(start=datetime.min, end=datetime.min)  # noqa: DTZ901 no moment, but none


def _before(key: Key, ends: Mapping[Key, Sequence[Key]]) -> Key | None:
    """The cell of the period before, about the same."""
    same = ends.get(_about(key), ())
    place = bisect_right(same, key.start, key=lambda each: each.end)
    return same[place - 1] if place else None


CAUSE = Cause(
    code="late_data",
    title="Calls that were not counted yet, or were counted a period late",
    order=40,
    cure="Fetch the page or the bill again after the provider's lateness; what was late is then in it.",
    closing=_closing,
    severity=Severity.NOTICE,
    at_stake=False,
)
