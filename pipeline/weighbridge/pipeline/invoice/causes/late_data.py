"""Calls a provider had not counted yet when its page or bill was made, or that it counted in the period after theirs.

Providers close their figures hours after a period. What is missing then is the end of it: all calls of a cell from some
moment on. Where exactly these make up the difference, and the moment lies within the hours of lateness the contract
names, they are late. Calls of the cell before that are charged in this one are those same calls, later.

Worked example (the last two calls are not there yet):

    calls (in order)    10  20  30  40   charged | late_data
    tokens                               30      |       -70
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from weighbridge.pipeline.invoice.billing import Billing, Figure
from weighbridge.pipeline.invoice.cause import Cause
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.enumerations import ChargedBy, LineKind, Severity

# Where money went through currencies, discounts or rounding, calls are told by their tokens alone.
_PLAIN = ("discounts", "rounding", "off_list")


def _closing(ledger: Ledger, billing: Billing, left: Mapping[Key, Figure]) -> Billing | None:
    given = ledger.predicted(billing)
    late = timedelta(hours=ledger.contract.lateness_hours)
    # A cell without any line is not late but not charged; while its period is open, it is provisional.
    keys = {key for key in left if key.kind == LineKind.TOKENS and key in ledger.charged}
    before = {key: _before(key, given) for key in keys}
    tails = ledger.tail(billing, {*keys, *(key for key in before.values() if key)})
    priced = set(ledger.calls["currency"].drop_nulls())
    plain = not any(getattr(billing, name) for name in _PLAIN) and priced <= {ledger.currency}
    by_money = ledger.against is ChargedBy.INVOICE and plain
    dropped, moved = dict(billing.dropped), dict(billing.moved)
    for key in sorted(keys, key=repr):
        target, ours = left[key], given.get(key)
        if ours is None:
            continue
        gap = _gap(target, ours, by_money=by_money)
        cut = _cut(tails.get(key, []), gap, key.end - late, -1)
        if cut is not None:
            dropped[key] = cut
            continue
        source = before[key]
        cut = None if source is None else _cut(tails.get(source, []), gap, source.end - late, 1)
        if cut is not None and source is not None:
            moved[key] = (source, cut)
    if (dropped, moved) == (billing.dropped, billing.moved):
        return None
    return replace(billing, dropped=dropped, moved=moved)


def _gap(target: Figure, ours: Figure, *, by_money: bool) -> Figure:
    tokens = None if target.tokens is None or ours.tokens is None else target.tokens - ours.tokens
    money = None if target.money is None or ours.money is None or not by_money else target.money - ours.money
    return Figure(tokens, money)


def _cut(
    tail: Sequence[tuple[datetime, int, Decimal | None]], gap: Figure, earliest: datetime, sign: int
) -> datetime | None:
    """The moment from which on calls make up a gap exactly; null where there is none."""
    tokens, money = 0, Decimal(0)
    for at, count, paid in tail:
        if at < earliest:
            return None
        tokens += sign * count
        money += sign * (paid or 0)
        told = [ours == theirs for ours, theirs in ((tokens, gap.tokens), (money, gap.money)) if theirs is not None]
        if told and all(told):
            return at
    return None


def _before(key: Key, given: Mapping[Key, Figure]) -> Key | None:
    """The cell of the period before, about the same."""
    same = [each for each in given if each.end <= key.start and each[3:] == key[3:] and each.kind == key.kind]
    return max(same, key=lambda each: each.end, default=None)


CAUSE = Cause(
    code="late_data",
    title="Calls that were not counted yet, or were counted a period late",
    order=40,
    cure="Fetch the page or the bill again after the provider's lateness; what was late is then in it.",
    closing=_closing,
    severity=Severity.NOTICE,
    at_stake=False,
)
